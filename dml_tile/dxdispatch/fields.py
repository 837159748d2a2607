"""The keys, parts and fields of a DxDispatch model, as its parser takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from dml_tile.descriptors.structs import JSON_DOCUMENT
from dml_tile.descriptors.tile import BufferTensorDesc, TensorDesc, TileOperatorDesc
from dml_tile.dxdispatch.rules import ModelPart, PartKind, part_findings
from dml_tile.findings import Finding
from dml_tile.formats.json_text import Document
from dml_tile.geometry.layout import round_up_4
from dml_tile.text import json_pointer


class JsonObject(BaseModel):
    """An object of a model: its keys are in camelCase, and unknown ones are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel)


_DXGI_FORMAT_NAMES: Final = """
UNKNOWN R32G32B32A32_TYPELESS R32G32B32A32_FLOAT R32G32B32A32_UINT R32G32B32A32_SINT R32G32B32_TYPELESS
R32G32B32_FLOAT R32G32B32_UINT R32G32B32_SINT R16G16B16A16_TYPELESS R16G16B16A16_FLOAT R16G16B16A16_UNORM
R16G16B16A16_UINT R16G16B16A16_SNORM R16G16B16A16_SINT R32G32_TYPELESS R32G32_FLOAT R32G32_UINT R32G32_SINT
R32G8X24_TYPELESS D32_FLOAT_S8X24_UINT R32_FLOAT_X8X24_TYPELESS X32_TYPELESS_G8X24_UINT R10G10B10A2_TYPELESS
R10G10B10A2_UNORM R10G10B10A2_UINT R11G11B10_FLOAT R8G8B8A8_TYPELESS R8G8B8A8_UNORM R8G8B8A8_UNORM_SRGB
R8G8B8A8_UINT R8G8B8A8_SNORM R8G8B8A8_SINT R16G16_TYPELESS R16G16_FLOAT R16G16_UNORM R16G16_UINT R16G16_SNORM
R16G16_SINT R32_TYPELESS D32_FLOAT R32_FLOAT R32_UINT R32_SINT R24G8_TYPELESS D24_UNORM_S8_UINT
R24_UNORM_X8_TYPELESS X24_TYPELESS_G8_UINT R8G8_TYPELESS R8G8_UNORM R8G8_UINT R8G8_SNORM R8G8_SINT
R16_TYPELESS R16_FLOAT D16_UNORM R16_UNORM R16_UINT R16_SNORM R16_SINT R8_TYPELESS R8_UNORM R8_UINT R8_SNORM
R8_SINT A8_UNORM R1_UNORM R9G9B9E5_SHAREDEXP R8G8_B8G8_UNORM G8R8_G8B8_UNORM BC1_TYPELESS BC1_UNORM
BC1_UNORM_SRGB BC2_TYPELESS BC2_UNORM BC2_UNORM_SRGB BC3_TYPELESS BC3_UNORM BC3_UNORM_SRGB BC4_TYPELESS
BC4_UNORM BC4_SNORM BC5_TYPELESS BC5_UNORM BC5_SNORM B5G6R5_UNORM B5G5R5A1_UNORM B8G8R8A8_UNORM B8G8R8X8_UNORM
R10G10B10_XR_BIAS_A2_UNORM B8G8R8A8_TYPELESS B8G8R8A8_UNORM_SRGB B8G8R8X8_TYPELESS B8G8R8X8_UNORM_SRGB
BC6H_TYPELESS BC6H_UF16 BC6H_SF16 BC7_TYPELESS BC7_UNORM BC7_UNORM_SRGB AYUV Y410 Y416 NV12 P010 P016
420_OPAQUE YUY2 Y210 Y216 NV11 AI44 IA44 P8 A8P8 B4G4R4A4_UNORM
"""

DXGI_FORMATS: Final = frozenset(_DXGI_FORMAT_NAMES.split())
"""The formats that a binding may name, without their prefix, DXGI_FORMAT_.

Page: https://learn.microsoft.com/en-us/windows/win32/api/dxgiformat/ne-dxgiformat-dxgi_format
"""

MODEL_KEYS: Final = ("resources", "dispatchables", "commands")


def is_dxdispatch_model(data: Any) -> bool:
    """Return True if a JSON value has a key of a DxDispatch model."""
    return isinstance(data, dict) and not data.keys().isdisjoint(MODEL_KEYS)


def model_parts(document: Document) -> Iterator[tuple[str, ModelPart]]:
    """Yield the parts of a model with their JSON pointers; of its commands, those that dispatch a tile."""
    yield "", ModelPart(PartKind.MODEL, document.value, document.rest, document.has_mark)
    data: dict[str, Any] = document.value
    resources, dispatchables, commands = map(data.get, MODEL_KEYS)
    for name, value in resources.items() if isinstance(resources, dict) else ():
        yield json_pointer(["resources", name]), ModelPart(PartKind.RESOURCE, value)
    tiles = set()
    for name, value in dispatchables.items() if isinstance(dispatchables, dict) else ():
        part = ModelPart(PartKind.DISPATCHABLE, value)
        yield json_pointer(["dispatchables", name]), part
        if part.is_tile:
            tiles.add(name)
    for i, value in enumerate(commands if isinstance(commands, list) else ()):
        part = ModelPart(PartKind.COMMAND, value)
        dispatchable = part.fields.get("dispatchable")
        if isinstance(dispatchable, str) and dispatchable in tiles:
            yield json_pointer(["commands", i]), part


def model_findings(document: Document) -> dict[str, tuple[Finding, ...]]:
    """Return the findings on the parts of a model that have any, by their JSON pointers."""
    return {pointer: found for pointer, part in model_parts(document) if (found := part_findings(part))}


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
        tensor = BufferTensorDesc.model_validate(buffer | {"DataType": "UINT64"}, context=JSON_DOCUMENT)
    except ValidationError:
        return 0  # the tensor itself cannot be read
    elements = tensor.total_tensor_size_in_bytes // 8
    return round_up_4((elements + 1) // 2)


def pick(data: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return the items with these keys."""
    return {key: data[key] for key in keys if key in data}
