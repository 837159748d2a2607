"""``check MODEL --via ort``: the nodes of a model in each format, and what they come to."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import onnx
import pytest
from onnx import TensorProto, helper

from dml_tile import check_model
from dml_tile.back_ends import back_end_named
from dml_tile.back_ends.described_node import NodePlace
from dml_tile.back_ends.placement import PlacedModel, Placement, Reason
from dml_tile.checks.placements import ModelNodes
from dml_tile.checks.sessions import Session, session_at
from dml_tile.checks.sweep import sweep
from dml_tile.directml.targets import Target
from dml_tile.readers.item import item_of
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import computed, model, node, tensor, tile_in, typed
from tests.helpers.packages import needed
from tests.helpers.pages import blocks_of
from tests.helpers.paths import ROOT

OLD: Final = "onnxruntime-directml-1.9.0"
NEW: Final = "onnxruntime-directml-1.24.4"


def save(text: str, name: str = "a.onnx", **fields: Any) -> str:
    given: dict[str, Any] = {"inputs": [typed("x", [2, 3])], "opset": 13} | fields
    made = model(*computed(text), ir_version=7, **given)
    del made.graph.output[:]
    made.graph.output.append(helper.make_empty_tensor_value_info(made.graph.node[-1].output[0]))
    onnx.save(made, name)
    return name


def output_of(check: Call, *arguments: str) -> Any:
    return json.loads(check(*arguments, "--via", "ort", "--format", "json").stdout)


def test_a_tile_s_targets_are_found_without_a_walk_over_all_reasons_of_its_model() -> None:
    class Unwalked(tuple[Reason, ...]):
        def __iter__(self) -> Any:
            raise AssertionError("each Tile would cost as much as the model has reasons")

    reasons = (Reason(Placement.DIRECTML), Reason(Placement.CPU, "ORT-CPU-query", "pads[0] is -1"))
    named = [NodePlace(pointer, "", "", "Tile", 13) for pointer in "01"]
    old, new = map(Target.parse, (OLD, NEW))
    placed = PlacedModel((named[0], named[1]), reasons, ((), ()), ((0, 1), (0, -1)), (), ((-1, -1),) * 2)
    nodes = ModelNodes("a.onnx", (old, new), placed, back_end_named("ort"))
    object.__setattr__(placed, "reasons", Unwalked(reasons))  # which are walked once, when they come
    tile = tile_in(model(*computed("y = Tile(x, r)"), inputs=[typed("x", [2])], initializer=[tensor("r", [2])]))
    for place, targets in ("0", [old, new]), ("1", []):
        assert [*nodes.targets_of(item_of(replace(tile, place=place)))] == targets


def test_a_tile_that_directml_takes_is_checked_and_no_other_node_has_a_verdict(check: Call) -> None:
    save("t = Tile(x, r); y = Relu(t)", initializer=[tensor("r", [1, 2])])
    output = output_of(check, "a.onnx", "-t", OLD, "-t", NEW)
    assert [(each["target"], each["verdict"]) for each in output["results"]] == [(NEW, "accepted")]
    assert [each["placement"] for each in output["nodes"]] == ["cpu", "cpu", "directml", "directml"]


SQUARE: Final[dict[str, Any]] = {"inputs": [typed("x", [2, 3, 3])]}
STATUSES: Final[dict[str, tuple[str, dict[str, Any], list[str], int]]] = {
    "all on DirectML": ("y = Relu(x)", {}, ["-t", NEW], 0),
    "all on DirectML, which is asked for": ("y = Relu(x)", {}, ["-t", NEW, "--fail-on", "note"], 0),
    "one on the CPU": ("y = Det(x)", SQUARE, ["-t", NEW, "--require-operators"], 0),
    "one on the CPU, which is a note": ("y = Det(x)", SQUARE, ["-t", NEW, "--fail-on", "note"], 1),
    "which is ignored": ("y = Det(x)", SQUARE, ["-t", NEW, "--fail-on", "note", "--ignore", "ORT-CPU"], 0),
    "a node that nobody has": ("y = Add(x, x)", {"inputs": [typed("x", [2], TensorProto.BFLOAT16)]}, ["-t", NEW], 1),
    "an opset that the release does not load": ("y = Relu(x)", {"opset": 25}, ["-t", "onnxruntime-directml-1.21"], 1),
    "no device": ("y = Relu(x)", {}, ["-t", "4_0"], 1),
    "an application's operator": ("y = own.Mine(x)", {"domains": {"own": 1}}, ["-t", NEW], 1),
    "an application's operator, ignored": (
        "y = own.Mine(x)",
        {"domains": {"own": 1}},
        ["-t", NEW, "--ignore", "ORT-NODE-domain"],
        0,
    ),
    "no opset import": ("y = own.Mine(x)", {}, ["-t", NEW], 1),
}


@pytest.mark.parametrize("case", STATUSES)
def test_the_status_follows_what_nodes_come_to(check: Call, case: str) -> None:
    text, fields, options, status = STATUSES[case]
    result = check(save(text, **fields), "--via", "ort", *options)
    assert result.exit_code == status, result.stdout


def test_verbose_text_has_each_node_with_its_operators_or_the_reason(check: Call) -> None:
    save("a = Det(x); b = Det(x); c = Relu(a); y = Add(b, c)", inputs=[typed("x", [2, 3, 3])], opset=22)
    printed = check("a.onnx", "--via", "ort", "-t", NEW, "--verbose").stdout
    assert "  3 Add-14: directml, ELEMENT_WISE_ADD\n" in printed
    assert "  0 Det-22: cpu: no release registers Det\n" in printed


def test_quiet_text_has_the_models_that_fail_with_what_fails(check: Call) -> None:
    save("y = Det(x)", **SQUARE)
    assert not check("a.onnx", "--via", "ort", "-t", NEW, "--quiet").stdout
    save("y = Add(x, x)", inputs=[typed("x", [2], TensorProto.BFLOAT16)])
    summary, _, error, *_ = check("a.onnx", "--via", "ort", "-t", NEW, "--quiet").stdout.splitlines()
    assert summary.startswith(f"a.onnx at {NEW}")
    assert error.startswith("  error[ORT-NODE-no-kernel] Add-13")


def test_where_annotations_are_cut_their_title_counts_models(check: Call) -> None:
    names = [save("y = Det(x)", f"{i}.onnx", inputs=[typed("x", [2, 3, 3])]) for i in range(12)]
    printed = check(*names, "--via", "ort", "-t", NEW, "--format", "github").stdout
    assert "::notice title=12 models placed::and 3 more notes, which `dml-tile check` prints\n" in printed


def test_a_test_of_a_kind_keeps_its_name_whatever_the_number_of_nodes_and_targets(check: Call) -> None:
    names = []
    for text, targets in (("y = Det(x)", NEW), ("a = Det(x); y = Unique(x)", f"{NEW},onnxruntime-directml-1.23.0")):
        save(text, inputs=[typed("x", [2, 3, 3])])
        printed = check("a.onnx", "--via", "ort", "-t", targets, "--format", "junit").stdout
        names += [case.attrib["name"] for case in ElementTree.fromstring(printed).iter("testcase")]
    kind = "ORT-CPU-unregistered: Det-11: no release registers Det"
    assert [name for name in names if "Det" in name] == [kind] * 2


def test_an_entry_of_a_baseline_has_the_reason_and_one_without_lets_one_finding_pass(check: Call) -> None:
    options = [save("y = Relu(x, x)"), "--via", "ort", "-t", NEW]
    check(*options, "--write-baseline", "b.json")
    assert '"rule": "ORT-MODEL-node", "field": "", "reason": "it has 2 inputs, not 1"' in Path("b.json").read_text()
    assert check(*options, "--baseline", "b.json").exit_code == 0
    save("z = Relu(x, x); y = Relu<own=1>(z)")
    new = check(*options, "--baseline", "b.json")
    assert (new.exit_code, "it has no attribute own" in new.stdout, "it has 2 inputs" in new.stdout) == (1, True, False)
    Path("b.json").write_text(re.sub(', "reason": "[^"]*"', "", Path("b.json").read_text()))
    old = check(*options, "--baseline", "b.json")
    assert (old.exit_code, "it has no attribute own" in old.stdout, "it has 2 inputs" in old.stdout) == (1, True, False)
    assert "note[old-baseline-entry] has no reason, rewrite it: a.onnx#Relu-13: [ORT-MODEL-node] at" in old.stdout
    assert check(*options, "--write-baseline", "b.json").exit_code == 0
    rewritten = check(*options, "--baseline", "b.json")
    assert (rewritten.exit_code, "note[" in rewritten.stdout) == (0, False)


def test_a_number_of_nodes_on_the_cpu_that_is_allowed_hides_no_error(check: Call) -> None:
    Path("pyproject.toml").write_text("[tool.dml-tile]\nmax-cpu-nodes = 9\n")
    inputs = [typed("x", [2, 3, 4]), typed("w", [1, 8, 4]), typed("r", [1, 8, 2])]
    for layout, status in ((0, 0), (1, 1)):
        text = f"y, h, c = LSTM<hidden_size=2, layout={layout}>(x, w, r)"
        result = check(save(text, inputs=inputs, opset=14), "--via", "ort", "-t", NEW)
        assert (result.exit_code, "error[ORT-NODE-kernel]" in result.stdout) == (status, bool(status))


def test_a_setting_allows_a_number_of_nodes_on_the_cpu(check: Call) -> None:
    save("a = Det(x); y = Unique(a)", inputs=[typed("x", [2, 3, 3])])
    for most, status in ((2, 0), (1, 1)):
        Path("pyproject.toml").write_text(f"[tool.dml-tile]\nmax-cpu-nodes = {most}\n")
        result = check("a.onnx", "--via", "ort", "-t", NEW)
        assert result.exit_code == status, result.stdout
        assert ("max-cpu-nodes allows 1" in result.stdout) == (most == 1)
    Path("pyproject.toml").write_text("[tool.dml-tile]\nmax-cpu-nodes = 2\n")
    assert check("a.onnx", "--via", "ort", "-t", NEW, "--fail-on", "note").exit_code == 0
    Path("pyproject.toml").write_text('[tool.dml-tile.per-file-ignores]\n"a.onnx" = ["ORT-CPU"]\n')
    assert check("a.onnx", "--via", "ort", "-t", NEW, "--fail-on", "note").exit_code == 0


_INNER: Final = (
    "b = Add(%s, x); y = If(c)<then_branch = t () => (float[] u) { u = Tile(b, r) },"
    " else_branch = f () => (float[] v) { v = Neg(b) }>"
)
_OF_A: Final = "g (float[2, 3] a) => (float[] y) {" + _INNER % "a" + "}"
WITH_A_GRAPH: Final = {
    "If": "If(c)<then_branch = g () => (float[] y) {"
    + _INNER % "x"
    + "}, else_branch = e () => (float[] z) { z = Neg(x) }>",
    "Loop": "Loop(m, c, x)<body = l (int64 i, bool k, float[2, 3] a) => (bool k2, float[] y) { k2 = Not(k); "
    + _INNER % "a"
    + "}>",
    "Scan": f"Scan<num_scan_inputs=1, body = {_OF_A}>(xs)",
    "SequenceMap": f"SequenceMap(s)<body = {_OF_A}>",
    "SequenceMap in a Loop": "Loop(m, c, s)<body = l (int64 i, bool k, seq(float[2, 3]) p) => (bool k2, seq(float[]) q)"
    " { k2 = Not(k); q = SequenceMap(p)<body = " + _OF_A + "> }>",
    "an application's": f"own.Mine(x)<body = {_OF_A}>",
}


@pytest.mark.parametrize("operator", WITH_A_GRAPH)
def test_a_graph_inside_any_operator_has_tiles_other_graphs_and_values_from_outside(check: Call, operator: str) -> None:
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [2, 3])
    scalars = [typed("m", [], TensorProto.INT64), typed("c", [], TensorProto.BOOL)]
    inputs = [typed("x", [2, 3]), typed("xs", [4, 2, 3]), *scalars, sequence]
    graph: Any = {"initializer": [tensor("r", [1, 1])], "inputs": inputs, "domains": {"own": 1}, "opset": 17}
    output = output_of(check, save(f"out = {WITH_A_GRAPH[operator]}", **graph), "-t", NEW)
    (tile,) = (each for each in output["nodes"] if each["operator"] == "Tile")
    assert (tile["placement"], tile["node"][-14:]) == ("directml", "/then_branch/0")
    assert [each["verdict"] for each in output["results"]] == ["accepted"]
    assert not [each["message"] for each in output["sources"][0]["errors"] if each["severity"] == "error"]


_BRANCHES: Final = (
    "then_branch = t () => (float[] u) { u = HardSwish(a) }, else_branch = e () => (float[] v) { v = Neg(a) }"
)


@pytest.mark.parametrize(
    ("body", "loads"),
    [
        ("y = HardSwish(a)", False),
        ("z = SequenceMap(s)<body = h (float[2, 3] b) => (float[] d) { d = Add(a, b) }>; y = SequenceAt(z, i)", False),
        ("y = CastLike(a, x)", True),  # replaced by one node
        (f"y = If(c)<{_BRANCHES}>", True),
    ],
)
def test_what_several_nodes_replace_in_the_body_of_a_replaced_node_does_not_load(
    check: Call, body: str, loads: bool
) -> None:
    """As measured with wheels of 1.15 to 1.24; those before 1.17 load each."""
    inputs = [typed("x", [2, 3]), typed("i", [], TensorProto.INT64), typed("c", [], TensorProto.BOOL)]
    inputs.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [2, 3]))
    file = save(f"out = SequenceMap(s)<body = g (float[2, 3] a) => (float[] y) {{ {body} }}>", inputs=inputs, opset=17)
    for release, expected in ("1.16.3", True), ("1.18.1", loads), ("1.24.4", loads):
        nodes = output_of(check, file, "-t", f"onnxruntime-directml-{release}")["nodes"]
        assert all(each["placement"] != "none" for each in nodes) is expected


def test_a_target_s_nodes_come_in_one_order_whichever_targets_are_asked_for(check: Call) -> None:
    file = save("a = Relu(x); b = HardSwish(a); y = Neg(b)", opset=17)  # 1.9 does not load it, and replaces no node

    def nodes_at(target: str, *asked: str) -> list[str]:
        found = output_of(check, file, "-t", ",".join(asked))["nodes"]
        return [each["node"] for each in found if each["target"] == target]

    assert nodes_at(OLD, OLD) == ["0", "1", "2"]
    assert len(nodes_at(NEW, NEW)) > 3
    for target in (OLD, NEW):
        assert nodes_at(target, OLD, NEW) == nodes_at(target, NEW, OLD) == nodes_at(target, target)


@pytest.mark.parametrize("domain", ["", "own", "com.microsoft"])
def test_an_operator_without_a_name_reads_well(check: Call, domain: str) -> None:
    onnx.save(model(node("", ["x"], ["y"], domain=domain), domains={domain: 1 if domain else 13}), "a.onnx")
    named = f"{domain}.(without a name)".lstrip(".")
    printed = check("a.onnx", "--via", "ort", "-t", NEW, "--verbose").stdout
    assert f"\n  0 {named}: none: " in printed
    assert f"] {named}: " in printed
    assert "  " not in printed.replace("\n  ", "\n")


@pytest.mark.parametrize("location", ["../w.bin", "sub/../../w.bin", "/w.bin", "C:\\w.bin"])
def test_data_outside_of_the_model_s_folder_are_refused_from_1_24_on(check: Call, location: str) -> None:
    made = model("y = Add(x, w)", ir_version=7, initializer=[tensor("w", [[1.0] * 3], "float32")])
    onnx.external_data_helper.convert_model_to_external_data(made, location="w.bin", size_threshold=0)
    made.graph.initializer[0].external_data[0].value = location
    Path("a.onnx").write_bytes(made.SerializeToString())
    assert ": it loads\n" in check("a.onnx", "--via", "ort", "-t", "onnxruntime-directml-1.23.0").stdout
    printed = check("a.onnx", "--via", "ort", "-t", NEW).stdout
    assert ": it does not load\n" in printed
    assert f"the data of w are at no path below the model's folder: {location!r}; onnxruntime makes no" in printed
    assert not check_model(made, NEW, via="ort").findings, "the folder of a model in memory is not known"
    made.graph.initializer[0].external_data[0].value = ""
    Path("a.onnx").write_bytes(made.SerializeToString())
    assert "the data of w are missing: no file is named; " in check("a.onnx", "--via", "ort", "-t", NEW).stdout


@pytest.mark.usefixtures("call")
def test_python_has_the_same() -> None:
    made = model(*computed("y = Det(x)"), ir_version=7, inputs=[typed("x", [2, 3, 3])], opset=13)
    found = check_model(made, NEW, via="ort")
    assert (list(found), [each.rule for each in found.findings]) == ([], ["ORT-CPU-unregistered"])
    assert found.nodes is not None
    assert [(named.operator, reason.placement) for named, reason in found.nodes.placed.at(0)] == [("Det", "cpu")]
    onnx.save(made, "a.onnx")
    (swept,) = sweep(["a.onnx"], [NEW], via="ort")
    assert swept.nodes is not None
    assert session_at(swept.nodes, 0) is Session.LOADS
    assert check_model(made, NEW).nodes is None


def test_without_a_back_end_the_other_nodes_are_counted(check: Call) -> None:
    save("a = Relu(x); y = Neg(a)")
    result = check("a.onnx")
    assert result.exit_code == 2
    assert "`dml-tile check --via ort` says which provider takes 2 other nodes" in result.stdout


@pytest.mark.parametrize("form", ["text", "markdown", "sarif", "html"])
def test_nodes_that_compute_shapes_on_the_cpu_are_one_note_whatever_their_operators(check: Call, form: str) -> None:
    for text, said in (
        ("s = Shape(x); g = Gather(s, i); h = Sub(g, k); y = Mul(h, k)", "3 nodes compute shapes on the CPU, as they"),
        ("s = Shape(x); y = Gather(s, i)", "1 node computes shapes on the CPU, as it"),
    ):
        save(text, inputs=[typed("x", ["N", 3])], initializer=[tensor("i", [0]), tensor("k", [2])])
        printed = check("a.onnx", "--via", "ort", "-t", NEW, "--format", form).stdout
        said = "nodes compute shapes on the CPU, as they" if form == "html" else said
        assert printed.count(f"{said} should") == 1


def test_nodes_whose_fields_the_run_knows_are_one_note_whatever_their_operators(check: Call) -> None:
    save("a = Relu(x); b = Exp(a); y = Det(b)", inputs=[typed("x", ["N", 3, 3])])
    printed = check("a.onnx", "--via", "ort", "-t", NEW).stdout
    assert printed.count("ORT-OPERATOR-run-time") == 1
    assert "  note[ORT-OPERATOR-run-time] 2 nodes have fields that are known at run time only\n" in printed
    assert "run-time" not in check("a.onnx", "--via", "ort", "-t", NEW, "--dim", "N=2").stdout


def test_the_opset_that_a_model_does_not_import_is_each_releases_own(check: Call) -> None:
    made = model(node("Conv", ["x", "w"], ["c"]), node("Tile", ["c", "r"], ["y"]), opset=13, ir_version=7)
    made.opset_import[0].CopyFrom(helper.make_opsetid("com.microsoft", 1))
    made.graph.input.extend([typed("w", [1, 2, 1, 1]), typed("r", [4], TensorProto.INT64)])
    made.graph.input[0].CopyFrom(typed("x", [1, 2, 3, 3]))
    onnx.save(made, "a.onnx")
    output = output_of(check, "a.onnx", "-t", OLD, "-t", NEW)
    found = [(each["node"], each["version"], each["placement"]) for each in output["nodes"]]
    assert found == [("0", 11, "directml"), ("1", 13, "cpu"), ("0", 22, "cpu"), ("1", 13, "directml")]
    (source,) = output["sources"]
    assert (source["nodes"], [(each["severity"], each["message"][-16:]) for each in source["errors"]]) == (
        2,
        [("warning", f"takes its newest, {opset}"[-16:]) for opset in (15, 25)],  # each error has its target
    )
    assert "Conv-22: registered at 1, 11 (node 0" in check("a.onnx", "--via", "ort", "-t", OLD, "-t", NEW).stdout
    assert "is a Tile; the model imports no opset of onnx's operators" in check("a.onnx").stderr


def test_the_snippets_of_the_page_compare_a_session_with_what_is_predicted(check: Call) -> None:
    """With the CPU provider alone, which nodes are left; with DirectML's, their providers."""
    needed("onnxruntime")
    for block in blocks_of((ROOT / "docs" / "onnxruntime.md").read_text(encoding="utf-8")):
        if block.file:
            Path(block.file).write_text(block.text)
    save("[det] a = Det(x); [relu] y = Relu(a)", inputs=[typed("x", [2, 3, 3])])
    run = partial(subprocess.run, check=True, capture_output=True, text=True)
    Path("assigned.json").write_text(run([sys.executable, "assigned.py", "a.onnx"]).stdout)
    Path("checked.json").write_text(check("a.onnx", "--via", "ort", "-t", NEW, "--format", "json").stdout)
    compared = [sys.executable, "compared.py", "assigned.json", "checked.json"]
    assert run(compared).stdout == ""
    assigned = Path("assigned.json").read_text()
    Path("assigned.json").write_text(assigned.replace("Relu", "Elu"))
    assert run(compared).stdout == "ai.onnx Elu: 1 more on cpu than predicted\n"
    Path("assigned.json").write_text(assigned.replace("CPUExecutionProvider", "DmlExecutionProvider"))
    printed = run(compared).stdout
    assert printed.splitlines() == ["ai.onnx Det: 1 more on directml than predicted", "det: directml, predicted cpu"]


