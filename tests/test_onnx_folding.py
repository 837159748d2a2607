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

X: Final = typed("x", [2, 3])
DYNAMIC: Final = typed("x", ["N", 3])


def read(folder: Path, *nodes: NodeProto, inputs: Sequence[Any] = (X,), opset: int = 21, **fields: Any) -> TileNode:
    """Return the Tile of x by r, which the nodes compute."""
    return tile_in(model(*nodes, tile_node(name="T"), inputs=inputs, opset=opset, **fields), folder)


# What is computed to 0 or False is known


EXPAND: Final = """
    own = Shape(x)
    rank = Shape(sizes)
    ones = ConstantOfShape<value = int64[1] {1}>(rank)
    minus = -1
    kept = Mul(ones, minus)
"""


def test_the_repeats_of_pytorch_s_expand_are_known(tmp_path: Path) -> None:
    given = computed(f"sizes = [-1, 4] {EXPAND} is_kept = Equal(sizes, kept); r = Where(is_kept, ones, sizes)")
    assert read(tmp_path, *given).repeats == (1, 4)
    own = computed(f"sizes = [4, 1] {EXPAND} is_kept = Equal(own, kept); r = Where(is_kept, ones, own)")
    assert read(tmp_path, *own).repeats == (2, 3)
    assert read(tmp_path, *own, inputs=[DYNAMIC]).repeats == (None, 3)


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("o = 1; n = Gather(s, z); r = Range(z, n, o)", (0, 1)),
        ("r = Sub(s, s)", (0, 0)),
        ("two = 2; r = Mod(s, two)", (0, 1)),
        ("two = 2; q = Greater(s, two); r = Where(q, s, two)", (2, 3)),
        ("half = 0.5; f = Cast<to=1>(s); h = Mul(f, half); g = Floor(h); r = Cast<to=7>(g)", (1, 1)),
    ],
)
def test_a_zero_that_is_computed_from_a_shape_is_known(text: str, repeats: tuple[int, ...], tmp_path: Path) -> None:
    assert read(tmp_path, *computed(f"s = Shape(x); z = 0; {text}")).repeats == repeats


# Any deterministic operator folds


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("f = [1.4, 2.6]; c = Round(f); r = Cast<to=7>(c)", (1, 3)),
        ("f = [4.0, 9.0]; c = Sqrt(f); r = Cast<to=7>(c)", (2, 3)),
        ("f = [1.4, 2.6]; c = Sign(f); r = Cast<to=7>(c)", (1, 1)),
        ("f = [-4.0, 9.0]; c = Relu(f); r = Cast<to=7>(c)", (0, 9)),
        ("f = [[1.0, 3.0], [5.0, 7.0]]; a = [1]; c = ReduceMean<keepdims=0>(f, a); r = Cast<to=7>(c)", (2, 6)),
        ("d = [7, 8, 9]; i = [[2], [0]]; r = GatherND(d, i)", (9, 7)),
        ("d = [7, 8, 9]; i = [2, 0]; r = GatherElements(d, i)", (9, 7)),
        ("d = [2, 3]; a = 0; r = CumSum(d, a)", (2, 5)),
        ("d = [5]; p = [1, 0]; v = 4; r = Pad(d, p, v)", (4, 5)),
        ("d = [[1, 2], [3, 4]]; e = [1, 1]; r = MatMul(d, e)", (3, 7)),
        ("d = [5, 9, 7]; k = [2]; r, i = TopK(d, k)", (9, 7)),
        ("d = [[5, 9, 7], [1, 1, 2]]; r = ArgMax<axis=1, keepdims=0>(d)", (1, 2)),
        ("f = [1.4, 2.6]; c = Dropout(f); r = Cast<to=7>(c)", (1, 2)),
        ("d = [0, 1, 1]; m = [-1]; i = NonZero(d); r = Reshape(i, m)", (1, 2)),
        (f"d = {[*range(5000)]}; i = [3000, 4999]; r = Gather(d, i)", (3000, 4999)),
        # a division by zero is infinite
        ("z = [0.0, 2.0]; o = 1.0; m = 5.0; d = Div(o, z); e = Add(d, o); c = Min(e, m); r = Cast<to=7>(c)", (5, 1)),
    ],
    ids=lambda value: value[-40:] if isinstance(value, str) else "",
)
def test_any_deterministic_operator_folds(text: str, repeats: tuple[int, ...], tmp_path: Path) -> None:
    assert read(tmp_path, *computed(text)).repeats == repeats


