"""Matrix products and convolutions, also of quantised elements, and attention."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from dml_tile.execution.call import Array, KernelCall, Lengths, OperatorKernels
from dml_tile.execution.operators import functions
from dml_tile.execution.operators.quantised import aligned, dequantized_operand, from_zero, to_output
from dml_tile.execution.operators.reductions import total
from dml_tile.execution.operators.windows import Windows

_IN_ORDER: Final = 2**16
"""The most multiplications of a product of matrices that are added one after the other."""


def product(c: KernelCall, a: Array, b: Array) -> Array:
    """Return the product of matrices. The products of small ones are rounded and added in order, as was measured."""
    steps = prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2])) * a.shape[-2] * prod(b.shape[-2:])
    c.require(steps=steps)
    if steps > _IN_ORDER:
        found: Array = a @ b
        return found
    columns = zip(np.moveaxis(a, -1, 0)[..., None], np.moveaxis(b, -2, 0)[..., None, :], strict=True)
    first, second = next(columns)
    added: Array = first * second
    for first, second in columns:
        added = added + first * second
    return added


def transposed(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def gemm(c: KernelCall) -> Array:
    a, b, addend = c["ATensor"], c["BTensor"], c["CTensor"]
    found = c.Alpha * product(c, transposed(a) if c.TransA else a, transposed(b) if c.TransB else b)
    return found if addend is None else found + c.Beta * addend


# of quantised elements


def scaled_product(c: KernelCall) -> Array:
    return product(c, *(dequantized_operand(c, name) for name in "AB"))


def matrix_multiply_integer_to_float(c: KernelCall) -> Array:
    """Return the product of what DEQUANTIZE_LINEAR makes, stored in the output's type at each step."""
    found, bias = c.stored(scaled_product(c)), c["BiasTensor"]
    return found if bias is None else found + bias


# convolution


def convolved(c: KernelCall, x: Array, filter_: Array, out: Lengths, steps: Lengths, start: Lengths) -> Array:
    """Return a cross-correlation: a product of matrices for each row of the filter."""
    count, groups = c.DimensionCount, c.GroupCount
    size = filter_.shape[-count:]
    filter_ = filter_.reshape(groups, -1, *filter_.shape[1:])
    x = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[-count:])
    columns_bytes = prod((*x.shape[:3], size[-1], *out)) * x.itemsize
    c.require(memory=columns_bytes, steps=x.shape[0] * prod(out) * filter_.size, loops=prod(size[:-1]))
    windows = Windows(c, x.shape, out, size, steps, dilation=c.Dilations, start=start).over(x)
    found = np.zeros((x.shape[0], groups, filter_.shape[1], prod(out)), x.dtype)
    for place in np.ndindex(*size[:-1]):
        row: Any = (..., *place, slice(None))
        columns = np.moveaxis(windows[row], -1, 3).reshape(*x.shape[:2], x.shape[2] * size[-1], prod(out))
        found += product(c, filter_[row].reshape(groups, filter_.shape[1], -1), columns)
    return found.reshape(x.shape[0], -1, *out)


