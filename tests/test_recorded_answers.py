"""The emulated runtime against every recorded answer of Microsoft's own."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target, tile_support
from dml_tile.rules.check import check
from tests.helpers.recorded_answers import CRASH, OVER_READS, ROWS, S_OK, answer, recorded_answer, rows_of

LEVELS: Final = ("5_0", "5_2", "6_2")


def test_all_rows_are_there() -> None:
    assert len(ROWS) == 3190


@pytest.mark.parametrize("level", LEVELS)
def test_every_recorded_answer_is_reproduced(level: str) -> None:
    wrong = {}
    for row in ROWS:
        findings = check(TileOperatorDesc.model_validate(row["desc"]), level, against="runtime")
        if answer(findings) != (expected := recorded_answer(row, level)):
            wrong[row["id"]] = (expected, findings)
    assert not wrong


@pytest.mark.parametrize("level", LEVELS)
def test_adapters_decide_on_data_types_as_recorded(level: str) -> None:
    rows = rows_of("adapters.jsonl")
    assert len(rows) == 336
    for row in rows:
        target = Target.parse(level, **row["adapter"])
        findings = check(TileOperatorDesc.model_validate(row["desc"]), target, against="runtime")
        assert answer(findings) == recorded_answer(row, level), row["id"]


@pytest.mark.parametrize("level", LEVELS)
def test_alignments_of_each_data_type_are_accepted_as_recorded(level: str) -> None:
    rows = rows_of("alignments.jsonl")
    assert len(rows) == 210
    for row in rows:
        findings = check(TileOperatorDesc.model_validate(row["desc"]), level, against="runtime")
        assert answer(findings) == recorded_answer(row, level), row["id"]


@pytest.mark.parametrize("level", LEVELS)
def test_over_reads_are_found_where_the_runtime_was_recorded_to_crash_of_them(level: str) -> None:
    rows = rows_of("over_reads.jsonl")
    assert len(rows) == 85
    assert {recorded_answer(row, level) for row in rows} == {CRASH, S_OK, "0x80070057"}
    for row in rows:
        findings = check(TileOperatorDesc.model_validate(row["desc"]), level, against="runtime")
        rules = {finding.rule for finding in findings}
        if recorded_answer(row, level) == CRASH:
            assert rules & OVER_READS, row["id"]
        else:
            assert answer(findings) == recorded_answer(row, level), row["id"]
            assert rules - OVER_READS or not rules, row["id"]


@pytest.mark.long
@pytest.mark.parametrize("level", [level for level in FeatureLevel if level.short not in LEVELS], ids=str)
def test_another_level_answers_as_the_nearest_recorded_one_within_its_documented_row(level: FeatureLevel) -> None:
    has_rows = level < FeatureLevel.DML_FEATURE_LEVEL_5_0
    recorded_at = "5_0" if has_rows else "5_2" if level < FeatureLevel.DML_FEATURE_LEVEL_6_0 else "6_2"
    support, wrong = tile_support(level), {}
    for row in ROWS:
        expected = recorded_answer(row, recorded_at)
        buffers = [row["desc"][name] for name in ("InputTensor", "OutputTensor") if row["desc"][name]]
        if has_rows and not all(
            buffer["DataType"] in support.data_types and buffer["DimensionCount"] in support.dimension_counts
            for buffer in buffers
        ):
            expected = "0x80070057"
        findings = check(TileOperatorDesc.model_validate(row["desc"]), level, against="runtime")
        if answer(findings) != expected:
            wrong[row["id"]] = (expected, findings)
    assert not wrong


@pytest.mark.parametrize("row", ROWS[::97], ids=lambda row: row["id"])
def test_a_recorded_descriptor_reads_back_equal(row: dict[str, Any]) -> None:
    desc = TileOperatorDesc.model_validate(row["desc"])
    assert TileOperatorDesc.model_validate_json(desc.model_dump_json(by_alias=True)) == desc
