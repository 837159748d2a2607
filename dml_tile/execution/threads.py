"""Writes the blocks of a plan, in one thread or several: the caller's, and those of a pool that is made when needed."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from operator import length_hint
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dml_tile.execution.plan import LARGE, LINE, MEMORY
from dml_tile.execution.processors import processor_count
from dml_tile.execution.steps import Array, Block, Plan

Progress = Callable[[int, int], object]
"""Called with the bytes written so far and the total: in the calling thread, after its blocks, and at the end."""

VARIABLE: Final = "DML_TILE_THREADS"
MAX_THREADS: Final = 64

_spare: Final[deque[NDArray[np.uint8]]] = deque(maxlen=MAX_THREADS)
"""Scratch memory for the next tiles, of MEMORY bytes each, since new memory is slow at first."""


def new_scratch(size: int) -> NDArray[np.uint8]:
    """Return memory that begins with a line of the cache; from other memory, long runs take up to twice the time."""
    memory = np.empty(size + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size]


def write_blocks(plan: Plan, blocks: Iterable[Block], source: Array, output: Array) -> None:
    """Write blocks of a plan, in this thread."""
    try:
        scratch = _spare.pop()
    except IndexError:
        scratch = new_scratch(MEMORY)
    memories = source, scratch, output
    for read, written, length in blocks:
        for call in plan.calls[length]:
            call(memories, (read, 0, written))
    _spare.append(scratch)


def write_shared(plan: Plan, source: Array, output: Array, number: int, progress: Progress | None = None) -> None:
    """Write all blocks of a plan, in so many threads; each of them takes the next block.

    An exception, as from Ctrl-C, stops all of them within a block.
    """
    blocks, helpers = iter(plan.blocks), list[Future[None]]()
    try:
        with suppress(RuntimeError):  # no thread can be started: this one writes all
            while len(helpers) < number - 1:
                helpers.append(_pool().submit(write_blocks, plan, blocks, source, output))
        write_blocks(plan, blocks if progress is None else _reported(plan, blocks, progress), source, output)
    finally:
        deque(blocks, maxlen=0)  # nobody takes another block
        helpers = [helper for helper in helpers if not helper.cancel()]
        wait(helpers)
    for helper in helpers:
        helper.result()
    if progress is not None:
        progress(plan.size, plan.size)


def thread_count(plan: Plan, threads: int | None = None) -> int:
    """Return the number of threads that a plan is worth; by default, the environment's or one for each processor.

    Raises ValueError for a number that is not positive, be it asked for or in the environment.
    """
    if threads is None and (text := os.environ.get(VARIABLE)) is not None:
        if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
            raise ValueError(f"{VARIABLE} is {text!r}; a positive integer was expected")
        threads = int(text)
    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads}; a positive integer was expected")
    return min(threads or processor_count(), len(plan.blocks), MAX_THREADS) if plan.size > LARGE else 1


def _reported(plan: Plan, blocks: Iterator[Block], progress: Progress) -> Iterator[Block]:
    for block in blocks:
        yield block
        if left := length_hint(blocks):
            progress(plan.size - plan.size * left // len(plan.blocks), plan.size)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_THREADS - 1, "dml_tile")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child process has no threads but the one that forked
