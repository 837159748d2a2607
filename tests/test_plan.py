"""The plan of a tile: it writes what one strided copy would, in blocks, beside little scratch memory."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from dml_tile.execution.numpy_calls import Region
from dml_tile.execution.threads import run
from dml_tile.execution.thresholds import BLOCK, FEW, LARGE, SCRATCH, SHORT
from tests.helpers.tilings import Tiling, assert_equal

M = 2**20

TILINGS = {
    "the reference page's example": Tiling(4, (1, 1, 2, 3), (1, 1, 3, 3)),
    "one element": Tiling(8, (), ()),
    "a plain copy": Tiling(4, (M,), (1,)),
    "a batch": Tiling(4, (1, 50_000), (40, 1)),
    "a long row, a few times": Tiling(4, (M + 3,), (5,)),
    "rows of one row": Tiling(4, (1, 1024), (1024, 1)),
    "a feature map, twice as large": Tiling(4, (1, 64, 56, 56), (1, 1, 2, 2)),
    "each byte twice": Tiling(1, (M, 1), (1, 2)),
    "each byte twice, in short rows": Tiling(1, (2**12, 5, 1), (3, 2, 2)),
    "each half twice": Tiling(2, (M, 1), (1, 2)),
    "each float twice": Tiling(4, (M, 1), (1, 2)),
    "each byte three times": Tiling(1, (M, 1), (1, 3)),
    "each byte six times": Tiling(1, (M, 1), (1, 6)),
    "each byte 256 times": Tiling(1, (M // 4, 1), (1, 256)),
    "one byte": Tiling(1, (1,), (5 * M,)),
    "rows of pixels of three floats": Tiling(4, (64, 512, 3), (2, 2, 2)),
    "many dimensions of a few bytes": Tiling(1, (3, 2) * 4, (2, 2) * 4),
    "a transposed input": Tiling(4, (1000, 3000), (1, 1), source_strides=(4, 4000)),
    "a transposed input of aliased rows": Tiling(4, (512, 1024), (1, 1), (4, 2048 * 4)),
    "a transposed input, repeated": Tiling(4, (300, 700), (2, 2), source_strides=(4, 1200)),
    "channels first from channels last": Tiling(
        4, (1, 64, 56, 56), (2, 1, 1, 1), (64 * 56 * 56 * 4, 4, 56 * 64 * 4, 64 * 4)
    ),
    "three channels last from channels first": Tiling(
        1, (1, 3, 500, 500), (1, 1, 1, 1), None, (3 * 500 * 500, 1, 500 * 3, 3)
    ),
    "channels last from channels first": Tiling(
        4, (1, 64, 56, 56), (1, 1, 1, 1), None, (64 * 56 * 56 * 4, 4, 56 * 64 * 4, 64 * 4)
    ),
    "bytes of a transposed input with long columns": Tiling(1, (65, 200_000), (2, 1), source_strides=(1, 65)),
    "padded rows": Tiling(4, (256, 500), (2, 2), (2048, 4), (8192, 4)),
    "elements apart": Tiling(4, (M,), (2,), (8,), (8,)),
    "a reversed input": Tiling(2, (M,), (2,), (-2,), None),
    "many repeats around a large input": Tiling(1, (3, 100_001), (333, 1), (100_003, 1)),
}


@pytest.mark.parametrize("tiling", TILINGS.values(), ids=TILINGS)
def test_a_plan_writes_what_one_copy_would(tiling: Tiling) -> None:
    assert_equal(tiling, tiling.plan)


@pytest.mark.parametrize("tiling", TILINGS.values(), ids=TILINGS)
def test_scratch_memory_is_bounded_and_large_outputs_are_parted(tiling: Tiling) -> None:
    plan = tiling.plan
    assert plan.size == tiling.size * math.prod(tiling.shape)
    assert plan.scratch[-1] <= 4 * SCRATCH
    assert len(plan.blocks) > 1 or plan.size <= LARGE


@pytest.mark.parametrize(("run", "repeat"), [(3, 9_000_001), (12, 2**21), (37, 1000), (64, 300_007), (1999, 11_003)])
def test_a_run_that_is_repeated_is_written_from_a_pattern(run: int, repeat: int) -> None:
    tiling = Tiling(1, (run,), (repeat,))
    assert bool(tiling.plan.scratch[-1]) == (run < SHORT)
    assert_equal(tiling, tiling.plan)


@pytest.mark.parametrize("elements", [FEW, FEW + 1, BLOCK // 4, BLOCK // 4 + 1])
@pytest.mark.parametrize("stride", [8, 16])
def test_no_bound_is_a_bound_of_what_is_written(elements: int, stride: int) -> None:
    tiling = Tiling(8, (elements,), (1,), (stride,))
    assert tiling.plan.size == 8 * elements
    assert_equal(tiling, tiling.plan)


@pytest.mark.parametrize("run", [*range(1, 17), 23, 24, 31, 32, 33, 47, 48, 63, 64, 127, 128, 129, 2047, 2048, 2049])
@pytest.mark.parametrize("repeat", [2, 3, 5, 64])
def test_runs_of_every_length_are_repeated(run: int, repeat: int) -> None:
    count = 20_000 // (run * repeat) + 1
    tiling = Tiling(1, (count, run), (1, repeat))
    assert_equal(tiling, tiling.plan)
    outer = Tiling(1, (count, run), (3, repeat))
    assert_equal(outer, outer.plan)


def test_a_plan_tells_what_it_moves() -> None:
    assert str(Tiling(4, (1, 1, 2, 3), (1, 1, 3, 3)).plan) == (
        "216 bytes in 1 block\n  to the output: 3 x 2 x 3 runs of 12 bytes in 1 call"
    )
    assert str(Tiling(4, (64, 512, 3), (2, 2, 2)).plan).splitlines() == [
        "3145728 bytes in 4 blocks",
        "  to scratch memory: 16 x 512 x 2 runs of 12 bytes in 6 calls",
        "  to the output: 2 x 16 x 2 runs of 12288 bytes in 1 call",
    ]


def test_plans_are_kept() -> None:
    tiling = Tiling(4, (5, 7), (2, 2))
    assert tiling.plan is tiling.plan


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
        assert tracemalloc.get_traced_memory()[1] <= 2 * M  # the calls that are kept are among it
    finally:
        tracemalloc.stop()
