"""``check --via ort`` judges the operators that ONNX Runtime's provider creates of each node on DirectML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from dml_tile import PlacedModel, Target, check_model
from dml_tile.back_ends import model_descriptions
from dml_tile.back_ends.deployment import deployed
from dml_tile.back_ends.described_node import DescriptionOutcome
from dml_tile.checks.verdict import Verdict
from dml_tile.readers.model_names import KnownShapes
from dml_tile.readers.onnx.tiles import read_nodes
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import tensor, typed
from tests.helpers.paths import EXAMPLES
from tests.test_model_nodes import save

WINDOWS_11: Final = "windows-11-23h2"
NEW: Final = "onnxruntime-directml-1.24.4"
SHAPE: Final = [2, 3]

CASES: Final[dict[str, tuple[str, dict[str, Any], str, str, str]]] = {
    # a model, its fields, a target, the end of its summary, and its finding
    "an operator that the target has": ("y = Softmax(x)", {}, NEW, "(1 accepted); it loads", ""),
    "an operator that the target lacks": (
        "y = Softmax(x)",
        {},
        WINDOWS_11,
        "(1 refused); it does not load",
        "error[ORT-OPERATOR-level] Softmax-13: it needs ACTIVATION_SOFTMAX1 (5_1), which the target's DirectML lacks",
    ),
    "an operator that a run lacks": (
        "y = Softmax(x)",
        {"inputs": [typed("x", ["N", 3])]},
        WINDOWS_11,
        "(1 refused); it loads; running it fails",
        "error[ORT-OPERATOR-level] Softmax-13",
    ),
    "sizes that are known at run time only": (
        "y = Softmax(x)",
        {"inputs": [typed("x", ["N", 3])]},
        NEW,
        "(1 known at run time only); it loads so far",
        "note[ORT-OPERATOR-run-time] Softmax-13: its fields are known at run time only; it creates ACTIVATION_SOFTMAX1",
    ),
    "a descriptor that DirectML refuses": (
        "y = MatMul(x, x)",
        {"inputs": [typed("x", [1, 1, 2, 2, 2])]},
        NEW,
        "(1 refused); it does not load",
        "error[ORT-OPERATOR-descriptor] MatMul-13: GEMM: ATensor.DimensionCount: a dimension count of 5 was provided",
    ),
    "dimensions that the provider refuses": (
        "y = Transpose(x)",
        {"inputs": [typed("x", [1] * 8 + [2])]},
        NEW,
        "(1 refused); it does not load",
        "error[ORT-OPERATOR-provider] Transpose-13: ONNX Runtime's provider refuses it before DirectML is asked",
    ),
    "a vector on the right that another node makes": (
        "v = Abs(w); y = MatMul(x, v)",
        {"inputs": [typed("x", SHAPE), typed("w", [3])]},
        NEW,
        "(1 accepted, 1 refused); it does not load",
        "error[ORT-OPERATOR-graph] MatMul-13: CompileGraph refuses it: the output has a TotalTensorSizeInBytes of 12",
    ),
    "a vector on the right that is an input": (
        "y = MatMul(x, v)",
        {"inputs": [typed("x", SHAPE), typed("v", [3])]},
        NEW,
        "(1 accepted); it loads",
        "",
    ),
    "a vector on the right that is an initialiser": (
        "y = MatMul(x, v)",
        {"inputs": [typed("x", SHAPE)], "initializer": [tensor("v", [1.0] * 3, "float32")]},
        NEW,
        "(1 accepted); it loads",
        "",
    ),
    "a vector on the right that the CPU makes": (
        "v = RandomNormalLike(w); y = MatMul(x, v)",
        {"inputs": [typed("x", SHAPE), typed("w", [3])]},
        NEW,
        "it loads; 1 value crosses between DirectML and the CPU",
        "",
    ),
    "a constant that is a node of the graph": (
        "y = Mul(x, two)",
        {"initializer": [tensor("two", [2.0], "float32")]},
        WINDOWS_11,
        "(1 refused); it does not load",
        "error[ORT-OPERATOR-graph] Mul-13: CompileGraph refuses it: DML_GRAPH_NODE_TYPE_CONSTANT needs",
    ),
    "a constant that the graph's input is": (
        "y = Mul(x, two)",
        {"initializer": [tensor("two", [2.0] * 3, "float32")]},
        WINDOWS_11,
        "(1 accepted); it loads",
        "",
    ),
    "a constant beside sizes that are known at run time only": (
        "y = Mul(x, two)",
        {"initializer": [tensor("two", [2.0], "float32")], "inputs": [typed("x", ["N"])]},
        WINDOWS_11,
        "(1 known at run time only); it loads so far",
        "",
    ),
    "a kernel that creates no operator": ("s = Shape(x); y = Size(x)", {}, NEW, "; it loads", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_a_node_is_judged_by_the_operators_that_its_provider_creates(check: Call, case: str) -> None:
    text, fields, target, summary, finding = CASES[case]
    result = check(save(text, **{"inputs": [typed("x", SHAPE)], **fields}), "--via", "ort", "-t", target)
    first, *others = result.stdout.splitlines()
    assert first.endswith(summary), result.stdout
    assert any(line.startswith(f"  {finding}") for line in others) or not finding, result.stdout
    assert (result.exit_code == 1) == finding.startswith("error"), result.stdout


@pytest.mark.parametrize(
    ("target", "advice"),
    [
        (WINDOWS_11, "ship DirectML 1.15.4, as in onnxruntime-directml 1.24, beside onnxruntime.dll"),
        ("windows-11-22h2", "ship DirectML 1.15.4, as in onnxruntime-directml 1.24, beside onnxruntime.dll"),
    ],
)
def test_the_way_out_names_the_directml_that_the_release_was_built_with(check: Call, target: str, advice: str) -> None:
    printed = check(save("y = Softmax(x)", inputs=[typed("x", SHAPE)]), "--via", "ort", "-t", target).stdout
    assert f"    try: {advice}\n" in printed
    assert "1.8.0 or later" not in printed


def test_the_example_says_what_fails_on_windows_11(check: Call) -> None:
    printed = check(str(EXAMPLES / "models/classifier.onnx"), "--via", "ort", "-t", WINDOWS_11).stdout
    assert "it loads; running it fails; 3 values cross between DirectML and the CPU\n" in printed
    assert "(node 8 'softmax'" in printed
    fixed = check(str(EXAMPLES / "models/classifier.onnx"), "--via", "ort", "-t", WINDOWS_11, "--dim", "batch=1").stdout
    assert "; it does not load; " in fixed, "a node of known shapes fails the session"


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


@pytest.mark.parametrize("release", ["1.14.1", "1.15.1", "1.16.3", "1.17.3", "1.18.1", "1.19.2", "1.20.1", "1.24.4"])
def test_no_release_is_refused_for_the_level_of_an_operator_over_its_own_directml(check: Call, release: str) -> None:
    weights = [tensor("w", [1.0] * 3, "float32"), tensor("scales", [1.0, 2.0], "float32")]
    text = "a = Softmax(x); b = LayerNormalization(a, w); y = Resize(b, none, scales)"
    path = save(text.replace("none", ""), inputs=[typed("x", SHAPE)], initializer=weights, opset=17)
    printed = check(path, "--via", "ort", "-t", f"onnxruntime-directml-{release}").stdout
    assert "3 nodes on DirectML (3 accepted)" in printed


def test_the_descriptors_of_a_model_are_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(model_descriptions, "MAX_DESCRIBED_BYTES", 300)
    path = save("a = Relu(x); b = Exp(a); c = Neg(b); d = Relu(c); y = Abs(d)", inputs=[typed("x", SHAPE)])
    part, *_ = read_nodes(Path(path), KnownShapes(), [deployed(Target.parse(NEW))])
    assert isinstance(part, PlacedModel)
    outcomes = [part.descriptions[number].outcome for number in part.described[0]]
    assert outcomes == [
        DescriptionOutcome.DESCRIBED,
        *[DescriptionOutcome.NOT_DESCRIBED] * 2,
        DescriptionOutcome.DESCRIBED,
        DescriptionOutcome.NOT_DESCRIBED,
    ]
