"""The moves that a plan is made of: each copies runs of bytes from one region of memory to another, by NumPy.

A move is run on a number of indices of the axis that the plan walks in chunks; that axis comes first in each walk.
Copies of a few bytes each are what NumPy is slow at: about as slow as its inner loop is short. So each move but the
plain copy is a way to a longer inner loop, or to larger elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dml_tile.axes import Axis
from dml_tile.memory import Bytes

_UNSIGNED: Final = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}

_RECTANGLE: Final = 64, 512
"""How much of a crosswise copy is done at once, in elements: so wide in the source, so wide in the destination."""
_ALIASED_RECTANGLE: Final = 256, 256
_PADDING: Final = 8  # elements; keeps the columns of a scratch rectangle from sharing cache sets


@dataclass(frozen=True)
class Walk:
    """Where a move reads and writes: axes, outermost first, of elements of ``size`` bytes.

    The first axis is walked as often as its length for each index of the plan's chunked axis.
    """

    size: int
    axes: tuple[Axis, ...]

    def __str__(self) -> str:
        lengths = " x ".join(str(axis.length) for axis in self.axes)
        return f"{lengths} elements of {self.size} bytes"

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return _UNSIGNED.get(self.size) or np.dtype(f"V{self.size}")

    @cached_property
    def strides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The source's, and the destination's."""
        return tuple(axis.source for axis in self.axes), tuple(axis.destination for axis in self.axes)

    @cached_property
    def _inner(self) -> tuple[int, ...]:
        return tuple(axis.length for axis in self.axes[1:])

    def shape(self, count: int) -> tuple[int, ...]:
        """The shape of what is walked for ``count`` indices of the chunked axis."""
        return (count * self.axes[0].length, *self._inner)

    def read(self, count: int, memory: Bytes, offset: int) -> NDArray[Any]:
        """The view of what is read for ``count`` indices, which begins at an offset in bytes."""
        return np.ndarray(self.shape(count), self.dtype, memory, offset, self.strides[0])

    def written(self, count: int, memory: Bytes, offset: int) -> NDArray[Any]:
        """The view of what is written."""
        return np.ndarray(self.shape(count), self.dtype, memory, offset, self.strides[1])


class Move(Protocol):
    """What a plan does with each block."""

    @property
    def walk(self) -> Walk: ...

    def run(self, count: int, source: Bytes, read_from: int, destination: Bytes, written_to: int) -> None:
        """Move ``count`` indices of the chunked axis between two regions, from and to these offsets in bytes."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One strided copy."""

    walk: Walk

    def run(self, count: int, source: Bytes, read_from: int, destination: Bytes, written_to: int) -> None:
        self.walk.written(count, destination, written_to)[...] = self.walk.read(count, source, read_from)


@dataclass(frozen=True, slots=True)
class Passes:
    """A copy in several passes, one for each short repeat and each part of an element, so that the inner loop is long.

    ``walk`` is a pass; the repeats are ``step`` bytes apart, and an element is ``lanes`` of the walk's.
    """

    walk: Walk
    repeats: int
    step: int
    lanes: int

    def run(self, count: int, source: Bytes, read_from: int, destination: Bytes, written_to: int) -> None:
        for lane in range(0, self.lanes * self.walk.dtype.itemsize, self.walk.dtype.itemsize):
            read = self.walk.read(count, source, read_from + lane)
            for repeat in range(self.repeats):
                self.walk.written(count, destination, written_to + lane + repeat * self.step)[...] = read


@dataclass(frozen=True, slots=True)
class Multiply:
    """A repeat that makes 2, 4 or 8 bytes of 1, 2 or 4, by a multiplication: processors do many of them at once."""

    walk: Walk
    wide: np.dtype[Any]

    def run(self, count: int, source: Bytes, read_from: int, destination: Bytes, written_to: int) -> None:
        output = np.ndarray(self.walk.shape(count), self.wide, destination, written_to, self.walk.strides[1])
        np.multiply(self.walk.read(count, source, read_from), self._factor, out=output)

    @property
    def _factor(self) -> Any:
        size = 8 * self.walk.dtype.itemsize
        return self.wide.type(sum(1 << shift for shift in range(0, 8 * self.wide.itemsize, size)))


@dataclass(frozen=True, slots=True)
class Crosswise:
    """A copy whose last axis, and ``across``, run crosswise in source and destination, in small rectangles.

    ``is_aliased`` tells that rows of the source share the processor's cache sets; then a rectangle is copied row by row
    first.
    """

    walk: Walk
    across: int
    is_aliased: bool

    def run(self, count: int, source: Bytes, read_from: int, destination: Bytes, written_to: int) -> None:
        read = np.moveaxis(self.walk.read(count, source, read_from), self.across, -2)
        written = np.moveaxis(self.walk.written(count, destination, written_to), self.across, -2)
        width, height = _ALIASED_RECTANGLE if self.is_aliased else _RECTANGLE
        for i in range(0, read.shape[-2], width):
            for j in range(0, read.shape[-1], height):
                rectangle = read[..., i : i + width, j : j + height]
                if self.is_aliased:
                    rectangle = _row_by_row(rectangle)
                written[..., i : i + width, j : j + height] = rectangle


def _row_by_row(rectangle: NDArray[Any]) -> NDArray[Any]:
    """A copy whose last axis is not the innermost one either, but near in memory."""
    *outer, width, height = rectangle.shape
    copy = np.empty((*outer, height, width + _PADDING), rectangle.dtype)[..., :width].swapaxes(-1, -2)
    copy[...] = rectangle
    return copy
