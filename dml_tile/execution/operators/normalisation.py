"""Normalisations and their gradients."""

from __future__ import annotations

from typing import Final

import numpy as np

from dml_tile.execution.call import Array, KernelCall, Lengths, OperatorKernels
from dml_tile.execution.operators.pooling import added
from dml_tile.execution.operators.reductions import total
from dml_tile.execution.operators.windows import Windows


def mean_of(x: Array, axes: Lengths) -> Array:
    return x.mean(axes, keepdims=True)


def with_scale_and_bias(c: KernelCall, x: Array) -> Array:
    """Return x * ScaleTensor + BiasTensor, either of which may be null."""
    x = x if c["ScaleTensor"] is None else x * c["ScaleTensor"]
    return x if c["BiasTensor"] is None else x + c["BiasTensor"]


def batch_normalization(c: KernelCall) -> Array:
    x, mean, variance = c["InputTensor"], c["MeanTensor"], c["VarianceTensor"]
    return with_scale_and_bias(c, (x - mean) / np.sqrt(variance + c.Epsilon))


def reduced_axes(part: Array, whole: Array) -> Lengths:
    return tuple(i for i, (one, size) in enumerate(zip(part.shape, whole.shape, strict=True)) if one == 1 < size)


def batch_normalization_training(c: KernelCall) -> tuple[Array, Array, Array]:
    x, added_to = c["InputTensor"], c["FusedAddTensor"]
    axes = reduced_axes(c["ScaleTensor"], x)
    mean = c.stored(mean_of(x, axes))
    variance = c.stored(mean_of((x - mean) * (x - mean), axes))
    found = with_scale_and_bias(c, (x - mean) / np.sqrt(variance + c.Epsilon))
    return found if added_to is None else found + added_to, mean, variance


def batch_normalization_grad(c: KernelCall) -> tuple[Array, Array, Array]:
    """Return the gradients of the input, the scale and the bias.

    That of TRAINING also takes the input's part in mean and variance back; both centre by MeanTensor.
    """
    x, gradient, mean, variance = (c[f"{name}Tensor"] for name in ("Input", "InputGradient", "Mean", "Variance"))
    axes, factor = reduced_axes(mean, x), 1 / np.sqrt(variance + c.Epsilon)
    back = gradient
    if c.name == "BATCH_NORMALIZATION_TRAINING_GRAD":
        of_variance = (x - mean) * mean_of(gradient * (x - mean), axes) / (variance + c.Epsilon)
        back = gradient - mean_of(gradient, axes) - of_variance
    of_scale = total(gradient * (x - mean) * factor, axes)
    return back * c["ScaleTensor"] * factor, of_scale, total(gradient, axes)


def mean_variance_normalization(c: KernelCall) -> Array:
    """Return the elements less their mean, and by their deviation: over Axes, or CrossChannel's {1, 2, 3} or {2, 3}.

    DirectML stores mean and variance in the tensor's type.
    """
    x = c["InputTensor"]
    axes = tuple({*(c.Axes or ())}) if "Axes" in c.fields.values else (1, 2, 3) if c.CrossChannel else (2, 3)
    found = x
    if c.get("UseMean") != 0:  # the other two operators always do
        found = x - c.stored(mean_of(x, axes))
    if c.get("NormalizeVariance") or c.get("UseVariance"):
        found = found / np.sqrt(c.stored(mean_of(found * found, axes)) + c.Epsilon)
    return with_scale_and_bias(c, found)


def local_sums(c: KernelCall, x: Array) -> Array:
    """Return sums over each element's LocalSize neighbours of channels, or of height and width."""
    size = c.LocalSize
    for axis in (1,) if c.CrossChannel else (2, 3):
        lines = np.moveaxis(x, axis, -1)
        windows = Windows(c, lines.shape, lines.shape[-1:], (size,), (1,), start=[(size - 1) // 2])
        x = np.moveaxis(added(windows.one_by_one(lines)), -1, axis)
    return x


def local_response_normalization(c: KernelCall) -> Array:
    """Return x / (Bias + Alpha / LocalSize * sum)^Beta, also across height and width."""
    x = c["InputTensor"]
    return x / (c.Bias + c.Alpha / c.LocalSize * local_sums(c, x * x)) ** c.Beta


def local_response_normalization_grad(c: KernelCall) -> Array:
    x, gradient, factor = c["InputTensor"], c["InputGradientTensor"], c.Alpha / c.LocalSize
    base = c.Bias + factor * local_sums(c, x * x)
    of_sums = local_sums(c, gradient * x * base ** (-c.Beta - 1))
    return gradient * base**-c.Beta - 2 * factor * c.Beta * x * of_sums


def lp_normalization(c: KernelCall) -> Array:
    """Return x / sqrt(norm^2 + Epsilon), of P = 1 too; DirectML stores norm^2 in the tensor's type."""
    x, axes = c["InputTensor"], (c.Axis,)
    squares = total(np.abs(x), axes) ** 2 if c.P == 1 else total(x * x, axes)
    return x / np.sqrt(c.stored(squares) + c.Epsilon)


KERNELS: Final[OperatorKernels] = {
    "BATCH_NORMALIZATION": batch_normalization,
    "BATCH_NORMALIZATION_GRAD": batch_normalization_grad,
    "BATCH_NORMALIZATION_TRAINING": batch_normalization_training,
    "BATCH_NORMALIZATION_TRAINING_GRAD": batch_normalization_grad,
    "LOCAL_RESPONSE_NORMALIZATION": local_response_normalization,
    "LOCAL_RESPONSE_NORMALIZATION_GRAD": local_response_normalization_grad,
    "LP_NORMALIZATION": lp_normalization,
    "MEAN_VARIANCE_NORMALIZATION": mean_variance_normalization,
}
