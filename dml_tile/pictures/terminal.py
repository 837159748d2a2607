"""A picture as lines of text for a terminal, as wide as that is, in colours where it has some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rich.text import Text

from dml_tile.pictures.marks import COLOURS, TilePicture
from dml_tile.pictures.table import (
    BYTE,
    COPIES,
    LegendEntry,
    MemoryTable,
    copies,
    facts,
    heading,
    legend,
    part,
    table_of,
    undrawn,
)
from dml_tile.reports.text import Line

_INDENT: Final = 2
_WRONG: Final = "bold #ffffff on #8b0000"


def picture_lines(picture: TilePicture, width: int) -> Iterator[Line]:
    """Yield the tensors, why one is not drawn, and the legend; each row fits in ``width`` columns."""
    tables = [table_of(picture, tensor, width - 2 * _INDENT, spaces=1) for tensor in picture.tensors]
    for table in tables:
        yield Line(_INDENT, Text(heading(table.tensor), "bold"))
        for line in _flowed((LegendEntry(*fact) for fact in facts(table.tensor)), width - 2 * _INDENT):
            yield Line(2 * _INDENT, line)
        yield from _rows(table)
        if not table.tensor.is_whole:
            yield Line(2 * _INDENT, Text(part(table.tensor), "italic"))
        yield Line(0, Text())
    yield from undrawn_lines(picture)
    for symbol, means, _ in legend(tables):
        yield Line(_INDENT, Text(f"{symbol}: {means}", "dim"))
    if named := copies(tables):
        yield Line(_INDENT, Text(COPIES, "dim"))
        for line in _flowed(named, width - 2 * _INDENT):
            yield Line(2 * _INDENT, line)


def undrawn_lines(picture: TilePicture) -> Iterator[Line]:
    """Return the reason for each tensor that is not drawn."""
    return (Line(_INDENT, Text(why, "yellow")) for why in undrawn(picture))


def _flowed(entries: Iterable[LegendEntry], width: int) -> Iterator[Text]:
    """Yield lines of entries beside each other, as many as fit in a line."""
    line = Text()
    for symbol, means, colour in entries:
        entry = Text.assemble((symbol, _style(colour)), f" {means}")
        if line and len(line) + 2 + len(entry) > width:
            yield line
            line = Text()
        line.append("  " if line else "").append(entry)
    yield line


def _rows(table: MemoryTable) -> Iterator[Line]:
    margin, wide = table.margin, table.wide
    distances = "".join(f"{distance:>{wide}}" for distance in table.distances)
    yield Line(2 * _INDENT, Text(f"{BYTE:>{margin}} {distances}", "dim"), is_whole=True)
    for address, marks, gap in table.rows:
        row = Text.assemble((f"{address:>{margin}} ", "dim"), f" : {gap}" if gap else "")
        for mark in marks:
            row.append(f"{mark.text:>{wide}}", _style(mark.colour, mark.is_wrong))
        row.rstrip()
        yield Line(2 * _INDENT, row, is_whole=not gap)


def _style(colour: int | None, is_wrong: bool = False) -> str:
    if is_wrong:
        return _WRONG
    return "" if colour is None else f"#000000 on {COLOURS[colour]}"
