"""Drawn tiles pass, or are refused, as their strategies promise; those that pass are executed as NumPy would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dml_tile.checking import check
from dml_tile.descriptors.tile import BufferTensorDesc, described
from dml_tile.directml.dtypes import DTYPES
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.execution.executor import execute
from dml_tile.geometry.layout import packed_strides
from tests.helpers.descriptors import at
from tests.helpers.strategies import invalid_tiles, nearly_valid_tiles, tiles

WEAK = at("5_2", double_precision=False, typed_uav_loads=False)
TARGETS = [*map(Target, FeatureLevel), at("windows-10-22h2"), at("onnxruntime-directml-1.16.3"), WEAK]
GUARD = 0xA5
any_target = st.sampled_from(TARGETS)


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
    read, written = described(desc)
    values = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    source, output = (values.integers(0, 256, each.total_tensor_size_in_bytes, np.uint8) for each in (read, written))
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
