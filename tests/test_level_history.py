"""The tables of operators and levels beside each sentence of the feature level history and of Releases.md."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any, Final

import pytest

from dml_tile import Against, FeatureLevel, OperatorDesc, Severity, check, lowest_level
from dml_tile.bindings.resources import Buffer, BufferBinding
from dml_tile.bindings.slots import INITIALIZER_INPUT, BoundRange, Slot
from dml_tile.directml.data_types import FLOATS, TensorDataType
from dml_tile.directml.enums import Feature, HeapType
from dml_tile.directml.levels import CONSTANT_NODES, LEVELS
from dml_tile.directml.operator_table import OperatorTable, Row, operator_table, tables_of
from dml_tile.directml.operators import enumerations, operator_named, operators
from dml_tile.directml.targets import Target
from dml_tile.rules.binding import heap_is_allowed
from dml_tile.rules.device import feature_is_known
from tests.helpers.paths import ROOT
from tests.helpers.rule_cases import other, padding

SENTENCES: Final = [
    found.groups()
    for line in (ROOT / "tests/data/level_history.txt").read_text("utf-8").splitlines()
    if (found := re.fullmatch(r"(\d_\d) \w+ (\w+)(?: ([^:]+))?: (.+)", line))
]
LEVEL_BEFORE: Final = {later: level for level, later in pairwise(FeatureLevel)}
KINDS: Final = {
    "int": lambda new: new - FLOATS,
    "64": lambda new: {each for each in new if each.bits == 64},
}


def table_of(subject: str) -> OperatorTable:
    name, _, choice = subject.lstrip("-").partition(".")
    operator = operator_named(name)
    assert operator, name
    return operator_table(operator.name, operator.tensors, choice)


def rises(kind: str, words: list[str], before: Row, row: Row) -> bool:
    """Return True if a row has the types or dimension counts that a sentence names, and the row before has not."""
    names, tensors = (words[: words.index("of")], words[-1:]) if "of" in words else (words, [*row])
    pairs = [(row[each], before[each] if before else None) for each in tensors]
    new_types = [new.data_types - (old.data_types if old else frozenset()) for new, old in pairs]
    new_counts = [new.dimension_counts - (old.dimension_counts if old else frozenset()) for new, old in pairs]
    if kind == "counts":
        return all(int(names[0]) in each for each in new_counts)
    if names and names[0] in KINDS:
        return any(map(KINDS[names[0]], new_types))
    named = {TensorDataType[name] for name in names}
    return any(each and named <= each for each in new_types) or (kind == "either" and any(new_counts))


def levels_with(kind: str, words: list[str], subject: str) -> Collection[FeatureLevel]:
    """Return the level from which on the tables have what a sentence names."""
    match kind:
        case "operators":
            return {each.level for each in [operator_named(subject)] if each}
        case "null":
            return {each.below for each in table_of(subject).given if each.below and {*words} & {*each.tensors}}
        case "fuses":
            return {table_of(subject).fused_from[name] for name in words}
        case "Steepness":
            return {each.below for each in table_of(subject).fields if each.below}
        case "PADDING_MODE":
            known = enumerations()[kind]
            return {known.levels[known.names.index(name)] for name in words}
        case "node":
            return {CONSTANT_NODES}
        case "data_types":
            return {level for level, row in LEVELS.items() if TensorDataType[subject].kind in row.new_types}
        case "maximum":
            rows = [
                pair for each in operators().values() for _, table in tables_of(each) for pair in table.rows.items()
            ]
            most = [(level, max(max(each.dimension_counts) for each in row.values())) for level, row in rows]
            return {min(level for level, count in most if count == int(subject))}
    return {min(level for level in FeatureLevel if device_has(subject, Target(level)))}


def device_has(what: str, target: Target) -> bool:
    """Return True if a device at a target has a function, a query or, for an initializer's input, a type of heap."""
    if what == "CUSTOM":
        bound = BoundRange(Slot("", INITIALIZER_INPUT, 4, 16), BufferBinding(Buffer(16, heap=HeapType.CUSTOM)))
        return not [*heap_is_allowed.violations(bound, target)]
    if what == "FEATURE_LEVELS":
        return not [*feature_is_known.violations(Feature.FEATURE_LEVELS, target)]
    return {"CompileGraph": target.level.has_graphs, "DMLCreateDevice1": target.level.exports_create_device1}[what]


@pytest.mark.parametrize(("short", "kind", "said", "subjects"), SENTENCES, ids=lambda each: str(each)[:24])
def test_the_tables_hold_to_each_sentence(short: str, kind: str, said: str | None, subjects: str) -> None:
    level, words = FeatureLevel.parse(short), (said or "").split()
    for subject in subjects.split():
        if kind in ("types", "counts", "either"):
            rows = [table_of(subject).at(each)[0] for each in (LEVEL_BEFORE[level], level)]
            assert rises(kind, words, *rows) == (subject[0] != "-"), subject
            assert subject[0] != "-" or table_of(subject).history_rows
        else:
            assert levels_with(kind, words, subject) == {level}, subject


def test_the_history_lists_all_operators_but_those_of_1_0() -> None:
    listed = {name for _, kind, _, names in SENTENCES if kind == "operators" for name in names.split()}
    assert listed - {"SCATTER_ELEMENTS"} == {each.name for each in operators().values() if each.level.short != "1_0"}


