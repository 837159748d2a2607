"""The plan of a tile: blocks, and the copies that each of them takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from dml_tile.execution.moves import copy
from dml_tile.execution.numpy_calls import Call
from dml_tile.execution.scratch import Staging
from dml_tile.execution.thresholds import LINE
from dml_tile.geometry.axes import Axis


class Block(NamedTuple):
    """A part of the work: its offsets in source and output, in bytes, and its indices of the plan's chunked axis."""

    read: int
    written: int
    length: int


class Copy(NamedTuple):
    """A copy along axes, of which the one at ``place``, if any, is as long as a block; strides are in bytes.

    The last axis is a repeat of runs of ``size`` bytes, of which the source holds ``held`` in a row.
    """

    size: int
    axes: tuple[Axis, ...]
    place: int | None = None
    held: int = 1

    def calls(self, count: int) -> Iterator[Call]:
        """The calls of NumPy that it takes for so many indices of the chunked axis."""
        if self.held == 1:
            yield copy(self.size, self.axes_of(count))
            return
        *outer, last = self.axes_of(count)
        whole, rest = divmod(last.length, self.held)
        run = self.size * self.held
        if whole:
            yield copy(run, [*outer, Axis(whole, 0, run)])
        if rest:
            yield copy(self.size * rest, outer, written=whole * run)

    def bytes_written(self, count: int) -> int:
        return self.size * math.prod(axis.length for axis in self.axes_of(count))

    def axes_of(self, count: int) -> list[Axis]:
        """The axes, with the one at ``place`` as long as a block of so many indices."""
        return [axis._replace(length=count) if i == self.place else axis for i, axis in enumerate(self.axes)]


@dataclass(frozen=True)
class Plan:
    """The copies that write a tile's output; sizes and strides are in bytes.

    ``loops`` are walked index by index, and within them ``chunked``, ``chunk`` indices at a time. For each such block,
    all ``copies`` but the last fill scratch memory, each from what the one before it wrote; the last writes the output.
    """

    size: int
    loops: tuple[Axis, ...]
    chunked: Axis
    chunk: int
    copies: tuple[Copy, ...]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """In the order of the output."""
        starts = [(0, 0)]
        for axis in self.loops:
            starts = [(a + i * axis.source, b + i * axis.destination) for a, b in starts for i in range(axis.length)]
        read, written, length = self.chunked.source, self.chunked.destination, self.chunked.length
        return tuple(
            Block(a + i * read, b + i * written, min(self.chunk, length - i))
            for a, b in starts
            for i in range(0, length, self.chunk)
        )

    @cached_property
    def calls(self) -> dict[int, tuple[tuple[Call, ...], ...]]:
        """The calls that each copy takes, by the length of a block."""
        lengths = {block.length for block in self.blocks}
        return {length: tuple(tuple(part.calls(length)) for part in self.copies) for length in lengths}

    @cached_property
    def only_calls(self) -> tuple[Call, ...] | None:
        """The calls of a plan of one block that takes no scratch memory; None for any other."""
        is_one = len(self.blocks) == len(self.copies) == 1
        return self.calls[self.blocks[0].length][0] if is_one else None

    @cached_property
    def scratch(self) -> tuple[int, ...]:
        """The offset in scratch memory to which each copy but the last writes, and the bytes of all of it."""
        sizes = (-(-part.bytes_written(self.chunk) // LINE) * LINE for part in self.copies[:-1])
        return tuple(accumulate(sizes, initial=0))

    @cached_property
    def staging(self) -> Staging:
        """The blocks by way of scratch memory, for the next run too."""
        return Staging(self.calls, self.scratch)

    def __str__(self) -> str:
        count = len(self.blocks)
        lines = [f"{self.size} bytes in {count} {'block' if count == 1 else 'blocks'}"]
        for part, calls in zip(self.copies, self.calls[self.chunk], strict=True):
            where = "the output" if part is self.copies[-1] else "scratch memory"
            axes = " x ".join(str(axis.length) for axis in part.axes_of(self.chunk)) or "1"
            number = sum(len(call.passes) or 1 for call in calls)
            times = f"{number} {'call' if number == 1 else 'calls'}"
            lines.append(f"  to {where}: {axes} runs of {part.size} bytes in {times}")
        return "\n".join(lines)
