"""The steps of a chain as descriptors, in elements of the data type that carries the bits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import mul

from dml_tile.descriptors import TileOperatorDesc
from dml_tile.enums import TensorDataType, TensorFlags
from dml_tile.errors import DmlError
from dml_tile.geometry.byte_walk import ByteWalk, Dimension, dimensions_of, in_units
from dml_tile.geometry.chain import can_be_chained, shortest_chain
from dml_tile.geometry.layout import ELEMENT_SIZES, packed_strides
from dml_tile.rules.check import require
from dml_tile.rules.lowering import Carried, limits_are_kept
from dml_tile.targets import Target


@dataclass(frozen=True, slots=True)
class TensorMemory:
    """What a tensor keeps under any data type: its size in bytes, its flags and its alignment."""

    total_in_bytes: int
    flags: TensorFlags | int = TensorFlags.NONE
    alignment: int = 0


@dataclass(frozen=True, slots=True)
class Chain:
    """The dimensions of each step, in elements of the data type that carries the bits."""

    carrier: TensorDataType
    steps: tuple[tuple[Dimension, ...], ...]

    @property
    def scratch_sizes(self) -> tuple[int, ...]:
        """The bytes that each step but the last writes."""
        return tuple(
            math.prod(dimension.size * dimension.repeat for dimension in step) * ELEMENT_SIZES[self.carrier]
            for step in self.steps[:-1]
        )


def chain_of(walk: ByteWalk, carrier: TensorDataType, target: Target) -> Chain | None:
    """Return the chain with the fewest steps in elements of ``carrier``, or None if there is none.

    A single step keeps the tile's dimensions if the target allows as many; else it drops those of size 1, or merges all
    that can be merged.
    """
    unit, most = ELEMENT_SIZES[carrier], target.tile_support.dimension_counts[-1]
    axes = in_units(walk.axes, unit)
    if axes is None or not can_be_chained(axes, most):
        return None
    steps = tuple(dimensions_of(step) for step in shortest_chain(axes, most))
    if len(steps) == 1 and unit <= walk.element_size:
        kept = tuple(_in_parts(walk, unit))
        squeezed = tuple(dimension for dimension in kept if dimension.size * dimension.repeat > 1)
        steps = (next(dimensions for dimensions in (kept, squeezed, *steps) if len(dimensions) <= most),)
    return Chain(carrier, steps)


def tile_of(
    dimensions: Sequence[Dimension],
    carrier: TensorDataType,
    source: TensorMemory,
    destination: TensorMemory,
    target: Target,
) -> TileOperatorDesc:
    """Return the tile of these dimensions, with leading dimensions of size 1 where the target requires more.

    Raises DmlError if it exceeds a limit of DirectML.
    """
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
        tensor = Carried(name, carrier, shape, _strides_if_needed(shape, steps), held.total_in_bytes)
        if findings := tuple(limits_are_kept.findings(tensor, target)):
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
    require(desc, target)
    return desc


def _in_parts(walk: ByteWalk, unit: int) -> Iterator[Dimension]:
    """Give the dimensions in elements that are at most as large; the innermost dimension takes the parts of each."""
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
    differ = (
        size > 1 and stride != packed
        for size, stride, packed in zip(sizes, strides, packed_strides(sizes), strict=True)
    )
    if not any(differ):
        return None
    return tuple(stride if size > 1 else 0 for size, stride in zip(sizes, strides, strict=True))
