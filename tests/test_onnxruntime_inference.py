"""onnxruntime's inference of its own operators, as ``--infer onnxruntime`` asks for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from dml_tile import check_model
from dml_tile.errors import InputError
from dml_tile.readers.model_tile import ONNXRUNTIME, KnownShapes, TileNode
from dml_tile.readers.onnx.functions import MICROSOFT, Operator
from dml_tile.readers.onnx.values import Value, dimensions
from dml_tile.readers.sandbox import parent
from dml_tile.readers.sandbox.parent import started
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import FLOAT, INT64, constant, graph, model, node, tile_in, tile_node, typed

ort = pytest.importorskip("onnxruntime")
pytest.importorskip("sympy")

from dml_tile.readers.onnx.onnxruntime import onnxruntime_inference  # noqa: E402  # the packages are there

INT32: Final = TensorProto.INT32
UINT8: Final = TensorProto.UINT8
REPEATS: Final = constant("r", [1, 2])
ASKED: Final = KnownShapes(infer=ONNXRUNTIME)
OPTION: Final = ["--infer", "onnxruntime"]
INSTALL: Final = "--infer onnxruntime needs onnxruntime and sympy: pip install onnxruntime sympy"


def microsoft(kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    return node(kind, inputs, outputs, domain=MICROSOFT, name=f"{kind}_1", **attributes)


GELU: Final = microsoft("Gelu", ["x"], ["g"])
FUSED_CONV: Final = microsoft("FusedConv", ["x", "w"], ["g"])


def made(*nodes: onnx.NodeProto, **fields: Any) -> ModelProto:
    return model(*nodes, domains={MICROSOFT: 1}, **fields)


def behind_gelu(*shape: int | str | None) -> ModelProto:
    return made(GELU, REPEATS, tile_node("g", name="T"), inputs=[typed("x", shape)])


BEHIND_FUSED_CONV: Final = made(
    FUSED_CONV,
    constant("r", [1, 2, 1, 1]),
    tile_node("g", name="T"),
    inputs=[typed("x", [1, 2, 4, 4]), typed("w", [3, 2, 1, 1])],
)


def told(tile: TileNode) -> tuple[Any, ...]:
    return tile.data_type, tile.shape, tile.repeats, tile.inferred_by


def test_what_gelu_gives_is_known_if_it_is_asked_for(tmp_path: Path) -> None:
    assert told(tile_in(behind_gelu(2, 3), tmp_path, ASKED)) == ("float32", (2, 3), (1, 2), "onnxruntime")
    assert told(tile_in(behind_gelu(2, 3), tmp_path)) == (None, (None, None), (1, 2), "")


def test_sizes_keep_the_names_that_the_model_gives_them(tmp_path: Path) -> None:
    tile = tile_in(behind_gelu("N", None), tmp_path, ASKED)
    assert tile.shape == ("N", None)
    assert tile.unknown == ("InputTensor.Sizes[0] (N)", "InputTensor.Sizes[1]: the input 'x'")
    assert tile_in(behind_gelu("N", 3), tmp_path, KnownShapes({"N": 4}, {}, ONNXRUNTIME)).shape == (4, 3)


def test_repeats_that_are_computed_from_inferred_sizes_are_known(tmp_path: Path) -> None:
    computed = made(GELU, node("Shape", ["g"], ["r"]), tile_node(), inputs=[typed("x", [2, 3])])
    assert told(tile_in(computed, tmp_path, ASKED)) == ("float32", (2, 3), (2, 3), "onnxruntime")
    assert tile_in(computed, tmp_path).repeats_origin.endswith("Gelu 'Gelu_1' (--infer onnxruntime may know it)")


def test_it_answers_inside_of_loops_and_branches(tmp_path: Path) -> None:
    branch = graph([GELU, REPEATS, tile_node("g", output="b")], (), [typed("b")])
    other = graph([node("Identity", ["x"], ["e"])], (), [typed("e")])
    choice = node("If", ["c"], ["y"], name="If_1", then_branch=branch, else_branch=other)
    both = made(choice, inputs=[typed("x", [2, 3]), typed("c", [], TensorProto.BOOL)])
    assert told(tile_in(both, tmp_path, ASKED)) == ("float32", (2, 3), (1, 2), "onnxruntime")


def test_what_it_does_not_know_stays_unknown_and_no_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    tile = tile_in(BEHIND_FUSED_CONV, tmp_path, ASKED)
    assert told(tile) == (None, (None,) * 4, (1, 2, 1, 1), "")
    assert tile.unknown[0] == "InputTensor.DataType: computed by com.microsoft.FusedConv 'FusedConv_1'"
    assert not list(here.iterdir())
    assert Path.cwd() == here


def test_without_it_the_operator_and_the_option_are_named(tmp_path: Path) -> None:
    field = "InputTensor.DataType: computed by com.microsoft.FusedConv 'FusedConv_1' (--infer onnxruntime may know it)"
    assert tile_in(BEHIND_FUSED_CONV, tmp_path).unknown[0] == field
    strange = model(
        node("Magic", ["x"], ["g"], domain="com.own", name="m"), REPEATS, tile_node("g"), domains={"com.own": 1}
    )
    assert tile_in(strange, tmp_path).unknown[0] == "InputTensor.DataType: computed by com.own.Magic 'm'"
    assert tile_in(strange, tmp_path, ASKED).unknown[0] == "InputTensor.DataType: computed by com.own.Magic 'm'"


def test_a_tile_of_its_own_is_not_told_as_inferred(tmp_path: Path) -> None:
    beside = made(GELU, REPEATS, tile_node("x"), inputs=[typed("x", [2, 3])])
    assert told(tile_in(beside, tmp_path, ASKED)) == ("float32", (2, 3), (1, 2), "")


Types = list[tuple[int, list[Any]]]

OPERATORS: Final[dict[str, tuple[onnx.NodeProto, Types, bool]]] = {
    # the node, its inputs' types, and whether its first output becomes known
    "Gelu": (microsoft("Gelu", ["a"], ["y"]), [(FLOAT, [2, 3])], True),
    "FastGelu": (microsoft("FastGelu", ["a"], ["y"]), [(FLOAT, ["N", 3])], True),
    "BiasGelu": (microsoft("BiasGelu", ["a", "b"], ["y"]), [(FLOAT, [2, 3]), (FLOAT, [3])], True),
    "Attention": (
        microsoft("Attention", ["a", "b", "c"], ["y", "p"], num_heads=2),
        [(FLOAT, [2, 5, 8]), (FLOAT, [8, 24]), (FLOAT, [24])],
        True,
    ),
    "MultiHeadAttention": (
        microsoft("MultiHeadAttention", ["a", "b", "c"], ["y"], num_heads=2),
        [(FLOAT, [2, 5, 8]), (FLOAT, [2, 6, 8]), (FLOAT, [2, 6, 12])],
        True,
    ),
    "MultiHeadAttention of heads": (
        microsoft("MultiHeadAttention", ["a", "b", "c"], ["y"], num_heads=2),
        [(FLOAT, [2, 5, 8]), (FLOAT, [2, 2, 6, 4]), (FLOAT, [2, 2, 6, 6])],
        False,
    ),
    "SkipLayerNormalization": (
        microsoft("SkipLayerNormalization", ["a", "b", "c"], ["y", "", "", "s"]),
        [(FLOAT, [2, 5, 8]), (FLOAT, [2, 5, 8]), (FLOAT, [8])],
        True,
    ),
    "RotaryEmbedding": (
        microsoft("RotaryEmbedding", ["a", "b", "c", "d"], ["y"]),
        [(FLOAT, [2, 5, 8]), (INT64, [1]), (FLOAT, [9, 4]), (FLOAT, [9, 4])],
        True,
    ),
    "MatMulNBits": (
        microsoft("MatMulNBits", ["a", "b", "c"], ["y"], K=32, N=8, bits=4, block_size=32),
        [(FLOAT, [2, 5, 32]), (UINT8, [8, 1, 16]), (FLOAT, [8])],
        True,
    ),
    "DequantizeLinear": (
        microsoft("DequantizeLinear", ["a", "b", "c"], ["y"]),
        [(UINT8, [2, 3]), (FLOAT, []), (UINT8, [])],
        True,
    ),
    "GatherBlockQuantized": (
        microsoft("GatherBlockQuantized", ["a", "b", "c"], ["y"], bits=4, block_size=32, quantize_axis=1),
        [(UINT8, [4, 16]), (INT64, [2]), (FLOAT, [4, 1])],
        False,
    ),
    "DynamicTimeWarping": (microsoft("DynamicTimeWarping", ["a"], ["y"]), [(FLOAT, [5, 6])], False),
    "FusedMatMul": (microsoft("FusedMatMul", ["a", "b"], ["y"], transA=1), [(FLOAT, [3, 2]), (FLOAT, [3, 4])], False),
}
ELEMENTS: Final[dict[int, str]] = {
    FLOAT: "tensor(float)",
    INT64: "tensor(int64)",
    INT32: "tensor(int32)",
    UINT8: "tensor(uint8)",
}


@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_inferred_is_what_a_session_of_onnxruntime_has(name: str) -> None:
    asked, types, is_known = OPERATORS[name]
    values = {
        given: Value(helper.make_tensor_type_proto(element, shape))
        for given, (element, shape) in zip(asked.input, types, strict=True)
    }
    inferred = onnxruntime_inference()(asked, Operator(MICROSOFT, asked.op_type, 17), values)
    assert ("y" in inferred) == is_known
    inputs = [typed(given, shape, element) for given, (element, shape) in zip(asked.input, types, strict=True)]
    outputs = [onnx.ValueInfoProto(name=output) for output in asked.output if output]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    whole = helper.make_model(graph([asked], inputs, outputs), opset_imports=imports, ir_version=10)
    has = {output.name: output for output in ort.InferenceSession(whole.SerializeToString()).get_outputs()}
    for output, type_ in inferred.items():
        assert ELEMENTS[type_.tensor_type.elem_type] == has[output].type
        assert list(dimensions(type_) or ()) == has[output].shape


HOSTILE: Final = {
    "a graph": microsoft("Gelu", ["x"], ["g"], body=graph([])),
    "a tensor": microsoft("Constant", [], ["g"], value=TensorProto(data_type=FLOAT, dims=[2**40])),
    "no inputs": microsoft("Gelu", [], ["g"]),
    "no outputs": microsoft("Gelu", ["x"], []),
    "a missing attribute": microsoft("MatMulNBits", ["x", "x", "x"], ["g"]),
    "a negative size": microsoft("MatMulNBits", ["x", "x", "x"], ["g"], K=3, N=-(2**63)),
    "no heads": microsoft("Attention", ["x", "x"], ["g", "p"], num_heads=0),
    "an axis past the rank": microsoft("Transpose", ["x"], ["g"], perm=[7, -9]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_malformed_node_is_unknown(name: str, tmp_path: Path) -> None:
    tile = tile_in(made(HOSTILE[name], REPEATS, tile_node("g")), tmp_path, ASKED)
    assert tile.shape is None or None in tile.shape


@pytest.mark.long
def test_check_says_what_inferred(check: Call, tmp_path: Path) -> None:
    onnx.save(behind_gelu("N", 3), tmp_path / "a.onnx")
    onnx.save(BEHIND_FUSED_CONV, tmp_path / "b.onnx")
    result = check(str(tmp_path), *OPTION, "--dim", "N=4", "--format", "json")
    gelu, fused = json.loads(result.stdout)["results"]
    assert (gelu["tile"], gelu["so_far"], gelu["inferred_by"]) == ("FLOAT32 {4,3} x {1,2} -> {4,6}", False, ONNXRUNTIME)
    assert (fused["tile"], fused["so_far"], fused["inferred_by"]) == ("? {?,?,?,?} x {1,2,1,1} -> {?,?,?,?}", True, "")
    text = check(str(tmp_path), *OPTION, "-t", "4_0,5_0").stdout
    assert text.count("  note: its type and sizes rest on onnxruntime's inference\n") == 1
    assert "--infer" not in text
    assert "(--infer onnxruntime may know it)" in check(str(tmp_path)).stdout


@pytest.mark.long
@pytest.mark.parametrize("output_format", ["github", "sarif", "junit", "html"])
def test_each_format_says_what_inferred(output_format: str, check: Call, tmp_path: Path) -> None:
    onnx.save(behind_gelu("N", 3), tmp_path / "a.onnx")
    file = str(tmp_path / "a.onnx")
    assert "onnxruntime" in check(file, *OPTION, "--format", output_format).stdout.replace(file, "")


@pytest.mark.long
def test_the_suggested_command_has_the_option(check: Call, call: Call, tmp_path: Path) -> None:
    cast = node("Cast", ["g"], ["i"], to=INT64)
    onnx.save(made(GELU, cast, REPEATS, tile_node("i"), inputs=[typed("x", [2, 3])]), tmp_path / "a.onnx")
    file = str(tmp_path / "a.onnx")
    assert f"dml-tile lower {file} --target 4_0 --infer onnxruntime" in check(file, *OPTION, "-t", "4_0").stdout
    assert call("lower", file, *OPTION, "--target", "4_0").exit_code == 0
    assert call("lower", file, "--target", "4_0").exit_code == 1


@pytest.mark.long
def test_show_draws_what_is_inferred(show: Call, tmp_path: Path) -> None:
    onnx.save(behind_gelu(2, 3), tmp_path / "a.onnx")
    assert "OutputTensor: FLOAT32, 12 elements" in show(str(tmp_path / "a.onnx"), *OPTION).stdout
    assert "OutputTensor" not in show(str(tmp_path / "a.onnx")).stdout


@pytest.mark.long
def test_check_model_has_it_too() -> None:
    (result,) = check_model(behind_gelu(2, 3), infer="onnxruntime")
    assert (result.tile, result.unknown, result.inferred_by) == (
        "FLOAT32 {2,3} x {1,2} -> {2,6}", (), "onnxruntime"
    )  # fmt: skip
    assert check_model(behind_gelu(2, 3))[0].unknown
    with pytest.raises(ValueError, match="infer is 'ort'; 'onnxruntime' or None was expected"):
        check_model(behind_gelu(2, 3), infer="ort")


@pytest.mark.parametrize("package", ["onnxruntime.tools", "sympy"])
def test_what_is_not_installed_is_named_where_it_is_needed(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "onnxruntime.tools.symbolic_shape_infer", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=INSTALL):
        tile_in(behind_gelu(2, 3), tmp_path, ASKED)
    assert tile_in(model(REPEATS, tile_node()), tmp_path, ASKED).inferred_by == ""


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
