"""OpenVINO Tile on NumPy arrays, equal to the specification.

Page: https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/movement/tile-1.html
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dml_tile.arrays.numpy import tiled
from dml_tile.dialects import openvino
from dml_tile.tile_request import Integers

_NAMES: Final = {
    "bool": "boolean",
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}


def tile_1(data: ArrayLike, repeats: Integers) -> NDArray[Any]:
    """Tile-1: the shorter of ``data``'s shape and ``repeats`` gets leading 1s, a negative repeat counts as 0.

    Strings are arrays of str or of objects; they are tiled by NumPy. Raises DialectError where the specification rules
    the tile out.
    """
    array = np.asarray(data)
    name = "string" if array.dtype.kind in "SUTO" else _NAMES.get(array.dtype.name, array.dtype.name)
    return tiled(array, openvino.tile_1(name, array.shape, repeats))
