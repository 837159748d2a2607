"""Makes the package's description of the README: on an index, links relative to the repository would lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?!https://)(?P<path>[^)\s]+)\)")


def described(readme: str, source: str, version: str) -> str:
    """The README with links into the repository at ``source``, at the tag of a version.

    Without a source, or as long as OWNER is not filled in, their text stays, and images go.
    """

    def led_on(match: re.Match[str]) -> str:
        if not source or "/OWNER/" in source:
            return "" if match["image"] else match["text"]
        place = "raw" if match["image"] else "blob"
        return f"{match['image']}[{match['text']}]({source.rstrip('/')}/{place}/v{version}/{match['path']})"

    return _LINK.sub(led_on, readme)


class DescriptionHook(MetadataHookInterface):
    """Fills in ``readme``, with the address that ``Source`` of the project's urls names."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source", "")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": described(text, source, metadata["version"]),
        }
