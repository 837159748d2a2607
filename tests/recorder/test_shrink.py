"""Shrinking keeps what a descriptor was found for, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from dml_tile.descriptors.tile import TileOperatorDesc
from tests.helpers.descriptors import changed, row
from tests.recorder.shrink import shrunk

LARGE = changed(
    row("UINT64", [2, 3, 4, 5, 6], [3, 1, 2, 9, 2]),
    InputTensor__Flags=1,
    InputTensor__GuaranteedBaseOffsetAlignment=64,
    OutputTensor__Strides=[6000, 2000, 500, 12, 1],
    OutputTensor__TotalTensorSizeInBytes=400_000,
)


def test_what_nothing_depends_on_becomes_plain() -> None:
    def has_a_repeat_of_two(descs: Sequence[TileOperatorDesc]) -> list[bool]:
        return [2 in (desc.repeats or ()) for desc in descs]

    small = shrunk(LARGE, has_a_repeat_of_two)
    assert small.repeats == (2,)
    assert small.input_tensor
    assert small.input_tensor.desc
    assert small.input_tensor.desc.strides is None
    assert small.input_tensor.desc.flags == 0


def test_a_descriptor_that_cannot_be_plainer_stays() -> None:
    assert shrunk(LARGE, lambda descs: [False for _ in descs]) == LARGE


def test_a_number_comes_down_to_where_it_still_matters() -> None:
    def is_large(descs: Sequence[TileOperatorDesc]) -> list[bool]:
        buffers = [desc.output_tensor.desc if desc.output_tensor else None for desc in descs]
        return [buffer is not None and buffer.total_tensor_size_in_bytes > 1000 for buffer in buffers]

    small = shrunk(LARGE, is_large)
    assert small.output_tensor
    assert small.output_tensor.desc
    assert small.output_tensor.desc.total_tensor_size_in_bytes == 1001
