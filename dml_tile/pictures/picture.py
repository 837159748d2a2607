"""A descriptor's picture, for Python, for notebooks, and as an HTML page without scripts that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dml_tile.checks.result import results
from dml_tile.descriptors.tile import OperatorDesc, TileOperatorDesc
from dml_tile.directml.targets import TargetLike
from dml_tile.pictures.marks import COLOURS, PADDING, Mark, TilePicture, picture_of
from dml_tile.pictures.svg import picture_svg
from dml_tile.pictures.table import (
    BYTE,
    COPIES,
    LegendEntry,
    MemoryTable,
    MemoryTableRow,
    copies,
    facts,
    heading,
    legend,
    part,
    table_of,
    undrawn,
)
from dml_tile.readers.descriptors import JsonDescriptor
from dml_tile.reports.markup import Markup, element, html_page, joined
from dml_tile.reports.text import Line, result_lines
from dml_tile.simulation.target import resolve

_COLUMNS: Final = 76


def picture_html(picture: TilePicture, said: Sequence[Line]) -> str:
    """Return the picture, below the first line of what is ``said`` of the tile, and above the others."""
    verdict, *details = said
    colours = "".join(f".copy{i} {{ background: {colour}; color: #000000; }}\n" for i, colour in enumerate(COLOURS))
    return "".join(html_page(verdict.text.plain, _body(picture, verdict.text.plain, details), more_style=colours))


def _body(picture: TilePicture, verdict: str, details: Sequence[Line]) -> Iterator[str]:
    tables = [table_of(picture, tensor, _COLUMNS, spaces=2) for tensor in picture.tensors]
    yield '<main class="picture">\n'
    yield element("h1", verdict)
    for table in tables:
        yield element("section", *_section(table), aria_labelledby=table.tensor.name)
    for why in undrawn(picture):
        yield element("p", why)
    yield element("h2", "Legend")
    yield _list(legend(tables))
    if named := copies(tables):
        yield element("p", COPIES)
        yield element("ul", *map(_copy, named))
    if details:
        yield element("h2", "Findings")
    for indent, text, _ in details:
        yield element("p", _linked(text.plain), class_=f"said indent{indent}")
    yield "\n</main>\n"


def _section(table: MemoryTable) -> Iterator[Markup]:
    name = table.tensor.name
    yield element("h2", heading(table.tensor), id=name)
    yield _list(LegendEntry(*fact) for fact in facts(table.tensor))
    heads = (element("th", text, scope="col") for text in (BYTE, *table.distances))
    rows = (element("tr", *_row(row, len(table.distances))) for row in table.rows)
    grid = element("table", element("thead", element("tr", *heads)), "\n", element("tbody", *rows))
    yield element("div", grid, class_="memory", tabindex="0", role="region", aria_label=f"{name} in memory")
    if said := part(table.tensor):
        yield element("p", said)


def _row(row: MemoryTableRow, columns: int) -> Iterator[Markup]:
    yield element("th", row.address, scope="row")
    if row.gap:
        yield element("td", row.gap, class_="gap", colspan=str(columns))
    else:
        yield from map(_cell, row.marks)


def _cell(mark: Mark) -> Markup:
    if not mark.text:
        return element("td", class_="none")
    if mark.is_wrong:
        kind = "wrong"
    elif mark.colour is not None:
        kind = f"copy{mark.colour}"
    else:
        kind = "padding" if mark.text == PADDING else "element"
    return element("td", mark.text, class_=kind, title=mark.says)


def _list(entries: Iterable[LegendEntry]) -> Markup:
    return element("dl", *(joined(element("dt", symbol), element("dd", means)) for symbol, means, _ in entries))


def _copy(entry: LegendEntry) -> Markup:
    if entry.colour is None:
        return element("li", f"{entry.symbol} {entry.means}")
    return element("li", element("span", entry.symbol, class_=f"symbol copy{entry.colour}"), entry.means)


def _linked(text: str) -> str:
    """Return a line of a report, as a link if it is a URL."""
    return element("a", text, href=text, rel="noreferrer") if text.startswith("https://") else text


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a tile's tensors in memory, below its verdict and above its findings; a notebook draws it.

    ``svg`` is an image and ``html`` a page; each is whole, and needs nothing else.
    """

    svg: str
    html: str

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto">{self.svg}</div>'


def show(desc: OperatorDesc | TileOperatorDesc | None, target: TargetLike | None = None) -> Picture:
    """Draw a descriptor and its findings. ``target`` None means the current target.

    ``read_operator_desc`` reads a C struct first. Raises ValueError for an unknown target, TypeError for what is no
    descriptor.
    """
    (result,) = results("descriptor", JsonDescriptor("", desc), [resolve(target)], "both")
    said = list(result_lines(result, with_lowest_level=True, with_tile=False))
    picture = picture_of(desc)
    return Picture(picture_svg(picture, said), picture_html(picture, said))
