"""ONNX Tile on NumPy arrays.

Page: https://onnx.ai/onnx/operators/onnx__Tile.html
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dml_tile.arrays.numpy import onnx_type, tiled
from dml_tile.dialects import onnx
from dml_tile.dialects.request import Integers


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
