"""onnxruntime's inference of its own operators, as ``--infer onnxruntime`` asks for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import onnx
import pytest
from onnx import ModelProto, TensorProto

from dml_tile import check_model
from dml_tile.errors import InputError
from dml_tile.readers.model_tile import ONNXRUNTIME, KnownShapes, TileNode
from dml_tile.readers.onnx.functions import MICROSOFT, OnnxOperator
from dml_tile.readers.onnx.onnxruntime import onnxruntime_inference
from dml_tile.readers.onnx.values import Value, dimensions
from dml_tile.readers.sandbox import parent
from dml_tile.readers.sandbox.parent import started
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import FLOAT, constant, if_text, model, node, tile_in, tile_node, typed

ort = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(find_spec("sympy") is None, reason="needs sympy")

UINT8: Final = TensorProto.UINT8
REPEATS: Final = constant("r", [1, 2])
ASKED: Final = KnownShapes(infer=ONNXRUNTIME)
OPTION: Final = ["--infer", "onnxruntime"]
INSTALL: Final = "--infer onnxruntime needs onnxruntime and sympy: pip install onnxruntime sympy"


def microsoft(kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    return node(kind, inputs, outputs, domain=MICROSOFT, name=f"{kind}_1", **attributes)


GELU: Final = microsoft("Gelu", ["x"], ["g"])


def made(*nodes: onnx.NodeProto | str, **fields: Any) -> ModelProto:
    return model(*nodes, domains={MICROSOFT: 1, "com.own": 1}, **fields)


def behind_gelu(*shape: int | str | None) -> ModelProto:
    return made(GELU, REPEATS, tile_node("g", name="T"), inputs=[typed("x", shape)])


BEHIND_FUSED_CONV: Final = made(
    "[FusedConv_1] g = com.microsoft.FusedConv(x, w); r = [1, 2, 1, 1]; [T] y = Tile(g, r)",
    inputs=[typed("x", [1, 2, 4, 4]), typed("w", [3, 2, 1, 1])],
)


def known_of(tile: TileNode) -> tuple[Any, ...]:
    return tile.data_type, tile.shape, tile.repeats, tile.inferred_by


def test_what_gelu_gives_is_known_if_it_is_asked_for() -> None:
    assert known_of(tile_in(behind_gelu(2, 3), ASKED)) == ("float32", (2, 3), (1, 2), "onnxruntime")
    assert known_of(tile_in(behind_gelu(2, 3))) == (None, (None, None), (1, 2), "")
    beside = made(GELU, REPEATS, tile_node())
    assert known_of(tile_in(beside, ASKED)) == ("float32", (2, 3), (1, 2), ""), "its input is declared"


def test_sizes_keep_the_names_that_the_model_gives_them() -> None:
    tile = tile_in(behind_gelu("N", None), ASKED)
    assert tile.shape == ("N", None)
    assert tile.unknown == ("InputTensor.Sizes[0] (N)", "InputTensor.Sizes[1]: the input 'x'")
    assert tile_in(behind_gelu("N", 3), KnownShapes({"N": 4}, {}, ONNXRUNTIME)).shape == (4, 3)


def test_repeats_that_are_computed_from_inferred_sizes_are_known() -> None:
    shaped = made(GELU, "r = Shape(g); y = Tile(x, r)")
    assert known_of(tile_in(shaped, ASKED)) == ("float32", (2, 3), (2, 3), "onnxruntime")
    assert tile_in(shaped).repeats_origins[0].endswith("Gelu 'Gelu_1' (--infer onnxruntime may know it)")


def test_it_answers_inside_of_loops_and_branches() -> None:
    choice = if_text(f"g = {MICROSOFT}.Gelu(x) r = [1, 2]; t = Tile(g, r)")
    both = made(choice, inputs=[typed("x", [2, 3]), typed("c", [], TensorProto.BOOL)])
    assert known_of(tile_in(both, ASKED)) == ("float32", (2, 3), (1, 2), "onnxruntime")


def test_what_it_does_not_know_stays_unknown_and_no_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    tile = tile_in(BEHIND_FUSED_CONV, ASKED)
    assert known_of(tile) == (None, (None,) * 4, (1, 2, 1, 1), "")
    assert tile.unknown[0] == "InputTensor.DataType: computed by com.microsoft.FusedConv 'FusedConv_1'"
    assert not list(here.iterdir())
    assert Path.cwd() == here


def test_without_it_the_operator_and_the_option_are_named() -> None:
    field = "InputTensor.DataType: computed by com.microsoft.FusedConv 'FusedConv_1' (--infer onnxruntime may know it)"
    assert tile_in(BEHIND_FUSED_CONV).unknown[0] == field
    strange = made("[m] g = com.own.Magic(x); r = [1, 2]; y = Tile(g, r)")
    for known_shapes in (KnownShapes(), ASKED):
        found = tile_in(strange, known_shapes)
        assert found.unknown[0] == "InputTensor.DataType: computed by com.own.Magic 'm'"


OPERATORS: Final = (
    # a node with the types of its inputs, and whether its first output becomes known
    ("(float[2,3] a)", "y = Gelu(a)", True),
    ("(float[N,3] a)", "y = FastGelu(a)", True),
    ("(float[2,3] a, float[3] b)", "y = BiasGelu(a, b)", True),
    ("(float[2,5,8] a, float[8,24] b, float[24] c)", "y, p = Attention<num_heads=2>(a, b, c)", True),
    ("(float[2,5,8] a, float[2,6,8] b, float[2,6,12] c)", "y = MultiHeadAttention<num_heads=2>(a, b, c)", True),
    ("(float[2,5,8] a, float[2,2,6,4] b, float[2,2,6,6] c)", "y = MultiHeadAttention<num_heads=2>(a, b, c)", False),
    ("(float[2,5,8] a, float[2,5,8] b, float[8] c)", "y, , , s = SkipLayerNormalization(a, b, c)", True),
    ("(float[2,5,8] a, int64[1] b, float[9,4] c, float[9,4] d)", "y = RotaryEmbedding(a, b, c, d)", True),
    (
        "(float[2,5,32] a, uint8[8,1,16] b, float[8] c)",
        "y = MatMulNBits<K=32, N=8, bits=4, block_size=32>(a, b, c)",
        True,
    ),
    ("(uint8[2,3] a, float b, uint8 c)", "y = DequantizeLinear(a, b, c)", True),
    (
        "(uint8[4,16] a, int64[2] b, float[4,1] c)",
        "y = GatherBlockQuantized<bits=4, block_size=32, quantize_axis=1>(a, b, c)",
        False,
    ),
    ("(float[5,6] a)", "y = DynamicTimeWarping(a)", False),
    ("(float[3,2] a, float[3,4] b)", "y = FusedMatMul<transA=1>(a, b)", False),
)


@pytest.mark.parametrize(("inputs", "text", "is_known"), OPERATORS, ids=[text for _, text, _ in OPERATORS])
def test_what_is_inferred_is_what_a_session_of_onnxruntime_has(inputs: str, text: str, is_known: bool) -> None:
    outputs, _, called = text.partition(" = ")
    shown = ", ".join(filter(None, outputs.split(", ")))
    whole = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 17, "{MICROSOFT}": 1]>
        operator {inputs} => ({shown}) {{ {outputs} = {MICROSOFT}.{called} }}"""
    )
    (asked,) = whole.graph.node
    values = {given.name: Value(given.type) for given in whole.graph.input}
    inferred = onnxruntime_inference()(asked, OnnxOperator(MICROSOFT, asked.op_type, 17), values)
    assert ("y" in inferred) == is_known
    has = {output.name: output for output in ort.InferenceSession(whole.SerializeToString()).get_outputs()}
    for output, type_ in inferred.items():
        assert (type_.tensor_type.elem_type, has[output].type) in ((FLOAT, "tensor(float)"), (UINT8, "tensor(uint8)"))
        assert list(dimensions(type_) or ()) == has[output].shape


