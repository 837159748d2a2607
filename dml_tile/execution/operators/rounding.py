"""Values as elements of an output: rounded, saturated, or wrapped.

What is measured was seen on one software driver. Direct3D lets a driver round FLOAT16 either way; that a finite value
beyond FLOAT16 stays finite, but for a few operators, is DirectML's.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dml_tile.directml.enums import FeatureLevel
from dml_tile.execution.call import Array, KernelCall, Output, saturated, toward_zero

_OVERFLOWS: Final = {
    "ELEMENT_WISE_CONSTANT_POW",
    "ELEMENT_WISE_COSH",
    "ELEMENT_WISE_DIFFERENCE_SQUARE",
    "ELEMENT_WISE_DIVIDE",
    "ELEMENT_WISE_EXP",
    "ELEMENT_WISE_POW",
    "ELEMENT_WISE_RECIP",
    "ELEMENT_WISE_SINH",
    "MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
}
"""Operators whose values beyond FLOAT16 were measured to be infinite at 6_2; at 5_0 and 5_2 they are the largest."""

_OVERFLOWS_FROM: Final = FeatureLevel.DML_FEATURE_LEVEL_6_0
"""Measured at 6_2; inferred for 6_0 and 6_1."""


_DEQUANTIZES: Final = "ELEMENT_WISE_DEQUANTIZE_LINEAR"
"""Rounds toward zero also with native 16-bit operations, as was measured."""


def rounded(values: Array, output: Output, c: KernelCall) -> Array:
    """Return values in the dtype of an output: floats toward zero for integers, integers wrapped."""
    dtype = output.dtype
    if dtype.kind in "iu" and values.dtype.kind == "f":
        return np.clip(saturated(values, dtype), *output.limits).astype(dtype)
    is_near = c.target.native_16_bit_ops and c.name != _DEQUANTIZES
    if dtype == np.float16 and values.dtype != np.float16 and not is_near:
        overflows = c.name in _OVERFLOWS and c.target.feature_level >= _OVERFLOWS_FROM
        return toward_zero(values.astype(np.float32), overflows=overflows)
    return values.astype(dtype, copy=False)
