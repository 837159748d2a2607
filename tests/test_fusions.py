"""The nodes that onnxruntime fuses, by release: as recorded of its wheels, and as placed on DirectML."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from onnx import ModelProto, TensorProto

from dml_tile.back_ends import release_tables
from dml_tile.back_ends.described_node import NodePlace
from dml_tile.back_ends.descriptions import described_node
from dml_tile.back_ends.kernels import cpu_kernels, releases, version_of, version_text
from dml_tile.back_ends.possible_fusions import possible_fusion
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import model, placements, tensor, typed
from tests.helpers.recorded_answers import rows_of
from tests.test_model_nodes import save

ROWS: Final = list(rows_of("fused_nodes.jsonl"))
FUSED: Final = {"BiasGelu", "FastGelu", "FusedMatMul", "Gelu", "LayerNormalization", "QuickGelu"}
LAST: Final = (1, 24)
"""The last release of which answers were recorded."""
NUMBERS: Final = {"one": 1, "two": 2, "three": 3, "half": 0.5, "eight": 8, "root": 2**0.5, "bert": 1.4142099618911743}
VALUES: Final = {**NUMBERS, "tiny": 1e-5, "c1": 0.044715, "c2": 0.7978845834732056, "c": [1, 2, 3, 4]}


def made(nodes: str, opset: int) -> ModelProto:
    """Return the recorded model of these nodes, of which w is an output too, if it is there."""
    kept = [tensor(name, value, "float32") for name, value in VALUES.items()]
    kept += [tensor("o", [[1, 2, 3, 4]], "float32"), tensor("k", [[1, 2, 3, 4]] * 4, "float32"), tensor("last", [-1])]
    kept += [tensor("k2", [[4, 3, 2, 1]] * 4, "float32"), tensor("weights", [[1]] * 4, "uint8")]
    inputs = [typed("x", [2, 4, 4]), typed("g", [4]), typed("z2", [3, 4]), typed("same", [2, 4, 4])]
    inputs += [typed("ids", [2, 4], TensorProto.INT64), typed("bytes", [2, 4], TensorProto.UINT8)]
    found = model(nodes, inputs=inputs, opset=opset, initializer=kept, ir_version=7)
    if any("w" in each.output for each in found.graph.node):
        found.graph.output.append(typed("w"))
    return found


def fused(found: ModelProto, release: str) -> list[str]:
    """Return the fused nodes that are there at a release, with the names of their outputs."""
    nodes = [node for node, why in placements(found, f"onnxruntime-directml-{release}.0") if why.placement != "gone"]
    outputs = {node.place.pointer: found.graph.node[int(node.place.pointer)].output[0] for node in nodes}
    return sorted(
        f"{node.place.operator} {outputs[node.place.pointer]}" for node in nodes if node.place.operator in FUSED
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['opset']}: {row['nodes'][:40]}")
def test_nodes_are_fused_as_in_the_wheels(row: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_tables, "directml_kernels", cpu_kernels)
    found, expected = made(row["nodes"], row["opset"]), ""
    first = version_of(next(iter(row["fused"])))
    for release in (version_text(each) for each in releases() if first <= each <= LAST):
        expected = row["fused"].get(release, expected)
        assert ", ".join(fused(found, release)) == expected, release


GELU: Final = ROWS[0]["nodes"]
LAYER_NORM: Final = next(row["nodes"] for row in ROWS if "last" in row["nodes"])


@pytest.mark.parametrize(
    ("nodes", "opset", "release", "expected"),
    [
        (GELU, 13, "1.13", "5 directml"),
        (GELU, 13, "1.14", "directml com.microsoft.Gelu-1"),
        (GELU, 20, "1.19", "directml com.microsoft.Gelu-1"),
        (GELU, 20, "1.20", "cpu Gelu-20"),
        (LAYER_NORM.replace("(x, last)", "(x)").replace("(p, last)", "(p)"), 13, "1.24", "9 directml"),
        (LAYER_NORM, 18, "1.14", "7 directml, 2 cpu"),
        (LAYER_NORM, 18, "1.19", "directml LayerNormalization-17"),
    ],
)
def test_a_fused_node_is_placed_by_its_own_kernel_where_its_parts_are_on_directml(
    nodes: str, opset: int, release: str, expected: str
) -> None:
    kept = [(node, why) for node, why in placements(made(nodes, opset), f"onnxruntime-directml-{release}.0")]
    there = [(node, why) for node, why in kept if why.placement != "gone"]
    if len(there) == 1:
        ((node, why),) = there
        place = node.place
        domain = f"{place.domain}." if place.domain else ""
        assert f"{why.placement} {domain}{place.operator}-{place.version}" == expected
        assert place.pointer == kept[-1][0].place.pointer
        gone = {why.text for _, why in kept[:-1]}
        assert gone == {f"it is part of {place.operator}-{place.version} at {place.pointer}; onnxruntime fuses them"}
    else:
        counts = {each: sum(why.placement == each for _, why in there) for each in ("directml", "cpu")}
        assert ", ".join(f"{count} {each}" for each, count in counts.items() if count) == expected


def test_a_gelu_that_directml_lacks_is_on_the_cpu_and_says_which_opset_keeps_it_on_directml() -> None:
    *_, (node, why) = placements(made(GELU, 20), "onnxruntime-directml-1.24.4")
    assert (node.place.operator, why.placement, why.rule) == ("Gelu", "cpu", "ORT-CPU-unregistered")
    assert why.suggestion == "export at opset 19 or below"
    assert "which onnxruntime fuses from 5 nodes at opset 20 and above" in why.text


def test_a_transpose_that_others_use_stays() -> None:
    nodes = "n = Neg(x); t = Transpose<perm=[0, 2, 1]>(n); y = MatMul(x, t)"
    for more, kinds in (("", ["Neg", "FusedMatMul"]), ("; w = Abs(t)", ["Neg", "Transpose", "FusedMatMul", "Abs"])):
        found = placements(made(nodes + more, 13), "onnxruntime-directml-1.24.4")
        assert [node.place.operator for node, why in found if why.placement == "directml"] == kinds


@pytest.mark.parametrize(
    ("nodes", "release", "operators", "attributes"),
    [
        (LAYER_NORM, "1.17", ("MEAN_VARIANCE_NORMALIZATION1",), {"axis": -1, "epsilon": 1e-5}),
        (LAYER_NORM, "1.18", ("MEAN_VARIANCE_NORMALIZATION2",), {"axis": -1, "epsilon": 1e-5}),
        ("s = Sigmoid(x); y = Mul(x, s)", "1.24", ("ACTIVATION_SIGMOID", "ELEMENT_WISE_MULTIPLY"), {"alpha": 1}),
        (
            "t = Transpose<perm=[0, 2, 1]>(x); s = Div(t, eight); m = MatMul(s, k); y = Mul(half, m)",
            *("1.24", ("GEMM",), {"alpha": 0.0625, "transA": 1, "transB": 0, "transBatchA": 0, "transBatchB": 0}),
        ),
    ],
)
def test_a_fused_node_is_described_with_the_attributes_of_the_fusion(
    nodes: str, release: str, operators: tuple[str, ...], attributes: dict[str, float]
) -> None:
    nodes = nodes.replace("(x, last)", "<axes=[-1]>(x)").replace("(p, last)", "<axes=[-1]>(p)")
    *_, (node, _) = placements(made(nodes, 13), f"onnxruntime-directml-{release}.0")
    assert node.kernel
    kernel = node.kernel(version_of(release))
    assert kernel.attributes == pytest.approx(attributes)
    assert described_node(NodePlace(""), kernel).operators == operators


NORM: Final = "LayerNormalization(a, c, c)"
HEADS: Final = f"a = Add(x, same); n = {NORM}; q = MatMul(n, k); r = MatMul(n, k2); s = MatMul(n, x); y = Sum(q, r, s)"
OLD_NORM: Final = LAYER_NORM.replace("(x, last)", "<axes=[-1]>(x)").replace("(p, last)", "<axes=[-1]>(p)")
INTEGERS: Final = "a = MatMulInteger(bytes, weights); b = Cast<to=1>(a); y = Mul(b, one)"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (f"a = Add(x, same); y = {NORM}", {"1.13": "", "1.14": "Skip 2_1", "1.18": "Skip 6_3"}),
        (f"b = Gather(k, ids); a = Add(b, x); y = {NORM}", {"1.14": "Embed 2_1"}),
        (HEADS, {"1.14": "Skip 2_1, Attention 5_1", "1.15": "Skip 2_1, Attention 6_1"}),
        ("a = MatMul(x, k); y = Softmax(a)", {"1.14": "", "1.15": "FusedMatMulActivation 5_1"}),
        (INTEGERS, {"1.17": "", "1.18": "MatMulIntegerToFloat 6_2"}),
        (f"a = Relu(x); y = {NORM}", {"1.24": ""}),
        ("a = MatMul(x, k); b = Softmax(a); y = Add(a, b)", {"1.24": ""}),
        (OLD_NORM, {"1.24": ""}),
        (f"e = Add(x, same); {OLD_NORM.replace('(x', '(e')}", {"1.13": "", "1.18": "Skip 6_3"}),
    ],
)
def test_a_note_names_what_may_be_fused_and_the_level_that_it_needs(nodes: str, expected: dict[str, str]) -> None:
    found = made(nodes, 17 if NORM in nodes else 13)
    for release, levels in expected.items():
        placed = placements(found, f"onnxruntime-directml-{release}.0")
        there = [node for node, why in placed if why.placement == "directml"]
        texts = [possible_fusion(each, version_of(release)) for node in there for each in node.may_become]
        said = [re.findall(r"into (\w+?)(?:LayerNormalization)?, which needs \w+ \((\w+)\)", text) for text in texts]
        assert ", ".join(" ".join(each) for found in said for each in found) == levels, release


def test_check_notes_what_may_be_fused(check: Call) -> None:
    path = save("a = MatMul(x, k); y = Softmax(a)", initializer=[tensor("k", [[1] * 3] * 3, "float32")])
    printed = check(path, "--via", "ort", "-t", "onnxruntime-directml-1.24.4").stdout
    assert "note[ORT-OPERATOR-may-fuse]" in printed
    assert "may fuse it into FusedMatMulActivation, which needs ACTIVATION_SOFTMAX1 (5_1)" in printed
