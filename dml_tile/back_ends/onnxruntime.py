"""ONNX Runtime's DirectML execution provider.

The tile is squeezed: dimensions whose output size is 1 are dropped, except the last if all are. Sizes and repeats are
converted to UINT and multiplied without a check. Nodes of a data type that the provider does not register, or that the
device lacks, go to another provider. Repeats computed at run time are accepted: the operator is created when they are
known. The minimum level is that of a device which the provider creates; an application's own may be lower.

Source: microsoft/onnxruntime, onnxruntime/core/providers/dml/: DmlExecutionProvider/src/Operators/DmlOperatorTile.cpp,
DmlOperator.cpp and OperatorRegistration.cpp, DmlExecutionProvider/src/TensorDesc.cpp, DmlCommon.h, GraphPartitioner.cpp
and MLOperatorAuthorImpl.cpp, OperatorAuthorHelper/OperatorHelper.h, dml_provider_factory.cc
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import mul
from typing import Final

from dml_tile.back_ends.back_end import BackEnd, BackEndResult, Outcome
from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc
from dml_tile.dialects.tiles import ONNX_TILE_6, ONNX_TILE_13, Request
from dml_tile.directml.data_types import CARRIERS
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, UINT_MAX, FeatureLevel
from dml_tile.directml.targets import Target

DATA_TYPES: Final = frozenset(
    {"bool", "float16", "float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
)
"""The data types that Tile is registered for."""


def _squeezed_tile(request: Request, target: Target) -> BackEndResult:
    name = request.onnx_type
    if name not in DATA_TYPES:
        listed = ", ".join(sorted(DATA_TYPES))
        return _elsewhere(f"{name} is left to another provider; Tile is registered for {listed}")
    if not target.supports_data_type(CARRIERS[name]):
        return _elsewhere(f"{name} is left to another provider; the device does not support it")
    rank, most = len(request.shape), DML_TENSOR_DIMENSION_COUNT_MAX1
    if rank > most:
        reason = f"{rank} dimensions; the maximum is {most}"
        return BackEndResult(Outcome.REFUSED, "InputTensor.DimensionCount", reason)
    sizes, repeats, products = _squeezed(request)
    if 0 in products:
        return BackEndResult(Outcome.NOTHING, reason="the result has no elements")
    source, destination = (BufferTensorDesc(data_type=CARRIERS[name], sizes=shape) for shape in (sizes, products))
    desc = TileOperatorDesc(input_tensor=source, output_tensor=destination, repeats=repeats)
    return BackEndResult(Outcome.TILE, desc=desc)


def _elsewhere(reason: str) -> BackEndResult:
    return BackEndResult(Outcome.ELSEWHERE, "InputTensor.DataType", reason)


def _squeezed(request: Request) -> tuple[tuple[int, ...], ...]:
    """Return the sizes, the repeats and the output's sizes of the dimensions that are kept; a scalar has one."""
    sizes, repeats = _uints(request.shape or (1,)), _uints(request.repeats or (1,))
    products = _uints(map(mul, sizes, repeats))
    kept = [i for i, product in enumerate(products) if product != 1] or [len(products) - 1]
    return tuple(tuple(values[i] for i in kept) for values in (sizes, repeats, products))


def _uints(values: Iterable[int]) -> tuple[int, ...]:
    """Return the values modulo 2^32, as C converts them to UINT."""
    return tuple(value & UINT_MAX for value in values)


ORT: Final = BackEnd(
    "ort",
    "ONNX Runtime's DirectML provider",
    "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/"
    "Operators/DmlOperatorTile.cpp",
    _squeezed_tile,
    FeatureLevel.DML_FEATURE_LEVEL_5_0,
    advice="take onnxruntime-directml-VERSION as the target: its wheel brings a DirectML of its own",
    dialects=(ONNX_TILE_6, ONNX_TILE_13),
    folds_constants=True,
)
