"""Tile as ONNX, OpenVINO, WebNN and NumPy define it.

Pages: https://onnx.ai/onnx/operators/onnx__Tile.html,
https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/movement/tile-1.html,
https://www.w3.org/TR/webnn/#api-mlgraphbuilder-tile and
https://numpy.org/doc/stable/reference/generated/numpy.tile.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from dml_tile.dialects.request import Dialect, Integers, ShapeAndRepeats, promoted, shape_of, vector
from dml_tile.directml.data_types import OPENVINO_NAMES
from dml_tile.directml.enums import UINT_MAX

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _onnx(dialect: Dialect, shape: Sequence[int], repeats: Integers) -> ShapeAndRepeats:
    sizes = shape_of(dialect, shape)
    counts = vector(dialect, "repeats", repeats, "int64")
    if len(counts) != len(sizes):
        message = f"has {len(counts)} values; the input has {len(sizes)} dimensions, and as many repeats"
        raise dialect.error("repeats", message)
    for i, count in enumerate(counts):
        if count < 0:
            raise dialect.error(f"repeats[{i}]", f"is {count}; repeats must not contain negative values")
    return sizes, counts


def _onnx_1(
    dialect: Dialect, shape: Sequence[int], tiles: float | NDArray[Any], axis: float | NDArray[Any]
) -> ShapeAndRepeats:
    sizes = shape_of(dialect, shape)
    count, dimension = _integral(dialect, "tiles", tiles), _integral(dialect, "axis", axis)
    if dimension >= len(sizes):
        raise dialect.error("axis", f"is {dimension}; the input has {len(sizes)} dimensions")
    repeats = [1] * len(sizes)
    repeats[dimension] = count
    return sizes, tuple(repeats)


def _integral(dialect: Dialect, field: str, value: float | NDArray[Any]) -> int:
    import numpy as np

    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "iuf":
        raise dialect.error(field, f"is {value!r}; a single number was expected")
    number = array.reshape(()).item()
    if number != number or number in (float("inf"), float("-inf")) or number != int(number) or number < 0:
        raise dialect.error(field, f"is {number}; an integer of at least 0 was expected")
    return int(number)


def _openvino(dialect: Dialect, shape: Sequence[int], repeats: Integers) -> ShapeAndRepeats:
    sizes = shape_of(dialect, shape)
    return promoted(sizes, [max(count, 0) for count in vector(dialect, "repeats", repeats)])


def _webnn(dialect: Dialect, shape: Sequence[int], repetitions: Integers) -> ShapeAndRepeats:
    sizes = vector(dialect, "shape", tuple(shape))
    counts = vector(dialect, "repetitions", repetitions)
    for field, values in (("shape", sizes), ("repetitions", counts)):
        for i, value in enumerate(values):
            if not 0 < value <= UINT_MAX:
                raise dialect.error(f"{field}[{i}]", f"TypeError: is {value}; it must be from 1 to {UINT_MAX}")
    if len(counts) != len(sizes):
        message = f"TypeError: has {len(counts)} values; the input has {len(sizes)} dimensions"
        raise dialect.error("repetitions", message)
    return sizes, counts


def _numpy(dialect: Dialect, shape: Sequence[int], repeats: Integers) -> ShapeAndRepeats:
    sizes = shape_of(dialect, shape)
    counts = vector(dialect, "reps", repeats)
    for i, count in enumerate(counts):
        if count < 0:
            raise dialect.error(f"reps[{i}]", f"is {count}; negative values are not allowed")
    return promoted(sizes, counts)


_ONNX_1_TYPES: Final = frozenset({"float16", "float32", "float64"})
_ONNX_6_TYPES: Final = _ONNX_1_TYPES | {
    *("bool", "complex64", "complex128", "string"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
}
_OPENVINO_TYPES: Final = frozenset(
    {
        *("boolean", "string", "bf16", "f16", "f32", "f64", "f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0", "nf4"),
        *("i4", "i8", "i16", "i32", "i64", "u1", "u2", "u3", "u4", "u6", "u8", "u16", "u32", "u64"),
    }
)
_WEBNN_TYPES: Final = frozenset(
    {"float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8", "int4", "uint4"}
)

ONNX_TILE_1: Final[Dialect] = Dialect("ONNX Tile-1", "ONNX", _ONNX_1_TYPES, _onnx_1, arguments=("tiles", "axis"))
"""Repeats the input ``tiles`` times along ``axis``, counted from 0.

Both are single values, integral and not negative, of the input's type as the page declares, or of int64 as its text
says. The page gives the output the input's shape, which cannot be meant: the axis grows.
"""

ONNX_TILE_6: Final[Dialect] = Dialect("ONNX Tile-6", "ONNX", _ONNX_6_TYPES, _onnx, one_repeat_a_dimension=True)
"""``repeats`` is a 1-D int64 with one value for each dimension, none of them negative."""

ONNX_TILE_13: Final[Dialect] = Dialect(
    "ONNX Tile-13", "ONNX", _ONNX_6_TYPES | {"bfloat16"}, _onnx, one_repeat_a_dimension=True
)
"""The same as Tile-6, with bfloat16."""

ONNX_TILES: Final = {1: ONNX_TILE_1, 6: ONNX_TILE_6, 13: ONNX_TILE_13}
"""ONNX's dialects by the opset that introduced them."""

OPENVINO_TILE_1: Final[Dialect] = Dialect(
    "OpenVINO Tile-1", "OpenVINO", _OPENVINO_TYPES, _openvino, type_names=OPENVINO_NAMES
)
"""Tile-1 of opset1: the shorter of shape and ``repeats`` gets leading 1s; a negative repeat counts as 0."""

WEBNN_TILE: Final[Dialect] = Dialect(
    "WebNN tile",
    "WebNN",
    _WEBNN_TYPES,
    _webnn,
    arguments=("repetitions",),
    one_repeat_a_dimension=True,
    largest_size=UINT_MAX,
)
"""MLGraphBuilder.tile(): one repetition for each dimension, a scalar has none.

Sizes and repetitions are from 1 to that of a uint32. DialectError stands for a browser's TypeError.
"""

NUMPY_TILE: Final[Dialect] = Dialect("numpy.tile", "NumPy", frozenset(), _numpy, arguments=("reps",))
"""The shorter of shape and ``reps`` gets leading 1s; no repeat is negative, and any data type is accepted."""


def onnx_tile(opset: int) -> Dialect:
    """Return the dialect of ONNX's Tile in an opset, which is at least 1."""
    return ONNX_TILES[max(since for since in ONNX_TILES if since <= opset)]
