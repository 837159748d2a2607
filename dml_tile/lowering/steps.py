"""A lowering: steps between buffers, their descriptors and their cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Literal, TypeAlias

from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc, described
from dml_tile.dialects.request import Request
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import TensorFlags
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.geometry.axes import ByteWalk, Dimension
from dml_tile.geometry.layout import lie_alike, packed_strides
from dml_tile.lowering.rules import StepTensor, limits_are_met
from dml_tile.lowering.search import ChainTile
from dml_tile.rules.check import findings_of

StepBuffer: TypeAlias = Literal["input", "output"] | int
"""The input, the output, or a scratch buffer by its number."""


@dataclass(frozen=True, slots=True)
class LoweringStep:
    """One tile, and the buffers that its tensors are bound to, from byte 0 on."""

    desc: TileOperatorDesc
    reads: StepBuffer
    writes: StepBuffer

    @property
    def bytes_read(self) -> int:
        """The bytes of the input's elements, each counted once."""
        return _bytes_of(described(self.desc)[0])

    @property
    def bytes_written(self) -> int:
        """The bytes of the output's elements."""
        return _bytes_of(described(self.desc)[1])

    @property
    def is_a_copy(self) -> bool:
        """True if every repeat is 1."""
        return set(self.desc.repeats or ()) == {1}


@dataclass(frozen=True, slots=True)
class Lowering:
    """Steps that, run in order at the target, write the bytes that the original would write, and no others.

    ``scratch_sizes`` are the sizes of the scratch buffers, in bytes. ``notes`` are sentences for the reader.
    """

    original: TileOperatorDesc | Request
    target: Target
    steps: tuple[LoweringStep, ...]
    scratch_sizes: tuple[int, ...]
    notes: tuple[str, ...]
    original_bytes_read: int
    """The bytes of the original input's elements, each counted once."""
    original_bytes_written: int
    """The bytes of the original output's elements."""
    is_original: bool = False
    """True if the target accepts the original, which is then the only step."""

    @property
    def data_type(self) -> TensorDataType | None:
        """That of the original's tensors; None for elements without one, such as complex numbers."""
        if isinstance(self.original, Request):
            return self.original.carrier
        return TensorDataType(described(self.original)[0].data_type)

    @property
    def cost(self) -> float:
        """The bytes that all steps read and write, relative to those of the original."""
        moved = sum(step.bytes_read + step.bytes_written for step in self.steps)
        return moved / (self.original_bytes_read + self.original_bytes_written)


@dataclass(frozen=True, slots=True)
class TensorMemory:
    """The parts of a tensor that its data type does not change: its size in bytes, its flags and its alignment."""

    total_in_bytes: int
    flags: TensorFlags | int = TensorFlags.NONE
    alignment: int = 0


def with_dimensions_of(walk: ByteWalk, tile: ChainTile, most: int) -> ChainTile:
    """Return a tile that does all of a walk in the walk's own dimensions, if they are not too many.

    Else those of size 1 are left out; where that is not enough, or where elements are larger, the tile stays as it is.
    """
    unit = ELEMENT_SIZES[tile.carrier]
    if unit > walk.element_size:
        return tile
    kept = tuple(_divided_dimensions(walk, unit))
    squeezed = tuple(dimension for dimension in kept if dimension.size * dimension.repeat > 1)
    dimensions = next(each for each in (kept, squeezed, tile.dimensions) if len(each) <= most)
    return ChainTile(tile.carrier, dimensions)


def step_desc(tile: ChainTile, source: TensorMemory, destination: TensorMemory, target: Target) -> TileOperatorDesc:
    """Return the descriptor of a tile, with leading dimensions of size 1 where the target requires more.

    Raises DmlError if it exceeds a limit of DirectML.
    """
    carrier, dimensions = tile
    missing = target.tile_support.dimension_counts[0] - len(dimensions)
    dimensions = (*[Dimension(1, 1, 0, 0)] * missing, *dimensions)
    sizes, repeats, *strides = map(tuple, zip(*dimensions, strict=True))
    tensors = []
    for name, held, shape, steps in zip(
        ("InputTensor", "OutputTensor"),
        (source, destination),
        (sizes, tuple(map(mul, sizes, repeats))),
        strides,
        strict=True,
    ):
        tensor = StepTensor(name, carrier, shape, _strides_if_needed(shape, steps), held.total_in_bytes)
        if findings := tuple(limits_are_met.findings(tensor, target)):
            raise DmlError(findings)
        tensors.append(
            {
                "DataType": carrier,
                "Flags": held.flags,
                "Sizes": shape,
                "Strides": tensor.strides,
                "TotalTensorSizeInBytes": held.total_in_bytes,
                "GuaranteedBaseOffsetAlignment": held.alignment,
            }
        )
    desc = TileOperatorDesc.model_validate({"InputTensor": tensors[0], "OutputTensor": tensors[1], "Repeats": repeats})
    if refused := findings_of(desc, target):
        raise DmlError(refused)
    return desc


def _divided_dimensions(walk: ByteWalk, unit: int) -> Iterator[Dimension]:
    """Yield the dimensions in elements that are at most as large; the innermost dimension takes the parts of each."""
    parts = walk.element_size // unit
    dimensions = [
        Dimension(size, repeat, source // unit, destination // unit)
        for size, repeat, source, destination in walk.dimensions
    ]
    last = dimensions.pop() if dimensions else Dimension(1, 1, 0, 0)
    yield from dimensions
    reads_on = last.source == parts or last.size == 1
    writes_on = last.destination == parts or last.size * last.repeat == 1
    if reads_on and writes_on:
        yield Dimension(last.size * parts, last.repeat, 1, 1)
    else:
        yield from (last, Dimension(parts, 1, 1, 1))


def _strides_if_needed(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """Return the strides, or None if they are the packed ones; a dimension of size 1 has no stride of its own."""
    if lie_alike(sizes, strides, packed_strides(sizes)):
        return None
    return tuple(stride if size > 1 else 0 for size, stride in zip(sizes, strides, strict=True))


def _bytes_of(buffer: BufferTensorDesc) -> int:
    return math.prod((buffer.sizes or ())[: buffer.dimension_count]) * ELEMENT_SIZES[buffer.data_type]
