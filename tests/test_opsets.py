"""The opset that a summary names: where no node's version keeps it from DirectML, and how many nodes are there then."""

from __future__ import annotations

import json
import re
from typing import Final

import onnx
import pytest

from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import parsed

NEWEST: Final = "onnxruntime-directml-1.24.4"
TWO: Final = "(float[1,1,8,8] x, float[1,1,3,3] w) => (float[1,1,1,1] y) { a = Conv(x, w); b = Relu(a); "

GELU: Final = "d = Div(b, q); e = Erf(d); f = Add(e, k); g = Mul(b, f); h = Mul(g, m)"
CONSTANTS: Final = "<float q = {1.4142135}, float k = {1}, float m = {0.5}, int64 i = {0}>"


def printed(check: Call, graph: str, opset: int, *arguments: str, target: str = NEWEST) -> str:
    onnx.save(parsed(graph, opset), "a.onnx")
    return check("a.onnx", "--via", "ort", "-t", target, *arguments).stdout


@pytest.mark.parametrize(
    ("graph", "opset", "expected"),
    [
        pytest.param(TWO + "y = GlobalAveragePool(b) }", 22, (21, 3, 3), id="two nodes that are too new"),
        pytest.param(
            TWO + "c = Det(b); y = GlobalAveragePool(b) }", 22, (21, 3, 4), id="beside a node that no release takes"
        ),
        pytest.param(
            "(float[1,1,8,8] x, float[8,8] z) => (float[1,1,a,b] y, float[8,8] u) "
            "{ y = MaxPool<kernel_shape = [2, 2]>(x); u = Div<consumed_inputs = [0]>(z, z) }",
            6, None, id="one node that is too old",
        ),
        pytest.param(
            TWO + "c = Swish(b); y = GlobalAveragePool(c) }", 24, None, id="an operator that older opsets lack"
        ),
        pytest.param(TWO + "y = Sigmoid(b) }", 22, None, id="one kind of node"),
        pytest.param(TWO + "y = GlobalAveragePool(b) }", 21, None, id="none that is too new"),
    ],
)  # fmt: skip
def test_the_summary_names_one_opset_that_serves_all_nodes(
    check: Call, graph: str, opset: int, expected: tuple[int, int, int] | None
) -> None:
    found = printed(check, graph, opset)
    if expected is None:
        assert "exported" not in found
    else:
        best, there, nodes = expected
        assert found.splitlines()[2] == f"  exported at opset {best}, {there} of {nodes} would be on DirectML"


@pytest.mark.parametrize("middle", ["", f"{GELU}; ", f"{GELU}; s = Shape(b); t = Gather(s, i); o = Sqrt(h); "])
def test_the_model_at_that_opset_is_placed_as_foretold(check: Call, middle: str) -> None:
    graph = f"{TWO}{middle}y = GlobalAveragePool(b) }}".replace("{ a", f"{CONSTANTS} {{ a")
    foretold = printed(check, graph, 22).splitlines()[2].removeprefix("  exported at opset 21, ")
    summary = printed(check, graph, 21).splitlines()[1]
    there, others = (int((re.search(rf"(\d+)[^,;]* {where}", summary) or [0, 0])[1]) for where in ("on D", "on the C"))
    assert foretold == f"{there} of {there + others} would be on DirectML"


def test_the_opset_is_one_that_the_release_loads(check: Call) -> None:
    text = printed(check, TWO + "y = GlobalAveragePool(b) }", 22, target="onnxruntime-directml-1.17.3,2_0")
    assert "exported" not in text


def test_json_has_the_opset_by_target(check: Call) -> None:
    text = printed(check, TWO + "y = GlobalAveragePool(b) }", 22, "--format", "json", target=f"{NEWEST},2_0")
    (source,) = json.loads(text)["sources"]
    assert source["opsets"] == [{"target": NEWEST, "opset": 21, "on_directml": 3, "nodes": 3}]