def described(check: Call, release: str) -> str:
    (result,) = output_of(check, "a.onnx", "-t", f"onnxruntime-directml-{release}")["results"]
    return str(result["operator"])


def test_a_transpose_before_a_tile_moves_behind_it_from_1_10_on_if_another_takes_it_in(check: Call) -> None:
    text = "[tile] b = Tile(a, r); y = Transpose<perm=[0, 2, 1]>(b)"
    inputs, repeats = [typed("x", [2, 3, 4])], [tensor("r", [1, 2, 3])]
    for opset, release, expected in ((12, "1.9", "{2,4,3} x {1,2,3}"), (13, "1.10", "{2,3,4} x {1,3,2}")):
        save(f"a = Transpose<perm=[0, 2, 1]>(x); {text}", inputs=inputs, initializer=repeats, opset=opset)
        assert expected in described(check, release)
    for before, after, expected in (
        ("a = Transpose<perm=[2, 0, 1]>(x)", text, "{2,3,4} x {2,3,1}"),
        ("b = Transpose<perm=[2, 0, 1]>(x); a = Exp(b)", text.replace("(b)", "(c)").replace("b =", "c ="), "{2,3,4}"),
        ("a = Transpose<perm=[2, 0, 1]>(x)", "[tile] b = Tile(a, r); y = Relu(b)", "{4,2,3} x {1,2,3}"),
        ("b = Transpose<perm=[2, 0, 1]>(x); a = Dropout(b)", text.replace("b", "c"), "{2,3,4} x {2,3,1}"),
        ("a = Transpose<perm=[2, 0, 1]>(x)", "[tile] b = Tile(a, r); c = Add(b, w); y = Transpose<perm=[1, 0, 2]>(c)",
         "{2,3,4} x {2,3,1}"),
    ):  # fmt: skip
        save(f"{before}; {after}", inputs=[*inputs, typed("w", [4, 4, 9])], initializer=repeats)
        assert expected in described(check, "1.24")


