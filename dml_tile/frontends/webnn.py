"""WebNN's tile on NumPy arrays, equal to the specification.

Page: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-tile
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dml_tile.dialects import webnn
from dml_tile.dialects.request import Integers
from dml_tile.frontends.arrays import tiled


def tile(x: ArrayLike, repetitions: Integers) -> NDArray[Any]:
    """tile(input, repetitions), with one repetition of at least 1 for each dimension.

    Raises DialectError where a browser throws a TypeError.
    """
    array = np.asarray(x)
    return tiled(array, webnn.tile(array.dtype.name, array.shape, repetitions))
