"""The elements at the lowest addresses of a strided tensor, however large it is.

Offsets are in elements. Strides may be 0 and may overlap, so several elements may have one offset.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final, TypeAlias

from dml_tile.descriptors.tile import type_name
from dml_tile.geometry.layout import packed_strides
from dml_tile.rules.tensor import Operand, view_of

Index: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Addresses:
    """The lowest offsets of a tensor, with the number of elements at each, and their indices."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    _counts: tuple[Mapping[int, int], ...]
    """For each dimension, the offsets that it and the inner ones reach, with the number of elements at each."""

    @property
    def counts(self) -> Mapping[int, int]:
        """The lowest offsets, in their order, with the number of elements at each."""
        return self._counts[0]

    def indices(self, offset: int) -> Iterator[Index]:
        """Return the indices of the elements at one of these offsets, in row-major order, one by one."""
        return self._indices(0, offset)

    def _indices(self, dimension: int, offset: int) -> Iterator[Index]:
        if dimension == len(self.sizes):
            yield ()
            return
        size, stride = self.sizes[dimension], self.strides[dimension]
        inside = self._counts[dimension + 1]
        for i in range(size if stride == 0 else min(size, offset // stride + 1)):
            if offset - i * stride in inside:
                for index in self._indices(dimension + 1, offset - i * stride):
                    yield i, *index


def lowest_addresses(sizes: Sequence[int], strides: Sequence[int], limit: int) -> Addresses:
    """Return the ``limit`` lowest offsets of a tensor, or all if it has fewer; no size may be 0."""
    counts: list[dict[int, int]] = [{0: 1}]
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        counts.append(_lowest(counts[-1], size, stride, limit))
    return Addresses(tuple(sizes), tuple(strides), tuple(reversed(counts)))


def _lowest(inside: Mapping[int, int], size: int, stride: int, limit: int) -> dict[int, int]:
    """Return the lowest sums of an offset inside a dimension and a step of that dimension.

    No more than ``limit`` of either are needed: any other sum has as many sums below it.
    """
    if stride == 0:
        return {offset: count * size for offset, count in inside.items()}
    sums: dict[int, int] = {}
    for start in range(0, min(size, limit) * stride, stride):
        for offset, count in inside.items():
            sums[start + offset] = sums.get(start + offset, 0) + count
    return dict(sorted(sums.items())[:limit])


MAX_CELLS: Final = 256
"""The most addresses with elements that a picture shows."""

_MAX_INDICES: Final = 4


@dataclass(frozen=True, slots=True)
class MemoryCell:
    """An address at which elements lie; ``offset`` is in elements.

    ``indices`` are those of the first few of its ``count`` elements, in row-major order.
    """

    offset: int
    count: int
    indices: tuple[Index, ...]


@dataclass(frozen=True)
class TensorPicture:
    """A tensor to be drawn: the lowest addresses at which elements lie, all of them if they are few."""

    operand: Operand
    data_type: str
    element_size: int
    """In bytes."""
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements; the packed ones where none are given."""
    is_packed: bool
    """True if the descriptor gives no strides."""
    total: int
    """TotalTensorSizeInBytes."""

    @cached_property
    def cells(self) -> tuple[MemoryCell, ...]:
        """The cells that hold elements, by their addresses; computed when the tensor is drawn."""
        addresses = lowest_addresses(self.sizes, self.strides, MAX_CELLS)
        return tuple(
            MemoryCell(offset, count, tuple(islice(addresses.indices(offset), _MAX_INDICES)))
            for offset, count in addresses.counts.items()
        )

    @property
    def name(self) -> str:
        return self.operand.name

    @property
    def elements(self) -> int:
        return math.prod(self.sizes)

    @cached_property
    def shown(self) -> int:
        """The number of elements in the cells."""
        return sum(cell.count for cell in self.cells)

    @property
    def is_whole(self) -> bool:
        """True if the cells hold all elements."""
        return self.shown == self.elements

    @property
    def end(self) -> int:
        """One past the last cell that can be shown; the end of the tensor where all elements are shown."""
        last = self.cells[-1].offset + 1
        return max(last, -(-self.total // self.element_size)) if self.is_whole else last

    @property
    def pitches(self) -> tuple[int, ...]:
        """The strides, in elements, that exceed the reach of all smaller ones, smallest first: rows, planes."""
        found = []
        reach = 0
        for stride, size in sorted(zip(self.strides, self.sizes, strict=True)):
            if stride > reach > 0 and size > 1:
                found.append(stride)
            reach += (size - 1) * stride
        return tuple(found)

    def byte(self, offset: int) -> int:
        """Return the first byte of the cell at an offset."""
        return offset * self.element_size


def tensor_picture(operand: Operand) -> TensorPicture | str:
    """Return a tensor's memory, or why it cannot be drawn."""
    buffer = view_of(operand)
    if buffer is None:
        return "it is null" if operand.tensor is None else "its Desc is null"
    if buffer.element_size is None:
        return f"nothing is known of the size of its elements, of {type_name(buffer.desc.data_type)}"
    if buffer.sizes is None:
        return "its DimensionCount, Sizes and Strides do not say where its elements lie"
    return TensorPicture(
        operand,
        type_name(buffer.desc.data_type),
        buffer.element_size,
        buffer.sizes,
        packed_strides(buffer.sizes) if buffer.strides is None else buffer.strides,
        buffer.strides is None,
        buffer.desc.total_tensor_size_in_bytes,
    )


_MAX_ROWS: Final = 24


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """Neighbouring cells of memory, from ``offset`` on (in elements); None is a cell where no element lies."""

    offset: int
    cells: tuple[MemoryCell | None, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """Cells without elements that are too many to draw, from ``offset`` on."""

    offset: int
    length: int


def rows_of(tensor: TensorPicture, most: int) -> Iterator[MemoryRow | Gap]:
    """Yield the rows of a tensor, each of at most ``most`` cells; one without elements only where it is alone."""
    grid = _Grid(row_length(tensor, most), most)
    cells = {cell.offset: cell for cell in tensor.cells}
    end = 0
    for start in dict.fromkeys(grid.start(offset) for offset in cells):
        yield from _between(grid, end, start)
        end = min(grid.end(start), tensor.end)
        yield MemoryRow(start, tuple(cells.get(offset) for offset in range(start, end)))
    yield from _between(grid, end, tensor.end)


def row_length(tensor: TensorPicture, most: int) -> int:
    """Return the cells in a row of a picture: those of one row of the tensor, or of several short ones."""
    pitches = tensor.pitches
    fitting = [pitch for pitch in pitches if pitch <= most]
    few = (pitch for pitch in fitting if len({cell.offset // pitch for cell in tensor.cells}) <= _MAX_ROWS)
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
        """Return the first cell of the piece that an offset is in."""
        in_its_row = offset % self.length
        return offset - in_its_row % self._piece

    def end(self, offset: int) -> int:
        """Return the cell after the piece that an offset is in."""
        in_its_row = offset % self.length
        return min(self.start(offset) + self._piece, offset - in_its_row + self.length)
