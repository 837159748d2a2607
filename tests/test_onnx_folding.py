"""An ONNX model's values are known before it runs, or the node that makes one unknown is named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from onnx import NodeProto, TensorProto, helper

from dml_tile.readers.model_tile import TileNode
from dml_tile.readers.onnx import folding
from tests.helpers.onnx_graphs import (
    BOOL,
    FLOAT,
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

X: Final = typed("x", [2, 3])
DYNAMIC: Final = typed("x", ["N", 3])


def read(folder: Path, *nodes: NodeProto, inputs: Sequence[Any] = (X,), opset: int = 21, **fields: Any) -> TileNode:
    """The Tile of x by r, which the nodes compute."""
    return tile_in(model(*nodes, tile_node(name="T"), inputs=inputs, opset=opset, **fields), folder)


# What is computed to 0 or False is known


def expand(source: str, sizes: Sequence[int]) -> list[NodeProto]:
    """The repeats as PyTorch's expand computes them: sizes, with -1 for a size that is the source's own."""
    return [
        node("Shape", [source], ["own"]),
        constant("sizes", sizes),
        node("Shape", ["sizes"], ["rank"]),
        node("ConstantOfShape", ["rank"], ["ones"], value=tensor("", [1])),
        constant("minus", -1),
        node("Mul", ["ones", "minus"], ["kept"]),
        node("Equal", ["sizes", "kept"], ["is_kept"]),
        node("Where", ["is_kept", "ones", "sizes"], ["r"]),
    ]


def test_the_repeats_of_pytorch_s_expand_are_known(tmp_path: Path) -> None:
    assert read(tmp_path, *expand("x", [-1, 4])).repeats == (1, 4)
    computed = expand("x", [4, 1])[:-3]
    tail = [
        node("Mul", ["ones", "minus"], ["kept"]),
        node("Equal", ["own", "kept"], ["is_kept"]),
        node("Where", ["is_kept", "ones", "own"], ["r"]),
    ]
    assert read(tmp_path, *computed, *tail).repeats == (2, 3)
    assert read(tmp_path, *computed, *tail, inputs=[DYNAMIC]).repeats == (None, 3)


ZEROS: Final = {
    "Range": ([constant("o", 1), node("Gather", ["s", "z"], ["n"]), node("Range", ["z", "n", "o"], ["r"])], (0, 1)),
    "Sub": ([node("Sub", ["s", "s"], ["r"])], (0, 0)),
    "Mod": ([constant("two", 2), node("Mod", ["s", "two"], ["r"])], (0, 1)),
    "Greater and Where": (
        [constant("two", 2), node("Greater", ["s", "two"], ["q"]), node("Where", ["q", "s", "two"], ["r"])],
        (2, 3),
    ),
    "Floor": (
        [
            constant("half", 0.5, "float32"),
            node("Cast", ["s"], ["f"], to=FLOAT),
            node("Mul", ["f", "half"], ["h"]),
            node("Floor", ["h"], ["g"]),
            node("Cast", ["g"], ["r"], to=INT64),
        ],
        (1, 1),
    ),
}


@pytest.mark.parametrize("name", ZEROS)
def test_a_zero_that_is_computed_from_a_shape_is_known(name: str, tmp_path: Path) -> None:
    nodes, repeats = ZEROS[name]
    assert read(tmp_path, node("Shape", ["x"], ["s"]), constant("z", 0), *nodes).repeats == repeats


# Any deterministic operator folds

FLOATS: Final = constant("f", [1.4, 2.6], "float32")
TO_REPEATS: Final = node("Cast", ["c"], ["r"], to=INT64)

FOLDED: Final = {
    "Round": ([FLOATS, node("Round", ["f"], ["c"]), TO_REPEATS], (1, 3)),
    "Sqrt": ([constant("f", [4, 9], "float32"), node("Sqrt", ["f"], ["c"]), TO_REPEATS], (2, 3)),
    "Sign": ([FLOATS, node("Sign", ["f"], ["c"]), TO_REPEATS], (1, 1)),
    "Relu": ([constant("f", [-4, 9], "float32"), node("Relu", ["f"], ["c"]), TO_REPEATS], (0, 9)),
    "ReduceMean": (
        [
            constant("f", [[1, 3], [5, 7]], "float32"),
            constant("a", [1]),
            node("ReduceMean", ["f", "a"], ["c"], keepdims=0),
            TO_REPEATS,
        ],
        (2, 6),
    ),
    "GatherND": ([constant("d", [7, 8, 9]), constant("i", [[2], [0]]), node("GatherND", ["d", "i"], ["r"])], (9, 7)),
    "GatherElements": (
        [constant("d", [7, 8, 9]), constant("i", [2, 0]), node("GatherElements", ["d", "i"], ["r"])],
        (9, 7),
    ),
    "CumSum": ([constant("d", [2, 3]), constant("a", 0), node("CumSum", ["d", "a"], ["r"])], (2, 5)),
    "Pad": ([constant("d", [5]), constant("p", [1, 0]), constant("v", 4), node("Pad", ["d", "p", "v"], ["r"])], (4, 5)),
    "MatMul": ([constant("d", [[1, 2], [3, 4]]), constant("e", [1, 1]), node("MatMul", ["d", "e"], ["r"])], (3, 7)),
    "TopK": ([constant("d", [5, 9, 7]), constant("k", [2]), node("TopK", ["d", "k"], ["r", "i"])], (9, 7)),
    "ArgMax": (
        [constant("d", [[5, 9, 7], [1, 1, 2]]), node("ArgMax", ["d"], ["r"], axis=1, keepdims=0)],
        (1, 2),
    ),
    "Dropout": ([FLOATS, node("Dropout", ["f"], ["c"]), TO_REPEATS], (1, 2)),
    "NonZero": (
        [
            constant("d", [0, 1, 1]),
            constant("m", [-1]),
            node("NonZero", ["d"], ["i"]),
            node("Reshape", ["i", "m"], ["r"]),
        ],
        (1, 2),
    ),
    "Gather from a large table": (
        [constant("d", range(5000)), constant("i", [3000, 4999]), node("Gather", ["d", "i"], ["r"])],
        (3000, 4999),
    ),
    "a sparse Constant": (
        [
            node(
                "Constant",
                [],
                ["r"],
                sparse_value=helper.make_sparse_tensor(tensor("", [6]), tensor("", [1]), [2]),
            )
        ],
        (0, 6),
    ),
    "division by a float zero": (
        [
            constant("z", [0, 2], "float32"),
            constant("o", [1, 1], "float32"),
            constant("m", [5, 5], "float32"),
            node("Div", ["o", "z"], ["d"]),
            node("Add", ["d", "o"], ["e"]),
            node("Min", ["e", "m"], ["c"]),
            TO_REPEATS,
        ],
        (5, 1),
    ),
}


@pytest.mark.parametrize("name", FOLDED)
def test_any_deterministic_operator_folds(name: str, tmp_path: Path) -> None:
    nodes, repeats = FOLDED[name]
    assert read(tmp_path, *nodes).repeats == repeats


def test_a_sparse_initialiser_is_a_constant(tmp_path: Path) -> None:
    sparse = helper.make_sparse_tensor(tensor("r", [6]), tensor("", [[1]]), [2])
    assert read(tmp_path, sparse_initializer=[sparse]).repeats == (0, 6)


@pytest.mark.parametrize(
    "sparse",
    [
        helper.make_sparse_tensor(tensor("r", [6]), tensor("", [5]), [2]),
        helper.make_sparse_tensor(tensor("r", [6]), tensor("", [0]), [2**40]),
        helper.make_sparse_tensor(tensor("r", [6]), TensorProto(), [2]),
        helper.make_sparse_tensor(
            TensorProto(name="r", data_type=INT64, dims=[1], data_location=TensorProto.EXTERNAL), tensor("", [0]), [2]
        ),
    ],
)
def test_a_sparse_initialiser_that_is_malformed_large_or_external_is_unknown(
    sparse: TensorProto, tmp_path: Path
) -> None:
    assert read(tmp_path, sparse_initializer=[sparse]).repeats is None


@pytest.mark.parametrize(
    "nodes",
    [
        [node("RandomUniform", [], ["c"], shape=[2], seed=1.0), TO_REPEATS],
        [FLOATS, constant("t", True, "bool"), node("Dropout", ["f", "", "t"], ["c"]), TO_REPEATS],
        [FLOATS, node("Dropout", ["f", "", "given"], ["c"]), TO_REPEATS],
        [FLOATS, node("Bernoulli", ["p"], ["c"]), constant("p", [1, 1], "float32"), TO_REPEATS],
        [constant("d", [1, 2]), constant("z", [0, 1]), node("Div", ["d", "z"], ["r"])],
        [constant("f", [2.0**70, 1.0], "float32"), node("Cast", ["f"], ["r"], to=INT64)],
        [constant("f", [float("nan"), 1.0], "float32"), node("Cast", ["f"], ["r"], to=INT64)],
    ],
)
def test_what_is_random_or_gives_no_number_is_unknown(nodes: list[NodeProto], tmp_path: Path) -> None:
    assert read(tmp_path, *nodes, inputs=[X, typed("given", [], BOOL)]).repeats is None


@pytest.mark.parametrize("name", ["MAX_FOLDED_NODES", "MAX_KEPT_ELEMENTS"])
def test_no_more_folds_than_the_bounds_allow(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [constant("a", [2, 3]), node("Neg", ["a"], ["b"]), node("Abs", ["b"], ["r"])]
    assert read(tmp_path, *nodes).repeats == (2, 3)
    monkeypatch.setattr(folding, name, 1)
    assert read(tmp_path, *nodes).repeats is None


def test_an_operator_of_large_inputs_folds_only_if_it_is_simple(tmp_path: Path) -> None:
    large = constant("d", [*range(3000)])
    two = [constant("i", [0, 1]), node("Gather", ["e", "i"], ["r"])]
    assert read(tmp_path, large, node("Neg", ["d"], ["n"]), node("Neg", ["n"], ["e"]), *two).repeats == (0, 1)
    assert read(tmp_path, large, constant("a", 0), node("CumSum", ["d", "a"], ["e"]), *two).repeats is None


# Single elements

KNOWN: Final = {
    "Shape": ([node("Shape", ["x"], ["r"])], (None, 3)),
    "Mul": ([node("Shape", ["x"], ["s"]), constant("two", [2, 2]), node("Mul", ["s", "two"], ["r"])], (None, 6)),
    "Slice": (
        [
            node("Shape", ["x"], ["s"]),
            constant("b", [-1]),
            constant("e", [-9]),
            constant("a", [0]),
            node("Slice", ["s", "b", "e", "a", "b"], ["r"]),
        ],
        (3, None),
    ),
    "a Where whose condition is known": (
        [
            node("Shape", ["x"], ["s"]),
            constant("c", [True, False], "bool"),
            constant("o", [1, 1]),
            node("Where", ["c", "o", "s"], ["r"]),
        ],
        (1, 3),
    ),
    "a Where whose condition is not": (
        [
            node("Shape", ["x"], ["s"]),
            constant("o", [1, 1]),
            node("Equal", ["s", "o"], ["c"]),
            node("Where", ["c", "o", "s"], ["r"]),
        ],
        (None, 3),
    ),
    "Cast": ([node("Shape", ["x"], ["s"]), node("Cast", ["s"], ["c"], to=FLOAT), TO_REPEATS], (None, 3)),
    "ReduceProd": (
        [
            node("Shape", ["x"], ["s"]),
            node("ReduceProd", ["s"], ["p"]),
            constant("o", [1]),
            node("Concat", ["p", "o"], ["r"], axis=0),
        ],
        None,
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_elements_are_known_where_all_that_they_are_computed_of_is(name: str, tmp_path: Path) -> None:
    nodes, repeats = KNOWN[name]
    assert read(tmp_path, *nodes, inputs=[DYNAMIC]).repeats == repeats


# If


def branch(value: int) -> Any:
    return graph([constant("b", [value, value])], (), [typed("b", [2], INT64)])


@pytest.mark.parametrize(("known", "repeats"), [(3, (7, 7)), (4, (8, 8))])
def test_an_if_of_a_known_condition_takes_its_branch(known: int, repeats: tuple[int, ...], tmp_path: Path) -> None:
    condition = [constant("i", 1), constant("k", known), node("Shape", ["x"], ["s"]), node("Gather", ["s", "i"], ["n"])]
    taken = node("If", ["c"], ["r"], name="I", then_branch=branch(7), else_branch=branch(8))
    found = read(tmp_path, *condition, node("Equal", ["n", "k"], ["c"]), taken)
    assert (found.repeats, found.folded) == (repeats, "")
    unknown = read(tmp_path, taken, inputs=[X, typed("c", [], BOOL)])
    assert (unknown.repeats, unknown.repeats_origin) == (None, "computed by If 'I' from the input 'c'")


def test_a_tile_in_the_branch_that_is_not_taken_does_not_run(tmp_path: Path) -> None:
    def tiles(output: str) -> Any:
        return graph([tile_node(output=output)], (), [typed(output)])

    choice = node("If", ["c"], ["y"], name="I", then_branch=tiles("t"), else_branch=tiles("e"))
    made = model(constant("r", [1, 2]), constant("c", False, "bool"), choice)
    other, then = nodes_of(made, tmp_path)
    assert isinstance(then, TileNode)
    assert isinstance(other, TileNode)
    assert (then.pointer, then.folded) == (
        "I/then_branch/Tile->t",
        "the condition of If 'I' is known; its then_branch does not run",
    )
    assert (other.pointer, other.folded) == ("I/else_branch/Tile->e", "")


# Loop


def loop(*body: NodeProto, declared: Any = (2, 3), output: str = "grown") -> list[NodeProto]:
    inputs = [typed("i", [], INT64), typed("b", [], BOOL), typed("s", declared)]
    outputs = [typed("bo", [], BOOL), typed(output, declared), typed("u", declared)]
    made = graph([node("Identity", ["b"], ["bo"]), node("Relu", ["s"], ["u"]), *body], inputs, outputs)
    return [constant("r", [1, 2]), node("Loop", ["n", "", "x"], ["last", "scanned"], name="L", body=made)]


GIVEN: Final = [X, typed("n", [], INT64)]


def test_a_loop_s_input_that_grows_has_no_known_size(tmp_path: Path) -> None:
    grows = [node("Concat", ["s", "s"], ["grown"], axis=0), tile_node("s", output="t")]
    tiles = [tile_node("last", output="p"), node("Relu", ["scanned"], ["q"]), constant("r3", [1, 1, 2])]
    inside, last, scanned = nodes_of(model(*loop(*grows), *tiles, tile_node("q", "r3"), inputs=GIVEN), tmp_path)
    assert [getattr(each, "shape", each) for each in (inside, last, scanned)] == [
        (None, None),
        (None, None),
        (None, None, None),
    ]
    assert [getattr(each, "data_type", each) for each in (inside, last, scanned)] == ["float32"] * 3


def test_a_loop_s_input_that_the_body_keeps_has_the_size_that_it_is_given(tmp_path: Path) -> None:
    keeps = [node("Add", ["s", "s"], ["grown"]), tile_node("s", output="t")]
    for declared in ((2, 3), None, ("a", "b")):
        made = model(*loop(*keeps, declared=declared), tile_node("last"), inputs=GIVEN)
        assert [getattr(each, "shape", each) for each in nodes_of(made, tmp_path)] == [(2, 3), (2, 3)]


# What onnx infers wrongly


@pytest.mark.parametrize(("attributes", "bins"), [({}, 9), ({"onesided": 1}, 9), ({"onesided": 0}, 16)])
@pytest.mark.parametrize("window", ["", "w"])
def test_an_stft_is_one_sided_by_default(attributes: Any, bins: int, window: str, tmp_path: Path) -> None:
    nodes = [
        constant("step", 8),
        constant("length", 16),
        constant("w", [1.0] * 16, "float32"),
        node("STFT", ["signal", "step", window, "length"], ["f"], name="S", **attributes),
        constant("r", [1, 1, 1, 2]),
    ]
    made = model(*nodes, tile_node("f"), inputs=[typed("signal", [1, 80, 1])], opset=17)
    assert tile_in(made, tmp_path).shape == (1, 9, bins, 2)


# Which node makes a value unknown

MASK: Final = typed("mask", [2, 3], BOOL)
MINUS: Final = [constant("m", [-1]), node("Reshape", ["i", "m"], ["r"])]

ORIGINS: Final = {
    "the input 'r'": [],
    "computed by NonZero 'n12' from the input 'mask'": [node("NonZero", ["mask"], ["i"], name="n12"), *MINUS],
    "computed by ArgMax 'a' from the input 'x'": [
        node("Relu", ["x"], ["h"], name="h"),
        node("ArgMax", ["h"], ["g"], name="a", keepdims=0),
        constant("k", [0, 1]),
        node("Gather", ["g", "k"], ["r"]),
    ],
    "computed by Shape 's' from the input 'x'": [node("Shape", ["x"], ["s"], name="s"), node("Neg", ["s"], ["r"])],
    "computed by RandomUniform 'u'": [
        node("RandomUniform", [], ["u"], name="u", shape=[2]),
        node("Cast", ["u"], ["r"], to=INT64),
    ],
    "computed by com.own.Magic 'g' from the input 'x'": [node("Magic", ["x"], ["r"], name="g", domain="com.own")],
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_the_node_is_named_that_makes_the_repeats_unknown(origin: str, tmp_path: Path) -> None:
    nodes = ORIGINS[origin]
    given = [typed("x", ["N", "M"]), MASK, *([] if nodes else [typed("r", [2], INT64)])]
    found = read(tmp_path, *nodes, inputs=given, domains={"com.own": 1})
    assert found.repeats is None
    assert found.repeats_origin == origin
    assert f"Repeats: {origin}" in found.unknown


def test_the_node_is_named_that_makes_the_input_unknown(tmp_path: Path) -> None:
    selected = [node("NonZero", ["mask"], ["z"], name="n12"), node("Cast", ["z"], ["f"], to=FLOAT)]
    made = model(*selected, constant("r", [1, 2]), tile_node("f"), inputs=[MASK])
    assert tile_in(made, tmp_path).unknown == ("InputTensor.Sizes[1]: computed by NonZero 'n12' from the input 'mask'",)
    strange = [node("Magic", ["x"], ["m"], name="g", domain="com.own"), node("Relu", ["m"], ["n"])]
    made = model(*strange, constant("r", [1, 2]), tile_node("n"), domains={"com.own": 1})
    assert tile_in(made, tmp_path).unknown[0] == "InputTensor.DataType: computed by com.own.Magic 'g'"
    known = model(constant("r", [1, 2]), tile_node())
    assert (tile_in(known, tmp_path).input_origin, tile_in(known, tmp_path).repeats_origin) == ("", "")


# What onnxruntime does not run

W: Final = constant("w", [[1.0, 2.0]], "float32")
R: Final = constant("r", [1, 2])
SHAPE_ONLY: Final = "only the shape of its output is used, which is known; onnxruntime removes it"


def folded(folder: Path, *nodes: NodeProto, **fields: Any) -> str:
    return tile_in(model(R, *nodes, **fields), folder).folded


def test_a_tile_of_constants_is_folded(tmp_path: Path) -> None:
    reason = "its inputs are constants; onnxruntime folds it"
    assert folded(tmp_path, W, tile_node("w")) == reason
    assert folded(tmp_path, tile_node("w"), initializer=[tensor("w", [[1]], "float32")]) == reason
    computed = [node("Shape", ["x"], ["s"]), constant("o", [[1, 1]]), node("Add", ["s", "o"], ["a"])]
    assert folded(tmp_path, *computed, tile_node("a")) == reason


def test_a_tile_of_an_input_runs(tmp_path: Path) -> None:
    assert folded(tmp_path, tile_node()) == ""
    overridable = {"inputs": [typed("w", [1, 1])], "initializer": [tensor("w", [[1]], "float32")]}
    assert folded(tmp_path, tile_node("w"), **overridable) == ""


def test_a_tile_is_removed_if_only_its_shape_is_used(tmp_path: Path) -> None:
    shape = [node("Relu", ["t"], ["u"]), node("Shape", ["u"], ["s"]), node("Expand", ["x1", "s"], ["y"])]
    inputs = [X, typed("x1", [])]
    assert folded(tmp_path, tile_node(output="t"), *shape, inputs=inputs) == SHAPE_ONLY
    assert folded(tmp_path, tile_node(output="t"), *shape, inputs=[DYNAMIC, typed("x1", [])]) == ""
    assert folded(tmp_path, tile_node(output="t"), *shape, node("Neg", ["t"], ["v"]), inputs=inputs) == ""


def test_a_tile_whose_output_nobody_uses_runs(tmp_path: Path) -> None:
    assert folded(tmp_path, tile_node(output="t"), node("Relu", ["x"], ["y"])) == ""


@pytest.mark.parametrize(("attributes", "repeats"), [({}, (3, 5)), ({"pads": [1, 0]}, None), ({"ceil_mode": 1}, None)])
def test_a_pool_s_padding_is_unknown_since_onnx_s_reference_misplaces_it(
    attributes: dict[str, Any], repeats: tuple[int, int] | None, tmp_path: Path
) -> None:
    nodes = [
        constant("d", [[[3, 2, 5, 4]]], "float32"),
        node("MaxPool", ["d"], ["m"], kernel_shape=[2], strides=[2], **attributes),
        node("Cast", ["m"], ["w"], to=INT64),
        constant("two", [-1]),
        node("Reshape", ["w", "two"], ["all"]),
        *(constant("begin", [0]), constant("end", [2])),
        node("Slice", ["all", "begin", "end"], ["r"]),
    ]
    assert read(tmp_path, *nodes).repeats == repeats