def join(count: int) -> OperatorDesc:
    """A JOIN of two tensors of so many dimensions."""
    one, both = ({"DataType": "FLOAT32", "Sizes": [*[1] * (count - 1), size]} for size in (2, 4))
    return OperatorDesc(type="JOIN", desc={"InputTensors": [one, one], "OutputTensor": both, "Axis": count - 1})


def linear(**zero_point: Any) -> OperatorDesc:
    """A quantisation, whose ZeroPointTensor is null unless given."""
    scale, output = ({"DataType": data_type, "Sizes": [1, 1, 2, 2]} for data_type in ("FLOAT32", "UINT8"))
    return other(
        "ELEMENT_WISE_QUANTIZE_LINEAR", sizes=[1, 1, 2, 2], ScaleTensor=scale, OutputTensor=output, **zero_point
    )


def of_alike_tensors(name: str, count: int, **others: Any) -> OperatorDesc:
    """An operator whose tensors but the others have one element, and so many dimensions."""
    known, tensor = operator_named(name), {"DataType": "FLOAT32", "Sizes": [1] * count}
    assert known
    return OperatorDesc(type=name, desc=dict.fromkeys(known.tensors, tensor) | others)


def adam(count: int) -> OperatorDesc:
    step = {"DataType": "UINT32", "Sizes": [1] * count}
    numbers = dict.fromkeys(("LearningRate", "Beta1", "Beta2", "Epsilon"), 0.5)
    return of_alike_tensors("ADAM_OPTIMIZER", count, TrainingStepTensor=step, **numbers)


SHRUNK: Final[dict[str, Any]] = {"Bias": 0, "Threshold": 0}
POWER: Final[dict[str, Any]] = {"ScaleBias": None, "Exponent": 2}
ROWS: Final[Mapping[str, tuple[OperatorDesc, str, str, str]]] = {
    # the descriptor, its lowest level, the target, and the note there, if there is one
    "JOIN of 3": (join(3), "3_1", "4_0", "is inferred to be taken, as by the other operators that"),
    "JOIN of 8": (join(8), "3_1", "3_1", "a dimension count of 8 is taken by DirectML's feature level history;"),
    "JOIN of 8 at 4_1": (join(8), "3_1", "4_1", ""),
    "ADAM_OPTIMIZER": (adam(8), "4_0", "5_0", "the operator's page has 4"),
    "ADAM_OPTIMIZER, measured": (adam(2), "4_0", "6_2", "is taken, as measured; the operator's page has 4"),
    "RELU_GRAD": (of_alike_tensors("ACTIVATION_RELU_GRAD", 8), "3_0", "3_0",
                  "is taken by the operator's page; DirectML's feature level history has 4"),
    "RELU_GRAD at 3_1": (of_alike_tensors("ACTIVATION_RELU_GRAD", 8), "3_0", "3_1", ""),
    "CONSTANT_POW": (other("ELEMENT_WISE_CONSTANT_POW", "INT8", **POWER), "", "3_0", "INT8 is taken by DirectML's"),
    "SHRINK": (other("ACTIVATION_SHRINK", "INT8", **SHRUNK), "3_0", "5_0", "the operator's page has FLOAT32, FLOAT16"),
    "SOFTPLUS": (other("ACTIVATION_SOFTPLUS", Steepness=0.5), "6_4", "6_4", "takes it from 6_4 on"),
    "PADDING": (padding(PaddingMode="WRAP"), "6_4", "6_4", ""),
    "QUANTIZE_LINEAR": (linear(ZeroPointTensor=None), "6_2", "6_2", ""),
}  # fmt: skip


@pytest.mark.parametrize("against", ["documentation", "runtime", "both"])
@pytest.mark.parametrize("row", ROWS)
def test_what_one_source_has_from_an_older_level_on_is_taken_with_a_note(row: str, against: Against) -> None:
    desc, lowest, target, note = ROWS[row]
    found = check(desc, target, against=against)
    assert {(each.rule, each.severity) for each in found} == (
        {("DML-OPERATOR-sources", Severity.NOTE)} if note else set()
    )
    assert all(note in each.message for each in found)
    assert str(getattr(lowest_level(desc), "short", "")) == lowest


@pytest.mark.parametrize(
    ("desc", "target", "expected"),
    [
        (padding(PaddingMode="WRAP"), "6_2", "PaddingMode: WRAP needs DML_FEATURE_LEVEL_6_4; the target has 6_2"),
        (ROWS["SOFTPLUS"][0], "6_2", "Steepness: 0.5 was provided, but at least 1 was expected below 6_4"),
        (ROWS["QUANTIZE_LINEAR"][0], "6_1", "ZeroPointTensor: null was provided, but a tensor was expected below 6_2"),
    ],
)
def test_below_the_level_one_error_names_it(desc: OperatorDesc, target: str, expected: str) -> None:
    for against in ("documentation", "runtime", "both"):
        assert [each.text for each in check(desc, target, against=against)] == [expected]
    assert "ship DirectML" in str(check(desc, target)[0].suggestion)


def test_what_directml_was_measured_to_refuse_is_refused_whatever_the_history_says() -> None:
    (finding, other_finding) = check(ROWS["CONSTANT_POW"][0], "6_2")
    assert [str(each) for each in finding.basis] == ["Basis.RUNTIME"]
    assert finding.message == other_finding.message == "INT8 was provided, but one of FLOAT32, FLOAT16 was expected"
