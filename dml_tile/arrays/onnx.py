"""ONNX Tile on NumPy arrays, equal to the specification.

Page: https://onnx.ai/onnx/operators/onnx__Tile.html
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dml_tile.arrays.numpy import tiled
from dml_tile.dialects import onnx
from dml_tile.tile_request import Integers


def tile_13(x: ArrayLike, repeats: Integers) -> NDArray[Any]:
    """Tile-13: ``x`` of any of its types, ``repeats`` a 1-D int64 with one value for each dimension.

    Strings are arrays of str or of objects; they are tiled by NumPy. bfloat16 is ml_dtypes' dtype of that name. Raises
    DialectError where the specification rules the tile out.
    """
    array = np.asarray(x)
    return tiled(array, onnx.tile_13(type_name(array), array.shape, repeats))


def tile_6(x: ArrayLike, repeats: Integers) -> NDArray[Any]:
    """Tile-6: as Tile-13, but for bfloat16."""
    array = np.asarray(x)
    return tiled(array, onnx.tile_6(type_name(array), array.shape, repeats))


def tile_1(x: ArrayLike, tiles: float | NDArray[Any], axis: float | NDArray[Any]) -> NDArray[Any]:
    """Tile-1: ``x``, of a floating type, ``tiles`` times along ``axis``; both are single integral values.

    Raises DialectError where the specification rules the tile out.
    """
    array = np.asarray(x)
    return tiled(array, onnx.tile_1(type_name(array), array.shape, tiles, axis))


_STRINGS: Final = "SUTO"


def type_name(array: NDArray[Any]) -> str:
    """ONNX's name of an array's type, in NumPy's spelling; strings come as str, bytes or objects."""
    return "string" if array.dtype.kind in _STRINGS else array.dtype.name
