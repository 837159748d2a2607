"""Operators other than Tile: their table, what is checked of them, and what is shown of it."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
import pytest

from dml_tile import (
    BindingDesc,
    Buffer,
    BufferArrayBinding,
    BufferBinding,
    Device,
    DmlError,
    FeatureLevel,
    OperatorDesc,
    check,
    lowest_level,
)
from dml_tile.bindings.resources import BindingLike
from dml_tile.checks.judging import judged
from dml_tile.checks.verdict import Verdict
from dml_tile.descriptors.operator import OperatorFields
from dml_tile.directml.crashes import crashes
from dml_tile.directml.enums import HRESULT
from dml_tile.directml.operator_table import TABLE, tables_of
from dml_tile.directml.operators import OperatorRow, operator_named, operators
from dml_tile.directml.targets import Target
from dml_tile.findings import BOTH, Against, Basis, Severity
from dml_tile.readers.item import Item
from dml_tile.reports.operator_levels import operator_lines
from dml_tile.rules import equations, shapes
from dml_tile.rules.equations import EQUATION
from dml_tile.rules.operator import not_looked_at
from dml_tile.rules.shapes import SHAPE
from docs.generator.operators_page import operator_index
from tests.helpers import devices
from tests.helpers.command_line import Call, errors_of
from tests.helpers.recorded_answers import rows_of
from tests.helpers.rule_cases import attention, gather, gemm, other, padding, quantize, square
from tests.recorder.crashes import without
from tests.recorder.operator_draws import valid
from tests.test_operator_schema import BASES

DXDISPATCH: Final = os.environ.get("DML_TILE_TESTS_DXDISPATCH", "")
"""The folder DxDispatch of Microsoft's repository."""


@pytest.mark.parametrize("operator", operators().values(), ids=lambda operator: operator.name)
def test_a_table_names_fields_of_the_operator_and_rows_grow(operator: OperatorRow) -> None:
    tensors = {*operator.tensors}
    for _, table in tables_of(operator):
        assert table.rows
        assert all([*rows] == sorted(rows) for rows in (table.rows, table.runtime))
        assert min(table.rows) <= operator.level
        for shared in table.same:
            assert {*shared.tensors} <= tensors
        for sentence in (*table.fields, *table.sizes):
            assert (equation := EQUATION.fullmatch(sentence.text)), sentence
            assert {*re.findall(r"\w+", equation["left"])} & operator.named.keys()
        for sentence in table.shapes:
            assert (shape := SHAPE.fullmatch(sentence.text)), sentence
            assert shape["tensor"] in tensors or not shape["tensor"].endswith(("Tensor", "Tensors"))
        newest = [*table.rows.values()]
        for older, newer in pairwise(newest):
            assert older.keys() == newer.keys() == tensors
            for tensor in tensors:
                assert older[tensor].data_types <= newer[tensor].data_types
                assert older[tensor].dimension_counts <= newer[tensor].dimension_counts
        assert tensors >= {*table.inputs}
        assert {*table.fused_from} <= {each.name for each in operators().values()}


@pytest.mark.parametrize("operator", operators().values(), ids=lambda operator: operator.name)
def test_a_sentence_of_the_table_names_each_number_and_tensor_of_an_operator(operator: OperatorRow) -> None:
    for _, table in tables_of(operator):
        sentences = [each.text for each in (*table.fields, *table.sizes, *table.shapes)]
        said = {word for text in (*sentences, *table.free) for word in re.findall(r"\w+", text)}
        said |= {name for shared in table.same if shared.field == "Sizes" for name in shared.tensors}
        said |= {*table.without_rule, *(operator.tensors if len(operator.tensors) == 1 else ())}
        said |= {*operator.tensors} if "Sizes" in table.without_rule else set()
        numbers = {field.name for field in operator.fields if field.kind in "uiUIFz" and field.name != "Seed"}
        assert operator.name == "TILE" or numbers | {*operator.tensors} <= said | {*operator.arrays}


def test_the_table_is_toml_with_an_entry_for_each_operator() -> None:
    entries = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    assert list(entries) == ["types", *(operator.name for operator in operators().values())]
    assert len(TABLE.read_text(encoding="utf-8").splitlines()) <= 2000


def verdict(desc: OperatorDesc, target: str = "6_4") -> tuple[Verdict, tuple[str, ...]]:
    (result,) = judged("", Item("", desc), [Target.parse(target)], "both")
    return result.verdict, result.not_looked_at


