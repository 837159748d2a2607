"""A tensor's memory as a table of marks, in columns of characters, for whatever draws it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from dml_tile.pictures.addresses import Index
from dml_tile.pictures.marks import Mark, Marks, cut
from dml_tile.pictures.memory import TensorMemory
from dml_tile.pictures.rows import Gap, MemoryRow, row_length, rows_of
from dml_tile.pictures.tile import TilePicture

BYTE: Final = "byte"
"""Stands above the addresses."""

_MIN_WIDTH: Final = 4


class MemoryTableRow(NamedTuple):
    """The address of a row's first byte, and the marks of its cells, or what is said of a gap."""

    address: str
    marks: tuple[Mark, ...]
    gap: str


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """The rows of a tensor; ``distances``, in bytes, stand above the cells, which are ``wide`` characters."""

    memory: TensorMemory
    margin: int
    """The most characters of an address."""
    wide: int
    distances: tuple[str, ...]
    rows: tuple[MemoryTableRow, ...]
    copies: dict[str, tuple[Index, int]]
    """The copies of the input that are shown, by their letters, with their indices and colours."""

    @property
    def marks(self) -> Iterator[Mark]:
        """The marks of all rows."""
        return (mark for row in self.rows for mark in row.marks)


def table_of(picture: TilePicture, memory: TensorMemory, width: int, *, spaces: int) -> MemoryTable:
    """The table of one of the picture's tensors, with so many ``spaces`` beside each mark.

    It fits in a width of so many characters unless that is tiny.
    """
    marks = Marks(picture, memory)
    last = min(memory.end, memory.cells[-1].offset + width)
    margin = max(len(BYTE), len(str(memory.byte(last))))
    wide, most = _columns(marks, max(width - margin - 1, _MIN_WIDTH), spaces)
    shown = list(rows_of(memory, most))
    marks = marks.coloured(row for row in shown if isinstance(row, MemoryRow))
    rows = []
    for row in shown:
        address = str(memory.byte(row.offset))
        if isinstance(row, Gap):
            rows.append(MemoryTableRow(address, (), _of_gap(memory, row)))
        else:
            rows.append(MemoryTableRow(address, tuple(_cut(mark, wide) for mark in marks.of(row)), ""))
    longest = max(len(row.marks) for row in rows)
    return MemoryTable(
        memory, margin, wide, tuple(_distance(memory, i) for i in range(longest)), tuple(rows), marks.copies()
    )


def _columns(marks: Marks, width: int, spaces: int) -> tuple[int, int]:
    """The width of the cells, in characters, and the most that a row has."""
    memory = marks.memory
    wide = min(marks.longest + spaces, width)
    most = min(width // wide, row_length(memory, width // wide), memory.end)
    wide = min(max(wide, len(_distance(memory, most - 1)) + 1), width)
    return wide, width // wide


def _cut(mark: Mark, wide: int) -> Mark:
    return mark._replace(text=cut(mark.text, wide - 1))


def _distance(memory: TensorMemory, cells: int) -> str:
    return f"+{memory.byte(cells)}"


def _of_gap(memory: TensorMemory, row: Gap) -> str:
    first, end = memory.byte(row.offset), memory.byte(row.offset + row.length)
    if first >= memory.total:
        return f"{end - first} bytes beyond the tensor"
    return f"{min(end, memory.total) - first} bytes of padding"
