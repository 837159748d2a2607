"""Chains of tiles that lower a tile: found by counting, by a search for copies, or with the output written in parts.

Each step of a chain has room for some dimensions. With packed scratch memory between the steps, the first step spends
dimensions on the gaps between the input's elements, the last step on the output's gaps; the others go to repeats. A
repeat costs a step one dimension, but nothing

- in the last step, if it is the outermost axis, or if the output has a gap there anyway;
- in the first step, if the input has a gap there anyway.

So the least number of steps is a matter of counting. The later step does the larger of two repeats: that leaves scratch
memory smaller.

Each copy of the search reads all that is still needed from one buffer and writes it to the next. The copy puts some
neighbouring axes of the output in order, repeats included, so that they are one axis from then on. It keeps the other
axes

- in the order in which they lie, without the gaps between them, if the dimensions allow that; or
- as one run from the first of their elements to the last, gaps included, in a single dimension.

The axes as they lie in a buffer describe its contents. After each copy the search goes on with the few buffers from
which the output takes the fewest dimensions, in the least memory. A copy leaves fewer axes, so the search ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, islice, pairwise, product
from typing import Final, NamedTuple

from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import UINT_MAX
from dml_tile.geometry.axes import (
    Axis,
    Dimension,
    axes_in_units,
    coalesce,
    dimensions_of,
    indices,
    packed_copy,
    packing,
    unpacking,
)
from dml_tile.geometry.layout import packed_strides


class ChainTile(NamedTuple):
    """A tile of a chain: its data type (the carrier), and its dimensions in the carrier's elements."""

    carrier: TensorDataType
    dimensions: tuple[Dimension, ...]


class Chain(NamedTuple):
    """Tiles in order: one for each scratch buffer, then the tiles that write the output from the last buffer."""

    tiles: tuple[ChainTile, ...]
    scratch_sizes: tuple[int, ...]
    """The bytes that each of the first tiles writes."""

    @property
    def expense(self) -> tuple[int, int]:
        """The number of tiles and the bytes of scratch memory, by which chains are compared."""
        return len(self.tiles), sum(self.scratch_sizes)


def single_tile(axes: Sequence[Axis], types: Sequence[TensorDataType], most: int) -> ChainTile | None:
    """Return a tile of at most ``most`` dimensions that walks coalesced axes in bytes, of the first possible type."""
    for carrier in types:
        in_elements = axes_in_units(axes, ELEMENT_SIZES[carrier])
        if in_elements is not None and len(dimensions := dimensions_of(in_elements)) <= most:
            return ChainTile(carrier, dimensions)
    return None


def uniform_chain(axes: Sequence[Axis], carrier: TensorDataType, most: int) -> Chain | None:
    """Return the fewest tiles of one data type that walk axes in bytes with packed scratch memory, or None."""
    unit = ELEMENT_SIZES[carrier]
    in_elements = axes_in_units(axes, unit)
    if in_elements is None or not can_be_chained(in_elements, most):
        return None
    steps = [dimensions_of(step) for step in shortest_chain(in_elements, most)]
    scratch_sizes = (math.prod(dimension.size * dimension.repeat for dimension in step) * unit for step in steps[:-1])
    return Chain(tuple(ChainTile(carrier, step) for step in steps), tuple(scratch_sizes))


MAX_STEPS: Final = 256
"""The default bound on the tiles of a chain; the time of a search grows with the bound."""


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


MAX_BUFFERS: Final = 8
"""The number of buffers' contents with which the search goes on after each copy."""

Axes = tuple[Axis, ...]


def search_chain(
    axes: Axes, types: Sequence[TensorDataType], most: int, max_tiles: int, *, copies_gaps: bool
) -> Chain | None:
    """Return the shortest chain found, with little scratch memory; None if none has at most ``max_tiles``.

    ``axes`` are coalesced, in bytes, in the order of the output. Each tile has at most ``most`` dimensions, and the
    first possible type.
    """
    buffers = {axes: Chain((), ())}
    for _ in range(max_tiles):
        finished = [
            Chain((*chain.tiles, last), chain.scratch_sizes)
            for held, chain in buffers.items()
            if (last := single_tile(held, types, most))
        ]
        if finished:
            return min(finished, key=lambda chain: chain.expense)
        following: dict[Axes, Chain] = {}
        for held, chain in buffers.items():
            for written, longer in _longer(held, chain, types, most, copies_gaps=copies_gaps):
                if written not in following or longer.expense < following[written].expense:
                    following[written] = longer
        best_first = sorted(following.items(), key=lambda item: (len(dimensions_of(item[0])), item[1].expense))
        buffers = dict(best_first[:MAX_BUFFERS])
    return None


