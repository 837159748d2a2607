"""The assertions on descriptors, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest

from dml_tile.simulation import target
from dml_tile.testing import assert_accepts, assert_rejects, simulate
from tests.helpers.descriptors import GOOD, OPERATOR, page_tile, row
from tests.helpers.plugin_runs import OTHERS, without

INT64 = row("INT64", [2, 3], [1, 2])
BROKEN = page_tile(InputTensor__Flags=2, RepeatsCount=3)
DOUBLES = row("FLOAT64", [2], [2])


def test_what_is_accepted_passes_and_what_is_refused_is_reported_with_all_findings() -> None:
    assert_accepts(OPERATOR, "1_0")
    assert_accepts(INT64, "windows-11-22h2")
    assert_accepts(DOUBLES, against="runtime")
    with pytest.raises(AssertionError) as caught:
        assert_accepts(INT64, "windows-11-21h2")
    assert str(caught.value).splitlines() == [
        f"{INT64}: refused at windows-11-21h2 (4_0); it should be accepted",
        "  [DML-TILE-DataType-level] InputTensor.DataType: INT64 needs DML_FEATURE_LEVEL_4_1; windows-11-21h2 has 4_0",
        "    try: ship DirectML 1.7.0 or later with the application",
        "  [DML-TILE-DataType-level] OutputTensor.DataType: INT64 needs DML_FEATURE_LEVEL_4_1; windows-11-21h2 has 4_0",
        "    try: ship DirectML 1.7.0 or later with the application",
        "  try: dml_tile.lower, which finds 1 tile that writes the same bytes there",
    ]


def test_a_refusal_gives_its_findings() -> None:
    (finding,) = assert_rejects(page_tile(Repeats=None))
    assert finding.crash
    assert [finding.path for finding in assert_rejects(BROKEN)] == ["InputTensor.Flags", "RepeatsCount"]
    assert_rejects(None, rule="DML-OPERATOR-null")


@pytest.mark.parametrize(
    "rule",
    ["DML-BUFFER-Flags", "DML-TILE-RepeatsCount", ["DML-TILE-RepeatsCount", "DML-BUFFER-Flags"], {"DML-BUFFER-Flags"}],
)
def test_every_rule_that_is_named_is_among_the_findings(rule: str | Collection[str]) -> None:
    assert len(assert_rejects(BROKEN, "6_4", rule)) == 2


def test_a_rule_that_is_not_among_the_findings_is_told() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_rejects(BROKEN, rule=["DML-BUFFER-Flags", "DML-BUFFER-Sizes-zero", "DML-TILE-Repeats-zero"])
    told, *findings = str(caught.value).splitlines()
    assert told == f"{BROKEN}: refused at 6_4; it should break DML-BUFFER-Sizes-zero, DML-TILE-Repeats-zero"
    assert sum(line.startswith("  [") for line in findings) == 2


LEVEL_RULE = "DML-TILE-DataType-level"
NO_RULE = "there is no rule 'DML-TILE-DataTyp-level'; did you mean DML-TILE-DataType"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((GOOD,), AssertionError, ".*: accepted at 6_4; it should be refused$"),
        ((INT64, "4_1", LEVEL_RULE), AssertionError, f".*: accepted at 4_1; it should break {LEVEL_RULE}$"),
        ((DOUBLES, None, None, "runtime"), AssertionError, ".*: accepted at 6_4 against the runtime; it should be ref"),
        ((GOOD, "4_0", "DML-TILE-DataTyp-level"), ValueError, NO_RULE),
        ((INT64, "4_0", "DML-TILE-DataTyp-level"), ValueError, NO_RULE),
        ((GOOD, "4_0", [LEVEL_RULE, "zz"]), ValueError, "there is no rule 'zz'; `dml-tile explain` lists all rules$"),
        ((INT64, "4_0", [LEVEL_RULE, "zz"]), ValueError, "there is no rule 'zz'; `dml-tile explain` lists all rules$"),
        ((INT64, LEVEL_RULE), ValueError, f"the target is '{LEVEL_RULE}', which is a rule; pass it as rule='"),
    ],
)
def test_what_is_accepted_is_no_refusal_and_a_rule_there_has_to_be(
    arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{message}"):
        assert_rejects(*arguments)


def test_none_is_the_simulated_target() -> None:
    assert simulate is target.simulate
    with simulate("windows-11-21h2"):
        assert_rejects(INT64)
        assert_accepts(INT64, "4_1")
    assert_accepts(INT64)


@pytest.mark.parametrize("function", [assert_accepts, assert_rejects])
def test_wrong_arguments_are_errors_not_failures(function: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match="did you mean"):
        function(GOOD, "windows-7")
    with pytest.raises(ValueError, match="against is 'docs'"):
        function(GOOD, against="docs")
    with pytest.raises(TypeError, match="an OperatorDesc or a GraphDesc was expected"):
        function("tile")


def test_a_failure_points_at_the_caller_s_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from dml_tile import TileOperatorDesc
        from dml_tile.testing import assert_accepts, assert_rejects

        LONGS = TileOperatorDesc.from_input(data_type="INT64", sizes=[1], repeats=[1])
        def test_accepts(): assert_accepts(LONGS, "4_0")
        def test_rejects(): assert_rejects(LONGS, "4_1")
        """
    )
    result = pytester.runpytest_inprocess(*without(*OTHERS))
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["E * AssertionError: INT64 {1} x {1} -> {1}: refused at 4_0; it should be accepted"])
    assert "dml_tile/testing" not in result.stdout.str()
