"""One tensor as memory: which of its elements lie where, in cells of an element's size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final

from dml_tile.descriptors import type_name
from dml_tile.geometry.layout import packed_strides
from dml_tile.pictures.addresses import Index, lowest_addresses
from dml_tile.rules.tensor import Operand, view_of

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
class TensorMemory:
    """The beginning of a tensor's memory: the lowest addresses at which elements lie, all where they are few."""

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
        """One past the last cell that can be shown: the total's last where all elements are shown."""
        last = self.cells[-1].offset + 1
        return max(last, -(-self.total // self.element_size)) if self.is_whole else last

    @property
    def pitches(self) -> tuple[int, ...]:
        """The strides, in elements, that lead beyond all that smaller ones reach, from the smallest: rows, planes."""
        found = []
        reach = 0
        for stride, size in sorted(zip(self.strides, self.sizes, strict=True)):
            if stride > reach > 0 and size > 1:
                found.append(stride)
            reach += (size - 1) * stride
        return tuple(found)

    def byte(self, offset: int) -> int:
        """The first byte of the cell at an offset."""
        return offset * self.element_size


def memory_of(operand: Operand) -> TensorMemory | str:
    """A tensor's memory, or why it cannot be drawn."""
    buffer = view_of(operand)
    if buffer is None:
        return "it is null" if operand.tensor is None else "its Desc is null"
    if buffer.element_size is None:
        return f"nothing is known of the size of its elements, of {type_name(buffer.desc.data_type)}"
    if buffer.sizes is None:
        return "its DimensionCount, Sizes and Strides do not say where its elements lie"
    return TensorMemory(
        operand,
        type_name(buffer.desc.data_type),
        buffer.element_size,
        buffer.sizes,
        packed_strides(buffer.sizes) if buffer.strides is None else buffer.strides,
        buffer.strides is None,
        buffer.desc.total_tensor_size_in_bytes,
    )