@pytest.mark.parametrize(
    ("desc", "target", "expected"),
    [
        (other("ACTIVATION_RELU"), "6_4", (Verdict.ACCEPTED, ())),
        (gather("UINT32"), "6_4", (Verdict.ACCEPTED, ())),
        (gather("INT64"), "2_1", (Verdict.REFUSED, ())),
        (quantize(), "6_4", (Verdict.ACCEPTED_IN_PART, ("Sizes", "QuantizationTensorCount"))),
        (quantize(), "6_2", (Verdict.REFUSED, ("Sizes", "QuantizationTensorCount"))),
        (square("INT8"), "5_2", (Verdict.UNDOCUMENTED, ())),
        (other("ELEMENT_WISE_CONSTANT_POW", "INT32", ScaleBias=None, Exponent=2), "5_2", (Verdict.ACCEPTED, ())),
        (other("ELEMENT_WISE_CONSTANT_POW", "INT32", ScaleBias=None, Exponent=2), "6_2", (Verdict.REFUSED, ())),
        (padding(), "6_4", (Verdict.ACCEPTED, ())),
    ],
)
def test_a_verdict_says_what_was_looked_at(
    desc: OperatorDesc, target: str, expected: tuple[Verdict, tuple[str, ...]]
) -> None:
    assert verdict(desc, target) == expected


def test_a_missing_type_suggests_a_cast_and_the_library_that_has_it() -> None:
    (finding,) = check(gather("INT64"), "2_1")
    assert finding.message == "INT64 needs DML_FEATURE_LEVEL_3_0; the target has 2_1"
    assert finding.suggestion == "cast it to UINT32, or ship DirectML 1.4.0 or later with the application"
    assert finding.url.endswith("ns-directml-dml_gather_operator_desc")


def test_a_check_prints_what_was_not_looked_at_in_the_verdicts_line(call: Call) -> None:
    text = quantize().model_dump_json(by_alias=True)
    result = call("check", "-", stdin=text)
    assert result.stdout.splitlines()[0] == (
        "-: accepted in part at 6_4; not looked at: Sizes, QuantizationTensorCount; lowest level at least 6_3"
    )
    assert result.exit_code == 0
    assert call("check", "-", "--fail-on", "note", stdin=text).exit_code == 1
    refused = call("check", "-", "--target", "2_0", stdin=text).stdout.splitlines()[0]
    assert ": refused at 2_0; not looked at: Sizes, QuantizationTensorCount; lowest level at least 6_3" in refused
    record = json.loads(call("check", "-", "--format", "json", stdin=text).stdout)["results"][0]
    assert (record["verdict"], record["not_looked_at"]) == ("accepted in part", ["Sizes", "QuantizationTensorCount"])


def test_no_operator_of_the_header_is_left_unchecked(call: Call) -> None:
    drafts = [{"Type": name, "Desc": base} for name, base in BASES.items()]
    output = json.loads(call("check", "-", "--format", "json", stdin="\n".join(map(json.dumps, drafts))).stdout)
    verdicts = Counter(result["verdict"] for result in output["results"])
    assert verdicts.total() == len(operators()) == 177
    assert verdicts.keys() <= {"accepted", "accepted in part", "undocumented", "refused"}
    assert verdicts["accepted"] > 100


@pytest.mark.skipif(not DXDISPATCH, reason="needs DML_TILE_TESTS_DXDISPATCH")
def test_the_operators_of_microsoft_s_models_are_checked_and_none_is_refused(call: Call) -> None:
    models = [str(path) for path in sorted(Path(DXDISPATCH).glob("models/*.json")) if path.name != "_schema.json"]
    result = call("check", *models, "--target", "6_2", "--format", "json")
    assert result.stderr == ""
    verdicts = Counter(result["verdict"] for result in json.loads(result.stdout)["results"])
    assert verdicts == {"accepted": 20, "elsewhere": 5}


