"""A tensor's memory as a table of labels, in columns of characters; a picture's tables as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dml_tile.pictures.labels import COLOURS, SYMBOLS, CellLabel, TilePicture, colours_of, cut, label_of, letters
from dml_tile.pictures.memory import Index, MemoryRow, TensorPicture, row_length, rows_of
from dml_tile.reports.lines import Line, Part
from dml_tile.text import braced

BYTE: Final = "byte"
"""The heading of the addresses."""

_MIN_WIDTH: Final = 4


class MemoryTableRow(NamedTuple):
    """The address of a row's first byte, and its cells' labels or a gap's text."""

    address: str
    labels: tuple[CellLabel, ...]
    gap: str


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """The rows of a tensor; ``distances``, in bytes, stand above the cells, each ``wide`` characters."""

    tensor: TensorPicture
    margin: int
    """The most characters of an address."""
    wide: int
    distances: tuple[str, ...]
    rows: tuple[MemoryTableRow, ...]
    copies: dict[str, tuple[Index, int]]
    """The copies of the input that are shown, by their letters, with their indices and colours."""

    @property
    def labels(self) -> Iterator[CellLabel]:
        """The labels of all rows."""
        return (label for row in self.rows for label in row.labels)


def table_of(picture: TilePicture, tensor: TensorPicture, width: int, *, spaces: int) -> MemoryTable:
    """Return the table of a tensor in at most ``width`` characters, with ``spaces`` beside each label."""
    labels = {cell.offset: label_of(picture, tensor, cell.offset, cell) for cell in tensor.cells}
    last = min(tensor.end, tensor.cells[-1].offset + width)
    margin = max(len(BYTE), len(str(tensor.byte(last))))
    longest = max(len(label.text) for label in labels.values())
    wide, most = _columns(tensor, longest + spaces, max(width - margin - 1, _MIN_WIDTH))
    shown, copies = list(rows_of(tensor, most)), picture.copies(tensor)
    numbers = [[labels[i].copy if i in labels else None for i in row.cells] for row in shown if row.length]
    colours = colours_of(numbers, {number: picture.preferred_colour(copy) for number, copy in copies.items()})
    rows = []
    for row in shown:
        fitting = []
        for offset in row.cells:
            text, says, copy, _, is_wrong = labels.get(offset) or label_of(picture, tensor, offset, None)
            colour = None if copy is None else colours[copy]
            fitting.append(CellLabel(cut(text, wide - 1), says, copy, colour, is_wrong))
        rows.append(MemoryTableRow(str(tensor.byte(row.offset)), tuple(fitting), _gap_text(tensor, row)))
    distances = tuple(f"+{tensor.byte(i)}" for i in range(max(len(row.labels) for row in rows)))
    named = {letters(number): (copies[number], colours[number]) for number in sorted(copies)}
    return MemoryTable(tensor, margin, wide, distances, tuple(rows), named)


