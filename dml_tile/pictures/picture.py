"""A descriptor's picture, for Python and notebooks: an SVG image that needs no other file.

Its text is text, and each cell has a title; colours are for a light page, and a style by classes alone makes them dark
if the reader asks for it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from types import NoneType
from typing import Final
from xml.sax.saxutils import escape

from dml_tile.checks.judging import judged
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.targets import TargetLike
from dml_tile.errors import require_instance
from dml_tile.pictures.labels import COLOURS, PADDING, CellLabel, TilePicture, picture_of
from dml_tile.pictures.table import BYTE, COPIES, LegendEntry, MemoryTable, copies, fields, legend, table_of
from dml_tile.readers.item import Item
from dml_tile.reports.lines import Line
from dml_tile.reports.text import result_lines
from dml_tile.simulation.target import resolve

_COLUMNS: Final = 112
"""The greatest width in characters of a table of memory, with its addresses."""

_MIN_TEXT_COLUMNS: Final = 56
"""The characters of a line of text beside narrow tables: few, to be read on a phone."""

_CHARACTER: Final = 8.5  # the width of a character of 14 pixels in the usual monospaced fonts
_LINE: Final = 21
_MAX_LINES: Final = 20
_CELL: Final = 28
_MARGIN: Final = 20
_BLACK, _GREY, _PALE, _RED, _WHITE = "#000000", "#555555", "#f2f2f2", "#8b0000", "#ffffff"

_ON_COLOUR: Final = "black"
_TO_THE_RIGHT: Final = {"start": 1.0, "middle": 0.5, "end": 0.0}
"""The share of a text that lies to the right of its anchor."""

_CLASSES: Final = {_BLACK: "text", _GREY: "faint", _PALE: "padding", _RED: "wrong", _WHITE: "page"}
"""The classes for which picture.svg has a dark page's colours; copies and their text keep their colours."""


def picture_svg(picture: TilePicture, said: Sequence[Line]) -> str:
    """Return the picture as an SVG image, between the first line ``said`` of the tile and the others."""
    verdict, *details = said
    tables = [table_of(picture, tensor, _COLUMNS, spaces=2) for tensor in picture.tensors]
    widths = (table.margin + 1 + len(table.distances) * table.wide for table in tables)
    image = _Image(max(_MIN_TEXT_COLUMNS, *widths, 0))
    image.text(verdict.plain, is_bold=True)
    for table in tables:
        image.skip()
        image.text(table.tensor.heading, is_bold=True)
        image.text(", ".join(f"{name} {value}" for name, value, _ in fields(table.tensor)))
        image.table(table)
        image.text(table.tensor.part)
    image.skip()
    for why in picture.undrawn:
        image.text(why)
    for symbol, means, _ in legend(tables):
        image.text(f"{symbol}: {means}", _GREY)
    if named := copies(tables):
        image.text(COPIES, _GREY)
        image.entries(named)
    image.skip()
    for line in details:
        image.text(line.plain, indent=line.indent)
    return image.written(verdict.plain, "; ".join(tensor.heading for tensor in picture.tensors))