ONE: Final[dict[str, Any]] = {"DataType": "FLOAT32", "Sizes": [1]}
INDEX: Final[dict[str, Any]] = {"DataType": "UINT32", "Sizes": [1]}
SLICE: Final[dict[str, Any]] = {"InputTensor": ONE, "OutputTensor": ONE, "Offsets": [0], "Sizes": [2], "Strides": [1]}
TOP_K: Final[dict[str, Any]] = {"InputTensor": ONE, "OutputValueTensor": ONE, "OutputIndexTensor": INDEX}
ONE_HOT: Final[dict[str, Any]] = {"IndicesTensor": INDEX, "ValuesTensor": ONE, "OutputTensor": ONE, "Axis": 0}
LEFT: Final = "InputTensor.Sizes[0] - Offsets[0]"
NONZERO: Final[dict[str, Any]] = {
    "InputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 2, 3]},
    "OutputCountTensor": {"DataType": "UINT32", "Sizes": [1, 1, 1, 1]},
    "OutputCoordinatesTensor": {"DataType": "UINT32", "Sizes": [1, 1, 5, 2]},
}


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("SLICE", SLICE, "OutputTensor.Sizes[0]: 1 was provided, but Sizes[0] = 2 was expected"),
        ("SLICE", SLICE, f"Sizes[0]: (Sizes[0] - 1) * Strides[0] is 1, but less than {LEFT} = 1 was expected"),
        ("TOP_K", TOP_K | {"Axis": 0, "K": 3}, "K: 3 was provided, but at most InputTensor.Sizes[0] = 1 was expected"),
        ("ONE_HOT", ONE_HOT, "ValuesTensor.Sizes: prod(ValuesTensor.Sizes) is 1, but at least 2 was expected"),
        ("NONZERO_COORDINATES", NONZERO,
         "OutputCoordinatesTensor.Sizes[2]: 5 was provided, but prod(InputTensor.Sizes) = 6 was expected"),
    ],
)  # fmt: skip
def test_a_message_says_what_was_given_then_expected(name: str, fields: dict[str, Any], message: str) -> None:
    findings = check(OperatorDesc(type=name, desc=fields), "6_2")
    assert message in [f"{each.path}: {each.message}" for each in findings]


def case(name: str) -> OperatorDesc:
    """The descriptor of a recorded case."""
    (found,) = (row for row in rows_of("operator_cases.jsonl") if row["id"] == name)
    return OperatorDesc.model_validate(found["desc"])


@pytest.mark.parametrize(
    ("name", "path", "basis"),
    [
        ("convolution-backward", None, None),
        ("convolution-backward-as-forward", "InputTensor.Sizes[1]", BOTH),
        ("gather-nested", None, None),
        ("gather-crops", "OutputTensor.Sizes", Basis.DOCUMENTED),
        ("gather-without-index-dimensions", "OutputTensor.Sizes", Basis.DOCUMENTED),
        ("gather-batches-of-indices-and-input", "IndicesTensor.Sizes", Basis.DOCUMENTED),
        ("gather-indices-before", "IndicesTensor.Sizes", BOTH),
        ("gather-behind-axis", "OutputTensor.Sizes", BOTH),
        ("scales-of-other-ranks-and-sizes", "OutputScaleTensor.Sizes[1]", BOTH),
        ("axes-beyond-the-count", "OutputTensor.Sizes[0]", BOTH),
        ("scatter-nd-without-indices-dimensions", "IndicesDimensionCount", BOTH),
        ("slice1-window-over-stride", "OutputTensor.Sizes[0]", BOTH),
        ("slice1-stride-0", "InputWindowStrides[0]", BOTH),
        ("slice-grad-window-0", None, None),
        ("slice-grad-beyond-the-tensor", "InputGradientTensor.Sizes[0]", Basis.RUNTIME),
    ],
)
def test_what_page_and_runtime_say_of_sizes_is_found(name: str, path: str | None, basis: Basis | None) -> None:
    found = [(finding.path, finding.basis) for finding in check(case(name), "6_2")]
    assert (path, basis) in found if path else not found
    assert all(each in (basis, Basis.DOCUMENTED) for _, each in found)


def test_the_page_of_operators_names_those_that_a_check_does_not_look_at_whole() -> None:
    names = {operator.name for operator, _, is_whole in operator_index() if not is_whole}
    assert names == {"QUANTIZE", "DEQUANTIZE", "MULTIHEAD_ATTENTION1"}
    for name, base in BASES.items():
        desc = OperatorDesc(type=name, desc=base).desc
        assert not isinstance(desc, OperatorFields) or not not_looked_at(desc) or name in names


