"""The emulator against every recorded answer of Microsoft's runtime: to descriptors, and in whole lives of devices."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from operator import itemgetter
from random import Random
from typing import Any, Final

import pytest

from dml_tile import Device
from dml_tile.checking import check
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.operators import operators
from dml_tile.directml.targets import Target, tile_support
from dml_tile.findings import Basis, Severity
from dml_tile.rules.descriptor import lowest_level, not_looked_at
from dml_tile.rules.operator import OPERATOR_LEVEL_RULES
from dml_tile.rules.operator_fields import OPERATOR_FIELD_RULES
from dml_tile.rules.tile_findings import blocks_creation
from tests.helpers.descriptors import GOOD
from tests.helpers.operator_figures import compared, figures, shortfalls, tally
from tests.helpers.played_lives import KNOWN_DEPARTURES, emulated
from tests.helpers.recorded_answers import OVER_READS, ROWS, S_OK, answer, recorded_answer, rows_of, text_of
from tests.recorder.commands import ask
from tests.recorder.operator_bases import base
from tests.recorder.record import RECORDED

LEVELS: Final = ("5_0", "5_2", "6_2")


def at(recorded: Any, level: str) -> Any:
    """Return what was recorded at a level: one value where all levels agree, else one for each."""
    return recorded[level] if isinstance(recorded, dict) else recorded


def assert_answers(rows: list[dict[str, Any]], level: str, expected: Callable[[dict[str, Any]], str]) -> None:
    """Check each row at a level, and on its adapter, against the runtime."""
    wrong = {}
    for row in rows:
        target = replace(Target.parse(level), **row.get("adapter", {}))
        findings = check(TileOperatorDesc.model_validate(row["desc"]), target, against="runtime")
        if answer(findings) != expected(row):
            wrong[row["id"]] = (expected(row), findings)
    assert not wrong


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("file", "count"), [("create_operator.jsonl", 3174), ("adapters.jsonl", 336), ("alignments.jsonl", 210)]
)
def test_every_recorded_answer_is_reproduced(file: str, count: int, level: str) -> None:
    rows = rows_of(file)
    assert len(rows) == count
    assert_answers(rows, level, lambda row: recorded_answer(row, level))


@pytest.mark.parametrize("level", LEVELS)
def test_short_arrays_and_other_types_are_no_reason_where_the_runtime_answers_before_it_reads_them(level: str) -> None:
    rows = rows_of("over_reads.jsonl")
    assert len(rows) == 40
    assert {recorded_answer(row, level) for row in rows} == {S_OK, "0x80070057"}
    for row in rows:
        findings = check(TileOperatorDesc.model_validate(row["desc"]), level, against="runtime")
        rules = {finding.rule for finding in findings}
        assert answer(findings) == recorded_answer(row, level), row["id"]
        assert rules - OVER_READS or not rules, row["id"]


def test_no_recorded_question_ended_the_process_of_a_release() -> None:
    for file in RECORDED:
        assert "crash" not in text_of(file).casefold(), file


@pytest.mark.long
@pytest.mark.parametrize(("i", "level"), [*enumerate(level for level in FeatureLevel if level.short not in LEVELS)])
def test_another_level_answers_as_the_nearest_recorded_one_within_its_row(i: int, level: FeatureLevel) -> None:
    """Of a third of the rows, so that each row is tried at four levels."""
    has_rows = level < FeatureLevel.DML_FEATURE_LEVEL_5_0
    recorded_at = "5_0" if has_rows else "5_2" if level < FeatureLevel.DML_FEATURE_LEVEL_6_0 else "6_2"
    support = tile_support(level)

    def expected(row: dict[str, Any]) -> str:
        buffers = [row["desc"][name] for name in ("InputTensor", "OutputTensor") if row["desc"][name]]
        is_in_row = all(
            buffer["DataType"] in support.data_types and buffer["DimensionCount"] in support.dimension_counts
            for buffer in buffers
        )
        return recorded_answer(row, recorded_at) if is_in_row or not has_rows else "0x80070057"

    assert_answers(ROWS[i % 3 :: 3], level.short, expected)


@pytest.mark.parametrize("level", LEVELS)
def test_the_persistent_resource_is_as_large_as_recorded(level: str) -> None:
    device = Device(level, against="runtime")
    sizes = [case for case in ROWS if "persistent_resource_size" in case and at(case["hresult"], level) == S_OK]
    assert len(sizes) > 100
    for case in sizes[LEVELS.index(level) :: len(LEVELS)]:
        expected = at(case["persistent_resource_size"], level)
        operator = device.create_operator(TileOperatorDesc.model_validate(case["desc"]))
        compiled = device.compile_operator(operator)
        assert compiled.get_binding_properties().persistent_resource_size == expected, case


def test_compiling_twice_gives_two_objects() -> None:
    (case,) = (case for case in rows_of("interfaces.jsonl") if case["id"] == "twice")
    device = Device("6_2")
    operator = device.create_operator(GOOD)
    assert (device.compile_operator(operator) is device.compile_operator(operator)) == case["same_object"]


@pytest.mark.parametrize("part", [3, pytest.param(1, marks=pytest.mark.long)], ids=["a third", "all"])
def test_a_sample_of_all_operators_is_answered_as_well_as_is_claimed(part: int) -> None:
    rows = rows_of("operators.jsonl.xz")
    assert Counter(row["level"] for row in rows) == {"5_1": 3333, "5_2": 3333, "6_2": 3334}
    answers = list(compared(rows[::part]))
    assert shortfalls(figures(sum(map(tally, answers), Counter[tuple[str, str]]()))) == []
    found_nothing = [each for each in answers if not each.findings]
    accepted = [each for each in found_nothing if not not_looked_at(OperatorDesc.model_validate(each.row["desc"]))]
    assert len(accepted) > 2500 / part
    assert [str(each) for each in accepted if not each.is_taken] == [], "of these, all was looked at"


def test_operators_that_onnx_runtime_creates_are_answered_as_directml_answers() -> None:
    answers = list(compared(rows_of("described_operators.jsonl.xz")))
    assert [str(each) for each in answers if not each.agrees] == []
    assert Counter(each.is_taken for each in answers).keys() == {True, False}


@pytest.mark.parametrize("level", ["5_2", "6_2"])
def test_graphs_that_onnx_runtime_compiles_are_answered_as_directml_answers(level: str) -> None:
    for life in rows_of("described_graphs.jsonl.xz"):
        assert emulated(life, level) == at(life["result"], level), life["calls"]


CASES: Final = rows_of("operator_cases.jsonl")
"""Descriptors of operators, one for each field or rule that is looked at."""
WRONG_EXAMPLES: Final = {
    "example-scatter-nd": "its indices are FLOAT32, and its tensors have one and two dimensions",
    "example-gather-elements": "its output is UINT32, its input FLOAT32",
    "example-scatter-2": "its input has two rows, of which three are shown",
}
"""Examples of the operators' pages that break the pages' own constraints, and DirectML refuses."""


@pytest.mark.parametrize("level", ["5_1", "5_2", "6_2"])
def test_each_case_of_an_operator_is_answered_as_recorded(level: str) -> None:
    for case in CASES:
        findings = check(OperatorDesc.model_validate(case["desc"]), level, against="runtime")
        assert answer([each for each in findings if each.severity is Severity.ERROR]) == at(case["hresult"], level), (
            case
        )


@pytest.mark.parametrize("case", [case for case in CASES if case["id"].startswith("example-")], ids=itemgetter("id"))
def test_an_example_of_an_operator_s_page_is_accepted_unless_it_breaks_the_page(case: dict[str, Any]) -> None:
    """GATHER's third example is left out: IndexDimensions must be 1 there, as its output shows."""
    desc = OperatorDesc.model_validate(case["desc"])
    assert any(each.severity > Severity.NOTE for each in check(desc, "6_4")) == (case["id"] in WRONG_EXAMPLES)
    assert not not_looked_at(desc)


