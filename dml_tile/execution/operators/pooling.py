"""Poolings and their gradients, FOLD and UNFOLD."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from math import prod
from typing import Any, Final

import numpy as np

from dml_tile.execution.call import Array, KernelCall, Lengths, OperatorKernels
from dml_tile.execution.operators.quantised import from_zero, to_output
from dml_tile.execution.operators.windows import Windows, added_back


def windows_of(c: KernelCall, shape: Lengths, out: Lengths) -> Windows:
    """Return the windows of a pooling of a tensor of a shape."""
    more = {"dilation": c.get("Dilations"), "start": c.StartPadding}
    return Windows(c, shape, out[-c.DimensionCount :], c.WindowSize, c.Strides, **more)


def added(parts: Iterable[Array]) -> Array:
    """Return the sum of arrays, added in their order."""
    return reduce(np.add, parts)


def divisors(c: KernelCall, windows: Windows, dtype: np.dtype[Any]) -> Array:
    """Return how many elements each window averages; of one that lies in the padding, 0."""
    if c.IncludePadding:
        return np.array(prod(c.WindowSize), dtype)
    return windows.over(np.ones(windows.shape, dtype)).sum(windows.axes, dtype=dtype)


def averaged(c: KernelCall, x: Array) -> Array:
    windows = windows_of(c, x.shape, c.out.shape)
    return added(windows.one_by_one(x)) / divisors(c, windows, x.dtype)


def average_pooling_grad(c: KernelCall) -> Array:
    gradient, shape = c["InputGradientTensor"], c.out.shape
    windows = windows_of(c, shape, gradient.shape)
    parts, found = gradient / divisors(c, windows, gradient.dtype), np.zeros(prod(shape) + 1, gradient.dtype)
    own = np.arange(prod(shape)).reshape(shape)
    for places in windows.one_by_one(own, -1, backward=True):  # -1 is beyond
        np.add.at(found, places, parts)
    return found[:-1]


def lp_pooling(c: KernelCall) -> Array:
    x = c["InputTensor"]
    powers = windows_of(c, x.shape, c.out.shape).one_by_one(np.abs(x) ** c.P)
    return added(powers) ** (1 / np.float32(c.P))


def most(c: KernelCall, x: Array, out: Lengths, *, indices: bool = True) -> tuple[Array, Array]:
    """Return of each window the greatest element and its place in the whole tensor.

    A window starts from the least finite number of its type, which is also what lies in the padding: of FLOAT16 with
    native operations, that of FLOAT32, rounded. NaN is passed over. The place is the first of an element that is
    greater, else the first within the tensor, else -1.
    """
    windows = windows_of(c, x.shape, out)
    least = np.finfo(x.dtype).min if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    if x.dtype == np.float16 and c.target.native_16_bit_ops:
        least = np.float16(-np.inf)
    values = np.where(x > least, x, least)
    candidates = windows.one_by_one(values, least)
    if not indices:
        return reduce(np.maximum, candidates), np.zeros(0, np.int64)
    places = windows.one_by_one(np.arange(x.size).reshape(x.shape), -1)
    best, place = np.full(windows.counts, least, x.dtype), np.full(windows.counts, -1)
    for value, at in zip(candidates, places, strict=True):
        place = np.where((value > best) | (place < 0), at, place)
        best = np.maximum(best, value)
    return best, place


def quantized_linear_average_pooling(c: KernelCall) -> Array:
    return to_output(c, averaged(c, from_zero(c, "Input").astype(np.float32) * c["InputScaleTensor"]))


def max_pooling(c: KernelCall) -> tuple[Array, ...]:
    x, has_indices = c.x, c.outputs.get("OutputIndicesTensor") is not None
    values, places = most(c, x, c.out.shape, indices=has_indices)
    return (values, np.maximum(places, 0))[: len(c.outputs)]


def max_pooling_grad(c: KernelCall) -> Array:
    x, gradient = c["InputTensor"], c["InputGradientTensor"]
    _, places = most(c, x, gradient.shape)
    return added_back(x.shape, places, gradient)


def max_unpooling(c: KernelCall) -> Array:
    found = np.zeros(c.out.size, c.out.dtype)
    found[c.indices("IndicesTensor", c.out.size)] = c.x
    return found


# FOLD and UNFOLD: each window is a column


def columns(c: KernelCall, shape: Lengths) -> Windows:
    ends = zip(
        shape[-c.DimensionCount :], c.StartPadding, c.EndPadding, c.Dilations, c.WindowSizes, c.Strides, strict=True
    )
    out = tuple((n + a + b - d * (w - 1) - 1) // s + 1 for n, a, b, d, w, s in ends)
    return Windows(c, shape, out, c.WindowSizes, c.Strides, dilation=c.Dilations, start=c.StartPadding)


def sizes_first(view: Array, count: int) -> Array:
    """Return windows {..., *out, *size} as {..., *size, *out}."""
    lead, out, size = range(view.ndim - 2 * count), range(view.ndim - 2 * count, view.ndim - count), range(-count, 0)
    return view.transpose(*lead, *size, *out)


def unfold(c: KernelCall) -> Array:
    return sizes_first(columns(c, c.x.shape).over(c.x), c.DimensionCount)


def fold(c: KernelCall) -> Array:
    places = sizes_first(columns(c, c.out.shape).places(), c.DimensionCount)
    return added_back(c.out.shape, places, c["InputTensor"].reshape(places.shape))


KERNELS: Final[OperatorKernels] = {
    "AVERAGE_POOLING": lambda c: averaged(c, c["InputTensor"]),
    "AVERAGE_POOLING_GRAD": average_pooling_grad,
    "FOLD": fold,
    "LP_POOLING": lp_pooling,
    "MAX_POOLING": max_pooling,
    "MAX_POOLING_GRAD": max_pooling_grad,
    "MAX_UNPOOLING": max_unpooling,
    "QUANTIZED_LINEAR_AVERAGE_POOLING": quantized_linear_average_pooling,
    "UNFOLD": unfold,
}
