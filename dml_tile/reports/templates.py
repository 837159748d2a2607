"""The templates of pages and of Markdown; a page is one file that requests no other."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined

from dml_tile.checks.placements import PLACED
from dml_tile.reports import wording
from dml_tile.reports.bounds import clipped
from dml_tile.reports.overview import SIGNS, fate_of, located
from dml_tile.text import plural


@cache
def templates(finalize: Callable[[object], object] | None = None) -> Environment:
    """Return the templates of this folder, which escape values for HTML unless ``finalize`` escapes them before."""
    environment = Environment(
        loader=PackageLoader("dml_tile", "reports"),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {
        "PLACED": PLACED,
        "SIGNS": SIGNS,
        "clipped": clipped,
        "fate_of": fate_of,
        "located": located,
        "plural": plural,
        "urlsplit": urlsplit,
        "wording": wording,
        "zip": zip,
    }
    return environment


def html_page(name: str, **values: object) -> Iterator[str]:
    """Yield a page, in pieces. Its security policy allows the package's style and the page's script alone."""
    style, script = (files(__package__).joinpath(file).read_text("utf-8") for file in ("style.css", f"{name}.js"))
    template = templates().get_template(f"{name}.html")
    return template.generate(style=style, script=script, hash_source=hash_source, **values)


def hash_source(text: str) -> str:
    """Return the source expression of an inline script or style in a content security policy."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
