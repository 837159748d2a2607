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
    """The repeats r of a tile of x that the nodes compute."""
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

TWO_THREE: Final = constant("a", [2, 3])
SCALAR: Final = constant("s", 4)

COMPUTED: Final = {
    "Identity": ([node("Identity", ["a"], ["r"])], (2, 3)),
    "Cast": ([constant("f", [2, 3], "float32"), node("Cast", ["f"], ["r"], to=INT64)], (2, 3)),
    "Concat": ([constant("b", [7]), node("Concat", ["b", "b"], ["r"], axis=0)], (7, 7)),
    "Unsqueeze": (
        [constant("z", [0]), node("Unsqueeze", ["s", "z"], ["u"]), node("Concat", ["u", "u"], ["r"], axis=0)],
        (4, 4),
    ),
    "Squeeze": ([constant("b", [[7, 8]]), constant("z", [0]), node("Squeeze", ["b", "z"], ["r"])], (7, 8)),
    "Reshape": ([constant("b", [[7, 8]]), constant("m", [-1]), node("Reshape", ["b", "m"], ["r"])], (7, 8)),
    "Gather": ([constant("i", [1, 1]), node("Gather", ["a", "i"], ["r"])], (3, 3)),
    "Slice": (
        [constant("b", [9, 8, 7]), constant("i", [1]), constant("j", [3]), node("Slice", ["b", "i", "j"], ["r"])],
        (8, 7),
    ),
    "Add": ([node("Add", ["a", "a"], ["r"])], (4, 6)),
    "Sub": ([node("Sub", ["s", "a"], ["r"])], (2, 1)),
    "Mul": ([node("Mul", ["a", "s"], ["r"])], (8, 12)),
    "Div": ([constant("b", [9, 9]), node("Div", ["b", "a"], ["r"])], (4, 3)),
    "Mod": ([constant("b", [9, 10]), node("Mod", ["b", "s"], ["r"])], (1, 2)),
    "Max": ([node("Max", ["a", "s"], ["r"])], (4, 4)),
    "ReduceProd": (
        [node("ReduceProd", ["a"], ["p"]), node("Concat", ["p", "p"], ["r"], axis=0)],
        (6, 6),
    ),
    "Where": (
        [
            constant("m", [-1, 2]),
            constant("n", -1),
            node("Equal", ["m", "n"], ["q"]),
            constant("o", [1, 1]),
            node("Where", ["q", "o", "m"], ["r"]),
        ],
        (1, 2),
    ),
    "ConstantOfShape": (
        [constant("b", [2]), node("ConstantOfShape", ["b"], ["r"], value=tensor("", [6]))],
        (6, 6),
    ),
    "Expand": ([constant("b", [2]), node("Expand", ["s", "b"], ["r"])], (4, 4)),
    "Range": ([constant("b", 1), constant("c", 3), node("Range", ["b", "c", "b"], ["r"])], (1, 2)),
    "Split": ([constant("b", [1, 2, 3, 4]), node("Split", ["b"], ["l", "r"])], (3, 4)),
    "Tile": ([constant("b", [7]), constant("t", [2]), node("Tile", ["b", "t"], ["r"])], (7, 7)),
    "ScatterND": (
        [constant("i", [[1]]), constant("v", [9]), node("ScatterND", ["a", "i", "v"], ["r"])],
        (2, 9),
    ),
    "Shape": ([node("Shape", ["x"], ["r"])], (2, 3)),
    "Size": ([node("Size", ["x"], ["n"]), node("Mul", ["n", "a"], ["r"])], (12, 18)),
}


@pytest.mark.parametrize("operator", COMPUTED)
def test_repeats_are_computed_from_constants(operator: str, tmp_path: Path) -> None:
    nodes, known = COMPUTED[operator]
    found = nodes_of(model(TWO_THREE, SCALAR, *nodes, tile_node(name="T")), tmp_path)[-1]
    assert (found.pointer, getattr(found, "repeats", found)) == ("T", known)


