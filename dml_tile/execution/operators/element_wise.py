"""Functions of single elements: arithmetic, comparison, bits and activations.

A function takes the call and the inputs in C's order. Pages: the operators' own, which have the formulas.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import sqrt
from typing import Any, Final, TypeAlias

import numpy as np

from dml_tile.execution.call import Array, KernelCall, OperatorKernel, OperatorKernels, saturated, scalar_of
from dml_tile.execution.operators import functions

Function: TypeAlias = Callable[..., Any]


def by_value(function: Callable[..., Any]) -> Function:
    """Return the function of elements that needs no fields."""
    return lambda c, *arrays: function(*arrays)


# integers


def quotient(c: KernelCall, a: Array, b: Array) -> Array:
    """Return a / b, of integers toward zero. By zero it is the measured driver's: Direct3D leaves signed ones open."""
    if a.dtype.kind == "f":
        return a / b
    floor = a // b
    found = floor + ((a % b != 0) & (floor < 0)).astype(a.dtype)
    return np.where(b == 0, _by_zero(a, np.zeros_like(a)), found)


def _by_zero(a: Array, of_int64: Array) -> Array:
    """Return a / 0: all bits of unsigned integers, -1 or 1 of signed ones."""
    if a.dtype.kind == "u":
        return ~np.zeros_like(a)
    return np.where(a < 0, 1, -1).astype(a.dtype) if a.itemsize < 8 else of_int64


def modulus_truncate(c: KernelCall, a: Array, b: Array) -> Array:
    """Return a - b * trunc(a / b), in FLOAT32 as it stands: NaN of an infinite b."""
    if a.dtype.kind == "f":
        return a - b * np.trunc(a / b)
    by_zero = a if a.dtype.kind == "i" and a.itemsize < 8 else ~np.zeros_like(a)
    return np.where(b == 0, by_zero, np.fmod(a, b))


def modulus_floor(c: KernelCall, a: Array, b: Array) -> Array:
    """Return a - b * floor(a / b), in FLOAT32 as it stands."""
    if a.dtype.kind == "f":
        return a - b * np.floor(a / b)
    return np.where(b == 0, _by_zero(a, ~np.zeros_like(a)), np.mod(a, b))


def clamped(function: Callable[[Array], Array]) -> Function:
    """Return a function whose results for 8-bit and 16-bit integers are clamped; those of wider ones wrap."""

    def of_elements(c: KernelCall, x: Array) -> Array:
        if x.dtype.kind == "i" and x.itemsize < 4:
            limits = np.iinfo(x.dtype)
            return np.clip(function(x.astype(np.int32)), limits.min, limits.max).astype(x.dtype)
        return function(x)

    return of_elements


def of_bits(function: Callable[..., Array]) -> Function:
    """Return a function of the bits of elements of any type."""

    def of_elements(c: KernelCall, *_: Array) -> Array:
        raw = [np.ascontiguousarray(each) for each in c.raw.values()]
        found = function(*(each.view(f"u{each.itemsize}") for each in raw))
        return found.view(raw[0].dtype) if found.itemsize == raw[0].itemsize else found

    return of_elements


def shifted(shift: Callable[..., Array]) -> Function:
    """Return a shift by the low 5 bits of the count, as HLSL's; of 64 bits by the count, above 31 by 32 + those."""

    def of_elements(c: KernelCall, a: Array, b: Array) -> Array:
        if a.itemsize == 8:
            count = np.where(b < 32, b, 32 + (b & b.dtype.type(31))).astype(np.uint64)
            return shift(a.astype(np.uint64), count).astype(a.dtype)
        return shift(a.astype(np.uint32), b.astype(np.uint32) & np.uint32(31)).astype(a.dtype)

    return of_elements


def power(c: KernelCall, x: Array, exponent: Array) -> Array:
    """Return x^exponent; integers to an integer wrap in 32 bits and are clamped to 8 or 16."""
    if x.dtype.kind == "f":
        return functions.power(x, exponent)
    if exponent.dtype.kind == "f":
        return functions.power(as_float(x), exponent)
    whole = np.power(x.astype(np.uint32), np.maximum(exponent, 0).astype(np.uint32)).view(f"{x.dtype.kind}4")
    broken = saturated(np.power(x.astype(np.float64), exponent), x.dtype)
    return np.where(exponent < 0, broken, np.clip(whole, *c.out.limits))


# limits and rounding: NaN is passed over by min and max


def clip_grad(c: KernelCall, x: Array, gradient: Array) -> Array:
    inside = (x > scalar_of(c.Min, x.dtype)) & (x < scalar_of(c.Max, x.dtype))
    return np.where(inside, gradient, gradient.dtype.type(0))


def away_from_zero(x: Array) -> Array:
    """Return floor(abs(x) + 0.5) with the sign of x: 1 for 0.49999997, whose sum with a half is 1 in FLOAT32."""
    return np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)


