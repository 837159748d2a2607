"""Writing the blocks of a plan by one thread or several."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dml_tile.execution import mover
from dml_tile.execution.mover import MAX_THREADS, VARIABLE, BoundTile, thread_count
from dml_tile.execution.plan import LARGE
from dml_tile.execution.steps import Call, Memories, Step
from tests.helpers.tilings import Tiling, assert_equal, executed

BIG = Tiling(4, (4400, 1001), (1, 2))
SMALL = Tiling(4, (2, 3), (3, 3))
TILINGS = {
    "one step for each block": BIG,
    "a plain copy": Tiling(4, (5_000_001,), (1,)),
    "padded rows": Tiling(4, (500, 5000), (1, 2), (20_004, 4), (50_004, 4)),
    "scratch memory for each block": Tiling(4, (1024, 512, 3), (3, 2, 2)),
    "one run": Tiling(4, (3,), (2**20 * 3 // 2,)),
    "a large output": Tiling(4, (70, 3, 5, 700), (2, 2, 3, 2)),
}


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("tiling", TILINGS.values(), ids=TILINGS)
def test_any_number_of_threads_writes_the_same(tiling: Tiling, threads: int) -> None:
    assert len(tiling.plan.blocks) > 1
    assert tiling.plan.size > LARGE
    assert_equal(tiling, threads)


def test_the_argument_or_the_environment_says_how_many_threads_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "3")
    assert [thread_count(BIG.plan, threads) for threads in (None, 2, 8)] == [3, 2, min(8, len(BIG.plan.blocks))]
    assert thread_count(SMALL.plan, 8) == 1


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the processes of this system have no affinity")
@pytest.mark.parametrize("processors", [1, 5])
def test_each_processor_has_a_thread_by_default(processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(processors)))
    assert thread_count(BIG.plan, None) == processors


@pytest.mark.parametrize("text", ["", "0", "-1", "two", "1.5", "\u0663", " 3", "3" * 5000])
def test_a_wrong_number_in_the_environment_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
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

    def waiting(step: Step) -> Call:
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

    def failing(step: Step) -> Call:
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
def test_a_pool_that_starts_no_thread_leaves_the_work_to_the_caller(
    is_closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
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
from tests.test_threads import BIG

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
    command = [sys.executable, "-W", "ignore", "-c", code]
    assert subprocess.run(command, capture_output=True, check=True, text=True, timeout=60).stdout == "interrupted\n"


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_forked_child_has_a_pool_of_its_own() -> None:
    code = """
import os
from tests.helpers.tilings import assert_equal
from tests.test_threads import BIG
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