def test_sizes_fit_at_once_only_if_each_relation_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests decide for all shapes and equations; where one fails, each is looked at."""
    rows = [*rows_of("operator_cases.jsonl"), *rows_of("operators.jsonl.xz")[::100]]
    at_once = [check(OperatorDesc.model_validate(row["desc"]), "6_2") for row in rows]
    plan_of = shapes._plan
    monkeypatch.setattr(shapes, "_plan", lambda *key: (plan_of(*key)[0], [equations.code("0")]))
    assert [check(OperatorDesc.model_validate(row["desc"]), "6_2") for row in rows] == at_once


FUSED: dict[str, Any] = {
    "ACTIVATION_GELU": {},
    "ELEMENT_WISE_CLIP": {"Min": 0, "Max": 1},
    "ACTIVATION_SOFTMAX": {},
    "ACTIVATION_SOFTMAX1": {"AxisCount": 1, "Axes": [1]},
}


@pytest.mark.parametrize(
    ("operator", "activation", "before", "since"),
    [
        ("CONVOLUTION", "ELEMENT_WISE_CLIP", "5_2", "6_0"),
        ("GEMM", "ELEMENT_WISE_CLIP", "5_2", "6_0"),
        ("GEMM", "ACTIVATION_SOFTMAX", "6_0", "6_1"),
        ("GEMM", "ACTIVATION_SOFTMAX1", "6_0", "6_1"),
        ("GEMM", "ACTIVATION_GELU", "5_0", "5_1"),
        ("CONVOLUTION", "ACTIVATION_SOFTMAX", "6_4", None),
    ],
)
def test_an_operator_is_fused_into_another_from_the_level_of_its_entry_on(
    operator: str, activation: str, before: str, since: str | None
) -> None:
    fused = {"Type": activation, "Desc": FUSED[activation]}
    desc = gemm(activation, **fused["Desc"]) if operator == "GEMM" else convolution(4, 2, FusedActivation=fused)

    def refusals(target: str) -> list[str]:
        return [finding.message for finding in check(desc, target) if finding.rule == "DML-OPERATOR-activation"]

    (message,) = refusals(before)
    into = f"DML_OPERATOR_{activation} into DML_OPERATOR_{operator}"
    if since:
        assert message == f"fusing {into} needs DML_FEATURE_LEVEL_{since}; the target has {before}"
        assert not refusals(since)
        assert lowest_level(desc) == FeatureLevel.parse(since)
    else:
        assert message == into.replace(" into", " cannot be fused into")


def scatter(rows: int) -> OperatorDesc:
    """A SCATTER of so many rows into two."""
    data, indices = {"DataType": "FLOAT32", "Sizes": [rows, 3]}, {"DataType": "UINT32", "Sizes": [rows, 3]}
    return other("SCATTER", sizes=[2, 3], IndicesTensor=indices, UpdatesTensor=data, Axis=0)


def value_scale(channels: int) -> OperatorDesc:
    bias: list[float] = [0] * channels
    return other("VALUE_SCALE_2D", sizes=[2, 3, 1, 2], Scale=1, ChannelCount=channels, Bias=bias)


def of_tensors(name: str, **tensors: tuple[str, Sequence[int]]) -> OperatorDesc:
    """An operator of tensors alone: their types and sizes."""
    given = {f"{each}Tensor": {"DataType": data_type, "Sizes": sizes} for each, (data_type, sizes) in tensors.items()}
    return OperatorDesc.model_validate({"Type": name, "Desc": given})


def quantized_add(a: Sequence[int], b: Sequence[int]) -> OperatorDesc:
    scales = dict.fromkeys(("AScale", "BScale", "OutputScale"), ("FLOAT32", [1, 1]))
    return of_tensors(
        "ELEMENT_WISE_QUANTIZED_LINEAR_ADD", A=("UINT8", a), B=("UINT8", b), Output=("UINT8", a), **scales
    )


def dynamically_quantized(sizes: Sequence[int]) -> OperatorDesc:
    one = {"OutputScale": ("FLOAT32", [1]), "OutputZeroPoint": ("UINT8", [1])}
    return of_tensors("DYNAMIC_QUANTIZE_LINEAR", Input=("FLOAT32", [2]), Output=("UINT8", sizes), **one)


def diagonal(sizes: Sequence[int]) -> OperatorDesc:
    output: dict[str, Any] = {"DataType": "FLOAT32", "Sizes": sizes}
    numbers: dict[str, Any] = {"ValueDataType": "FLOAT32", "Value": 1, "DiagonalFillBegin": 0, "DiagonalFillEnd": 1}
    return other("DIAGONAL_MATRIX1", sizes=[2, 2], OutputTensor=output, **numbers)


def convolution(rank: int, count: int, **fields: Any) -> OperatorDesc:
    """A CONVOLUTION of tensors of 4 dimensions, but a filter of ``rank``, whose arrays have ``count`` entries."""
    arrays: dict[str, Any] = {name: [1] * count for name in ("Strides", "Dilations")}
    arrays |= {name: [0] * count for name in ("StartPadding", "EndPadding", "OutputPadding")}
    filter_tensor = {"DataType": "FLOAT32", "Sizes": [1] * rank}
    modes: dict[str, Any] = {"Mode": "CROSS_CORRELATION", "Direction": "FORWARD", "GroupCount": 1}
    return other("CONVOLUTION", sizes=[1, 1, 3, 3], FilterTensor=filter_tensor, **modes, **arrays, **fields)


@pytest.mark.parametrize(
    ("taken", "refused", "path"),
    [
        (scatter(2), scatter(3), "IndicesTensor.Sizes[0]"),
        (value_scale(3), value_scale(1), "ChannelCount"),
        (convolution(4, 3), convolution(4, 4), "DimensionCount"),
    ],
)
@pytest.mark.parametrize("target", ["5_1", "5_2", "6_2"])
def test_what_the_runtime_demands_beyond_the_pages_is_demanded(
    taken: OperatorDesc, refused: OperatorDesc, path: str, target: str
) -> None:
    """As Microsoft's runtime was measured to answer at these levels."""
    assert check(taken, target, against="runtime") == ()
    assert [finding.path for finding in check(refused, target, against="runtime")] == [path]


