"""DirectMLX, Microsoft's header for graphs of operators: dml::Tile(input, repeats).

The output is inferred: packed, of the input's data type. Debug builds assert the number of repeats; nothing else is
checked. The application describes the input; a packed one is assumed here.

Source: microsoft/DirectML, Libraries/DirectMLX.h
"""

from __future__ import annotations

from operator import mul

from dml_tile.back_ends.rules import Fate, Handover
from dml_tile.back_ends.tensors import refused, tile, uints
from dml_tile.descriptors.tile import BufferTensorDesc, TensorDesc
from dml_tile.dialects.request import Request
from dml_tile.directml.targets import Target


def from_directmlx(request: Request, target: Target) -> Handover:
    """The tile as it is, even without dimensions, and with sizes or repeats of 0."""
    data_type = request.carrier
    if data_type is None:
        return refused("InputTensor.DataType", f"DirectML has no data type for {request.data_type}")
    sizes, repeats = uints(request.shape), uints(request.repeats)
    source, destination = (
        TensorDesc(desc=BufferTensorDesc(data_type=data_type, sizes=shape))
        for shape in (sizes, uints(list(map(mul, sizes, repeats))))
    )
    return Handover(Fate.TILE, tile(source, destination, repeats))
