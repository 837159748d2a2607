"""The parts that back ends share: their names of data types, and descriptors of 32-bit unsigned fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dml_tile.descriptors import BufferTensorDesc, TensorDesc, TileOperatorDesc
from dml_tile.enums import UINT_MAX
from dml_tile.geometry.layout import calc_buffer_tensor_size, packed_strides
from dml_tile.rules.back_end import Fate, Handover
from dml_tile.tile_request import Request

_OF_OPENVINO: Final = {
    "boolean": "bool",
    "bf16": "bfloat16",
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (4, 8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (4, 8, 16, 32, 64)},
}

NOTHING: Final = Handover(Fate.NOTHING, note="the result has no elements")


def type_name(request: Request) -> str:
    """The data type by ONNX's name, where it has one, also if the request gives it OpenVINO's."""
    return _OF_OPENVINO.get(request.data_type, request.data_type)


def uints(values: Sequence[int]) -> tuple[int, ...]:
    """The values modulo 2^32, as a conversion to UINT leaves them."""
    return tuple(value & UINT_MAX for value in values)


def written_strides(sizes: Sequence[int], step: int = 1) -> tuple[int, ...]:
    """The strides of a packed tensor whose elements are ``step`` apart, in elements."""
    return uints([stride * step for stride in packed_strides(sizes)])


def tensor(
    data_type: int, sizes: Sequence[int], strides: Sequence[int] | None = None, end_padding: int = 0
) -> TensorDesc:
    """A tensor of the size that Microsoft's helper computes, and ``end_padding`` bytes."""
    total = calc_buffer_tensor_size(data_type, sizes, strides) + end_padding
    buffer = {"DataType": data_type, "Sizes": sizes, "Strides": strides, "TotalTensorSizeInBytes": total}
    return TensorDesc(desc=BufferTensorDesc.model_validate(buffer))


def tile(source: TensorDesc, destination: TensorDesc, repeats: Sequence[int]) -> TileOperatorDesc:
    """The descriptor of these parts; RepeatsCount is the length of the repeats."""
    return TileOperatorDesc(input_tensor=source, output_tensor=destination, repeats=tuple(repeats))


def elsewhere(path: str, note: str) -> Handover:
    """A tile that what is not DirectML does."""
    return Handover(Fate.ELSEWHERE, note=note, path=path)


def refused(path: str, note: str) -> Handover:
    """A tile on which the back end raises an error."""
    return Handover(Fate.REFUSED, note=note, path=path)
