"""Chains of tiles, each of a data type that carries the bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dml_tile.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.geometry.axes import Axis
from dml_tile.geometry.byte_walk import Dimension, dimensions_of, in_units


class CarriedTile(NamedTuple):
    """The dimensions of one tile, in elements of the data type that carries the bits."""

    carrier: TensorDataType
    dimensions: tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Tiles in their order: one for each scratch buffer, then those that write the output from the last of them."""

    tiles: tuple[CarriedTile, ...]
    scratch_sizes: tuple[int, ...]
    """In bytes, of what each of the first tiles writes."""

    @property
    def expense(self) -> tuple[int, int]:
        """The number of tiles, then the bytes of scratch memory; the cheapest chain has the least."""
        return len(self.tiles), sum(self.scratch_sizes)


def as_one_tile(axes: Sequence[Axis], types: Sequence[TensorDataType], most: int) -> CarriedTile | None:
    """One tile of at most ``most`` dimensions that walks coalesced axes in bytes, in the first type that allows it."""
    for carrier in types:
        in_elements = in_units(axes, ELEMENT_SIZES[carrier])
        if in_elements is not None and len(dimensions := dimensions_of(in_elements)) <= most:
            return CarriedTile(carrier, dimensions)
    return None
