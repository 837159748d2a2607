"""What ONNX Runtime's DirectML provider makes of a tile: where it runs, and the descriptor."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from dml_tile.back_ends.back_end import BackEndResult, Outcome
from dml_tile.back_ends.deployment import Deployment
from dml_tile.back_ends.described_node import NodePlace
from dml_tile.back_ends.descriptions import DESCRIPTIONS
from dml_tile.back_ends.descriptions.node import Input, KernelNode
from dml_tile.back_ends.dialects import ONNX_TILE_6, ONNX_TILE_13, WEBNN_TILE, Request
from dml_tile.back_ends.kernels import Version
from dml_tile.back_ends.placement import Edge, Formals, LoadedModel, ModelNode, Placement
from dml_tile.back_ends.release_tables import NodeTables, why_not_loaded
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1

_TENSOR_DESC: Final = (
    "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/"
    "TensorDesc.cpp"
)

_FORMALS: Final = Formals((("input", "T"), ("repeats", "T1")), (("output", "T"),))
_DIALECTS: Final = (ONNX_TILE_6, ONNX_TILE_13, WEBNN_TILE)
_ONNX_NAMES: Final = {"float32": "float", "float64": "double"}
"""The names of data types in ONNX's protobuf, where they differ from NumPy's."""


def provider_tile(request: Request, deployment: Deployment) -> BackEndResult:
    """Return what the provider makes of a tile at a deployment."""
    if request.dialect not in _DIALECTS:
        taken = ", ".join(dialect.name for dialect in _DIALECTS)
        text = f"no provider of ONNX Runtime has {request.dialect}; {taken} are taken"
        return BackEndResult(Outcome.REFUSED, reason=text)
    version = 6 if request.dialect is ONNX_TILE_6 else 13
    onnx_type = request.onnx_type
    value = Edge(_ONNX_NAMES.get(onnx_type, onnx_type))
    tile = ModelNode(NodePlace("0", "", "", "Tile", version), (value, Edge("int64")), (value,), _FORMALS)
    unloaded = why_not_loaded(LoadedModel(0, {"": version}, [tile]), deployment.release)
    reason = next(unloaded, None) or NodeTables(deployment.release, deployment.target).alone(tile)
    if reason.placement is not Placement.DIRECTML:
        outcome = Outcome.REFUSED if reason.placement is Placement.NONE else Outcome.ELSEWHERE
        path = "" if reason.rule == "ORT-CPU-version" else "InputTensor.DataType"
        return BackEndResult(outcome, path, reason.text, reason.suggestion, rule=reason.rule)
    rank, most = len(request.shape), DML_TENSOR_DIMENSION_COUNT_MAX1
    if rank > most:
        text = f"{rank} dimensions; the maximum is {most}"
        return BackEndResult(Outcome.REFUSED, "InputTensor.DimensionCount", text, url=_TENSOR_DESC)
    desc = _described(request, version, deployment.release)
    if desc is None:
        return BackEndResult(Outcome.NOTHING, reason="the result has no elements")
    return BackEndResult(Outcome.TILE, desc=desc)


@lru_cache(maxsize=256)  # asked at several levels of a release
def _described(request: Request, version: int, release: Version) -> TileOperatorDesc | None:
    """Return the descriptor of a tile, of a version of ONNX's operator; None for a result without elements.

    Sizes that fit no UINT are wrapped, as the provider does.
    """
    repeats, onnx_type = np.array(request.repeats, np.uint64), request.onnx_type
    inputs = (
        Input("input", onnx_type, request.shape),
        Input("repeats", "int64", repeats.shape, is_constant=True, elements=lambda: repeats),
    )
    output = Input("output", onnx_type, request.output_shape)
    described = DESCRIPTIONS["", "Tile"](KernelNode("", "Tile", version, release, inputs, (output,), {}))
    return TileOperatorDesc.model_validate(described[0].desc["Desc"]) if described else None
