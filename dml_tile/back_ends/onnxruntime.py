"""The tile that ONNX Runtime's DirectML execution provider describes.

The provider drops the dimensions whose output size is 1, except the last if all are, and puts ones in front until
there are four. Sizes and repeats are converted to UINT and multiplied without a check. ``placer`` says which
provider takes a node. Repeats computed at run time are accepted: the operator is created when they are known. The
minimum level is that of a device which the provider creates; an application's own may be lower.

Source: microsoft/onnxruntime, onnxruntime/core/providers/dml/: DmlExecutionProvider/src/Operators/DmlOperatorTile.cpp,
the same file from 1.2 to 1.24, DmlOperator.cpp and OperatorRegistration.cpp there, DmlExecutionProvider/src/
TensorDesc.cpp, OperatorAuthorHelper/OperatorHelper.h, dml_provider_factory.cc
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import mul
from typing import Final

from dml_tile.back_ends.back_end import BackEnd, BackEndResult, Outcome
from dml_tile.back_ends.dialects import ONNX_TILE_6, ONNX_TILE_13, WEBNN_TILE, Request
from dml_tile.back_ends.kernels import limits_at
from dml_tile.back_ends.placement import Edge, Formals, LoadedModel, ModelNode, Placement
from dml_tile.back_ends.placer import place, release_of
from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc
from dml_tile.directml.data_types import CARRIERS
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, UINT_MAX, FeatureLevel
from dml_tile.directml.targets import Target

_SOURCES: Final = (
    "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/"
)
_TENSOR_DESC: Final = f"{_SOURCES}TensorDesc.cpp"

MIN_DIMENSIONS: Final = 4
"""The fewest dimensions of a tensor that the provider describes."""

_FORMALS: Final = Formals((("input", "T"), ("repeats", "T1")), (("output", "T"),))
_DIALECTS: Final = (ONNX_TILE_6, ONNX_TILE_13, WEBNN_TILE)
_ONNX_NAMES: Final = {"float32": "float", "float64": "double"}
"""The names of data types in ONNX's protobuf, where they differ from NumPy's."""


def _provider_tile(request: Request, target: Target) -> BackEndResult:
    if request.dialect not in _DIALECTS:
        taken = ", ".join(dialect.name for dialect in _DIALECTS)
        text = f"no provider of ONNX Runtime has {request.dialect}; {taken} are taken"
        return BackEndResult(Outcome.REFUSED, reason=text)
    version = 6 if request.dialect is ONNX_TILE_6 else 13
    value = Edge(_ONNX_NAMES.get(request.onnx_type, request.onnx_type))
    tile = ModelNode("0", "", "", "Tile", version, (value, Edge("int64")), (value,), _FORMALS)
    _, ((_, reason),) = place(LoadedModel(0, {"": version}, [tile]), target)
    if reason.placement is not Placement.DIRECTML:
        outcome = Outcome.REFUSED if reason.placement is Placement.NONE else Outcome.ELSEWHERE
        path = "" if reason.rule == "ORT-CPU-version" else "InputTensor.DataType"
        return BackEndResult(outcome, path, reason.text, reason.suggestion, rule=reason.rule)
    rank, most = len(request.shape), DML_TENSOR_DIMENSION_COUNT_MAX1
    if rank > most:
        text = f"{rank} dimensions; the maximum is {most}"
        return BackEndResult(Outcome.REFUSED, "InputTensor.DimensionCount", text, url=_TENSOR_DESC)
    sizes, repeats = _uints(request.shape or (1,)), _uints(request.repeats or (1,))
    products = _uints(map(mul, sizes, repeats))
    kept = [i for i, product in enumerate(products) if product != 1] or [len(products) - 1]
    ones = (1,) * (MIN_DIMENSIONS - len(kept))
    sizes, repeats, products = ((*ones, *(values[i] for i in kept)) for values in (sizes, repeats, products))
    if 0 in products:
        return BackEndResult(Outcome.NOTHING, reason="the result has no elements")
    data_type = CARRIERS[request.onnx_type]
    source, destination = (BufferTensorDesc(data_type=data_type, sizes=shape) for shape in (sizes, products))
    desc = TileOperatorDesc(input_tensor=source, output_tensor=destination, repeats=repeats)
    return BackEndResult(Outcome.TILE, desc=desc)


def _uints(values: Iterable[int]) -> tuple[int, ...]:
    """Return the values modulo 2^32, as C converts them to UINT."""
    return tuple(value & UINT_MAX for value in values)


def _device_level(target: Target) -> FeatureLevel:
    return limits_at(release_of(target)).device_level


ORT: Final = BackEnd(
    "ort",
    "ONNX Runtime's DirectML provider",
    f"{_SOURCES}Operators/DmlOperatorTile.cpp",
    _provider_tile,
    "https://github.com/microsoft/onnxruntime/pull/14172",
    _device_level,
    advice="ship DirectML 1.8.0 or later beside the executable, or onnxruntime-directml, whose wheel brings one: take "
    "onnxruntime-directml-VERSION as the target",
    places_nodes=True,
)

TRANSPOSES_MOVE_SINCE: Final = (1, 10)
"""The release from which on Transposes before a Tile move behind it."""
QUANTISED_SINCE: Final = (1, 20)
"""The release from which on a Tile between quantised values runs on their type."""
