"""Reductions, cumulative sums and products, the greatest elements, and the softmax family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dml_tile.execution.call import Array, KernelCall, Lengths, OperatorKernel, OperatorKernels
from dml_tile.execution.operators import functions
from dml_tile.execution.operators.movement import positions


def axes_of(c: KernelCall) -> Lengths:
    """Return the dimensions that are reduced: without Axes, the last."""
    return tuple(sorted({*c.Axes})) if c.get("Axes") else (-1,)


def extreme(x: Array, axes: Lengths, *, largest: bool, last: bool = False) -> Array:
    """Return the place of the greatest or least element within the axes: the first, or the last, of equal ones.

    Elements are compared one after the other, so that NaN is passed over, but stays where it is the first.
    """
    axes = tuple(sorted(axis % x.ndim for axis in axes))
    flat = np.moveaxis(x, axes, range(-len(axes), 0)).reshape(*(n for i, n in enumerate(x.shape) if i not in axes), -1)
    is_first_nan = np.isnan(flat[..., 0]) if x.dtype.kind == "f" else np.False_
    if x.dtype.kind == "f":
        flat = np.where(np.isnan(flat), -np.inf if largest else np.inf, flat)
    find = np.argmax if largest else np.argmin
    found = flat.shape[-1] - 1 - find(flat[..., ::-1], -1) if last else find(flat, -1)
    return np.expand_dims(np.where(is_first_nan, 0, found), axes)


def nothing(x: Array, *, greatest: bool) -> Any:
    """Return what MAX or MIN of no numbers is."""
    if x.dtype.kind == "f":
        return -np.inf if greatest else np.inf
    return np.iinfo(x.dtype).min if greatest else np.iinfo(x.dtype).max


def total(x: Array, axes: Lengths) -> Array:
    """Return the sum in the type of the elements."""
    return x.sum(axes, dtype=x.dtype, keepdims=True)


REDUCTIONS: Final[tuple[Callable[[Array, Lengths], Array], ...]] = (
    lambda x, axes: extreme(x, axes, largest=True),
    lambda x, axes: extreme(x, axes, largest=False),
    lambda x, axes: x.mean(axes, keepdims=True),
    lambda x, axes: total(np.abs(x), axes),
    lambda x, axes: np.sqrt(total(x * x, axes)),
    lambda x, axes: functions.log(total(x, axes)),
    lambda x, axes: functions.log(total(functions.exp(x), axes)),
    lambda x, axes: np.fmax.reduce(x, axes, keepdims=True, initial=nothing(x, greatest=True)),
    lambda x, axes: np.fmin.reduce(x, axes, keepdims=True, initial=nothing(x, greatest=False)),
    lambda x, axes: x.prod(axes, dtype=x.dtype, keepdims=True),
    total,
    lambda x, axes: total(x * x, axes),
)
"""By DML_REDUCE_FUNCTION: ARGMAX, ARGMIN, AVERAGE, L1, L2, LOG_SUM, LOG_SUM_EXP, MAX, MIN, MULTIPLY, SUM, SUM_SQUARE.

LOG_SUM_EXP does not subtract the greatest, and is infinite from about 89 on.
"""


def argument(*, largest: bool) -> OperatorKernel:
    return lambda c: extreme(c.x, axes_of(c), largest=largest, last=c.AxisDirection == 1)


def cumulative(accumulate: Any, exclusive: str) -> OperatorKernel:
    """Return the kernel of cumulative sums or products, of which the exclusive ones leave out the element itself."""

    def kernel(c: KernelCall) -> Array:
        x, axis = c["InputTensor"], c.Axis
        x = np.flip(x, axis) if c.AxisDirection else x
        found: Array = accumulate.accumulate(x, axis, dtype=x.dtype)
        if c.get(exclusive):
            found = np.roll(found, 1, axis)
            found[(slice(None),) * axis + (0,)] = accumulate.identity
        return np.flip(found, axis) if c.AxisDirection else found

    return kernel


def top_k(c: KernelCall) -> tuple[Array, Array]:
    """Return the K greatest elements, or the least, and their places; the lower index comes first among equal ones.

    Beside NaN, DirectML's order is not sorted, and is not imitated: NaN is last.
    """
    x, axis = c.x, c.Axis
    if c.get("AxisDirection") == 0:  # INCREASING
        order = np.argsort(x, axis, kind="stable")
    else:
        order = np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
        if x.dtype.kind == "f":
            is_nan = np.take_along_axis(np.isnan(x), order, axis)
            order = np.take_along_axis(order, np.argsort(is_nan, axis, kind="stable"), axis)
    order = np.take(order, np.arange(c.K), axis)
    return np.take_along_axis(x, order, axis), order


# the softmax family


def softmax(c: KernelCall) -> Array:
    x, axes = c["InputTensor"], axes_of(c)
    powers = functions.exp(x - x.max(axes, keepdims=True))
    return powers / c.stored(total(powers, axes))


def log_softmax(c: KernelCall) -> Array:
    """Return x - max - log(sum), of a sum of at least 1e-20, which DirectML stores in the tensor's type."""
    x, axes = c["InputTensor"], axes_of(c)
    x = x - np.fmax.reduce(x, axes, keepdims=True)
    return x - functions.log(np.fmax(c.stored(total(functions.exp(x), axes)), x.dtype.type(1e-20)))


KERNELS: Final[OperatorKernels] = {
    "ACTIVATION_HARDMAX": lambda c: extreme(c.x, axes_of(c), largest=True) == positions(c.x.shape, axes_of(c)),
    "ACTIVATION_LOG_SOFTMAX": log_softmax,
    "ACTIVATION_SOFTMAX": softmax,
    "ARGMAX": argument(largest=True),
    "ARGMIN": argument(largest=False),
    "CUMULATIVE_PRODUCT": cumulative(np.multiply, "HasExclusiveProduct"),
    "CUMULATIVE_SUMMATION": cumulative(np.add, "HasExclusiveSum"),
    "REDUCE": lambda c: REDUCTIONS[c.Function](c["InputTensor"], axes_of(c)),
    "TOP_K": top_k,
}
