"""``check --via ort`` judges the operators that ONNX Runtime's provider creates of each node on DirectML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from dml_tile import Target, check_model
from dml_tile.back_ends import model_descriptions
from dml_tile.back_ends.deployment import deployed
from dml_tile.back_ends.described_node import DescriptionOutcome, NodePlace
from dml_tile.back_ends.descriptions import described_node
from dml_tile.checks.described import Judged, judge
from dml_tile.checks.verdict import Verdict
from tests.helpers.command_line import Call
from tests.helpers.kernel_nodes import kernel_node
from tests.helpers.onnx_graphs import model, placed_model, tensor, typed
from tests.helpers.paths import EXAMPLES
from tests.test_model_nodes import save

WINDOWS_11: Final = "windows-11-23h2"
NEW: Final = "onnxruntime-directml-1.24.4"
SHAPE: Final = [2, 3]
OF_RANK_9: Final = "ONNX Runtime's provider refuses it before DirectML is asked: 9 dimensions; at most 8 are taken"
OF_CONSTANT: Final = "Mul-13 needs nodes of type CONSTANT (6_2) in its graph, for constants below 8 bytes"

CASES: Final[dict[str, tuple[str, dict[str, Any], str, str, str, str]]] = {
    # a model, its fields, a target, its outcome and verdicts, and its finding
    "sizes that are known at run time only": (
        "y = Softmax(x)",
        {"inputs": [typed("x", ["N", 3])]},
        NEW,
        "it loads so far",
        "1 known at run time only",
        "note[ORT-OPERATOR-run-time] 1 node has fields that are known at run time only",
    ),
    "dimensions that the provider refuses": (
        "y = Transpose(x)",
        {"inputs": [typed("x", [1] * 8 + [2])]},
        NEW,
        f"the session fails: Transpose-13: {OF_RANK_9}",
        "1 refused",
        f"error[ORT-OPERATOR-provider] Transpose-13: {OF_RANK_9} (node 0)",
    ),
    "a constant that is a node of the graph": (
        "y = Mul(x, two)",
        {"initializer": [tensor("two", [2.0], "float32")]},
        WINDOWS_11,
        f"the session fails: {OF_CONSTANT}",
        "1 refused",
        f"error[ORT-OPERATOR-graph] {OF_CONSTANT} (node 0)",
    ),
    "a constant beside sizes that are known at run time only": (
        "y = Mul(x, two)",
        {"initializer": [tensor("two", [2.0], "float32")], "inputs": [typed("x", ["N"])]},
        WINDOWS_11,
        "it loads so far",
        "1 known at run time only",
        "",
    ),
    "a kernel that creates no operator": ("s = Shape(x); y = Size(x)", {}, NEW, "it loads", "", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_a_node_is_judged_by_the_operators_that_its_provider_creates(check: Call, case: str) -> None:
    text, fields, target, outcome, verdicts, finding = CASES[case]
    result = check(save(text, **{"inputs": [typed("x", SHAPE)], **fields}), "--via", "ort", "-t", target)
    first, nodes, *others = result.stdout.splitlines()
    assert first.endswith(f": {outcome}"), result.stdout
    assert nodes.endswith(verdicts), result.stdout
    assert any(line.startswith(f"  {finding}") for line in others) or not finding, result.stdout
    assert (result.exit_code == 1) == finding.startswith("error"), result.stdout


BESIDE: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    # nodes beside those of which the provider makes a graph that is refused
    "a vector that is an input": ("y = MatMul(x, v)", NEW, {"inputs": [typed("x", SHAPE), typed("v", [3])]}),
    "a vector that is an initialiser": ("y = MatMul(x, v)", NEW, {"initializer": [tensor("v", [1.0] * 3, "float32")]}),
    "a vector that the CPU makes": (
        "v = RandomNormalLike(w); y = MatMul(x, v)",
        *(NEW, {"inputs": [typed("x", SHAPE), typed("w", [3])]}),
    ),
    "a constant of 12 bytes": ("y = Mul(x, c)", WINDOWS_11, {"initializer": [tensor("c", [2.0] * 3, "float32")]}),
}


@pytest.mark.parametrize("case", BESIDE)
def test_a_node_of_another_graph_is_accepted(check: Call, case: str) -> None:
    text, target, fields = BESIDE[case]
    result = check(save(text, **{"inputs": [typed("x", SHAPE)], **fields}), "--via", "ort", "-t", target)
    assert (result.exit_code, ": it loads\n  1 node on DirectML: 1 accepted" in result.stdout) == (0, True)


F16_SCALES: Final = "float16[]= uint8[]="
NEVER_TAKEN: Final = {
    # nodes that the provider takes, and the operator whose descriptor DirectML refuses
    "GatherElements-13 axis=1: float32[3,4] int64[2,2] -> float32[2,2]": "GATHER_ELEMENTS",
    "ScatterElements-16 axis=1: float32[3,4] int64[2,2] float32[2,2] -> float32[3,4]": "SCATTER",
    "Pow-13: int32[2,3] int32[]=2 -> int32[2,3]": "ELEMENT_WISE_CONSTANT_POW",
    "ReduceMean-18: int32[2,3] int64[1]=1 -> int32[2,1]": "REDUCE",
    "ReduceL2-18: int32[2,3] int64[1]=1 -> int32[2,1]": "REDUCE",
    "ReduceLogSum-18: int32[2,3] int64[1]=1 -> int32[2,1]": "REDUCE",
    "ReduceLogSumExp-18: int32[2,3] int64[1]=1 -> int32[2,1]": "REDUCE",
    "MatMul-13: float32[2,2,2,2,3] float32[2,2,2,3,4] -> float32[2,2,2,2,4]": "GEMM",
    "MatMulInteger-10: uint8[2,2,2,2,3] uint8[2,2,2,3,4] -> int32[2,2,2,2,4]": "MATRIX_MULTIPLY_INTEGER",
    "ConvInteger-10: uint8[1,1,3,3,3] uint8[1,1,1,1,1] -> int32[1,1,3,3,3]": "CONVOLUTION_INTEGER",
    "QLinearMatMul-10: uint8[2,2,2,2,3] float32[]= uint8[]= uint8[2,2,2,3,4] float32[]= uint8[]= float32[]= uint8[]= "
    "-> uint8[2,2,2,2,4]": "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
    f"QLinearMatMul-21: uint8[2,3] {F16_SCALES} uint8[3,4] {F16_SCALES} {F16_SCALES} -> uint8[2,4]": (
        "QUANTIZED_LINEAR_MATRIX_MULTIPLY"
    ),
    "Resize-13: float32[2,2,2,2,2] _ float32[5]=2,2,2,2,2 -> float32[4,4,4,4,4]": "RESAMPLE3",
}
TAKEN: Final = [
    "GatherElements-13 axis=1: float32[3,4] int64[3,2] -> float32[3,2]",
    "Pow-13: int32[2,3] int32[2,3] -> int32[2,3]",
    "Pow-13: float32[2,3] float32[]=2 -> float32[2,3]",
    "ReduceMean-18: float32[2,3] int64[1]=1 -> float32[2,1]",
    "ReduceSum-13: int32[2,3] int64[1]=1 -> int32[2,1]",
    "MatMul-13: float32[2,2,2,3] float32[2,2,3,4] -> float32[2,2,2,4]",
    "Resize-13: float32[1,2,2,2,2] _ float32[5]=1,2,2,2,2 -> float32[1,4,4,4,4]",
]


def judged(text: str) -> Judged:
    described = described_node(NodePlace(""), kernel_node(text))
    return next(judge(described, [deployed(Target.parse(NEW))], "runtime"))


@pytest.mark.parametrize("text", NEVER_TAKEN)
def test_a_node_that_directml_takes_in_no_release_is_refused(text: str) -> None:
    reason = judged(text).reason
    assert reason, text
    assert reason.rule.startswith("DML-OPERATOR-")
    assert reason.why.partition(":")[0] == NEVER_TAKEN[text]


@pytest.mark.parametrize("text", TAKEN)
def test_a_node_beside_those_is_accepted(text: str) -> None:
    assert judged(text).verdict is Verdict.ACCEPTED


def test_the_example_says_what_fails_on_windows_11_and_what_to_ship(check: Call) -> None:
    failure = "Softmax-13 'softmax' needs ACTIVATION_SOFTMAX1 (5_1)"
    shipped = "ship DirectML 1.15.4, as in onnxruntime-directml 1.24, beside onnxruntime.dll\n"
    options = str(EXAMPLES / "models/classifier.onnx"), "--via", "ort", "-t", WINDOWS_11
    printed = check(*options).stdout
    assert f": it loads; running fails: {failure}\n" in printed
    assert f"  error[ORT-OPERATOR-level] {failure} (node 8)\n    try: {shipped}" in printed
    fixed = check(*options, "--dim", "batch=1").stdout
    assert f": it loads; running fails: {failure}\n" in fixed, "the session does not know the sizes that are given"


def test_given_sizes_are_the_run_s_and_put_no_node_into_a_graph(check: Call) -> None:
    two: dict[str, Any] = {"initializer": [tensor("two", [2.0], "float32")], "inputs": [typed("x", ["N"])]}
    options = save("y = Mul(x, two)", **two), "--via", "ort", "-t", WINDOWS_11
    assert ": it loads so far\n" in check(*options).stdout
    assert ": it loads\n  1 node on DirectML: 1 accepted\n" in check(*options, "--dim", "N=3").stdout
    assert OF_CONSTANT in check(save("y = Mul(x, two)", **two | {"inputs": [typed("x", [3])]}), *options[1:]).stdout


def test_nodes_that_are_not_described_leave_open_whether_the_model_loads(check: Call) -> None:
    path = save("a = STFT(x, s); y = Relu(a)", inputs=[typed("x", [1, 8, 1])], initializer=[tensor("s", 2)], opset=17)
    printed = check(path, "--via", "ort-1.20", "-t", "6_4").stdout
    assert ": every node has a provider; 1 node on DirectML is not described\n" in printed
    assert ": 1 known at run time only, 1 not described\n" in printed
    assert "note[ORT-OPERATOR-not-described] STFT-17: it is not described (node 0)\n" in printed


def test_a_refusal_has_the_id_of_directml_s_rule(check: Call) -> None:
    path = save("a = MatMul(x, x); y = MatMul(a, a)", inputs=[typed("x", [1, 1, 2, 2, 2])])
    options, rule = (path, "--via", "ort", "-t", NEW), "DML-OPERATOR-DimensionCount"
    assert f"error[{rule}] MatMul-13: GEMM: ATensor.DimensionCount: a dimension count of 5" in check(*options).stdout
    assert check(*options, "--ignore", rule).exit_code == 0
    (result,) = json.loads(check(*options, "--format", "sarif").stdout)["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == (rule, "error")
    assert "(2 nodes, first node 0, at " in result["message"]["text"]
    (source,) = json.loads(check(*options, "--format", "json").stdout)["sources"]
    assert [error["rule"] for error in source["errors"]] == [rule]
    assert check(*options, "--fail-on", "error", "--format", "junit").stdout.count("<failure") == 1


def test_refusals_of_one_field_are_one_kind_whatever_the_sizes(check: Call) -> None:
    sizes = {"a": [1, 1, 2, 2, 2], "b": [1, 1, 1, 3, 3, 3]}
    path = save("c = MatMul(a, a); y = MatMul(b, b)", inputs=[typed(name, each) for name, each in sizes.items()])
    options = path, "--via", "ort", "-t", NEW
    printed = check(*options).stdout
    assert printed.count("error[") == 1
    assert "a dimension count of 5 was provided, but 2 to 4 was expected (2 nodes, first node 0)" in printed
    assert check(*options, "--write-baseline", "b.json").exit_code == 0
    (entry,) = json.loads(Path("b.json").read_text())["findings"]
    assert entry["reason"].startswith("GEMM: ATensor.DimensionCount: a dimension count of … was provided")
    assert check(*options, "--baseline", "b.json").exit_code == 0


def test_json_and_python_have_the_operators_and_the_verdict_of_each_node(check: Call) -> None:
    path = save("a = Softmax(x); y = Det(x)", inputs=[typed("x", [3, 3])])
    output = json.loads(check(path, "--via", "ort", "-t", f"{WINDOWS_11},{NEW}", "--format", "json").stdout)
    assert [(each["operators"], each["verdict"]) for each in output["nodes"]] == [
        *((["ACTIVATION_SOFTMAX1"], "refused"), ([], None)),
        *((["ACTIVATION_SOFTMAX1"], "accepted"), ([], None)),
    ]
    nodes = check_model(path, WINDOWS_11, via="ort").nodes
    assert nodes
    assert nodes.verdicts == [{Verdict.REFUSED: 1}]


def test_the_descriptors_of_a_model_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_descriptions, "MAX_DESCRIBED_BYTES", 300)
    part = placed_model(model("a = Relu(x); b = Exp(a); c = Neg(b); d = Relu(c); y = Abs(d)"), NEW)
    outcomes = [part.descriptions[number].outcome for number in part.described[0]]
    assert [each is DescriptionOutcome.DESCRIBED for each in outcomes] == [True, False, False, True, False]
    assert {*outcomes} == {DescriptionOutcome.DESCRIBED, DescriptionOutcome.NOT_DESCRIBED}
