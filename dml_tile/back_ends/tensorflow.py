"""TensorFlow-DirectML.

A dimension is merged into the next inner one if that is not repeated, or if its own size is 1; leading 1s fill up 8
dimensions. Where nothing is repeated, or the input has one element, an identity whose input strides are 0 replaces the
tile. DirectMLX creates the other tiles: the input's strides are written out, the output's are not. int64 is assumed to
be handed over as INT64: the kernel has none of the code that emulates it elsewhere.

Source: microsoft/tensorflow-directml, tensorflow/core/: kernels/dml_tile_op.cc, common_runtime/dml/dml_tensor_desc.cc
"""

from __future__ import annotations

import math
from operator import mul
from typing import Final

from dml_tile.back_ends.rules import Fate, Handover
from dml_tile.back_ends.tensors import NOTHING, elsewhere, refused, tensor, tile, uints, written_strides
from dml_tile.dialects.directml import merged
from dml_tile.dialects.request import Request
from dml_tile.directml.data_types import CARRIERS
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, UINT_MAX
from dml_tile.directml.targets import Target

DATA_TYPES: Final = frozenset({"bool", "float16", "float32", "int16", "int32", "int64"})

_RANK: Final = DML_TENSOR_DIMENSION_COUNT_MAX1
_IDENTITY: Final = Handover(
    Fate.OTHER_OPERATOR, note="an element-wise identity replaces it, with input strides of 0; that is not checked"
)


def from_tensorflow(request: Request, target: Target) -> Handover:
    """The merged tile in 8 dimensions, unless an identity replaces it."""
    name = request.onnx_type
    if name not in DATA_TYPES:
        listed = ", ".join(sorted(DATA_TYPES))
        return elsewhere("InputTensor.DataType", f"{name} is left to another device; Tile is registered for {listed}")
    if request.is_empty:
        return NOTHING
    shape, counts = merged(uints(request.shape), uints(request.repeats))
    if len(shape) > _RANK:
        return refused(
            "InputTensor.DimensionCount",
            f"InvalidArgument: {len(request.shape)} dimensions merge into {len(shape)}; the maximum is {_RANK}",
        )
    if 1 in (math.prod(counts) & UINT_MAX, math.prod(shape) & UINT_MAX):
        return _IDENTITY
    ones = (1,) * (_RANK - len(shape))
    sizes, repeats = ones + uints(shape), ones + uints(counts)
    source = tensor(CARRIERS[name], sizes, written_strides(sizes))
    return Handover(Fate.TILE, tile(source, tensor(CARRIERS[name], uints(list(map(mul, sizes, repeats)))), repeats))
