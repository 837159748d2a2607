"""Model-local functions of ONNX models: their tiles are told where they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from onnx import helper

from dml_tile.errors import InputError
from dml_tile.readers.model_tile import DIALECTS, TileNode
from dml_tile.readers.onnx import functions
from tests.helpers.onnx_graphs import (
    BOOL,
    call,
    constant,
    function,
    if_node,
    model,
    node,
    nodes_of,
    places,
    tile_in,
    tile_node,
    typed,
)

R: Final = constant("r", [2, 2])
COND: Final = typed("c", [], BOOL)

TWICE: Final = function("Twice", ["a"], ["b"], constant("two", [2, 2]), tile_node("a", "two", "b", "Tile_1"))


def test_a_function_s_tile_is_told_where_it_is_called_with_the_caller_s_shapes(tmp_path: Path) -> None:
    made = model(call("Twice", ["x"], ["m"], "A"), call("Twice", ["m"], ["y"]), functions=[TWICE])
    assert nodes_of(made, tmp_path) == [
        TileNode("A/Tile_1", DIALECTS["ONNX Tile-13"], "float32", (2, 3), (2, 2)),
        TileNode("Twice->y/Tile_1", DIALECTS["ONNX Tile-13"], "float32", (4, 6), (2, 2)),
    ]


@pytest.mark.parametrize("opset", ["\u0663", "x", "", "9" * 5000])
def test_a_domain_that_looks_like_a_moved_node_s_is_another_domain(tmp_path: Path, opset: str) -> None:
    made = model(R, node("Tile", ["x", "r"], ["y"], domain=f"ai.onnx@{opset}"))
    assert nodes_of(made, tmp_path) == []


def test_a_function_that_is_not_called_is_none(tmp_path: Path) -> None:
    assert nodes_of(model(node("Relu", ["x"], ["y"]), functions=[TWICE]), tmp_path) == []


def test_functions_call_functions_and_are_called_in_subgraphs(tmp_path: Path) -> None:
    outer = function("Outer", ["a"], ["b"], call("Twice", ["a"], ["b"], "inner"))
    made = model(if_node(call("Outer", ["x"], ["t"], "F")), inputs=[typed("x", [2, 3]), COND], functions=[TWICE, outer])
    assert places(made, tmp_path) == ["If_3/then_branch/F/inner/Tile_1"]


def test_a_function_s_subgraphs_are_named_as_the_function_names_them(tmp_path: Path) -> None:
    body = function("Maybe", ["x", "c"], ["w"], R, if_node(tile_node(output="t")))
    made = model(call("Maybe", ["x", "c"], ["y"], "M"), inputs=[typed("x", [2, 3]), COND], functions=[body])
    assert nodes_of(made, tmp_path) == [
        TileNode("M/If_3/then_branch/Tile->t", DIALECTS["ONNX Tile-13"], "float32", (2, 3), (2, 2))
    ]


def test_a_function_s_values_are_its_own(tmp_path: Path) -> None:
    body = function("Own", ["a"], ["b"], constant("r", [7, 7]), tile_node("a", "r", "b"))
    made = model(R, call("Own", ["x"], ["m"]), tile_node("m"), functions=[body])
    assert [found.repeats for found in nodes_of(made, tmp_path) if isinstance(found, TileNode)] == [(7, 7), (2, 2)]


@pytest.mark.parametrize(("given", "repeats"), [({"counts": [3, 1]}, (3, 1)), ({}, (1, 5))])
def test_a_function_s_attribute_is_the_call_s_or_the_default(
    given: dict[str, Any], repeats: tuple[int, ...], tmp_path: Path
) -> None:
    counts = node("Constant", [], ["r"])
    counts.attribute.add(name="value_ints", ref_attr_name="counts", type=7)
    defaults = [helper.make_attribute("counts", [1, 5])]
    body = function("Some", ["a"], ["b"], counts, tile_node("a", "r", "b"), attribute_protos=defaults)
    assert tile_in(model(call("Some", ["x"], ["y"], **given), functions=[body]), tmp_path).repeats == repeats


def test_an_attribute_that_nobody_gives_leaves_the_repeats_unknown(tmp_path: Path) -> None:
    counts = node("Constant", [], ["r"])
    counts.attribute.add(name="value_ints", ref_attr_name="counts", type=7)
    body = function("Some", ["a"], ["b"], counts, tile_node("a", "r", "b"), attributes=["counts"])
    assert tile_in(model(call("Some", ["x"], ["y"]), functions=[body]), tmp_path).repeats is None


def test_an_input_that_a_function_passes_on_is_the_caller_s(tmp_path: Path) -> None:
    body = function("Pass", ["a", "left_out"], ["a"], R)
    assert tile_in(model(R, call("Pass", ["x"], ["m"]), tile_node("m"), functions=[body]), tmp_path).shape == (2, 3)


@pytest.mark.parametrize(("model_s", "function_s"), [(13, 12), (12, 13), (6, 21)])
def test_a_function_s_opset_decides_its_dialect(model_s: int, function_s: int, tmp_path: Path) -> None:
    made = model(R, call("Own", ["x"], ["m"]), tile_node("m"), opset=model_s)
    body = function("Own", ["a"], ["b"], constant("r", [7, 7]), tile_node("a", "r", "b"), opset=function_s)
    made.functions.append(body)
    made.opset_import.append(helper.make_opsetid("own", 1))
    inside, behind = nodes_of(made, tmp_path)
    assert isinstance(inside, TileNode)
    assert inside.dialect.name == f"ONNX Tile-{13 if function_s >= 13 else 6}"
    assert behind == TileNode(
        "Tile->y", DIALECTS[f"ONNX Tile-{13 if model_s >= 13 else 6}"], "float32", (14, 21), (2, 2)
    )


def test_a_function_s_other_operators_are_of_its_opset_too(tmp_path: Path) -> None:
    squeeze = node("Squeeze", ["a"], ["s"], axes=[0])  # an input since opset 13
    body = function("Old", ["a"], ["b"], R, squeeze, tile_node("s", "r", "b"), opset=11)
    made = model(call("Old", ["x"], ["y"]), inputs=[typed("x", [1, 2, 3])], functions=[body])
    assert tile_in(made, tmp_path).shape == (2, 3)


def test_functions_that_call_each_other_are_refused(tmp_path: Path) -> None:
    body = function("Loop", ["a"], ["b"], call("Loop", ["a"], ["b"]))
    with pytest.raises(InputError, match="nested more than 64 deep"):
        nodes_of(model(call("Loop", ["x"], ["y"]), functions=[body]), tmp_path)


def test_functions_that_come_to_too_many_nodes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MAX_NODES", 1000)
    bodies = [
        function(f"F{i}", ["a"], ["b"], call(f"F{i + 1}", ["a"], ["m"]), call(f"F{i + 1}", ["m"], ["b"]))
        for i in range(40)
    ]
    with pytest.raises(InputError, match="more than 1000 nodes"):
        nodes_of(model(call("F0", ["x"], ["y"]), functions=[*bodies, function("F40", ["a"], ["b"])]), tmp_path)


def test_subgraphs_that_functions_nest_too_deep_are_refused(tmp_path: Path) -> None:
    bodies = [function(f"F{i}", ["x", "c"], ["w"], if_node(call(f"F{i + 1}", ["x", "c"], ["t"]))) for i in range(40)]
    made = model(call("F0", ["x", "c"], ["y"]), inputs=[typed("x", [2, 3]), COND], functions=bodies)
    with pytest.raises(InputError, match="nested more than 64 deep"):
        nodes_of(made, tmp_path)


def test_subgraphs_that_functions_nest_deeper_than_onnx_s_inference_takes_are_read(tmp_path: Path) -> None:
    count = 31
    bodies = [function(f"F{i}", ["x", "c"], ["w"], if_node(call(f"F{i + 1}", ["x", "c"], ["t"]))) for i in range(count)]
    last = function(f"F{count}", ["x", "c"], ["w"], R, tile_node(output="w"))
    made = model(call("F0", ["x", "c"], ["y"]), inputs=[typed("x", [2, 3]), COND], functions=[*bodies, last])
    found = tile_in(made, tmp_path)
    assert (found.shape, found.repeats) == ((2, 3), (2, 2))
