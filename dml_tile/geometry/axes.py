"""The geometry of a tile, freed of its dimensions.

Each dimension of a tile is two axes: one that repeats (its source stride is 0) and, inside it, one that walks the
dimension's elements. Coalescing drops the axes of length 1 and joins neighbours that walk on alike on both sides, so
that most tiles are left with one to four.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Axis(NamedTuple):
    """One loop of a tile; the strides are both in elements, or both in bytes."""

    length: int
    source: int
    destination: int


def tile_axes(
    sizes: Sequence[int], repeats: Sequence[int], source_strides: Sequence[int], destination_strides: Sequence[int]
) -> tuple[Axis, ...]:
    """Return the axes of a tile, the outermost first; ``sizes`` are the input's."""
    axes: list[Axis] = []
    for size, repeat, source, destination in zip(sizes, repeats, source_strides, destination_strides, strict=True):
        axes += Axis(repeat, 0, size * destination), Axis(size, source, destination)
    return tuple(axes)


def coalesce(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """Return the same walk in as few axes as possible: neighbours that walk on alike are joined."""
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