@pytest.mark.parametrize(
    ("opset", "nodes"),
    [
        (11, [constant("b", [[7, 8]]), node("Squeeze", ["b"], ["r"], axes=[0])]),
        (11, [constant("b", [7]), node("Split", ["a"], ["s"]), node("Concat", ["s"], ["r"], axis=0)]),
        (9, [constant("a", [5, 7, 8]), node("Slice", ["a"], ["r"], starts=[1], ends=[3])]),
        (6, [constant("b", [[7, 8]]), constant("m", [2]), node("Reshape", ["b", "m"], ["r"])]),
    ],
)
def test_older_forms_of_operators_are_computed_too(opset: int, nodes: list[NodeProto], tmp_path: Path) -> None:
    if opset == 11 and nodes[-1].op_type == "Concat":
        nodes = [constant("a", [7, 8]), *nodes]
    assert repeats(*nodes, folder=tmp_path, opset=opset) == (7, 8)


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Identity", ["given"], ["r"])],
        [constant("a", [2, 3]), node("Add", ["a", "given"], ["r"])],
        [constant("a", [2, 3]), constant("z", [0, 1]), node("Div", ["a", "z"], ["r"])],
        [constant("a", [2, 2**62]), node("ReduceProd", ["a"], ["p"]), node("Concat", ["p", "given"], ["r"], axis=0)],
        [constant("a", [10**12]), node("ConstantOfShape", ["a"], ["r"])],
        [constant("a", 0), constant("b", 10**12), constant("c", 1), node("Range", ["a", "b", "c"], ["r"])],
        [constant("a", [2, 3]), node("Stranger", ["a"], ["r"])],
        [constant("a", [2, 3]), node("Identity", ["a"], ["r"], domain="com.stranger")],
        [constant("a", [2, 3]), node("Cast", ["a"], ["r"])],
        [node("Concat", [], ["r"], axis=0)],
        [node("Shape", [], ["r"])],
    ],
)
def test_what_is_not_constant_or_fails_leaves_the_repeats_unknown(nodes: list[NodeProto], tmp_path: Path) -> None:
    with warnings.catch_warnings(action="error"):
        made = model(*nodes, tile_node(), inputs=[typed("x", [2, 3]), typed("given", [2], INT64)])
        found = tile_in(made, tmp_path)
    assert found.repeats is None
    assert found.error == ""


# Shapes


@pytest.mark.parametrize(("attributes", "known"), [({}, (5, 7)), ({"start": -2}, (5, 7)), ({"end": 2}, (5, 7))])
def test_a_known_shape_is_a_constant(attributes: dict[str, Any], known: tuple[int, ...], tmp_path: Path) -> None:
    inputs = [typed("x", [2, 3]), typed("w", [5, 7])]
    assert repeats(node("Shape", ["w"], ["r"], **attributes), folder=tmp_path, opset=15, inputs=inputs) == known


def test_known_sizes_of_a_dynamic_shape_are_constants(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        constant("i", [1]),
        node("Gather", ["s", "i"], ["n"]),
        constant("one", [1]),
        node("Concat", ["one", "n"], ["r"], axis=0),
    ]
    assert repeats(*nodes, folder=tmp_path, inputs=DYNAMIC) == (1, 3)


def test_unknown_sizes_of_a_dynamic_shape_are_not(tmp_path: Path) -> None:
    assert repeats(node("Shape", ["x"], ["r"]), folder=tmp_path, inputs=DYNAMIC) == (None, 3)
    added = [node("Shape", ["x"], ["s"]), node("Add", ["s", "s"], ["r"])]
    assert repeats(*added, folder=tmp_path, inputs=DYNAMIC) == (None, 6)
    assert repeats(*added, folder=tmp_path, inputs=[typed("x", ["N", "M"])]) is None
    size = [node("Size", ["x"], ["n"]), constant("m", [2]), node("Expand", ["n", "m"], ["r"])]
    assert repeats(*size, folder=tmp_path, inputs=DYNAMIC) is None


def test_a_size_past_int64_is_no_constant(tmp_path: Path) -> None:
    size = [node("Size", ["x"], ["n"]), constant("m", [2]), node("Expand", ["n", "m"], ["r"])]
    assert repeats(*size, folder=tmp_path, inputs=[typed("x", [2**62, 4])]) is None


def test_shapes_follow_computed_constants(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        constant("two", [2]),
        node("Div", ["s", "two"], ["h"]),  # onnx's data propagation does not divide
        node("Expand", ["e", "h"], ["b"]),
        constant("r", [1, 2]),
        tile_node("b"),
    ]
    found = tile_in(model(*nodes, inputs=[typed("x", [8, 6]), typed("e", [])]), tmp_path)
    assert (found.shape, found.repeats) == ((4, 3), (1, 2))


def test_names_of_dimensions_are_kept(tmp_path: Path) -> None:
    nodes = [node("Shape", ["x"], ["s"]), node("Expand", ["e", "s"], ["b"]), constant("r", [1, 2]), tile_node("b")]
    found = tile_in(model(*nodes, inputs=[*DYNAMIC, typed("e", [])]), tmp_path)
    assert (found.shape, found.repeats) == (("N", 3), (1, 2))


@pytest.mark.parametrize("dim", [-1, None])
def test_a_dimension_of_no_size_is_unknown(dim: int | None, tmp_path: Path) -> None:
    assert tile_in(model(constant("r", [1, 2]), tile_node(), inputs=[typed("x", [dim, 3])]), tmp_path).shape == (
        None,
        3,
    )


def test_names_that_inference_makes_up_are_not_told(tmp_path: Path) -> None:
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
