"""The chains of tiles that lower a tile, the cheapest first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from dml_tile.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.geometry.axes import Axis, coalesce
from dml_tile.geometry.byte_walk import in_units, unpacking
from dml_tile.geometry.layout import packed_strides
from dml_tile.lowering.chain import Chain, as_one_tile
from dml_tile.lowering.cover import covering_tiles
from dml_tile.lowering.search import search_chain
from dml_tile.lowering.tiles import uniform_chain

SHORT: Final = 2
"""No search finds fewer tiles than two, where one cannot do it."""


def chains_of(axes: tuple[Axis, ...], types: Sequence[TensorDataType], most: int, max_steps: int) -> tuple[Chain, ...]:
    """Chains of tiles of at most ``most`` dimensions that walk axes in bytes; some may be longer than ``max_steps``.

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
    if not as_one_tile(unpacking(axes), types, most):
        return _in_parts(axes, types, most, max_steps)
    fewer = len(longer[0].tiles) - 1 if longer else max_steps
    found = search_chain(axes, types, most, fewer, copies_gaps=False)
    if found or longer:
        return (found, *longer) if found else tuple(longer)
    found = search_chain(axes, types, most, max_steps, copies_gaps=True)
    return (found,) if found else _in_parts(axes, types, most, max_steps)


def _in_parts(axes: tuple[Axis, ...], types: Sequence[TensorDataType], most: int, max_steps: int) -> tuple[Chain, ...]:
    """Chains whose last tiles each write a part of the output, from the input or from all of it in scratch memory."""
    direct = covering_tiles(axes, types, most, max_steps)
    chains = [Chain(direct, ())] if direct else []
    lengths = [axis.length for axis in axes]
    strides = packed_strides(lengths)
    to_packed = coalesce(Axis(axis.length, axis.source, stride) for axis, stride in zip(axes, strides, strict=True))
    parts = covering_tiles(unpacking(axes), types, most, max_steps) if to_packed != axes else None
    if parts:
        chains += (
            Chain((*packing.tiles, *parts), (*packing.scratch_sizes, math.prod(lengths)))
            for packing in chains_of(to_packed, types, most, max_steps)
        )
    return tuple(sorted(chains, key=lambda chain: chain.expense))


def _undivided(axes: Sequence[Axis], types: Sequence[TensorDataType]) -> tuple[TensorDataType, ...]:
    """The types that divide neither the tile's own elements nor, where no type has their size, the largest ones."""
    sizes = [size for carrier in types if in_units(axes, size := ELEMENT_SIZES[carrier]) is not None]
    least = min(max(sizes), ELEMENT_SIZES[types[0]])
    return tuple(carrier for carrier in types if ELEMENT_SIZES[carrier] >= least)
