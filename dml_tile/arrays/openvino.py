"""OpenVINO Tile-1 on NumPy arrays.

Page: https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/movement/tile-1.html
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dml_tile.arrays.onnx import onnx_type, tiled
from dml_tile.dialects import openvino
from dml_tile.dialects.request import Integers


def tile_1(data: ArrayLike, repeats: Integers) -> NDArray[Any]:
    """Tile-1: the shorter of ``data``'s shape and ``repeats`` gets leading 1s; a negative repeat counts as 0.

    Strings are arrays of str, bytes or objects, and NumPy tiles them. Raises DialectError where the specification
    rejects the tile.
    """
    array = np.asarray(data)
    data_type = openvino.TILE_1.type_name(onnx_type(array))
    return tiled(array, openvino.tile_1(data_type, array.shape, repeats))
