"""The tile that ONNX Runtime's DirectML execution provider describes.

``descriptions`` says how the provider describes a node, ``placer`` which provider takes it. Repeats computed at run
time are accepted: the operator is created when they are known. The minimum level is that of a device which the provider
creates; an application's own may be lower.

Source: microsoft/onnxruntime, onnxruntime/core/providers/dml/: DmlExecutionProvider/src/Operators/DmlOperatorTile.cpp,
the same file from 1.2 to 1.24, DmlOperator.cpp and OperatorRegistration.cpp there, DmlExecutionProvider/src/
TensorDesc.cpp, OperatorAuthorHelper/OperatorHelper.h, dml_provider_factory.cc
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dml_tile.back_ends.back_end import BackEnd, BackEndResult, Outcome
from dml_tile.back_ends.deployment import Deployment, shipped
from dml_tile.back_ends.described_node import NodePlace
from dml_tile.back_ends.descriptions import describe
from dml_tile.back_ends.descriptions.node import Input, KernelNode
from dml_tile.back_ends.dialects import ONNX_TILE_6, ONNX_TILE_13, WEBNN_TILE, Request
from dml_tile.back_ends.kernels import Version, limits_at
from dml_tile.back_ends.placement import Edge, Formals, LoadedModel, ModelNode, Placement
from dml_tile.back_ends.placer import place
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, FeatureLevel

_SOURCES: Final = (
    "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/"
)
_TENSOR_DESC: Final = f"{_SOURCES}TensorDesc.cpp"

_FORMALS: Final = Formals((("input", "T"), ("repeats", "T1")), (("output", "T"),))
_DIALECTS: Final = (ONNX_TILE_6, ONNX_TILE_13, WEBNN_TILE)
_ONNX_NAMES: Final = {"float32": "float", "float64": "double"}
"""The names of data types in ONNX's protobuf, where they differ from NumPy's."""


def _provider_tile(request: Request, deployment: Deployment) -> BackEndResult:
    if request.dialect not in _DIALECTS:
        taken = ", ".join(dialect.name for dialect in _DIALECTS)
        text = f"no provider of ONNX Runtime has {request.dialect}; {taken} are taken"
        return BackEndResult(Outcome.REFUSED, reason=text)
    version = 6 if request.dialect is ONNX_TILE_6 else 13
    onnx_type = request.onnx_type
    value = Edge(_ONNX_NAMES.get(onnx_type, onnx_type))
    tile = ModelNode(NodePlace("0", "", "", "Tile", version), (value, Edge("int64")), (value,), _FORMALS)
    ((_, reason),) = place(LoadedModel(0, {"": version}, [tile]), deployment).nodes
    if reason.placement is not Placement.DIRECTML:
        outcome = Outcome.REFUSED if reason.placement is Placement.NONE else Outcome.ELSEWHERE
        path = "" if reason.rule == "ORT-CPU-version" else "InputTensor.DataType"
        return BackEndResult(outcome, path, reason.text, reason.suggestion, rule=reason.rule)
    rank, most = len(request.shape), DML_TENSOR_DIMENSION_COUNT_MAX1
    if rank > most:
        text = f"{rank} dimensions; the maximum is {most}"
        return BackEndResult(Outcome.REFUSED, "InputTensor.DimensionCount", text, url=_TENSOR_DESC)
    described = describe(_kernel_node(request, onnx_type, version, deployment.release))
    if not described:
        return BackEndResult(Outcome.NOTHING, reason="the result has no elements")
    return BackEndResult(Outcome.TILE, desc=TileOperatorDesc.model_validate(described[0].desc["Desc"]))


def _kernel_node(request: Request, onnx_type: str, version: int, release: Version) -> KernelNode:
    repeats = np.array(request.repeats, np.uint64)
    inputs = (
        Input("input", onnx_type, request.shape),
        Input("repeats", "int64", repeats.shape, is_constant=True, elements=lambda: repeats),
    )
    output = Input("output", onnx_type, request.output_shape)
    return KernelNode("", "Tile", version, release, inputs, (output,), {})


def _device_level(deployment: Deployment) -> FeatureLevel:
    return limits_at(deployment.release).device_level


ORT: Final = BackEnd(
    "ort",
    "ONNX Runtime's DirectML provider",
    f"{_SOURCES}Operators/DmlOperatorTile.cpp",
    _provider_tile,
    "https://github.com/microsoft/onnxruntime/pull/14172",
    _device_level,
    advice=shipped,
    places_nodes=True,
)

TRANSPOSES_MOVE_SINCE: Final = (1, 10)
"""The release from which on Transposes before a Tile move behind it."""
QUANTISED_SINCE: Final = (1, 20)
"""The release from which on a Tile between quantised values runs on their type."""
