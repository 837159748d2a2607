"""The coalesced form of a tile, and the plan that is made of it."""

from __future__ import annotations

import pytest

from dml_tile.geometry.axes import Axis, coalesce, tile_axes
from dml_tile.geometry.layout import packed_strides


def axes_of(sizes: list[int], repeats: list[int], strides: list[int] | None = None) -> tuple[Axis, ...]:
    products = [size * repeat for size, repeat in zip(sizes, repeats, strict=True)]
    source = packed_strides(sizes) if strides is None else strides
    return coalesce(tile_axes(sizes, repeats, source, packed_strides(products)))


@pytest.mark.parametrize(
    ("sizes", "repeats", "axes"),
    [
        ([1, 1, 2, 3], [1, 1, 3, 3], [(3, 0, 18), (2, 3, 9), (3, 0, 3), (3, 1, 1)]),
        ([2, 3, 4], [1, 1, 1], [(24, 1, 1)]),
        ([2, 3, 4], [5, 1, 1], [(5, 0, 24), (24, 1, 1)]),
        ([1, 1, 1], [2, 3, 4], [(24, 0, 1)]),
        ([1], [1], []),
        ([4, 1, 3], [1, 7, 1], [(4, 3, 21), (7, 0, 3), (3, 1, 1)]),
    ],
)
def test_neighbours_that_walk_on_alike_are_joined(
    sizes: list[int], repeats: list[int], axes: list[tuple[int, int, int]]
) -> None:
    assert axes_of(sizes, repeats) == tuple(Axis(*axis) for axis in axes)


def test_a_broadcast_dimension_is_an_axis_that_repeats() -> None:
    assert axes_of([5, 3], [2, 1], strides=[0, 1]) == (Axis(10, 0, 3), Axis(3, 1, 1))


def test_a_transposed_input_keeps_its_two_axes() -> None:
    assert axes_of([3, 2], [1, 1], strides=[1, 3]) == (Axis(3, 1, 2), Axis(2, 3, 1))
