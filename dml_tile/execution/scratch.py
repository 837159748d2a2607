"""Scratch memory, which is kept for the next tile, since new memory is slow at first."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dml_tile.execution.numpy_calls import Call, Region
from dml_tile.execution.thresholds import LINE

MAX_SPARE: Final = 64
"""The pieces of scratch memory that are kept, each of SPARE_BYTES: as many as threads ever needed at once."""
SPARE_BYTES: Final = 2**19

_spare: Final[deque[NDArray[np.uint8]]] = deque()


def take_scratch(size: int) -> NDArray[np.uint8]:
    """At least so many bytes; none for 0."""
    if 0 < size <= SPARE_BYTES:
        try:
            return _spare.pop()
        except IndexError:
            size = SPARE_BYTES
    return aligned(size)


def give_scratch(memory: NDArray[np.uint8]) -> None:
    """Keep memory that is not used any more."""
    if memory.nbytes == SPARE_BYTES and len(_spare) < MAX_SPARE:
        _spare.append(memory)


def aligned(size: int) -> NDArray[np.uint8]:
    """New memory that begins with a line of the cache; from other memory, long runs take up to twice the time."""
    memory = np.empty(size + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size]


class StagedBlock:
    """The calls for a block, with their views of the scratch memory that they pass; for one thread at a time."""

    def __init__(self, copies: Sequence[Sequence[Call]], starts: Sequence[int], memory: NDArray[np.uint8]) -> None:
        regions = [Region(memory, start) for start in starts[:-1]]
        first, *between, last = copies
        self._first = [(call, call.written_in(*regions[0])) for call in first]
        self._between = [
            step
            for calls, source, output in zip(between, regions, regions[1:], strict=False)
            for call in calls
            for step in call.bind(source, output)
        ]
        self._last = [(call, call.read_in(*regions[-1])) for call in last]

    def fill(self, source: NDArray[Any], offset: int = 0) -> None:
        """Move the bytes from a contiguous array, from the offset on, to where they are written from."""
        for call, target in self._first:
            call.move(call.read_in(source, offset), target)
        for step in self._between:
            step()

    def write(self, output: NDArray[Any], offset: int = 0) -> None:
        """Move the bytes to a contiguous array, from the offset on."""
        for call, values in self._last:
            call.move(values, call.written_in(output, offset))


class Staging:
    """The blocks of a plan that passes scratch memory, with the views of the piece that it passed last."""

    def __init__(self, calls: Mapping[int, Sequence[Sequence[Call]]], starts: Sequence[int]) -> None:
        self._calls, self._starts = calls, starts
        self._last: tuple[NDArray[np.uint8], dict[int, StagedBlock]] | None = None

    def blocks_in(self, memory: NDArray[np.uint8]) -> dict[int, StagedBlock]:
        """The blocks that pass this piece, by their lengths."""
        last = self._last
        if last is None or last[0] is not memory:
            blocks = {length: StagedBlock(copies, self._starts, memory) for length, copies in self._calls.items()}
            last = self._last = memory, blocks
        return last[1]