def _columns(tensor: TensorPicture, wide: int, width: int) -> tuple[int, int]:
    """Return the cells' width in characters, and a row's most cells."""
    wide = min(wide, width)
    most = min(width // wide, row_length(tensor, width // wide), tensor.end)
    wide = min(max(wide, len(f"+{tensor.byte(most - 1)}") + 1), width)
    return wide, width // wide


def _gap_text(tensor: TensorPicture, row: MemoryRow) -> str:
    first, end = tensor.byte(row.offset), tensor.byte(row.offset + row.gap)
    if first == end:
        return ""
    if first >= tensor.total:
        return f"{end - first} bytes beyond the tensor"
    return f"{min(end, tensor.total) - first} bytes of padding"


COPIES: Final = "copies of the input, by their index:"

_MAX_COPIES: Final = 12


class LegendEntry(NamedTuple):
    """A sign or a letter in a picture, its meaning, and its place in COLOURS, if any."""

    symbol: str
    means: str
    colour: int | None = None


def fields(tensor: TensorPicture) -> Iterator[LegendEntry]:
    """Yield a tensor's fields by their names; strides are given even if packed."""
    yield LegendEntry("Sizes", braced(tensor.sizes))
    yield LegendEntry("Strides", f"{braced(tensor.strides)}{' (packed)' if tensor.is_packed else ''}")
    yield LegendEntry("TotalTensorSizeInBytes", str(tensor.total))


def legend(tables: Sequence[MemoryTable]) -> Iterator[LegendEntry]:
    """Yield the signs that occur in the tables, with their meanings."""
    characters = {character for table in tables for label in table.labels for character in label.text}
    if characters:
        yield LegendEntry("0", "an element, by its number in row-major order")
    if "A" in characters:
        yield LegendEntry("0A", "element 0 of the input, where copy A of the input shows it")
    for symbol, means in SYMBOLS:
        if symbol[0] in characters:
            yield LegendEntry(symbol, means)


def copies(tables: Sequence[MemoryTable]) -> list[LegendEntry]:
    """Return the first copies that are shown: letters and indices; the last entry may stand for the rest."""
    named = [(name, *copy) for table in tables for name, copy in table.copies.items()]
    entries = [LegendEntry(name, braced(index), colour) for name, index, colour in named[:_MAX_COPIES]]
    more = len(named) - len(entries)
    return [*entries, LegendEntry(f"and {more} more", f"to {named[-1][0]}")] if more else entries


_INDENT: Final = 2
_WRONG: Final = "bold #ffffff on #8b0000"


def picture_lines(picture: TilePicture, width: int) -> Iterator[Line]:
    """Yield lines of at most ``width`` columns for a terminal: tensors, why some are not drawn, the legend."""
    tables = [table_of(picture, tensor, width - 2 * _INDENT, spaces=1) for tensor in picture.tensors]
    for table in tables:
        yield Line(_INDENT, (table.tensor.heading, "bold"))
        yield from _flowed(fields(table.tensor), width - 2 * _INDENT)
        yield from _rows(table)
        if table.tensor.part:
            yield Line(2 * _INDENT, (table.tensor.part, "italic"))
        yield Line(0)
    yield from undrawn_lines(picture)
    for symbol, means, _ in legend(tables):
        yield Line(_INDENT, (f"{symbol}: {means}", "dim"))
    if named := copies(tables):
        yield Line(_INDENT, (COPIES, "dim"))
        yield from _flowed(named, width - 2 * _INDENT)


def undrawn_lines(picture: TilePicture) -> Iterator[Line]:
    """Return the reason for each tensor that is not drawn."""
    return (Line(_INDENT, (why, "yellow")) for why in picture.undrawn)


def _flowed(entries: Iterable[LegendEntry], width: int) -> Iterator[Line]:
    """Yield lines of entries, as many as fit in each."""
    line: list[Part] = []
    used = 0
    for symbol, means, colour in entries:
        wide = len(f"{symbol} {means}")
        if line and used + 2 + wide > width:
            yield Line(2 * _INDENT, *line)
            line, used = [], 0
        blanks = "  " if line else ""
        line += [blanks, (symbol, _style(colour)), f" {means}"]
        used += len(blanks) + wide
    yield Line(2 * _INDENT, *line)


def _rows(table: MemoryTable) -> Iterator[Line]:
    margin, wide = table.margin, table.wide
    distances = "".join(f"{distance:>{wide}}" for distance in table.distances)
    yield Line(2 * _INDENT, (f"{BYTE:>{margin}} {distances}", "dim"), is_whole=True)
    for address, labels, gap in table.rows:
        row = [(f"{address:>{margin}} ", "dim"), (f" : {gap}" if gap else "", "")]
        row += [(f"{label.text:>{wide}}", _style(label.colour, label.is_wrong)) for label in labels]
        while not row[-1][0].strip():  # blanks at the end are cut off
            row.pop()
        text, style = row.pop()
        yield Line(2 * _INDENT, *row, (text.rstrip(), style), is_whole=not gap)


def _style(colour: int | None, is_wrong: bool = False) -> str:
    if is_wrong:
        return _WRONG
    return "" if colour is None else f"#000000 on {COLOURS[colour]}"
