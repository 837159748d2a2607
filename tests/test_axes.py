"""The coalesced form of a tile."""

from __future__ import annotations

import pytest

from dml_tile.geometry.axes import coalesce, tile_axes
from dml_tile.geometry.layout import packed_strides


@pytest.mark.parametrize(
    ("sizes", "repeats", "strides", "axes"),
    [
        ([1, 1, 2, 3], [1, 1, 3, 3], None, [(3, 0, 18), (2, 3, 9), (3, 0, 3), (3, 1, 1)]),
        ([2, 3, 4], [1, 1, 1], None, [(24, 1, 1)]),
        ([2, 3, 4], [5, 1, 1], None, [(5, 0, 24), (24, 1, 1)]),
        ([1, 1, 1], [2, 3, 4], None, [(24, 0, 1)]),
        ([1], [1], None, []),
        ([4, 1, 3], [1, 7, 1], None, [(4, 3, 21), (7, 0, 3), (3, 1, 1)]),
        ([5, 3], [2, 1], [0, 1], [(10, 0, 3), (3, 1, 1)]),  # a broadcast dimension repeats
        ([3, 2], [1, 1], [1, 3], [(3, 1, 2), (2, 3, 1)]),  # a transposed input keeps its two axes
    ],
)
def test_neighbours_that_walk_on_alike_are_joined(
    sizes: list[int], repeats: list[int], strides: list[int] | None, axes: list[tuple[int, int, int]]
) -> None:
    products = [size * repeat for size, repeat in zip(sizes, repeats, strict=True)]
    source = packed_strides(sizes) if strides is None else strides
    assert coalesce(tile_axes(sizes, repeats, source, packed_strides(products))) == tuple(axes)