@pytest.mark.parametrize(("scale", "bias", "refused"), [(1, 0, False), (1, -0.0, False), (2, 0, True), (1, 1, True)])
@pytest.mark.parametrize("name", ["ELEMENT_WISE_IDENTITY", "ELEMENT_WISE_ABS"])
def test_a_scale_of_64_bits_that_changes_nothing_is_taken(name: str, scale: float, bias: float, refused: bool) -> None:
    findings = check(other(name, "INT64", ScaleBias={"Scale": scale, "Bias": bias}), "6_2")
    assert [finding.rule for finding in findings] == ["DML-OPERATOR-ScaleBias"] * refused


@pytest.mark.parametrize(
    ("desc", "field", "measured", "inferred"),
    [
        (value_scale(1), "ChannelCount", BOTH, Basis.DOCUMENTED | Basis.INFERRED),
        (quantized_add([1, 2], [1, 3]), "BTensor.Sizes", Basis.RUNTIME, Basis.INFERRED),
        (dynamically_quantized([3]), "OutputTensor.Sizes", Basis.RUNTIME, Basis.INFERRED),
        (diagonal([2, 3]), "OutputTensor.Sizes", Basis.RUNTIME, Basis.INFERRED),
    ],
)
def test_a_page_that_says_nothing_is_no_basis(desc: OperatorDesc, field: str, measured: Basis, inferred: Basis) -> None:
    for target, basis in (("6_2", measured), ("6_3", inferred)):
        (finding,) = check(desc, target)
        assert (finding.path, finding.basis) == (field, basis)
    for taken in (value_scale(3), quantized_add([1, 4], [1, 4]), dynamically_quantized([2]), diagonal([2, 2])):
        assert not check(taken, "6_2")


@pytest.mark.parametrize("against", ["both", "documentation", "runtime"])
@pytest.mark.parametrize("name", ["example-fold-1", "example-unfold-1"])
def test_what_a_page_s_own_example_breaks_is_a_note(name: str, against: Against) -> None:
    found = [(finding.rule, finding.severity) for finding in check(case(name), "6_4", against=against)]
    assert found == [("DML-OPERATOR-same-example", Severity.NOTE)] * (against != "runtime")
    assert verdict(case(name)) == (Verdict.ACCEPTED, ())
    assert lowest_level(case(name)) == FeatureLevel.parse("6_4")


@pytest.mark.parametrize(("data_type", "refused"), [("INT32", False), ("FLOAT32", False), ("UINT32", True)])
def test_past_sequence_lengths_have_the_type_of_the_page_or_of_onnx_runtime(data_type: str, refused: bool) -> None:
    names = ("QueryTensor", "KeyTensor", "ValueTensor", "OutputTensor")
    tensors = {name: {"DataType": "FLOAT32", "Sizes": [1, 2, 8]} for name in names}
    tensors["PastSequenceLengthsTensor"] = {"DataType": data_type, "Sizes": [1]}
    numbers = {"Scale": 1, "MaskFilterValue": 0, "QueryHeadCount": 2, "KeyValueHeadCount": 2, "MaskType": "NONE"}
    desc = OperatorDesc.model_validate({"Type": "MULTIHEAD_ATTENTION1", "Desc": numbers | tensors})
    assert [finding.path for finding in check(desc, "6_3")] == ["PastSequenceLengthsTensor.DataType"] * refused


