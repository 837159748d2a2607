"""WebNN's tile on NumPy arrays.

Page: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-tile
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dml_tile.arrays.onnx import onnx_type, tiled
from dml_tile.dialects import webnn
from dml_tile.dialects.request import Integers


def tile(x: ArrayLike, repetitions: Integers) -> NDArray[Any]:
    """tile(input, repetitions): each dimension has one repetition, which is at least 1.

    Raises DialectError where a browser throws a TypeError.
    """
    array = np.asarray(x)
    return tiled(array, webnn.tile(onnx_type(array), array.shape, repetitions))
