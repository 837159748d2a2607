"""All kernels, and what stands around them: the fused activation, and rounding."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dml_tile.execution.call import Array, FirstRows, KernelCall, OperatorKernels, Output
from dml_tile.execution.operators import (
    element_wise,
    matrices,
    movement,
    normalisation,
    others,
    pooling,
    quantised,
    recurrent,
    reductions,
    resampling,
)
from dml_tile.execution.operators.fused import activated, kernel_of
from dml_tile.execution.operators.rounding import rounded

FAMILIES = (
    element_wise,
    matrices,
    movement,
    normalisation,
    others,
    pooling,
    quantised,
    recurrent,
    reductions,
    resampling,
)
KERNELS: Final[OperatorKernels] = {name: each for family in FAMILIES for name, each in family.KERNELS.items()}
"""The kernels by the operators' names, of several versions of one by the first's."""


def values_of(c: KernelCall) -> dict[str, Any]:
    """Return the elements of each output, rounded to its type; None for a null one.

    FirstRows may be fewer than the tensor has. Raises DmlError for an index out of range, and
    for more work than is executed.
    """
    with np.errstate(all="ignore"):
        found = kernel_of(c.name, KERNELS)(c)
        first, *others_ = found if isinstance(found, tuple) else (found,)
        if (activation := c.get("FusedActivation")) is not None:
            first = activated(activation, first, c.target)
        if c.name == "CONVOLUTION" and c.Direction == 1:
            first = matrices.without_output_padding(c, first)
        results = zip(c.outputs.items(), (first, *others_), strict=True)
        return {name: _rounded(values, output, c) for (name, output), values in results}


def _rounded(values: Any, output: Output | list[Output] | None, c: KernelCall) -> Array | list[Array] | None:
    if output is None:
        return None
    if isinstance(output, list):
        return [_shaped(rounded(each, one, c), one) for each, one in zip(values, output, strict=True)]
    if isinstance(values, FirstRows):
        return rounded(values.rows, output, c)
    return _shaped(rounded(np.asarray(values), output, c), output)


def _shaped(values: Array, output: Output) -> Array:
    """Return values in the output's Sizes, along which fewer of them are repeated."""
    if values.size == output.size:
        return values.reshape(output.shape)
    return np.broadcast_to(values, output.shape)
