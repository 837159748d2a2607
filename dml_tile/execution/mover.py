"""Moves the bytes of a tile between two regions of memory: once, or bound to them and often.

Several threads write the blocks of a large tile: the caller's, and a pool's, which is made when needed.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache, lru_cache, partial
from operator import length_hint, mul
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dml_tile.bindings.memory import span_of
from dml_tile.execution.plan import CACHE_LINE, MAX_SCRATCH_BYTES, THREADED_BYTES, plan_tile
from dml_tile.execution.steps import Array, Block, Lengths, Plan
from dml_tile.geometry.axes import Axis, coalesce, indices, tile_axes
from dml_tile.geometry.layout import lie_alike, packed_strides

Progress = Callable[[int, int], object]
"""Called with the bytes written so far and the total, in the calling thread: after its blocks and at the end."""

THREADS_VARIABLE: Final = "DML_TILE_THREADS"
MAX_THREADS: Final = 64

LOOPS_PER_STEP: Final = 200
"""The number of NumPy's inner loops, 8 ns each, whose start takes as long as a step of a plan."""

MAX_SCRATCHES: Final = 4
"""The most pieces of scratch memory to which a mover keeps views: one for each thread that moves such tiles at once."""

Move = Callable[[Array, Array], object]
"""Writes a tile, or makes one step of it, from one array to another."""

_spare: Final[deque[NDArray[np.uint8]]] = deque(maxlen=MAX_THREADS)
"""Scratch memory for the next tiles, of MAX_SCRATCH_BYTES bytes each, since new memory is slow at first."""


def new_scratch(size: int) -> NDArray[np.uint8]:
    """Return memory that begins with a line of the cache; from other memory, long runs take up to twice the time."""
    memory = np.empty(size + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + size]


def _taken_scratch() -> NDArray[np.uint8]:
    """Return spare scratch memory, or new; whoever takes it gives it back."""
    try:
        return _spare.pop()
    except IndexError:
        return new_scratch(MAX_SCRATCH_BYTES)


def write_blocks(plan: Plan, blocks: Iterable[Block], source: Array, output: Array) -> None:
    """Write blocks of a plan, in this thread."""
    scratch = _taken_scratch()
    memories = source, scratch, output
    for read, written, length in blocks:
        for call in plan.calls[length]:
            call(memories, (read, 0, written))
    _spare.append(scratch)


def write_shared(plan: Plan, source: Array, output: Array, number: int, progress: Progress | None = None) -> None:
    """Write all blocks of a plan in ``number`` threads; an exception, as from Ctrl-C, stops all within a block."""
    blocks, helpers = iter(plan.blocks), list[Future[None]]()
    try:
        with suppress(RuntimeError):  # no thread can be started: this one writes all
            while len(helpers) < number - 1:
                helpers.append(_pool().submit(write_blocks, plan, blocks, source, output))
        write_blocks(plan, blocks if progress is None else _reported(plan, blocks, progress), source, output)
    except BaseException:
        _pool().shutdown(wait=False)  # if Ctrl-C comes while a thread starts, Python waits for the thread at exit
        _pool.cache_clear()
        raise
    finally:
        deque(blocks, maxlen=0)  # nobody takes another block
        helpers = [helper for helper in helpers if not helper.cancel()]
        wait(helpers)
    for helper in helpers:
        helper.result()
    if progress is not None:
        progress(plan.size, plan.size)


def thread_count(plan: Plan, threads: int | None = None) -> int:
    """Return the number of threads for a plan; by default, the environment's or one for each processor.

    Raises ValueError for a number, given or in the environment, that is not positive.
    """
    if threads is None and (text := os.environ.get(THREADS_VARIABLE)) is not None:
        if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
            raise ValueError(f"{THREADS_VARIABLE} is {text!r}; a positive integer was expected")
        threads = int(text)
    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads}; a positive integer was expected")
    return min(threads or processor_count(), len(plan.blocks), MAX_THREADS) if plan.size > THREADED_BYTES else 1


