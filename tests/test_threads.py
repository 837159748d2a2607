"""Running a plan by one thread or several."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from dml_tile.execution import threads as execution_threads
from dml_tile.execution.numpy_calls import Region
from dml_tile.execution.threads import MAX_THREADS, VARIABLE, Work, run, thread_count
from dml_tile.execution.thresholds import LARGE
from tests.helpers.tilings import Tiling, assert_equal, executed

BIG = Tiling(4, (4400, 1001), (1, 2))
SMALL = Tiling(4, (2, 3), (3, 3))
TILINGS = {
    "one copy": BIG,
    "scratch memory for each block": Tiling(4, (1024, 512, 3), (2, 1, 2)),
    "scratch memory that is filled once": Tiling(4, (3,), (2**20 * 3 // 2,)),
    "a large output": Tiling(4, (70, 3, 5, 700), (2, 2, 3, 2)),
}


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("tiling", TILINGS.values(), ids=TILINGS)
def test_any_number_of_threads_writes_the_same(tiling: Tiling, threads: int) -> None:
    assert len(tiling.plan.blocks) > 1
    assert tiling.plan.size > LARGE
    assert_equal(tiling, tiling.plan, threads)


def test_a_small_tile_takes_one_thread() -> None:
    parted = Tiling(4, (2**9, 2**10), (1, 1)).plan
    assert thread_count(parted, 8) == thread_count(SMALL.plan, 8) == 1
    assert thread_count(BIG.plan, 8) == 8


def test_the_environment_says_how_many_threads_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "3")
    assert thread_count(BIG.plan, None) == 3
    assert thread_count(BIG.plan, 2) == 2


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


def test_a_wrong_number_of_threads_is_an_error() -> None:
    with pytest.raises(ValueError, match="threads is 0; a positive integer was expected"):
        run(SMALL.plan, Region(np.zeros(24, np.uint8)), Region(np.zeros(216, np.uint8)), threads=0)


@pytest.mark.parametrize("threads", [1, 3])
def test_progress_is_told_in_the_calling_thread(threads: int) -> None:
    told: list[tuple[int, int, Any]] = []
    executed(BIG, BIG.plan, threads, lambda done, of: told.append((done, of, threading.current_thread())))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert {of for _, of, _ in told} == {BIG.plan.size}
    assert {thread for _, _, thread in told} == {threading.current_thread()}
    assert [done for done, _, _ in told].count(BIG.plan.size) == 1
    assert told[-1][0] == BIG.plan.size


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_stops_within_a_block(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    caller, is_raised = threading.current_thread(), threading.Event()
    do = execution_threads._Worker.do

    def waiting(worker: Any, block: int) -> None:
        assert threading.current_thread() is caller or is_raised.wait(60)
        do(worker, block)

    def interrupt(done: int, of: int) -> None:
        told.append(done)
        is_raised.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(execution_threads._Worker, "do", waiting)
    with pytest.raises(KeyboardInterrupt):
        executed(BIG, BIG.plan, threads, interrupt)
    assert len(told) == 1
    assert told[0] < BIG.plan.size


def test_after_an_exception_the_next_run_is_right() -> None:
    tiling = TILINGS["scratch memory for each block"]
    source, output = (np.zeros(4 * int(np.prod(shape)), np.uint8) for shape in (tiling.sizes, tiling.shape))
    work = Work(tiling.plan, Region(source), Region(output))

    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work.run(2, interrupt)
    source[:] = np.random.default_rng(1).integers(0, 256, source.size, np.uint8)
    work.run(2)
    expected = np.tile(source.view(np.uint32).reshape(tiling.sizes), tiling.repeats)
    np.testing.assert_array_equal(output.view(np.uint32), expected.ravel())
    source[:] = 7
    work.run(2)
    assert (output == 7).all()


def test_what_a_helper_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    caller, has_failed = threading.current_thread(), threading.Event()
    do = execution_threads._Worker.do

    def fails_elsewhere(worker: Any, block: int) -> None:
        if threading.current_thread() is not caller:
            has_failed.set()
            raise MemoryError("in a helper")
        do(worker, block)

    monkeypatch.setattr(execution_threads._Worker, "do", fails_elsewhere)
    with pytest.raises(MemoryError, match="in a helper"):
        executed(BIG, BIG.plan, 3, lambda done, of: has_failed.wait(60))


def test_many_callers_share_the_helpers() -> None:
    with ThreadPoolExecutor(4) as callers:
        list(callers.map(lambda _: assert_equal(BIG, BIG.plan, 3), range(4)))
    assert 1 <= sum(thread.name.startswith("dml_tile") for thread in threading.enumerate()) < MAX_THREADS


def test_helpers_that_are_busy_leave_the_work_to_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(execution_threads, "_start", started.append)  # no helper comes
    assert_equal(BIG, BIG.plan, 4)
    assert len(started) == 3


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_forked_child_has_helpers_of_its_own() -> None:
    code = """
import os
from tests.helpers.tilings import assert_equal
from tests.test_threads import BIG
assert_equal(BIG, BIG.plan, 4)
child = os.fork()
if not child:
    assert_equal(BIG, BIG.plan, 4)
    os._exit(7)
assert_equal(BIG, BIG.plan, 4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=120)
    assert done.stdout == "7\n"
