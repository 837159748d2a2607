"""The one table of data types: DirectML's tensor data types, and the element types of other specifications.

A row of ``TensorDataType`` is all that a new data type takes, beside its level in ``levels``. Sizes, NumPy's dtypes,
the carriers of a lowering and the names in models are made from it.

Page: https://learn.microsoft.com/en-us/windows/win32/api/directml/ne-directml-dml_tensor_data_type
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple, Self


class TensorDataType(IntEnum):
    """DML_TENSOR_DATA_TYPE, and its elements."""

    UNKNOWN = 0
    FLOAT32 = 1, "float", 32, "f32"
    FLOAT16 = 2, "float", 16, "f16"
    UINT32 = 3, "int", 32, "u32"
    UINT16 = 4, "int", 16, "u16"
    UINT8 = 5, "int", 8, "u8"
    INT32 = 6, "int", 32, "i32"
    INT16 = 7, "int", 16, "i16"
    INT8 = 8, "int", 8, "i8"
    FLOAT64 = 9, "float64", 64, "f64"
    UINT64 = 10, "int64", 64, "u64"
    INT64 = 11, "int64", 64, "i64"
    UINT4 = 12, "int4", 4, "u4", False
    INT4 = 13, "int4", 4, "i4", False

    kind: str
    """Data types of one kind came with the same feature level, and Tile takes them from one level on."""
    bits: int
    """The bits of an element."""
    openvino: str
    """OpenVINO's name."""
    in_numpy: bool
    """NumPy has a dtype of its name; that of any other is in ml_dtypes."""

    def __new__(cls, value: int, kind: str = "", bits: int = 0, openvino: str = "", in_numpy: bool = True) -> Self:
        member = int.__new__(cls, value)
        member._value_ = value
        member.kind, member.bits, member.openvino, member.in_numpy = kind, bits, openvino, in_numpy and bits > 0
        return member

    @property
    def onnx(self) -> str:
        """ONNX's name, in NumPy's spelling; NumPy and WebNN have the same."""
        return self.name.lower()


ELEMENT_SIZES: Final[dict[int, int]] = {
    data_type: data_type.bits // 8 for data_type in TensorDataType if data_type.bits and data_type.bits % 8 == 0
}
"""Bytes; the 4-bit types have no whole number of them, nor has Microsoft's helper."""

FLOATS: Final = frozenset(data_type for data_type in TensorDataType if data_type.kind.startswith("float"))


@cache
def types_of(*kinds: str) -> frozenset[TensorDataType]:
    """Return the data types of these kinds. Raises ValueError for an unknown kind."""
    if unknown := {*kinds} - {data_type.kind for data_type in TensorDataType}:
        raise ValueError(f"{', '.join(sorted(unknown))}: no data type is of this kind")
    return frozenset(data_type for data_type in TensorDataType if data_type.kind in kinds)


class ElementType(NamedTuple):
    """A type of elements in a model, and the DirectML data type that stands for it, of the same size."""

    onnx: str
    openvino: str | None
    bits: int
    carrier: TensorDataType | None


ELEMENT_TYPES: Final = (
    *(ElementType(row.onnx, row.openvino, row.bits, row) for row in TensorDataType if row.bits),
    ElementType("bfloat16", "bf16", 16, TensorDataType.UINT16),
    ElementType("bool", "boolean", 8, TensorDataType.UINT8),
    # ONNX's Tile takes none of these
    ElementType("f8e4m3", "f8e4m3", 8, TensorDataType.UINT8),
    ElementType("f8e5m2", "f8e5m2", 8, TensorDataType.UINT8),
    ElementType("f8e8m0", "f8e8m0", 8, TensorDataType.UINT8),
    # only a lowering tiles these, as elements of other types
    ElementType("complex64", None, 64, None),
    ElementType("complex128", None, 128, None),
)

_NAMED: Final = {name: row for row in reversed(ELEMENT_TYPES) for name in (row.onnx, row.openvino) if name}

CARRIERS: Final = {name: row.carrier for name, row in _NAMED.items() if row.carrier is not None}
"""The data types that stand for an element type, by ONNX's and by OpenVINO's names; one of that name stands first."""

NAMED_SIZES: Final = {name: row.bits // 8 for name, row in _NAMED.items() if row.bits % 8 == 0}
"""The bytes of an element, by ONNX's and by OpenVINO's names."""

OPENVINO_NAMES: Final = {row.onnx: row.openvino for row in ELEMENT_TYPES if row.openvino}
"""OpenVINO's names by ONNX's."""

ONNX_NAMES: Final = {openvino: onnx for onnx, openvino in OPENVINO_NAMES.items()}
"""ONNX's names by OpenVINO's."""
