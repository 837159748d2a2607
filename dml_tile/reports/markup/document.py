"""HTML pages that need no other file and no network, in the package's one stylesheet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.resources import files

from dml_tile.reports.markup.elements import element, hash_source


def html_page(title: str, body: Iterable[str], *, more_style: str = "", script: str = "") -> Iterator[str]:
    """A page, in pieces. Its security policy allows this style and this script alone."""
    style = files(__package__).joinpath("style.css").read_text("utf-8") + more_style
    allowed = f"style-src {hash_source(style)}; " + (f"script-src {hash_source(script)}; " if script else "")
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta http-equiv="Content-Security-Policy" '
    yield f"content=\"default-src 'none'; {allowed}base-uri 'none'; form-action 'none'\">\n"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield element("title", title)
    yield f"\n<style>{style}</style>\n</head>\n<body>\n"
    yield from body
    yield f"<script>{script}</script>\n" if script else ""
    yield "</body>\n</html>\n"
