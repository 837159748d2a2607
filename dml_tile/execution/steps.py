"""The calls of NumPy that a plan consists of, without their memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from operator import setitem
from typing import Any, Final, NamedTuple

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from dml_tile.geometry.axes import Axis, indices
from dml_tile.text import plural

Array = NDArray[Any]
Lengths = tuple[int, ...]

INPUT, SCRATCH, OUTPUT = range(3)
Memories = tuple[Array, Array, Array]
"""Contiguous arrays of any type, in this order."""
NumpyCall = Callable[[Memories, Sequence[int]], None]
"""A call of NumPy between memories, for a block that begins at these offsets."""

_NAMES: Final = "the input", "scratch memory", "the output"


class Place(NamedTuple):
    """An offset, in bytes from a block's start, in one of its memories: INPUT, SCRATCH or OUTPUT."""

    memory: int
    offset: int = 0

    def moved(self, offset: int) -> Place:
        return Place(self.memory, self.offset + offset)


class Step(NamedTuple):
    """A call of NumPy: an assignment, or numpy.take of the elements whose numbers lie along ``rows``."""

    source: Place
    output: Place
    dtype: np.dtype[Any]
    lengths: Lengths
    reads: Lengths | None = None
    writes: Lengths | None = None
    rows: tuple[Axis, ...] = ()

    def call(self) -> NumpyCall:
        """Return the call for any memories, with all computed that does not depend on them."""
        (source, first), (output, to), dtype, lengths, reads, writes, rows = self

        number, index = (indices(rows),), _index(rows)

        def assign(memories: Memories, starts: Sequence[int]) -> None:
            target = ndarray(lengths, dtype, memories[output], starts[output] + to, writes)
            target[...] = ndarray(lengths, dtype, memories[source], starts[source] + first, reads)

        def take(memories: Memories, starts: Sequence[int]) -> None:
            values = ndarray(lengths, dtype, memories[source], starts[source] + first)
            values.take(index, None, ndarray(number, dtype, memories[output], starts[output] + to), "clip")

        return take if rows else assign

    def between(self, scratch: Array | None, starts: Sequence[int]) -> Callable[[Array, Array], object]:
        """Return the call for any input and output, for a block at these offsets, with the views of scratch memory."""
        (source, first), (output, to), dtype, lengths, reads, writes, rows = self
        first, to = first + starts[source], to + starts[output]
        if scratch is None and not rows:

            def assign(array: Array, written: Array) -> None:
                target = ndarray(lengths, dtype, written, to, writes)
                target[...] = ndarray(lengths, dtype, array, first, reads)

            return assign
        number, index = (indices(rows),) if rows else lengths, _index(rows)
        kept_values = ndarray(lengths, dtype, scratch, first, reads) if source == SCRATCH else None
        kept_target = ndarray(number, dtype, scratch, to, writes) if output == SCRATCH else None

        def call(array: Array, written: Array) -> None:
            target = ndarray(number, dtype, written, to, writes) if kept_target is None else kept_target
            values = ndarray(lengths, dtype, array, first, reads) if kept_values is None else kept_values
            if rows:
                values.take(index, None, target, "clip")
            else:
                target[...] = values

        return call

    def bound(self, memories: Memories, starts: Sequence[int]) -> Callable[[], object]:
        """Return the call between memories, for a block at these offsets; it may be made any number of times."""
        (source, first), (output, to), dtype, lengths, reads, writes, rows = self
        values = ndarray(lengths, dtype, memories[source], starts[source] + first, reads)
        target = ndarray((indices(rows),) if rows else lengths, dtype, memories[output], starts[output] + to, writes)
        if not rows:
            return partial(setitem, target, ..., values)
        return partial(values.take, _index(rows), None, target, "clip")  # with "raise", NumPy writes to a buffer first

    def __str__(self) -> str:
        taken = f", taken {indices(self.rows)} times" if self.rows else ""
        runs = f"{' x '.join(map(str, self.lengths)) or '1'} runs of {self.dtype.itemsize} bytes"
        return f"{runs} from {_NAMES[self.source.memory]} to {_NAMES[self.output.memory]}{taken}"


@lru_cache(maxsize=256)
def _index(rows: tuple[Axis, ...]) -> NDArray[np.intp]:
    """Return the numbers of rows that lie along axes."""
    index = np.zeros(1, np.intp)
    for axis in rows:
        index = np.add.outer(index, np.arange(axis.length) * axis.source).ravel()
    return index


Block = tuple[int, int, int]
"""The offsets of a part of the tile in the input and the output, in bytes, and its length along one axis."""


@dataclass(frozen=True)
class Plan:
    """The blocks of an output of ``size`` bytes, and the steps of a block of each length, with their scratch memory."""

    size: int
    blocks: Sequence[Block]
    steps: Mapping[int, Sequence[Step]]
    scratch: int

    @property
    def memory(self) -> int:
        """The bytes of the scratch memory, or, if these are more, of all indexes while they are made."""
        taken = {step.rows for steps in self.steps.values() for step in steps if step.rows}
        return max(self.scratch, 2 * np.intp().nbytes * sum(map(indices, taken)))

    @cached_property
    def calls(self) -> dict[int, list[NumpyCall]]:
        """The calls for a block of each length."""
        return {length: [step.call() for step in steps] for length, steps in self.steps.items()}

    def between(self, scratch: Array | None) -> list[Callable[[Array, Array], object]]:
        """Return the calls that write the only block, with their views of scratch memory."""
        ((read, to, length),) = self.blocks
        return [step.between(scratch, (read, 0, to)) for step in self.steps[length]]

    def bound(self, memories: Memories) -> list[Callable[[], object]]:
        """Return the calls that write all blocks, in order."""
        return [step.bound(memories, (read, 0, to)) for read, to, length in self.blocks for step in self.steps[length]]

    def __str__(self) -> str:
        steps = dict.fromkeys(map(str, self.steps[self.blocks[0][2]]))  # a pass for each index of an axis is one line
        return "\n  ".join([f"{self.size} bytes in {plural(len(self.blocks), 'block')}", *steps])
