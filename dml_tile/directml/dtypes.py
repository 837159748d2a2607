"""NumPy's dtypes of DirectML's tensor data types, in both directions."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dml_tile.directml.data_types import CARRIERS, ELEMENT_SIZES, TensorDataType

DTYPES: Final[dict[int, np.dtype[Any]]] = {
    data_type: np.dtype(data_type.onnx) for data_type in TensorDataType if data_type.in_numpy
}
"""Those of NumPy itself; the others are in ml_dtypes."""

NUMBER_TYPES: Final = {data_type.onnx: data_type for data_type in TensorDataType if data_type.bits}
"""The data types by the names of dtypes, those of ml_dtypes among them."""

ARRAY_TYPES: Final = {dtype.name: TensorDataType(data_type) for data_type, dtype in DTYPES.items()} | {
    "bool": TensorDataType.UINT8
}
"""The data types that describe arrays, by the names of dtypes; a bool's byte is tiled as it is."""


def data_type_of(dtype: DTypeLike) -> TensorDataType:
    """Return the DirectML data type of a NumPy dtype, a scalar type or a dtype's name; ml_dtypes' are known.

        >>> data_type_of("int64")
        <TensorDataType.INT64: 11>

    Raises TypeError for a dtype without a DirectML type, and for one in the other byte order. bool and bfloat16 have
    none; the message names the type that holds their bits.
    """
    if dtype is None:
        raise TypeError("a dtype was expected, not None, which NumPy reads as float64")
    found = np.dtype(dtype)
    require_native(found, "the dtype", "dtype")
    data_type = NUMBER_TYPES.get(found.name)
    if data_type is None:
        carrier = CARRIERS.get(found.name)
        meant = f"; {carrier.name} carries its bits" if carrier is not None else ""
        raise TypeError(f"DirectML has no tensor data type for {found}{meant}")
    return data_type


def dtype_of(data_type: TensorDataType | int | str) -> np.dtype[Any]:
    """Return the NumPy dtype of a DirectML data type, of its name in any case, or of its value.

        >>> dtype_of("FLOAT16")
        dtype('float16')

    INT4 and UINT4 have dtypes of ml_dtypes, whose elements take a byte each; DirectML's take half a byte. Raises
    ValueError for a type without a dtype, ImportError where ml_dtypes is needed and not installed.
    """
    if isinstance(data_type, str):
        found = TensorDataType.__members__.get(data_type.upper().removeprefix("DML_TENSOR_DATA_TYPE_"))
    else:
        found = TensorDataType(data_type)
    if found is None or not found.bits:
        raise ValueError(f"{data_type!r} has no NumPy dtype; expected one of {', '.join(NUMBER_TYPES)}")
    if found in DTYPES:
        return DTYPES[found]
    small: np.dtype[Any] = np.dtype(getattr(import_module("ml_dtypes"), found.onnx))
    return small


def array_layout(array: NDArray[Any]) -> tuple[TensorDataType, tuple[int, ...], tuple[int, ...] | None]:
    """Return an array's data type, sizes and strides, both in elements; the strides of a packed array are None."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"a NumPy array was expected, not a {type(array).__name__}")
    require_unmasked(array, "the array")
    require_native(array.dtype, "the array", "array")
    data_type = ARRAY_TYPES.get(array.dtype.name) or data_type_of(array.dtype)
    if data_type not in ELEMENT_SIZES:
        raise TypeError(f"an element of {array.dtype} takes a byte in NumPy, but {data_type.name} half of one")
    sizes = array.shape or (1,)
    if array.flags.c_contiguous:
        return data_type, sizes, None
    strides = []
    for size, stride in zip(array.shape, array.strides, strict=True):
        walked = stride if size > 1 else 0
        if walked < 0 or walked % array.itemsize:
            wrong = "negative" if walked < 0 else f"no multiple of an element's {array.itemsize} bytes"
            raise ValueError(
                f"the strides {array.strides} are in bytes; {stride} is {wrong}, which no descriptor can say; "
                "describe np.ascontiguousarray(array)"
            )
        strides.append(walked // array.itemsize)
    return data_type, sizes, tuple(strides)


def require_unmasked(array: object, what: str) -> None:
    """Raise TypeError, with the call that mends it, for a masked array, whose mask would be lost."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{what} is masked, and DirectML knows no masks; use its filled()")


def require_native(dtype: np.dtype[Any], what: str, name: str) -> None:
    """Raise TypeError, with the call that mends it, for a dtype in the other byte order."""
    if not dtype.isnative:
        fixed = "dtype.newbyteorder('=')" if name == "dtype" else f"{name}.astype({name}.dtype.newbyteorder('='))"
        raise TypeError(f"{what} is {dtype.str}, in the other byte order, which DirectML does not read; use {fixed}")
