"""Chromium's WebNN implementation on DirectML.

The tile is handed over as it is, with packed strides written out. A scalar gets the sizes {1} but keeps no repeats, so
its RepeatsCount is 0, which DirectML refuses. What the WebNN specification or the context's limits exclude is a
TypeError, raised before there is a descriptor. Tiles of ONNX and OpenVINO are taken as if converted to WebNN, bool as
uint8, as ONNX Runtime's WebNN provider does.

Source: chromium/chromium, services/webnn/: dml/graph_impl_dml.cc, dml/tensor_desc.cc, dml/context_impl_dml.cc and
webnn_context_provider_impl.cc; microsoft/onnxruntime, onnxruntime/core/providers/webnn/builders/helper.h
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import Final, Literal, get_args

from dml_tile.back_ends.rules import Fate, Handover
from dml_tile.back_ends.tensors import refused, tensor, tile, written_strides
from dml_tile.descriptors.tile import TensorDesc
from dml_tile.dialects.request import Request
from dml_tile.directml.data_types import CARRIERS, ELEMENT_SIZES
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, UINT_MAX
from dml_tile.directml.targets import Target

DataType = Literal["float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8"]
DATA_TYPES: Final[tuple[DataType, ...]] = get_args(DataType)
MAX_BYTES: Final = UINT_MAX
"""The most bytes that a tensor may have."""


def from_chromium(request: Request, target: Target) -> Handover:
    """The tile, with the strides of packed tensors."""
    name = "uint8" if request.onnx_type == "bool" else request.onnx_type
    if name not in DATA_TYPES:
        return refused("InputTensor.DataType", f"TypeError: {name} is not one of {', '.join(DATA_TYPES)}")
    rank = len(request.shape)
    if rank > DML_TENSOR_DIMENSION_COUNT_MAX1:
        most = DML_TENSOR_DIMENSION_COUNT_MAX1
        return refused("InputTensor.DimensionCount", f"TypeError: {rank} dimensions; the maximum is {most}")
    for field, values in (("InputTensor.Sizes", request.shape), ("Repeats", request.repeats)):
        if 0 in values:
            return refused(f"{field}[{values.index(0)}]", "TypeError: is 0; it must be larger than 0")
    size = ELEMENT_SIZES[CARRIERS[name]]
    for value in map(mul, request.shape, request.repeats):
        size *= value
    if size > MAX_BYTES:
        return refused("OutputTensor.Sizes", f"TypeError: the output has {size} bytes; the maximum is {MAX_BYTES}")
    source, destination = _written_out(name, request.shape), _written_out(name, request.output_shape)
    return Handover(Fate.TILE, tile(source, destination, request.repeats))


def _written_out(name: str, shape: Sequence[int]) -> TensorDesc:
    sizes = tuple(shape) or (1,)
    return tensor(CARRIERS[name], sizes, written_strides(sizes))
