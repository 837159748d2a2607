"""The strategies: what they draw is what they promise, and all of it."""

from __future__ import annotations

from collections.abc import Callable
from operator import mul
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.dtypes import DTYPES
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.execution.executor import described, execute
from dml_tile.geometry.layout import packed_strides
from dml_tile.rules.check import DESCRIPTOR_RULES, check
from dml_tile.simulation.target import simulate
from dml_tile.testing.strategies import invalid_tiles, nearly_valid_tiles, tile_buffers, tiles
from tests.helpers.descriptors import GOOD, at, page_tile

WEAK = at("5_2", double_precision=False, typed_uav_loads=False)
TARGETS = [*map(Target, FeatureLevel), at("windows-10-22h2"), at("onnxruntime-directml-1.16.3"), WEAK]
any_target = st.sampled_from(TARGETS)


def smallest(
    strategy: st.SearchStrategy[TileOperatorDesc], condition: Callable[[TileOperatorDesc], bool] = lambda desc: True
) -> TileOperatorDesc:
    """Returns what hypothesis shrinks a draw to."""
    tried = settings(database=None, deadline=None, max_examples=1000)
    return find(strategy, condition, settings=tried, random=Random(1))


def occurs(strategy: st.SearchStrategy[TileOperatorDesc], condition: Callable[[TileOperatorDesc], bool]) -> bool:
    """Returns True if a draw meets a condition; raises NoSuchExample if none of many does."""
    once = settings(database=None, deadline=None, phases=[Phase.generate], max_examples=4000)
    return condition(find(strategy, condition, settings=once, random=Random(1)))


def elements(memory: NDArray[np.uint8], buffer: BufferTensorDesc) -> NDArray[Any]:
    """The tensor's elements as bits; NumPy refuses a view that would leave the buffer."""
    assert buffer.sizes is not None
    dtype: np.dtype[Any] = np.dtype(f"u{DTYPES[buffer.data_type].itemsize}")
    strides = [stride * dtype.itemsize for stride in buffer.strides or packed_strides(buffer.sizes)]
    return np.ndarray(buffer.sizes, dtype, memory.data, strides=strides)


@given(any_target, st.data())
@settings(max_examples=300)
def test_a_tile_passes_and_is_executed_as_numpy_s(target: Target, data: st.DataObject) -> None:
    desc = data.draw(tiles(target))
    assert not check(desc, target)
    source, output = data.draw(tile_buffers(desc))
    read, written = described(desc)
    expected = output.copy()
    elements(expected, written)[...] = np.tile(elements(source, read), desc.repeats or ())
    execute(desc, source, output, target)
    assert output.tobytes() == expected.tobytes()


@given(any_target, st.data())
@settings(max_examples=300)
def test_a_nearly_valid_tile_is_refused(target: Target, data: st.DataObject) -> None:
    assert check(data.draw(nearly_valid_tiles(target)), target)


@given(any_target, st.data())
@settings(max_examples=300)
def test_an_invalid_tile_is_refused(target: Target, data: st.DataObject) -> None:
    assert check(data.draw(invalid_tiles(target)), target)


@pytest.mark.long
@pytest.mark.parametrize("target", [at("1_0"), at("2_1"), at("3_1"), at("6_4"), WEAK], ids=lambda target: target.label)
def test_each_data_type_and_dimension_count_of_the_row_occurs(target: Target) -> None:
    drawn: set[tuple[str, int]] = set()

    @settings(max_examples=400, database=None)
    @given(tiles(target, max_elements=1))
    def collect(desc: TileOperatorDesc) -> None:
        buffer, _ = described(desc)
        drawn.update({("type", buffer.data_type), ("count", buffer.dimension_count)})

    collect()
    support = target.tile_support
    supported = support.data_types - ({TensorDataType.UINT8, TensorDataType.INT8} if target is WEAK else set())
    expected = {("type", data_type) for data_type in supported} | {("count", n) for n in support.dimension_counts}
    assert drawn == expected


@pytest.mark.parametrize(
    "condition",
    [
        lambda source, output: source.strides and 0 in source.strides,
        lambda source, output: source.strides and source.strides[0] < source.strides[-1],
        lambda source, output: source.flags == 1,
        lambda source, output: source.total_tensor_size_in_bytes % 4,
        lambda source, output: output.strides and output.strides != packed_strides(output.sizes),
        lambda source, output: not source.strides and not output.strides and np.prod(output.sizes) > 100,
        lambda source, output: output.guaranteed_base_offset_alignment == 2**31,
        lambda source, output: output.total_tensor_size_in_bytes > 4000,
    ],
    ids=["broadcast", "transposed", "owned", "odd total", "padded", "packed", "aligned", "large"],
)
def test_uncommon_tiles_occur(condition: Callable[..., bool]) -> None:
    assert occurs(tiles("6_4"), lambda desc: bool(condition(*described(desc))))


