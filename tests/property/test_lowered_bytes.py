"""Random tiles of all types and layouts at all targets: lowered, they write the same bytes; or nothing could."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.execution.executor import described, execute
from dml_tile.geometry.axes import Axis, ByteWalk, dimensions_of
from dml_tile.geometry.chain import can_be_chained, shortest_chain
from dml_tile.lowering.choice import carriers
from dml_tile.lowering.lower import lower, run_lowering
from dml_tile.rules.check import check
from dml_tile.testing.drafts import drafts
from tests.helpers.lowering_oracle import fewest_steps
from tests.helpers.strided_tiles import GUARD, moves_whole_elements

TARGETS: Final = [
    *(Target.parse(level) for level in ("1_0", "2_1", "3_1", "4_0", "4_1", "6_4")),
    Target.parse("2_1", typed_uav_loads=False),
    Target.parse("5_2", typed_uav_loads=False, double_precision=False),
    Target.parse("6_4", typed_uav_loads=False, native_16_bit_ops=False),
]
INT64, FLOAT64 = 11, 9
GAPS_ARE_COPIED: Final = "gaps between the input's elements are copied to scratch memory too"


@st.composite
def tiles(draw: st.DrawFn) -> TileOperatorDesc:
    """Tiles that run at 6_4 by the runtime: FLOAT64 too, packed or not."""
    draft = draw(drafts(Target.parse("6_4"), 1024))
    tensors = draft["InputTensor"], draft["OutputTensor"]
    if draft["InputTensor"]["DataType"] == INT64 and draw(st.booleans()):
        for tensor in tensors:
            tensor["DataType"] = FLOAT64
    if draw(st.booleans()):
        for tensor in tensors:
            del tensor["Strides"], tensor["TotalTensorSizeInBytes"]
    return TileOperatorDesc.model_validate(draft)


@pytest.mark.long
@given(tiles(), st.sampled_from(TARGETS), st.sampled_from([True, True, True, False]))
def test_a_lowering_writes_the_same_bytes_or_there_is_none(
    desc: TileOperatorDesc, target: Target, allow_floats: bool
) -> None:
    source, destination = described(desc)
    try:
        lowering = lower(desc, target, allow_float_reinterpretation=allow_floats)
    except DmlError as error:
        assert check(desc, target)
        own = TensorDataType(source.data_type)
        types = carriers(ELEMENT_SIZES[own], own, target, allow_floats=allow_floats)
        (rule,) = {finding.rule for finding in error.findings}
        if rule == "DML-LOWER-DataType":
            assert not allow_floats
            assert not types
        else:
            assert rule == "DML-LOWER-elements"
            assert not moves_whole_elements(desc, min(ELEMENT_SIZES[data_type] for data_type in types))
        return
    for step in lowering.steps:
        assert not check(step.desc, target)
    if GAPS_ARE_COPIED not in lowering.notes:
        assert max(lowering.scratch_sizes, default=0) <= destination.total_tensor_size_in_bytes
    assert lowering.is_original == (not check(desc, target))

    values = np.random.default_rng(7).integers(0, 256, source.total_tensor_size_in_bytes, np.uint8)
    given_values = values.copy()
    expected = np.full(destination.total_tensor_size_in_bytes + 32, GUARD, np.uint8)
    execute(desc, values, expected[16:], "6_4", "runtime")
    memory = np.full_like(expected, GUARD)
    run_lowering(lowering, values, memory[16:])
    assert memory.tobytes() == expected.tobytes()
    assert values.tobytes() == given_values.tobytes()


@st.composite
def small_axes(draw: st.DrawFn) -> tuple[Axis, ...]:
    """Draw the axes of a small tile, with gaps in the input and the output."""
    rank = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(1, 2), min_size=rank, max_size=rank))
    repeats = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    assume(np.prod(sizes) * np.prod(repeats) <= 144)
    gaps = draw(st.lists(st.sampled_from([0, 0, 0, 1]), min_size=2 * rank, max_size=2 * rank))
    source_strides, destination_strides = [0] * rank, [0] * rank
    source = destination = 1
    for i in reversed(range(rank)):
        source_strides[i], destination_strides[i] = source, destination
        source = source * sizes[i] + gaps[2 * i]
        destination = destination * sizes[i] * repeats[i] + gaps[2 * i + 1]
    if draw(st.booleans()):
        source_strides = draw(st.permutations(source_strides))
    return ByteWalk.from_elements(1, sizes, repeats, source_strides, destination_strides).axes


@pytest.mark.long
@given(small_axes(), st.integers(2, 3))
def test_no_chain_is_shorter_nor_has_less_scratch_memory(axes: tuple[Axis, ...], most: int) -> None:
    expected = fewest_steps(axes, most)
    assert can_be_chained(axes, most) == (expected is not None)
    if expected:
        chain = shortest_chain(axes, most)
        dimensions = [dimensions_of(step) for step in chain]
        assert all(len(step) <= most for step in dimensions)
        scratch = [np.prod([each.size * each.repeat for each in step]) for step in dimensions[:-1]]
        assert (len(chain), sum(scratch)) == expected
