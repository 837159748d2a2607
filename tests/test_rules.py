"""Every rule of descriptors, with what it refuses and what it accepts."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dml_tile.checks.catalogue import RULES
from dml_tile.descriptors.tile import BufferTensorDesc, OperatorDesc, TileOperatorDesc
from dml_tile.directml.data_types import ELEMENT_SIZES
from dml_tile.directml.enums import UINT_MAX, FeatureLevel, OperatorType
from dml_tile.directml.targets import Target
from dml_tile.dxdispatch.rules import DXDISPATCH_RULES, model_findings
from dml_tile.findings import Against, Finding, found_by
from dml_tile.formats.json_text import parse_document
from dml_tile.rules.check import DESCRIPTOR_RULES, check, lowest_level
from dml_tile.rules.tensor import BUFFER_RULES, TENSOR_RULES, Operand, view_of
from dml_tile.rules.tile import INPUT_OUTPUT_RULES, OPERATOR_RULES, REPEATS_RULES, TILE_BUFFER_RULES, TileView
from dml_tile.testing.strategies import invalid_tiles, nearly_valid_tiles, tiles
from tests.helpers.descriptors import changed, page_tile, row
from tests.helpers.rule_cases import CASES, DXDISPATCH_CASES, Case


def _tensor(sizes: list[int], **fields: Any) -> BufferTensorDesc:
    return BufferTensorDesc(data_type="FLOAT32", sizes=sizes, **({"total_tensor_size_in_bytes": 8} | fields))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.target.name}-{case.path}")
def test_a_rule_refuses_and_accepts(case: Case) -> None:
    refusals = [finding for finding in check(case.refused, case.target) if finding.rule == case.rule]
    assert case.path in [finding.path for finding in refusals]
    assert next(finding for finding in refusals if finding.path == case.path).basis == case.basis
    accepted = check(case.accepted, case.accepted_at or case.target)
    assert case.rule not in [finding.rule for finding in accepted]


@pytest.mark.parametrize(
    ("tensor", "rule", "suggestion"),
    [
        (_tensor([]), "DML-BUFFER-DimensionCount", "give a scalar the Sizes {1}"),
        (_tensor([1] * 9), "DML-BUFFER-DimensionCount", None),
        (_tensor([2], total_tensor_size_in_bytes=4), "DML-BUFFER-TotalTensorSizeInBytes-minimum", "set it to 8"),
        (
            _tensor([2, 1], strides=[UINT_MAX - 1, 1]),
            "DML-BUFFER-TotalTensorSizeInBytes-minimum",
            "set it to 17179869180",
        ),
        (_tensor([3, 1], strides=[UINT_MAX, 1]), "DML-BUFFER-TotalTensorSizeInBytes-minimum", None),
    ],
)
def test_only_what_would_be_accepted_is_suggested(tensor: BufferTensorDesc, rule: str, suggestion: str | None) -> None:
    repeats = [1] * len(tensor.sizes or ())
    desc = TileOperatorDesc(input_tensor=tensor, output_tensor=tensor, repeats=repeats)
    found = [finding for finding in check(desc) if finding.rule == rule and finding.path.startswith("InputTensor")]
    assert [finding.suggestion for finding in found] == [suggestion]


@pytest.mark.parametrize(("rule", "refused", "accepted"), DXDISPATCH_CASES)
def test_a_rule_of_models_tells_what_breaks_it(rule: str, refused: str, accepted: str) -> None:
    broken = model_findings(parse_document(refused.encode()))
    assert {finding.rule for found in broken.values() for finding in found} == {rule}
    assert not model_findings(parse_document(accepted.encode()))


def test_each_rule_has_its_cases() -> None:
    assert [rule for rule, _, _ in DXDISPATCH_CASES] == [rule.id for rule in DXDISPATCH_RULES]
    assert {case.rule for case in CASES} == {rule.id for rule in DESCRIPTOR_RULES}


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_says_what_it_rests_on(rule: Any) -> None:
    assert rule.says.endswith(".")
    assert rule.url.startswith("https://")
    assert rule.basis
    never_called = rule.id == "DML-OPERATOR-not-a-tile" or rule.id.startswith(
        ("DML-CAPTURE-", "DML-DIALECT-", "DML-DXDISPATCH-", "DML-LOWER-", "DML-VIA-")
    )
    assert (rule.hresult is None) == (rule.crash or never_called)


# What leaves rules out against all rules, and the rules at all levels against one another


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


DESCRIPTORS: Final = st.sampled_from([tiles(), nearly_valid_tiles(), nearly_valid_tiles(), invalid_tiles()]).flatmap(
    lambda tiles: tiles
)


NEAR: Final = (
    page_tile(Repeats=[1, 1, 3, 0], OutputTensor__Sizes=[1, 1, 6, 0]),
    page_tile(OutputTensor__Strides=[54, 54, 9, 1]),
    row("FLOAT32", [], []),
)


@pytest.mark.parametrize("level", ["1_0", "4_1", "5_2", "5_2+no-typed-uav-loads", "6_4"])
def test_no_rule_is_left_out_that_a_case_of_a_rule_breaks(level: str) -> None:
    target = Target.parse(level)
    descs = (*(desc for case in CASES for desc in (case.refused, case.accepted)), *NEAR)
    for desc in (desc for desc in descs if isinstance(desc, TileOperatorDesc)):
        assert check(desc, target) == findings_of_all_rules(desc, target)


@given(DESCRIPTORS, st.sampled_from(list(FeatureLevel)), st.booleans(), st.booleans())
def test_no_rule_is_left_out_that_a_tile_breaks(
    desc: TileOperatorDesc, level: FeatureLevel, double_precision: bool, typed_uav_loads: bool
) -> None:
    target = Target(level, "", double_precision, typed_uav_loads)
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


@given(DESCRIPTORS, st.sampled_from(list(FeatureLevel)))
def test_both_is_what_breaks_either(desc: TileOperatorDesc, level: FeatureLevel) -> None:
    separately: list[Against] = ["documentation", "runtime"]
    either = {finding for against in separately for finding in check(desc, level, against)}
    assert set(check(desc, level, "both")) == either


@given(DESCRIPTORS)
@example(TileOperatorDesc(input_tensor=None, output_tensor=None, repeats=None))
def test_the_lowest_level_is_the_first_that_accepts(desc: TileOperatorDesc) -> None:
    assert lowest_level(desc) == next((level for level in FeatureLevel if not check(desc, level)), None)