def nulled(field: str, kind: str, level: FeatureLevel, tensor: str) -> Iterator[tuple[bool, OperatorDesc]]:
    """Yield valid descriptors of an operator with a field null or short, after whether they have a tensor."""
    name, _, path = field.partition(".")
    operator, random, seen = operator_named(name), Random(field), Counter[bool]()
    assert operator
    for fields in (valid(operator, level, random) for _ in range(24)):
        for each, how, changed in without(operator, fields):
            if (each, how) == (path, kind) and not seen[is_given := not tensor or bool(fields[tensor])]:
                seen[is_given] += 1
                yield is_given, OperatorDesc(type=operator.value, desc=changed)
        if len(seen) == 1 + bool(tensor):
            break
    assert seen[True], field


@pytest.mark.parametrize(("field", "kind"), crashes())
def test_a_null_that_ends_the_process_is_a_crash(field: str, kind: str) -> None:
    levels, tensor = crashes()[field, kind]
    for level in map(FeatureLevel.parse, ("5_1", "5_2", "6_2")):
        operator = operator_named(field.partition(".")[0])
        for is_given, desc in nulled(field, kind, level, tensor) if operator and operator.level <= level else ():
            error = DmlError(check(desc, level))
            assert error.crash == (level in levels and is_given), (field, level)
            assert error.hresult == (None if error.crash else HRESULT.E_INVALIDARG)


def test_a_crash_at_a_level_that_was_not_asked_is_inferred() -> None:
    for level, crash in (("5_2", False), ("6_0", True), ("6_2", True), ("6_4", True)):
        _, desc = next(nulled("ELEMENT_WISE_QUANTIZE_LINEAR.ScaleTensor", "null", FeatureLevel.parse("6_2"), ""))
        (finding,) = [each for each in check(desc, level) if each.path == "ScaleTensor"]
        assert finding.crash == crash
        assert bool(finding.basis & Basis.INFERRED) == (level in ("6_0", "6_4"))


def test_nothing_is_computed_of_a_null_array() -> None:
    _, desc = next(nulled("REDUCE.Axes", "null", FeatureLevel.parse("6_2"), ""))
    assert [finding.path for finding in check(desc, "6_2")] == ["Axes"]


def test_what_page_and_runtime_demand_of_a_field_is_one_finding() -> None:
    (finding,) = check(convolution(5, 2), "6_2")
    assert (finding.path, finding.basis) == ("FilterTensor.DimensionCount", BOTH)
    (finding,) = check(gather("UINT32", IndexDimensions=7), "6_2")
    assert finding.message.startswith("7 was provided, but at most IndicesTensor.DimensionCount = 4 was expected")
    assert finding.basis == BOTH


@pytest.mark.parametrize(
    ("name", "given", "cast"),
    [("CAST", "INT4", "INT8"), ("ACTIVATION_RELU", "FLOAT64", "FLOAT32"), ("ACTIVATION_RELU", "UINT64", "INT32")],
)
def test_the_cast_is_to_the_nearest_type(name: str, given: str, cast: str) -> None:
    suggestions = {finding.suggestion for finding in check(other(name, given), "6_2")}
    assert all(str(each).startswith(f"cast it to {cast}") for each in suggestions)
    assert suggestions


WINDOWS: Final = "(InputTensor.Sizes[2] + StartPadding[0] + EndPadding[0] - WindowSize[0]) // Strides[0] + 1"
HIDDEN: Final = "where hidden_size is RecurrenceTensor.Sizes[2] / 3"
GATHERED: Final = "InputTensor's Sizes, with IndicesTensor's last IndexDimensions in place of that along Axis"


