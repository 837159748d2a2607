"""Strategies draw all the tiles that they promise, and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dml_tile.checking import check
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc, described
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.dtypes import DTYPES
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.execution.executor import execute
from dml_tile.geometry.layout import packed_strides
from dml_tile.simulation.target import simulate
from tests.helpers.descriptors import at
from tests.helpers.strategies import invalid_tiles, nearly_valid_tiles, tile_buffers, tiles

WEAK = at("5_2", double_precision=False, typed_uav_loads=False)
TARGETS = [*map(Target, FeatureLevel), at("windows-10-22h2"), at("onnxruntime-directml-1.16.3"), WEAK]
GUARD = 0xA5
any_target = st.sampled_from(TARGETS)
Desc = TypeVar("Desc", TileOperatorDesc, OperatorDesc)


def drawn(strategy: st.SearchStrategy[Desc], count: int) -> list[Desc]:
    """Return as many descriptors as hypothesis draws, the same each time."""
    descs: list[Desc] = []

    @settings(database=None, derandomize=True, phases=[Phase.generate], max_examples=count)
    @given(strategy)
    def keep(desc: Desc) -> None:
        descs.append(desc)

    keep()
    return descs


def elements(memory: NDArray[np.uint8], buffer: BufferTensorDesc) -> NDArray[Any]:
    """Return the tensor's elements as bits; NumPy refuses a view that would leave the buffer."""
    assert buffer.sizes is not None
    dtype: np.dtype[Any] = np.dtype(f"u{DTYPES[buffer.data_type].itemsize}")
    strides = [stride * dtype.itemsize for stride in buffer.strides or packed_strides(buffer.sizes)]
    return np.ndarray(buffer.sizes, dtype, memory.data, strides=strides)


@given(any_target, st.data())
def test_a_tile_passes_and_is_executed_as_numpy_s_and_touches_nothing_else(target: Target, data: st.DataObject) -> None:
    desc = data.draw(tiles(target))
    assert not check(desc, target)
    source, output = data.draw(tile_buffers(desc))
    read, written = described(desc)
    assert [source.nbytes, output.nbytes] == [buffer.total_tensor_size_in_bytes for buffer in (read, written)]
    assert source.flags.writeable
    memory = np.pad(output, 16, constant_values=GUARD)
    expected, given_input = memory.copy(), source.tobytes()
    elements(expected[16:], written)[...] = np.tile(elements(source, read), desc.repeats or ())
    execute(desc, source, memory[16:], target)
    assert memory.tobytes() == expected.tobytes()
    assert source.tobytes() == given_input


@pytest.mark.parametrize("strategy", [nearly_valid_tiles, invalid_tiles])
@given(target=any_target, data=st.data())
def test_a_faulty_tile_is_refused(strategy: Callable[..., Any], target: Target, data: st.DataObject) -> None:
    assert check(data.draw(strategy(target)), target)


@pytest.mark.long
@pytest.mark.parametrize("target", [at("1_0"), at("6_4"), WEAK], ids=lambda target: target.label)
def test_each_data_type_and_dimension_count_of_the_row_occurs(target: Target) -> None:
    buffers = [described(desc)[0] for desc in drawn(tiles(target, max_elements=1), 200)]
    support = target.tile_support
    supported = support.data_types - ({TensorDataType.UINT8, TensorDataType.INT8} if target is WEAK else set())
    assert {buffer.data_type for buffer in buffers} == supported
    assert {buffer.dimension_count for buffer in buffers} == set(support.dimension_counts)


def test_uncommon_tiles_occur() -> None:
    pairs: list[Any] = [described(desc) for desc in drawn(tiles("6_4"), 400)]
    assert any(source.strides and 0 in source.strides for source, _ in pairs), "a broadcast input"
    assert any(source.strides and source.strides[0] < source.strides[-1] for source, _ in pairs), "a transposed one"
    assert any(source.flags == 1 for source, _ in pairs), "an owned one"
    assert any(source.total_tensor_size_in_bytes % 4 for source, _ in pairs), "an odd total"
    assert any(output.strides and output.strides != packed_strides(output.sizes) for _, output in pairs), "padding"
    assert any(not (source.strides or output.strides) and np.prod(output.sizes) > 100 for source, output in pairs)
    assert any(output.guaranteed_base_offset_alignment == 2**31 for _, output in pairs)
    assert any(output.total_tensor_size_in_bytes > 4000 for _, output in pairs)


def test_invalid_tiles_are_of_all_kinds() -> None:
    invalid = drawn(invalid_tiles(), 300)
    tensors = [tensor for desc in invalid for tensor in (desc.input_tensor, desc.output_tensor) if tensor]
    assert any(desc.input_tensor is None and desc.repeats is None for desc in invalid)
    assert any(len(desc.repeats or ()) > 0 and desc.repeats_count == 2**32 - 1 for desc in invalid)
    assert any(tensor.desc is None for tensor in tensors)
    assert any(tensor.type == 2**31 for tensor in tensors)
    assert any(tensor.desc and type(tensor.desc.data_type) is int for tensor in tensors)


@pytest.mark.long
@pytest.mark.parametrize("strategy", [tiles, nearly_valid_tiles, invalid_tiles])
def test_no_target_is_the_simulated_one(strategy: Callable[..., st.SearchStrategy[TileOperatorDesc]]) -> None:
    with simulate("1_0"):
        assert drawn(strategy(), 50) == drawn(strategy("1_0"), 50)
