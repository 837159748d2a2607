"""The data types that can carry another type's bits at a target, and the chains of tiles that lower a tile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice, product
from typing import Final

from dml_tile.directml.data_types import ELEMENT_SIZES, FLOATS, TensorDataType
from dml_tile.directml.targets import Target
from dml_tile.geometry.axes import Axis, axes_in_units, coalesce, dimensions_of, indices, packed_copy, unpacking
from dml_tile.lowering.search import Chain, ChainTile, search_chain, single_tile, uniform_chain

_CARRIERS: Final = tuple(sorted(map(TensorDataType, ELEMENT_SIZES), key=FLOATS.__contains__))
"""The first of each size that the target accepts is used; floats come last, since hardware may normalise them."""

SHORT: Final = 2
"""No search finds fewer tiles than two, where one cannot do it."""


def carriers(
    element_size: int, own: TensorDataType | None, target: Target, *, allow_floats: bool
) -> tuple[TensorDataType, ...]:
    """Return one data type of each element size that the target accepts, the best carrier first.

    ``own`` or another type of ``element_size`` bytes comes first, then the other sizes, largest first; an element of a
    larger type holds several. ``own`` is None where DirectML has no type for the elements.
    """
    by_size: dict[int, TensorDataType] = {}
    for data_type in (own, *_CARRIERS) if own is not None else _CARRIERS:
        taken = data_type in target.tile_support.data_types and target.supports_data_type(data_type)
        if taken and (allow_floats or data_type == own or data_type not in FLOATS):
            by_size.setdefault(ELEMENT_SIZES[data_type], data_type)
    sizes = sorted(by_size, key=lambda size: (size != element_size, -size))
    return tuple(by_size[size] for size in sizes)


def covering_tiles(
    axes: Sequence[Axis], types: Sequence[TensorDataType], most: int, max_tiles: int
) -> tuple[ChainTile, ...] | None:
    """Return tiles of at most ``most`` dimensions that together walk axes in bytes; None above ``max_tiles``.

    Every tile begins at the first byte of its buffers, so each of several tiles writes the output's first element. Some
    axes are walked at once, along a line through that element: the line in direction (1, 2) advances one index of the
    first axis and two of the second. The lines in all directions without a common divisor meet every element of these
    axes, so the tiles that walk one such line each, and the other axes whole, write the output. For two axes of two
    elements these are three tiles: along either axis, and along both. The axes that are walked at once are the
    shortest, as few as leave the dimensions for the others. The time taken grows with ``max_tiles``, not with the axes'
    lengths.
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
    if max(lengths) > most:  # at least one starts with each index of an axis
        return None
    indices = product(*map(range, lengths))
    found = list(islice((index for index in indices if math.gcd(*index) == 1), most + 1))
    return found if len(found) <= most else None


def _walked_along(axes: Sequence[Axis], joined: Sequence[int], direction: Sequence[int]) -> tuple[Axis, ...]:
    """Return the axes, with one that walks along a direction in place of those that are ``joined``."""
    advances = dict(zip(joined, direction, strict=True))
    line = Axis(
        min((axes[i].length - 1) // advance + 1 for i, advance in advances.items() if advance),
        sum(advance * axes[i].source for i, advance in advances.items()),
        sum(advance * axes[i].destination for i, advance in advances.items()),
    )
    parted = [line if i == joined[0] else axis for i, axis in enumerate(axes) if i == joined[0] or i not in advances]
    return coalesce(parted)


def chains_of(axes: tuple[Axis, ...], types: Sequence[TensorDataType], most: int, max_steps: int) -> tuple[Chain, ...]:
    """Return chains of tiles of at most ``most`` dimensions that walk axes in bytes; some may exceed ``max_steps``.

    Those of one tile come first, in the order of the data types, then the cheapest. Where one data type does it with
    packed scratch memory, the fewest tiles possible are known by counting. A search may find fewer than three of them,
    with scratch memory in other orders or several data types. Where there is no such chain, it may copy gaps too.
    """
    uniform = [chain for carrier in types if (chain := uniform_chain(axes, carrier, most))]
    single = [chain for chain in uniform if len(chain.tiles) == 1]
    longer = sorted((chain for chain in uniform if len(chain.tiles) > 1), key=lambda chain: chain.expense)
    if single or (longer and len(longer[0].tiles) <= SHORT):
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
    """Return chains whose last tiles each write a part of the output, from the input or from a packed copy of it."""
    direct = covering_tiles(axes, types, most, max_steps)
    chains = [Chain(direct, ())] if direct else []
    to_packed = packed_copy(axes)
    parts = covering_tiles(unpacking(axes), types, most, max_steps) if to_packed != axes else None
    if parts:
        chains += (
            Chain((*packing.tiles, *parts), (*packing.scratch_sizes, indices(axes)))
            for packing in chains_of(to_packed, types, most, max_steps)
        )
    return tuple(sorted(chains, key=lambda chain: chain.expense))


def _undivided(axes: Sequence[Axis], types: Sequence[TensorDataType]) -> tuple[TensorDataType, ...]:
    """Return the types that divide neither the tile's own elements nor, if no type has their size, the largest."""
    sizes = [size for carrier in types if axes_in_units(axes, size := ELEMENT_SIZES[carrier]) is not None]
    least = min(max(sizes), ELEMENT_SIZES[types[0]])
    return tuple(carrier for carrier in types if ELEMENT_SIZES[carrier] >= least)
