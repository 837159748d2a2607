"""Random descriptors of all operators are valid but for their faults, and figures tell how many of these are found."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from dml_tile.checking import check
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml.enums import UINT_MAX, FeatureLevel
from dml_tile.directml.operators import operator_names, operators
from dml_tile.findings import Basis, Severity
from dml_tile.rules.tile_findings import blocks_creation
from tests.helpers.operator_figures import Figures, compared, figures, shortfalls, tally
from tests.helpers.recorded_answers import S_OK
from tests.recorder import operator_draws
from tests.recorder.operator_bases import BASES, FOUR, NOT_NULL
from tests.recorder.operator_draws import TIED, Faults, draw, line, sweep, valid
from tests.recorder.operator_limits import changes
from tests.recorder.releases import RELEASES, Release
from tests.recorder.runtime import answered_operators
from tests.recorder.stand_in import why_not_buildable
from tests.test_operator_schema import NEWER

E_INVALIDARG = "0x80070057"
LEVEL = FeatureLevel.DML_FEATURE_LEVEL_6_2


def test_each_exception_is_an_operator_s() -> None:
    assert {*BASES, *FOUR, *NOT_NULL, *TIED} <= {*operator_names()}


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.level)
def test_each_operator_has_a_valid_descriptor_that_directml_takes(release: Release) -> None:
    random, level = Random(1), release.operator_level
    known = [operator for operator in operators().values() if operator.level <= level]
    rows = [line(operator, valid(operator, level, random), level) for operator in known for _ in range(2)]
    assert len({OperatorDesc.model_validate(row["desc"]).type for row in rows}) == len(known) > 160
    if not why_not_buildable() and release.library.is_file():
        assert [row["desc"] for row in answered_operators(rows) if row["hresult"] != S_OK] == []


@pytest.mark.parametrize("level", FeatureLevel, ids=lambda level: level.short)
def test_a_valid_descriptor_of_each_operator_is_accepted_at_each_level_that_has_it(level: FeatureLevel) -> None:
    for operator in operators().values():
        if operator.level <= level and operator.name not in NEWER:  # which no release measured has
            desc = OperatorDesc(type=operator.value, desc=valid(operator, level, Random(operator.name)))
            assert not any(map(blocks_creation, check(desc, level, against="runtime"))), desc


def test_no_descriptor_is_drawn_that_a_rule_guards_the_runtime_against(monkeypatch: pytest.MonkeyPatch) -> None:
    gather = operators()[67]
    monkeypatch.setattr(operator_draws, "operators", lambda: {67: gather})
    beyond: Faults = {"count": lambda random, _, fields: fields.update(Axis=0, IndexDimensions=random.choice((1, 2)))}
    for drawn in draw(50, "4", LEVEL, beyond):
        findings = check(OperatorDesc.model_validate(drawn["desc"]), LEVEL)
        assert not [each for each in findings if each.basis == Basis.INFERRED and each.severity is Severity.ERROR]


def test_the_sweep_has_each_type_and_dimension_count_of_each_group() -> None:
    gather = [row["desc"]["Desc"] for row in sweep(LEVEL, [operators()[67]])]
    pairs = Counter((desc["InputTensor"]["DataType"], desc["OutputTensor"]["DimensionCount"]) for desc in gather)
    assert {*pairs} >= {(data_type, count) for data_type in range(1, 14) for count in range(1, 9)}
    assert len(gather) == 2 * 13 * 8


def test_each_field_has_values_at_its_limits_and_beyond() -> None:
    gather = operators()[67]
    one = valid(gather, LEVEL, Random(1))
    given = [one | change for change in changes(gather, one)]
    for field in gather.fields:
        changed = [each[field.name] for each in given]
        if field.is_tensor:
            tensors = [each for each in changed if each]
            assert {0, 15} <= {each["DataType"] for each in tensors}
            assert {0, UINT_MAX} <= {size for each in tensors for size in each["Sizes"]}
            assert len(tensors) < len(changed)
        else:
            assert {0, UINT_MAX} <= {*changed}


def row(hresult: str, *faults: str, operator: str = "ELEMENT_WISE_ABS", **desc: object) -> dict[str, object]:
    tensor = {"DataType": 1, "Sizes": [2]}
    fields = {"InputTensor": tensor, "OutputTensor": tensor} | desc
    return {"level": "6_2", "faults": list(faults), "desc": {"Type": operator, "Desc": fields}, "hresult": hresult}


def test_figures_tell_what_is_found_and_what_is_wrongly_refused() -> None:
    integers, wide = {"DataType": 3, "Sizes": [2]}, {"DataType": 1, "Sizes": [2, 4]}
    lines = [
        row(S_OK, "types"),
        row(S_OK, "types", InputTensor=integers),
        row(E_INVALIDARG, "types", InputTensor=integers),
        row(E_INVALIDARG, "types"),
        row("CRASH:SIGSEGV", "nulls", InputTensor=None),
        row("CRASH:SIGSEGV", "counts"),
        row(S_OK, "counts", InputTensor=wide, OutputTensor=wide | {"Strides": [6, 2]}),
        row(S_OK, "sizes", "flags"),
    ]
    found = list(compared(lines))
    by_kind = figures(sum(map(tally, found), Counter[tuple[str, str]]()))
    assert by_kind["types"] == Figures(2, 1, 0, taken=2, wrongly_refused=1, undocumented=0)
    assert by_kind["nulls"] == Figures(1, 1, 1, 0, 0, 0)
    assert by_kind["counts"] == Figures(1, 0, 0, 1, 0, 1)
    assert by_kind["two"] == Figures(0, 0, 0, 1, 0, 0)
    assert by_kind["all"] == Figures(4, 2, 1, 4, 1, 1)
    assert str(by_kind["all"]) == (
        "refused 4, found 50.00 %, with another answer 1; taken 4, refused of them 1 (25.00 %), undocumented 1"
    )
    assert shortfalls(by_kind) == ["types", "counts", "all", "wrongly refused"]
    assert str(found[3]).startswith("6_2, types: DirectML 0x80070057; check: accepted\n")
    assert "[DML-OPERATOR-" in str(found[1])
