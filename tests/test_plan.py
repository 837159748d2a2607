"""The moves of a tile: they write what one strided copy would, in blocks, by one thread or several."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import numpy as np
import pytest

from dml_tile.execution import mover
from dml_tile.execution.mover import MAX_THREADS, THREADS_VARIABLE, BoundTile, Mover, mover_of, thread_count
from dml_tile.execution.plan import ASSIGNED_AT_ONCE, MAX_SCRATCH_BYTES, SHORT_RUN, THREADED_BYTES
from dml_tile.execution.steps import Memories, NumpyCall, Step
from tests.helpers.costs import at_most
from tests.helpers.forks import python
from tests.helpers.tilings import Tiling, assert_equal, executed, set_sizes

M = 2**20
BIG = Tiling(4, (2200, 1001), (1, 2))
SMALL = Tiling(4, (2, 3), (3, 3))

TILINGS = {
    "the reference page's example": Tiling(4, (1, 1, 2, 3), (1, 1, 3, 3)),
    "one element": Tiling(8, (), ()),
    "elements of any size": Tiling(2, (50, 300, 7), (2, 3, 1), (4200, 14, 2)),
    "a plain copy": Tiling(4, (5 * M,), (1,)),
    "a plain copy of odd length": Tiling(1, (5 * M + 3,), (1,)),
    "a batch": Tiling(4, (1, 50_000), (40, 1)),
    "a long row, a few times": Tiling(4, (M + 3,), (5,)),
    "rows of one row": Tiling(4, (1, 1024), (1024, 1)),
    "a feature map, twice as large": Tiling(4, (1, 64, 56, 56), (1, 1, 2, 2)),
    "bytes in runs of 16, as the page on speed draws them": Tiling(1, (4096, 2, 1, 16), (1, 8, 1, 5)),
    "each byte twice": Tiling(1, (M, 1), (1, 2)),
    "each byte twice, in short rows": Tiling(1, (2**12, 5, 1), (3, 2, 2)),
    "each half twice": Tiling(2, (M, 1), (1, 2)),
    "each float twice": Tiling(4, (M, 1), (1, 2)),
    "each byte three times": Tiling(1, (M, 1), (1, 3)),
    "each byte 256 times": Tiling(1, (M // 15, 1), (1, 256)),
    "one byte": Tiling(1, (1,), (5 * M,)),
    "rows of pixels of three floats": Tiling(4, (64, 512, 3), (2, 2, 2)),
    "many dimensions of a few bytes": Tiling(1, (3, 2) * 4, (2, 2) * 4),
    "few repeats of what is packed in several blocks": Tiling(4, (251, 195, 3), (4, 1, 4)),
    "repeats of a short run, a rest among them, with repeats around": Tiling(1, (20, 50), (4, 83)),
    "a transposed input": Tiling(4, (1000, 3000), (1, 1), source_strides=(4, 4000)),
    "a transposed input, repeated": Tiling(4, (300, 700), (2, 2), source_strides=(4, 1200)),
    "channels first from channels last": Tiling(
        4, (1, 64, 56, 56), (2, 1, 1, 1), (64 * 56 * 56 * 4, 4, 56 * 64 * 4, 64 * 4)
    ),
    "three channels last from channels first": Tiling(
        1, (1, 3, 500, 500), (1, 1, 1, 1), None, (3 * 500 * 500, 1, 500 * 3, 3)
    ),
    "bytes of a transposed input with long columns": Tiling(1, (65, 200_000), (2, 1), source_strides=(1, 65)),
    "padded rows": Tiling(4, (256, 500), (2, 2), (2048, 4), (8192, 4)),
    "padded pixels of three bytes": Tiling(1, (2, 9000, 3), (1, 1, 1), (70_000, 7, 1)),
    "elements apart": Tiling(4, (M,), (2,), (8,), (8,)),
    "a reversed input": Tiling(2, (M,), (2,), (-2,), None),
    "a reversed output": Tiling(2, (1000, 30), (2, 3), None, (-180, -2)),
    "many repeats around a large input": Tiling(1, (3, 100_001), (57, 1), (100_003, 1)),
    "one step for each block of a large output": BIG,
    "padded rows of a large output": Tiling(4, (500, 5000), (1, 2), (20_004, 4), (50_004, 4)),
    "scratch memory for each block": Tiling(4, (256, 512, 3), (3, 2, 2)),
    "one short run, a million times": Tiling(4, (3,), (2**20 * 3 // 2,)),
    "a large output": Tiling(4, (70, 3, 5, 170), (2, 2, 3, 2)),
}
SHARED = [name for name, tiling in TILINGS.items() if tiling.plan.size > THREADED_BYTES]
"""The tilings whose blocks several threads may share."""


@pytest.mark.parametrize("tiling", TILINGS.values(), ids=TILINGS)
def test_the_moves_write_what_one_copy_would_by_way_of_little_memory_and_in_parts(tiling: Tiling) -> None:
    assert_equal(tiling, 1)
    plan = tiling.plan
    assert plan.size == tiling.size * math.prod(tiling.shape)
    assert plan.scratch <= MAX_SCRATCH_BYTES
    assert len(plan.blocks) > 1 or plan.size <= THREADED_BYTES


@pytest.mark.parametrize("elements", [ASSIGNED_AT_ONCE, ASSIGNED_AT_ONCE + 1, M, M + 1])
@pytest.mark.parametrize("stride", [8, 16])
def test_no_bound_is_a_bound_of_what_is_written(elements: int, stride: int) -> None:
    assert_equal(Tiling(8, (elements,), (1,), (stride,)))


@pytest.mark.parametrize(
    "run", [*range(1, 17), 23, 24, 31, 32, 33, 50, 63, 64, 65, 127, 128, 129, SHORT_RUN - 1, SHORT_RUN, 2049]
)
@pytest.mark.parametrize("repeat", [2, 3, 5, 64, 83, 1000])
def test_runs_of_every_length_are_repeated(run: int, repeat: int) -> None:
    count = 20_000 // (run * repeat) + 1
    assert_equal(Tiling(1, (count, run), (1, repeat)))
    assert_equal(Tiling(1, (count, run), (5, repeat)))


@pytest.mark.parametrize("memory", [2**10, 2**14])
def test_less_scratch_memory_makes_more_blocks(memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tiling = Tiling(4, (64, 512, 3), (5, 2, 5))
    blocks = len(tiling.plan.blocks)
    set_sizes(monkeypatch, MAX_SCRATCH_BYTES=memory)
    assert tiling.plan.scratch <= memory
    assert len(tiling.plan.blocks) > blocks
    assert_equal(tiling)


def test_a_bound_tile_says_how_its_bytes_are_moved() -> None:
    memory = np.zeros(216, np.uint8)
    assert str(BoundTile(Tiling(4, (1, 1, 2, 3), (1, 1, 3, 3)).plan, memory[:24], memory)) == (
        "216 bytes in 1 block\n  3 x 2 x 3 runs of 12 bytes from the input to the output"
    )
    assert str(Tiling(1, (4096, 2, 1, 16), (1, 8, 1, 5)).plan).splitlines() == [
        "5242880 bytes in 6 blocks",
        "  1366 runs of 16 bytes from the input to scratch memory, taken 6830 times",
        "  683 runs of 160 bytes from scratch memory to the output, taken 5464 times",
    ]


def test_short_runs_are_taken_in_parts() -> None:
    assert str(Tiling(4, (1024, 3), (7, 5)).plan).splitlines() == [
        "430080 bytes in 1 block",
        "  3072 runs of 4 bytes from the input to scratch memory, taken 15360 times",
        "  7 runs of 61440 bytes from scratch memory to the output",
    ]
    assert "taken" not in str(Tiling(8, (4096, 1), (1, 2)).plan)


def test_movers_are_kept_by_their_values() -> None:
    layout = 4, (5, 7), (2, 2), (28, 4), (56, 4)
    assert mover_of(*layout) is mover_of(*layout)
    assert mover_of(*layout) is not mover_of(2, *layout[1:])


@pytest.mark.parametrize(
    "tiling",
    [
        Tiling(4, (40, 1024, 512), (1, 1, 1), (2**21, 4, 4096)),
        Tiling(8, (2048, 512), (1, 2), (8, 16384)),
        Tiling(4, (64, 112, 112), (2, 1, 1), (4, 112 * 64 * 4, 256)),
        Tiling(1, (65, 200_000), (2, 1), source_strides=(1, 65)),
        Tiling(1, (2**20, 1), (2, 6)),
        Tiling(4, (512, 512, 3), (5, 2, 3)),
    ],
)
def test_a_megabyte_beside_the_tensors_is_enough(tiling: Tiling) -> None:
    source, output = (np.zeros(tiling.size * math.prod(shape), np.uint8) for shape in (tiling.sizes, tiling.shape))
    with at_most(M):
        Mover(tiling.plan).write(source, output)


# The blocks of a plan, written by one thread or several


@pytest.mark.parametrize(("name", "threads"), [*zip(SHARED, cycle((2, 8)), strict=False)])
def test_any_number_of_threads_writes_the_same(name: str, threads: int) -> None:
    assert_equal(TILINGS[name], threads)


def test_the_argument_or_the_environment_says_how_many_threads_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, "3")
    assert [thread_count(BIG.plan, threads) for threads in (None, 2, 8)] == [3, 2, min(8, len(BIG.plan.blocks))]
    assert thread_count(SMALL.plan, 8) == 1


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the processes of this system have no affinity")
@pytest.mark.parametrize("processors", [1, 5])
def test_each_processor_has_a_thread_by_default(processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(THREADS_VARIABLE, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(processors)))
    assert thread_count(BIG.plan, None) == processors


@pytest.mark.parametrize("text", ["", "0", "-1", "two", "1.5", "\u0663", " 3", "3" * 5000])
def test_a_wrong_number_in_the_environment_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, text)
    with pytest.raises(ValueError, match="a positive integer was expected"):
        thread_count(BIG.plan, None)


@pytest.mark.parametrize("tiling", [BIG, SMALL])
def test_a_wrong_number_of_threads_is_an_error(tiling: Tiling) -> None:
    with pytest.raises(ValueError, match="threads is 0; a positive integer was expected"):
        executed(tiling, 0)


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_is_reported_in_the_calling_thread(threads: int) -> None:
    told: list[tuple[int, int, threading.Thread]] = []
    executed(BIG, threads, lambda done, of: told.append((done, of, threading.current_thread())))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert {of for _, of, _ in told} == {BIG.plan.size}
    assert {thread for _, _, thread in told} == {threading.current_thread()}
    assert [done for done, _, _ in told].count(BIG.plan.size) == 1
    assert told[-1][0] == BIG.plan.size


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_stops_within_a_block(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    told, blocks = [], []
    caller, is_raised = threading.current_thread(), threading.Event()
    call = Step.call

    def waiting(step: Step) -> NumpyCall:
        def wait(memories: Memories, starts: Sequence[int]) -> None:
            assert threading.current_thread() is caller or is_raised.wait(60)
            blocks.append(starts)
            call(step)(memories, starts)

        return wait

    def interrupt(done: int, of: int) -> None:
        told.append(done)
        is_raised.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(Step, "call", waiting)
    with pytest.raises(KeyboardInterrupt):
        executed(BIG, threads, interrupt)
    assert len(told) == 1
    assert told[0] < BIG.plan.size
    assert len(blocks) <= threads


@pytest.mark.parametrize("tiling", [TILINGS["scratch memory for each block"], Tiling(4, (512, 512, 3), (3, 1, 2))])
def test_after_an_exception_the_next_run_is_right(tiling: Tiling) -> None:
    source, output = (np.zeros(4 * int(np.prod(shape)), np.uint8) for shape in (tiling.sizes, tiling.shape))
    bound = BoundTile(tiling.plan, source, output)

    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bound.run(2, interrupt)
    source[:] = np.random.default_rng(1).integers(0, 256, source.size, np.uint8)
    bound.run(2)
    expected = np.tile(source.view(np.uint32).reshape(tiling.sizes), tiling.repeats)
    np.testing.assert_array_equal(output.view(np.uint32), expected.ravel())
    source[:] = 7
    bound.run(2)
    assert (output == 7).all()


def test_what_a_helper_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    caller, has_failed = threading.current_thread(), threading.Event()
    call = Step.call

    def failing(step: Step) -> NumpyCall:
        def fail_elsewhere(memories: Memories, starts: Sequence[int]) -> None:
            if threading.current_thread() is not caller:
                has_failed.set()
                raise MemoryError("in a helper")
            call(step)(memories, starts)

        return fail_elsewhere

    monkeypatch.setattr(Step, "call", failing)
    with pytest.raises(MemoryError, match="in a helper"):
        executed(BIG, 3, lambda done, of: has_failed.wait(60))


def test_many_callers_share_the_pool() -> None:
    with ThreadPoolExecutor(4) as callers:
        list(callers.map(lambda _: assert_equal(BIG, 3), range(4)))
    assert 1 <= sum(thread.name.startswith("dml_tile") for thread in threading.enumerate()) < MAX_THREADS


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_pool_without_threads_leaves_work_to_the_caller(is_closed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    is_done = threading.Event()
    with ThreadPoolExecutor(1) as busy:
        busy.submit(is_done.wait, 60)
        if is_closed:
            busy.shutdown(wait=False)
        monkeypatch.setattr(mover, "_pool", lambda: busy)
        assert_equal(BIG, 4)
        is_done.set()


def test_a_process_ends_though_ctrl_c_came_while_a_thread_was_started() -> None:
    code = """
import threading
from tests.helpers.tilings import assert_equal
from tests.test_plan import BIG

start = threading.Thread.start

def interrupted(thread):
    start(thread)
    threading.Thread.start = start
    raise KeyboardInterrupt

threading.Thread.start = interrupted
try:
    assert_equal(BIG, 2)
except KeyboardInterrupt:
    assert_equal(BIG, 2)
    print("interrupted")
"""
    command = [*python(), "-c", code]
    assert subprocess.run(command, capture_output=True, check=True, text=True, timeout=60).stdout == "interrupted\n"


@pytest.mark.posix
@pytest.mark.long
def test_a_forked_child_has_a_pool_of_its_own() -> None:
    code = """
import os
from tests.helpers.tilings import assert_equal
from tests.test_plan import BIG
assert_equal(BIG, 4)
child = os.fork()
if not child:
    assert_equal(BIG, 4)
    os._exit(7)
assert_equal(BIG, 4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=120)
    assert done.stdout == "7\n"
