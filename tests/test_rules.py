"""Checking descriptors: every rule, with what it refuses and what it accepts, findings, and the lowest level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dml_tile.checking import check, require
from dml_tile.checks.catalogue import RULES
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import HRESULT, UINT_MAX, FeatureLevel, OperatorType
from dml_tile.directml.targets import Target
from dml_tile.dxdispatch.rules import DXDISPATCH_RULES, model_findings, model_parts
from dml_tile.errors import DmlError
from dml_tile.execution.executor import execute
from dml_tile.findings import Against, Finding, Severity, apply_rules
from dml_tile.json_text import parse_document
from dml_tile.rules.descriptor import DESCRIPTOR_RULES, lowest_level, not_a_tile
from dml_tile.rules.operator import OPERATOR_LEVEL_RULES
from dml_tile.rules.operator_fields import OPERATOR_FIELD_RULES
from dml_tile.rules.tensor import BUFFER_RULES, TENSOR_RULES, Operand, view_of
from dml_tile.rules.tile import INPUT_OUTPUT_RULES, OPERATOR_RULES, REPEATS_RULES, TILE_BUFFER_RULES, TileView
from tests.helpers.costs import at_most
from tests.helpers.descriptors import GOOD, OPERATOR, at, changed, page_tile, row
from tests.helpers.rule_cases import CASES, DXDISPATCH_CASES, Case
from tests.helpers.strategies import invalid_tiles, nearly_valid_tiles, tiles


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.target.name}-{case.path}")
def test_a_rule_refuses_and_accepts(case: Case) -> None:
    refusals = [finding for finding in check(case.refused, case.target) if finding.rule == case.rule]
    assert case.path in [finding.path for finding in refusals]
    assert next(finding for finding in refusals if finding.path == case.path).basis == case.basis
    accepted = check(case.accepted, case.accepted_at or case.target)
    assert case.rule not in [finding.rule for finding in accepted]


COUNT, MINIMUM = "DML-TILE-RepeatsCount", "DML-BUFFER-TotalTensorSizeInBytes-minimum"
DOUBLES: Final = row("FLOAT64", [1] * 4, [1] * 4)
AS_UINT64: Final = "tile the same bits as UINT64"
BY_THE_RUNTIME: Final = f'{AS_UINT64}, or go by the runtime alone (against="runtime", --against runtime)'
TWO: Final = {"RepeatsCount": 2, "Repeats": [3, 3]}

ONES: Final = "give it leading sizes of 1: {1, 1, 2, 3}, and set Repeats to {1, 1, 1, 2}"
LEADING_ONES: Final = f"{ONES}, or ship DirectML 1.5.0 or later with the application"

SUGGESTED: Final = [
    # a descriptor, a rule that it breaks, and what is suggested at a level, which must be accepted
    (row("FLOAT32", [], []), "DML-BUFFER-DimensionCount", "6_4", "give a scalar the Sizes {1}, and set Repeats to {1}"),
    (row("INT32", [2, 3], [1, 2]), "DML-TILE-DimensionCount-level", "2_1", LEADING_ONES),
    (row("FLOAT32", [1] * 9, [1] * 9), "DML-BUFFER-DimensionCount", "6_4", None),
    (row("FLOAT32", [2], [1], InputTensor__TotalTensorSizeInBytes=4), MINIMUM, "6_4", "set it to 8"),
    (row("FLOAT32", [2, 1], [1, 1], InputTensor__Strides=[UINT_MAX - 1, 1]), MINIMUM, "6_4", "set it to 17179869180"),
    (row("FLOAT32", [3, 1], [1, 1], InputTensor__Strides=[UINT_MAX, 1]), MINIMUM, "6_4", None),
    (page_tile(RepeatsCount=3), COUNT, "6_4", "set it to 4"),
    (page_tile(**TWO), COUNT, "6_4", "set it to 4 and Repeats to {1, 1, 3, 3}, which OutputTensor.Sizes implies"),
    (page_tile(**TWO, OutputTensor__Sizes=[1, 1, 6, 10]), COUNT, "6_4", None),
    (page_tile(**TWO, OutputTensor__Sizes=[1, 1, 0, 9]), COUNT, "6_4", None),
    (DOUBLES, "DML-TILE-DataType", "6_4", BY_THE_RUNTIME),
    (DOUBLES, "DML-TILE-DataType", "4_1", AS_UINT64),
    (DOUBLES, "DML-TILE-DataType", "4_0", None),
]


@pytest.mark.parametrize(("desc", "rule", "level", "suggestion"), SUGGESTED)
def test_what_is_suggested_is_accepted(desc: TileOperatorDesc, rule: str, level: str, suggestion: str | None) -> None:
    found = check(desc, level)
    assert next(finding for finding in found if finding.rule == rule).suggestion == suggestion
    # where leading repeats may be missing, no size is suggested
    assert {finding.suggestion for finding in found if finding.rule == "DML-TILE-OutputTensor-Sizes"} <= {None}


@pytest.mark.parametrize("case", DXDISPATCH_CASES, ids=lambda case: case[0])
def test_a_rule_of_models_tells_what_breaks_it(case: tuple[str, ...]) -> None:
    rule, refused, accepted, *level = case
    broken = model_findings(dict(model_parts(parse_document(refused.encode()))), *map(Target.parse, level))
    found = {finding.rule for found in broken.values() for finding in found}
    assert found - {"DML-DXDISPATCH-IDMLDevice1"} <= {rule} <= found
    assert not model_findings(dict(model_parts(parse_document(accepted.encode()))))


def test_each_rule_has_its_cases() -> None:
    assert [case[0] for case in DXDISPATCH_CASES] == [rule.id for rule in DXDISPATCH_RULES]
    assert {case.rule for case in CASES} == {
        rule.id for rule in (*DESCRIPTOR_RULES, *OPERATOR_LEVEL_RULES, *OPERATOR_FIELD_RULES)
    }


def test_each_rule_says_what_it_rests_on() -> None:
    never_called = ("DML-CAPTURE-", "DML-DIALECT-", "DML-DXDISPATCH-", "DML-EXECUTE-", "DML-LOWER-", "DML-VIA-")
    for rule in RULES.values():
        assert rule.says.endswith("."), rule.id
        assert rule.url.startswith("https://"), rule.id
        assert rule.basis, rule.id
        has_none = rule.crash or rule.severity is Severity.NOTE or rule.id == "DML-OPERATOR-not-a-tile"
        assert (rule.hresult is None) == (has_none or rule.id.startswith(never_called)), rule.id


@pytest.mark.parametrize(
    ("desc", "crashes", "hresult"),
    [
        (page_tile(Repeats=None), [True], None),
        (page_tile(Repeats=None, RepeatsCount=3), [False, True], HRESULT.E_INVALIDARG),
        (changed(row("FLOAT64", [2], [2]), Repeats=None), [False, False, True], None),
        (row("FLOAT64", [2], [2]), [False, False], None),
    ],
    ids=["alone", "refused before it is read", "beside what only the documentation refuses", "a warning alone"],
)
def test_a_crash_has_no_hresult_unless_something_is_refused_before(
    desc: TileOperatorDesc, crashes: list[bool], hresult: HRESULT | None
) -> None:
    with pytest.raises(DmlError) as caught:
        require(desc, "6_2")
    assert [finding.crash for finding in caught.value.findings] == crashes
    assert caught.value.hresult == hresult
    assert all(finding.hresult is None for finding in caught.value.findings if finding.crash)
    kept = [finding.severity for finding in caught.value.findings if not finding.crash]
    assert set(kept) <= {Severity.WARNING if hresult is None else Severity.ERROR}


def test_require_raises_the_findings_and_nothing_for_a_good_descriptor() -> None:
    require(GOOD, "1_0")
    require(OPERATOR, "1_0")
    with pytest.raises(DmlError, match=r"E_INVALIDARG 0x80070057\n  \[DML-TILE-RepeatsCount\] RepeatsCount: 3 was"):
        require(page_tile(RepeatsCount=3))


def test_messages_say_what_the_runtime_makes_of_32_bits() -> None:
    wide = row("FLOAT32", [2, 1], [1, 1], InputTensor__Strides=[2**32 - 1, 0], InputTensor__TotalTensorSizeInBytes=4)
    messages = {finding.rule: finding.message for finding in check(wide, "5_2")}
    assert messages["DML-BUFFER-Strides-extent"] == "the extent is 4294967296 elements, which is 0 modulo 2^32"
    assert messages["DML-BUFFER-TotalTensorSizeInBytes-minimum"].endswith(
        "at least 17179869184 was expected (DirectML computes in 32 bits here, and expects 0)"
    )
    doubles = row("FLOAT64", [4], [1])
    assert "(DirectML takes it)" in check(doubles)[0].message
    assert "(DirectML takes it)" not in check(doubles, at("6_4", double_precision=False))[0].message


@pytest.mark.parametrize("number", [300, 0xC0000000])
def test_a_type_without_an_operator_is_named_with_what_was_expected(number: int) -> None:
    (finding,) = check(OperatorDesc(type=number, desc=GOOD))
    expected = "an enumerator of DML_OPERATOR_TYPE was expected"
    assert finding.message == f"{number} is no operator of DirectML.h; {expected}"


def test_an_operator_of_another_kind_is_not_judged() -> None:
    assert not_a_tile("DML_OPERATOR_GEMM").hresult is None
    assert not_a_tile("DML_OPERATOR_GEMM").message == "DML_OPERATOR_GEMM is not Tile; only Tile can be lowered"


def test_wrong_arguments_are_errors_that_say_what_was_expected() -> None:
    with pytest.raises(TypeError, match="an OperatorDesc or a GraphDesc was expected, not a dict"):
        check({})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a Mapping was expected, not a bytes"):
        execute(OPERATOR, b"", "6_4")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="'documentation', 'runtime', 'both'"):
        check(GOOD, against="docs")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"did you mean windows-11-21h2"):
        check(GOOD, "windows-11-21h1")


@pytest.mark.parametrize("level", list(FeatureLevel), ids=lambda level: level.short)
def test_the_documented_row_decides_on_plain_tiles(level: FeatureLevel) -> None:
    floats, integers, longs = {1, 2}, {3, 4, 5, 6, 7, 8}, {10, 11}
    listed = floats | (integers if level >= 0x2100 else set()) | (longs if level >= 0x4100 else set())
    ranks = [4] if level < 0x3100 else list(range(1, 9))
    for data_type, rank in product(list(TensorDataType)[1:], range(1, 9)):
        desc = TileOperatorDesc.from_input(data_type=data_type, sizes=[2] * rank, repeats=[3] * rank)
        assert (not check(desc, level, "documentation")) == (data_type in listed and rank in ranks), desc


def test_a_tensor_of_very_many_dimensions_is_refused_without_a_product() -> None:
    flat = {"DataType": "FLOAT32", "Sizes": [7] * 400_000, "TotalTensorSizeInBytes": 4}
    tile = TileOperatorDesc.model_validate({"InputTensor": flat, "OutputTensor": flat, "Repeats": [1] * 400_000})
    with at_most(50_000):
        found = check(tile)
    assert {finding.rule for finding in found} == {"DML-BUFFER-DimensionCount"}


# What leaves rules out against all rules, and the rules at all levels against one another


def said(findings: Iterable[Finding]) -> list[Finding]:
    """Findings without their ways out: one that changes fields is offered only where all findings' edits suffice."""
    return [replace(finding, tries=()) for finding in findings]


