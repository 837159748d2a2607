"""Running a plan, by one thread or several; the only global state there is: one pool of them, made when needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from dml_tile.bindings.memory import Bytes
from dml_tile.execution.moves import Step
from dml_tile.execution.plan import Plan

Progress = Callable[[int, int], object]
"""Is told how many of how many bytes are written, in the thread that called, after each of its blocks."""

VARIABLE: Final = "DML_TILE_THREADS"

MANY_BYTES: Final = 2**22
"""From so many bytes on threads share the blocks of a plan."""

_MAX_THREADS: Final = 64
_ALIGNMENT: Final = 64  # bytes; copies between memory that lies alike in the processor's cache lines are faster


class Region(NamedTuple):
    """Memory, and where in it a tensor's first element lies, in bytes."""

    memory: Bytes
    offset: int = 0


def run(
    plan: Plan, source: Region, destination: Region, threads: int | None = None, progress: Progress | None = None
) -> None:
    """Move the bytes of a plan between the memory of the two tensors that it was made for, which do not overlap.

    ``threads`` are at most so many, by default DML_TILE_THREADS, else one for each CPU that the process may use; small
    tiles take one. An exception, as from Ctrl-C, stops all of them within a block. Raises ValueError for a number of
    threads that is not positive.
    """
    blocks = _Blocks(plan)

    def work(progress: Progress | None = None) -> None:
        worker = _Worker(plan, source, destination)
        for step in worker.beforehand():
            step()
        for block in blocks:
            for step in worker.steps(*block):
                step()
            if progress is not None:
                progress(blocks.given * plan.size // plan.block_count, plan.size)

    helpers: list[Future[None]] = []
    try:
        helpers += (_the_pool().submit(work) for _ in range(thread_count(plan, threads) - 1))
        work(progress)
    finally:
        blocks.stop()
        helpers = [helper for helper in helpers if not helper.cancel()]
        for helper in helpers:
            helper.exception()  # waits; what the caller raises itself goes first
    for helper in helpers:
        helper.result()


def all_steps(plan: Plan, source: Region, destination: Region) -> tuple[Step, ...]:
    """What ``run`` does with one thread; whoever keeps the steps keeps the scratch memory."""
    worker = _Worker(plan, source, destination)
    return tuple(chain(worker.beforehand(), *(worker.steps(*block) for block in plan.blocks())))


def thread_count(plan: Plan, threads: int | None) -> int:
    """How many threads a plan is worth. Raises ValueError for a number, asked for or in the environment, below 1."""
    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads}; a positive integer was expected")
    if plan.size < MANY_BYTES:
        return 1
    return min(threads or _threads_by_default(), plan.block_count, _MAX_THREADS)


def _threads_by_default() -> int:
    text = os.environ.get(VARIABLE)
    if text is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{VARIABLE} is {text!r}; a positive integer was expected")
    return int(text)


class _Worker:
    """What one thread does of a plan, with scratch memory of its own."""

    def __init__(self, plan: Plan, source: Region, destination: Region) -> None:
        self._plan = plan
        self._source = source
        self._destination = destination
        self._scratch = [_scratch(size, destination) for size in plan.scratch]

    def beforehand(self) -> Iterator[Step]:
        """What is to be done before any block."""
        read = self._source
        for move, written in zip(self._plan.beforehand, self._scratch, strict=False):
            yield from move.steps(1, *read, *written)
            read = written

    def steps(self, read_from: int, written_to: int, count: int) -> Iterator[Step]:
        """What is to be done for a block of the plan."""
        *stages, last = self._plan.moves
        memory, offset = self._scratch[-1] if self._plan.beforehand else self._source
        offset += read_from
        for move, written in zip(stages, self._scratch, strict=False):
            yield from move.steps(count, memory, offset, *written)
            memory, offset = written
        yield from last.steps(count, memory, offset, self._destination.memory, self._destination.offset + written_to)


def _scratch(size: int, alike: Region) -> Region:
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    return Region(memory, (_address(alike.memory) + alike.offset - _address(memory)) % _ALIGNMENT)


def _address(memory: Bytes) -> int:
    address: int = memory.__array_interface__["data"][0]  # as .ctypes.data, in a third of the time
    return address


class _Blocks:
    """The blocks of a plan, each given to one thread only."""

    def __init__(self, plan: Plan) -> None:
        self.given = 0
        self._blocks = plan.blocks()
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return self

    def __next__(self) -> tuple[int, int, int]:
        with self._lock:
            block = next(self._blocks)
            self.given += 1
            return block

    def stop(self) -> None:
        """Let no more blocks be given."""
        with self._lock:
            self._blocks = iter(())


_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _the_pool() -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_MAX_THREADS, "dml_tile")
        return _pool


def _forget_the_pool() -> None:
    """In a child process there are no threads but the one that forked."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_pool)
