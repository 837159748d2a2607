"""Model-local functions of ONNX models: each call has its own tiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from onnx import FunctionProto, ModelProto, helper

from dml_tile.errors import InputError
from dml_tile.readers.model_tile import DIALECTS, TileNode
from dml_tile.readers.onnx import functions
from tests.helpers.onnx_graphs import (
    BOOL,
    call,
    computed,
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

TILE_13: Final = DIALECTS["ONNX Tile-13"]
R: Final = constant("r", [2, 2])
X_AND_COND: Final = [typed("x", [2, 3]), typed("c", [], BOOL)]

TWICE: Final = function("Twice", ["a"], ["b"], constant("two", [2, 2]), tile_node("a", "two", "b", "Tile_1"))


def test_a_function_s_tile_is_placed_in_each_call_with_the_caller_s_shapes(tmp_path: Path) -> None:
    made = model("[A] m = own.Twice(x); y = own.Twice(m)", functions=[TWICE])
    assert nodes_of(made, tmp_path) == [
        TileNode("A/Tile_1", TILE_13, "float32", (2, 3), (2, 2)),
        TileNode("Twice->y/Tile_1", TILE_13, "float32", (4, 6), (2, 2)),
    ]


@pytest.mark.parametrize("opset", ["\u0663", "x", "", "9" * 5000])
def test_a_domain_that_looks_like_a_moved_node_s_is_another_domain(tmp_path: Path, opset: str) -> None:
    made = model(R, node("Tile", ["x", "r"], ["y"], domain=f"ai.onnx@{opset}"))
    assert nodes_of(made, tmp_path) == []


def test_a_function_that_is_not_called_is_none(tmp_path: Path) -> None:
    assert nodes_of(model("y = Relu(x)", functions=[TWICE]), tmp_path) == []


def test_functions_call_functions_and_are_called_in_subgraphs(tmp_path: Path) -> None:
    outer = function("Outer", ["a"], ["b"], call("Twice", ["a"], ["b"], "inner"))
    made = model(if_node(call("Outer", ["x"], ["t"], "F")), inputs=X_AND_COND, functions=[TWICE, outer])
    assert places(made, tmp_path) == ["If_3/then_branch/F/inner/Tile_1"]


def test_a_function_s_subgraphs_are_named_as_the_function_names_them(tmp_path: Path) -> None:
    body = function("Maybe", ["x", "c"], ["w"], R, if_node(tile_node(output="t")))
    made = model(call("Maybe", ["x", "c"], ["y"], "M"), inputs=X_AND_COND, functions=[body])
    assert nodes_of(made, tmp_path) == [TileNode("M/If_3/then_branch/Tile->t", TILE_13, "float32", (2, 3), (2, 2))]


@pytest.mark.parametrize(
    ("given", "fields", "repeats"),
    [
        ({"counts": [3, 1]}, {"attribute_protos": [helper.make_attribute("counts", [1, 5])]}, (3, 1)),
        ({}, {"attribute_protos": [helper.make_attribute("counts", [1, 5])]}, (1, 5)),
        ({}, {"attributes": ["counts"]}, None),
    ],
    ids=["the call's", "the default", "nobody's"],
)
def test_a_function_s_attribute_is_the_call_s_or_the_default(
    given: dict[str, Any], fields: dict[str, Any], repeats: tuple[int, ...] | None, tmp_path: Path
) -> None:
    counts = node("Constant", [], ["r"])
    counts.attribute.add(name="value_ints", ref_attr_name="counts", type=7)
    body = function("Some", ["a"], ["b"], counts, tile_node("a", "r", "b"), **fields)
    assert tile_in(model(call("Some", ["x"], ["y"], **given), functions=[body]), tmp_path).repeats == repeats


def test_an_input_that_a_function_passes_on_is_the_caller_s(tmp_path: Path) -> None:
    body = function("Pass", ["a", "left_out"], ["a"], R)
    assert tile_in(model(R, "m = own.Pass(x); y = Tile(m, r)", functions=[body]), tmp_path).shape == (2, 3)


@pytest.mark.parametrize(
    ("opset", "dialect", "own_opset", "own_dialect"),
    [
        (13, "ONNX Tile-13", 12, "ONNX Tile-6"),
        (6, "ONNX Tile-6", 21, "ONNX Tile-13"),
    ],
)
def test_a_function_has_its_own_values_and_opset(
    opset: int, dialect: str, own_opset: int, own_dialect: str, tmp_path: Path
) -> None:
    body = function("Own", ["a"], ["b"], *computed("r = [7, 7]; b = Tile(a, r)"), opset=own_opset)
    made = model(R, "[A] m = own.Own(x); y = Tile(m, r)", opset=opset, functions=[body], domains={"own": 1})
    assert nodes_of(made, tmp_path) == [
        TileNode("A/Tile->b", DIALECTS[own_dialect], "float32", (2, 3), (7, 7)),
        TileNode("Tile->y", DIALECTS[dialect], "float32", (14, 21), (2, 2)),
    ]


def test_a_function_s_other_operators_are_of_its_opset_too(tmp_path: Path) -> None:
    nodes = computed("s = Squeeze<axes=[0]>(a); b = Tile(s, r)")  # the axes are an input since opset 13
    body = function("Old", ["a"], ["b"], R, *nodes, opset=11)
    made = model("y = own.Old(x)", inputs=[typed("x", [1, 2, 3])], functions=[body])
    assert tile_in(made, tmp_path).shape == (2, 3)


def nested_ifs(count: int, *last: FunctionProto) -> ModelProto:
    """A model of as many functions, each of which calls the next one in an If."""
    bodies = [function(f"F{i}", ["x", "c"], ["w"], if_node(call(f"F{i + 1}", ["x", "c"], ["t"]))) for i in range(count)]
    return model("y = own.F0(x, c)", inputs=X_AND_COND, functions=[*bodies, *last])


RECURSIVE: Final = function("Loop", ["a"], ["b"], *computed("b = own.Loop(a)"))


@pytest.mark.parametrize("made", [model("y = own.Loop(x)", functions=[RECURSIVE]), nested_ifs(40)])
def test_functions_that_nest_too_deep_are_refused(made: ModelProto, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nested more than 64 deep"):
        nodes_of(made, tmp_path)


def test_functions_that_come_to_too_many_nodes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MAX_NODES", 1000)
    bodies = [
        function(f"F{i}", ["a"], ["b"], *computed(f"m = own.F{i + 1}(a); b = own.F{i + 1}(m)")) for i in range(40)
    ]
    with pytest.raises(InputError, match="more than 1000 nodes"):
        nodes_of(model("y = own.F0(x)", functions=[*bodies, function("F40", ["a"], ["b"])]), tmp_path)


def test_subgraphs_that_functions_nest_deeper_than_onnx_s_inference_takes_are_read(tmp_path: Path) -> None:
    found = tile_in(nested_ifs(31, function("F31", ["x", "c"], ["w"], R, tile_node(output="w"))), tmp_path)
    assert (found.shape, found.repeats) == ((2, 3), (2, 2))
