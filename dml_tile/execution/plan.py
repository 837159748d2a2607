"""How the executor moves the bytes of one tile: the axes, walked in chunks, and the moves that each chunk takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dml_tile.execution.moves import Crosswise, Move, Multiply, Passes, Stream
from dml_tile.geometry.axes import Axis


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done for a tile; all strides and sizes are in bytes.

    ``loops`` are walked index by index, outermost first, and within them ``chunked``, ``chunk`` indices at a time. Each
    such block takes ``moves``, from the source through the scratch memories to the destination. Where these do not
    depend on the block, they are made once by ``beforehand``.
    """

    size: int
    loops: tuple[Axis, ...]
    chunked: Axis
    chunk: int
    beforehand: tuple[Move, ...]
    moves: tuple[Move, ...]
    scratch: tuple[int, ...]

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """The offsets of each block in source and destination, and its number of indices."""
        yield from self._blocks(0, 0, self.loops)

    def _blocks(self, source: int, destination: int, loops: tuple[Axis, ...]) -> Iterator[tuple[int, int, int]]:
        if loops:
            for i in range(loops[0].length):
                yield from self._blocks(source + i * loops[0].source, destination + i * loops[0].destination, loops[1:])
            return
        for i in range(0, self.chunked.length, self.chunk):
            count = min(self.chunk, self.chunked.length - i)
            yield source + i * self.chunked.source, destination + i * self.chunked.destination, count

    @property
    def block_count(self) -> int:
        return math.prod(axis.length for axis in self.loops) * -(-self.chunked.length // self.chunk)

    def __str__(self) -> str:
        lines = [f"{self.size} bytes in {self.block_count} {'block' if self.block_count == 1 else 'blocks'}"]
        lines += [f"  once: {_told(move, 1)}" for move in self.beforehand]
        lines += [f"  {_told(move, self.chunk)}" for move in self.moves]
        return "\n".join(lines)


def _told(move: Move, count: int) -> str:
    walk = move.walk
    shape = " x ".join(map(str, walk.shape(count)))
    written = math.prod(walk.shape(count)) * walk.size
    match move:
        case Passes():
            written *= move.inner.length * move.lanes
            how = f"in {move.inner.length * move.lanes} passes"
        case Multiply():
            written *= move.wide.itemsize // walk.size
            how = f"multiplied to {move.wide.itemsize} bytes"
        case Stream():
            how = f"in strips of {move.held}"
        case Crosswise():
            how = "in rectangles"
        case _:
            how = "in one copy"
    return f"{written} bytes: {shape} runs of {walk.size} bytes, {how}"
