"""Tiles NumPy arrays as ONNX, OpenVINO, WebNN and NumPy define it, whatever DirectML accepts."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dml_tile.dialects.request import Dialect
from dml_tile.execution.mover import mover_of

_STRINGS: Final = "SUTO"
"""The kinds of arrays that hold strings: those of str, of bytes and of objects."""


def tile_as(dialect: Dialect, array: ArrayLike, *arguments: Any) -> NDArray[Any]:
    """Tile an array as a dialect does, with the dialect's own arguments: ``tile_as(ONNX_TILE_13, x, repeats)``.

    Strings are arrays of str, bytes or objects, and NumPy tiles them; bfloat16 is ml_dtypes' dtype of that name. Raises
    DialectError where the specification rejects the tile.
    """
    given = np.asarray(array)
    request = dialect.request(dialect.type_name(onnx_type(given)), given.shape, *arguments)
    source, dtype = given.reshape(request.shape), given.dtype
    if dtype.hasobject or dtype.kind in _STRINGS or 0 in request.output_shape:
        return np.tile(source, request.repeats)
    out = np.empty(request.output_shape, dtype)  # in C order; all but strings and objects is moved as bits
    mover_of(dtype.itemsize, request.shape, request.repeats, source.strides, out.strides).tile(source, out)
    return out


def onnx_type(array: NDArray[Any]) -> str:
    """ONNX's name of an array's data type, in NumPy's spelling; strings are arrays of str, bytes or objects."""
    return "string" if array.dtype.kind in _STRINGS else array.dtype.name