def test_each_rule_of_operators_has_a_recorded_line_that_it_refuses_and_one_that_it_takes() -> None:
    refused, taken = set[tuple[str, Basis]](), set[tuple[str, Basis]]()
    for case in CASES + rows_of("operators.jsonl.xz")[::3]:
        desc = OperatorDesc.model_validate(case["desc"])
        for level in [case["level"]] if "level" in case else ["5_1", "5_2", "6_2"]:
            (refused if at(case["hresult"], level) != S_OK else taken).update(
                (finding.rule, finding.basis & Basis.RUNTIME) for finding in check(desc, level)
            )
    measured = {rule for rule, basis in refused if basis}
    documented = {rule for rule, basis in taken if not basis}
    for rule in (*OPERATOR_LEVEL_RULES, *OPERATOR_FIELD_RULES):
        assert rule.id in (measured if rule.basis & Basis.RUNTIME else documented) or rule.id in NOT_RECORDED, rule.id


NOT_RECORDED: Final = {"DML-OPERATOR-DataType-adapter", "DML-OPERATOR-same-example"}
"""The rule that no line of an adapter with all capabilities breaks, and that of operators of 6_4."""


def test_the_lowest_level_of_an_operator_is_that_of_a_check_at_each_level() -> None:
    for recorded in rows_of("operators.jsonl.xz")[::100]:
        desc = OperatorDesc.model_validate(recorded["desc"])
        accepted = [(level, not any(map(blocks_creation, check(desc, level)))) for level in reversed(FeatureLevel)]
        passing = [level for level, _ in takewhile(itemgetter(1), accepted)]
        assert lowest_level(desc) == min(passing, default=None)


