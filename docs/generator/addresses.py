"""The repository's address and a revision of it, which stand in pyproject.toml, and the files that repeat them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
REPEATED_IN: Final = (".mkdocs.yml", "CITATION.cff", "docs/ci.md")

_URLS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
ADDRESS: Final[str] = _URLS["Source"]
REVISION: Final[str] = _URLS["Documentation"].removeprefix(f"{ADDRESS}/blob/").partition("/")[0]


def with_addresses(text: str, address: str = ADDRESS, revision: str = REVISION) -> str:
    """Return a file's text with an address on GitHub and a revision in place of those that it has."""
    owner = address.split("/")[-2]
    text = re.sub(r"https://github\.com/[^/\s]+/dml_tile\b", address, text)
    text = re.sub(r"(?<=uses: )\S+(?=/dml_tile@)", owner, text)
    return re.sub(r"(/dml_tile@|\brev: |\bedit_uri: blob/)[^\s'/]+", rf"\g<1>{revision}", text)
