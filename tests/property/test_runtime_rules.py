"""Random descriptors: the rules against the plain restatement of the measured table, and against each other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dml_tile.descriptors import TileOperatorDesc
from dml_tile.enums import UINT64_MAX, UINT_MAX, FeatureLevel
from dml_tile.findings import Against
from dml_tile.geometry.layout import ELEMENT_SIZES, calc_buffer_tensor_size, packed_strides
from dml_tile.rules.check import _findings, _is_ordinary, _is_plainly_fine, check, lowest_level
from dml_tile.rules.tensor import BUFFER_RULES, TENSOR_RULES, Operand, view_of
from dml_tile.targets import Target
from tests.helpers.descriptors import changed
from tests.helpers.recorded_answers import answer
from tests.helpers.runtime_oracle import create_operator

UINTS = st.one_of(st.integers(0, 9), st.sampled_from([2**16, 2**31, UINT_MAX - 1, UINT_MAX]), st.integers(0, UINT_MAX))
STRIDES = st.one_of(st.integers(0, 12), st.integers(0, 12), UINTS)

Flat = dict[str, Any]


@st.composite
def valid_tiles(draw: st.DrawFn) -> Flat:
    """A tile in the recorded form, without a fault at the highest level."""
    rank = draw(st.integers(1, 8))
    sizes = draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    repeats = draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    data_type = draw(st.integers(1, 11))

    def tensor(sizes: list[int]) -> Flat:
        return {
            "DataType": data_type,
            "Flags": 0,
            "DimensionCount": rank,
            "Sizes": sizes,
            "Strides": draw(st.sampled_from([None, list(packed_strides(sizes))])),
            "TotalTensorSizeInBytes": 0,
            "GuaranteedBaseOffsetAlignment": draw(st.sampled_from([0, 0, 16, 256, 2**31])),
        }

    products = [size * repeat for size, repeat in zip(sizes, repeats, strict=True)]
    return {"InputTensor": tensor(sizes), "OutputTensor": tensor(products), "RepeatsCount": rank, "Repeats": repeats}


@st.composite
def descriptors(draw: st.DrawFn) -> Flat:
    """A tile in the recorded form with up to two faults; its totals are as Microsoft's helper gives them, or near."""
    tile = draw(valid_tiles())
    tensors = [tile["InputTensor"], tile["OutputTensor"]]
    for _ in range(draw(st.integers(0, 2))):
        _spoil(draw, tile, draw(st.sampled_from(tensors)))
    for tensor in tensors:
        sizes = (tensor["Sizes"] or [])[: tensor["DimensionCount"]]
        total = calc_buffer_tensor_size(tensor["DataType"], sizes, tensor["Strides"])
        off = draw(st.sampled_from([0] * 12 + [-1, 3, 2**34, 2**40]))
        tensor["TotalTensorSizeInBytes"] = min(max(total + off, 0), UINT64_MAX)
    return tile


def _spoil(draw: st.DrawFn, tile: Flat, tensor: Flat) -> None:
    rank = len(tile["Repeats"] or "")
    match draw(st.integers(0, 14)):
        case 0:
            tensor["DataType"] = draw(st.integers(0, 15))
        case 1:
            tensor["Flags"] = draw(st.sampled_from([1, 1, 2, 3]))
        case 2:
            tensor["DimensionCount"] = draw(st.integers(0, 9))
        case 3 | 4 if tensor["Sizes"]:
            tensor["Sizes"][draw(st.integers(0, len(tensor["Sizes"]) - 1))] = draw(UINTS)
        case 5:
            tensor["Sizes"] = None
        case 6 | 7 | 8:
            # an empty list is read as a null pointer, as DxDispatch does
            tensor["Strides"] = draw(st.lists(STRIDES, min_size=rank, max_size=rank)) or None
        case 9:
            tensor["GuaranteedBaseOffsetAlignment"] = draw(st.sampled_from([1, 4, 8, 15, 48, 2**31]))
        case 10:
            tensor |= draw(st.sampled_from([{"Type": 0}, {"Type": 2}, {"NullDesc": True}, {"NullDesc": False}]))
        case 11:
            tile["RepeatsCount"] = draw(UINTS)
        case 12 if tile["Repeats"]:
            i = draw(st.integers(0, rank - 1))
            repeat = tile["Repeats"][i] = draw(UINTS)
            source, destination = tile["InputTensor"], tile["OutputTensor"]
            if source and destination and source["Sizes"] and destination["Sizes"]:
                destination["Sizes"][i] = source["Sizes"][i] * repeat % 2**32
        case 13:
            tile["Repeats"] = None
        case 14:
            tile[draw(st.sampled_from(["InputTensor", "OutputTensor"]))] = None


def described(flat: Flat) -> TileOperatorDesc:
    return TileOperatorDesc.model_validate(flat)


