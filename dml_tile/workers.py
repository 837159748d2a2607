"""Running a plan, by one thread or several; the only global state there is: one pool of them, made when needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np

from dml_tile.memory import Bytes
from dml_tile.plan import MANY_BYTES, Plan

Progress = Callable[[int, int], object]
"""Is told how many of how many bytes are written, in the thread that called, after each of its blocks."""

VARIABLE: Final = "DML_TILE_THREADS"

_MAX_THREADS: Final = 64


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
        scratch = [Region(np.empty(size, np.uint8)) for size in plan.scratch]
        first = source
        if plan.beforehand:
            for move, written in zip(plan.beforehand, scratch, strict=True):
                move.run(1, *first, *written)
                first = written
            scratch = []
        *stages, last = plan.moves
        for read_from, written_to, count in blocks:
            memory, offset = first.memory, first.offset + read_from
            for move, written in zip(stages, scratch, strict=True):
                move.run(count, memory, offset, *written)
                memory, offset = written
            last.run(count, memory, offset, destination.memory, destination.offset + written_to)
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
