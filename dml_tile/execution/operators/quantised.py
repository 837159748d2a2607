"""Quantised elements, and the operators that make them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dml_tile.execution.call import Array, KernelCall, OperatorKernels, toward_zero
from dml_tile.execution.operators.element_wise import as_float


def quantized(c: KernelCall, x: Array, scale: Array, zero: Array | None) -> Array:
    """Return clamp(round(x / scale) + zero), halves to even; NaN is the least."""
    least, most = c.out.limits
    found = np.rint(x / scale).astype(np.float64) + (0 if zero is None else zero)
    return np.fmin(np.fmax(found, least), most)


def quantize_linear(c: KernelCall) -> Array:
    """Return the quantised elements. NaN is 0, though with one scale and zero point for all it was also the least."""
    x, scale, zero = c.arrays()
    return np.where(np.isnan(x), 0, quantized(c, x, scale, zero))


def dequantized(x: Array, scale: Array, zero: Array | None) -> Array:
    """Return (x - zero) * scale; both become FLOAT32 first, so that 2147483647 - 2147483646 is 0."""
    return (as_float(x) - (0 if zero is None else as_float(zero))) * scale


def blocks(c: KernelCall, i: int) -> Any:
    """Return a QuantizationTensor, each element repeated for its block; None if there is none."""
    x, tensors = c.x, c["QuantizationTensors"]
    if i >= len(tensors):
        return None
    found: Array = tensors[i]
    for axis, size in enumerate(x.shape):
        found = np.repeat(found, size // found.shape[axis], axis)
    return found


def middle(unsigned: bool) -> Array:
    """Return the zero point where none is given, as ONNX Runtime's provider assumes it: 128 of unsigned types."""
    return np.array(128 if unsigned else 0, np.int64)


def quantize(c: KernelCall) -> Array:
    zero = blocks(c, 1)
    return quantized(c, c["InputTensor"], blocks(c, 0), middle(c.out.dtype.kind == "u") if zero is None else zero)


def dequantize(c: KernelCall) -> Array:
    x, zero = c.x, blocks(c, 1)
    return dequantized(x, blocks(c, 0), middle(x.dtype.kind == "u") if zero is None else zero)


def from_zero(c: KernelCall, name: str) -> Array:
    """Return a quantised tensor less its zero point."""
    values, zero = c.raw[f"{name}Tensor"], c.raw[f"{name}ZeroPointTensor"]
    found: Array = values.astype(np.float64) - (0 if zero is None else aligned(zero, values))
    return found


def dequantized_operand(c: KernelCall, name: str) -> Array:
    """Return (values - zero) * scale of a quantised tensor, which is stored in the output's type if that is a float."""
    values, zero = as_float(c.raw[f"{name}Tensor"]), c.raw[f"{name}ZeroPointTensor"]
    centred = values if zero is None else values - as_float(aligned(zero, values))
    found = centred * c[f"{name}ScaleTensor"]
    return toward_zero(found).astype(np.float32) if c.out.dtype == np.float16 else found


def aligned(part: Array, whole: Array) -> Array:
    """Return a tensor without the leading ones that another does not have."""
    return part.reshape(part.shape[-whole.ndim :])


def to_output(c: KernelCall, values: Array) -> Array:
    return quantized(c, values, c["OutputScaleTensor"], c.raw["OutputZeroPointTensor"])


def quantized_linear_add(c: KernelCall) -> Array:
    a, b = (from_zero(c, name).astype(np.float32) * c[f"{name}ScaleTensor"] for name in "AB")
    return to_output(c, a + b)


def dynamic_quantize_linear(c: KernelCall) -> tuple[Array, Array, Array]:
    """Return the quantised elements of a range that holds 0, its scale, and its zero point; NaN is the least.

    DirectML multiplies by reciprocals, 1 / 255 and 1 / scale, which moves elements whose quotient is a half.
    """
    x, (lowest, highest) = c["InputTensor"], c.out.limits
    one, least, greatest = x.dtype.type(1), np.fmin.reduce(x, None, initial=0), np.fmax.reduce(x, None, initial=0)
    scale = (greatest - least) * (one / x.dtype.type(highest - lowest))
    zero = np.fmin(np.fmax(np.rint(lowest - least * (one / scale)), lowest), highest)
    return np.fmin(np.fmax(np.rint(x * (one / scale)) + zero, lowest), highest), scale, zero


KERNELS: Final[OperatorKernels] = {
    "DEQUANTIZE": dequantize,
    "DYNAMIC_QUANTIZE_LINEAR": dynamic_quantize_linear,
    "ELEMENT_WISE_DEQUANTIZE_LINEAR": lambda c: dequantized(*c.arrays()),
    "ELEMENT_WISE_QUANTIZED_LINEAR_ADD": quantized_linear_add,
    "ELEMENT_WISE_QUANTIZE_LINEAR": quantize_linear,
    "QUANTIZE": quantize,
}
