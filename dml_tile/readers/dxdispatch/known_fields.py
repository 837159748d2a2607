"""A tile's fields as DxDispatch reads them: it ignores unknown keys, and takes empty values for missing ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from dml_tile.data_types import TensorDataType
from dml_tile.descriptors import BufferTensorDesc, TensorDesc, TileOperatorDesc
from dml_tile.geometry.layout import calc_buffer_tensor_size, round_up_4
from dml_tile.spellings import JSON_DOCUMENT

_TILE_FIELDS: Final = tuple(str(field.alias) for field in TileOperatorDesc.model_fields.values())
_TENSOR_FIELDS: Final = tuple(str(field.alias) for field in TensorDesc.model_fields.values())
_BUFFER_FIELDS: Final = tuple(str(field.alias) for field in BufferTensorDesc.model_fields.values())
_TYPES_OF_4_BITS: Final = ("UINT4", "INT4", "DML_TENSOR_DATA_TYPE_UINT4", "DML_TENSOR_DATA_TYPE_INT4")


def known_fields_of_tile(desc: Any) -> Any:
    """Return a tile's fields as DxDispatch takes them, without unknown keys."""
    if not isinstance(desc, dict):
        return desc
    tile = pick(desc, _TILE_FIELDS)
    if "RepeatsCount" not in tile:
        raise PydanticCustomError("required", "RepeatsCount is missing; DxDispatch requires it")
    for tensor in ("InputTensor", "OutputTensor"):
        if isinstance(tile.get(tensor), dict):
            tile[tensor] = _known_fields_of_tensor(tile[tensor])
    if tile.get("Repeats") == []:
        tile["Repeats"] = None
    return tile


def _known_fields_of_tensor(tensor: dict[str, Any]) -> dict[str, Any]:
    if isinstance(tensor.get("Desc"), dict):
        return {**pick(tensor, _TENSOR_FIELDS), "Desc": _known_fields_of_buffer(tensor["Desc"])}
    return {**pick(tensor, _TENSOR_FIELDS), **_known_fields_of_buffer(tensor)}


def _known_fields_of_buffer(buffer: dict[str, Any]) -> dict[str, Any]:
    known = pick(buffer, _BUFFER_FIELDS)
    if known.get("TotalTensorSizeInBytes") == 0:
        del known["TotalTensorSizeInBytes"]  # worked out as if it were missing
    if known.get("DataType") in _TYPES_OF_4_BITS and "TotalTensorSizeInBytes" not in known:
        known["TotalTensorSizeInBytes"] = _size_of_4_bits(known)
    return known


def _size_of_4_bits(buffer: dict[str, Any]) -> int:
    """Return the size of 4-bit integers as DxDispatch's helper does; that of the reference page does not know them."""
    try:
        tensor = BufferTensorDesc.model_validate(buffer | {"DataType": "UINT8"}, context=JSON_DOCUMENT)
    except ValidationError:
        return 0  # the tensor itself cannot be read
    elements = calc_buffer_tensor_size(TensorDataType.UINT64, tensor.sizes or (), tensor.strides) // 8
    return round_up_4((elements + 1) // 2)


def pick(data: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return the items with these keys."""
    return {key: data[key] for key in keys if key in data}
