"""Parts that the back ends share: tensors and descriptors of 32-bit unsigned fields, and handovers without a tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dml_tile.back_ends.rules import Fate, Handover
from dml_tile.descriptors.tile import BufferTensorDesc, TensorDesc, TileOperatorDesc
from dml_tile.directml.enums import UINT_MAX
from dml_tile.geometry.layout import calc_buffer_tensor_size, packed_strides

NOTHING: Final = Handover(Fate.NOTHING, note="the result has no elements")


def uints(values: Sequence[int]) -> tuple[int, ...]:
    """The values modulo 2^32: C's conversion to UINT."""
    return tuple(value & UINT_MAX for value in values)


def written_strides(sizes: Sequence[int], step: int = 1) -> tuple[int, ...]:
    """The strides, in elements, of a packed tensor; the innermost is ``step``."""
    return uints([stride * step for stride in packed_strides(sizes)])


def tensor(
    data_type: int, sizes: Sequence[int], strides: Sequence[int] | None = None, end_padding: int = 0
) -> TensorDesc:
    """A tensor whose total size is what Microsoft's helper computes, plus ``end_padding`` bytes."""
    total = calc_buffer_tensor_size(data_type, sizes, strides) + end_padding
    buffer = {"DataType": data_type, "Sizes": sizes, "Strides": strides, "TotalTensorSizeInBytes": total}
    return TensorDesc(desc=BufferTensorDesc.model_validate(buffer))


def tile(source: TensorDesc, destination: TensorDesc, repeats: Sequence[int]) -> TileOperatorDesc:
    """The descriptor of two tensors and repeats; RepeatsCount is their number."""
    return TileOperatorDesc(input_tensor=source, output_tensor=destination, repeats=tuple(repeats))


def elsewhere(path: str, note: str) -> Handover:
    """The back end leaves the tile to something other than DirectML."""
    return Handover(Fate.ELSEWHERE, note=note, path=path)


def refused(path: str, note: str) -> Handover:
    """The back end raises an error."""
    return Handover(Fate.REFUSED, note=note, path=path)
