"""The moves that a plan is made of: each copies runs of bytes from one region of memory to another, by NumPy.

A move is run on a number of indices of the axis that the plan walks in chunks; that axis comes first in each walk.
Copies of a few bytes each are what NumPy is slow at: about as slow as its inner loop is short. So each move but the
plain copy is a way to a longer inner loop, or to larger elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from operator import setitem
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dml_tile.bindings.memory import Bytes
from dml_tile.geometry.axes import Axis

Step = Callable[[], object]
"""One call of NumPy that moves bytes; it may be called any number of times."""

_UNSIGNED: Final = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}

_RECTANGLE: Final = 512, 256
"""How much of a crosswise copy is done at once, in elements: so wide in the source, so wide in the destination."""
_NARROW_RECTANGLE: Final = 512, 32  # for rows of at most 512
_ALIASED_RECTANGLE: Final = 256, 256
_RECTANGLE_AREA: Final = 2**15  # at least, where the source is not as wide
_NEAR: Final = 2**17  # bytes of a scratch rectangle
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

    def steps(self, count: int, source: Bytes, read_from: int, destination: Bytes, written_to: int) -> Iterator[Step]:
        """What moves ``count`` indices of the chunked axis between two regions, from and to these offsets in bytes."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One strided copy."""

    walk: Walk

    def steps(self, count: int, source: Bytes, read_from: int, destination: Bytes, written_to: int) -> Iterator[Step]:
        yield _copy(self.walk.written(count, destination, written_to), self.walk.read(count, source, read_from))


@dataclass(frozen=True, slots=True)
class Stream:
    """A run of bytes that is repeated, of which the source holds ``held`` in a row: so many are written at once."""

    walk: Walk
    held: int

    def steps(self, count: int, source: Bytes, read_from: int, destination: Bytes, written_to: int) -> Iterator[Step]:
        run = self.walk.size
        read = source[read_from : read_from + self.held * run]
        written = destination[written_to : written_to + count * run]
        whole = written.size - written.size % read.size
        if whole:
            yield _copy(written[:whole].reshape(-1, read.size), read)
        if whole < written.size:
            yield _copy(written[whole:], read[: written.size - whole])


@dataclass(frozen=True, slots=True)
class Passes:
    """A copy in several passes, one for each index of a short axis and each part of an element: the inner loop is long.

    ``walk`` is a pass, ``inner`` the short axis, a repeat or not; an element is ``lanes`` of the walk's.
    """

    walk: Walk
    inner: Axis
    lanes: int

    def steps(self, count: int, source: Bytes, read_from: int, destination: Bytes, written_to: int) -> Iterator[Step]:
        size, shape, (gather, spread) = self.walk.size, self.walk.shape(count), self.walk.strides
        length, source_step, destination_step = self.inner
        shape = (self.lanes, length, *shape)
        read = np.ndarray(shape, self.walk.dtype, source, read_from, (size, source_step, *gather))
        written = np.ndarray(shape, self.walk.dtype, destination, written_to, (size, destination_step, *spread))
        for i in range(self.lanes):
            for j in range(length):
                yield _copy(written[i, j], read[i, j])


@dataclass(frozen=True, slots=True)
class Multiply:
    """A repeat that makes 2, 4 or 8 bytes of 1, 2 or 4, by a multiplication: processors do many of them at once."""

    walk: Walk
    wide: np.dtype[Any]

    def steps(self, count: int, source: Bytes, read_from: int, destination: Bytes, written_to: int) -> Iterator[Step]:
        output = np.ndarray(self.walk.shape(count), self.wide, destination, written_to, self.walk.strides[1])
        yield partial(np.multiply, self.walk.read(count, source, read_from), self._factor, output)

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

    def steps(self, count: int, source: Bytes, read_from: int, destination: Bytes, written_to: int) -> Iterator[Step]:
        read = np.moveaxis(self.walk.read(count, source, read_from), self.across, -2)
        written = np.moveaxis(self.walk.written(count, destination, written_to), self.across, -2)
        wide, high = self._rectangle(read.shape[-1])
        width = min(wide, read.shape[-2])
        height = high if width == wide else max(high, _RECTANGLE_AREA // width)
        if self.is_aliased:
            height = min(height, max(1, _NEAR // ((width + _PADDING) * self.walk.size)))
        for i in range(0, read.shape[-2], width):
            for j in range(0, read.shape[-1], height):
                part = ..., slice(i, i + width), slice(j, j + height)
                yield partial(_copy_row_by_row if self.is_aliased else _copy_at_once, written[part], read[part])

    def _rectangle(self, row: int) -> tuple[int, int]:
        if self.is_aliased:
            return _ALIASED_RECTANGLE
        return _NARROW_RECTANGLE if row <= _NARROW_RECTANGLE[0] else _RECTANGLE


def _copy(written: NDArray[Any], read: NDArray[Any]) -> Step:
    return partial(setitem, written, ..., read)


def _copy_at_once(written: NDArray[Any], rectangles: NDArray[Any]) -> None:
    written[...] = rectangles


def _copy_row_by_row(written: NDArray[Any], rectangles: NDArray[Any]) -> None:
    """Copy through memory whose last axis is not the innermost one either, but near."""
    *outer, width, height = rectangles.shape
    near = np.empty((height, width + _PADDING), rectangles.dtype)[:, :width].T
    for place in np.ndindex(*outer):
        near[...] = rectangles[place]
        written[place] = near
