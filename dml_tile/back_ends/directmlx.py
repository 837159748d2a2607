"""DirectMLX, Microsoft's header for graphs of operators: dml::Tile(input, repeats).

It infers the output: packed, and of the input's data type. Only in debug builds does it look at anything, at the number
of repeats. The input is what the application describes; it is taken to be packed here.

Source: microsoft/DirectML, Libraries/DirectMLX.h
"""

from __future__ import annotations

from operator import mul

from dml_tile.back_ends.tensors import refused, tile, uints
from dml_tile.descriptors import BufferTensorDesc, TensorDesc
from dml_tile.rules.back_end import Fate, Handover
from dml_tile.rules.dialect import CARRIERS
from dml_tile.targets import Target
from dml_tile.tile_request import Request


def from_directmlx(request: Request, target: Target) -> Handover:
    """The tile as it is, also where DirectML expresses none: without dimensions, with sizes and repeats of 0."""
    data_type = CARRIERS.get(request.data_type)
    if data_type is None:
        return refused("InputTensor.DataType", f"there is no dml::TensorDesc of {request.data_type}")
    sizes, repeats = uints(request.shape), uints(request.repeats)
    source, destination = (
        TensorDesc(desc=BufferTensorDesc(data_type=data_type, sizes=shape))
        for shape in (sizes, uints(list(map(mul, sizes, repeats))))
    )
    return Handover(Fate.TILE, tile(source, destination, repeats))
