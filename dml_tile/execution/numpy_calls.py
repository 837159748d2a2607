"""Calls of NumPy that move bytes between regions of memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from operator import setitem
from typing import Any, Final, NamedTuple

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

UNSIGNED: Final = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


class Region(NamedTuple):
    """The memory of a contiguous array, and the offset in bytes of a tensor's first element."""

    memory: NDArray[Any]
    offset: int = 0

    def moved(self, offset: int) -> Region:
        return Region(self.memory, self.offset + offset)


class Call(NamedTuple):
    """An assignment between two views, or, with a ``factor``, a multiplication that repeats bits.

    Offsets and strides are in bytes. ``passes``, if there are any, are indices of the first axes: NumPy is called once
    for each of them, since its inner loops over the other axes are long.
    """

    lengths: tuple[int, ...]
    dtype: np.dtype[Any]
    read_strides: tuple[int, ...]
    made: np.dtype[Any]
    written: int
    written_strides: tuple[int, ...]
    factor: Any = None
    passes: tuple[tuple[int, ...], ...] = ()

    def read_in(self, source: NDArray[Any], offset: int = 0) -> NDArray[Any]:
        """The view that it reads."""
        return ndarray(self.lengths, self.dtype, source, offset, self.read_strides)

    def written_in(self, output: NDArray[Any], offset: int = 0) -> NDArray[Any]:
        """The view that it writes."""
        return ndarray(self.lengths, self.made, output, offset + self.written, self.written_strides)

    def move(self, values: NDArray[Any], target: NDArray[Any]) -> None:
        """Make the call of NumPy between two views, or one for each of the passes."""
        if self.factor is not None:
            for i in self.passes or (...,):
                np.multiply(values[i], self.factor, target[i])
        elif self.passes:
            for i in self.passes:
                target[i] = values[i]
        else:
            target[...] = values

    def bind(self, source: Region, output: Region) -> Iterator[partial[None]]:
        """The calls of NumPy between two regions, which do not overlap; they may be made any number of times."""
        read, written = self.read_in(*source), self.written_in(*output)
        for i in self.passes or (...,):
            if self.factor is None:
                yield partial(setitem, written[i], ..., read[i])
            else:
                yield partial(np.multiply, read[i], self.factor, written[i])


def make(
    calls: Iterable[Call], source: NDArray[Any], output: NDArray[Any], read_from: int = 0, written_to: int = 0
) -> None:
    """Make calls once, between contiguous arrays that do not overlap, from these offsets on."""
    for call in calls:
        call.move(call.read_in(source, read_from), call.written_in(output, written_to))
