"""HTML from texts, which are escaped here and nowhere else."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import NamedTuple
from urllib.parse import urlsplit

from dml_tile.text import plural


class Markup(str):
    """Text that is HTML already; any other text is escaped."""

    __slots__ = ()


def element(tag: str, *content: str, **attributes: str | None) -> Markup:
    """Return an element, without attributes that are None; ``data_row`` stands for data-row, ``class_`` for class."""
    shown = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{shown}>{joined(*content)}</{tag}>")


def joined(*content: str) -> Markup:
    """Return several pieces of markup or text in a row."""
    return Markup("".join(piece if isinstance(piece, Markup) else escape(piece, quote=False) for piece in content))


def name(text: str) -> Markup:
    """Return a name from a file, which may break at slashes; one from right to left leaves what is around it alone."""
    steps = re.split("(?<=/)", text)
    return element("bdi", *(piece for step in steps for piece in (step, Markup("<wbr>")))) if text else Markup()


def link(url: str) -> Markup:
    """Return a link to a page on another machine, shown as its host."""
    return element("a", urlsplit(url).hostname or url, href=url, rel="noreferrer")


def hash_source(text: str) -> str:
    """Return the source expression of an inline script or style in a content security policy."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


class Cell(NamedTuple):
    """A table's cell, what it is sorted by where that is not its text, and its class."""

    content: str
    sort: str | None = None
    class_: str | None = None


class Row(NamedTuple):
    """A table's row, of which the first cell is the heading, and its attributes."""

    cells: Sequence[Cell | str]
    attributes: Mapping[str, str] = {}


def count_cell(count: int) -> Cell:
    """Return a cell with a number, which lines up with those above it."""
    return Cell(str(count), class_="count")


def table_head(columns: Iterable[str]) -> Markup:
    """Return the head of a table."""
    return element("thead", element("tr", *(element("th", column, scope="col") for column in columns)))


def table(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[Markup]:
    """Yield a table that the page's script can sort, in pieces; each row is a body of its own."""
    yield Markup(f"<table>{table_head(columns)}\n")
    for cells, attributes in rows:
        shown = []
        for i, (column, cell) in enumerate(zip(columns, cells, strict=True)):
            content, sort, class_ = Cell(cell) if isinstance(cell, str) else cell
            tag, scope = ("td", None) if i else ("th", "row")
            shown.append(element(tag, content, scope=scope, class_=class_, data_label=column, data_sort=sort))
        yield element("tbody", element("tr", *shown), **attributes)
        yield Markup("\n")
    yield Markup("</table>\n")


def left_out(what: str, count: int) -> Iterator[Markup]:
    """Yield a sentence for the things of a kind that a page does not list; none if it lists all."""
    if count > 0:
        yield element("p", f"and {plural(count, f'more {what}')}")


def filters(
    identifier: str, legend: str, words: Mapping[str, str], targets: Sequence[str], rules: Iterable[str]
) -> Iterator[Markup]:
    """Yield the form by which the script shows and hides rows of the next table; it stays hidden without the script.

    ``words`` are the verdicts to choose from, by their values in the rows.
    """
    yield Markup(f'<form id="{identifier}" hidden>\n')
    yield element("label", "Text", Markup(' <input type="search" name="text" autocomplete="off" spellcheck="false">'))
    radios = []
    for value, word in {"": "all", **words}.items():
        checked = "" if value else " checked"
        button = Markup(f'<input type="radio" name="verdict" value="{value}"{checked}>')
        radios.append(element("label", button, f" {word}"))
    yield element("fieldset", element("legend", legend), *radios)
    selections = ("at", "target", "any target", targets), ("Rule", "rule", "all", sorted({*rules}))
    for label, field, every, values in selections:
        if len(values) > 1:
            options = element("option", every, value=""), *(element("option", value, value=value) for value in values)
            yield element("label", f"{label} ", element("select", *options, name=field))
    yield Markup('<p role="status"></p>\n<button type="button" hidden></button>\n</form>\n')


def choices_of(verdicts: Mapping[str, str], rules: Iterable[str]) -> dict[str, str]:
    """Return the attributes of a row by which ``filters`` choose it: its verdicts by target, and its rules."""
    words = [*verdicts.values(), *(f"{word} at {target}" for target, word in verdicts.items())]
    return {"data_verdicts": "|".join(dict.fromkeys(words)), "data_rules": " ".join(rules)}


def region(label: str, content: Iterable[Markup]) -> Iterator[Markup]:
    """Yield a part of a page that scrolls by itself where it is too wide, by the keyboard too."""
    yield Markup(f'<div class="wide" role="region" aria-label="{escape(label)}" tabindex="0">\n')
    yield from content
    yield Markup("</div>\n")


def html_page(title: str, body: Iterable[str], script_file: str) -> Iterator[str]:
    """Yield a page, in pieces. Its security policy allows the package's style and this script alone."""
    style, script = map(file_text, ("style.css", script_file))
    hashes = {"style_hash": hash_source(style), "script_hash": hash_source(script)}
    before, after = file_text("page.html").split("$body")
    yield Template(before).substitute(hashes, title=escape(title, quote=False), style=style)
    yield from body
    yield Template(after).substitute(script=script)


def file_text(name: str) -> str:
    """Return the text of a file of this folder, such as a template."""
    return files(__package__).joinpath(name).read_text("utf-8")
