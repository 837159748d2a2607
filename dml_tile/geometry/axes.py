"""The geometry of a tile, freed of its dimensions.

Each dimension of a tile is two axes: a repeat (its source stride is 0), and inside it an axis that walks the
dimension's elements. Coalescing drops axes of length 1 and joins neighbours that are contiguous on both sides, so that
most tiles have one to four axes left. A walk goes over the bytes of packed tensors along such axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self, TypeVar

from dml_tile.geometry.layout import packed_strides

_Size = TypeVar("_Size")


class Axis(NamedTuple):
    """One loop of a tile; the strides are both in elements, or both in bytes."""

    length: int
    source: int
    destination: int


def tile_axes(
    sizes: Sequence[int], repeats: Sequence[int], source_strides: Sequence[int], destination_strides: Sequence[int]
) -> tuple[Axis, ...]:
    """Return the axes of a tile, the outermost first; ``sizes`` are the input's.

    >>> tile_axes([3], [2], [1], [1])
    (Axis(length=2, source=0, destination=3), Axis(length=3, source=1, destination=1))
    """
    axes: list[Axis] = []
    for size, repeat, source, destination in zip(sizes, repeats, source_strides, destination_strides, strict=True):
        axes += Axis(repeat, 0, size * destination), Axis(size, source, destination)
    return tuple(axes)


def coalesce(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """Return the same walk in as few axes as possible: contiguous neighbours are joined.

    >>> coalesce([Axis(2, 12, 12), Axis(1, 0, 12), Axis(3, 4, 4), Axis(4, 1, 1)])
    (Axis(length=24, source=1, destination=1),)
    """
    joined: list[Axis] = []
    for axis in axes:
        if axis.length == 1:
            continue
        outer = joined[-1] if joined else None
        if outer and outer.source == axis.length * axis.source and outer.destination == axis.length * axis.destination:
            joined[-1] = Axis(outer.length * axis.length, axis.source, axis.destination)
        else:
            joined.append(axis)
    return tuple(joined)


def indices(axes: Iterable[Axis]) -> int:
    """Return the product of the axes' lengths."""
    return math.prod(axis.length for axis in axes)


def offsets(axes: Iterable[Axis]) -> list[tuple[int, int]]:
    """Return the offsets of all indices in the source and the destination, the last index changing fastest.

    >>> offsets([Axis(2, 0, 2), Axis(2, 1, 1)])
    [(0, 0), (1, 1), (0, 2), (1, 3)]
    """
    found = [(0, 0)]
    for length, source, destination in axes:
        found = [(read + i * source, written + i * destination) for read, written in found for i in range(length)]
    return found


class Dimension(NamedTuple):
    """One dimension of a tile: its input's size, its repeat, and both tensors' strides, in bytes or in elements."""

    size: int
    repeat: int
    source: int
    destination: int


class TileInBytes(NamedTuple):
    """A described tile, with strides in bytes.

    ``axes`` are coalesced, in the order of the output; a repeat or a broadcast has a source of 0.
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
    """Convert axes in bytes to axes in elements of ``unit`` bytes; None if they break elements up."""
    if unit == 1:
        return tuple(axes)
    if indivisible_length(axes, unit) is not None:
        return None
    *outer, run = axes
    inner = [Axis(run.length // unit, 1, 1)] if run.length > unit else []
    return (*(Axis(length, source // unit, destination // unit) for length, source, destination in outer), *inner)


def indivisible_length(axes: Sequence[Axis], unit: int) -> int | None:
    """Return the first length in bytes, a run's or a stride's, that is no multiple of ``unit``; None if all are."""
    run = axes[-1].length if axes and axes[-1][1:] == (1, 1) else 1
    outer = axes[:-1] if run > 1 else axes
    lengths = [run, *(stride for axis in outer for stride in (axis.source, axis.destination))]
    return next((length for length in lengths if length % unit), None)


def dimensions_of(axes: Sequence[Axis]) -> tuple[Dimension, ...]:
    """Return the fewest dimensions that walk coalesced axes: a repeat shares the dimension of the axis inside it."""
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
    """Return the copy that packs the elements that the axes read, without repeats."""
    read = [axis for axis in axes if axis.source]
    strides = packed_strides([axis.length for axis in read])
    return coalesce(Axis(axis.length, axis.source, stride) for axis, stride in zip(read, strides, strict=True))


def unpacking(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return the copy from packed memory to the elements that the axes write, repeats included."""
    strides = packed_strides([axis.length for axis in axes])
    return coalesce(Axis(axis.length, stride, axis.destination) for axis, stride in zip(axes, strides, strict=True))


def promoted(shape: Sequence[_Size], repeats: Sequence[int]) -> tuple[tuple[_Size | int, ...], tuple[int, ...]]:
    """Return shape and repeats at the same length: the shorter gets leading 1s.

    >>> promoted((2, 3), (4,))
    ((2, 3), (1, 4))
    """
    rank = max(len(shape), len(repeats))
    return (1,) * (rank - len(shape)) + tuple(shape), (1,) * (rank - len(repeats)) + tuple(repeats)