def findings_of_all_rules(desc: TileOperatorDesc, target: Target) -> tuple[Finding, ...]:
    """Return the findings of a tile by applying every rule, in the order of the fields."""
    operands = Operand("InputTensor", desc.input_tensor), Operand("OutputTensor", desc.output_tensor, is_output=True)
    views = [view_of(operand) for operand in operands]
    tile = TileView(desc, *views)
    found: list[Finding] = []
    for operand, view in zip(operands, views, strict=True):
        found += apply_rules(TENSOR_RULES, operand, target)
        found += apply_rules(BUFFER_RULES + TILE_BUFFER_RULES, view, target) if view is not None else ()
    found += apply_rules(INPUT_OUTPUT_RULES + REPEATS_RULES, tile, target)
    return (*found, *apply_rules(OPERATOR_RULES, OperatorDesc(type=OperatorType.TILE, desc=desc), target))


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
        assert said(check(desc, target)) == said(findings_of_all_rules(desc, target))


@given(DESCRIPTORS, st.sampled_from(list(FeatureLevel)), st.booleans(), st.booleans())
def test_no_rule_is_left_out_that_a_tile_breaks(
    desc: TileOperatorDesc, level: FeatureLevel, double_precision: bool, typed_uav_loads: bool
) -> None:
    target = Target(level, "", double_precision, typed_uav_loads)
    expected = said(findings_of_all_rules(desc, target))
    assert said(check(desc, target)) == expected
    assert said(check(OperatorDesc(type=OperatorType.TILE, desc=desc), target)) == expected


