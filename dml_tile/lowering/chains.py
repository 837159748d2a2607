"""Chains of tiles that lower a tile: found by counting.

Each step of a chain has room for some dimensions. With packed scratch memory between the steps, the first step spends
dimensions on the gaps between the input's elements, the last step on the output's gaps; the others go to repeats. A
repeat costs a step one dimension, but nothing

- in the last step, if it is the outermost axis, or if the output has a gap there anyway;
- in the first step, if the input has a gap there anyway.

So the least number of steps is a matter of counting. The later step does the larger of two repeats: that leaves scratch
memory smaller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.geometry.axes import Axis, Dimension, axes_in_units, coalesce, dimensions_of, packing, unpacking
from dml_tile.geometry.layout import packed_strides


class Chain(NamedTuple):
    """Tiles of one data type (the carrier) in order: one for each scratch buffer, then that which writes the output.

    A tile has dimensions in the carrier's elements. Each of the first tiles writes one of the ``scratch_sizes``, in
    bytes.
    """

    carrier: TensorDataType
    tiles: tuple[tuple[Dimension, ...], ...]
    scratch_sizes: tuple[int, ...]


def _chain(axes: Sequence[Axis], carrier: TensorDataType, most: int) -> Chain | None:
    """Return the fewest tiles of one data type that walk axes in bytes with packed scratch memory, or None."""
    unit = ELEMENT_SIZES[carrier]
    in_elements = axes_in_units(axes, unit)
    if in_elements is None or not can_be_chained(in_elements, most):
        return None
    tiles = tuple(map(dimensions_of, shortest_chain(in_elements, most)))
    scratch_sizes = (math.prod(dimension.size * dimension.repeat for dimension in tile) * unit for tile in tiles[:-1])
    return Chain(carrier, tiles, tuple(scratch_sizes))


def can_be_chained(axes: Sequence[Axis], most: int) -> bool:
    """Return True if a chain of tiles of at most ``most`` dimensions exists; ``most`` is 2 or more."""
    return len(dimensions_of(axes)) <= most or max(len(packing(axes)), len(unpacking(axes))) <= most


def shortest_chain(axes: Sequence[Axis], most: int) -> list[tuple[Axis, ...]]:
    """Return the axes of each step: the fewest steps possible, with the least scratch memory.

    ``axes`` are coalesced, in elements, in the order of the output; they can be chained.
    """
    if len(dimensions_of(axes)) <= most:
        return [tuple(axes)]
    chain = []
    held = {i: axis.source for i, axis in enumerate(axes) if axis.source}
    *steps, last = _repeats_of_steps(axes, most)
    for repeats in steps:
        kept = sorted(held.keys() | repeats)
        written = dict(zip(kept, packed_strides([axes[i].length for i in kept]), strict=True))
        chain.append(coalesce(Axis(axes[i].length, held.get(i, 0), written[i]) for i in kept))
        held = written
    assert held.keys() | last == set(range(len(axes))), "each repeat is done by one of the steps"
    chain.append(coalesce(Axis(axis.length, held.get(i, 0), axis.destination) for i, axis in enumerate(axes)))
    return chain


def _repeats_of_steps(axes: Sequence[Axis], most: int) -> list[set[int]]:
    """Return the indices of the axes that each of two or more steps repeats."""
    repeats = [i for i, axis in enumerate(axes) if not axis.source]
    free_in_last = {i for i in repeats if i == 0 or axes[i - 1].destination != axes[i].length * axes[i].destination}
    costly = [i for i in repeats if i not in free_in_last]
    free_in_first = {i for i in costly if _input_has_a_gap(axes, i)}
    room_in_first = most - max(len(packing(axes)), 1)
    room_in_last = most - len(unpacking(axes))
    too_many = len(costly) - len(free_in_first) - room_in_first  # for the first step
    between = max(0, -(-(too_many - room_in_last) // (most - 1)))
    rooms = [most - 1] * between + [room_in_last]

    later: list[int] = []
    for i in sorted(costly, key=lambda i: axes[i].length, reverse=True):
        reserved = max(too_many, 0) if i in free_in_first else 0
        if len(later) + reserved < sum(rooms):
            later.append(i)
            too_many -= i not in free_in_first
    steps: list[set[int]] = []
    done = 0
    for room in reversed(rooms):
        steps.insert(0, set(later[done : done + room]))
        done += room
    steps[-1] |= free_in_last
    return [set(costly) - set(later), *steps]


def _input_has_a_gap(axes: Sequence[Axis], repeat: int) -> bool:
    """Return True if the input axes just outside and just inside a repeat are not contiguous with each other."""
    walked = [i for i, axis in enumerate(axes) if axis.source]
    return any(
        outer < repeat < inner and axes[outer].source != axes[inner].length * axes[inner].source
        for outer, inner in pairwise(walked)
    )


def chains_of(axes: tuple[Axis, ...], types: Sequence[TensorDataType], most: int) -> list[Chain]:
    """Return chains of tiles of at most ``most`` dimensions that walk axes in bytes, with packed scratch memory.

    The shortest come first, and of these the ones with the least scratch memory, in the order of the data types.
    """
    chains = (_chain(axes, carrier, most) for carrier in types)
    return sorted(filter(None, chains), key=lambda chain: (len(chain.tiles), sum(chain.scratch_sizes)))
