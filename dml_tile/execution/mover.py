"""Moves the bytes of a tile between two regions of memory: once, or bound to them and often."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from dml_tile.bindings.memory import span_of
from dml_tile.execution.plan import LARGE, plan_tile
from dml_tile.execution.steps import Array, Lengths, Plan
from dml_tile.execution.threads import Progress, new_scratch, thread_count, write_blocks, write_shared
from dml_tile.geometry.axes import Axis, coalesce, indices, tile_axes
from dml_tile.geometry.layout import packed_strides

LOOPS: Final = 600
"""NumPy starts so many inner loops, 8 ns each, in the time that it takes to make views of the memory for each step."""
WORTH_LOOPS: Final = 2**13
"""Of so many bytes on, a plan gains more than that time."""
FEW_LOOPS: Final = 150
"""So many loops pack a strided array in the time that it takes to find the memory which it spans."""


class Mover:
    """Moves the bytes of tiles of one layout, between memory that does not overlap."""

    def __init__(
        self, plan: Plan, shapes: tuple[Lengths, Lengths] | None = None, of_packed: Mover | None = None
    ) -> None:
        self._plan, self._shapes, self._of_packed = plan, shapes, of_packed

    def __call__(self, source: Array, output: Array) -> None:
        """Write the tile once, between contiguous arrays that begin with the lowest bytes of the tensors."""
        plan = self._plan
        if plan.size > LARGE:
            write_shared(plan, source, output, thread_count(plan))
        else:
            write_blocks(plan, plan.blocks, source, output)

    def tile(self, array: Array, out: Array) -> None:
        """Write the tile once, between arrays that are the tensors, however they lie."""
        if self._shapes is not None:
            written, read = self._shapes
            out.reshape(written)[...] = array.reshape(read)
        elif self._of_packed is not None:
            self._of_packed.tile(array.copy(), out)
        else:
            self(span_of(array), span_of(out))

    def bind(self, source: Array, output: Array, first: Callable[[], object] | None = None) -> BoundTile:
        """Return the tile between two such arrays as a call takes; ``first`` is called at the beginning of each run."""
        return BoundTile(self._plan, source, output, first)


@lru_cache(maxsize=256)
def mover_of(size: int, sizes: Lengths, repeats: Lengths, source_strides: Lengths, output_strides: Lengths) -> Mover:
    """Return the mover of an input of ``sizes``, of elements of ``size`` bytes; the strides are in bytes."""
    plan = plan_tile(size, sizes, repeats, source_strides, output_strides)
    axes = coalesce(tile_axes(sizes, repeats, source_strides, output_strides))
    if indices(axes[:-1]) * max(plan.size, WORTH_LOOPS) <= LOOPS * WORTH_LOOPS and len(plan.blocks) == 1:
        pairs = [pair for n, times in zip(sizes, repeats, strict=True) for pair in ((times, 1), (n, n))]
        written, read = (tuple(pair[k] for pair in pairs if pair != (1, 1)) for k in (0, 1))
        return Mover(plan, (written, read))  # shapes between which one assignment writes the tile
    packed = packed_strides(sizes, size)
    if source_strides != packed and indices(coalesce(map(Axis, sizes, source_strides, packed))[:-1]) <= FEW_LOOPS:
        return Mover(plan, None, mover_of(size, sizes, repeats, packed, output_strides))
    return Mover(plan)


class BoundTile:
    """A tile whose descriptor and buffers are known to be good; it can be run any number of times.

    ``size`` is the number of bytes that a run writes; ``str`` says how they are moved.
    """

    def __init__(self, plan: Plan, source: Array, output: Array, first: Callable[[], object] | None = None) -> None:
        self.size = plan.size
        self._plan, self._source, self._output, self._first = plan, source, output, first
        self._calls = None
        if plan.size <= LARGE and (len(plan.blocks) == 1 or not plan.scratch):  # any thread may make these calls
            self._calls = plan.bound((source, new_scratch(plan.scratch), output))

    def __str__(self) -> str:
        return str(self._plan)

    def run(self, threads: int | None = None, progress: Progress | None = None) -> None:
        """Write the output tensor's elements, and report blocks of them to ``progress``, in bytes.

        ``threads`` is the largest number of threads to use; by default the variable DML_TILE_THREADS, else one for each
        CPU that the process may use. Ctrl-C stops within a block. Raises ValueError for a number that is not positive.
        """
        is_counted = self._calls is None or (threads is not None and threads < 1)
        number = thread_count(self._plan, threads) if is_counted else 1
        if self._first is not None:
            self._first()
        if self._calls is None:
            write_shared(self._plan, self._source, self._output, number, progress)
            return
        for call in self._calls:
            call()
        if progress is not None:
            progress(self.size, self.size)
