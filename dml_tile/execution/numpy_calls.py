"""Calls of NumPy that move bytes between regions of memory."""

from __future__ import annotations

from collections.abc import Iterable
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
    """One call of NumPy: an assignment between two views, or, with a ``factor``, a multiplication that repeats bits.

    Offsets and strides are in bytes.
    """

    lengths: tuple[int, ...]
    dtype: np.dtype[Any]
    read: int
    read_strides: tuple[int, ...]
    made: np.dtype[Any]
    written: int
    written_strides: tuple[int, ...]
    factor: Any = None

    def bind(self, source: Region, output: Region) -> partial[None]:
        """The call between two regions, which do not overlap; it may be made any number of times."""
        read = ndarray(self.lengths, self.dtype, source.memory, source.offset + self.read, self.read_strides)
        written = ndarray(self.lengths, self.made, output.memory, output.offset + self.written, self.written_strides)
        if self.factor is None:
            return partial(setitem, written, ..., read)
        return partial(np.multiply, read, self.factor, written)


def make(
    calls: Iterable[Call], source: NDArray[Any], output: NDArray[Any], read_from: int = 0, written_to: int = 0
) -> None:
    """Make calls once, between contiguous arrays that do not overlap, from these offsets on.

    To bind a call before it is made would take longer than most calls do.
    """
    for lengths, dtype, read, read_strides, made, written, written_strides, factor in calls:
        values = ndarray(lengths, dtype, source, read_from + read, read_strides)
        target = ndarray(lengths, made, output, written_to + written, written_strides)
        if factor is None:
            target[...] = values
        else:
            np.multiply(values, factor, target)