def _longer(
    held: Axes, chain: Chain, types: Sequence[TensorDataType], most: int, *, copies_gaps: bool
) -> Iterator[tuple[Axes, Chain]]:
    """Yield each layout that one more copy can write, and its chain."""
    largest = UINT_MAX * min(ELEMENT_SIZES[carrier] for carrier in types)
    for copy, written in _copies(held, copies_gaps=copies_gaps):
        size = math.prod(axis.length for axis in copy)
        if len(written) < len(held) and size <= largest and (tile := single_tile(coalesce(copy), types, most)):
            yield written, Chain((*chain.tiles, tile), (*chain.scratch_sizes, size))


_RUN: Final = -1
"""Stands for the index of the axis that walks a run."""


def _copies(held: Axes, *, copies_gaps: bool) -> Iterator[tuple[list[Axis], Axes]]:
    """Yield each copy that puts neighbours in order: its axes, and the tile's axes as they lie in its output.

    The others lie inside the placed axes or around them: one by one, or with ``copies_gaps`` as one run.
    """
    by_source = sorted((i for i, axis in enumerate(held) if axis.source), key=lambda i: -held[i].source)
    for first, end in combinations(range(len(held) + 1), 2):
        placed = {i: held[i] for i in range(first, end)}
        others = {i: held[i] for i in by_source if i not in placed}
        kept = others
        if copies_gaps and others:
            advance = math.gcd(*(axis.source for axis in others.values()))
            steps = sum((axis.length - 1) * axis.source for axis in others.values()) // advance
            kept = {_RUN: Axis(1 + steps, advance, 0)}
        for walked in (placed | kept, kept | placed):
            strides = dict(zip(walked, packed_strides([axis.length for axis in walked.values()]), strict=True))
            copy = [Axis(axis.length, axis.source, strides[i]) for i, axis in walked.items()]
            if _RUN in strides:
                strides |= {i: axis.source // advance * strides[_RUN] for i, axis in others.items()}
            yield copy, coalesce(Axis(axis.length, strides.get(i, 0), axis.destination) for i, axis in enumerate(held))


def tiles_in_parts(
    axes: Sequence[Axis], types: Sequence[TensorDataType], most: int, max_tiles: int
) -> tuple[ChainTile, ...] | None:
    """Return tiles of at most ``most`` dimensions that together walk axes in bytes; None above ``max_tiles``.

    Every tile begins at the first byte of its buffers, so each of several tiles writes the output's first element. Each
    tile walks some axes at once, along a line through that element, and the other axes whole: the line in direction (1,
    2) advances one index of the first axis and two of the second. The lines in all directions without a common divisor
    meet every element of these axes. For two axes of two elements there are three tiles: along either axis, and along
    both. The axes that are walked at once are the shortest, as few as leave the dimensions for the others. The time
    taken grows with ``max_tiles``, not with the axes' lengths.
    """
    if whole := single_tile(coalesce(axes), types, most):
        return (whole,)
    fewest: tuple[ChainTile, ...] | None = None
    for carrier in types:
        in_elements = axes_in_units(coalesce(axes), ELEMENT_SIZES[carrier])
        parts = _parts(in_elements, most, max_tiles) if in_elements is not None else None
        if parts and (fewest is None or len(parts) < len(fewest)):
            fewest = tuple(ChainTile(carrier, dimensions_of(part)) for part in parts)
    return fewest


def _parts(axes: Sequence[Axis], most: int, max_parts: int) -> list[tuple[Axis, ...]] | None:
    shortest_first = sorted(range(len(axes)), key=lambda i: axes[i].length)
    for count in range(2, len(axes) + 1):
        joined = sorted(shortest_first[:count])
        directions = _directions([axes[i].length for i in joined], max_parts)
        if directions is None:
            return None  # more axes have more directions
        parts = [_walked_along(axes, joined, direction) for direction in directions]
        if all(len(dimensions_of(part)) <= most for part in parts):
            return parts
    return None


def _directions(lengths: Sequence[int], most: int) -> list[tuple[int, ...]] | None:
    """Return the indices other than 0 without a common divisor; None if there are more than ``most``."""
    if max(lengths) > most:  # each index of an axis begins a direction
        return None
    indices = product(*map(range, lengths))
    found = list(islice((index for index in indices if math.gcd(*index) == 1), most + 1))
    return found if len(found) <= most else None


def _walked_along(axes: Sequence[Axis], joined: Sequence[int], direction: Sequence[int]) -> tuple[Axis, ...]:
    """Return the axes, with one axis along a direction in place of the ``joined`` axes."""
    advances = dict(zip(joined, direction, strict=True))
    line = Axis(
        min((axes[i].length - 1) // advance + 1 for i, advance in advances.items() if advance),
        sum(advance * axes[i].source for i, advance in advances.items()),
        sum(advance * axes[i].destination for i, advance in advances.items()),
    )
    parted = [line if i == joined[0] else axis for i, axis in enumerate(axes) if i == joined[0] or i not in advances]
    return coalesce(parted)


FEWEST_TILES_OF_A_SEARCH: Final = 2
"""The fewest tiles that a search can find, since one tile was tried."""


def chains_of(axes: tuple[Axis, ...], types: Sequence[TensorDataType], most: int, max_steps: int) -> tuple[Chain, ...]:
    """Return chains of tiles of at most ``most`` dimensions that walk axes in bytes; some may exceed ``max_steps``.

    Chains of one tile come first, in the order of the data types, then the cheapest. For one data type and packed
    scratch memory, counting gives the fewest tiles. If these are three or more, a search may find fewer, with scratch
    memory in other orders or several data types. If there is no chain, a search may copy gaps too.
    """
    uniform = [chain for carrier in types if (chain := uniform_chain(axes, carrier, most))]
    single = [chain for chain in uniform if len(chain.tiles) == 1]
    longer = sorted((chain for chain in uniform if len(chain.tiles) > 1), key=lambda chain: chain.expense)
    if single or (longer and len(longer[0].tiles) <= FEWEST_TILES_OF_A_SEARCH):
        return (*single, *longer)
    types = _undivided(axes, types)
    if not single_tile(unpacking(axes), types, most):
        return _chains_in_parts(axes, types, most, max_steps)
    fewer = len(longer[0].tiles) - 1 if longer else max_steps
    found = search_chain(axes, types, most, fewer, copies_gaps=False)
    if found or longer:
        return (found, *longer) if found else tuple(longer)
    found = search_chain(axes, types, most, max_steps, copies_gaps=True)
    return (found,) if found else _chains_in_parts(axes, types, most, max_steps)


def _chains_in_parts(
    axes: tuple[Axis, ...], types: Sequence[TensorDataType], most: int, max_steps: int
) -> tuple[Chain, ...]:
    """Return chains whose last tiles each write a part of the output, from the input or its packed copy."""
    direct = tiles_in_parts(axes, types, most, max_steps)
    chains = [Chain(direct, ())] if direct else []
    to_packed = packed_copy(axes)
    parts = tiles_in_parts(unpacking(axes), types, most, max_steps) if to_packed != axes else None
    if parts:
        chains += (
            Chain((*packing.tiles, *parts), (*packing.scratch_sizes, indices(axes)))
            for packing in chains_of(to_packed, types, most, max_steps)
        )
    return tuple(sorted(chains, key=lambda chain: chain.expense))


def _undivided(axes: Sequence[Axis], types: Sequence[TensorDataType]) -> tuple[TensorDataType, ...]:
    """Return the types at least as large as the tile's own elements or, if smaller, the largest usable type."""
    sizes = [size for carrier in types if axes_in_units(axes, size := ELEMENT_SIZES[carrier]) is not None]
    least = min(max(sizes), ELEMENT_SIZES[types[0]])
    return tuple(carrier for carrier in types if ELEMENT_SIZES[carrier] >= least)
