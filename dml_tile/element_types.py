"""Element types by the names that specifications give them, and the DirectML data types that carry their bits."""

from __future__ import annotations

from typing import Final, NamedTuple

from dml_tile.enums import TensorDataType

_T = TensorDataType


class ElementType(NamedTuple):
    """An element type that DirectML can tile: its names, and a data type of the same size."""

    onnx: str
    """ONNX's name, in NumPy's spelling; NumPy and WebNN have the same."""
    openvino: str
    carrier: TensorDataType


ELEMENT_TYPES: Final = (
    ElementType("float16", "f16", _T.FLOAT16),
    ElementType("float32", "f32", _T.FLOAT32),
    ElementType("float64", "f64", _T.FLOAT64),
    ElementType("bfloat16", "bf16", _T.UINT16),
    ElementType("bool", "boolean", _T.UINT8),
    ElementType("int4", "i4", _T.INT4),
    ElementType("int8", "i8", _T.INT8),
    ElementType("int16", "i16", _T.INT16),
    ElementType("int32", "i32", _T.INT32),
    ElementType("int64", "i64", _T.INT64),
    ElementType("uint4", "u4", _T.UINT4),
    ElementType("uint8", "u8", _T.UINT8),
    ElementType("uint16", "u16", _T.UINT16),
    ElementType("uint32", "u32", _T.UINT32),
    ElementType("uint64", "u64", _T.UINT64),
    # ONNX's Tile takes none of these
    ElementType("f8e4m3", "f8e4m3", _T.UINT8),
    ElementType("f8e5m2", "f8e5m2", _T.UINT8),
    ElementType("f8e8m0", "f8e8m0", _T.UINT8),
)

CARRIERS: Final = {name: row.carrier for row in ELEMENT_TYPES for name in (row.onnx, row.openvino)}
"""The data types that carry the bits, by ONNX's and by OpenVINO's names."""

OPENVINO_NAMES: Final = {row.onnx: row.openvino for row in ELEMENT_TYPES}
"""OpenVINO's names by ONNX's."""

ONNX_NAMES: Final = {row.openvino: row.onnx for row in ELEMENT_TYPES}
"""ONNX's names by OpenVINO's."""