def test_a_sparse_constant_is_known(tmp_path: Path) -> None:
    sparse = helper.make_sparse_tensor(tensor("", [6]), tensor("", [1]), [2])
    assert read(tmp_path, node("Constant", [], ["r"], sparse_value=sparse)).repeats == (0, 6)


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
    "text",
    [
        "c = RandomUniform<shape=[2], seed=1.0>(); r = Cast<to=7>(c)",
        "f = [1.4, 2.6]; t = true; c = Dropout(f, , t); r = Cast<to=7>(c)",
        "f = [1.4, 2.6]; c = Dropout(f, , given); r = Cast<to=7>(c)",
        "c = Bernoulli(p); p = [1.0, 1.0]; r = Cast<to=7>(c)",
        "d = [1, 2]; z = [0, 1]; r = Div(d, z)",
        "f = [1180591620717411303424.0, 1.0]; r = Cast<to=7>(f)",
        "n = Constant<value_floats=[nan, 1.0]>(); r = Cast<to=7>(n)",
    ],
)
def test_what_is_random_or_gives_no_number_is_unknown(text: str, tmp_path: Path) -> None:
    assert read(tmp_path, *computed(text), inputs=[X, typed("given", [], BOOL)]).repeats is None


@pytest.mark.parametrize("name", ["MAX_FOLDED_NODES", "MAX_KEPT_ELEMENTS"])
def test_no_more_folds_than_the_bounds_allow(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = computed("a = [2, 3]; b = Neg(a); r = Abs(b)")
    assert read(tmp_path, *nodes).repeats == (2, 3)
    monkeypatch.setattr(folding, name, 1)
    assert read(tmp_path, *nodes).repeats is None


@pytest.mark.parametrize(("text", "repeats"), [("n = Neg(d); e = Neg(n)", (0, 1)), ("a = 0; e = CumSum(d, a)", None)])
def test_an_operator_of_large_inputs_folds_only_if_it_is_simple(text: str, repeats: Any, tmp_path: Path) -> None:
    nodes = computed(f"d = {[*range(3000)]}; {text}; i = [0, 1]; r = Gather(e, i)")
    assert read(tmp_path, *nodes).repeats == repeats


# Single elements


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("r = Shape(x)", (None, 3)),
        ("s = Shape(x); two = [2, 2]; r = Mul(s, two)", (None, 6)),
        ("s = Shape(x); b = [-1]; e = [-9]; a = [0]; r = Slice(s, b, e, a, b)", (3, None)),
        ("s = Shape(x); c = [true, false]; o = [1, 1]; r = Where(c, o, s)", (1, 3)),
        ("s = Shape(x); o = [1, 1]; c = Equal(s, o); r = Where(c, o, s)", (None, 3)),
        ("s = Shape(x); c = Cast<to=1>(s); r = Cast<to=7>(c)", (None, 3)),
        ("s = Shape(x); p = ReduceProd(s); o = [1]; r = Concat<axis=0>(p, o)", None),
    ],
)
def test_elements_are_known_where_all_that_they_are_computed_of_is(text: str, repeats: Any, tmp_path: Path) -> None:
    assert read(tmp_path, *computed(text), inputs=[DYNAMIC]).repeats == repeats


# If


def branch(value: int) -> Any:
    return graph([constant("b", [value, value])], (), [typed("b", [2], INT64)])


