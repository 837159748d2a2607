"""Moves the bytes of a tile between two regions of memory: once, or bound to them and often."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from threading import Lock
from typing import Final

from dml_tile.bindings.memory import span_of
from dml_tile.execution.plan import LARGE, plan_tile
from dml_tile.execution.steps import Array, Lengths, Plan
from dml_tile.execution.threads import Progress, give_scratch, new_scratch, take_scratch, thread_count, write_shared
from dml_tile.geometry.axes import coalesce, indices, tile_axes

FEW_LOOPS: Final = 64
MANY_LOOPS: Final = 1000
"""NumPy starts so many inner loops, 8 ns each, in the time that it takes to make views of longer elements, or to find
the memory that strided arrays span."""

_Call = Callable[[], object]


class Mover:
    """Moves the bytes of tiles of one layout, between memory that does not overlap."""

    __slots__ = ("_calls", "_loops", "_plan", "_shapes")

    def __init__(self, plan: Plan, loops: int, shapes: tuple[Lengths, Lengths]) -> None:
        self._plan, self._loops, self._shapes = plan, loops, shapes
        self._calls = [step.made(starts) for starts, step in plan] if plan.size <= LARGE else None

    def __call__(self, source: Array, output: Array) -> None:
        """Write the tile once, between contiguous arrays that begin with the lowest bytes of the tensors."""
        if self._calls is None:
            write_shared(self._plan, source, output)
            return
        memories = source, take_scratch() if self._plan.scratch else source, output
        for call in self._calls:
            call(memories)
        if self._plan.scratch:
            give_scratch(memories[1])

    def tile(self, array: Array, out: Array) -> None:
        """Write the tile once, between arrays that are the tensors, however they lie."""
        loops = self._loops
        if loops <= FEW_LOOPS or (loops <= MANY_LOOPS and not (array.flags.c_contiguous and out.flags.c_contiguous)):
            written, read = self._shapes
            out.reshape(written)[...] = array.reshape(read)
        else:
            self(span_of(array), span_of(out))

    def bind(self, source: Array, output: Array, first: _Call | None = None) -> BoundTile:
        """Return the tile between two such arrays as a call takes; ``first`` is called at the beginning of each run."""
        return BoundTile(self._plan, source, output, first)


@lru_cache(maxsize=256)
def mover_of(size: int, sizes: Lengths, repeats: Lengths, source_strides: Lengths, output_strides: Lengths) -> Mover:
    """Return the mover of an input of ``sizes``, of elements of ``size`` bytes; the strides are in bytes."""
    plan = plan_tile(size, sizes, repeats, source_strides, output_strides)
    loops = coalesce(tile_axes(sizes, repeats, source_strides, output_strides))[:-1]
    pairs = [pair for length, repeat in zip(sizes, repeats, strict=True) for pair in ((repeat, 1), (length, length))]
    written, read = (tuple(pair[k] for pair in pairs if pair != (1, 1)) for k in (0, 1))
    return Mover(plan, indices(loops) if len(plan.blocks) == 1 else MANY_LOOPS + 1, (written, read))


class BoundTile:
    """A tile whose descriptor and buffers are known to be good; it can be run any number of times.

    ``size`` is the number of bytes that a run writes; ``str`` says how they are moved.
    """

    def __init__(self, plan: Plan, source: Array, output: Array, first: _Call | None = None) -> None:
        self.size = plan.size
        self._plan, self._source, self._output, self._first = plan, source, output, first
        self._calls = None if plan.size > LARGE else self._bound()

    def __str__(self) -> str:
        return str(self._plan)

    def run(self, threads: int | None = None, progress: Progress | None = None) -> None:
        """Write the output tensor's elements, and report blocks of them to ``progress``, in bytes.

        ``threads`` is the largest number of threads to use; by default the variable DML_TILE_THREADS, else one for each
        CPU that the process may use. Ctrl-C stops within a block. Raises ValueError for a number that is not positive.
        """
        if self._calls is None or (threads is not None and threads < 1):
            thread_count(self._plan, threads)  # refuses a wrong number before anything is written
            if self._first is not None:
                self._first()
            write_shared(self._plan, self._source, self._output, threads, progress)
            return
        for call in self._calls:
            call()
        if progress is not None:
            progress(self.size, self.size)

    def _bound(self) -> list[_Call]:
        plan = self._plan
        memories = self._source, new_scratch(plan.scratch), self._output
        calls: list[_Call] = [step.bound(memories, starts) for starts, step in plan]
        if plan.scratch and len(plan.blocks) > 1:  # threads that run the same block fill scratch memory alike
            calls = [partial(_make_in_turn, calls, Lock())]
        return calls if self._first is None else [self._first, *calls]


def _make_in_turn(calls: list[_Call], lock: Lock) -> None:
    with lock:
        for call in calls:
            call()
