"""WebNN's MLGraphBuilder.tile().

Page: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-tile
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dml_tile.enums import UINT_MAX
from dml_tile.errors import DialectError
from dml_tile.tile_request import Integers, Request, require_data_type, require_fitting, vector

TILE_TYPES: Final = frozenset(
    {"float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8", "int4", "uint4"}
)


def tile(data_type: str, shape: Sequence[int], repetitions: Integers) -> Request:
    """tile(input, repetitions): one repetition for each dimension; a scalar has none.

    Raises DialectError, where a browser throws a TypeError, for a data type that is not listed, a repetition or a size
    of 0 or beyond a uint32, another number of repetitions than dimensions, and an output size beyond a uint32.
    """
    dialect = "WebNN tile"
    require_data_type(dialect, data_type, TILE_TYPES)
    sizes = vector(dialect, "shape", tuple(shape))
    counts = vector(dialect, "repetitions", repetitions)
    for field, values in (("shape", sizes), ("repetitions", counts)):
        for i, value in enumerate(values):
            if not 0 < value <= UINT_MAX:
                raise DialectError(dialect, f"{field}[{i}]", f"TypeError: is {value}; it is from 1 to {UINT_MAX}")
    if len(counts) != len(sizes):
        message = f"TypeError: has {len(counts)} values; the input has {len(sizes)} dimensions"
        raise DialectError(dialect, "repetitions", message)
    return require_fitting(Request(dialect, data_type, sizes, counts), UINT_MAX)
