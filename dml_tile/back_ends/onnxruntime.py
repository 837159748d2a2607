"""ONNX Runtime's DirectML execution provider, in three eras that are known from versions of its files.

The tile is squeezed: dimensions whose output size is 1 are dropped, except the last if all are. Sizes and repeats are
converted to UINT and multiplied without a check. Nodes of a data type that the provider does not register, or that the
device lacks, go to another provider. Repeats computed at run time are accepted: the operator is created when they are
known. The minimum level is that of a device which the provider creates; an application's own may be lower.

Source: microsoft/onnxruntime, onnxruntime/core/providers/dml/: DmlExecutionProvider/src/Operators/DmlOperatorTile.cpp,
DmlOperator.cpp and OperatorRegistration.cpp, DmlExecutionProvider/src/TensorDesc.cpp, DmlCommon.h, GraphPartitioner.cpp
and MLOperatorAuthorImpl.cpp, OperatorAuthorHelper/OperatorHelper.h, dml_provider_factory.cc
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import Final, NamedTuple

from dml_tile.back_ends.rules import Fate, Handover
from dml_tile.back_ends.tensors import NOTHING, elsewhere, refused, tensor, tile, uints, written_strides
from dml_tile.descriptors.tile import TensorDesc
from dml_tile.dialects.request import Request
from dml_tile.directml.data_types import CARRIERS, TensorDataType
from dml_tile.directml.targets import Target

_FLOATS: Final = frozenset({"float16", "float32"})
_SCALARS: Final = _FLOATS | {"bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32))}
_INTEGERS_64: Final = frozenset({"int64", "uint64"})


class Era(NamedTuple):
    """A period in which the provider handed over tiles in one way.

    ``data_types`` are those that Tile is registered for; with ``asks_device``, the device must have them too.
    ``emulates_64_bits`` means that 64-bit integers travel as strided UINT32. A tensor of fewer dimensions than the
    first of ``dimension_counts`` gets leading 1s after it is squeezed; one of more than the last, counted before, is an
    error.
    """

    data_types: frozenset[str]
    asks_device: bool
    emulates_64_bits: bool
    takes_zero_repeats: bool
    dimension_counts: range


FIRST: Final = Era(_FLOATS, False, False, False, range(4, 6))
# Tile itself took no fewer than 4 dimensions in the middle era
MIDDLE: Final = Era(_SCALARS | _INTEGERS_64, True, True, True, range(4, 9))
CURRENT: Final = Era(_SCALARS | _INTEGERS_64 | {"float64"}, True, False, True, range(1, 9))

_ONE_ELEMENT_IN_TWO: Final = 2
_EMULATED: Final = (
    "64-bit integers travel as strided UINT32: only their low 32 bits do, and only where the input comes from another "
    "node that DirectML runs; otherwise another provider runs the Tile"
)


def from_onnxruntime(era: Era, request: Request, target: Target) -> Handover:
    """The squeezed tile, in at least as many dimensions as the era requires."""
    name = request.onnx_type
    if name not in era.data_types:
        listed = ", ".join(sorted(era.data_types))
        return elsewhere("InputTensor.DataType", f"{name} is left to another provider; Tile is registered for {listed}")
    is_emulated = era.emulates_64_bits and name in _INTEGERS_64
    data_type = TensorDataType.UINT32 if is_emulated else CARRIERS[name]
    if era.asks_device and not target.supports_data_type(data_type):
        return elsewhere("InputTensor.DataType", f"{name} is left to another provider; the device does not support it")
    if 0 in request.repeats and not era.takes_zero_repeats:
        return refused(f"Repeats[{request.repeats.index(0)}]", "is 0; it must be larger than 0")
    most = era.dimension_counts[-1]
    if len(request.shape) > most:
        return refused("InputTensor.DimensionCount", f"{len(request.shape)} dimensions; the maximum is {most}")
    sizes, repeats = _squeezed(uints(request.shape), uints(request.repeats))
    ones = (1,) * (era.dimension_counts[0] - len(sizes))
    sizes, repeats = ones + sizes, ones + repeats
    products = uints(list(map(mul, sizes, repeats)))
    if 0 in products:
        return NOTHING
    if is_emulated:
        return Handover(Fate.TILE, tile(_emulated(sizes), _emulated(products), repeats), _EMULATED)
    return Handover(Fate.TILE, tile(tensor(data_type, sizes), tensor(data_type, products), repeats))


def _squeezed(sizes: Sequence[int], repeats: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    products = uints(list(map(mul, sizes, repeats)))
    kept = [i for i, product in enumerate(products) if product != 1] or [*range(len(products))][-1:]
    return tuple(sizes[i] for i in kept), tuple(repeats[i] for i in kept)


def _emulated(sizes: Sequence[int]) -> TensorDesc:
    """The low halves of 64-bit elements; the total includes the last element's high half."""
    return tensor(TensorDataType.UINT32, sizes, written_strides(sizes, _ONE_ELEMENT_IN_TWO), end_padding=4)
