"""OpenVINO Tile-1, of opset1.

Page: https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/movement/tile-1.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dml_tile.dialects.request import (
    Dialect,
    Integers,
    Request,
    Specification,
    promoted,
    require_data_type,
    require_fitting,
    shape_of,
    vector,
)
from dml_tile.directml.data_types import OPENVINO_NAMES

TILE_1_TYPES: Final = frozenset(
    {
        *("boolean", "string", "bf16", "f16", "f32", "f64", "f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0", "nf4"),
        *("i4", "i8", "i16", "i32", "i64", "u1", "u2", "u3", "u4", "u6", "u8", "u16", "u32", "u64"),
    }
)


def tile_1(data_type: str, shape: Sequence[int], repeats: Integers) -> Request:
    """Return the request of a Tile-1: the shorter of shape and repeats gets leading 1s; a negative repeat counts as 0.

    Raises DialectError for an unknown data type, repeats that are not a 1-D array of an integer type, and an output
    size that exceeds an int64.
    """
    require_data_type(TILE_1, data_type)
    sizes = shape_of(TILE_1, shape)
    counts = [max(count, 0) for count in vector(TILE_1, "repeats", repeats)]
    return require_fitting(Request(TILE_1, data_type, *promoted(sizes, counts)))


TILE_1: Final = Dialect("OpenVINO Tile-1", Specification.OPENVINO, TILE_1_TYPES, tile_1, type_names=OPENVINO_NAMES)