@pytest.mark.long
@given(
    descriptors(),
    st.sampled_from(list(FeatureLevel)),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=1500)
def test_the_runtime_answers_as_the_plain_restatement_says(
    flat: Flat, level: FeatureLevel, double_precision: bool, typed_uav_loads: bool
) -> None:
    target = Target(level, double_precision=double_precision, typed_uav_loads=typed_uav_loads)
    expected = create_operator(flat, level.short, double_precision=double_precision, typed_uav_loads=typed_uav_loads)
    assert answer(check(described(flat), target, against="runtime")) == expected


@given(descriptors(), st.sampled_from(list(FeatureLevel)), st.booleans())
@settings(max_examples=500)
def test_what_is_plainly_fine_breaks_no_rule(flat: Flat, level: FeatureLevel, typed_uav_loads: bool) -> None:
    desc, target = described(flat), Target(level, typed_uav_loads=typed_uav_loads)
    if _is_plainly_fine(desc, target):
        assert not list(_findings(desc, desc, target))


@given(descriptors(), st.sampled_from(list(FeatureLevel)), st.booleans())
@settings(max_examples=500)
def test_an_ordinary_tensor_breaks_no_rule_of_tensors(flat: Flat, level: FeatureLevel, typed_uav_loads: bool) -> None:
    desc, target = described(flat), Target(level, typed_uav_loads=typed_uav_loads, double_precision=typed_uav_loads)
    assert desc is not None
    for operand in (Operand("InputTensor", desc.input_tensor), Operand("OutputTensor", desc.output_tensor)):
        if _is_ordinary(operand):
            view = view_of(operand)
            assert view is not None
            assert not [finding for rule in TENSOR_RULES for finding in rule.findings(operand, target)]
            assert not [finding for rule in BUFFER_RULES for finding in rule.findings(view, target)]


def test_a_tensor_without_dimensions_is_not_ordinary() -> None:
    scalar = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[], repeats=[])
    assert not _is_ordinary(Operand("InputTensor", scalar.input_tensor))


def test_an_owned_output_is_not_ordinary() -> None:
    tile = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[2], repeats=[2])
    owned = changed(tile, InputTensor__Flags=1, OutputTensor__Flags=1)
    assert _is_ordinary(Operand("InputTensor", owned.input_tensor))
    assert not _is_ordinary(Operand("OutputTensor", owned.output_tensor))
    assert _is_ordinary(Operand("OutputTensor", tile.output_tensor))


@st.composite
def plain_tiles(draw: st.DrawFn) -> TileOperatorDesc:
    rank = draw(st.integers(1, 8))
    sizes = draw(st.lists(st.integers(1, 9), min_size=rank, max_size=rank))
    repeats = draw(st.lists(st.integers(1, 9), min_size=rank, max_size=rank))
    return TileOperatorDesc.from_input(data_type=draw(st.integers(1, 11)), sizes=sizes, repeats=repeats)


@given(plain_tiles(), st.sampled_from(list(FeatureLevel)))
def test_a_plain_tile_takes_the_short_way_exactly_if_it_breaks_no_rule(
    desc: TileOperatorDesc, level: FeatureLevel
) -> None:
    target = Target(level)
    assert _is_plainly_fine(desc, target) == (not list(_findings(desc, desc, target)))


@given(st.integers(1, 11), st.sampled_from(list(FeatureLevel)), st.booleans(), st.integers(-2, 2), st.booleans())
def test_the_short_way_ends_where_the_totals_do(
    data_type: int, level: FeatureLevel, typed_uav_loads: bool, off: int, at_the_minimum: bool
) -> None:
    tile = TileOperatorDesc.from_input(data_type=data_type, sizes=[1, 1, 2, 2], repeats=[1, 1, 1, 1])
    element_size = ELEMENT_SIZES[data_type]
    total = off + (4 * element_size if at_the_minimum else UINT_MAX * element_size)
    desc, target = (
        changed(tile, InputTensor__TotalTensorSizeInBytes=total),
        Target(level, typed_uav_loads=typed_uav_loads),
    )
    if _is_plainly_fine(desc, target):
        assert not list(_findings(desc, desc, target))


@given(descriptors(), st.sampled_from(list(FeatureLevel)))
@settings(max_examples=300)
def test_both_is_what_breaks_either(flat: Flat, level: FeatureLevel) -> None:
    desc = described(flat)
    separately: list[Against] = ["documentation", "runtime"]
    either = {finding for against in separately for finding in check(desc, level, against)}
    assert set(check(desc, level, "both")) == either


@given(descriptors())
@settings(max_examples=200)
@example({"InputTensor": None, "OutputTensor": None, "Repeats": None})
def test_the_lowest_level_is_the_first_that_accepts(flat: Flat) -> None:
    desc = described(flat)
    assert lowest_level(desc) == next((level for level in FeatureLevel if not check(desc, level)), None)