@given(st.integers(1, 11), st.sampled_from(list(FeatureLevel)), st.booleans(), st.integers(-2, 2), st.booleans())
def test_no_rule_is_left_out_at_the_bounds_of_the_totals(
    data_type: int, level: FeatureLevel, typed_uav_loads: bool, off: int, at_the_minimum: bool
) -> None:
    tile = TileOperatorDesc.from_input(data_type=data_type, sizes=[1, 1, 2, 2], repeats=[1, 1, 1, 1])
    element_size = ELEMENT_SIZES[data_type]
    total = off + (4 * element_size if at_the_minimum else UINT_MAX * element_size)
    desc = changed(tile, InputTensor__TotalTensorSizeInBytes=total)
    target = Target(level, typed_uav_loads=typed_uav_loads)
    assert said(check(desc, target)) == said(findings_of_all_rules(desc, target))


@given(DESCRIPTORS, st.sampled_from(list(FeatureLevel)))
def test_both_is_what_breaks_either(desc: TileOperatorDesc, level: FeatureLevel) -> None:
    separately: list[Against] = ["documentation", "runtime"]
    either = {finding for against in separately for finding in said(check(desc, level, against))}
    assert {*said(check(desc, level, "both"))} == either


@given(DESCRIPTORS)
@example(TileOperatorDesc(input_tensor=None, output_tensor=None, repeats=None))
@example(TileOperatorDesc.from_input(data_type="INT64", sizes=[1, 1, 2, 3], repeats=[1, 1, 3, 3]))
@example(TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[1, 2, 3], repeats=[3, 1, 3]))
@example(TileOperatorDesc.from_input(data_type="UINT8", sizes=[1] * 8, repeats=[2] * 8))
@example(TileOperatorDesc.from_input(data_type="FLOAT64", sizes=[1, 2, 3, 1], repeats=[2, 1, 1, 1]))
def test_the_lowest_level_is_the_first_that_accepts(desc: TileOperatorDesc) -> None:
    accepting = (level for level in FeatureLevel if not findings_of_all_rules(desc, Target(level)))
    assert lowest_level(desc) == next(accepting, None)
