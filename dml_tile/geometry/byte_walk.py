"""Tiles in bytes, without their data type, and their axes as the fewest possible dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from dml_tile.geometry.axes import Axis, coalesce, tile_axes
from dml_tile.geometry.layout import packed_strides


class Dimension(NamedTuple):
    """One dimension of a tile: its input's size, its repeat, and both tensors' strides, in bytes or in elements."""

    size: int
    repeat: int
    source: int
    destination: int


@dataclass(frozen=True, slots=True)
class ByteWalk:
    """A tile as it is described, with strides in bytes.

    ``axes`` are coalesced, in the order of the output; a source of 0 is a repeat's, or a broadcast's.
    """

    element_size: int
    dimensions: tuple[Dimension, ...]
    axes: tuple[Axis, ...]

    @classmethod
    def from_elements(
        cls,
        element_size: int,
        sizes: Sequence[int],
        repeats: Sequence[int],
        source_strides: Sequence[int],
        destination_strides: Sequence[int],
    ) -> Self:
        """Return the walk of a tile; the strides are in elements."""
        in_bytes = [[stride * element_size for stride in strides] for strides in (source_strides, destination_strides)]
        axes = [Axis(element_size, 1, 1), *tile_axes(sizes, repeats, *in_bytes)]
        walked = (axis for axis in axes if axis.length > 1)
        return cls(
            element_size,
            tuple(map(Dimension, sizes, repeats, *in_bytes)),
            coalesce(sorted(walked, key=lambda axis: axis.destination, reverse=True)),
        )

    @property
    def bytes_read(self) -> int:
        """The bytes of the input's elements, each counted once."""
        return math.prod(dimension.size for dimension in self.dimensions) * self.element_size

    @property
    def bytes_written(self) -> int:
        """The bytes of the output's elements."""
        return self.bytes_read * math.prod(dimension.repeat for dimension in self.dimensions)


def axes_in_units(axes: Sequence[Axis], unit: int) -> tuple[Axis, ...] | None:
    """Convert axes in bytes to axes in elements of ``unit`` bytes; None where they break such elements up.

    Each element is then a run of bytes, in the input as in the output, at a multiple of ``unit``.
    """
    if unit == 1:
        return tuple(axes)
    if indivisible_length(axes, unit) is not None:
        return None
    *outer, run = axes
    inner = [Axis(run.length // unit, 1, 1)] if run.length > unit else []
    return (*(Axis(length, source // unit, destination // unit) for length, source, destination in outer), *inner)


def indivisible_length(axes: Sequence[Axis], unit: int) -> int | None:
    """Return a length in bytes that is no multiple of ``unit``, the innermost run's or a stride; None if all are."""
    run = axes[-1].length if axes and axes[-1][1:] == (1, 1) else 1
    outer = axes[:-1] if run > 1 else axes
    lengths = [run, *(stride for axis in outer for stride in (axis.source, axis.destination))]
    return next((length for length in lengths if length % unit), None)


def dimensions_of(axes: Sequence[Axis]) -> tuple[Dimension, ...]:
    """Return the fewest dimensions that walk coalesced axes: a repeat shares one with what it repeats."""
    dimensions: list[Dimension] = []
    repeat: Axis | None = None
    for axis in axes:
        if repeat and axis.source and repeat.destination == axis.length * axis.destination:
            dimensions.append(Dimension(axis.length, repeat.length, axis.source, axis.destination))
            repeat = None
            continue
        if repeat:
            dimensions.append(Dimension(1, repeat.length, 0, repeat.destination))
        repeat = None if axis.source else axis
        if axis.source:
            dimensions.append(Dimension(axis.length, 1, axis.source, axis.destination))
    if repeat:
        dimensions.append(Dimension(1, repeat.length, 0, repeat.destination))
    return tuple(dimensions)


def packing(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return the copy that packs what the axes read, without its repeats."""
    walked = [axis for axis in axes if axis.source]
    strides = packed_strides([axis.length for axis in walked])
    return coalesce(Axis(axis.length, axis.source, stride) for axis, stride in zip(walked, strides, strict=True))


def unpacking(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return the copy that spreads what the axes write, repeats included, from packed memory."""
    strides = packed_strides([axis.length for axis in axes])
    return coalesce(Axis(axis.length, stride, axis.destination) for axis, stride in zip(axes, strides, strict=True))