@pytest.mark.parametrize("perm", [[1, 0], [0, 1, 3], [0, 0, 1], [-1, 0, 1], [0, 1, 2, 3]], ids=str)
def test_a_transpose_by_no_permutation_of_its_input_is_not_followed(check: Call, perm: list[int]) -> None:
    text = f"a = Transpose<perm=[0, 2, 1]>(x); b = Transpose<perm={perm}>(a); [tile] c = Tile(b, r)"
    inputs, repeats = [typed("x", [2, 3, 4])], [tensor("r", [1, 2, 3])]
    save(f"{text}; y = Transpose<perm=[0, 2, 1]>(c)", inputs=inputs, initializer=repeats)
    assert described(check, "1.24").endswith("x ? -> ?" if len(perm) == 2 else "{?,?,?}")


def test_a_tile_between_quantised_values_runs_on_their_type_from_1_20_on(check: Call) -> None:
    scalars = [tensor("s", 0.5, "float32"), tensor("z", 3, "uint8"), tensor("o", 0.25, "float32")]
    constants = [tensor("r", [2, 1]), *scalars]
    for scale, release, expected in (("s", "1.19", "FLOAT32"), ("s", "1.20", "UINT8"), ("o", "1.20", "FLOAT32")):
        text = "q = QuantizeLinear(x, s, z); d = DequantizeLinear(q, s, z); e = Dropout(d); t = Tile(e, r)"
        text += f"; y = QuantizeLinear(t, {scale}, z)"
        save(text, initializer=constants)
        assert described(check, release).startswith(f"{expected} {{2,3}} x {{2,1}}")


