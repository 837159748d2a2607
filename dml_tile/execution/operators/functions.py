"""Functions of floats, as HLSL's compiler makes them of the instructions that Direct3D has: exp2, log2 and few more.

The last bits of those are the driver's. What the formulas lose is DirectML's: the fifth digit of asin, acos and atan,
and tiny results of sinh, of exp(x) - 1, and of log(1 + x).
"""

from __future__ import annotations

from math import e, log2, pi
from typing import Final

import numpy as np

from dml_tile.execution.call import Array

_LOG2_E: Final = log2(e)
_LN_2: Final = 1 / _LOG2_E


def exp(x: Array) -> Array:
    return np.exp2(x * x.dtype.type(_LOG2_E))


def log(x: Array) -> Array:
    return np.log2(x) * x.dtype.type(_LN_2)


def power(x: Array, exponent: Array | float) -> Array:
    """Return x^exponent by the logarithm of abs(x), negated for a negative x and an odd exponent.

    It is NaN for 0 and infinities to the power of 0, and for a negative x and a broken exponent.
    """
    exponent = np.asarray(exponent, x.dtype)
    found = np.exp2(exponent * np.log2(np.abs(x)))
    signed = np.where(exponent % 2 == 1, -found, np.where(np.rint(exponent) == exponent, found, np.nan))
    return np.where(x < 0, signed, found)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + exp(-x))


def log_1_plus_exp(x: Array) -> Array:
    """Return log(1 + e^x); a large x as it is."""
    return np.where(x > 30, x, log(1 + exp(x)))


def tanh(x: Array) -> Array:
    return 1 - 2 / (exp(2 * x) + 1)


_ACOS: Final = (1.5707288, -0.2121144, 0.074261, -0.0187293)
"""Coefficients of formula 4.4.45 of Abramowitz and Stegun, whose error is at most 7e-5."""
_ATAN: Final = (0.999866, -0.3302995, 0.180141, -0.085133, 0.0208351)
"""Coefficients of formula 4.4.49, whose error is at most 1e-5."""


def polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """Return the sum of coefficients times powers of x, from the constant on."""
    found = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        found = found * x + x.dtype.type(coefficient)
    return found


def acos(x: Array) -> Array:
    found = polynomial(np.abs(x), _ACOS) * np.sqrt(1 - np.abs(x))
    return found + np.where(x < 0, found * -2 + x.dtype.type(pi), 0)


def asin(x: Array) -> Array:
    return x.dtype.type(pi / 2) - acos(x)


def _atan_of_ratio(least: Array, greatest: Array, swapped: Array) -> Array:
    """Return the arc tangent of least / greatest, or of greatest / least where they are ``swapped``."""
    ratio = least * (1 / greatest)
    found = ratio * polynomial(ratio * ratio, _ATAN)
    return found + np.where(swapped, found * -2 + ratio.dtype.type(pi / 2), 0)


def atan(x: Array) -> Array:
    """Return the arc tangent; of NaN, which min and max pass over, that of 1."""
    size, one = np.abs(x), x.dtype.type(1)
    found = _atan_of_ratio(np.fmin(size, one), np.fmax(size, one), size > one)
    return np.where(x < 0, -found, found)


def atan_yx(y: Array, x: Array) -> Array:
    """Return the angle of (x, y); NaN is passed over, as by ``atan``."""
    height, width = np.abs(y), np.abs(x)
    found = _atan_of_ratio(np.fmin(height, width), np.fmax(height, width), width < height)
    found = found + np.where(x < 0, x.dtype.type(-pi), 0)
    return np.where((np.fmin(y, x) < 0) & (np.fmax(y, x) >= 0), -found, found)


_ERF: Final = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""Coefficients of formula 7.1.26 of Abramowitz and Stegun, whose error is at most 1.5e-7."""


def erf(x: Array) -> Array:
    t = 1 / (1 + x.dtype.type(0.3275911) * np.abs(x))
    return np.sign(x) * (1 - polynomial(t, _ERF) * t * exp(-x * x))
