"""Chromium's WebNN implementation on DirectML.

The tile is described as it is, with packed strides written out. A scalar gets the sizes {1} but keeps no repeats, so
its RepeatsCount is 0, which DirectML refuses. What the WebNN specification or the context's limits exclude is a
TypeError, raised before there is a descriptor. Sizes and repeats are numbers by the time a graph is built. Tiles of
ONNX and OpenVINO are taken as if converted to WebNN, bool as uint8, as ONNX Runtime's WebNN provider does.

Source: chromium/chromium, services/webnn/: dml/graph_impl_dml.cc, dml/tensor_desc.cc, dml/context_impl_dml.cc and
webnn_context_provider_impl.cc; microsoft/onnxruntime, onnxruntime/core/providers/webnn/builders/helper.h
"""

from __future__ import annotations

import math
from typing import Final

from dml_tile.back_ends.back_end import BackEnd, BackEndResult, Outcome
from dml_tile.back_ends.deployment import Deployment
from dml_tile.back_ends.dialects import Request
from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc
from dml_tile.directml.data_types import CARRIERS, ELEMENT_SIZES
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, UINT_MAX, FeatureLevel
from dml_tile.directml.targets import WINDOWS_RELEASES, Target
from dml_tile.geometry.layout import packed_strides

OPERAND_TYPES: Final = ("float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8")
MAX_OPERAND_BYTES: Final = UINT_MAX
"""The most bytes that a tensor may have."""


def _packed_tile(request: Request, deployment: Deployment) -> BackEndResult:
    """Return the tile, with the strides of packed tensors."""
    name = "uint8" if request.onnx_type == "bool" else request.onnx_type
    if name not in OPERAND_TYPES:
        return _type_error("InputTensor.DataType", f"{name} is not one of {', '.join(OPERAND_TYPES)}", _CONTEXT)
    rank, most = len(request.shape), DML_TENSOR_DIMENSION_COUNT_MAX1
    if rank > most:
        return _type_error("InputTensor.DimensionCount", f"{rank} dimensions; the maximum is {most}", _CONTEXT)
    for field, values in (("InputTensor.Sizes", request.shape), ("Repeats", request.repeats)):
        if 0 in values:
            return _type_error(f"{field}[{values.index(0)}]", "is 0; it must be larger than 0")
    data_type = CARRIERS[name]
    size = ELEMENT_SIZES[data_type] * math.prod(request.output_shape)
    if size > MAX_OPERAND_BYTES:
        return _type_error("OutputTensor.Sizes", f"the output has {size} bytes; the maximum is {MAX_OPERAND_BYTES}")
    source, destination = (
        BufferTensorDesc(data_type=data_type, sizes=sizes, strides=packed_strides(sizes))
        for sizes in (request.shape or (1,), request.output_shape or (1,))
    )
    desc = TileOperatorDesc(input_tensor=source, output_tensor=destination, repeats=request.repeats)
    return BackEndResult(Outcome.TILE, desc=desc)


def _type_error(path: str, reason: str, url: str = "") -> BackEndResult:
    return BackEndResult(Outcome.REFUSED, path, f"TypeError: {reason}", url=url)


_SOURCES: Final = "https://github.com/chromium/chromium/blob/c80028acacc05ac6687d44d9af5c95851b88b11e/services/webnn/"
_CONTEXT: Final = f"{_SOURCES}dml/context_impl_dml.cc"
"""The file with the limits of the context: the data types and ranks that each operator takes."""


def _context_level(deployment: Deployment) -> FeatureLevel:
    return FeatureLevel.DML_FEATURE_LEVEL_4_0


CHROMIUM: Final = BackEnd(
    "chromium",
    "Chromium's WebNN over DirectML",
    f"{_SOURCES}dml/graph_impl_dml.cc",
    _packed_tile,
    f"{_SOURCES}webnn_context_provider_impl.cc",
    _context_level,
)


_FIRST_WITH_ONNX_RUNTIME: Final = "windows-11-24h2"


def may_use_onnx_runtime(target: Target) -> bool:
    """Return True for a Windows in which Chromium passes graphs to ONNX Runtime where WebNNOnnxRuntime is on."""
    names = [release.name for release in WINDOWS_RELEASES if release.name.startswith("windows-11-")]
    return target.name.partition("+")[0] in names[names.index(_FIRST_WITH_ONNX_RUNTIME) :]
