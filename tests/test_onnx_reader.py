"""Tiles of ONNX models: where they are found, by which opset, and what is known of their inputs."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from onnx import FunctionProto, ModelProto, TensorProto, helper

from dml_tile.dialects.tiles import Request
from dml_tile.errors import InputError, Problem
from dml_tile.readers.model_tile import DIALECTS, KnownShapes, TileNode
from dml_tile.readers.onnx import functions
from dml_tile.readers.onnx.tiles import read_nodes
from tests.helpers.onnx_graphs import (
    BOOL,
    FLOAT,
    INT64,
    call,
    computed,
    constant,
    function,
    graph,
    if_node,
    model,
    node,
    nodes_of,
    places,
    tile_in,
    tile_node,
    typed,
)

MODELS: Final = Path(__file__).parent / "data" / "models"

TILE_13: Final = DIALECTS["ONNX Tile-13"]
R: Final = constant("r", [2, 2])
X: Final = typed("x", [2, 3])
COND: Final = typed("c", [], BOOL)


# Real models

COMMITS: Final = {"134a4bbe5": 6, "4a1ab61cf": 6, "522c05566": 6, "acaa175e7": 13, "ebac0463a": 6}
REAL: Final[dict[str, Any]] = {"burn_tile.onnx": ("ONNX Tile-13", (2, 2), (2, 2))} | {
    f"onnx_test_{name}_{commit}.onnx": (f"ONNX Tile-{version}", shape, None)
    for commit, version in COMMITS.items()
    for name, shape in (("tile", (2, 3, 4, 5)), ("tile_precomputed", (2, 2)))
}


def test_each_real_model_has_its_tile() -> None:
    assert {path.name for path in MODELS.glob("*.onnx")} == set(REAL)
    for name, expected in REAL.items():
        (found,) = read_nodes(MODELS / name, KnownShapes())
        assert isinstance(found, TileNode)
        assert (found.dialect.name, found.shape, found.repeats) == expected
        assert (found.data_type, found.error) == ("float32", "")


# Opsets, types and arguments


@pytest.mark.parametrize(
    ("opset", "dialect"),
    [(6, "ONNX Tile-6"), (12, "ONNX Tile-6"), (13, "ONNX Tile-13"), (21, "ONNX Tile-13"), (99, "ONNX Tile-13")],
)
def test_the_opset_decides_the_dialect(opset: int, dialect: str) -> None:
    found = tile_in(model(R, tile_node(name="Tile_1"), opset=opset))
    assert found == TileNode("Tile_1", DIALECTS[dialect], "float32", (2, 3), (2, 2))
    assert found.request == Request(DIALECTS[dialect], "float32", (2, 3), (2, 2))


@pytest.mark.parametrize("opset", [1, 5])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_tile_1_takes_tiles_and_axis_of_either_type(opset: int, dtype: str) -> None:
    made = model(constant("t", 4, dtype), constant("a", 1, dtype), "y = Tile(x, t, a)", opset=opset)
    assert tile_in(made) == TileNode("Tile->y", DIALECTS["ONNX Tile-1"], "float32", (2, 3), (1, 4))
    at_run_time = model("t = 4; y = Tile(x, t, a)", inputs=[typed("x", [2]), typed("a", [])], opset=opset)
    assert tile_in(at_run_time).repeats is None


def test_the_default_domain_has_two_spellings() -> None:
    made = model(R, node("Tile", ["x", "r"], ["y"], domain="ai.onnx"), opset=9)
    made.opset_import[0].domain = "ai.onnx"
    assert tile_in(made).dialect.name == "ONNX Tile-6"
    assert nodes_of(model(R, "y = com.stranger.Tile(x, r)", domains={"com.stranger": 1})) == []


def test_before_ir_version_3_the_opset_is_1() -> None:
    made = model("t = 4; a = 1; y = Tile(x, t, a)", ir_version=2)
    del made.opset_import[:]
    assert tile_in(made).dialect.name == "ONNX Tile-1"


@pytest.mark.parametrize("version", [None, 0, -3])
def test_a_model_without_an_opset_for_its_tile_is_a_problem(version: int | None) -> None:
    made = model(R, tile_node(), domains={"com.stranger": 1})
    if version is None:
        del made.opset_import[0]
    else:
        made.opset_import[0].version = version
    (problem,) = nodes_of(made)
    assert isinstance(problem, Problem)
    assert problem.pointer == "Tile->y"
    assert f"imports opset {version}" in problem.message


@pytest.mark.parametrize(
    ("element", "name"),
    [
        (TensorProto.FLOAT, "float32"),
        (TensorProto.BOOL, "bool"),
        (TensorProto.BFLOAT16, "bfloat16"),
        (TensorProto.STRING, "string"),
        (TensorProto.COMPLEX64, "complex64"),
        (TensorProto.DOUBLE, "float64"),
        (TensorProto.FLOAT8E5M2, "float8_e5m2"),  # which the dialect does not list
        (TensorProto.UNDEFINED, None),
        (999, None),
    ],
)
def test_types_have_onnx_s_names_in_numpy_s_spelling(element: int, name: str | None) -> None:
    found = tile_in(model(R, tile_node(), inputs=[typed("x", [2, 3], element)]))
    assert found.data_type == name
    assert ("float8_e5m2 is not one of" in found.error) == (name == "float8_e5m2")


@pytest.mark.parametrize("inputs", [[], ["x"], ["x", ""], ["", "r"], ["x", "r", "r", "r"]])
def test_a_tile_of_another_number_of_inputs_is_an_error(inputs: list[str]) -> None:
    found = tile_in(model(R, node("Tile", inputs, ["y"])))
    assert found.error == f"inputs: there are {len(list(filter(None, inputs)))}; input, repeats were expected"


@pytest.mark.parametrize(
    "text",
    [
        *(f"y = Tile({inputs})" for inputs in ("nowhere, r", "x, nowhere", "y, r", "x, y")),
        "a = Relu(b); b = Relu(a); y = Tile(a, r)",
        "y = Tile(s, r)",
    ],
)
def test_inputs_from_nowhere_from_the_tile_itself_or_that_are_no_tensor_are_unknown(text: str) -> None:
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, [2, 3])
    found = tile_in(model(R, text, inputs=[X, sequence]))
    assert found.unknown
    assert found.error == ""


# Places


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[first] a = Tile(x, r); [second] y = Tile(a, r)", ["first", "second"]),
        ("y = Tile(x, r)", ["Tile->y"]),
        ("[t] a = Tile(x, r); [t] y = Tile(a, r); [u] z = Relu(y)", ["t->a", "t->y"]),
    ],
    ids=["names in their order", "the output of a node without a name", "a name that stands twice"],
)
def test_a_tile_is_placed_by_its_name_or_output(text: str, expected: list[str]) -> None:
    assert places(model(R, text)) == expected


def test_a_name_is_kept_as_it_is() -> None:
    for name in ("a/b", "\x1b[31m", "…" * 50, "~1"):
        assert places(model(R, tile_node(name=name))) == [name]
    assert places(model(R, node("Tile", ["x", "r"], []))) == ["Tile->"]


def test_a_long_place_or_name_of_a_dimension_is_cut_in_the_middle() -> None:
    branch = if_node(tile_node(name="b" * 300), R, name="a" * 300)
    assert places(model(branch, inputs=[X, COND])) == ["a" * 100 + "…" + "b" * 99]
    shape = tile_in(model(R, tile_node(), inputs=[typed("x", ["n" * 10_000, 2])])).shape
    assert shape is not None
    assert len(str(shape[0])) == 200


def test_an_if_s_branches_see_the_outer_values() -> None:
    made = model(R, if_node(tile_node(output="t", name="Tile_1")), tile_node("w"), inputs=[X, COND])
    inside, behind = nodes_of(made)
    assert inside == TileNode("If_3/then_branch/Tile_1", TILE_13, "float32", (2, 3), (2, 2))
    assert isinstance(behind, TileNode)
    assert behind.shape == (None, None)  # the branches give different shapes


def test_an_if_s_outputs_and_branches_may_differ_in_number() -> None:
    first = graph([tile_node(output="t")], (), [typed("t")])
    for outputs, count in product([["w"], ["w", "v"], ["w", "v", "u"]], [1, 2, 3]):
        other = graph([tile_node(output=f"e{i}") for i in range(count)], (), [typed(f"e{i}") for i in range(count)])
        unequal = node("If", ["c"], outputs, then_branch=first, else_branch=other)
        found = nodes_of(model(R, unequal, tile_node("w"), inputs=[X, COND]))
        assert len(found) == 1 + count + 1
        assert found[-1] == TileNode("Tile->y", TILE_13, "float32", (4, 6), (2, 2))


def test_a_scan_s_body_has_slices() -> None:
    body = graph([constant("r1", [5]), tile_node("s", "r1", "t")], [typed("s")], [typed("t")])
    made = model(node("Scan", ["x"], ["w"], name="S", body=body, num_scan_inputs=1), tile_node("w", "r"))
    inside, _ = nodes_of(made)
    assert inside == TileNode("S/body/Tile->t", TILE_13, "float32", (3,), (5,))


def test_a_loop_s_body_sees_the_outer_values_and_what_it_declares() -> None:
    body = graph(
        [node("Identity", ["b"], ["bo"]), tile_node("s", output="t"), tile_node("x", output="u")],
        [typed("i", [], INT64), typed("b", [], BOOL), typed("s", ["k", 3])],
        [typed("bo", [], BOOL), typed("s"), typed("t"), typed("u")],
    )
    loop = node("Loop", ["", "c", "x"], ["p", "q", "w"], name="L", body=body)
    assert nodes_of(model(R, loop, inputs=[X, COND])) == [
        TileNode("L/body/Tile->t", TILE_13, "float32", (2, 3), (2, 2)),  # what the Loop is given: the body keeps it
        TileNode("L/body/Tile->u", TILE_13, "float32", (2, 3), (2, 2)),
    ]


def test_any_attribute_with_graphs_is_looked_into() -> None:
    inner = graph([tile_node(output="t")], (), [typed("t")])
    outer = node("Fork", ["x"], ["y"], domain="com.stranger", bodies=[inner, inner])
    made = model(R, outer, domains={"com.stranger": 1})
    assert places(made) == ["Fork->y/bodies[0]/Tile->t", "Fork->y/bodies[1]/Tile->t"]


# Bounds


def test_a_tile_deep_in_subgraphs_is_found() -> None:
    inner = tile_node(output="w", name="T")
    for _ in range(20):
        inner = if_node(inner, name="I")
    found = tile_in(model(R, inner, inputs=[X, COND]))
    assert found.pointer == "I/then_branch/" * 7 + "I/…" + ("/I/then_branch" * 8)[-97:] + "/T"
    assert (found.shape, found.repeats) == ((2, 3), (2, 2))


# Model-local functions: each call has its own tiles

TWICE: Final = function("Twice", ["a"], ["b"], constant("two", [2, 2]), tile_node("a", "two", "b", "Tile_1"))


def test_a_function_s_tile_is_placed_in_each_call_with_the_caller_s_shapes() -> None:
    made = model("[A] m = own.Twice(x); y = own.Twice(m)", functions=[TWICE])
    assert nodes_of(made) == [
        TileNode("A/Tile_1", TILE_13, "float32", (2, 3), (2, 2)),
        TileNode("Twice->y/Tile_1", TILE_13, "float32", (4, 6), (2, 2)),
    ]


@pytest.mark.parametrize("opset", ["\u0663", "x", "", "9" * 5000])
def test_a_domain_that_looks_like_a_moved_node_s_is_another_domain(opset: str) -> None:
    made = model(R, node("Tile", ["x", "r"], ["y"], domain=f"ai.onnx@{opset}"))
    assert nodes_of(made) == []


def test_functions_call_functions_in_their_subgraphs_and_one_that_is_not_called_is_none() -> None:
    outer = function("Outer", ["a"], ["b"], call("Twice", ["a"], ["b"], "inner"))
    maybe = function("Maybe", ["x", "c"], ["w"], if_node(call("Outer", ["x"], ["t"], "F")))
    functions_ = [TWICE, outer, maybe, function("Uncalled", ["a"], ["b"], R, tile_node("a", output="b"))]
    for called, way in (call("Maybe", ["x", "c"], ["y"], "M"), "M/"), (if_node(call("Outer", ["x"], ["t"], "F")), ""):
        made = model(called, inputs=[X, COND], functions=functions_)
        assert nodes_of(made) == [TileNode(f"{way}If_3/then_branch/F/inner/Tile_1", TILE_13, "float32", (2, 3), (2, 2))]


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
    given: dict[str, Any], fields: dict[str, Any], repeats: tuple[int, ...] | None
) -> None:
    counts = node("Constant", [], ["r"])
    counts.attribute.add(name="value_ints", ref_attr_name="counts", type=7)
    body = function("Some", ["a"], ["b"], counts, tile_node("a", "r", "b"), **fields)
    assert tile_in(model(call("Some", ["x"], ["y"], **given), functions=[body])).repeats == repeats


def test_an_input_that_a_function_passes_on_is_the_caller_s() -> None:
    body = function("Pass", ["a", "left_out"], ["a"], R)
    assert tile_in(model(R, "m = own.Pass(x); y = Tile(m, r)", functions=[body])).shape == (2, 3)


@pytest.mark.parametrize(
    ("opset", "dialect", "own_opset", "own_dialect"),
    [
        (13, "ONNX Tile-13", 12, "ONNX Tile-6"),
        (6, "ONNX Tile-6", 21, "ONNX Tile-13"),
    ],
)
def test_a_function_has_its_own_values_and_opset(opset: int, dialect: str, own_opset: int, own_dialect: str) -> None:
    body = function("Own", ["a"], ["b"], *computed("r = [7, 7]; b = Tile(a, r)"), opset=own_opset)
    made = model(R, "[A] m = own.Own(x); y = Tile(m, r)", opset=opset, functions=[body], domains={"own": 1})
    assert nodes_of(made) == [
        TileNode("A/Tile->b", DIALECTS[own_dialect], "float32", (2, 3), (7, 7)),
        TileNode("Tile->y", DIALECTS[dialect], "float32", (14, 21), (2, 2)),
    ]


def test_a_function_s_other_operators_are_of_its_opset_too() -> None:
    nodes = computed("s = Squeeze<axes=[0]>(a); b = Tile(s, r)")  # the axes are an input since opset 13
    body = function("Old", ["a"], ["b"], R, *nodes, opset=11)
    made = model("y = own.Old(x)", inputs=[typed("x", [1, 2, 3])], functions=[body])
    assert tile_in(made).shape == (2, 3)


def nested_ifs(count: int, *last: FunctionProto) -> ModelProto:
    """A model of as many functions, each of which calls the next one in an If."""
    bodies = [function(f"F{i}", ["x", "c"], ["w"], if_node(call(f"F{i + 1}", ["x", "c"], ["t"]))) for i in range(count)]
    return model("y = own.F0(x, c)", inputs=[X, COND], functions=[*bodies, *last])


RECURSIVE: Final = function("Loop", ["a"], ["b"], *computed("b = own.Loop(a)"))


@pytest.mark.parametrize("made", [model("y = own.Loop(x)", functions=[RECURSIVE]), nested_ifs(40)])
def test_functions_that_nest_too_deep_are_refused(made: ModelProto) -> None:
    with pytest.raises(InputError, match="nested more than 64 deep"):
        nodes_of(made)


def test_functions_that_come_to_too_many_nodes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MAX_NODES", 1000)
    bodies = [
        function(f"F{i}", ["a"], ["b"], *computed(f"m = own.F{i + 1}(a); b = own.F{i + 1}(m)")) for i in range(40)
    ]
    with pytest.raises(InputError, match="more than 1000 nodes"):
        nodes_of(model("y = own.F0(x)", functions=[*bodies, function("F40", ["a"], ["b"])]))


def test_subgraphs_that_functions_nest_deeper_than_onnx_s_inference_takes_are_read() -> None:
    found = tile_in(nested_ifs(31, function("F31", ["x", "c"], ["w"], R, tile_node(output="w"))))
    assert (found.shape, found.repeats) == ((2, 3), (2, 2))
