"""Moves the bytes of a tile between two regions of memory: once, or bound to them and often."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import mul
from typing import Final

from dml_tile.bindings.memory import span_of
from dml_tile.execution.plan import LARGE, plan_tile
from dml_tile.execution.steps import Array, Lengths, Plan
from dml_tile.execution.threads import Progress, new_scratch, thread_count, write_blocks, write_shared
from dml_tile.geometry.axes import Axis, coalesce, indices, tile_axes
from dml_tile.geometry.layout import lie_alike, packed_strides

LOOPS: Final = 200
"""NumPy starts so many inner loops, 8 ns each, in the time that a step of a plan takes, most of it for its views."""

Move = Callable[[Array, Array], None]
"""Writes a tile once, from one array to another."""


class Mover:
    """Moves the bytes of tiles of one layout, between memory that does not overlap.

    ``tile`` moves them between arrays that are the tensors, however they lie.
    """

    def __init__(self, plan: Plan, tile: Move | None = None) -> None:
        self._plan, self.tile = plan, tile or self
        (read, written, length), *others = plan.blocks
        self._starts, self._calls = (read, 0, written), [] if others or plan.scratch else plan.calls[length]

    def __call__(self, source: Array, output: Array) -> None:
        """Write the tile once, between contiguous arrays that begin with the lowest bytes of the tensors."""
        if self._calls:
            memories = source, source, output
            for call in self._calls:
                call(memories, self._starts)
        elif self._plan.size > LARGE:
            write_shared(self._plan, source, output, thread_count(self._plan))
        else:
            write_blocks(self._plan, self._plan.blocks, source, output)

    def bind(self, source: Array, output: Array, first: Callable[[], object] | None = None) -> BoundTile:
        """Return the tile between two such arrays as a call takes; ``first`` is called at the beginning of each run."""
        return BoundTile(self._plan, source, output, first)


@lru_cache(maxsize=256)
def mover_of(size: int, sizes: Lengths, repeats: Lengths, source_strides: Lengths, output_strides: Lengths) -> Mover:
    """Return the mover of an input of ``sizes``, of elements of ``size`` bytes; the strides are in bytes."""
    plan = plan_tile(size, sizes, repeats, source_strides, output_strides)
    produced = tuple(map(mul, sizes, repeats))
    packed, packed_output = packed_strides(sizes, size), packed_strides(produced, size)
    are_packed = lie_alike(sizes, source_strides, packed) and lie_alike(produced, output_strides, packed_output)
    axes = coalesce(tile_axes(sizes, repeats, source_strides, output_strides))
    if len(plan.blocks) == 1 and indices(axes[:-1]) <= LOOPS * len(plan.calls[plan.blocks[0][2]]):
        return Mover(plan, _assigned(axes if are_packed else tile_axes(sizes, repeats, packed, packed_output)))
    if are_packed:
        return Mover(plan)
    move, source, output = Mover(plan), span_of(size, sizes, source_strides), span_of(size, produced, output_strides)
    return Mover(plan, lambda array, out: move(source(array), output(out)))


def _assigned(axes: Sequence[Axis]) -> Move:
    """Return one assignment, between arrays that are reshaped to have these axes."""
    written = tuple(axis.length for axis in axes if axis.length > 1)
    read = tuple(axis.length if axis.source else 1 for axis in axes if axis.length > 1)

    def tile(array: Array, out: Array) -> None:
        out.reshape(written)[...] = array.reshape(read)

    return tile


class BoundTile:
    """A tile whose descriptor and buffers are known to be good; it can be run any number of times.

    ``size`` is the number of bytes that a run writes; ``str`` says how they are moved.
    """

    def __init__(self, plan: Plan, source: Array, output: Array, first: Callable[[], object] | None = None) -> None:
        self.size = plan.size
        self._plan, self._source, self._output = plan, source, output
        self._first = [first] if first is not None else []
        self._calls: list[Callable[[], object]] | None = None
        if plan.size <= LARGE and (len(plan.blocks) == 1 or not plan.scratch):  # any thread may make these calls
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