def test_chromium_may_pass_a_graph_to_onnx_runtime_from_windows_11_24h2_on(check: Call) -> None:
    save("y = Tile(x, r)", initializer=[tensor("r", [1, 2])])
    for name, is_noted in (("windows-11-23h2", False), ("windows-11-24h2", True), ("windows-11-25h2", True)):
        result = check("a.onnx", "--via", "chromium", "-t", name)
        assert ("note[other-runtime]" in result.stdout) == is_noted
        assert result.exit_code == 0


def test_text_has_a_line_for_each_kind_of_departure(check: Call) -> None:
    operators = ["Acos", "Asin", "Atan", "Cos", "Cosh", "Elu", "HardSigmoid", "Selu", "Sin", "Sinh", "Softsign", "Tan"]
    save("; ".join(f"y{i} = {operator}(x)" for i, operator in enumerate(operators)), opset=22)
    printed = check("a.onnx", "--via", "ort", "-t", NEW).stdout
    assert [operator for operator in operators if f"{operator}-22: registered at" not in printed] == []


def test_text_describes_a_tile_anew_where_a_release_makes_another_of_it(check: Call) -> None:
    quantised = str(ROOT / "tests/data/qdq8.onnx")
    printed = check(quantised, "--via", "ort", "-t", "onnxruntime-directml-1.20.1,onnxruntime-directml-1.19.2").stdout
    assert printed.count("  UINT8 {2,3} x {2,1} -> {4,3}\n") == printed.count("  FLOAT32 {2,3} x {2,1} -> {4,3}\n") == 1


def test_the_summary_counts_the_nodes_findings_that_are_in_the_baseline(check: Call) -> None:
    options = [save("y = Det(x)", inputs=[typed("x", [2, 3, 3])]), "--via", "ort", "-t", f"{OLD},{NEW}"]
    assert "baseline" not in check(*options).stdout
    check(*options, "--write-baseline", "known.json")
    known, passed = (*options, "--baseline", "known.json"), "passed, all findings are in the baseline; 1 model placed"
    assert check(*known).stdout.count(": it loads; 1 finding in the baseline\n  1 node on the CPU\n") == 2
    assert check(*known, "--format", "markdown").stdout.startswith(f"## Operators on DirectML: {passed}\n")
    assert f"DirectML: {passed}</title>" in check(*known, "--format", "html").stdout
    save("z = Det(x); y = Unique(z)", inputs=[typed("x", [2, 3, 3])])
    assert "passed" not in check(*known, "--format", "markdown").stdout