DESCRIPTOR_RULE_IDS = sorted(rule.id for rule in DESCRIPTOR_RULES if not rule.id.startswith("DML-OPERATOR-"))


@pytest.mark.parametrize("rule", DESCRIPTOR_RULE_IDS)
def test_nearly_valid_tiles_break_each_rule(rule: str) -> None:
    target = WEAK if rule == "DML-TILE-DataType-adapter" else at("1_0" if rule.endswith("-level") else "6_4")
    assert occurs(nearly_valid_tiles(target), lambda desc: rule in {finding.rule for finding in check(desc, target)})


def test_invalid_tiles_are_of_all_kinds() -> None:
    assert occurs(invalid_tiles(), lambda desc: desc.input_tensor is None and desc.repeats is None)
    assert occurs(invalid_tiles(), lambda desc: len(desc.repeats or ()) > 0 and desc.repeats_count == 2**32 - 1)
    assert occurs(invalid_tiles(), lambda desc: any(tensor and tensor.desc is None for tensor in tensors(desc)))
    assert occurs(invalid_tiles(), lambda desc: any(tensor and tensor.type == 2**31 for tensor in tensors(desc)))
    assert occurs(invalid_tiles(), lambda desc: all(type(buffer.data_type) is int for buffer in buffers(desc)))


def tensors(desc: TileOperatorDesc) -> list[Any]:
    return [desc.input_tensor, desc.output_tensor]


def buffers(desc: TileOperatorDesc) -> list[BufferTensorDesc]:
    return [tensor.desc for tensor in tensors(desc) if tensor and tensor.desc]


def test_tiles_shrink_to_the_smallest() -> None:
    assert smallest(tiles("6_4")) == TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[1], repeats=[1])
    repeating = smallest(tiles("6_4"), lambda desc: max(desc.repeats or ()) > 2)
    assert repeating == TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[1], repeats=[3])
    assert smallest(tiles("1_0")) == TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[1] * 4, repeats=[1] * 4)


def test_a_faulty_tile_shrinks_to_a_small_one_with_its_fault() -> None:
    overlapping = smallest(
        nearly_valid_tiles("6_4"),
        lambda desc: {finding.rule for finding in check(desc, "6_4")} == {"DML-BUFFER-Strides-overlap"},
    )
    _, output = described(overlapping)
    assert len(output.sizes or ()) <= 2
    assert np.prod(output.sizes or ()) <= 4


@pytest.mark.long
@pytest.mark.parametrize("strategy", [tiles, nearly_valid_tiles, invalid_tiles])
def test_no_target_is_the_simulated_one(strategy: Callable[..., st.SearchStrategy[TileOperatorDesc]]) -> None:
    with simulate("1_0"):
        drawn = smallest(strategy(), lambda desc: desc.repeats != (1, 1, 1, 1))
        assert drawn == smallest(strategy("1_0"), lambda desc: desc.repeats != (1, 1, 1, 1))


def test_the_output_has_at_most_max_elements() -> None:
    @given(st.integers(1, 40), st.data())
    @settings(max_examples=200, database=None)
    def draw(max_elements: int, data: st.DataObject) -> None:
        _, output = described(data.draw(tiles("6_4", max_elements=max_elements)))
        assert np.prod(output.sizes or ()) <= max_elements

    draw()
    with pytest.raises(ValueError, match="max_elements is 0; it must be at least 1"):
        tiles(max_elements=0)


@pytest.mark.parametrize("strategy", [tiles, nearly_valid_tiles, invalid_tiles])
def test_an_unknown_target_is_refused_at_once(strategy: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match="did you mean"):
        strategy("windows-7")


@given(tile_buffers(GOOD))
def test_buffers_have_the_tensors_sizes_and_are_writable(buffers: tuple[NDArray[np.uint8], NDArray[np.uint8]]) -> None:
    source, output = buffers
    assert (source.nbytes, output.nbytes) == (24, 216)
    assert source.flags.writeable
    assert output.flags.writeable
    assert not np.shares_memory(source, output)


@pytest.mark.parametrize(
    ("desc", "message"),
    [
        (page_tile(InputTensor=None), "InputTensor has no DML_BUFFER_TENSOR_DESC"),
        (page_tile(OutputTensor__Desc=None), "OutputTensor has no DML_BUFFER_TENSOR_DESC"),
        (page_tile(OutputTensor__TotalTensorSizeInBytes=2**40), "buffers of at most 67108864 are drawn"),
    ],
)
def test_buffers_without_a_reasonable_size_are_refused_at_once(desc: TileOperatorDesc, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tile_buffers(desc)


def test_products_are_the_sizes() -> None:
    desc = smallest(tiles("6_4"), lambda desc: min(desc.repeats or ()) > 1)
    source, output = described(desc)
    assert tuple(map(mul, source.sizes or (), desc.repeats or ())) == output.sizes
