"""Scratch memory, which is kept for the next tile, since new memory is slow at first."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dml_tile.execution.numpy_calls import Call, Region
from dml_tile.execution.thresholds import LINE

MAX_SPARE: Final = 4
"""The pieces of scratch memory that are kept for any plan, each of SPARE_BYTES."""
SPARE_BYTES: Final = 2**19
MAX_KEPT_SCRATCH: Final = 2**16
"""The most bytes of scratch memory that a plan keeps for itself."""

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
    """The only block of a plan, with scratch memory of its own and all views of it; for one thread at a time."""

    def __init__(self, copies: Sequence[Sequence[Call]], starts: Sequence[int]) -> None:
        memory = aligned(starts[-1])
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

    def run(self, source: NDArray[Any], output: NDArray[Any]) -> None:
        """Move the bytes between contiguous arrays, from their first bytes on."""
        for call, target in self._first:
            call.move(call.read_in(source), target)
        for step in self._between:
            step()
        for call, values in self._last:
            call.move(values, call.written_in(output))
