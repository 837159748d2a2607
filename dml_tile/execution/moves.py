"""Strided copies as calls of NumPy, arranged so that its inner loops are long.

NumPy's inner loop runs over the axis with the smallest stride in the output. Starting it takes as long as some ten
elements, so Python loops over short axes instead. An element may have any number of bytes: NumPy moves one of 128 bytes
as fast as it moves long runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from dml_tile.execution.numpy_calls import UNSIGNED, Call
from dml_tile.execution.thresholds import FEW, LINE, SHORT
from dml_tile.geometry.axes import Axis, coalesce

MAX_PASSES: Final = 16
"""Python loops over at most so many indices of short axes; from about 16 on, a loop of NumPy costs little to start."""
RECTANGLE: Final = 512, 64
"""Elements along the source, and along the output, that are copied crosswise at once: their lines stay in the cache."""


def copy(size: int, axes: Sequence[Axis], read: int = 0, written: int = 0) -> Iterator[Call]:
    """The calls that copy elements of ``size`` bytes along axes, outermost first; a source stride of 0 repeats.

    Offsets and strides are in bytes.
    """
    size, axes = joined(size, axes)
    count = math.prod(axis.length for axis in axes)
    if size >= 4 * SHORT:  # in lanes, as fast: NumPy keeps Python's lock while it copies 500 elements or fewer
        yield _call(*in_lanes(size, axes), read, written)
    elif count <= FEW:
        yield _call(size, axes, read, written)
    elif axes[-1].source == 0 and axes[-1].destination == size and size * axes[-1].length in (2, 4, 8):
        yield from _multiplied(size, axes, read, written)
    elif (across := _across(size, axes)) is not None:
        yield from _crosswise(size, axes, across, read, written)
    else:
        if size in (3, 6, 12, 24) and count >= 8 * FEW:
            size, axes = in_lanes(size, axes)
        kept, short = _parted(size, axes)
        for place in places(short):
            yield _call(size, kept, read + place.source, written + place.destination)


def joined(size: int, axes: Sequence[Axis]) -> tuple[int, list[Axis]]:
    """The same copy in as few axes as possible, and with as large elements."""
    axes = list(coalesce(axes))
    if axes and axes[-1].source == axes[-1].destination == size:
        size *= axes.pop().length
    return size, axes


def in_lanes(size: int, axes: Sequence[Axis]) -> tuple[int, list[Axis]]:
    """The same copy with elements of at most 8 bytes."""
    lane = math.gcd(size, 8)
    return lane, [*axes, Axis(size // lane, lane, lane)]


def _call(size: int, axes: Sequence[Axis], read: int, written: int, factor: Any = None) -> Call:
    lengths, sources, destinations = zip(*axes, strict=True) if axes else ((), (), ())
    dtype = UNSIGNED.get(size) or np.dtype(f"V{size}")
    return Call(lengths, dtype, read, sources, factor.dtype if factor else dtype, written, destinations, factor)


def _parted(size: int, axes: Sequence[Axis]) -> tuple[Sequence[Axis], Sequence[Axis]]:
    """The axes that NumPy loops over, and the short inner ones that Python loops over."""
    best, passes, longest = len(axes), 1, axes[-1].length
    count = math.prod(axis.length for axis in axes)
    for i in range(len(axes) - 1, 0, -1):
        passes *= axes[i].length
        if passes > (MAX_PASSES if size in UNSIGNED else MAX_PASSES // 4) or count < FEW * passes:
            break
        if axes[i - 1].length > 2 * longest:
            best, longest = i, axes[i - 1].length
    return axes[:best], axes[best:]


def places(axes: Sequence[Axis]) -> Iterator[Axis]:
    """The offsets in source and destination of each index of the axes."""
    for place in product(*(range(axis.length) for axis in axes)):
        moved = [(i * axis.source, i * axis.destination) for i, axis in zip(place, axes, strict=True)]
        yield Axis(1, sum(source for source, _ in moved), sum(destination for _, destination in moved))


def _multiplied(size: int, axes: Sequence[Axis], read: int, written: int) -> Iterator[Call]:
    """Repeats that make 2, 4 or 8 bytes of 1, 2 or 4 by a multiplication: processors do many of them at once."""
    *outer, last = axes
    factor = UNSIGNED[size * last.length].type(sum(1 << 8 * size * i for i in range(last.length)))
    kept, short = _parted(size, outer)
    for place in places(short):
        yield _call(size, kept, read + place.source, written + place.destination, factor)


def _across(size: int, axes: Sequence[Axis]) -> int | None:
    """The axis along which the source is contiguous, where the last axis, along which it is not, is long."""
    if size > 16 or abs(axes[-1].source) <= LINE or axes[-1].length <= MAX_PASSES:
        return None
    return next((i for i, axis in enumerate(axes[:-1]) if abs(axis.source) == size and axis.length >= 8), None)


def _crosswise(size: int, axes: Sequence[Axis], across: int, read: int, written: int) -> Iterator[Call]:
    """A copy in rectangles, so that each line of the source is read once."""
    wide = min(RECTANGLE[0], axes[across].length)
    high = max(RECTANGLE[1], math.prod(RECTANGLE) // wide)
    rectangle = list(axes)
    for i in range(0, axes[across].length, wide):
        rectangle[across] = axes[across]._replace(length=min(wide, axes[across].length - i))
        for j in range(0, axes[-1].length, high):
            rectangle[-1] = axes[-1]._replace(length=min(high, axes[-1].length - j))
            source, output = (i * a + j * b for a, b in zip(axes[across][1:], axes[-1][1:], strict=True))
            yield _call(size, rectangle, read + source, written + output)
