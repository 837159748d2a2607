"""What is planned for a tile, and that it writes what one strided copy would."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from dml_tile.execution.moves import Copy, Crosswise, Multiply, Passes, Stream
from dml_tile.execution.planner import FEW_BYTES, MANY_PLAIN_BYTES, plan_tile
from dml_tile.execution.threads import Region, run
from tests.helpers.tilings import Tiling, assert_equal

M = 2**20

PLANS = {
    # what is tiled: the tile, and the moves that it takes
    "the reference page's example": (Tiling(4, (1, 1, 2, 3), (1, 1, 3, 3)), [Copy]),
    "a plain copy": (Tiling(4, (M,), (1,)), [Copy]),
    "a batch": (Tiling(4, (1, 50_000), (40, 1)), [Copy]),
    "rows of one row": (Tiling(4, (1, 1024), (1024, 1)), [Copy]),
    "each byte twice": (Tiling(1, (M, 1), (1, 2)), [Multiply]),
    "each half twice": (Tiling(2, (M, 1), (1, 2)), [Multiply]),
    "each float twice": (Tiling(4, (M, 1), (1, 2)), [Multiply]),
    "each byte three times": (Tiling(1, (M, 1), (1, 3)), [Passes]),
    "each byte six times, which is twice and three times": (Tiling(1, (M, 1), (1, 6)), [Multiply, Passes]),
    "each byte 256 times": (Tiling(1, (M, 1), (1, 256)), [Copy]),
    "rows of pixels of three floats": (Tiling(4, (64, 512, 3), (2, 2, 2)), [Passes, Copy]),
    "short rows, stage by stage": (Tiling(1, (3, 2) * 4, (2, 2) * 4), [Multiply, Copy, Copy, Copy]),
    "a transposed input": (Tiling(4, (1000, 3000), (1, 1), source_strides=(4, 4000)), [Crosswise]),
    "a transposed input whose rows are aliased": (Tiling(4, (512, 1024), (1, 1), (4, 2048 * 4)), [Crosswise]),
    "a transposed input, repeated": (Tiling(4, (300, 700), (2, 2), source_strides=(4, 1200)), [Crosswise, Copy]),
    "channels first from channels last": (
        Tiling(4, (1, 64, 56, 56), (2, 1, 1, 1), (64 * 56 * 56 * 4, 4, 56 * 64 * 4, 64 * 4)),
        [Crosswise, Copy],
    ),
    "three channels last from channels first": (
        Tiling(1, (1, 3, 500, 500), (1, 1, 1, 1), None, (3 * 500 * 500, 1, 500 * 3, 3)),
        [Passes],
    ),
    "a few channels last from channels first": (
        Tiling(4, (1, 16, 56, 56), (1, 1, 1, 1), None, (16 * 56 * 56 * 4, 4, 56 * 16 * 4, 16 * 4)),
        [Copy],
    ),
    "channels last from channels first": (
        Tiling(4, (1, 64, 56, 56), (1, 1, 1, 1), None, (64 * 56 * 56 * 4, 4, 56 * 64 * 4, 64 * 4)),
        [Crosswise],
    ),
    "bytes of a transposed input with long columns": (
        Tiling(1, (65, 200_000), (2, 1), source_strides=(1, 65)),
        [Crosswise],
    ),
    "padded rows": (Tiling(4, (256, 500), (2, 2), (2048, 4), (8192, 4)), [Copy]),
    "elements apart": (Tiling(4, (M,), (2,), (8,), (8,)), [Copy]),
    "a reversed input": (Tiling(2, (M,), (2,), (-2,), None), [Copy]),
}


@pytest.mark.parametrize(("tiling", "moves"), PLANS.values(), ids=PLANS)
def test_a_tile_takes_these_moves(tiling: Tiling, moves: list[type]) -> None:
    plan = tiling.plan
    assert [type(move) for move in (*plan.beforehand, *plan.moves)] == moves
    assert_equal(tiling, plan)


@pytest.mark.parametrize(("run", "repeat"), [(3, 9_000_001), (12, 2**21), (37, 1000), (64, 300_007), (1999, 11_003)])
def test_a_run_that_is_repeated_is_streamed_from_a_pattern_that_is_made_once(run: int, repeat: int) -> None:
    tiling = Tiling(1, (run,), (repeat,))
    plan = tiling.plan
    assert len(plan.beforehand) == 1
    assert [type(move) for move in plan.moves] == [Stream]
    assert plan.scratch[0] % run == 0
    assert plan.scratch[0] % 64 == 0 or run > 256
    assert (plan.block_count > 1) == (plan.size >= MANY_PLAIN_BYTES)
    assert_equal(tiling, plan)


MANY = MANY_PLAIN_BYTES


@pytest.mark.parametrize("bytes_written", [FEW_BYTES, FEW_BYTES + 8, MANY - 8, MANY, MANY + 8])
def test_the_bounds_are_no_bounds_of_what_is_written(bytes_written: int) -> None:
    tiling = Tiling(8, (bytes_written // 8,), (1,))
    plan = tiling.plan
    assert plan.size == bytes_written
    assert (plan.block_count > 1) == (bytes_written >= MANY)
    assert_equal(tiling, plan)


def test_a_long_run_is_copied_in_pieces_of_a_megabyte_and_more() -> None:
    tiling = Tiling(4, (M + 3,), (5,))
    plan = tiling.plan
    assert plan.block_count > 1
    assert 4 * plan.chunk >= M
    assert_equal(tiling, plan)


@pytest.mark.parametrize("run", [*range(1, 17), 23, 24, 31, 32, 33, 47, 48, 63, 64, 127, 128, 129, 2047, 2048, 2049])
@pytest.mark.parametrize("repeat", [2, 3, 5, 64])
def test_runs_of_every_length_are_repeated(run: int, repeat: int) -> None:
    count = 20_000 // (run * repeat) + 1
    tiling = Tiling(1, (count, run), (1, repeat))
    assert_equal(tiling, tiling.plan)
    outer = Tiling(1, (count, run), (3, repeat))
    assert_equal(outer, outer.plan)


@pytest.mark.parametrize("tiling", [case[0] for case in PLANS.values()], ids=PLANS)
def test_blocks_come_to_the_whole_and_scratch_is_bounded(tiling: Tiling) -> None:
    plan = tiling.plan
    assert sum(count for _, _, count in plan.blocks()) == plan.chunked.length * math.prod(
        axis.length for axis in plan.loops
    )
    assert len(list(plan.blocks())) == plan.block_count
    assert sum(plan.scratch) <= M


def test_a_plan_tells_what_it_moves() -> None:
    assert str(Tiling(4, (1, 1, 2, 3), (1, 1, 3, 3)).plan) == (
        "216 bytes in 1 block\n  216 bytes: 1 x 3 x 2 x 3 runs of 12 bytes, in one copy"
    )
    assert str(Tiling(1, (M, 1), (1, 6)).plan).splitlines() == [
        f"{6 * M} bytes in 3 blocks",
        "  699052 bytes: 349526 runs of 1 bytes, multiplied to 2 bytes",
        "  2097156 bytes: 349526 runs of 2 bytes, in 3 passes",
    ]
    assert str(Tiling(4, (3,), (M,)).plan).splitlines()[1:] == [
        "  once: 16320 bytes: 1 x 1360 runs of 12 bytes, in one copy",
        "  2088960 bytes: 174080 runs of 12 bytes, in strips of 1360",
    ]
    assert "in rectangles" in str(PLANS["a transposed input"][0].plan)


def test_plans_are_kept() -> None:
    tiling = Tiling(4, (5, 7), (2, 2))
    assert tiling.plan is tiling.plan
    assert plan_tile.cache_info().maxsize == 256


@pytest.mark.parametrize(
    "tiling",
    [
        Tiling(4, (40, 1024, 512), (1, 1, 1), (2**21, 4, 4096)),
        Tiling(8, (2048, 512), (1, 2), (8, 16384)),
        Tiling(4, (64, 112, 112), (2, 1, 1), (4, 112 * 64 * 4, 256)),
        Tiling(1, (65, 200_000), (2, 1), source_strides=(1, 65)),
        Tiling(1, (2**20, 1), (2, 6)),
    ],
)
def test_a_megabyte_beside_the_output_is_enough(tiling: Tiling) -> None:
    plan = tiling.plan
    size = [tiling.size * math.prod(shape) for shape in (tiling.sizes, tiling.shape)]
    source, destination = (Region(np.zeros(each, np.uint8)) for each in size)
    tracemalloc.start()
    try:
        run(plan, source, destination, threads=1)
        assert tracemalloc.get_traced_memory()[1] <= M + 2**16  # Python's own objects
    finally:
        tracemalloc.stop()
