"""Tiles with strides that one tile of an older target cannot do: by exhaustive search, all of them have a chain."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from itertools import permutations, product
from typing import Final

import numpy as np
import pytest

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.execution.executor import described
from dml_tile.geometry.axes import ByteWalk, axes_in_units, dimensions_of, unpacking
from dml_tile.lowering.choice import chains_of
from dml_tile.lowering.lower import lower
from dml_tile.rules.check import check
from tests.helpers.descriptors import strided
from tests.helpers.strided_tiles import compare, moves_whole_elements, random_tile, steps_to

SMALLEST: Final = {"1_0": 2, "2_1": 1, "3_1": 1}
"""The bytes of the smallest element that Tile takes at a level."""

HALVED: Final = [2**i for i in range(8)]


def five_dimensions(data_type: str) -> Iterator[TileOperatorDesc]:
    """Yield inputs of two elements in five dimensions with strides of 0 to 2, and inputs and outputs in all orders."""

    inputs = *product(range(3), repeat=5), *permutations((2, 6, 18, 54, 162))
    outputs = *permutations((1, 2, 4, 8, 16)), *permutations((2, 6, 18, 54, 162))
    yield from (strided(data_type, [2] * 5, strides, [1] * 5, None) for strides in inputs)
    yield from (strided(data_type, [2] * 5, None, [1] * 5, spread) for spread in outputs)


def eight_dimensions() -> Iterator[TileOperatorDesc]:
    """Yield tiles of INT64, whose halves take a ninth dimension at 3_1, in rotated and reversed orders."""
    for first in range(8):
        order = [2 * stride for stride in (*HALVED[first:], *HALVED[:first])]
        spreads = order[::-1], [2 * 3**i for i in range(8)]
        for strides, spread in ((order, None), (None, order), *((order, spread) for spread in spreads)):
            yield strided("INT64", [2] * 8, strides, [1] * 8, spread)


@pytest.mark.long
@pytest.mark.parametrize(
    ("data_type", "level", "refused"),
    [("FLOAT32", "1_0", 0), ("UINT8", "1_0", 563), ("UINT8", "2_1", 0), ("UINT8", "3_1", 0)],
)
def test_each_small_tile_is_lowered_where_tiles_can_do_it(data_type: str, level: str, refused: int) -> None:
    # A tile of two elements copies the first and any other, so a chain of such tiles does whatever whole elements can.
    target, values = Target.parse(level), np.random.default_rng(3)
    outcomes = {True: 0, False: 0}
    for desc in five_dimensions(data_type):
        possible = moves_whole_elements(desc, SMALLEST[level])
        assert (steps_to(desc, target, values) is not None) == possible
        outcomes[possible] += 1
    assert outcomes == {True: 603 - refused, False: refused}


def test_halves_in_a_ninth_dimension_are_lowered_at_3_1() -> None:
    target, values = Target.parse("3_1"), np.random.default_rng(3)
    steps = [steps_to(desc, target, values) for desc in eight_dimensions()]
    assert None not in steps
    assert max(step or 0 for step in steps) == 3


def test_random_strided_tiles_write_the_same_bytes() -> None:
    lowered = compare(200, seed=5)
    assert lowered[1]
    assert lowered[2]
    assert max(lowered) > 2


def test_the_steps_are_bounded_where_one_tile_spreads_the_output() -> None:
    draw, searched = random.Random(11), 0
    while searched < 150:
        desc = random_tile(draw)
        source, destination = described(desc)
        size, sizes = ELEMENT_SIZES[source.data_type], source.sizes or ()
        assert source.strides
        assert destination.strides
        axes = ByteWalk.from_elements(size, sizes, desc.repeats or (), source.strides, destination.strides).axes
        elements = axes_in_units(axes, size)
        assert elements is not None
        if len(unpacking(elements)) > 4 or len(dimensions_of(elements)) <= 4:
            continue
        chain, *_ = chains_of(axes, (TensorDataType(source.data_type),), 4, 256)
        assert len(chain.tiles) <= len(dimensions_of(elements)) - 2
        searched += 1


SCATTERED: Final = [2**20 + 1, 2**21 + 3, 2**22 + 5, 3, 5, 2**23 + 7, 11, 2**19 + 9]
SPREAD: Final = [3 * 7**i for i in range(8)]


@pytest.mark.parametrize(
    ("strides", "spread"),
    [([1009, 2003, 4001, 7, 13, 29, 503, 251], None), (SCATTERED, None), (None, SPREAD), (SCATTERED, SPREAD)],
)
def test_a_hostile_tile_takes_no_longer(strides: list[int] | None, spread: list[int] | None) -> None:
    desc = strided("INT64", [3] * 8, strides, [2] * 8, spread)
    assert not check(desc, "6_4")
    began = time.process_time()
    with contextlib.suppress(DmlError):
        lower(desc, "1_0")
    assert time.process_time() - began < 5