@pytest.mark.parametrize(
    ("name", "message", "suggestion"),
    [
        ("gemm-inner-sizes", "ATensor.Sizes[3] is 4; BTensor.Sizes[2] is 5: both are K, the inner size", "set it to 4"),
        ("gemm-scalar-c", "{1, 5} was provided, but OutputTensor has {3, 5}",
         "give it OutputTensor's Sizes, with strides of 0"),
        ("gru-hidden-size", f"32 was provided, but 6 * hidden_size = 30 was expected, {HIDDEN}", "set it to 30"),
        ("quantize-scalar-scale", "{1} was provided, but InputTensor has {2}",
         "give it InputTensor's Sizes, with strides of 0"),
        ("attention-values", "5 was provided, but valueSequenceLength = 6 was expected", "set it to 6"),
        ("convolution-output-padding-too-large",
         "3 was provided, but less than OutputTensor.Sizes[2] = 3 was expected", None),
        ("pooling-rounded-up", f"3 was provided, but {WINDOWS} = 2 was expected", "set it to 2"),
        ("batch-normalization-channels", "3 was provided, but 1 or InputTensor.Sizes[1] = 2 was expected",
         "set it to 2"),
        ("gather-behind-axis", f"{{2, 3, 5}} was provided, but {{2, 3, 4}} was expected: {GATHERED}",
         "set Sizes to {2, 3, 4}"),
        ("axes-beyond-the-count", "1 was provided, but InputTensor.Sizes[0] = 2 was expected", "set it to 2"),
    ],
)  # fmt: skip
def test_a_message_names_what_sizes_are_and_a_way_out(name: str, message: str, suggestion: str | None) -> None:
    finding, *others = check(case(name), "6_2")
    assert (finding.message, finding.suggestion) == (message, suggestion)
    assert {each.rule for each in others} <= {finding.rule}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pooling", Verdict.ACCEPTED),
        ("pooling-dilated", Verdict.ACCEPTED),
        ("pooling-rounded-up", Verdict.UNDOCUMENTED),
        ("pooling-channels", Verdict.REFUSED),
        ("padding-modulo", Verdict.UNDOCUMENTED),
        ("reduce-unknown-function", Verdict.UNDOCUMENTED),
        ("fused-swish-gemm", Verdict.UNDOCUMENTED),
        ("attention-stacked-bias-of-another-type", Verdict.UNDOCUMENTED),
        ("attention-stacked-past-values-of-another-size", Verdict.UNDOCUMENTED),
        ("attention-stacked-past-values-of-the-same-size", Verdict.ACCEPTED),
        ("roi-align-grad-input-of-another-type", Verdict.UNDOCUMENTED),
        ("roi-align-grad-input-and-output-of-other-types", Verdict.REFUSED),
        ("attention-stacked-output-of-another-type", Verdict.REFUSED),
        ("attention-bias-of-another-type", Verdict.REFUSED),
        ("convolution-output-padding-of-the-last-dimension", Verdict.UNDOCUMENTED),
        ("convolution-output-padding-beyond-the-last-dimension", Verdict.REFUSED),
        ("fused-softplus-gemm", Verdict.ACCEPTED),
        ("fused-clip-scale-2-bias-0", Verdict.UNDOCUMENTED),
        ("fused-clip-scale-2-bias-1", Verdict.REFUSED),
    ],
)
def test_the_verdict_follows_page_and_runtime(name: str, expected: Verdict) -> None:
    assert verdict(case(name), "6_2") == (expected, ())


def test_an_operator_may_be_left_out_if_an_output_has_a_size_of_0() -> None:
    zeros = [each for each in check(gather("UINT32", sizes=[0])) if "zero" in each.rule]
    advice = {each.path.startswith("Output"): each.suggestion for each in zeros}
    assert advice == {False: None, True: "leave the operator out if its output is empty"}


# devices


def test_the_compiler_refuses_what_creation_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask's type without the mask; the descriptor is one that DirectML refuses at once, as nothing else may be."""
    device = Device("6_2")
    with pytest.raises(DmlError) as created:
        device.create_operator(attention("BOOLEAN"))
    assert "DML-OPERATOR-MaskTensor" not in [finding.rule for finding in created.value.findings]
    operator = device.create_operator(gather("UINT32"))
    monkeypatch.setattr(operator, "desc", attention("BOOLEAN"))
    with pytest.raises(DmlError) as compiled:
        device.compile_operator(operator)
    assert [finding.rule for finding in compiled.value.findings] == ["DML-OPERATOR-MaskTensor"]


def test_several_inputs_that_directml_owns_are_initialised_side_by_side() -> None:
    output = {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 3]}
    owned = output | {"Flags": "OWNED_BY_DML"}
    add = OperatorDesc(type="ELEMENT_WISE_ADD", desc={"ATensor": owned, "BTensor": owned, "OutputTensor": output})
    device = Device(raise_on_removal=True)
    given = BufferArrayBinding([BufferBinding(Buffer.wrap(bytearray([number] * 12))) for number in (1, 2)])
    (persistent,) = devices.initialise(device, [devices.compiled(device, add)], [given])
    assert persistent.buffer
    assert persistent.buffer.memory.tolist() == [1] * 12 + [0] * 4 + [2] * 12


def test_an_index_out_of_range_is_a_finding_and_nothing_is_written() -> None:
    given, indices, output = np.zeros(2, np.float32), np.array([0, 2], np.uint32), np.full(2, 7, np.float32)
    buffers = {"InputTensor": given, "IndicesTensor": indices, "OutputTensor": output}
    device = Device()
    with pytest.raises(DmlError, match=r"\[DML-EXECUTE-index\] IndicesTensor: element \[0, 0, 0, 1\] is 2; an index"):
        device.execute(gather("UINT32"), buffers)
    assert device.removal is None
    assert (output == 7).all()


