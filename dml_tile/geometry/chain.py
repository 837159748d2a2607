"""A tile as a chain of tiles of few dimensions, with packed scratch memory between them.

Each step has room for so many dimensions. The first spends some on the gaps between the input's elements, the last on
those between the output's; what is left goes to repeats. A repeat costs a step one dimension, but nothing

- in the last step, if it is the outermost axis, or if the output has a gap there anyway;
- in the first step, if the input has a gap there anyway.

So the least number of steps is a matter of counting. Of two repeats, the larger is better done by the later step: all
scratch memory before it is the smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from dml_tile.geometry.axes import Axis, coalesce, dimensions_of, packing, unpacking
from dml_tile.geometry.layout import packed_strides

MAX_STEPS: Final = 256
"""A chain has at most so many tiles where the caller sets no bound; the time of a search grows with the bound."""


def can_be_chained(axes: Sequence[Axis], most: int) -> bool:
    """Return True if a chain of tiles of at most ``most`` dimensions exists; ``most`` is 2 or more."""
    return len(dimensions_of(axes)) <= most or max(len(packing(axes)), len(unpacking(axes))) <= most


def shortest_chain(axes: Sequence[Axis], most: int) -> list[tuple[Axis, ...]]:
    """Return the axes of each step: the fewest steps possible, and the least scratch memory for that many.

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
    """Return the repeats that each of two or more steps does, by their indices among the axes."""
    repeats = [i for i, axis in enumerate(axes) if not axis.source]
    free_in_last = {i for i in repeats if i == 0 or not _continues(axes[i - 1], axes[i])}
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


def _continues(outer: Axis, inner: Axis) -> bool:
    """Return True if an axis continues, in the output, where the one inside it ends."""
    return outer.destination == inner.length * inner.destination


def _input_has_a_gap(axes: Sequence[Axis], repeat: int) -> bool:
    """Return True if the input axes just outside and just inside a repeat are not contiguous with each other."""
    walked = [i for i, axis in enumerate(axes) if axis.source]
    return any(
        outer < repeat < inner and axes[outer].source != axes[inner].length * axes[inner].source
        for outer, inner in pairwise(walked)
    )
