"""A strided copy as a call of NumPy, arranged so that its inner loops are long.

NumPy's inner loop runs over the axis with the smallest stride in the output. Starting it takes as long as some twenty
elements, so Python loops over short axes instead. An element may have any number of bytes: NumPy moves one of 128 bytes
as fast as it moves long runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from dml_tile.execution.numpy_calls import UNSIGNED, Call
from dml_tile.execution.thresholds import FEW, LINE, PASSES, SHORT
from dml_tile.geometry.axes import Axis, coalesce


def copy(size: int, axes: Sequence[Axis], written: int = 0) -> Call:
    """The call that copies elements of ``size`` bytes along axes, outermost first; a source stride of 0 repeats.

    Strides, and the offset in the output, are in bytes.
    """
    size, axes = joined(size, axes)
    if size >= 4 * SHORT:  # in lanes, as fast: NumPy keeps Python's lock while it copies 500 elements or fewer
        return _call(*in_lanes(size, axes), written)
    if math.prod(axis.length for axis in axes) <= FEW:
        return _call(size, axes, written)
    if axes[-1].source == 0 and axes[-1].destination == size and size * axes[-1].length in (2, 4, 8):
        return _multiplied(size, axes, written)
    short = _short(size, axes)
    lane, split = in_lanes(size, axes)
    if size in (3, 6, 12) and lane == size // 3 and axes[-1 - short].length >= FEW:
        size, axes, short = lane, split, short + 1
    return _call(size, axes, written, short=short)


def joined(size: int, axes: Sequence[Axis]) -> tuple[int, list[Axis]]:
    """The same copy in as few axes as possible, and with as large elements."""
    axes = list(coalesce(axes))
    if axes and axes[-1].source == axes[-1].destination == size:
        size *= axes.pop().length
    return size, axes


def in_lanes(size: int, axes: Sequence[Axis]) -> tuple[int, list[Axis]]:
    """The same copy with elements of at most 8 bytes, which are as aligned as those that they are a part of."""
    lane = math.gcd(size, 8, *(stride for axis in axes for stride in axis[1:]))
    return lane, [*axes, Axis(size // lane, lane, lane)]


def _call(size: int, axes: Sequence[Axis], written: int, factor: Any = None, short: int = 0) -> Call:
    """Of the axes, Python loops over the ``short`` last ones."""
    kept = len(axes) - short
    passes = tuple(product(*(range(axis.length) for axis in axes[kept:]))) if short else ()
    lengths, sources, destinations = zip(*axes[kept:], *axes[:kept], strict=True) if axes else ((), (), ())
    dtype = UNSIGNED.get(size) or np.dtype(f"V{size}")
    made = factor.dtype if factor else dtype
    return Call(lengths, dtype, sources, made, written, destinations, factor, passes)


def _short(size: int, axes: Sequence[Axis]) -> int:
    """The number of inner axes that are so short that Python loops over them, and NumPy over the others."""
    short, passes, longest = 0, 1, axes[-1].length
    count = math.prod(axis.length for axis in axes)
    for i in range(len(axes) - 1, 0, -1):
        passes *= axes[i].length
        if passes > PASSES or count < FEW * passes or size > LINE:
            break
        if axes[i - 1].length > 2 * longest:
            short, longest = len(axes) - i, axes[i - 1].length
    return short


def _multiplied(size: int, axes: Sequence[Axis], written: int) -> Call:
    """Repeats that make 2, 4 or 8 bytes of 1, 2 or 4 by a multiplication: processors do many of them at once."""
    *outer, last = axes
    factor = UNSIGNED[size * last.length].type(sum(1 << 8 * size * i for i in range(last.length)))
    return _call(size, outer, written, factor, _short(size, outer))