@pytest.mark.dml(expects_removal=True)
def test_a_null_tensor_has_a_binding_of_type_none() -> None:
    """As IDMLBindingTable has it in each of the three builds that were asked."""
    given, empty = BufferBinding(Buffer(16)), BufferBinding(None)

    def bind(bindings: Sequence[BindingLike], *, to_initializer: bool = False) -> None:
        device = Device(raise_on_removal=True)
        operator = devices.compiled(device, gemm())
        bound = device.create_operator_initializer([operator]) if to_initializer else operator
        devices.table(device, bound).bind_inputs(bindings)

    bind([given, given, BindingDesc()])
    bind([BufferArrayBinding([empty] * 3)], to_initializer=True)
    with pytest.raises(DmlError, match="2 was provided, but 3 was expected"):
        bind([given, given])
    with pytest.raises(DmlError, match="CTensor: is bound at execution, though the operator's is null"):
        bind([given] * 3)
    with pytest.raises(DmlError, match="DML-BINDING"):
        bind([BufferArrayBinding([empty] * 2)], to_initializer=True)


# what is shown


def test_levels_of_an_operator_shows_its_rows(call: Call) -> None:
    printed = call("levels", "GATHER").stdout
    assert printed.startswith("DML_OPERATOR_GATHER (67), since 1_0 (DirectML 1.0, windows-10-1903)\n")
    assert "\n  from 1_0:\n" in printed
    assert "    IndicesTensor: 1 to 8 dimensions; UINT32 INT32 UINT64 INT64\n" in printed
    assert "  Axis < DimensionCount of InputTensor\n" in printed
    assert "  OutputTensor has InputTensor's Sizes, with IndicesTensor's last IndexDimensions in place of" in printed
    record = json.loads(call("levels", "gather", "--format", "json").stdout)
    assert record["tables"][0]["documented"]["1_0"]["IndicesTensor"]["data_types"] == ["UINT32"]
    assert "Function SUM" in call("levels", "REDUCE").stdout
    shapes = call("levels", "GEMM").stdout
    assert "ATensor … M K if TransA is NONE, ATensor … K M if TransA is TRANSPOSE, BTensor … K N" in shapes
    assert "OutputTensor … M N\n  M is the rows, K is the inner size, N is the columns\n" in shapes
    assert "WeightTensor 1 num_directions 4*hidden_size input_size, BiasTensor" in call("levels", "LSTM").stdout
    for wrong, meant in (("GATHR", "GATHER"), ("gelu", "ACTIVATION_GELU"), ("DML_OPERATOR_RESAMPL3", "RESAMPLE3")):
        assert f"did you mean {meant}?" in errors_of(call, "levels", wrong)


@pytest.mark.parametrize("name", ["RESAMPLE3", "DML_OPERATOR_RESAMPLE3", "resample3"])
def test_levels_of_an_operator_begins_with_what_is_known_of_it(call: Call, name: str) -> None:
    printed = call("levels", name).stdout
    since, created, executed, departures, of_nodes, *rows = printed.splitlines()
    assert since == "DML_OPERATOR_RESAMPLE3 (175), since 6_4 (DirectML 1.15, no Windows)"
    assert created == "  ONNX Runtime 1.19 and later creates it of Resize, Upsample"
    assert executed == "  executed: values within 1e-05 relative, 1e-06 absolute by its page"
    assert departures == "  known departures:"
    assert "ORT-KNOWN-resize-antialias" in of_nodes
    assert "ORT-KNOWN-resize-nearest-tie" not in of_nodes, "fixed before a release creates RESAMPLE3"
    assert rows[0] == "  from 6_4:"
    record = json.loads(call("levels", name, "--format", "json").stdout)
    assert record["onnx"][0]["operator"] == "Resize"
    assert record["onnx"][0]["releases"][0] == "1.19"
    assert "ORT-KNOWN-resize-antialias" in record["known"]


def test_levels_of_an_operator_says_that_nothing_creates_it_and_no_departure_is_known(call: Call) -> None:
    printed = call("levels", "ELEMENT_WISE_THRESHOLD").stdout
    assert "\n  ONNX Runtime creates it of no node\n  executed: bytes\n  known departures: none\n" in printed
    assert "\n    DML-KNOWN-one-hot-uint64: it may have a bug with UINT64" in call("levels", "ONE_HOT").stdout


def test_what_levels_says_of_an_operator_fits_on_a_screen() -> None:
    for operator in operators().values():
        most = 80 if operator.name == "REDUCE" else 40  # rows by Function
        assert len(operator_lines(operator).splitlines()) <= most, operator.name