ROUNDING: Final = (np.rint, np.trunc, away_from_zero)
"""By DML_ROUNDING_MODE; the page says of the third that halves go to infinity, away from zero."""
INFINITIES: Final = (np.isinf, np.isposinf, np.isneginf)
"""By DML_IS_INFINITY_MODE."""


# casts


def as_float(x: Array) -> Array:
    """Return integers as FLOAT32 holds them."""
    return x.astype(np.float32) if x.dtype.kind in "iu" else x


def cast(c: KernelCall) -> Array:
    """Return the values; integers become 32 bits in the output's signedness, and are clamped to 8 or 16."""
    x: Array = c["InputTensor"]
    if x.dtype.kind in "iu" and c.out.dtype.kind in "iu" and c.out.dtype.itemsize < 4:
        return np.clip(x.astype(f"{c.out.dtype.kind}4"), *c.out.limits)
    return x


# activations


def shrink(c: KernelCall, x: Array) -> Array:
    """Return x moved by Bias toward zero beyond Threshold, else 0; of integers in FLOAT32, halves to even."""
    value = as_float(x)
    found = np.where(value < -c.Threshold, value + c.Bias, np.where(value > c.Threshold, value - c.Bias, 0))
    return found if x.dtype.kind == "f" else np.rint(found)


def softplus(c: KernelCall, x: Array) -> Array:
    """Return log(1 + e^(Steepness * x)) / Steepness; a large x as it is."""
    scaled = c.Steepness * x
    return np.where(scaled > 30, x, functions.log_1_plus_exp(scaled) / c.Steepness)


