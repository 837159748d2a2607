"""ONNX Tile, since versions 1, 6 and 13."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dml_tile.errors import DialectError
from dml_tile.tile_request import Integers, Request, require_data_type, require_fitting, shape_of, vector

if TYPE_CHECKING:
    from numpy.typing import NDArray

TILE_1_TYPES: Final = frozenset({"float16", "float32", "float64"})
TILE_6_TYPES: Final = TILE_1_TYPES | {
    *("bool", "complex64", "complex128", "string"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
}
TILE_13_TYPES: Final = TILE_6_TYPES | {"bfloat16"}


def tile_13(data_type: str, shape: Sequence[int], repeats: Integers) -> Request:
    """Tile-13: an output size is the input's times its repeat, of which there is one for each dimension.

    Raises DialectError for a data type that is not listed, repeats that are not a 1-D int64 of the input's rank, a
    negative repeat, and an output size past int64.
    """
    return _repeated("ONNX Tile-13", TILE_13_TYPES, data_type, shape, repeats)


def tile_6(data_type: str, shape: Sequence[int], repeats: Integers) -> Request:
    """Tile-6: as Tile-13, but for bfloat16."""
    return _repeated("ONNX Tile-6", TILE_6_TYPES, data_type, shape, repeats)


def tile_1(data_type: str, shape: Sequence[int], tiles: float | NDArray[Any], axis: float | NDArray[Any]) -> Request:
    """Tile-1: the input ``tiles`` times along ``axis``, the first of which is 0.

    Both are single values, of the input's type as the page declares, or of int64 as its text says. The page gives the
    output the input's shape, which cannot be meant: the axis grows.

    Raises DialectError for a data type that is not listed, a value that is not integral or negative, an axis that the
    input does not have, and an output size past int64.
    """
    dialect = "ONNX Tile-1"
    require_data_type(dialect, data_type, TILE_1_TYPES)
    sizes = shape_of(dialect, shape)
    count, dimension = _integral(dialect, "tiles", tiles), _integral(dialect, "axis", axis)
    if dimension >= len(sizes):
        raise DialectError(dialect, "axis", f"is {dimension}; the input has {len(sizes)} dimensions")
    repeats = [1] * len(sizes)
    repeats[dimension] = count
    return require_fitting(Request(dialect, data_type, sizes, tuple(repeats)))


TILES: Final[dict[int, Callable[..., Request]]] = {1: tile_1, 6: tile_6, 13: tile_13}
"""The dialects by the version that each is since."""


def _repeated(dialect: str, types: frozenset[str], data_type: str, shape: Sequence[int], repeats: Integers) -> Request:
    require_data_type(dialect, data_type, types)
    sizes = shape_of(dialect, shape)
    counts = vector(dialect, "repeats", repeats, "int64")
    if len(counts) != len(sizes):
        raise DialectError(
            dialect, "repeats", f"has {len(counts)} values; the input has {len(sizes)} dimensions, and as many repeats"
        )
    for i, count in enumerate(counts):
        if count < 0:
            raise DialectError(dialect, f"repeats[{i}]", f"is {count}; repeats must not contain negative values")
    return require_fitting(Request(dialect, data_type, sizes, counts))


def _integral(dialect: str, field: str, value: float | NDArray[Any]) -> int:
    import numpy as np

    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "iuf":
        raise DialectError(dialect, field, f"is {value!r}; a single number was expected")
    number = array.reshape(()).item()
    if number != number or number in (float("inf"), float("-inf")) or number != int(number) or number < 0:
        raise DialectError(dialect, field, f"is {number}; an integer of at least 0 was expected")
    return int(number)
