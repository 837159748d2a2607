"""Random descriptors: the rules against the plain restatement of the measured table, and against each other."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from runtime_oracle import create_operator
from test_recorded_answers import answer

from dml_tile.descriptors import TileOperatorDesc
from dml_tile.enums import UINT64_MAX, UINT_MAX, FeatureLevel
from dml_tile.findings import Against
from dml_tile.layout import calc_buffer_tensor_size
from dml_tile.rules import _findings, _is_plainly_fine, check, lowest_level
from dml_tile.targets import Target

UINTS = st.one_of(st.integers(0, 9), st.sampled_from([2**16, 2**31, UINT_MAX - 1, UINT_MAX]), st.integers(0, UINT_MAX))
SIZES = st.one_of(st.integers(1, 5), st.integers(1, 5), UINTS)

Flat = dict[str, Any]


@st.composite
def tensors(draw: st.DrawFn, sizes: list[int], data_type: int, nearly: bool) -> Flat:
    """A tensor in the recorded form; ``nearly`` a valid one, else one with anything in it."""
    rank = len(sizes)
    strides = draw(st.none() | st.lists(st.one_of(st.integers(0, 40), UINTS), min_size=rank, max_size=rank))
    exact = calc_buffer_tensor_size(data_type, sizes, strides)
    total = draw(st.sampled_from([exact, exact, exact, max(exact - 1, 0), min(exact + 3, UINT64_MAX)]))
    tensor: Flat = {
        "DataType": data_type,
        "Flags": 0,
        "DimensionCount": rank,
        "Sizes": sizes,
        "Strides": strides,
        "TotalTensorSizeInBytes": total,
        "GuaranteedBaseOffsetAlignment": draw(st.sampled_from([0, 0, 0, 1, 4, 16, 256, 48, 2**31])),
    }
    if not nearly:
        tensor["DataType"] = draw(st.integers(0, 15))
        tensor["Flags"] = draw(st.sampled_from([0, 0, 1, 2, 3]))
        tensor["DimensionCount"] = draw(st.one_of(st.just(rank), st.integers(0, 9)))
        tensor["TotalTensorSizeInBytes"] = draw(st.integers(0, UINT64_MAX))
        tensor["Type"] = draw(st.sampled_from([1, 1, 1, 0, 2]))
        tensor["NullDesc"] = draw(st.sampled_from([False, False, False, True]))
        tensor["Sizes"] = draw(st.sampled_from([sizes, sizes, None]))
    return tensor


@st.composite
def descriptors(draw: st.DrawFn) -> Flat:
    """A tile in the recorded form: most are valid but for one or two fields, some are anything."""
    rank = draw(st.integers(1, 8))
    data_type = draw(st.integers(1, 11))
    sizes = draw(st.lists(SIZES, min_size=rank, max_size=rank))
    repeats = draw(st.lists(st.one_of(st.integers(1, 4), UINTS), min_size=rank, max_size=rank))
    products = [(size * repeat) % 2**32 for size, repeat in zip(sizes, repeats, strict=True)]
    nearly = draw(st.integers(0, 3)) > 0
    return {
        "InputTensor": draw(tensors(sizes, data_type, nearly)),
        "OutputTensor": draw(st.one_of(tensors(products, data_type, nearly), tensors(products, data_type, nearly))),
        "RepeatsCount": draw(st.sampled_from([rank, rank, rank, rank, 0, rank + 1])),
        "Repeats": draw(st.sampled_from([repeats, repeats, repeats, None])),
    }


def described(flat: Flat) -> TileOperatorDesc:
    return TileOperatorDesc.model_validate(flat)


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
