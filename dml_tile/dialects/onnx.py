"""ONNX Tile, versions 1, 6 and 13.

Page: https://onnx.ai/onnx/operators/onnx__Tile.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from dml_tile.dialects.request import (
    Dialect,
    Integers,
    Request,
    Specification,
    require_data_type,
    require_fitting,
    shape_of,
    vector,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

TILE_1_TYPES: Final = frozenset({"float16", "float32", "float64"})
TILE_6_TYPES: Final = TILE_1_TYPES | {
    *("bool", "complex64", "complex128", "string"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
}
TILE_13_TYPES: Final = TILE_6_TYPES | {"bfloat16"}


def tile_13(data_type: str, shape: Sequence[int], repeats: Integers) -> Request:
    """Return the request of a Tile-13, which has one repeat for each dimension.

    Raises DialectError for a data type that Tile-13 does not list, repeats that are not a 1-D int64 of the input's
    rank, a negative repeat, and an output size that exceeds an int64.
    """
    return _repeated(TILE_13, data_type, shape, repeats)


def tile_6(data_type: str, shape: Sequence[int], repeats: Integers) -> Request:
    """Return the request of a Tile-6: the same as Tile-13, without bfloat16."""
    return _repeated(TILE_6, data_type, shape, repeats)


def tile_1(data_type: str, shape: Sequence[int], tiles: float | NDArray[Any], axis: float | NDArray[Any]) -> Request:
    """Return the request of a Tile-1, which repeats the input ``tiles`` times along ``axis``, counted from 0.

    Both are single values, of the input's type as the page declares, or of int64 as its text says. The page gives the
    output the input's shape, which cannot be meant: the axis grows.

    Raises DialectError for a data type that Tile-1 does not list, a value that is negative or not integral, an axis
    that the input does not have, and an output size that exceeds an int64.
    """
    require_data_type(TILE_1, data_type)
    sizes = shape_of(TILE_1, shape)
    count, dimension = _integral("tiles", tiles), _integral("axis", axis)
    if dimension >= len(sizes):
        raise TILE_1.error("axis", f"is {dimension}; the input has {len(sizes)} dimensions")
    repeats = [1] * len(sizes)
    repeats[dimension] = count
    return require_fitting(Request(TILE_1, data_type, sizes, tuple(repeats)))


TILE_1: Final = Dialect("ONNX Tile-1", Specification.ONNX, TILE_1_TYPES, tile_1, arguments=("tiles", "axis"))
TILE_6: Final = Dialect("ONNX Tile-6", Specification.ONNX, TILE_6_TYPES, tile_6, one_repeat_a_dimension=True)
TILE_13: Final = Dialect("ONNX Tile-13", Specification.ONNX, TILE_13_TYPES, tile_13, one_repeat_a_dimension=True)

TILES: Final = {1: TILE_1, 6: TILE_6, 13: TILE_13}
"""The dialects by the opset that introduced them."""


def tile_of_opset(opset: int) -> Dialect:
    """Return the dialect of Tile in an opset, which is at least 1."""
    return TILES[max(since for since in TILES if since <= opset)]


def _repeated(dialect: Dialect, data_type: str, shape: Sequence[int], repeats: Integers) -> Request:
    require_data_type(dialect, data_type)
    sizes = shape_of(dialect, shape)
    counts = vector(dialect, "repeats", repeats, "int64")
    if len(counts) != len(sizes):
        message = f"has {len(counts)} values; the input has {len(sizes)} dimensions, and as many repeats"
        raise dialect.error("repeats", message)
    for i, count in enumerate(counts):
        if count < 0:
            raise dialect.error(f"repeats[{i}]", f"is {count}; repeats must not contain negative values")
    return require_fitting(Request(dialect, data_type, sizes, counts))


def _integral(field: str, value: float | NDArray[Any]) -> int:
    import numpy as np

    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "iuf":
        raise TILE_1.error(field, f"is {value!r}; a single number was expected")
    number = array.reshape(()).item()
    if number != number or number in (float("inf"), float("-inf")) or number != int(number) or number < 0:
        raise TILE_1.error(field, f"is {number}; an integer of at least 0 was expected")
    return int(number)
