"""HTML pages from the templates of this folder; each requests no other file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from typing import Final
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined

_TEMPLATES: Final = Environment(
    loader=PackageLoader("dml_tile", "reports"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def html_page(name: str, **values: object) -> Iterator[str]:
    """Yield a page, in pieces. Its security policy allows the package's style and the page's script alone."""
    style, script = (files(__package__).joinpath(file).read_text("utf-8") for file in ("style.css", f"{name}.js"))
    functions = {"hash_source": hash_source, "host": _host, "zip": zip}
    return _TEMPLATES.get_template(f"{name}.html").generate(**functions, style=style, script=script, **values)


def hash_source(text: str) -> str:
    """Return the source expression of an inline script or style in a content security policy."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _host(url: str) -> str:
    return urlsplit(url).hostname or url
