"""Several tiles that write the parts of an output that takes too many dimensions for one.

Every tile begins at the first byte of its buffers, so each part contains the output's first element. Some axes are
walked at once, along a line through the first element: the line in direction (1, 2) advances one index of the first
axis and two of the second. The lines in all directions without a common divisor meet every element of these axes, so
the tiles that walk one such line each, and the other axes whole, write the output. For two axes of two elements these
are three tiles: along either axis, and along both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice, product

from dml_tile.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.geometry.axes import Axis, coalesce
from dml_tile.geometry.byte_walk import dimensions_of, in_units
from dml_tile.lowering.chain import CarriedTile, as_one_tile


def covering_tiles(
    axes: Sequence[Axis], types: Sequence[TensorDataType], most: int, max_tiles: int
) -> tuple[CarriedTile, ...] | None:
    """Tiles of at most ``most`` dimensions that together walk axes in bytes; None if there are more than ``max_tiles``.

    They are one tile, or as many as there are directions in which lines walk the shortest axes, as few of these as
    leave the dimensions for the others. The time taken grows with ``max_tiles``, not with the axes' lengths.
    """
    if max_tiles < 1:
        return None
    if whole := as_one_tile(coalesce(axes), types, most):
        return (whole,)
    fewest: tuple[CarriedTile, ...] | None = None
    for carrier in types:
        in_elements = in_units(coalesce(axes), ELEMENT_SIZES[carrier])
        parts = _parts(in_elements, most, max_tiles) if in_elements is not None else None
        if parts and (fewest is None or len(parts) < len(fewest)):
            fewest = tuple(CarriedTile(carrier, dimensions_of(part)) for part in parts)
    return fewest


def _parts(axes: Sequence[Axis], most: int, max_parts: int) -> list[tuple[Axis, ...]] | None:
    shortest_first = sorted(range(len(axes)), key=lambda i: axes[i].length)
    for count in range(2, len(axes) + 1):
        joined = sorted(shortest_first[:count])
        directions = _directions([axes[i].length for i in joined], max_parts)
        if directions is None:
            return None  # more axes have more directions
        parts = [_along(axes, joined, direction) for direction in directions]
        if all(len(dimensions_of(part)) <= most for part in parts):
            return parts
    return None


def _directions(lengths: Sequence[int], most: int) -> list[tuple[int, ...]] | None:
    """The indices other than 0 without a common divisor; None if there are more than ``most``."""
    if max(lengths) > most:  # at least one starts with each index of an axis
        return None
    indices = product(*map(range, lengths))
    found = list(islice((index for index in indices if math.gcd(*index) == 1), most + 1))
    return found if len(found) <= most else None


def _along(axes: Sequence[Axis], joined: Sequence[int], direction: Sequence[int]) -> tuple[Axis, ...]:
    """The axes, those that are ``joined`` replaced by one that walks along a direction."""
    advances = dict(zip(joined, direction, strict=True))
    line = Axis(
        min((axes[i].length - 1) // advance + 1 for i, advance in advances.items() if advance),
        sum(advance * axes[i].source for i, advance in advances.items()),
        sum(advance * axes[i].destination for i, advance in advances.items()),
    )
    parted = [line if i == joined[0] else axis for i, axis in enumerate(axes) if i == joined[0] or i not in advances]
    return coalesce(parted)
