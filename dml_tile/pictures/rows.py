"""A tensor's memory in rows, one below the other, that break where the tensor's own rows do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dml_tile.pictures.memory import Slot, TensorMemory

_MANY_ROWS: Final = 24


@dataclass(frozen=True, slots=True)
class Row:
    """Neighbouring slots of memory, from ``offset`` on (in elements); None is a slot where no element lies."""

    offset: int
    slots: tuple[Slot | None, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """Slots where no element lies, and which are too many to draw, from ``offset`` on."""

    offset: int
    length: int


def rows_of(memory: TensorMemory, most: int) -> Iterator[Row | Gap]:
    """The rows of a tensor, each of at most ``most`` slots; one without elements only where it is alone."""
    grid = _Grid(row_length(memory, most), most)
    slots = {slot.offset: slot for slot in memory.slots}
    end = 0
    for start in dict.fromkeys(grid.start(offset) for offset in slots):
        yield from _between(grid, end, start)
        end = min(grid.end(start), memory.end)
        yield Row(start, tuple(slots.get(offset) for offset in range(start, end)))
    yield from _between(grid, end, memory.end)


def row_length(memory: TensorMemory, most: int) -> int:
    """How many slots a row has: those of one of the tensor's own, of several where they are short and many."""
    pitches = memory.pitches
    fitting = [pitch for pitch in pitches if pitch <= most]
    few = (pitch for pitch in fitting if len({slot.offset // pitch for slot in memory.slots}) <= _MANY_ROWS)
    largest = fitting[-1:] or pitches[:1] or (2 ** (most.bit_length() - 1),)
    return next(few, largest[0])


def _between(grid: _Grid, start: int, end: int) -> Iterator[Row | Gap]:
    if start < end <= grid.end(start):
        yield Row(start, (None,) * (end - start))
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
        """The first slot of the piece that an offset is in."""
        in_its_row = offset % self.length
        return offset - in_its_row % self._piece

    def end(self, offset: int) -> int:
        """One past the last slot of the piece that an offset is in."""
        in_its_row = offset % self.length
        return min(self.start(offset) + self._piece, offset - in_its_row + self.length)
