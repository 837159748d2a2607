"""How the executor moves the bytes of one tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dml_tile.axes import Axis, coalesce, tile_axes


@dataclass(frozen=True, slots=True)
class Plan:
    """One strided copy of elements, over coalesced axes whose strides are in bytes."""

    element_size: int
    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.length for axis in self.axes)

    @property
    def source_strides(self) -> tuple[int, ...]:
        return tuple(axis.source for axis in self.axes)

    @property
    def destination_strides(self) -> tuple[int, ...]:
        return tuple(axis.destination for axis in self.axes)


def plan_tile(
    element_size: int,
    sizes: Sequence[int],
    repeats: Sequence[int],
    source_strides: Sequence[int],
    destination_strides: Sequence[int],
) -> Plan:
    """Plan the tile of an input of ``sizes``; the strides, in bytes, are the input's and the output's."""
    return Plan(element_size, coalesce(tile_axes(sizes, repeats, source_strides, destination_strides)))
