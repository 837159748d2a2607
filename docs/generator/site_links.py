"""A hook of mkdocs: links out of docs/ lead into the repository, at the address that .mkdocs.yml names."""

from __future__ import annotations

from typing import Any


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Return a page with its links to files beside docs/ made whole."""
    root = f"{config.repo_url.rstrip('/')}/{config.edit_uri.removesuffix('docs/')}"
    return markdown.replace("](../", f"]({root}")