def processor_count() -> int:
    """Return the number of logical processors that this process may run on; all, if the system cannot tell."""
    if hasattr(os, "process_cpu_count"):  # from Python 3.13 on
        return os.process_cpu_count() or 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _reported(plan: Plan, blocks: Iterator[Block], progress: Progress) -> Iterator[Block]:
    for block in blocks:
        yield block
        if left := length_hint(blocks):
            progress(plan.size - plan.size * left // len(plan.blocks), plan.size)


class Mover:
    """Moves the bytes of tiles of one layout, between memory that does not overlap.

    ``write`` moves them once, between contiguous arrays that begin with the lowest bytes of the tensors; ``tile``
    between arrays that are the tensors, of any strides.
    """

    def __init__(self, plan: Plan, tile: Move | None = None, *, is_copy: bool = False) -> None:
        self.plan = plan
        self._calls_by_scratch: dict[int, tuple[Array, list[Move]]] = {}
        self.write: Move
        if len(plan.blocks) > 1:
            self.write = self._write_blocks
        elif plan.scratch:
            self.write = self._write_one_block
        else:
            call, *others = calls = plan.between(None)
            self.write = partial(_make, calls) if others else _copier(plan.size, call) if is_copy else call
        self.tile = tile or self.write

    def _write_blocks(self, source: Array, output: Array) -> None:
        if self.plan.size > THREADED_BYTES:
            write_shared(self.plan, source, output, thread_count(self.plan))
        else:
            write_blocks(self.plan, self.plan.blocks, source, output)

    def _write_one_block(self, source: Array, output: Array) -> None:
        """Write the only block; its views of scratch memory are kept, since to make one takes as long as to use it."""
        scratch = _taken_scratch()
        kept = self._calls_by_scratch.get(id(scratch))
        if kept is None:
            if len(self._calls_by_scratch) >= MAX_SCRATCHES:
                self._calls_by_scratch.clear()
            kept = self._calls_by_scratch[id(scratch)] = scratch, self.plan.between(scratch)
        for call in kept[1]:
            call(source, output)
        _spare.append(scratch)


def _make(calls: Iterable[Move], source: Array, output: Array) -> None:
    for call in calls:
        call(source, output)


def _copier(size: int, call: Move) -> Move:
    """Return a copy of ``size`` bytes that is faster than ``call`` between arrays that are alike."""

    def copy(source: Array, output: Array) -> None:
        if source.dtype is output.dtype and source.shape == output.shape and source.nbytes == size:
            output[...] = source
        else:
            call(source, output)

    return copy


@lru_cache(maxsize=256)
def mover_of(size: int, sizes: Lengths, repeats: Lengths, source_strides: Lengths, output_strides: Lengths) -> Mover:
    """Return the mover of an input of ``sizes``, of elements of ``size`` bytes; the strides are in bytes."""
    axes = tile_axes(sizes, repeats, source_strides, output_strides)
    plan = plan_tile(size, axes)
    produced = tuple(map(mul, sizes, repeats))
    packed, packed_output = packed_strides(sizes, size), packed_strides(produced, size)
    are_packed = lie_alike(sizes, source_strides, packed) and lie_alike(produced, output_strides, packed_output)
    axes = coalesce(axes)
    if len(plan.blocks) == 1 and indices(axes[:-1]) <= LOOPS_PER_STEP * len(plan.steps[plan.blocks[0][2]]):
        is_copy = are_packed and sizes == produced
        return Mover(plan, _assigned(sizes, repeats, axes if are_packed else ()), is_copy=is_copy)
    if are_packed:
        return Mover(plan)
    write = Mover(plan).write
    source, output = span_of(size, sizes, source_strides), span_of(size, produced, output_strides)
    return Mover(plan, lambda array, out: write(source(array), output(out)))


def _assigned(sizes: Lengths, repeats: Lengths, axes: Sequence[Axis]) -> Move:
    """Return one assignment between arrays, reshaped to ``axes`` if these are given, and only where it must be.

    NumPy repeats a dimension of length 1 by broadcasting, and adds leading ones.
    """
    written, read = list[int](), list[int]()
    for size, repeat in zip(sizes, repeats, strict=True):
        written += [repeat, size] if repeat > 1 and size > 1 else [repeat * size]
        read += [1, size] if repeat > 1 and size > 1 else [size]
    if len(written) == len(sizes):
        return _assign
    if read == [1] * (len(read) - len(sizes)) + [*sizes]:

        def tile_rows(array: Array, out: Array) -> None:
            out.reshape(written)[...] = array

        return tile_rows
    if axes:
        written = [axis.length for axis in axes]
        read = [axis.length if axis.source else 1 for axis in axes]

    def tile(array: Array, out: Array) -> None:
        out.reshape(written)[...] = array.reshape(read)

    return tile


def _assign(array: Array, out: Array) -> None:
    out[...] = array


class BoundTile:
    """A tile whose descriptor and buffers are known to be good; it can be run any number of times.

    ``size`` is the number of bytes that a run writes; ``str`` says how they are moved. Each run begins with the calls
    ``first``.
    """

    def __init__(self, plan: Plan, source: Array, output: Array, first: Sequence[Callable[[], object]] = ()) -> None:
        self.size = plan.size
        self._plan, self._source, self._output = plan, source, output
        self._first = [*first]
        self._calls: list[Callable[[], object]] | None = None
        # any thread may make these calls
        if plan.size <= THREADED_BYTES and (len(plan.blocks) == 1 or not plan.scratch):
            self._calls = self._first + plan.bound((source, new_scratch(plan.scratch), output))

    def __str__(self) -> str:
        return str(self._plan)

    def run(self, threads: int | None = None, progress: Progress | None = None) -> None:
        """Write the output tensor's elements, and report blocks of them to ``progress``, in bytes.

        ``threads`` is the largest number of threads to use; by default the variable DML_TILE_THREADS, else one for each
        CPU that the process may use. Ctrl-C stops within a block. Raises ValueError for a number that is not positive.
        """
        is_counted = self._calls is None or (threads is not None and threads < 1)
        number = thread_count(self._plan, threads) if is_counted else 1
        for call in self._first if self._calls is None else self._calls:
            call()
        if self._calls is None:
            write_shared(self._plan, self._source, self._output, number, progress)
        elif progress is not None:
            progress(self.size, self.size)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_THREADS - 1, "dml_tile")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child process has no threads but the one that forked