FUNCTIONS: Final[dict[str, Function]] = {
    "ELEMENT_WISE_ABS": clamped(np.abs),
    "ELEMENT_WISE_ACOS": by_value(functions.acos),
    "ELEMENT_WISE_ACOSH": lambda c, x: functions.log(x + np.sqrt(x * x - 1)),
    "ELEMENT_WISE_ADD": by_value(operator.add),
    "ELEMENT_WISE_ASIN": by_value(functions.asin),
    "ELEMENT_WISE_ASINH": lambda c, x: functions.log(x + np.sqrt(x * x + 1)),
    "ELEMENT_WISE_ATAN": by_value(functions.atan),
    "ELEMENT_WISE_ATANH": lambda c, x: functions.log((1 + x) / (1 - x)) / 2,
    "ELEMENT_WISE_ATAN_YX": by_value(functions.atan_yx),
    "ELEMENT_WISE_BIT_AND": of_bits(np.bitwise_and),
    "ELEMENT_WISE_BIT_COUNT": of_bits(np.bitwise_count),
    "ELEMENT_WISE_BIT_NOT": of_bits(np.invert),
    "ELEMENT_WISE_BIT_OR": of_bits(np.bitwise_or),
    "ELEMENT_WISE_BIT_SHIFT_LEFT": shifted(np.left_shift),
    "ELEMENT_WISE_BIT_SHIFT_RIGHT": shifted(np.right_shift),
    "ELEMENT_WISE_BIT_XOR": of_bits(np.bitwise_xor),
    "ELEMENT_WISE_CEIL": by_value(np.ceil),
    # Min where that is larger than Max, and Max for NaN
    "ELEMENT_WISE_CLIP": lambda c, x: np.fmax(np.fmin(x, scalar_of(c.Max, x.dtype)), scalar_of(c.Min, x.dtype)),
    "ELEMENT_WISE_CLIP_GRAD": clip_grad,
    "ELEMENT_WISE_CONSTANT_POW": lambda c, x: power(c, x, np.array(c.Exponent, np.float32)),
    "ELEMENT_WISE_COS": by_value(np.cos),
    "ELEMENT_WISE_COSH": lambda c, x: (functions.exp(x) + functions.exp(-x)) / 2,
    "ELEMENT_WISE_DIFFERENCE_SQUARE": lambda c, a, b: (a - b) * (a - b),
    "ELEMENT_WISE_DIVIDE": quotient,
    "ELEMENT_WISE_ERF": by_value(functions.erf),
    "ELEMENT_WISE_EXP": by_value(functions.exp),
    "ELEMENT_WISE_FLOOR": by_value(np.floor),
    # without ScaleBias, the bits of NaNs are kept
    "ELEMENT_WISE_IDENTITY": lambda c, x: x if c.ScaleBias else c.x,
    "ELEMENT_WISE_IF": lambda c, condition, a, b: np.where(condition != 0, a, b),
    "ELEMENT_WISE_IS_INFINITY": lambda c, x: INFINITIES[c.InfinityMode](x),
    "ELEMENT_WISE_IS_NAN": by_value(np.isnan),
    "ELEMENT_WISE_LOG": by_value(functions.log),
    "ELEMENT_WISE_LOGICAL_AND": by_value(np.logical_and),
    "ELEMENT_WISE_LOGICAL_EQUALS": by_value(operator.eq),
    "ELEMENT_WISE_LOGICAL_GREATER_THAN": by_value(operator.gt),
    "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL": by_value(operator.ge),
    "ELEMENT_WISE_LOGICAL_LESS_THAN": by_value(operator.lt),
    "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL": by_value(operator.le),
    "ELEMENT_WISE_LOGICAL_NOT": by_value(np.logical_not),
    "ELEMENT_WISE_LOGICAL_OR": by_value(np.logical_or),
    "ELEMENT_WISE_LOGICAL_XOR": by_value(np.logical_xor),
    "ELEMENT_WISE_MAX": by_value(np.fmax),
    # the sum of integers wraps
    "ELEMENT_WISE_MEAN": lambda c, a, b: (a + b) / 2 if a.dtype.kind == "f" else quotient(c, a + b, np.full_like(a, 2)),
    "ELEMENT_WISE_MIN": by_value(np.fmin),
    "ELEMENT_WISE_MODULUS_FLOOR": modulus_floor,
    "ELEMENT_WISE_MODULUS_TRUNCATE": modulus_truncate,
    "ELEMENT_WISE_MULTIPLY": by_value(operator.mul),
    "ELEMENT_WISE_NEGATE": clamped(operator.neg),
    "ELEMENT_WISE_POW": power,
    "ELEMENT_WISE_RECIP": lambda c, x: 1 / x,
    "ELEMENT_WISE_ROUND": lambda c, x: ROUNDING[c.RoundingMode](x),
    "ELEMENT_WISE_SIGN": lambda c, x: np.where(x != x, x.dtype.type(0), np.sign(x)),
    "ELEMENT_WISE_SIN": by_value(np.sin),
    "ELEMENT_WISE_SINH": lambda c, x: (functions.exp(x) - functions.exp(-x)) / 2,
    "ELEMENT_WISE_SQRT": by_value(np.sqrt),
    "ELEMENT_WISE_SUBTRACT": by_value(operator.sub),
    "ELEMENT_WISE_TAN": lambda c, x: np.sin(x) / np.cos(x),
    "ELEMENT_WISE_TANH": by_value(functions.tanh),
    "ELEMENT_WISE_THRESHOLD": lambda c, x: np.fmax(x, scalar_of(c.Min, x.dtype)),
    "ACTIVATION_CELU": lambda c, x: np.fmax(x, 0) + np.fmin(0, c.Alpha * (functions.exp(x / c.Alpha) - 1)),
    "ACTIVATION_ELU": lambda c, x: np.where(x < 0, c.Alpha * (functions.exp(x) - 1), x),
    "ACTIVATION_GELU": lambda c, x: x / 2 * (1 + functions.erf(x / x.dtype.type(sqrt(2)))),
    "ACTIVATION_HARD_SIGMOID": lambda c, x: np.fmin(np.fmax(c.Alpha * x + c.Beta, 0), 1),
    "ACTIVATION_HARD_SWISH": lambda c, x: x * np.fmin(np.fmax(c.Alpha * x + c.Beta, 0), 1),
    "ACTIVATION_IDENTITY": by_value(operator.pos),
    "ACTIVATION_LEAKY_RELU": lambda c, x: np.where(x < 0, c.Alpha * x, x),
    "ACTIVATION_LINEAR": lambda c, x: c.Alpha * x + c.Beta,
    "ACTIVATION_PARAMETERIZED_RELU": lambda c, x, slope: np.where(x < 0, slope * x, x),
    "ACTIVATION_PARAMETRIC_SOFTPLUS": lambda c, x: c.Alpha * functions.log_1_plus_exp(c.Beta * x),
    "ACTIVATION_RELU": lambda c, x: np.fmax(x, x.dtype.type(0)),
    "ACTIVATION_RELU_GRAD": lambda c, x, gradient: np.where(x > 0, gradient, gradient.dtype.type(0)),
    "ACTIVATION_SCALED_ELU": lambda c, x: c.Gamma * np.where(x > 0, x, c.Alpha * (functions.exp(x) - 1)),
    "ACTIVATION_SCALED_TANH": lambda c, x: c.Alpha * functions.tanh(c.Beta * x),
    "ACTIVATION_SHRINK": shrink,
    "ACTIVATION_SIGMOID": by_value(functions.sigmoid),
    "ACTIVATION_SOFTPLUS": softplus,
    "ACTIVATION_SOFTSIGN": lambda c, x: x / (1 + np.abs(x)),
    "ACTIVATION_SWISH": lambda c, x: x * functions.sigmoid(c.SigmoidInputScale * x),
    "ACTIVATION_TANH": by_value(functions.tanh),
    "ACTIVATION_THRESHOLDED_RELU": lambda c, x: np.where(x <= c.Alpha, 0, x),
}
"""The functions of single elements, by operator."""


def of_elements(function: Function) -> OperatorKernel:
    """Return the kernel that applies a function to the inputs."""
    return lambda c: function(c, *c.arrays())


KERNELS: Final[OperatorKernels] = {"CAST": cast} | {name: of_elements(function) for name, function in FUNCTIONS.items()}
