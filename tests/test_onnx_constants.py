"""An ONNX model's repeats and shapes are computed from constants, shapes, and sizes that a caller fixes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from dml_tile.errors import InputError
from dml_tile.readers.model_tile import KnownShapes
from tests.helpers.onnx_graphs import (
    BOOL,
    INT64,
    computed,
    constant,
    graph,
    model,
    node,
    nodes_of,
    tensor,
    tile_in,
    tile_node,
    typed,
)

DYNAMIC: Final = [typed("x", ["N", 3])]


def repeats(*nodes: NodeProto, folder: Path, opset: int = 13, **fields: Any) -> tuple[int | None, ...] | None:
    """Return the repeats r of a tile of x that the nodes compute."""
    found = tile_in(model(*nodes, tile_node(), opset=opset, **fields), folder)
    assert found.error == ""
    return found.repeats


# Constants


@pytest.mark.parametrize(
    "attribute",
    [
        {"value": tensor("", [2, 5])},
        {"value": helper.make_tensor("", INT64, [2], [2, 5])},
        {"value": helper.make_tensor("", INT64, [2], np.array([2, 5]).tobytes(), raw=True)},
        {"value_ints": [2, 5]},
    ],
)
def test_a_constant_s_repeats_are_known(attribute: dict[str, Any], tmp_path: Path) -> None:
    assert repeats(node("Constant", [], ["r"], **attribute), folder=tmp_path) == (2, 5)


@pytest.mark.parametrize("attribute", [{"value_int": 2}, {"value_float": 2.0}, {"value_floats": [2.0, 2.0]}])
def test_a_constant_of_another_form_is_known_and_wrong(attribute: dict[str, Any], tmp_path: Path) -> None:
    assert tile_in(model(node("Constant", [], ["r"], **attribute), tile_node()), tmp_path).error.startswith("repeats: ")


@pytest.mark.parametrize(
    "attribute",
    [
        {},
        {"value_string": b"2"},
        {"value": TensorProto()},
        {"value": TensorProto(dims=[2], data_type=INT64)},
        {"value": TensorProto(dims=[-2], data_type=INT64)},
        {"value": TensorProto(dims=[2], data_type=INT64, raw_data=b"123")},
        {"value": TensorProto(dims=[2], data_type=99, raw_data=b"123")},
        {"value": tensor("", range(2000))},
    ],
)
def test_a_constant_that_tells_no_repeats_leaves_them_unknown(attribute: dict[str, Any], tmp_path: Path) -> None:
    found = tile_in(model(node("Constant", [], ["r"], **attribute), tile_node()), tmp_path)
    assert found.repeats is None


def test_an_initialiser_s_repeats_are_known(tmp_path: Path) -> None:
    assert repeats(folder=tmp_path, initializer=[tensor("r", [4, 1])]) == (4, 1)


@pytest.mark.parametrize(("ir_version", "known"), [(3, (4, 1)), (4, None), (10, None)])
def test_an_initialiser_that_is_an_input_is_a_default_since_ir_version_4(
    ir_version: int, known: tuple[int, ...] | None, tmp_path: Path
) -> None:
    inputs = [typed("x", [2, 3]), typed("r", [2], INT64)]
    found = repeats(folder=tmp_path, initializer=[tensor("r", [4, 1])], inputs=inputs, ir_version=ir_version)
    assert found == known


def test_an_initialiser_s_shape_is_known(tmp_path: Path) -> None:
    found = tile_in(
        model(constant("r", [2, 1]), tile_node("w"), initializer=[tensor("w", np.ones((200, 300)), "float32")]),
        tmp_path,
    )
    assert (found.data_type, found.shape, found.repeats) == ("float32", (200, 300), (2, 1))


def test_a_sparse_initialiser_s_shape_is_known(tmp_path: Path) -> None:
    sparse = helper.make_sparse_tensor(tensor("w", [1.5], "float32"), tensor("", [3]), [5, 4])
    found = tile_in(model(constant("r", [2, 1]), tile_node("w"), sparse_initializer=[sparse]), tmp_path)
    assert (found.data_type, found.shape) == ("float32", (5, 4))


@pytest.mark.parametrize("place", ["initialiser", "constant"])
def test_a_subgraph_s_own_repeats_are_known(place: str, tmp_path: Path) -> None:
    made = {"initialiser": {"initializer": [tensor("r", [4, 4])]}, "constant": {}}[place]
    first = [constant("r", [4, 4])] if place == "constant" else []
    branch = graph([*first, tile_node(output="t")], (), [typed("t")], **made)
    other = graph([node("Identity", ["x"], ["e"])], (), [typed("e")])
    made_if = node("If", ["c"], ["y"], then_branch=branch, else_branch=other)
    found = tile_in(model(made_if, inputs=[typed("x", [2, 3]), typed("c", [], BOOL)]), tmp_path)
    assert found.repeats == (4, 4)


def test_a_subgraph_that_declares_an_outer_value_does_not_hide_it(tmp_path: Path) -> None:
    branch = graph([tile_node(output="t")], (), [typed("t")], value_info=[typed("r", [2], INT64)])
    made_if = node("If", ["c"], ["y"], then_branch=branch, else_branch=graph([], (), [typed("x")]))
    found = tile_in(model(constant("r", [4, 4]), made_if, inputs=[typed("x", [2, 3]), typed("c", [], BOOL)]), tmp_path)
    assert found.repeats == (4, 4)


# What is computed from constants


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("r = Identity(a)", (2, 3)),
        ("f = [2.0, 3.0]; r = Cast<to=7>(f)", (2, 3)),
        ("b = [7]; r = Concat<axis=0>(b, b)", (7, 7)),
        ("z = [0]; u = Unsqueeze(s, z); r = Concat<axis=0>(u, u)", (4, 4)),
        ("b = [[7, 8]]; z = [0]; r = Squeeze(b, z)", (7, 8)),
        ("b = [[7, 8]]; m = [-1]; r = Reshape(b, m)", (7, 8)),
        ("i = [1, 1]; r = Gather(a, i)", (3, 3)),
        ("b = [9, 8, 7]; i = [1]; j = [3]; r = Slice(b, i, j)", (8, 7)),
        ("r = Add(a, a)", (4, 6)),
        ("r = Sub(s, a)", (2, 1)),
        ("r = Mul(a, s)", (8, 12)),
        ("b = [9, 9]; r = Div(b, a)", (4, 3)),
        ("b = [9, 10]; r = Mod(b, s)", (1, 2)),
        ("r = Max(a, s)", (4, 4)),
        ("p = ReduceProd(a); r = Concat<axis=0>(p, p)", (6, 6)),
        ("m = [-1, 2]; n = -1; q = Equal(m, n); o = [1, 1]; r = Where(q, o, m)", (1, 2)),
        ("b = [2]; r = ConstantOfShape<value = int64[1] {6}>(b)", (6, 6)),
        ("b = [2]; r = Expand(s, b)", (4, 4)),
        ("b = 1; c = 3; r = Range(b, c, b)", (1, 2)),
        ("b = [1, 2, 3, 4]; l, r = Split(b)", (3, 4)),
        ("b = [7]; t = [2]; r = Tile(b, t)", (7, 7)),
        ("i = [[1]]; v = [9]; r = ScatterND(a, i, v)", (2, 9)),
        ("r = Shape(x)", (2, 3)),
        ("n = Size(x); r = Mul(n, a)", (12, 18)),
    ],
)
def test_repeats_are_computed_from_constants(text: str, known: tuple[int, ...], tmp_path: Path) -> None:
    found = nodes_of(model(*computed(f"a = [2, 3]; s = 4; {text}"), tile_node(name="T")), tmp_path)[-1]
    assert (found.pointer, getattr(found, "repeats", found)) == ("T", known)


@pytest.mark.parametrize(
    ("opset", "text"),
    [
        (11, "b = [[7, 8]]; r = Squeeze<axes=[0]>(b)"),
        (11, "a = [7, 8]; s = Split(a); r = Concat<axis=0>(s)"),
        (9, "a = [5, 7, 8]; r = Slice<starts=[1], ends=[3]>(a)"),
        (6, "b = [[7, 8]]; m = [2]; r = Reshape(b, m)"),
    ],
)
def test_older_forms_of_operators_are_computed_too(opset: int, text: str, tmp_path: Path) -> None:
    assert repeats(*computed(text), folder=tmp_path, opset=opset) == (7, 8)


@pytest.mark.parametrize(
    "text",
    [
        "r = Identity(given)",
        "a = [2, 3]; r = Add(a, given)",
        "a = [2, 3]; z = [0, 1]; r = Div(a, z)",
        f"a = [2, {2**62}]; p = ReduceProd(a); r = Concat<axis=0>(p, given)",
        f"a = [{10**12}]; r = ConstantOfShape(a)",
        f"a = 0; b = {10**12}; c = 1; r = Range(a, b, c)",
        "a = [2, 3]; r = Stranger(a)",
        "a = [2, 3]; r = com.stranger.Identity(a)",
        "a = [2, 3]; r = Cast(a)",
        "r = Concat<axis=0>()",
        "r = Shape()",
    ],
)
def test_what_is_not_constant_or_fails_leaves_the_repeats_unknown(text: str, tmp_path: Path) -> None:
    inputs = [typed("x", [2, 3]), typed("given", [2], INT64)]
    with warnings.catch_warnings(action="error"):
        found = tile_in(model(*computed(text), tile_node(), inputs=inputs), tmp_path)
    assert (found.repeats, found.error) == (None, "")


# Shapes


@pytest.mark.parametrize(("attributes", "known"), [({}, (5, 7)), ({"start": -2}, (5, 7)), ({"end": 2}, (5, 7))])
def test_a_known_shape_is_a_constant(attributes: dict[str, Any], known: tuple[int, ...], tmp_path: Path) -> None:
    inputs = [typed("x", [2, 3]), typed("w", [5, 7])]
    assert repeats(node("Shape", ["w"], ["r"], **attributes), folder=tmp_path, opset=15, inputs=inputs) == known


@pytest.mark.parametrize(
    ("shape", "text", "known"),
    [
        (["N", 3], "s = Shape(x); i = [1]; n = Gather(s, i); one = [1]; r = Concat<axis=0>(one, n)", (1, 3)),
        (["N", 3], "r = Shape(x)", (None, 3)),
        (["N", 3], "s = Shape(x); r = Add(s, s)", (None, 6)),
        (["N", "M"], "s = Shape(x); r = Add(s, s)", None),
        (["N", 3], "n = Size(x); m = [2]; r = Expand(n, m)", None),
        ([2**62, 4], "n = Size(x); m = [2]; r = Expand(n, m)", None),  # the size is past int64
    ],
)
def test_known_sizes_of_a_shape_are_constants_and_others_are_not(
    shape: list[int | str], text: str, known: tuple[int | None, ...] | None, tmp_path: Path
) -> None:
    assert repeats(*computed(text), folder=tmp_path, inputs=[typed("x", shape)]) == known


@pytest.mark.parametrize(
    ("shape", "text", "known"),
    [
        # onnx's data propagation does not divide
        ([8, 6], "s = Shape(x); two = [2]; h = Div(s, two); b = Expand(e, h); r = [1, 2]", (4, 3)),
        (["N", 3], "s = Shape(x); b = Expand(e, s); r = [1, 2]", ("N", 3)),
    ],
)
def test_shapes_follow_what_is_computed_and_keep_names(
    shape: list[int | str], text: str, known: tuple[int | str, ...], tmp_path: Path
) -> None:
    made = model(*computed(text), tile_node("b"), inputs=[typed("x", shape), typed("e", [])])
    found = tile_in(made, tmp_path)
    assert (found.shape, found.repeats) == (known, (1, 2))


@pytest.mark.parametrize("dim", [-1, None])
def test_a_dimension_of_no_size_is_unknown(dim: int | None, tmp_path: Path) -> None:
    found = tile_in(model(constant("r", [1, 2]), tile_node(), inputs=[typed("x", [dim, 3])]), tmp_path)
    assert found.shape == (None, 3)


def test_names_that_inference_makes_up_are_left_out(tmp_path: Path) -> None:
    nodes = [node("NonZero", ["x"], ["z"]), constant("r", [1, 2]), tile_node("z")]
    assert tile_in(model(*nodes), tmp_path).shape == (2, None)


def test_the_type_of_an_input_without_a_shape_is_known(tmp_path: Path) -> None:
    found = tile_in(model(tile_node(), inputs=[typed("x"), typed("r", [2], INT64)]), tmp_path)
    assert (found.data_type, found.shape) == ("float32", None)


def test_shapes_that_a_model_declares_are_taken_where_none_is_inferred(tmp_path: Path) -> None:
    stranger = node("Stranger", ["x"], ["w"], domain="com.stranger")
    made = model(
        stranger, constant("r", [1, 2]), tile_node("w"), domains={"com.stranger": 1}, value_info=[typed("w", [4, "k"])]
    )
    assert tile_in(made, tmp_path).shape == (4, "k")


def test_a_domain_that_is_not_imported_hinders_no_inference(tmp_path: Path) -> None:
    stranger = node("Stranger", ["x"], ["w"], domain="com.stranger")
    made = model(stranger, node("Relu", ["x"], ["a"]), constant("r", [1, 2]), tile_node("a"))
    assert tile_in(made, tmp_path).shape == (2, 3)


def test_an_inferred_size_stands_above_a_declared_one(tmp_path: Path) -> None:
    made = model(node("Relu", ["x"], ["a"]), constant("r", [1, 2]), tile_node("a"), value_info=[typed("a", [1, 3])])
    assert tile_in(made, tmp_path).shape == (2, 3)


# What a caller fixes

TILE: Final = (constant("r", [1, 2]), tile_node())


def test_a_named_dimension_is_fixed_everywhere(tmp_path: Path) -> None:
    declared = [typed("w", ["N", 5])]
    made = model(
        node("Stranger", ["x"], ["w"], domain="com.stranger"),
        constant("r", [1, 2]),
        tile_node("w", output="a"),
        tile_node("x"),
        inputs=DYNAMIC,
        domains={"com.stranger": 1},
        value_info=declared,
    )
    found = nodes_of(made, tmp_path, KnownShapes({"N": 4}))
    assert [getattr(each, "shape", each) for each in found] == [(4, 5), (4, 3)]


def test_a_named_dimension_is_fixed_in_subgraphs(tmp_path: Path) -> None:
    body = graph([tile_node("s", output="t")], [typed("s", ["k"])], [typed("t")])
    made = model(constant("r", [2]), node("Own", ["x"], ["y"], domain="own", body=body), domains={"own": 1})
    assert tile_in(made, tmp_path, KnownShapes({"k": 7})).shape == (7,)


def test_a_name_that_the_model_has_not_is_left_alone(tmp_path: Path) -> None:
    assert tile_in(model(*TILE, inputs=DYNAMIC), tmp_path, KnownShapes({"M": 4})).shape == ("N", 3)


@pytest.mark.parametrize("declared", [["N", 3], [None, 3], [-1, 3], [4, 3], None])
def test_an_input_s_shape_is_fixed(declared: Any, tmp_path: Path) -> None:
    made = model(*TILE, inputs=[typed("x", declared)])
    assert tile_in(made, tmp_path, KnownShapes(input_shapes={"x": (4, 3)})).shape == (4, 3)


def test_a_shape_fixes_the_names_that_it_replaces(tmp_path: Path) -> None:
    made = model(*TILE, inputs=[typed("x", ["N", 3]), typed("w", ["N"])])
    assert tile_in(made, tmp_path, KnownShapes(input_shapes={"w": (9,)})).shape == (9, 3)


def test_a_scalar_s_shape_is_fixed(tmp_path: Path) -> None:
    made = model(constant("r", np.zeros(0)), tile_node(), inputs=[typed("x")])
    found = tile_in(made, tmp_path, KnownShapes(input_shapes={"x": ()}))
    assert (found.shape, found.repeats) == ((), ())


@pytest.mark.parametrize(
    ("known_shapes", "message"),
    [
        (KnownShapes(input_shapes={"X": (4, 3)}), "X: is no input of the model; it has 'x', 'w'"),
        (KnownShapes(input_shapes={"r": (4, 3)}), "r: is no input of the model; it has 'x', 'w'"),
        (KnownShapes(input_shapes={"x": (4, 3, 1)}), "x: has 2 dimensions, (N, 3); (4, 3, 1) was given"),
        (KnownShapes(input_shapes={"x": (4, 5)}), "x: dimension 1 is 3; 5 was given"),
        (KnownShapes({"N": 2}, {"x": (4, 3)}), "x: dimension 0, N, is 2; 4 was given"),
        (KnownShapes(input_shapes={"x": (4, 3), "w": (5,)}), "w: dimension 0, N, is 4; 5 was given"),
        (KnownShapes({"N": -1}), f"N: -1 was given; sizes are from 0 to {2**63 - 1}"),
        (KnownShapes(input_shapes={"x": (2**63, 3)}), f"x: {2**63} was given; sizes are from 0 to {2**63 - 1}"),
    ],
)
def test_what_contradicts_the_model_is_refused(known_shapes: KnownShapes, message: str, tmp_path: Path) -> None:
    made = model(*TILE, inputs=[typed("x", ["N", 3]), typed("w", ["N"])])
    with pytest.raises(InputError) as caught:
        nodes_of(made, tmp_path, known_shapes)
    assert str(caught.value) == message


def test_a_shape_for_what_is_no_tensor_is_refused(tmp_path: Path) -> None:
    made = model(*TILE, inputs=[helper.make_tensor_sequence_value_info("x", 1, [2])])
    with pytest.raises(InputError, match="x: is no tensor"):
        nodes_of(made, tmp_path, KnownShapes(input_shapes={"x": (2, 3)}))


def test_a_contradiction_is_refused_in_a_model_without_tiles_too(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no input"):
        nodes_of(model(node("Relu", ["x"], ["y"])), tmp_path, KnownShapes(input_shapes={"z": (2, 3)}))
