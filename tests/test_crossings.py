"""Values that cross between DirectML and the CPU: one that is made in one memory and read in the other, once each."""

from __future__ import annotations

import json
from typing import Final

import onnx
import pytest

from dml_tile.back_ends.placement import Crossing, Placement
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import parsed, placed_model

NEWEST: Final = "onnxruntime-directml-1.24.4"
# Det and Unique have no kernel of DirectML's; Relu and Abs have
MIXED: Final = "(float[2,2] x) => (float[n] y) { a = Relu(x); b = Det(a); c = Abs(b); y = Unique(c) }"


TO_CPU, TO_DIRECTML = Placement.CPU, Placement.DIRECTML


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        pytest.param(MIXED, [("a", TO_CPU), ("b", TO_DIRECTML), ("c", TO_CPU)], id="there and back"),
        pytest.param("(float[2] x) => (float[2] y) { a = Relu(x); y = Abs(a) }", [], id="all on DirectML"),
        pytest.param("(float[2,2] x) => (float y) { a = Det(x); y = Identity(a) }", [], id="all on the CPU"),
        pytest.param(
            "(float[2,2] x) => (float y, float z) { a = Relu(x); y = Det(a); z = Det(a) }", [("a", TO_CPU)],
            id="one value of two readers",
        ),
        pytest.param(
            "(float[2,2] x) => (float y, float[2,2] z) { y = Det(x); z = Relu(x) }", [("x", TO_DIRECTML)],
            id="an input that is read on both",
        ),
        pytest.param(
            "(float[2,2] x) => (float y, float[2,2] z) <float[2,2] w = {1, 0, 0, 1}> { a = Add(x, w); z = Relu(a); "
            "b = MatMul(x, w); y = Det(w) }", [], id="an initialiser",
        ),
        pytest.param(
            "(float[2,3] x, float[6] v) => (float[a,b] y) { s = Shape(x); y = Reshape(v, s) }", [],
            id="a shape, which both kernels leave on the CPU",
        ),
        pytest.param(
            "(float[2,3] x, int64[2] v) => (float[a,b] y) { s = Unique(v); y = Reshape(x, s) }", [],
            id="a shape computed on the CPU",
        ),
        pytest.param(
            "(float[2,3] x, float[2] v) => (float[a,b] y) { u = Relu(v); s = Cast<to = 7>(u); y = Reshape(x, s) }",
            [("s", TO_CPU)], id="a shape computed on DirectML",
        ),
        pytest.param(
            "(float[2,2] x, bool c) => (float y) { a = Relu(x); y = If (c) <"
            "then_branch = t () => (float u) { u = Det(a) }, "
            "else_branch = e () => (float v) { v = ReduceMax<keepdims = 0>(a) }> }",
            [("a", TO_CPU)], id="a value that a body reads",
        ),
        pytest.param(
            "(float[2,2] x) => (float[2,2] y) { d = Dropout(x); a = Relu(d); b = Identity(a); "
            "i = Det(b); y = Add(b, i) }",
            [("a", TO_CPU), ("i", TO_DIRECTML)], id="the value that a removed node passes on",
        ),
    ],
)  # fmt: skip
def test_a_value_crosses_if_it_is_made_in_one_memory_and_read_in_the_other(
    graph: str, expected: list[tuple[str, Placement]]
) -> None:
    assert [*placed_model(parsed(graph, 18), NEWEST).crossings_at(0)] == [Crossing(*each) for each in expected]


def output(check: Call, graph: str, *arguments: str, opset: int = 18) -> str:
    onnx.save(parsed(graph, opset), "a.onnx")
    return check("a.onnx", "--via", "ort", *arguments).stdout


def test_nothing_crosses_in_a_model_that_is_not_placed(check: Call) -> None:
    assert " cross" not in output(check, MIXED, "-t", NEWEST, opset=99)
    assert " cross" not in output(check, MIXED, "-t", "2_0")


def test_the_summary_counts_the_values_that_cross_and_verbose_names_them(check: Call) -> None:
    plain = output(check, MIXED, "-t", NEWEST)
    assert "; 3 values cross between DirectML and the CPU\n" in plain
    assert "'a'" not in plain
    verbose = output(check, MIXED, "-t", NEWEST, "--verbose")
    for name, to in ("a", "the CPU"), ("b", "DirectML"), ("c", "the CPU"):
        assert f"  value '{name}' crosses to {to}\n" in verbose


def test_json_names_the_values_that_cross_at_each_target(check: Call) -> None:
    targets = "-t", f"{NEWEST},2_0"
    expected = [
        {"source": "a.onnx", "target": NEWEST, "value": value, "to": to}
        for value, to in (("a", "cpu"), ("b", "directml"), ("c", "cpu"))
    ]
    assert json.loads(output(check, MIXED, *targets, "--format", "json"))["crossings"] == expected
    lines = map(json.loads, output(check, MIXED, *targets, "--format", "jsonl").splitlines())
    assert [line for line in lines if "to" in line] == expected
