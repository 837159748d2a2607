"""ONNX Tile on NumPy arrays.

Page: https://onnx.ai/onnx/operators/onnx__Tile.html
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dml_tile.dialects import onnx
from dml_tile.dialects.request import Integers, Request
from dml_tile.execution.mover import mover_of

_STRINGS: Final = "SUT"
_OBJECTS: Final = "O"


def tile_13(x: ArrayLike, repeats: Integers) -> NDArray[Any]:
    """Tile-13: ``repeats`` is a 1-D int64 with one value for each dimension of ``x``.

    Strings are arrays of str, bytes or objects, and NumPy tiles them; bfloat16 is ml_dtypes' dtype of that name. Raises
    DialectError where the specification rejects the tile.
    """
    array = np.asarray(x)
    return tiled(array, onnx.tile_13(onnx_type(array), array.shape, repeats))


def tile_6(x: ArrayLike, repeats: Integers) -> NDArray[Any]:
    """Tile-6: the same as Tile-13, without bfloat16."""
    array = np.asarray(x)
    return tiled(array, onnx.tile_6(onnx_type(array), array.shape, repeats))


def tile_1(x: ArrayLike, tiles: float | NDArray[Any], axis: float | NDArray[Any]) -> NDArray[Any]:
    """Tile-1: repeats ``x``, of a floating type, ``tiles`` times along ``axis``; both are single integral values.

    Raises DialectError where the specification rejects the tile.
    """
    array = np.asarray(x)
    return tiled(array, onnx.tile_1(onnx_type(array), array.shape, tiles, axis))


def tiled(array: NDArray[Any], request: Request) -> NDArray[Any]:
    """Return the result of a request, in C order, for an array of its shape, or that without its leading 1s.

    Any dtype is accepted: NumPy tiles strings, Python objects and empty results; all else is moved as bits.
    """
    source, dtype = array.reshape(request.shape), array.dtype
    if dtype.hasobject or dtype.kind in _STRINGS or 0 in request.output_shape:
        return np.tile(source, request.repeats)
    out = np.empty(request.output_shape, dtype)
    mover_of(dtype.itemsize, request.shape, request.repeats, source.strides, out.strides).tile(source, out)
    return out


def onnx_type(array: NDArray[Any]) -> str:
    """ONNX's name of an array's data type, in NumPy's spelling; strings are arrays of str, bytes or objects."""
    return "string" if array.dtype.kind in _STRINGS + _OBJECTS else array.dtype.name
