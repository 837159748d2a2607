"""The emulated runtime against every recorded answer of Microsoft's own."""

from __future__ import annotations

from typing import Any

import pytest

from dml_tile.descriptors import TileOperatorDesc
from dml_tile.enums import FeatureLevel
from dml_tile.rules.check import check
from tests.helpers.recorded_answers import ROWS, answer
from tests.helpers.runtime_oracle import create_operator


def test_all_rows_are_there() -> None:
    assert len(ROWS) == 3190


@pytest.mark.parametrize("level", ["5_0", "5_2", "6_2"])
def test_every_recorded_answer_is_reproduced(level: str) -> None:
    wrong = {}
    for row in ROWS:
        expected = row["hresult"] if isinstance(row["hresult"], str) else row["hresult"][level]
        findings = check(TileOperatorDesc.model_validate(row["desc"]), level, against="runtime")
        if answer(findings) != expected:
            wrong[row["id"]] = (expected, findings)
    assert not wrong


@pytest.mark.parametrize("level", [level.short for level in FeatureLevel])
def test_the_recorded_descriptors_fare_as_the_plain_restatement_says(level: str) -> None:
    wrong: dict[str, Any] = {}
    for row in ROWS:
        expected = create_operator(row["desc"], level)
        findings = check(TileOperatorDesc.model_validate(row["desc"]), level, against="runtime")
        if answer(findings) != expected:
            wrong[row["id"]] = (expected, findings)
    assert not wrong


@pytest.mark.parametrize("row", ROWS[::97], ids=lambda row: row["id"])
def test_a_recorded_descriptor_reads_back_equal(row: dict[str, Any]) -> None:
    desc = TileOperatorDesc.model_validate(row["desc"])
    assert TileOperatorDesc.model_validate_json(desc.model_dump_json(by_alias=True)) == desc
