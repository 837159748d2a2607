"""The calls of NumPy that a plan consists of, without the memory that they move bytes in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import setitem
from typing import Any, Final, NamedTuple

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

Array = NDArray[Any]
Lengths = tuple[int, ...]

INPUT, SCRATCH, OUTPUT = range(3)
Memories = tuple[Array, Array, Array]
"""Contiguous arrays of any type, in this order."""

_NAMES: Final = "the input", "scratch memory", "the output"


class Place(NamedTuple):
    """An offset, in bytes from a block's start, in one of its memories: INPUT, SCRATCH or OUTPUT."""

    memory: int
    offset: int = 0

    def moved(self, offset: int) -> Place:
        return Place(self.memory, self.offset + offset)


class Step(NamedTuple):
    """A call of NumPy: an assignment, elements that are taken by their ``rows``, or products with a ``factor``."""

    source: Place
    output: Place
    dtype: np.dtype[Any]
    lengths: Lengths
    reads: Lengths | None = None
    writes: Lengths | None = None
    rows: NDArray[np.intp] | None = None
    factor: Any = None

    def made(self, starts: Sequence[int]) -> Callable[[Memories], object]:
        """Return a function that makes the call, between memories in which the block begins at ``starts``."""
        (source, first), (output, to), dtype, lengths, reads, writes, rows, factor = self
        first, to = first + starts[source], to + starts[output]
        made = dtype if factor is None else factor.dtype

        def assign(memories: Memories) -> None:
            values = ndarray(lengths, dtype, memories[source], first, reads)
            target = ndarray(lengths, made, memories[output], to, writes)
            if factor is None:
                target[...] = values
            else:
                np.multiply(values, factor, target)

        def take(memories: Memories, index: Any = rows) -> None:
            target = ndarray(index.shape, dtype, memories[output], to)
            ndarray(lengths, dtype, memories[source], first).take(index, None, target, "clip")

        return assign if rows is None else take

    def bound(self, memories: Memories, starts: Sequence[int]) -> Callable[[], object]:
        """Return the call between memories, with its views of them."""
        (source, first), (output, to), dtype, lengths, reads, writes, rows, factor = self
        values = ndarray(lengths, dtype, memories[source], starts[source] + first, reads)
        shape = lengths if rows is None else rows.shape
        made = dtype if factor is None else factor.dtype
        target = ndarray(shape, made, memories[output], starts[output] + to, writes)
        if factor is not None:
            return partial(np.multiply, values, factor, target)
        if rows is None:
            return partial(setitem, target, ..., values)
        return partial(values.take, rows, None, target, "clip")  # with "raise", NumPy writes to a buffer first

    def __str__(self) -> str:
        taken = "" if self.rows is None else f", taken {len(self.rows)} times"
        runs = f"{' x '.join(map(str, self.lengths)) or '1'} runs of {self.dtype.itemsize} bytes"
        return f"{runs} from {_NAMES[self.source.memory]} to {_NAMES[self.output.memory]}{taken}"


Block = tuple[int, int, int]
"""The offsets of a part of the tile in the input and the output, in bytes, and its length along one axis."""


@dataclass(frozen=True)
class Plan:
    """The blocks of an output of ``size`` bytes, and the steps of a block of each length, with their scratch memory."""

    size: int
    blocks: Sequence[Block]
    steps: Mapping[int, Sequence[Step]]
    scratch: int

    def __iter__(self) -> Iterator[tuple[tuple[int, int, int], Step]]:
        """Yield each step of each block, and where the block begins in its memories."""
        for read, written, length in self.blocks:
            for step in self.steps[length]:
                yield (read, 0, written), step

    def __str__(self) -> str:
        steps = dict.fromkeys(map(str, self.steps[self.blocks[0][2]]))  # a pass for each index of an axis is one line
        return "\n  ".join([f"{self.size} bytes in {len(self.blocks)} block{'s' * (len(self.blocks) > 1)}", *steps])