@pytest.mark.parametrize(("known", "repeats"), [(3, (7, 7)), (4, (8, 8))])
def test_an_if_of_a_known_condition_takes_its_branch(known: int, repeats: tuple[int, ...], tmp_path: Path) -> None:
    condition = computed(f"i = 1; k = {known}; s = Shape(x); n = Gather(s, i); c = Equal(n, k)")
    taken = node("If", ["c"], ["r"], name="I", then_branch=branch(7), else_branch=branch(8))
    found = read(tmp_path, *condition, taken)
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
    given = computed(f"step = 8; length = 16; w = {[1.0] * 16}; r = [1, 1, 1, 2]")
    stft = node("STFT", ["signal", "step", window, "length"], ["f"], name="S", **attributes)
    made = model(*given, stft, tile_node("f"), inputs=[typed("signal", [1, 80, 1])], opset=17)
    assert tile_in(made, tmp_path).shape == (1, 9, bins, 2)


# Which node makes a value unknown

MASK: Final = typed("mask", [2, 3], BOOL)


@pytest.mark.parametrize(
    ("origin", "text"),
    [
        ("the input 'r'", ""),
        ("computed by NonZero 'n12' from the input 'mask'", "[n12] i = NonZero(mask); m = [-1]; r = Reshape(i, m)"),
        (
            "computed by ArgMax 'a' from the input 'x'",
            "[h] h = Relu(x); [a] g = ArgMax<keepdims=0>(h); k = [0, 1]; r = Gather(g, k)",
        ),
        ("computed by Shape 's' from the input 'x'", "[s] s = Shape(x); r = Neg(s)"),
        ("computed by RandomUniform 'u'", "[u] u = RandomUniform<shape=[2]>(); r = Cast<to=7>(u)"),
        ("computed by com.own.Magic 'g' from the input 'x'", "[g] r = com.own.Magic(x)"),
    ],
)
def test_the_node_is_named_that_makes_the_repeats_unknown(origin: str, text: str, tmp_path: Path) -> None:
    given = [typed("x", ["N", "M"]), MASK, *([] if text else [typed("r", [2], INT64)])]
    found = read(tmp_path, *computed(text), inputs=given, domains={"com.own": 1})
    assert (found.repeats, found.repeats_origin) == (None, origin)
    assert f"Repeats: {origin}" in found.unknown


def test_the_node_is_named_that_makes_the_input_unknown(tmp_path: Path) -> None:
    selected = computed("[n12] z = NonZero(mask); f = Cast<to=1>(z); r = [1, 2]")
    made = model(*selected, tile_node("f"), inputs=[MASK])
    assert tile_in(made, tmp_path).unknown == ("InputTensor.Sizes[1]: computed by NonZero 'n12' from the input 'mask'",)
    strange = computed("[g] m = com.own.Magic(x); n = Relu(m); r = [1, 2]")
    made = model(*strange, tile_node("n"), domains={"com.own": 1})
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
    assert folded(tmp_path, *computed("s = Shape(x); o = [[1, 1]]; a = Add(s, o)"), tile_node("a")) == reason


def test_a_tile_of_an_input_runs(tmp_path: Path) -> None:
    assert folded(tmp_path, tile_node()) == ""
    overridable = {"inputs": [typed("w", [1, 1])], "initializer": [tensor("w", [[1]], "float32")]}
    assert folded(tmp_path, tile_node("w"), **overridable) == ""


def test_a_tile_is_removed_if_only_its_shape_is_used(tmp_path: Path) -> None:
    shape = computed("u = Relu(t); s = Shape(u); y = Expand(x1, s)")
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
    pool = node("MaxPool", ["d"], ["m"], kernel_shape=[2], strides=[2], **attributes)
    selected = computed("w = Cast<to=7>(m); two = [-1]; all = Reshape(w, two); b = [0]; e = [2]; r = Slice(all, b, e)")
    assert read(tmp_path, *computed("d = [[[3.0, 2.0, 5.0, 4.0]]]"), pool, *selected).repeats == repeats
