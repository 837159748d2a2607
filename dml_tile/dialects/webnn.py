"""WebNN's MLGraphBuilder.tile().

Page: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-tile
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dml_tile.dialects.request import (
    Dialect,
    Integers,
    Request,
    Specification,
    require_data_type,
    require_fitting,
    vector,
)
from dml_tile.directml.enums import UINT_MAX

TILE_TYPES: Final = frozenset(
    {"float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8", "int4", "uint4"}
)


def tile(data_type: str, shape: Sequence[int], repetitions: Integers) -> Request:
    """Return the request of a tile(input, repetitions): one repetition for each dimension; a scalar has none.

    Raises DialectError where a browser throws a TypeError: for a data type that WebNN does not list, a repetition or a
    size that is 0 or exceeds a uint32, a number of repetitions other than that of dimensions, and an output size that
    exceeds a uint32.
    """
    require_data_type(TILE, data_type)
    sizes = vector(TILE, "shape", tuple(shape))
    counts = vector(TILE, "repetitions", repetitions)
    for field, values in (("shape", sizes), ("repetitions", counts)):
        for i, value in enumerate(values):
            if not 0 < value <= UINT_MAX:
                raise TILE.error(f"{field}[{i}]", f"TypeError: is {value}; it must be from 1 to {UINT_MAX}")
    if len(counts) != len(sizes):
        raise TILE.error("repetitions", f"TypeError: has {len(counts)} values; the input has {len(sizes)} dimensions")
    return require_fitting(Request(TILE, data_type, sizes, counts), UINT_MAX)


TILE: Final = Dialect(
    "WebNN tile",
    Specification.WEBNN,
    TILE_TYPES,
    tile,
    arguments=("repetitions",),
    one_repeat_a_dimension=True,
)
