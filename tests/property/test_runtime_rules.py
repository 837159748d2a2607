"""Random descriptors: what leaves rules out against all rules, and the rules at all levels against one another."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dml_tile.descriptors.tile import OperatorDesc, TileOperatorDesc
from dml_tile.directml.data_types import ELEMENT_SIZES
from dml_tile.directml.enums import UINT64_MAX, UINT_MAX, FeatureLevel, OperatorType
from dml_tile.directml.targets import Target
from dml_tile.findings import Against, Finding, found_by
from dml_tile.geometry.layout import calc_buffer_tensor_size, packed_strides
from dml_tile.rules.check import check, lowest_level
from dml_tile.rules.tensor import BUFFER_RULES, TENSOR_RULES, Operand, view_of
from dml_tile.rules.tile import INPUT_OUTPUT_RULES, OPERATOR_RULES, REPEATS_RULES, TILE_BUFFER_RULES, TileView
from tests.helpers.descriptors import changed, page_tile

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
            types = [{"Type": 0}, {"Type": 2}, {"Type": 2**31}]
            tensor |= draw(st.sampled_from([*types, {"NullDesc": True}, {"NullDesc": False}]))
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


def findings_of_all_rules(desc: TileOperatorDesc, target: Target) -> tuple[Finding, ...]:
    """Return the findings of a tile by applying every rule, in the order of the fields."""
    operands = Operand("InputTensor", desc.input_tensor), Operand("OutputTensor", desc.output_tensor)
    views = [view_of(operand) for operand in operands]
    tile = TileView(desc, *views)
    found: list[Finding] = []
    for operand, view in zip(operands, views, strict=True):
        found += found_by(TENSOR_RULES, operand, target)
        found += found_by(BUFFER_RULES + TILE_BUFFER_RULES, view, target) if view is not None else ()
    found += found_by(INPUT_OUTPUT_RULES + REPEATS_RULES, tile, target)
    return (*found, *found_by(OPERATOR_RULES, OperatorDesc(type=OperatorType.TILE, desc=desc), target))


@given(descriptors(), st.sampled_from(list(FeatureLevel)), st.booleans(), st.booleans())
def test_no_rule_is_left_out_that_a_tile_breaks(
    flat: Flat, level: FeatureLevel, double_precision: bool, typed_uav_loads: bool
) -> None:
    desc, target = described(flat), Target(level, "", double_precision, typed_uav_loads)
    expected = findings_of_all_rules(desc, target)
    assert check(desc, target) == expected
    assert check(OperatorDesc(type=OperatorType.TILE, desc=desc), target) == expected


@given(st.integers(1, 11), st.sampled_from(list(FeatureLevel)), st.booleans(), st.integers(-2, 2), st.booleans())
def test_no_rule_is_left_out_at_the_bounds_of_the_totals(
    data_type: int, level: FeatureLevel, typed_uav_loads: bool, off: int, at_the_minimum: bool
) -> None:
    tile = TileOperatorDesc.from_input(data_type=data_type, sizes=[1, 1, 2, 2], repeats=[1, 1, 1, 1])
    element_size = ELEMENT_SIZES[data_type]
    total = off + (4 * element_size if at_the_minimum else UINT_MAX * element_size)
    desc = changed(tile, InputTensor__TotalTensorSizeInBytes=total)
    target = Target(level, typed_uav_loads=typed_uav_loads)
    assert check(desc, target) == findings_of_all_rules(desc, target)


@pytest.mark.parametrize(
    "fields",
    [
        {
            "InputTensor__Sizes": [],
            "InputTensor__DimensionCount": 0,
            "OutputTensor__Sizes": [],
            "OutputTensor__DimensionCount": 0,
            "RepeatsCount": 0,
            "Repeats": [],
        },
        {"OutputTensor__Flags": 1},
        {"InputTensor__Flags": 1},
        {"InputTensor__Flags": 2},
        {"InputTensor__Type": 0},
        {"Repeats": [1, 1, 3, 0], "OutputTensor__Sizes": [1, 1, 6, 0]},
        {"Repeats": [1, 1, 3, 3, 1]},
        {"OutputTensor__Sizes": [1, 1, 6, 9, 1]},
        {"OutputTensor__Strides": [54, 54, 9, 1]},
    ],
    ids=lambda fields: ", ".join(fields),
)
def test_no_rule_is_left_out_that_a_tile_near_the_common_kind_breaks(fields: dict[str, object]) -> None:
    desc = page_tile(**fields)
    assert check(desc, "5_2") == findings_of_all_rules(desc, Target.parse("5_2"))


@given(descriptors(), st.sampled_from(list(FeatureLevel)))
def test_both_is_what_breaks_either(flat: Flat, level: FeatureLevel) -> None:
    desc = described(flat)
    separately: list[Against] = ["documentation", "runtime"]
    either = {finding for against in separately for finding in check(desc, level, against)}
    assert set(check(desc, level, "both")) == either


@given(descriptors())
@example({"InputTensor": None, "OutputTensor": None, "Repeats": None})
def test_the_lowest_level_is_the_first_that_accepts(flat: Flat) -> None:
    desc = described(flat)
    assert lowest_level(desc) == next((level for level in FeatureLevel if not check(desc, level)), None)
