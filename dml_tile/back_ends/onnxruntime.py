"""ONNX Runtime's DirectML execution provider.

The tile is squeezed: dimensions whose output size is 1 are dropped, except the last if all are. Sizes and repeats are
converted to UINT and multiplied without a check. Nodes of a data type that the provider does not register, or that the
device lacks, go to the CPU provider; what that lacks too keeps the session from loading. Repeats computed at run time
are accepted: the operator is created when they are known. The minimum level is that of a device which the provider
creates; an application's own may be lower.

Source: microsoft/onnxruntime, onnxruntime/core/providers/dml/: DmlExecutionProvider/src/Operators/DmlOperatorTile.cpp,
DmlOperator.cpp and OperatorRegistration.cpp, DmlExecutionProvider/src/TensorDesc.cpp, DmlCommon.h, GraphPartitioner.cpp
and MLOperatorAuthorImpl.cpp, OperatorAuthorHelper/OperatorHelper.h, dml_provider_factory.cc
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import mul
from typing import Final

from dml_tile.back_ends.back_end import BackEnd, BackEndResult, Outcome, Release
from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc
from dml_tile.dialects.tiles import ONNX_TILE_6, ONNX_TILE_13, Request
from dml_tile.directml.data_types import CARRIERS
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, UINT_MAX, FeatureLevel
from dml_tile.directml.packages import NEWEST_PROVIDER, provider_release
from dml_tile.directml.targets import Target

_L = FeatureLevel.parse

DML_PROVIDER_TYPES: Final = frozenset(
    {"bool", "float16", "float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
)
"""The data types that Tile is registered for."""

CPU_PROVIDER_TYPES: Final = DML_PROVIDER_TYPES | {"string"}
"""The data types of which the CPU provider has Tile; measured of 1.32."""

_ISSUES: Final = "https://github.com/microsoft/onnxruntime/pull/"
_SOURCES: Final = (
    "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/"
)
_REGISTRATION: Final = f"{_SOURCES}Operators/OperatorRegistration.cpp"
_PARTITIONER: Final = f"{_SOURCES}GraphPartitioner.cpp"
_TENSOR_DESC: Final = f"{_SOURCES}TensorDesc.cpp"

RELEASES: Final = (
    # up to 1.10, 64-bit integers of other DirectML nodes were strided pairs of 32 bits, and others the CPU provider's
    Release((1, 0), _L("2_0"), f"{_ISSUES}14172", frozenset({"int64", "uint64"}), f"{_ISSUES}9959"),
    Release((1, 11), _L("2_0"), f"{_ISSUES}14172"),
    Release((1, 14), _L("5_0"), f"{_ISSUES}14172"),
)


def _squeezed_tile(request: Request, target: Target) -> BackEndResult:
    name = request.onnx_type
    if name not in CPU_PROVIDER_TYPES:
        reason = f"no provider of ONNX Runtime has Tile of {name}: the session does not load"
        return BackEndResult(Outcome.REFUSED, "InputTensor.DataType", reason, url=_REGISTRATION)
    if name not in DML_PROVIDER_TYPES:
        listed = ", ".join(sorted(DML_PROVIDER_TYPES))
        return _elsewhere(f"{name} is left to the CPU provider; Tile is registered for {listed}", _REGISTRATION)
    release = ORT.release_at(target)
    if name in release.opaque:
        ways = "as strided pairs of 32 bits, or leaves it to the CPU provider"
        reason = f"not known of this release: {target.name} passes {name} on {ways}"
        return _elsewhere(reason, release.opaque_page)
    if not target.supports_data_type(CARRIERS[name]):
        return _elsewhere(f"{name} is left to the CPU provider; the device does not support it", _PARTITIONER)
    rank, most = len(request.shape), DML_TENSOR_DIMENSION_COUNT_MAX1
    if rank > most:
        reason = f"{rank} dimensions; the maximum is {most}"
        return BackEndResult(Outcome.REFUSED, "InputTensor.DimensionCount", reason, url=_TENSOR_DESC)
    sizes, repeats, products = _squeezed(request)
    if 0 in products:
        return BackEndResult(Outcome.NOTHING, reason="the result has no elements")
    source, destination = (BufferTensorDesc(data_type=CARRIERS[name], sizes=shape) for shape in (sizes, products))
    desc = TileOperatorDesc(input_tensor=source, output_tensor=destination, repeats=repeats)
    return BackEndResult(Outcome.TILE, desc=desc)


def _elsewhere(reason: str, url: str) -> BackEndResult:
    return BackEndResult(Outcome.ELSEWHERE, "InputTensor.DataType", reason, url=url)


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
    f"{_SOURCES}Operators/DmlOperatorTile.cpp",
    _squeezed_tile,
    RELEASES,
    ".".join(map(str, NEWEST_PROVIDER)),
    lambda target: provider_release(target.name),
    advice="ship DirectML 1.8.0 or later beside the executable, or onnxruntime-directml, whose wheel brings one: take "
    "onnxruntime-directml-VERSION as the target",
    dialects=(ONNX_TILE_6, ONNX_TILE_13),
    folds_constants=True,
)
