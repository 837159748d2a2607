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

from dml_tile.execution import threads as workers
from dml_tile.execution.threads import MANY_BYTES, VARIABLE, Region, run, thread_count
from tests.helpers.tilings import Tiling, assert_equal, executed

BIG = Tiling(4, (2200, 1001), (1, 2))
SMALL = Tiling(4, (2, 3), (3, 3))
TILINGS = {
    "one move": BIG,
    "stages": Tiling(4, (1024, 512, 3), (2, 1, 2)),
    "a pattern": Tiling(4, (3,), (2**20 * 3 // 2,)),
    "indices one by one": Tiling(4, (70, 3, 5, 700), (2, 2, 3, 2)),
}


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("tiling", TILINGS.values(), ids=TILINGS)
def test_any_number_of_threads_writes_the_same(tiling: Tiling, threads: int) -> None:
    assert tiling.plan.block_count > 1
    assert tiling.plan.size >= MANY_BYTES
    assert_equal(tiling, tiling.plan, threads)


def test_a_small_tile_takes_one_thread() -> None:
    parted = Tiling(1, (2**20, 1), (1, 3)).plan
    assert parted.block_count > 1
    assert thread_count(parted, 8) == thread_count(SMALL.plan, 8) == 1
    assert thread_count(BIG.plan, 8) == 8


def test_the_environment_says_how_many_threads_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "3")
    assert thread_count(BIG.plan, None) == 3
    assert thread_count(BIG.plan, 2) == 2
    monkeypatch.delenv(VARIABLE)
    assert thread_count(BIG.plan, None) >= 1


@pytest.mark.parametrize("text", ["", "0", "-1", "two", "1.5"])
def test_a_wrong_number_in_the_environment_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ValueError, match="a positive integer was expected"):
        thread_count(BIG.plan, None)


def test_a_wrong_number_of_threads_is_an_error() -> None:
    with pytest.raises(ValueError, match="threads is 0; a positive integer was expected"):
        run(SMALL.plan, Region(np.zeros(24, np.uint8)), Region(np.zeros(216, np.uint8)), threads=0)


def test_progress_is_told_in_the_calling_thread_up_to_the_end() -> None:
    told: list[tuple[int, int, Any]] = []
    executed(BIG, BIG.plan, 1, lambda done, of: told.append((done, of, threading.current_thread())))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[-1][:2] == (BIG.plan.size, BIG.plan.size)
    assert {thread for _, _, thread in told} == {threading.current_thread()}


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_stops_within_a_block(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    caller, is_raised = threading.current_thread(), threading.Event()
    steps = workers._Worker.steps

    def waiting(worker: Any, *block: int) -> Any:
        assert threading.current_thread() is caller or is_raised.wait(60)
        return steps(worker, *block)

    def interrupt(done: int, of: int) -> None:
        told.append(done)
        is_raised.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(workers._Worker, "steps", waiting)

    with pytest.raises(KeyboardInterrupt):
        executed(BIG, BIG.plan, threads, interrupt)
    assert len(told) == 1
    assert told[0] < BIG.plan.size


@pytest.mark.parametrize("offset", [0, 1, 24, 63])
def test_scratch_memory_lies_in_cache_lines_as_the_output_does(offset: int) -> None:
    def place(region: Region) -> int:
        return (int(region.memory.ctypes.data) + region.offset) % 64

    output = Region(np.zeros(4096, np.uint8), offset)
    assert place(workers._scratch(1000, output)) == place(output)


def test_what_a_helper_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    caller, has_failed = threading.current_thread(), threading.Event()
    allocate = np.empty

    def fails_elsewhere(*arguments: Any) -> Any:
        if threading.current_thread() is not caller:
            has_failed.set()
            raise MemoryError("in a helper")
        return allocate(*arguments)

    tiling = TILINGS["stages"]
    source, destination = (Region(np.zeros(4 * np.prod(shape), np.uint8)) for shape in (tiling.sizes, tiling.shape))
    monkeypatch.setattr(np, "empty", fails_elsewhere)
    with pytest.raises(MemoryError, match="in a helper"):
        run(tiling.plan, source, destination, 3, progress=lambda done, of: has_failed.wait(60))


def test_many_callers_share_one_pool() -> None:
    with ThreadPoolExecutor(4) as callers:
        list(callers.map(lambda _: assert_equal(BIG, BIG.plan, 3), range(8)))
    assert workers._pool is not None
    assert sum(thread.name.startswith("dml_tile") for thread in threading.enumerate()) <= 64


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_forked_child_has_a_pool_of_its_own() -> None:
    code = """
import os, sys
sys.path.insert(0, sys.argv[1])
from tests.helpers.tilings import assert_equal
from test_workers import BIG
assert_equal(BIG, BIG.plan, 4)
child = os.fork()
if not child:
    assert_equal(BIG, BIG.plan, 4)
    os._exit(7)
assert_equal(BIG, BIG.plan, 4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    command = [sys.executable, "-W", "ignore", "-c", code, os.path.dirname(__file__)]  # noqa: PTH120
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=120)
    assert done.stdout == "7\n"