def backward(c: KernelCall, x: Array, filter_: Array, out: Lengths) -> Array:
    """Return a transposed convolution: that of the input with zeros between its elements, which meet the filter too."""
    count, groups, size = c.DimensionCount, c.GroupCount, filter_.shape[-c.DimensionCount :]
    shape = (*x.shape[:2], *((n - 1) * s + 1 for n, s in zip(x.shape[2:], c.Strides, strict=True)))
    c.require(memory=prod(shape) * x.itemsize)
    spread = np.zeros(shape, x.dtype)
    between: Any = (..., *(slice(None, None, step) for step in c.Strides))
    spread[between] = x
    start = [(k - 1) * d - p for k, d, p in zip(size, c.Dilations, c.StartPadding, strict=True)]
    cropped: Any = (..., *(slice(max(0, -each), None) for each in start))
    by_output = filter_.reshape(groups, -1, *filter_.shape[1:]).swapaxes(1, 2)
    by_output = np.flip(by_output.reshape(-1, filter_.shape[0] // groups, *size), tuple(range(-count, 0)))
    return convolved(c, spread[cropped], by_output, out, (1,) * count, tuple(max(0, each) for each in start))


def convolution(c: KernelCall) -> Array:
    """Page: ns-directml-dml_convolution_operator_desc"""
    x, filter_, out, bias = c["InputTensor"], c["FilterTensor"], c.out.shape[2:], c["BiasTensor"]
    if c.Mode == 0:  # CONVOLUTION: the filter is mirrored
        filter_ = np.flip(filter_, tuple(range(2, filter_.ndim)))
    found = backward(c, x, filter_, out) if c.Direction else convolved(c, x, filter_, out, c.Strides, c.StartPadding)
    return found if bias is None else found + bias


def without_output_padding(c: KernelCall, found: Array) -> Array:
    """Return a backward convolution with zeros where OutputPadding is, for which bias and activation do not count."""
    inside: Any = (..., *(slice(n - p) for n, p in zip(found.shape[2:], c.OutputPadding, strict=True)))
    zeros = np.zeros_like(found)
    zeros[inside] = found[inside]
    return zeros


def per_filter(c: KernelCall, name: str, otherwise: float) -> Array:
    """Return a filter's scale or zero point, {1, C, 1...}, so that it meets the filter's first dimension."""
    found = c.raw[name]
    values = np.array([otherwise]) if found is None else found
    return values.astype(np.float64).reshape(-1, *[1] * (c.raw["FilterTensor"].ndim - 1))


def convolution_integer(c: KernelCall) -> Array:
    filter_ = c.raw["FilterTensor"] - per_filter(c, "FilterZeroPointTensor", 0)
    return convolved(c, from_zero(c, "Input"), filter_, c.out.shape[2:], c.Strides, c.StartPadding)


def quantized_linear_convolution(c: KernelCall) -> Array:
    """Return the convolution, rounded and saturated to 32 bits, in which the zero point is added and wraps."""
    found = convolution_integer(c)
    found = found if c["BiasTensor"] is None else found + c["BiasTensor"]
    scale = c["InputScaleTensor"].ravel()[0] * per_filter(c, "FilterScaleTensor", 1)
    scale = scale.reshape(1, -1, *[1] * (found.ndim - 2)) / c["OutputScaleTensor"].ravel()[0]
    values = np.clip(np.rint(found * scale), -(2.0**31), 2.0**31 - 1).astype(np.int64)
    if (zero := c.raw["OutputZeroPointTensor"]) is not None:
        values = (values + zero.ravel()[0].astype(np.int64)).astype(np.int32)
    return np.clip(values, *c.out.limits)


# attention


def stacked(c: KernelCall, name: str) -> Any:
    """Return a query, key or value {batch, length, size}, also of a stacked tensor; None if there is none."""
    for parts in ("QueryKey", "KeyValue", "QueryKeyValue"):
        tensor = c[f"Stacked{parts}Tensor"]
        if tensor is not None and name in parts:
            at = [each for each in ("Query", "Key", "Value") if each in parts].index(name)
            return tensor[:, :, :, at].reshape(*tensor.shape[:2], -1)
    tensor = c[f"{name}Tensor"]
    return None if tensor is None else tensor.reshape(tensor.shape[-3:])


def multihead_attention(c: KernelCall) -> tuple[Array, Any, Any]:
    """Return softmax(query x key^T x Scale + bias, masked) x value of each head, and the present keys and values.

    Page: ns-directml-dml_multihead_attention_operator_desc
    """
    parts, bias, heads = [stacked(c, name) for name in ("Query", "Key", "Value")], c["BiasTensor"], list[Any]()
    ends = np.cumsum([0 if part is None else part.shape[-1] for part in parts])
    for part, addend in zip(parts, [0] * 3 if bias is None else np.split(bias.ravel(), ends[:-1]), strict=True):
        split = None if part is None else (part + addend).reshape(*part.shape[:2], c.HeadCount, -1).swapaxes(1, 2)
        heads.append(split)
    for i, past in (1, c["PastKeyTensor"]), (2, c["PastValueTensor"]):
        if past is not None:
            past = past.reshape(past.shape[-4:])
            heads[i] = past if heads[i] is None else np.concatenate([past, heads[i]], 2)
    query, key, value = heads
    c.require(memory=prod((*query.shape[:3], key.shape[2])) * query.itemsize, steps=query.size * key.shape[2])
    scores = c.stored(product(c, query, transposed(key)) * c.Scale)
    relative = c["RelativePositionBiasTensor"]
    scores = scores if relative is None else scores + aligned(relative, scores)
    if c.raw["MaskTensor"] is not None:
        scores = np.where(masked(c, *scores.shape), scores + c.MaskFilterValue, scores)
    powers = functions.exp(scores - scores.max(-1, keepdims=True))
    shares = c.stored(powers / c.stored(total(powers, (-1,))))
    return product(c, shares, value).swapaxes(1, 2), key, value


def masked(c: KernelCall, batch: int, heads: int, length: int, keys: int) -> Array:
    """Return where MaskFilterValue is added.

    Of KEY_QUERY_SEQUENCE_LENGTH_START_END only the contents are documented.
    """
    mask: Array = c.raw["MaskTensor"].astype(np.int64)
    if c.MaskType == 4:  # BOOLEAN
        return mask.reshape(mask.shape[-4:]) == 0
    mask = mask.ravel()[:batch] if c.MaskType == 3 else mask
    ends, *starts = mask.reshape(-1, batch, 1, 1, 1)
    return (np.arange(keys) >= ends) | (np.arange(keys) < (starts[0] if starts else 0))


KERNELS: Final[OperatorKernels] = {
    "CONVOLUTION": convolution,
    "CONVOLUTION_INTEGER": convolution_integer,
    "GEMM": gemm,
    "MATRIX_MULTIPLY_INTEGER": lambda c: product(c, from_zero(c, "A"), from_zero(c, "B")),
    "MATRIX_MULTIPLY_INTEGER_TO_FLOAT": matrix_multiply_integer_to_float,
    "MULTIHEAD_ATTENTION": multihead_attention,
    "QUANTIZED_LINEAR_CONVOLUTION": quantized_linear_convolution,
    "QUANTIZED_LINEAR_MATRIX_MULTIPLY": lambda c: to_output(c, scaled_product(c)),
}
