"""An ONNX model's values and shapes are known before it runs, or the node that makes one unknown is named."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from dml_tile.errors import InputError
from dml_tile.findings import unreadable
from dml_tile.readers.model_names import KnownShapes, ModelFacts
from dml_tile.readers.model_tile import TileNode
from dml_tile.readers.onnx import folding
from dml_tile.readers.onnx.file import elements_of
from dml_tile.readers.onnx.tiles import read_nodes
from tests.helpers.onnx_graphs import (
    BOOL,
    INT64,
    constant,
    folded_in,
    function,
    model,
    node,
    nodes_of,
    placed,
    tensor,
    tile_in,
    tile_node,
    typed,
)
from tests.helpers.packages import needed

X: Final = typed("x", [2, 3])
DYNAMIC: Final = typed("x", ["N", 3])
E: Final = typed("e", [])

SHAPE: Final = "u = Relu(t); s = Shape(u); y = Expand(e, s)"
KNOWN_SIZE: Final = "i = 1; s = Shape(x); n = Gather(s, i)"


def read(*nodes: NodeProto | str, inputs: Sequence[Any] = (X,), opset: int = 21, **fields: Any) -> TileNode:
    """Return the Tile of x by r, which the nodes compute."""
    return tile_in(model(*nodes, tile_node(name="T"), inputs=inputs, opset=opset, **fields))


# What is computed from constants and shapes

EXPAND: Final = (
    "own = Shape(x); rank = Shape(sizes); ones = ConstantOfShape<value = int64[1] {1}>(rank); minus = -1;"
    "kept = Mul(ones, minus); is_kept = Equal(repeats, kept); r = Where(is_kept, ones, repeats)"
)
COMPUTED: Final = [
    # the shape of x, nodes, and the repeats; random chains of such nodes are held to onnxruntime below
    # PyTorch's expand
    ([2, 3], f"sizes = [-1, 4]; repeats = Identity(sizes); {EXPAND}", (1, 4)),
    ([2, 3], f"sizes = [4, 1]; repeats = Shape(x); {EXPAND}", (2, 3)),
    (["N", 3], f"sizes = [4, 1]; repeats = Shape(x); {EXPAND}", (None, 3)),
    ([2, 3], "f = [2.0, 3.0]; r = Cast<to=7>(f)", (2, 3)),
    ([2, 3], "s = 4; z = [0]; u = Unsqueeze(s, z); r = Concat<axis=0>(u, u)", (4, 4)),
    ([2, 3], "b = [1, 2, 3, 4]; l, r = Split<num_outputs=2>(b)", (3, 4)),
    ([2, 3], "a = [2, 3]; n = Size(x); r = Mul(n, a)", (12, 18)),
    ([2, 3], "f = [[1.0, 3.0], [5.0, 7.0]]; a = [1]; c = ReduceMean<keepdims=0>(f, a); r = Cast<to=7>(c)", (2, 6)),
    ([2, 3], "d = [[1, 2], [3, 4]]; e = [1, 1]; r = MatMul(d, e)", (3, 7)),
    ([2, 3], "f = [1.4, 2.6]; c = Dropout(f); r = Cast<to=7>(c)", None),
    ([2, 3], "d = [0, 1, 1]; m = [-1]; i = NonZero(d); r = Reshape(i, m)", (1, 2)),
    ([2, 3], f"d = {[*range(5000)]}; i = [3000, 4999]; r = Gather(d, i)", (3000, 4999)),
    # of large inputs, operators that are simple alone are computed
    ([2, 3], f"d = {[*range(3000)]}; n = Neg(d); e = Neg(n); i = [0, 1]; r = Gather(e, i)", (0, 1)),
    ([2, 3], f"d = {[*range(3000)]}; a = 0; e = CumSum(d, a); i = [0, 1]; r = Gather(e, i)", None),
    # a division by zero is infinite
    (
        [2, 3],
        "z = [0.0, 2.0]; o = 1.0; m = 5.0; d = Div(o, z); e = Add(d, o); c = Min(e, m); r = Cast<to=7>(c)",
        (5, 1),
    ),
    # what is computed to 0 or False is known
    ([2, 3], "s = Shape(x); z = 0; o = 1; n = Gather(s, z); r = Range(z, n, o)", (0, 1)),
    ([2, 3], "s = Shape(x); two = 2; q = Greater(s, two); r = Where(q, s, two)", (2, 3)),
    # what onnxruntime rounds otherwise about 1 is unknown
    *(
        ([2, 3], f"v = [1000000000000.0, 9.0]; s = {operator}(v); r = Cast<to=7>(s)", repeats)
        for operator, repeats in (("Sigmoid", None), ("Softsign", None), ("Tanh", None), ("Sign", (1, 1)))
    ),
    # single elements are known where all that they are computed of is
    (["N", 3], "r = Shape(x)", (None, 3)),
    (["N", 3], "s = Shape(x); i = [1]; n = Gather(s, i); one = [1]; r = Concat<axis=0>(one, n)", (1, 3)),
    (["N", 3], "s = Shape(x); r = Add(s, s)", (None, 6)),
    (["N", "M"], "s = Shape(x); r = Add(s, s)", None),
    (["N", 3], "n = Size(x); m = [2]; r = Expand(n, m)", None),
    ([2**62, 4], "n = Size(x); m = [2]; r = Expand(n, m)", None),  # the size is past int64
    (["N", 3], "s = Shape(x); b = [-1]; e = [-9]; a = [0]; r = Slice(s, b, e, a, b)", (3, None)),
    (["N", 3], "s = Shape(x); c = [true, false]; o = [1, 1]; r = Where(c, o, s)", (1, 3)),
    (["N", 3], "s = Shape(x); o = [1, 1]; c = Equal(s, o); r = Where(c, o, s)", (None, 3)),
    (["N", 3], "s = Shape(x); p = ReduceProd(s); o = [1]; r = Concat<axis=0>(p, o)", (None, 1)),
    # what is random, no constant, or fails
    ([2, 3], "c = RandomUniform<shape=[2], seed=1.0>(); r = Cast<to=7>(c)", None),
    ([2, 3], "f = [1.4, 2.6]; t = true; c = Dropout(f, , t); r = Cast<to=7>(c)", None),
    ([2, 3], "f = [1.4, 2.6]; c = Dropout(f, , flag); r = Cast<to=7>(c)", None),
    ([2, 3], "c = Bernoulli(p); p = [1.0, 1.0]; r = Cast<to=7>(c)", None),
    ([2, 3], "f = [1180591620717411303424.0, 1.0]; r = Cast<to=7>(f)", None),
    ([2, 3], "n = Constant<value_floats=[nan, 1.0]>(); r = Cast<to=7>(n)", None),
    ([2, 3], "a = [2, 3]; r = Add(a, given)", None),
    ([2, 3], "a = [2, 3]; z = [0, 1]; r = Div(a, z)", None),
    ([2, 3], f"a = [2, {2**62}]; p = ReduceProd(a); r = Mul(p, given)", None),
    ([2, 3], f"a = [{10**12}]; r = ConstantOfShape(a)", None),
    ([2, 3], f"a = 0; b = {10**12}; c = 1; r = Range(a, b, c)", None),
    *(([2, 3], f"a = [2, 3]; {text}", None) for text in ("r = Stranger(a)", "r = com.stranger.Own(a)", "r = Cast(a)")),
    *(([2, 3], text, None) for text in ("r = Concat<axis=0>()", "r = Shape()")),
]


@pytest.mark.parametrize(
    ("shape", "text", "repeats"), COMPUTED, ids=lambda value: value[-40:] if isinstance(value, str) else ""
)
def test_repeats_are_computed_where_they_do_not_depend_on_values(shape: Any, text: str, repeats: Any) -> None:
    inputs = [typed("x", shape), typed("given", [2], INT64), typed("flag", [], BOOL)]
    with warnings.catch_warnings(action="error"):
        found = read(text, inputs=inputs)
    assert (found.repeats, found.error) == (repeats, "")


@pytest.mark.parametrize(
    ("opset", "text"),
    [
        (15, "r = Shape<start=-2>(w)"),
        (15, "r = Shape<end=2>(w)"),
        (13, "b = [1, 2, 7, 8]; l, r = Split(b)"),
        (11, "b = [[7, 8]]; r = Squeeze<axes=[0]>(b)"),
        (11, "a = [7, 8]; s = Split(a); r = Concat<axis=0>(s)"),
        (9, "a = [5, 7, 8]; r = Slice<starts=[1], ends=[3]>(a)"),
        (6, "b = [[7, 8]]; m = [2]; r = Reshape(b, m)"),
    ],
)
def test_each_form_of_an_operator_is_computed(opset: int, text: str) -> None:
    assert read(text, inputs=[X, typed("w", [7, 8])], opset=opset).repeats == (7, 8)


@pytest.mark.parametrize(
    ("elements", "indices", "expected"),
    [
        ([6, 3], [0, 1], (6, 3)),
        ([3, 6], [1, 0], (6, 3)),
        ([6], [1], (0, 6)),
        ([6], [[1]], (0, 6)),
        ([], [], (0, 0)),
    ],
)
def test_the_elements_of_a_sparse_tensor_are_known(elements: Any, indices: Any, expected: Any) -> None:
    sparse = helper.make_sparse_tensor(tensor("r", elements), tensor("", indices), [2])
    assert read(sparse_initializer=[sparse]).repeats == expected
    assert read(node("Constant", [], ["r"], sparse_value=sparse)).repeats == expected
    assert read(node("Constant", [], ["s"], sparse_value=sparse), "z = [0]; r = Add(s, z)").repeats == expected
    sparse.dims[0] = 2**10  # whose elements are read again when they are asked for
    text = "b = [0]; e = [2]; r = Slice(s, b, e)"
    assert read(node("Constant", [], ["s"], sparse_value=sparse), text).repeats == expected


def test_a_sparse_tensor_whose_indices_are_not_of_its_elements_is_a_problem() -> None:
    sparse = helper.make_sparse_tensor(tensor("r", [6]), tensor("", [-1]), [2])
    problem, found, _ = nodes_of(model(tile_node(), sparse_initializer=[sparse]))
    assert (problem.message, found.repeats) == ("the indices of 'r' do not name 1 elements of [2]", None)
    ((error,), _) = placed(model(tile_node(), sparse_initializer=[sparse]), "onnxruntime-directml-1.24.4")
    assert error.text == problem.message


@pytest.mark.parametrize(("rank", "repeats"), [(64, (2, 2)), (65, None)])
def test_the_sizes_of_more_dimensions_than_numpy_has_are_unknown(rank: int, repeats: Any) -> None:
    """Their product may be a number of any length."""
    text, w = "s = Shape(w); b = [0]; e = [2]; r = Slice(s, b, e)", [2] * rank
    assert read(text, inputs=[X, typed("w", w)]).repeats == repeats
    assert read(text, initializer=[TensorProto(name="w", dims=w, data_type=INT64)]).repeats == repeats
    assert elements_of(TensorProto(dims=w)) == (2**rank if repeats else None)
    with pytest.raises(InputError, match=rf"has {rank} dimensions, .*; \(7\) was given"):
        nodes_of(model(*TILE, inputs=[typed("x", w)]), KnownShapes(input_shapes={"x": (7,)}))


@pytest.mark.parametrize("name", ["MAX_COST", "MAX_FOLDED_NODES", "MAX_KEPT_ELEMENTS"])
def test_no_more_folds_than_the_bounds_allow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a = [2, 3]; b = Neg(a); r = Abs(b)"
    assert read(text).repeats == (2, 3)
    monkeypatch.setattr(folding, name, 1)
    assert read(text).repeats is None


# If


def choice(output: str, then: str, other: str) -> str:
    """Return the text of an If on c, whose branches compute t and e."""
    then_branch = f"then_branch = then () => (float[] t) {{ {then} }}"
    return f"[I] {output} = If(c)<{then_branch}, else_branch = other () => (float[] e) {{ {other} }}>"


@pytest.mark.parametrize(("known", "repeats"), [(3, (7, 7)), (4, (8, 8))])
def test_an_if_of_a_known_condition_takes_its_branch(known: int, repeats: tuple[int, ...]) -> None:
    condition = f"i = 1; k = {known}; s = Shape(x); n = Gather(s, i); c = Equal(n, k)"
    taken = choice("r", "t = [7, 7]", "e = [8, 8]").replace("float[]", "int64[2]")
    found = read(condition, taken)
    assert found.repeats == repeats
    unknown = read(taken, inputs=[X, typed("c", [], BOOL)])
    assert unknown.repeats is None
    assert list(map(str, unknown.repeats_origins)) == ["computed by If 'I' from the elements of the input 'c'"]


def test_a_tile_in_the_branch_that_is_not_taken_does_not_run() -> None:
    tiles = choice("y", "t = Tile(x, r)", "e = Tile(x, r)")
    reason = "the condition of If 'I' is known; its then_branch does not run"
    for condition, folded in (("c = false", reason), (f"{KNOWN_SIZE}; k = 4; c = Equal(n, k)", "")):
        # the second is known of each run, and onnxruntime compiles both branches
        found = folded_in(model("r = [1, 2]", condition, tiles, inputs=[DYNAMIC]))
        assert found == {"I/then_branch/Tile->t": folded, "I/else_branch/Tile->e": ""}


@pytest.mark.parametrize(
    "text",
    [
        "s = Shape(x); f = Cast<to=1>(s); r = [2]; y = Tile(f, r)",
        f"r = [1, 2]; t = Tile(x, r); {SHAPE}",
        f"{KNOWN_SIZE}; k = 3; c = Equal(n, k); r = [1, 2]; {choice('y', 't = Neg(x)', 'u = Tile(x, r)')}",
    ],
)
def test_given_sizes_are_those_of_a_run_and_fold_nothing(text: str) -> None:
    assert [*filter(None, folded_in(model(text, inputs=[X, E])).values())]
    sizes = (KnownShapes({"N": 2}), KnownShapes(input_shapes={"x": (2, 3)}))
    for known_shapes in sizes:
        built = model(text, inputs=[typed("x", ["N", "M"]), E])
        assert not any(folded_in(built, known_shapes).values())
        assert not tile_in(built, known_shapes).emptied


def test_names_of_dimensions_and_inputs_that_a_model_lacks_have_no_effect(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(FIXABLE, path)
    reading = read_nodes(path, KnownShapes({"K": 2}, {"X": (4, 3), "r": (4, 3), "w": (7,)}))
    assert str(next(reading)) == "FLOAT32 {7,3} x {1,2} -> {7,6}"
    with pytest.raises(StopIteration) as caught:
        next(reading)
    assert caught.value.value == ModelFacts(frozenset({"N"}), frozenset({"x", "w"}), nodes=2)


def test_a_tile_that_a_given_size_empties_is_told_from_one_that_is_empty() -> None:
    open_tile, empty = model(*TILE, inputs=[DYNAMIC]), model(*TILE, inputs=[typed("x", [0, "N"])])
    assert [tile_in(made, KnownShapes({"N": 0})).emptied for made in (open_tile, empty)] == [True, False]


@pytest.mark.parametrize(
    ("then", "other", "shape"),
    [
        ("t = Relu(x)", "e = Neg(x)", (2, 3)),
        ("t = Relu(x)", "e = Neg(w)", (2, None)),
        ("t = Relu(x)", "a = [0]; e = ReduceMax<keepdims=0>(x, a)", None),
        ("t = com.own.Magic(x)", "e = Relu(x)", None),
    ],
)
def test_what_both_branches_of_an_if_give_is_known(then: str, other: str, shape: Any) -> None:
    inputs = [X, typed("w", [2, 4]), typed("c", [], BOOL), typed("r", None, INT64)]
    found = tile_in(model(choice("v", then, other), "y = Tile(v, r)", inputs=inputs, domains={"com.own": 1}))
    assert (found.data_type, found.shape) == ("float32", shape)


# Loop


def loop(body: str, declared: str = "[2, 3]") -> str:
    """Return the text of a Loop that gives its body x as s, and of repeats."""
    values = f"(int64 i, bool b, float{declared} s) => (bool bo, float{declared} grown, float{declared} u)"
    steps = f"bo = Identity(b) u = Relu(s) {body} t = Tile(s, r)"
    return f"r = [1, 2]; [L] last, scanned = Loop(n, , x)<body = body {values} {{ {steps} }}>"


GIVEN: Final = [X, typed("n", [], INT64)]


def test_a_loop_s_input_that_grows_has_no_known_size() -> None:
    tiles = "p = Tile(last, r); q = Relu(scanned); r3 = [1, 1, 2]; y = Tile(q, r3)"
    found = nodes_of(model(loop("grown = Concat<axis=0>(s, s)"), tiles, inputs=GIVEN))
    assert [(tile.data_type, tile.shape) for tile in found] == [("float32", (None,) * rank) for rank in (2, 2, 3)]


@pytest.mark.parametrize("declared", ["[2, 3]", "[]", "[a, b]"])
def test_a_loop_s_input_that_the_body_keeps_has_the_size_that_it_is_given(declared: str) -> None:
    made = model(loop("grown = Add(s, s)", declared), tile_node("last"), inputs=GIVEN)
    assert [tile.shape for tile in nodes_of(made)] == [(2, 3), (2, 3)]


def test_a_loop_s_input_of_an_unknown_type_stays_unknown_beside_one_that_grows() -> None:
    values = "(int64 i, bool b, float[2, 3] s, m) => (bool bo, float[] grown, mo)"
    steps = "bo = Identity(b) grown = Concat<axis=0>(s, s) mo = Identity(m) t = Tile(m, r)"
    looped = f"u, v = Loop(n, , x, g)<body = body {values} {{ {steps} }}>"
    made = model("r = [1, 2]; g = com.own.Magic(x)", looped)
    assert (tile_in(made).data_type, tile_in(made).shape) == (None, (None, None))


# What onnx infers wrongly


@pytest.mark.parametrize(("attributes", "bins"), [({}, 9), ({"onesided": 1}, 9), ({"onesided": 0}, 16)])
@pytest.mark.parametrize("window", ["", "w"])
def test_an_stft_is_one_sided_by_default(attributes: Any, bins: int, window: str) -> None:
    given = f"step = 8; length = 16; w = {[1.0] * 16}; r = [1, 1, 1, 2]"
    stft = node("STFT", ["signal", "step", window, "length"], ["f"], name="S", **attributes)
    made = model(given, stft, tile_node("f"), inputs=[typed("signal", [1, 80, 1])], opset=17)
    assert tile_in(made).shape == (1, 9, bins, 2)


# Which node makes a value unknown

MASK: Final = typed("mask", [2, 3], BOOL)


@pytest.mark.parametrize(
    ("origin", "text"),
    [
        ("the elements of the input 'r'", ""),
        (
            "computed by NonZero 'n12' from the elements of the input 'mask'",
            "[n12] i = NonZero(mask); m = [-1]; r = Reshape(i, m)",
        ),
        (
            "computed by ArgMax 'a' from the elements of the input 'x'",
            "[h] h = Relu(x); [a] g = ArgMax<keepdims=0>(h); k = [0, 1]; r = Gather(g, k)",
        ),
        ("computed by Shape 's' from the input 'x'", "[s] s = Shape(x); r = Neg(s)"),
        (  # of a vector that has become a matrix, rows are blamed as a whole
            "computed by Shape 's' from the input 'x'",
            "[s] s = Shape(x); z = [0]; m = Unsqueeze(s, z); g = Gather(m, z); one = [-1]; r = Reshape(g, one)",
        ),
        ("computed by RandomUniform 'u'", "[u] u = RandomUniform<shape=[2]>(); r = Cast<to=7>(u)"),
        ("computed by com.own.Magic 'g' from the elements of the input 'x'", "[g] r = com.own.Magic(x)"),
    ],
)
def test_the_node_is_named_that_makes_the_repeats_unknown(origin: str, text: str) -> None:
    given = [typed("x", ["N", "M"]), MASK, *([] if text else [typed("r", [2], INT64)])]
    found = read(text, inputs=given, domains={"com.own": 1})
    assert (found.repeats, list(map(str, found.repeats_origins))) == (None, [origin])
    assert f"Repeats: {origin}" in map(str, found.unknown)


SAVE: Final = "save the model with shapes"


def test_the_node_is_named_that_makes_the_input_unknown() -> None:
    made = model("[n12] z = NonZero(mask); f = Cast<to=1>(z); r = [1, 2]; y = Tile(f, r)", inputs=[MASK])
    assert tuple(map(str, tile_in(made).unknown)) == (
        "InputTensor.Sizes[1]: computed by NonZero 'n12' from the elements of the input 'mask'",
    )
    for field, operator, advice in (
        ("DataType", "com.own.Magic", SAVE),
        # ONNX Runtime's own operators are known by the types of their inputs and outputs
        ("Sizes[0]", "com.microsoft.Gelu", f"{SAVE}, as onnxruntime.tools.symbolic_shape_infer does"),
    ):
        text, domain = f"[g] m = {operator}(x); n = Relu(m); r = [1, 2]; y = Tile(n, r)", operator.rpartition(".")[0]
        found = tile_in(model(text, domains={domain: 1}))
        assert str(found.unknown[0]) == f"InputTensor.{field}: computed by {operator} 'g' ({advice})"
        assert not tile_in(model(text, domains={domain: 1}, value_info=[typed("m", [2, 3])])).unknown
    known = tile_in(model("r = [1, 2]; y = Tile(x, r)"))
    assert (known.input_origins, known.repeats_origins) == ((), ())


# What onnxruntime does not run

SHAPE_ONLY: Final = "only the shape of its output is used, which is known; onnxruntime removes it"
CONSTANTS: Final = "its inputs are constants; onnxruntime folds it"
W: Final = tensor("w", [[1.0, 2.0]], "float32")


@pytest.mark.parametrize(
    ("text", "inputs", "fields", "folded"),
    [
        ("w = [[1.0, 2.0]]; y = Tile(w, r)", [X], {}, CONSTANTS),
        ("y = Tile(w, r)", [X], {"initializer": [W]}, CONSTANTS),
        ("y = Tile(w, r)", [typed("w", [1, 1])], {"initializer": [W]}, ""),  # which a caller may override
        ("s = Shape(x); o = [[1, 1]]; a = Add(s, o); y = Tile(a, r)", [X], {}, CONSTANTS),
        ("y = Tile(x, r)", [X], {}, ""),
        (f"t = Tile(x, r); {SHAPE}", [X, E], {}, SHAPE_ONLY),
        (f"t = Tile(x, r); {SHAPE}", [DYNAMIC, E], {}, ""),
        (f"t = Tile(x, r); {SHAPE}; v = Neg(t)", [X, E], {}, ""),
        ("s = Size(x); one = [1, 1]; a = Reshape(s, one); y = Tile(a, r)", [X], {}, ""),
        ("a = [[1, 2]]; s = Size(a); b = Mul(a, s); y = Tile(b, r)", [X], {}, CONSTANTS),
        (f"{KNOWN_SIZE}; o = 0; i = 1; q = Range(o, n, i); a = Shape(q); p = [2]; y = Tile(a, p)", [DYNAMIC], {}, ""),
        (f"{KNOWN_SIZE}; o = 0; i = 1; q = Range(o, n, i); t = Tile(q, p); p = [2]; {SHAPE}", [DYNAMIC, E], {}, ""),
        ("t = Tile(x, r); y = Relu(x)", [X], {}, ""),  # nobody uses its output
    ],
)
def test_a_tile_of_constants_or_of_whose_output_only_the_shape_is_used_does_not_run(
    text: str, inputs: Any, fields: Any, folded: str
) -> None:
    assert [*folded_in(model(f"r = [1, 2]; {text}", inputs=inputs, **fields)).values()] == [folded]


@pytest.mark.parametrize(
    ("operator", "text"),
    [
        ("MaxPool", "d = [[[3.0, 2.0, 5.0, 4.0]]]; m = MaxPool<kernel_shape=[2]>(d)"),
        ("RegexFullMatch", 'a = Constant<value_string="a">(); m = RegexFullMatch<pattern="a*">(a)'),
        ("StringConcat", 'a = Constant<value_string="4">(); m = StringConcat(a, a)'),
        ("Constant", 'm = Constant<value_strings=["4", "5"]>()'),
        ("Cast", 'a = Constant<value_string="5">(); m = Cast<to=7>(a)'),
        # of these, what is there in the end is small
        ("Split", "a = [2, 3]; m, n = Split<num_outputs=1000000>(a)"),
        ("Tile", "a = [[1]]; b = [268435456, 0]; m = Tile(a, b)"),
        ("Range", "a = -9223372036854775808; b = 9223372036854775807; c = 68719476736; m = Range(a, b, c)"),
        ("GatherND", f"a = {[*range(10)]}; b = {[[0]] * 9000}; m = GatherND(a, b)"),
    ],
)
def test_what_may_cost_more_than_its_shapes_say_is_not_computed(
    operator: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed, evaluated = list[str](), folding._evaluated

    def noted(node: Any, inputs: Any) -> Any:
        computed.append(node.type)
        return evaluated(node, inputs)

    monkeypatch.setattr(folding, "MAX_COST", 2**17)
    monkeypatch.setattr(folding, "_evaluated", noted)
    nodes_of(model(f"k = [1]; i = Neg(k); {text}; r = [1, 2]; y = Tile(x, r)", opset=21))
    assert (operator in computed, "Neg" in computed) == (False, True)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_whatever_onnxruntime_folds_is_known_and_sizes_contradict_and_hide_nothing(seed: int, tmp_path: Path) -> None:
    needed("onnxruntime")
    from tests.helpers.onnx_chains import figures_of

    figures = figures_of(seed, 15, 0, tmp_path)  # the workflow draws others, and some through onnx's own cases
    assert figures.wrong == []
    assert figures.built > 11
    assert figures.folded_by_onnxruntime > 0


def require_folded_alike(text: str, folder: Path, opset: int = 13) -> None:
    """Require that a Tile, which gives u, is folded if onnxruntime folds it."""
    needed("onnxruntime")
    from tests.helpers.onnx_chains import session

    built = model(f"{text}; y = Cast<to=1>(u)", inputs=[typed("x", [2])], opset=opset)
    session(built, "ORT_ENABLE_BASIC", folder / "optimised.onnx")
    is_run = any(node.op_type == "Tile" for node in onnx.load(folder / "optimised.onnx").graph.node)
    assert any(folded_in(built).values()) != is_run, text


@pytest.mark.parametrize(("operator", "opset"), [("HardSwish", 14), ("HardSwish", 22), ("Swish", 24), ("Mish", 22)])
def test_a_tile_behind_a_function_is_folded_as_by_onnxruntime(operator: str, opset: int, tmp_path: Path) -> None:
    require_folded_alike(f"c = [1.0, 2.0]; f = {operator}(c); r = [2]; u = Tile(f, r)", tmp_path, opset)


QUANTISED: Final = "c = [1.0, 2.0]; s = 0.5; i = 1; z = Cast<to=2>(i)"
STEPS: Final = {
    # operators of a vector v of floats, or of quantised elements, and what they give
    "float": {
        "QuantizeLinear(v, s, z)": "quantised",
        **dict.fromkeys(("Relu(v)", "Neg(v)", "Abs(v)", "Add(v, c)", "Reshape(v, same)", "Transpose(v)"), "float"),
    },
    "quantised": {
        "DequantizeLinear(v, s, z)": "float",
        **dict.fromkeys(("Reshape(v, same)", "Transpose(v)"), "quantised"),
    },
}


def quantised_chain(rng: random.Random) -> str:
    """Return a chain from c to t of up to six steps, more than half of which quantise or dequantise."""
    lines, kind = [f"{QUANTISED}; same = [-1]; v0 = Identity(c)"], "float"
    for number in range(rng.randrange(1, 7)):
        first, *others = STEPS[kind]
        step = first if rng.random() < 0.6 else rng.choice(others)
        lines.append(f"v{number + 1} = {step.replace('(v', f'(v{number}')}")
        kind = STEPS[kind][step]
    return "; ".join([*lines, f"t = Identity(v{number + 1})"])


@pytest.mark.parametrize("seed", range(5))
def test_a_tile_behind_quantised_constants_is_folded_where_onnxruntime_folds_it(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        require_folded_alike(f"{quantised_chain(rng)}; r = [2]; u = Tile(t, r)", tmp_path)


# Literals, shapes, and what a caller fixes


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
        ({"value": TensorProto(dims=[-2], data_type=INT64)}, None, ""),
        ({"value": TensorProto(dims=[2], data_type=99, raw_data=b"123")}, None, ""),
        ({"value": tensor("", range(2000))}, None, "repeats: has 2000 values"),
    ],
)
def test_a_constant_s_repeats_are_known_unless_it_is_malformed(
    attribute: dict[str, Any], known: tuple[int, ...] | None, error: str
) -> None:
    found = tile_in(model(node("Constant", [], ["r"], **attribute), tile_node()))
    assert found.repeats == known
    assert found.error.startswith(error) if error else not found.error


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"raw_data": b"123"},
        {"raw_data": bytes(8)},
        {"raw_data": bytes(24)},
        {"raw_data": bytes(2**17)},
        {"int32_data": [2, 5]},
        {"int64_data": [2, 5, 7]},
    ],
    ids=["none", "no whole element", "too short", "too long", "far too long", "of another type", "one too many"],
)
def test_data_that_are_not_of_their_tensors_shape_and_type_are_a_problem_of_the_model(fields: dict[str, Any]) -> None:
    wrong = TensorProto(name="r", dims=[2], data_type=INT64, **fields)
    message = "the data of 'r' are no 2 elements of INT64, which its shape [2] and type say"
    for made in (
        model(tile_node(), initializer=[wrong]),
        model(tile_node(), node("Neg", ["r"], ["z"]), initializer=[wrong]),
    ):
        assert unreadable("", message) in nodes_of(made)


@pytest.mark.parametrize(("ir_version", "known"), [(3, (4, 1)), (4, None), (10, None)])
def test_an_input_s_initialiser_is_a_default_since_ir_version_4(ir_version: int, known: tuple[int, ...] | None) -> None:
    inputs = [X, typed("r", [2], INT64)]
    found = read(initializer=[tensor("r", [4, 1])], inputs=inputs, ir_version=ir_version)
    assert (found.repeats, found.error) == (known, "")


def test_an_initialiser_s_shape_is_known() -> None:
    dense = tensor("w", np.ones((200, 300)), "float32")
    sparse = helper.make_sparse_tensor(tensor("w", [1.5], "float32"), tensor("", [3]), [5, 4])
    for fields, shape in ({"initializer": [dense]}, (200, 300)), ({"sparse_initializer": [sparse]}, (5, 4)):
        found = tile_in(model("r = [2, 1]; y = Tile(w, r)", **fields))
        assert (found.data_type, found.shape, found.repeats) == ("float32", shape, (2, 1))


@pytest.mark.parametrize(
    ("outer", "declared", "inner"),
    [("", "<int64[2] r = {4, 4}>", ""), ("", "", "r = [4, 4];"), ("r = [4, 4]", "<int64[2] r>", "")],
    ids=["an initialiser", "a constant", "an outer value that it declares"],
)
def test_a_subgraph_knows_its_own_and_outer_repeats(outer: str, declared: str, inner: str) -> None:
    then_branch = f"then_branch = then () => (float[] t) {declared} {{ {inner} t = Tile(x, r) }}"
    branches = f"{then_branch}, else_branch = other () => (float[] x) {{}}"
    found = tile_in(model(outer, f"y = If(c)<{branches}>", inputs=[X, typed("c", [], BOOL)]))
    assert found.repeats == (4, 4)


# Shapes


@pytest.mark.parametrize(
    ("shape", "text", "declared", "known"),
    [
        # onnx's data propagation does not divide
        ([8, 6], "s = Shape(x); two = [2]; h = Div(s, two); w = Expand(e, h)", None, (4, 3)),
        (["N", 3], "s = Shape(x); w = Expand(e, s)", None, ("N", 3)),
        (["N", 6], "s = Shape(x); two = [2]; h = Div(s, two); w = Expand(e, h)", None, (None, 3)),
        (["N", 6], "s = Shape(x); two = [2]; h = Div(s, two); w = ConstantOfShape(h)", None, (None, 3)),
        (["N", 6], "s = Shape(x); two = [2]; h = Div(s, two); w = Reshape(x, h)", None, (None, 3)),
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
def test_shapes_are_inferred_else_declared(shape: Any, text: str, declared: Any, known: Any) -> None:
    inputs = [typed("x", shape), typed("e", []), typed("r", [2], INT64)]
    values = [typed("w", declared)] if declared else []
    made = model(f"{text}; y = Tile(w, r)", inputs=inputs, domains={"com.stranger": 1}, value_info=values)
    found = tile_in(made)
    assert (found.shape, found.repeats) == (known, None)


# What a caller fixes

TILE: Final = (constant("r", [1, 2]), tile_node())


def test_a_named_dimension_is_fixed_everywhere() -> None:
    text = "w = com.stranger.Own(x); r = [1, 2]; a = Tile(w, r); y = Tile(x, r)"
    made = model(text, inputs=[DYNAMIC], domains={"com.stranger": 1}, value_info=[typed("w", ["N", 5])])
    for name, size in ("N", 4), ("M", "N"):
        assert [tile.shape for tile in nodes_of(made, KnownShapes({name: 4}))] == [(size, 5), (size, 3)]


def test_a_named_dimension_is_fixed_in_subgraphs() -> None:
    body = "body = body (float[k] s) => (float[] t) { t = Tile(s, r) }"
    made = model(f"r = [2]; y = own.Own(x)<{body}>", domains={"own": 1})
    assert tile_in(made, KnownShapes({"k": 7})).shape == (7,)


@pytest.mark.parametrize(
    ("declared", "fixed", "known"),
    [
        *((declared, {"x": (4, 3)}, (4, 3)) for declared in (["N", 3], [None, 3], [-1, 3], [4, 3], None)),
        (["N", 3], {"w": (9,)}, (9, 3)),  # the names that it replaces
        (None, {"x": ()}, ()),
    ],
)
def test_an_input_s_shape_is_fixed(declared: Any, fixed: Any, known: tuple[int, ...]) -> None:
    inputs = [typed("x", declared), typed("w", ["N"]), typed("r", None, INT64)]
    assert tile_in(model("y = Tile(x, r)", inputs=inputs), KnownShapes(input_shapes=fixed)).shape == known


FIXABLE: Final = model(*TILE, inputs=[typed("x", ["N", 3]), typed("w", ["N"])])
SEQUENCE: Final = model(*TILE, inputs=[helper.make_tensor_sequence_value_info("x", 1, [2])])


@pytest.mark.parametrize(
    ("made", "dims", "shapes", "message"),
    [
        (FIXABLE, {}, {"x": (4, 3, 1)}, "x: has 2 dimensions, (N, 3); (4, 3, 1) was given"),
        (FIXABLE, {}, {"x": (4, 5)}, "x: dimension 1 is 3; 5 was given"),
        (FIXABLE, {"N": 2}, {"x": (4, 3)}, "x: dimension 0, N, is 2; 4 was given"),
        (FIXABLE, {}, {"x": (4, 3), "w": (5,)}, "w: dimension 0, N, is 4; 5 was given"),
        (FIXABLE, {"N": -1}, {}, f"N: -1 was given; sizes are from 0 to {2**63 - 1}"),
        (FIXABLE, {}, {"x": (2**63, 3)}, f"x: {2**63} was given; sizes are from 0 to {2**63 - 1}"),
        (SEQUENCE, {}, {"x": (2, 3)}, "x: is no tensor; it has no shape to be fixed"),
    ],
)
def test_what_contradicts_the_model_is_refused(made: ModelProto, dims: Any, shapes: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        nodes_of(made, KnownShapes(dims, shapes))
    assert str(caught.value) == message


def test_each_unknown_repeat_and_size_is_blamed_on_what_computes_it() -> None:
    text = "s = Shape(x); z = [0]; b = Gather(s, z); q = Gather(v, z); two = [2]; r = Concat<axis=0>(two, b, q)"
    inputs = [typed("x", ["batch", 3]), typed("v", [3], INT64), typed("w", [1, 1, 1])]
    of_repeats = tile_in(model(text, tile_node("w"), inputs=inputs))
    assert of_repeats.repeats == (2, None, None)
    assert tuple(map(str, of_repeats.unknown)) == (
        "Repeats[1]: computed by Shape 'Shape->s' from the dimension 'batch'",
        "Repeats[2]: computed by Gather 'Gather->q' from the elements of the input 'v'",
    )
    of_sizes = tile_in(model(f"{text}; e = Expand(w, r); o = [1, 1, 1]", tile_node("e", "o"), inputs=inputs))
    assert tuple(map(str, of_sizes.unknown)) == (
        "InputTensor.Sizes[1] (batch)",
        "InputTensor.Sizes[2]: computed by Gather 'Gather->q' from the elements of the input 'v'",
    )


def test_what_is_known_without_single_elements_stays_known_where_no_value_for_the_others_fits() -> None:
    """15 elements fit no rows of 2."""
    reshaped = function("F (x, a) => (z) { m = [-1]; c = Concat<axis=0>(a, m); z = Reshape(x, c) }")
    inputs = [typed("x", [3, 5]), typed("a", [1], INT64)]
    text = "z = own.F(x, a); r = [2, 1]; y = Tile(z, r)"
    made = model(text, inputs=inputs, opset=18, functions=[reshaped], domains={"own": 1})
    assert str(tile_in(made)) == "FLOAT32 {?,?} x {2,1} -> {?,?}"


def test_the_sizes_of_a_tiled_table_of_positions_are_known_and_blamed_one_by_one() -> None:
    tables = [
        f"s{i} = Shape(x); a{i} = {i}; n{i} = Gather(s{i}, a{i}); [range{i}] p{i} = Range(zero, n{i}, one);"
        f"g{i} = Gather(w{i}, p{i}); z{i} = [0]; u{i} = Unsqueeze(n{i}, z{i})"
        for i in (2, 3)
    ]
    text = "; ".join(
        [
            "zero = 0; one = 1; first = [1]; second = [1]",
            *tables,
            "b = Unsqueeze(g3, z2); c = Unsqueeze(g2, first); r = Concat<axis=0>(u2, first, first)",
            "q = Concat<axis=0>(first, u3, first); d = Tile(b, r); e = Tile(c, q); f = Concat<axis=-1>(d, e)",
            "h = Transpose<perm=[2, 0, 1]>(f); o = [1, 1, 1]; y = Tile(h, o)",
        ]
    )
    weights = [tensor(f"w{i}", np.zeros((50, 4)), "float32") for i in (2, 3)]
    *_, found = nodes_of(model(text, inputs=[typed("x", [2, 3, "h", None])], initializer=weights))
    assert str(found) == "FLOAT32 {8,?,?} x {1,1,1} -> {8,?,?}"
    assert tuple(map(str, found.unknown)) == (
        "InputTensor.Sizes[1]: computed by Shape 'Shape->s2' from the dimension 'h'",
        "InputTensor.Sizes[2]: computed by Range 'range3' from the input 'x'",
    )


DEQUANTISED: Final = f"{QUANTISED}; k = QuantizeLinear(c, s, z); d = DequantizeLinear(k, s, z)"


@pytest.mark.parametrize(
    ("text", "malformed"),
    [
        (DEQUANTISED, ("QuantizeLinear", ["d", "s", "z"], [])),
        (DEQUANTISED, ("QuantizeLinear", [], ["q"])),
        ("s = Shape(x); i = [1.0, 0.0]", ("Gather", ["s", "i"], ["g"])),  # indices that are no integers
        ("s = Shape(x); one = [1, 1]", ("Add", ["s", "one"], [])),
    ],
)
def test_a_malformed_node_costs_nothing_else(text: str, malformed: tuple[str, list[str], list[str]]) -> None:
    assert read(text, node(*malformed), "r = [1, 2]", inputs=[DYNAMIC], opset=13).repeats == (1, 2)


def test_no_sizes_that_no_memory_holds_are_made_beside_a_zero() -> None:
    text = "a = com.own.Many(x); c = Neg(a); r = [1, 1]"
    made = model(text, tile_node("c"), value_info=[typed("a", [0, 2**62], INT64)], domains={"com.own": 1})
    assert tile_in(made).shape == (0, 2**62)