class _Image:
    """An image that grows downwards, in lines of ``columns`` characters."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._elements: list[str] = []
        self._y = float(_MARGIN)
        self._right = 0.0

    def skip(self) -> None:
        self._y += _LINE / 2

    def text(self, text: str, colour: str = _BLACK, *, indent: int = 0, is_bold: bool = False) -> None:
        """Write text in as many lines as it takes."""
        for line in textwrap.wrap(text, self._columns - indent, break_on_hyphens=False, max_lines=_MAX_LINES):
            self._write(line, indent, 15, colour, weight=' font-weight="bold"' if is_bold else "")
            self._y += _LINE

    def table(self, table: MemoryTable) -> None:
        margin, wide = table.margin, table.wide
        self._write(BYTE, margin, 15, _GREY, "end")
        for i, distance in enumerate(table.distances):
            self._write(distance, margin + 1 + (i + 0.5) * wide, 15, _GREY, "middle")
        self._y += _LINE
        for address, labels, gap in table.rows:
            self._write(address, margin, 19, _GREY, "end")
            self._write(gap, margin + 2, 19, _GREY)
            for i, label in enumerate(labels):
                self._cell(label, margin + 1 + i * wide, wide)
            self._y += _CELL
        self.skip()

    def entries(self, entries: Iterable[LegendEntry]) -> None:
        """Write entries in lines, as many as fit in each."""
        column = 0
        for symbol, means, colour in entries:
            wide = len(symbol) + 2
            if column and column + wide + 1 + len(means) > self._columns:
                column = 0
                self._y += _CELL
            if colour is not None:
                self._cell(CellLabel(symbol, f"copy {symbol}", colour=colour), column, wide)
            else:
                self._write(symbol, column + 1, 19, _BLACK)
            self._write(means, column + wide + 1, 19, _BLACK)
            column += wide + 3 + len(means)
        self._y += _CELL

    def written(self, title: str, description: str) -> str:
        return Template(Path(__file__).with_name("picture.svg").read_text("utf-8")).substitute(
            width=round(2 * _MARGIN + self._right * _CHARACTER),
            height=round(self._y + _MARGIN),
            title=escape(title),
            description=escape(description),
            elements="\n".join(self._elements),
        )

    def _cell(self, label: CellLabel, column: float, wide: int) -> None:
        if not label.text:
            return
        if label.is_wrong:
            fill, stroke = _WHITE, f'stroke="{_RED}" stroke-width="2.5" stroke-dasharray="5 2"'
        else:
            fill = _PALE if label.text == PADDING else _WHITE if label.colour is None else COLOURS[label.colour]
            stroke = 'stroke="#767676"'
        x = _MARGIN + column * _CHARACTER
        self._elements.append(
            f'<g><title>{escape(label.says)}</title><rect x="{x + 1.5:g}" y="{self._y + 1.5:g}" '
            f'width="{wide * _CHARACTER - 3:g}" height="{_CELL - 3}" {_fill(fill)} {stroke}/>'
        )
        self._right = max(self._right, column + wide)
        colour = _RED if label.is_wrong else _BLACK if label.colour is None else _ON_COLOUR
        self._write(label.text, column + wide / 2, 19, colour, "middle")
        self._elements.append("</g>")

    def _write(self, text: str, column: float, down: int, colour: str, anchor: str = "start", weight: str = "") -> None:
        if text:
            x, y = _MARGIN + column * _CHARACTER, self._y + down
            attributes = f'x="{x:g}" y="{y:g}" {_fill(colour)} text-anchor="{anchor}"{weight}'
            self._elements.append(f"<text {attributes}>{escape(text)}</text>")
            self._right = max(self._right, column + len(text) * _TO_THE_RIGHT[anchor])


def _fill(colour: str) -> str:
    """Return the attributes of a colour; a class lets a dark page replace it, unless it is a copy's."""
    named = f' class="{_CLASSES[colour]}"' if colour in _CLASSES else ""
    return f'fill="{colour}"{named}'


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a tile's tensors in memory, below its verdict and above its findings; a notebook draws it.

    ``svg`` is an image that needs no other file.
    """

    svg: str

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto">{self.svg}</div>'


def show(desc: OperatorDesc | TileOperatorDesc | None, target: TargetLike | None = None) -> Picture:
    """Draw a descriptor and its findings. ``target`` None means the current target.

    Read a C struct with ``read_operator_desc`` first. Raises ValueError for an unknown target, TypeError for anything
    but a descriptor.
    """
    require_instance(desc, TileOperatorDesc, OperatorDesc, NoneType)
    (result,) = judged("descriptor", Item("", desc), [resolve(target)], "both")
    said = list(result_lines(result, with_operator=False))
    return Picture(picture_svg(picture_of(desc), said))