LIVES: Final = rows_of("lives.jsonl")
BINDING: Final = rows_of("binding.jsonl")
DEVICES: Final = rows_of("devices.jsonl")


@pytest.mark.dml(expects_removal=True)
@pytest.mark.parametrize("level", LEVELS)
def test_each_call_of_a_life_comes_to_what_was_recorded(level: str) -> None:
    assert (len(LIVES), len(BINDING), len(DEVICES)) == (1042, 1101, 157)
    for life in LIVES + BINDING + DEVICES:
        departure = KNOWN_DEPARTURES.get(life["id"], {}).get(level)
        assert emulated(life, level) == (departure or at(life["result"], level)), life["id"]
        assert departure != at(life["result"], level), "it is a departure no longer"


@pytest.mark.dml(expects_removal=True)
@pytest.mark.parametrize(
    ("part", "level", "recorded_at"),
    [(0, "4_1", "5_0"), (1, "5_1", "5_2"), (0, "6_0", "6_2"), (1, "6_4", "6_2")],
)
def test_another_level_lives_as_its_neighbour(part: int, level: str, recorded_at: str) -> None:
    """But for the levels that it says it supports, the types of tiles that it has, and known departures."""
    for life in LIVES[part::2]:
        if life["id"] in KNOWN_DEPARTURES:
            continue
        calls = [call for call in life["calls"] if call[0] != "CheckFeatureSupport"]
        results = zip(life["calls"], at(life["result"], recorded_at), strict=True)
        expected = [result for call, result in results if call[0] != "CheckFeatureSupport"]
        assert emulated({**life, "calls": calls}, level) == expected, life["id"]


@pytest.mark.parametrize("rank", range(1, 9))
def test_each_operator_is_drawn_with_any_number_of_dimensions(rank: int) -> None:
    level = FeatureLevel.DML_FEATURE_LEVEL_6_2
    for operator in (each for each in operators().values() if each.level <= level):
        counts = {each.name: rank for each in operator.fields if each.is_tensor}
        drawn = base(operator, level, Random(operator.name), counts, dict.fromkeys(counts, 1))
        assert drawn.keys() >= counts.keys(), operator


def test_each_operator_of_a_dxdispatch_model_is_asked_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask([], Namespace(file=["examples/tile.json"])) == 0
    assert capsys.readouterr() == ("examples/tile.json/dispatchables/tile\n", "")
