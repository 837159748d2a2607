"""An ONNX model's repeats and shapes are computed from constants, shapes, and sizes that a caller fixes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from dml_tile.errors import InputError
from dml_tile.readers.model_tile import KnownShapes
from tests.helpers.onnx_graphs import (
    BOOL,
    INT64,
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


def repeats(*nodes: NodeProto | str, folder: Path, opset: int = 13, **fields: Any) -> tuple[int | None, ...] | None:
    """Return the repeats r of a tile of x that the nodes compute."""
    found = tile_in(model(*nodes, tile_node(), opset=opset, **fields), folder)
    assert found.error == ""
    return found.repeats


# Constants


@pytest.mark.parametrize(
    ("attribute", "known", "error"),
    [
        ({"value": tensor("", [2, 5])}, (2, 5), ""),
        ({"value": helper.make_tensor("", INT64, [2], [2, 5])}, (2, 5), ""),
        ({"value_ints": [2, 5]}, (2, 5), ""),
        ({"value_int": 2}, None, "repeats: has 0 dimensions"),
        ({"value_float": 2.0}, None, "repeats: is of float32"),
        ({"value_floats": [2.0, 2.0]}, None, "repeats: is of float32"),
        ({}, None, ""),
        ({"value_string": b"2"}, None, "repeats: is of <U1"),
        ({"value": TensorProto()}, None, ""),
        ({"value": TensorProto(dims=[2], data_type=INT64)}, None, ""),
        ({"value": TensorProto(dims=[-2], data_type=INT64)}, None, ""),
        ({"value": TensorProto(dims=[2], data_type=INT64, raw_data=b"123")}, None, ""),
        ({"value": TensorProto(dims=[2], data_type=99, raw_data=b"123")}, None, ""),
        ({"value": tensor("", range(2000))}, None, "repeats: has 2000 values"),
    ],
)
def test_a_constant_s_repeats_are_known_unless_it_is_malformed(
    attribute: dict[str, Any], known: tuple[int, ...] | None, error: str, tmp_path: Path
) -> None:
    found = tile_in(model(node("Constant", [], ["r"], **attribute), tile_node()), tmp_path)
    assert found.repeats == known
    assert found.error.startswith(error) if error else not found.error


@pytest.mark.parametrize(("ir_version", "known"), [(3, (4, 1)), (4, None), (10, None)])
def test_an_initialiser_that_is_an_input_is_a_default_since_ir_version_4(
    ir_version: int, known: tuple[int, ...] | None, tmp_path: Path
) -> None:
    inputs = [typed("x", [2, 3]), typed("r", [2], INT64)]
    found = repeats(folder=tmp_path, initializer=[tensor("r", [4, 1])], inputs=inputs, ir_version=ir_version)
    assert found == known


def test_an_initialiser_s_shape_is_known(tmp_path: Path) -> None:
    dense = {"initializer": [tensor("w", np.ones((200, 300)), "float32")]}
    sparse = {"sparse_initializer": [helper.make_sparse_tensor(tensor("w", [1.5], "float32"), tensor("", [3]), [5, 4])]}
    for fields, shape in (dense, (200, 300)), (sparse, (5, 4)):
        found = tile_in(model("r = [2, 1]; y = Tile(w, r)", **fields), tmp_path)
        assert (found.data_type, found.shape, found.repeats) == ("float32", shape, (2, 1))


@pytest.mark.parametrize(
    ("outer", "inner", "fields"),
    [
        ((), (), {"initializer": [tensor("r", [4, 4])]}),
        ((), (constant("r", [4, 4]),), {}),
        ((constant("r", [4, 4]),), (), {"value_info": [typed("r", [2], INT64)]}),
    ],
    ids=["an initialiser", "a constant", "an outer value that it declares"],
)
def test_a_subgraph_knows_its_own_and_outer_repeats(outer: Any, inner: Any, fields: Any, tmp_path: Path) -> None:
    branch = graph([*inner, tile_node(output="t")], (), [typed("t")], **fields)
    made_if = node("If", ["c"], ["y"], then_branch=branch, else_branch=graph([], (), [typed("x")]))
    found = tile_in(model(*outer, made_if, inputs=[typed("x", [2, 3]), typed("c", [], BOOL)]), tmp_path)
    assert found.repeats == (4, 4)


# Shapes


@pytest.mark.parametrize(
    ("shape", "text", "declared", "known"),
    [
        # onnx's data propagation does not divide
        ([8, 6], "s = Shape(x); two = [2]; h = Div(s, two); w = Expand(e, h)", None, (4, 3)),
        (["N", 3], "s = Shape(x); w = Expand(e, s)", None, ("N", 3)),
        ([-1, 3], "w = Relu(x)", None, (None, 3)),
        ([None, 3], "w = Relu(x)", None, (None, 3)),
        ([2, 3], "w = NonZero(x)", None, (2, None)),  # inference makes up a name
        ([None, 3], "w = Relu(x)", [4, None], (4, 3)),
        (None, "w = Relu(x)", None, None),
        ([2, 3], "w = com.stranger.Own(x)", [4, "k"], (4, "k")),
        ([2, 3], "v = not.imported.Own(x); w = Relu(x)", None, (2, 3)),
        ([2, 3], "w = Relu(x)", [1, 3], (2, 3)),
        ([2, 3], "w = Relu(x)", [6], (2, 3)),
    ],
)
def test_shapes_are_inferred_else_declared(shape: Any, text: str, declared: Any, known: Any, tmp_path: Path) -> None:
    inputs = [typed("x", shape), typed("e", []), typed("r", [2], INT64)]
    values = [typed("w", declared)] if declared else []
    made = model(f"{text}; y = Tile(w, r)", inputs=inputs, domains={"com.stranger": 1}, value_info=values)
    found = tile_in(made, tmp_path)
    assert (found.shape, found.repeats) == (known, None)


# What a caller fixes

TILE: Final = (constant("r", [1, 2]), tile_node())


def test_a_named_dimension_is_fixed_everywhere(tmp_path: Path) -> None:
    text = "w = com.stranger.Own(x); r = [1, 2]; a = Tile(w, r); y = Tile(x, r)"
    made = model(text, inputs=DYNAMIC, domains={"com.stranger": 1}, value_info=[typed("w", ["N", 5])])
    for known_shapes, shapes in (
        (KnownShapes({"N": 4}), [(4, 5), (4, 3)]),
        (KnownShapes({"M": 4}), [("N", 5), ("N", 3)]),
    ):
        assert [getattr(each, "shape", each) for each in nodes_of(made, tmp_path, known_shapes)] == shapes


def test_a_named_dimension_is_fixed_in_subgraphs(tmp_path: Path) -> None:
    body = graph([tile_node("s", output="t")], [typed("s", ["k"])], [typed("t")])
    made = model(constant("r", [2]), node("Own", ["x"], ["y"], domain="own", body=body), domains={"own": 1})
    assert tile_in(made, tmp_path, KnownShapes({"k": 7})).shape == (7,)


@pytest.mark.parametrize(
    ("declared", "fixed", "known"),
    [
        *((declared, {"x": (4, 3)}, (4, 3)) for declared in (["N", 3], [None, 3], [-1, 3], [4, 3], None)),
        (["N", 3], {"w": (9,)}, (9, 3)),  # the names that it replaces
        (None, {"x": ()}, ()),
    ],
)
def test_an_input_s_shape_is_fixed(declared: Any, fixed: Any, known: tuple[int, ...], tmp_path: Path) -> None:
    inputs = [typed("x", declared), typed("w", ["N"]), typed("r", None, INT64)]
    assert tile_in(model("y = Tile(x, r)", inputs=inputs), tmp_path, KnownShapes(input_shapes=fixed)).shape == known


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


@pytest.mark.parametrize(
    ("made", "name", "message"),
    [
        (model(*TILE, inputs=[helper.make_tensor_sequence_value_info("x", 1, [2])]), "x", "x: is no tensor"),
        (model("y = Relu(x)"), "z", "is no input"),  # which has no tiles either
    ],
)
def test_a_shape_for_no_tensor_or_no_input_is_refused(
    made: ModelProto, name: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        nodes_of(made, tmp_path, KnownShapes(input_shapes={name: (2, 3)}))
