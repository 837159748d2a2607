"""A tensor's memory in rows, one below the other, that break where the tensor's own rows do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dml_tile.pictures.memory import MemoryCell, TensorMemory

_MAX_ROWS: Final = 24


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """Neighbouring cells of memory, from ``offset`` on (in elements); None is a cell where no element lies."""

    offset: int
    cells: tuple[MemoryCell | None, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """Slots where no element lies, and which are too many to draw, from ``offset`` on."""

    offset: int
    length: int


def rows_of(memory: TensorMemory, most: int) -> Iterator[MemoryRow | Gap]:
    """The rows of a tensor, each of at most ``most`` cells; one without elements only where it is alone."""
    grid = _Grid(row_length(memory, most), most)
    cells = {cell.offset: cell for cell in memory.cells}
    end = 0
    for start in dict.fromkeys(grid.start(offset) for offset in cells):
        yield from _between(grid, end, start)
        end = min(grid.end(start), memory.end)
        yield MemoryRow(start, tuple(cells.get(offset) for offset in range(start, end)))
    yield from _between(grid, end, memory.end)


def row_length(memory: TensorMemory, most: int) -> int:
    """The number of cells in a row: those of one row of the tensor, or of several where they are short and many."""
    pitches = memory.pitches
    fitting = [pitch for pitch in pitches if pitch <= most]
    few = (pitch for pitch in fitting if len({cell.offset // pitch for cell in memory.cells}) <= _MAX_ROWS)
    largest = fitting[-1:] or pitches[:1] or (2 ** (most.bit_length() - 1),)
    return next(few, largest[0])


def _between(grid: _Grid, start: int, end: int) -> Iterator[MemoryRow | Gap]:
    if start < end <= grid.end(start):
        yield MemoryRow(start, (None,) * (end - start))
    elif start < end:
        yield Gap(start, end - start)


@dataclass(frozen=True, slots=True)
class _Grid:
    """Rows of a length, each cut into pieces of at most ``most``, as even as can be."""

    length: int
    most: int

    @property
    def _piece(self) -> int:
        pieces = -(-self.length // self.most)
        return -(-self.length // pieces)

    def start(self, offset: int) -> int:
        """The first cell of the piece that an offset is in."""
        in_its_row = offset % self.length
        return offset - in_its_row % self._piece

    def end(self, offset: int) -> int:
        """One past the last cell of the piece that an offset is in."""
        in_its_row = offset % self.length
        return min(self.start(offset) + self._piece, offset - in_its_row + self.length)
