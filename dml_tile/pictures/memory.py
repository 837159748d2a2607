"""The elements at the lowest addresses of a strided tensor, however large it is.

Offsets are in elements. Strides may be 0 and may overlap, so several elements may have one offset.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from dml_tile.descriptors.tile import type_name
from dml_tile.geometry.layout import packed_strides
from dml_tile.rules.tensor import Operand, view_of
from dml_tile.text import plural

Index: TypeAlias = tuple[int, ...]

Counts: TypeAlias = Mapping[int, int]
"""The lowest offsets of a tensor, in their order, with the number of elements at each."""


def _indices(offset: int, sizes: Sequence[int], strides: Sequence[int], counts: Sequence[Counts]) -> Iterator[Index]:
    """Yield the indices of the elements at one of the lowest offsets, in row-major order."""
    if not sizes:
        yield ()
        return
    size, stride, inside = sizes[0], strides[0], counts[1]
    for i in range(size if stride == 0 else min(size, offset // stride + 1)):
        if offset - i * stride in inside:
            for index in _indices(offset - i * stride, sizes[1:], strides[1:], counts[1:]):
                yield i, *index


def _lowest(inside: Counts, size: int, stride: int, limit: int) -> Counts:
    """Return the lowest sums of an offset inside a dimension and a step of that dimension.

    At most ``limit`` of either are needed: any other sum has as many lower sums.
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

    ``indices`` are of the first few of its ``count`` elements, in row-major order.
    """

    offset: int
    count: int
    indices: tuple[Index, ...]


@dataclass(frozen=True)
class TensorPicture:
    """A tensor to be drawn: the lowest addresses of elements, all if they are few."""

    operand: Operand
    data_type: str
    element_size: int
    """In bytes."""
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements; packed strides if none are given."""
    is_packed: bool
    """True if the descriptor gives no strides."""
    total: int
    """TotalTensorSizeInBytes."""

    @cached_property
    def cells(self) -> tuple[MemoryCell, ...]:
        """The cells that hold elements, by their addresses; computed when the tensor is drawn."""
        counts: list[Counts] = [{0: 1}]  # of the whole tensor, then of all dimensions but the first, …
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            counts.insert(0, _lowest(counts[0], size, stride, MAX_CELLS))
        return tuple(
            MemoryCell(offset, count, tuple(islice(_indices(offset, self.sizes, self.strides, counts), _MAX_INDICES)))
            for offset, count in counts[0].items()
        )

    @property
    def elements(self) -> int:
        return math.prod(self.sizes)

    @cached_property
    def shown(self) -> int:
        """The number of elements in the cells."""
        return sum(cell.count for cell in self.cells)

    @property
    def heading(self) -> str:
        """The tensor in one line: ``InputTensor: FLOAT32, 6 elements of 4 bytes``."""
        size = plural(self.element_size, "byte")
        return f"{self.operand.name}: {self.data_type}, {plural(self.elements, 'element')} of {size}"

    @property
    def part(self) -> str:
        """The part of the tensor that is shown, in words; empty if all of it is."""
        if self.is_whole:
            return ""
        return f"shown: the first {self.shown} of {self.elements} elements, in the order of their addresses"

    @property
    def is_whole(self) -> bool:
        """True if the cells hold all elements."""
        return self.shown == self.elements

    @property
    def end(self) -> int:
        """One past the last cell that can be shown; the end of the tensor if all elements are shown."""
        last = self.cells[-1].offset + 1
        return max(last, -(-self.total // self.element_size)) if self.is_whole else last

    def byte(self, offset: int) -> int:
        """Return the first byte of the cell at an offset."""
        return offset * self.element_size


def tensor_picture(operand: Operand) -> TensorPicture | str:
    """Return a tensor's memory, or the reason why it cannot be drawn."""
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


class MemoryRow(NamedTuple):
    """Neighbouring cells of memory, from ``offset`` on (in elements).

    ``gap`` is the number of cells without elements that are too many to draw.
    """

    offset: int
    length: int
    gap: int = 0

    @property
    def cells(self) -> range:
        """The offsets of the cells that are drawn."""
        return range(self.offset, self.offset + self.length)


def rows_of(tensor: TensorPicture, most: int) -> Iterator[MemoryRow]:
    """Yield the rows of a tensor, each of at most ``most`` cells; a row without elements only if it is alone.

    Longer rows are cut into even pieces.
    """
    length = row_length(tensor, most)
    piece = -(-length // -(-length // most))

    def bounds(offset: int) -> tuple[int, int]:
        """Return the first cell of an offset's piece of a row, and the cell after the piece."""
        in_its_row = offset % length
        start = offset - in_its_row % piece
        return start, min(start + piece, offset - in_its_row + length)

    def between(start: int, end: int) -> Iterator[MemoryRow]:
        if start < end <= bounds(start)[1]:
            yield MemoryRow(start, end - start)
        elif start < end:
            yield MemoryRow(start, 0, end - start)

    end = 0
    for start, after in dict.fromkeys(bounds(cell.offset) for cell in tensor.cells):
        yield from between(end, start)
        end = min(after, tensor.end)
        yield MemoryRow(start, end - start)
    yield from between(end, tensor.end)


def row_length(tensor: TensorPicture, most: int) -> int:
    """Return the cells in a row of a picture: one row of the tensor, or several short rows."""
    pitches = []  # the strides beyond the reach of all smaller ones, smallest first: rows, planes
    reach = 0
    for stride, size in sorted(zip(tensor.strides, tensor.sizes, strict=True)):
        if stride > reach > 0 and size > 1:
            pitches.append(stride)
        reach += (size - 1) * stride
    fitting = [pitch for pitch in pitches if pitch <= most]
    rows = {pitch: len({cell.offset // pitch for cell in tensor.cells}) for pitch in fitting}
    few = (pitch for pitch, count in rows.items() if count <= min(_MAX_ROWS, 2 * pitch))
    largest = fitting[-1:] or pitches[:1] or (2 ** (most.bit_length() - 1),)
    return next(few, largest[0])