HOSTILE: Final = {
    "a graph": microsoft("Gelu", ["x"], ["g"], body=onnx.GraphProto(name="body")),
    "a tensor": microsoft("Constant", [], ["g"], value=TensorProto(data_type=FLOAT, dims=[2**40])),
    "no inputs": microsoft("Gelu", [], ["g"]),
    "no outputs": microsoft("Gelu", ["x"], []),
    "a missing attribute": microsoft("MatMulNBits", ["x", "x", "x"], ["g"]),
    "a negative size": microsoft("MatMulNBits", ["x", "x", "x"], ["g"], K=3, N=-(2**63)),
    "no heads": microsoft("Attention", ["x", "x"], ["g", "p"], num_heads=0),
    "an axis past the rank": microsoft("Transpose", ["x"], ["g"], perm=[7, -9]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_malformed_node_is_unknown(name: str) -> None:
    tile = tile_in(made(HOSTILE[name], REPEATS, tile_node("g")), ASKED)
    assert tile.shape is None or None in tile.shape


@pytest.mark.long
def test_each_command_and_format_says_what_inferred(check: Call, show: Call, tmp_path: Path) -> None:
    onnx.save(behind_gelu("N", 3), tmp_path / "a.onnx")
    onnx.save(BEHIND_FUSED_CONV, tmp_path / "b.onnx")
    result = check(str(tmp_path), *OPTION, "--dim", "N=4", "--format", "json")
    gelu, fused = json.loads(result.stdout)["results"]
    assert (gelu["tile"], gelu["verdict"], gelu["inferred_by"]) == (
        "FLOAT32 {4,3} x {1,2} -> {4,6}",
        "accepted",
        ONNXRUNTIME,
    )
    assert (fused["tile"], fused["verdict"]) == ("? {?,?,?,?} x {1,2,1,1} -> {?,?,?,?}", "accepted so far")
    assert fused["inferred_by"] == ""
    text = check(str(tmp_path), *OPTION, "-t", "4_0,5_0").stdout
    assert text.count("  note: its type and sizes rest on onnxruntime's inference\n") == 1
    assert "--infer" not in text
    assert "(--infer onnxruntime may know it)" in check(str(tmp_path)).stdout
    file = str(tmp_path / "a.onnx")
    for output_format in ("github", "sarif", "junit", "html"):
        assert "onnxruntime" in check(file, *OPTION, "--format", output_format).stdout.replace(file, "")
    assert "OutputTensor: FLOAT32, " in show(file, *OPTION, "--dim", "N=2").stdout
    assert "OutputTensor" not in show(file).stdout


@pytest.mark.long
def test_the_suggested_command_has_the_option(check: Call, call: Call, tmp_path: Path) -> None:
    onnx.save(made(GELU, "i = Cast<to=7>(g); r = [1, 2]; y = Tile(i, r)"), tmp_path / "a.onnx")
    file = str(tmp_path / "a.onnx")
    assert f"dml-tile lower {file} --target 4_0 --infer onnxruntime" in check(file, *OPTION, "-t", "4_0").stdout
    assert call("lower", file, *OPTION, "--target", "4_0").exit_code == 0
    assert call("lower", file, "--target", "4_0").exit_code == 1


@pytest.mark.long
def test_check_model_has_it_too() -> None:
    (result,) = check_model(behind_gelu(2, 3), infer="onnxruntime")
    assert (result.tile, result.inferred_by) == ("FLOAT32 {2,3} x {1,2} -> {2,6}", "onnxruntime")
    assert not result.unknown
    assert check_model(behind_gelu(2, 3))[0].unknown
    with pytest.raises(ValueError, match="infer is 'ort'; 'onnxruntime' or None was expected"):
        check_model(behind_gelu(2, 3), infer="ort")


@pytest.mark.parametrize("package", ["onnxruntime.tools", "sympy"])
def test_what_is_not_installed_is_named_where_it_is_needed(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "onnxruntime.tools.symbolic_shape_infer", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=INSTALL):
        tile_in(behind_gelu(2, 3), ASKED)
    assert tile_in(model(REPEATS, tile_node()), ASKED).inferred_by == ""


def test_check_names_what_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: Call) -> None:
    lacking = tmp_path / "lacking"
    lacking.mkdir()
    (lacking / "sympy.py").write_text("raise ImportError('there is no sympy')")
    monkeypatch.syspath_prepend(str(lacking))
    monkeypatch.setattr(parent, "started", started)  # this process may have imported it
    onnx.save(behind_gelu(2, 3), tmp_path / "a.onnx")
    result = check(str(tmp_path / "a.onnx"), *OPTION)
    assert result.exit_code == 2
    assert INSTALL in " ".join(result.stderr.split())
    with pytest.raises(InputError, match=INSTALL):
        check_model(tmp_path / "a.onnx", infer="onnxruntime")
