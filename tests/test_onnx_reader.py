"""Tiles of ONNX models, by opset and place, and files as strangers give them: broken, large, with data outside."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, save
from onnx.parser import parse_graph

from dml_tile.back_ends.dialects import Request
from dml_tile.errors import InputError
from dml_tile.findings import Finding, unreadable
from dml_tile.readers.model_names import KnownShapes
from dml_tile.readers.model_tile import DIALECTS, TileNode
from dml_tile.readers.onnx import functions
from dml_tile.readers.onnx.file import KEPT, LARGE, MAX_MODEL_BYTES, Tensors, load
from dml_tile.readers.onnx.nodes import APART
from dml_tile.readers.onnx.scan import GraphScan
from dml_tile.readers.onnx.sizes import names_in
from dml_tile.readers.onnx.tiles import read_nodes
from tests.helpers.costs import at_most, cost_of
from tests.helpers.onnx_graphs import (
    BOOL,
    FLOAT,
    INT64,
    constant,
    function,
    if_text,
    model,
    node,
    nodes_of,
    places,
    tensor,
    tile_in,
    tile_node,
    typed,
)

MODELS: Final = Path(__file__).parent / "data" / "models"

R: Final = constant("r", [2, 2])
X: Final = typed("x", [2, 3])
COND: Final = typed("c", [], BOOL)


def tile(
    pointer: str,
    shape: tuple[int, ...],
    repeats: tuple[int, ...] | None,
    names: str = "x r -> y",
    *,
    dialect: str = "ONNX Tile-13",
    **fields: Any,
) -> TileNode:
    """Return a Tile of float32, or of another ``data_type``, with the ``names`` of its node's inputs and output."""
    inputs, output = names.split(" -> ")
    given = {"data_type": "float32", "inputs": tuple(inputs.split()), "output": output} | fields
    return TileNode(pointer, DIALECTS[dialect], shape=shape, repeats=repeats, **given)


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
    [(6, "ONNX Tile-6"), (12, "ONNX Tile-6"), *((opset, "ONNX Tile-13") for opset in (13, 21, 99, 2**40))],
)
def test_the_opset_decides_the_dialect(opset: int, dialect: str) -> None:
    found = tile_in(model(R, tile_node(name="Tile_1"), opset=opset))
    assert found == tile("Tile_1", (2, 3), (2, 2), dialect=dialect)
    assert found.request == Request(DIALECTS[dialect], "float32", (2, 3), (2, 2))


@pytest.mark.parametrize("opset", [1, 5])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_tile_1_takes_tiles_and_axis_of_either_type(opset: int, dtype: str) -> None:
    made = model(constant("t", 4, dtype), constant("a", 1, dtype), "y = Tile(x, t, a)", opset=opset)
    assert tile_in(made) == tile("Tile->y", (2, 3), (1, 4), "x t a -> y", dialect="ONNX Tile-1")
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
    assert problem.path == "Tile->y"
    opset = "no opset" if version is None else f"opset {version}, which has no Tile,"
    assert problem.message == f"is a Tile; the model imports {opset} of onnx's operators"


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
    branch = if_text(f"[{'b' * 300}] t = Tile(x, r)", name="a" * 300)
    (found,) = places(model(R, branch, inputs=[X, COND]))
    assert len(found) == 200
    assert (found.strip("ab")[:16], found[0], found[-1]) == ("…(401 characters", "a", "b")
    one, other = (f"{'a' * 300}{middle}{'b' * 300}" for middle in "cd")
    assert len({*places(model(R, tile_node(name=one), tile_node(output="z", name=other)))}) == 2
    shape = tile_in(model(R, tile_node(), inputs=[typed("x", ["n" * 10_000, 2])])).shape
    assert shape is not None
    assert len(str(shape[0])) == 200


def test_an_if_s_branches_see_the_outer_values() -> None:
    made = model(R, if_text("[Tile_1] t = Tile(x, r)"), tile_node("w"), inputs=[X, COND])
    inside, behind = nodes_of(made)
    assert inside == tile("If_3/then_branch/Tile_1", (2, 3), (2, 2), "x r -> t")
    assert behind.shape == (None, None)  # the branches give different shapes


def test_an_if_s_outputs_and_branches_may_differ_in_number() -> None:
    for outputs, tiles in product(["w", "w, v", "w, v, u"], ["e", "ef", "efg"]):
        text = " ".join(f"{name} = Tile(x, r)" for name in tiles)
        other = f"else_branch = other () => ({', '.join(tiles)}) {{ {text} }}"
        unequal = f"{outputs} = If(c)<then_branch = then () => (float[] t) {{ t = Tile(x, r) }}, {other}>"
        found = nodes_of(model(R, unequal, tile_node("w"), inputs=[X, COND]))
        assert len(found) == 1 + len(tiles) + 1
        assert found[-1] == tile("Tile->y", (4, 6), (2, 2), "w r -> y")


def test_a_scan_s_body_has_slices() -> None:
    body = "body = body (float[] s) => (float[] t) { r1 = [5]; t = Tile(s, r1) }"
    inside, _ = nodes_of(model(f"[S] w = Scan(x)<{body}, num_scan_inputs=1>; y = Tile(w, r)"))
    assert inside == tile("S/body/Tile->t", (3,), (5,), "s r1 -> t")


def test_a_loop_s_body_sees_the_outer_values_and_what_it_declares() -> None:
    declared = "(int64 i, bool b, float[k, 3] s) => (bool bo, float[] s, float[] t, float[] u)"
    body = f"body = body {declared} {{ bo = Identity(b) t = Tile(s, r) u = Tile(x, r) }}"
    assert nodes_of(model(R, f"[L] p, q, w = Loop(, c, x)<{body}>", inputs=[X, COND])) == [
        tile("L/body/Tile->t", (2, 3), (2, 2), "s r -> t"),  # what the Loop is given: the body keeps it
        tile("L/body/Tile->u", (2, 3), (2, 2), "x r -> u"),
    ]


def test_any_attribute_with_graphs_is_looked_into() -> None:
    inner = parse_graph("inner () => (float[] t) { t = Tile(x, r) }")
    outer = node("Fork", ["x"], ["y"], domain="com.stranger", bodies=[inner, inner])
    made = model(R, outer, domains={"com.stranger": 1})
    assert places(made) == ["Fork->y/bodies[0]/Tile->t", "Fork->y/bodies[1]/Tile->t"]


# Bounds


def test_a_tile_deep_in_subgraphs_is_found() -> None:
    inner = "[T] t = Tile(x, r)"
    for _ in range(20):
        inner = if_text(inner, name="I", output="t")
    found = tile_in(model(R, inner, inputs=[X, COND]))
    assert found.pointer.startswith("I/then_branch/" * 5)
    assert found.pointer.endswith("/I/then_branch" * 5 + "/T")
    assert (found.shape, found.repeats) == ((2, 3), (2, 2))


# Model-local functions: each call has its own tiles

TWICE: Final = function("Twice (a) => (b) { two = [2, 2]; [Tile_1] b = Tile(a, two) }")


def test_a_function_s_tile_is_placed_in_each_call_with_the_caller_s_shapes() -> None:
    made = model("[A] m = own.Twice(x); y = own.Twice(m)", functions=[TWICE])
    assert nodes_of(made) == [
        tile("A/Tile_1", (2, 3), (2, 2), "x #1/two -> m"),
        tile("Twice->y/Tile_1", (4, 6), (2, 2), "m #2/two -> y"),
    ]


@pytest.mark.parametrize("domain", ["ai.onnx@13", APART])
def test_no_domain_of_a_file_makes_a_node_onnx_s_own(domain: str) -> None:
    made = model(R, node("Tile", ["x", "r"], ["y"], domain=domain, doc_string="0"))
    assert nodes_of(made) == []


def test_functions_call_functions_in_their_subgraphs_and_one_that_is_not_called_is_none() -> None:
    outer = function("Outer (a) => (b) { [inner] b = own.Twice(a) }")
    in_if = if_text("[F] t = own.Outer(x)")
    maybe = function(f"Maybe (x, c) => (w) {{ {in_if} }}")
    functions_ = [TWICE, outer, maybe, function("Uncalled (a) => (b) { r = [2, 2]; b = Tile(a, r) }")]
    for called, way, names in (("[M] y = own.Maybe(x, c)", "M/", "x #3/two -> #1/t"), (in_if, "", "x #2/two -> t")):
        made = model(called, inputs=[X, COND], functions=functions_)
        assert nodes_of(made) == [tile(f"{way}If_3/then_branch/F/inner/Tile_1", (2, 3), (2, 2), names)]


@pytest.mark.parametrize(
    ("given", "attribute", "repeats"),
    [("<counts=[3, 1]>", "counts: ints=[1, 5]", (3, 1)), ("", "counts: ints=[1, 5]", (1, 5)), ("", "counts", None)],
    ids=["the call's", "the default", "nobody's"],
)
def test_an_attribute_is_the_call_s_or_the_default(given: str, attribute: str, repeats: tuple[int, ...] | None) -> None:
    body = function(f"Some <{attribute}> (a) => (b) {{ r = Constant<value_ints: ints=@counts>() b = Tile(a, r) }}")
    assert tile_in(model(f"y = own.Some{given}(x)", functions=[body])).repeats == repeats


def test_an_input_that_a_function_passes_on_is_the_caller_s() -> None:
    body = function("Pass (a, left_out) => (a) { r = [2, 2] }")
    assert tile_in(model(R, "m = own.Pass(x); y = Tile(m, r)", functions=[body])).shape == (2, 3)


@pytest.mark.parametrize(
    ("opset", "dialect", "own_opset", "own_dialect"),
    [(13, "ONNX Tile-13", 12, "ONNX Tile-6"), (6, "ONNX Tile-6", 21, "ONNX Tile-13")],
)
def test_a_function_has_its_own_values_and_opset(opset: int, dialect: str, own_opset: int, own_dialect: str) -> None:
    body = function("Own (a) => (b) { r = [7, 7]; b = Tile(a, r) }", opset=own_opset)
    made = model(R, "[A] m = own.Own(x); y = Tile(m, r)", opset=opset, functions=[body], domains={"own": 1})
    assert nodes_of(made) == [
        tile("A/Tile->b", (2, 3), (7, 7), "x #1/r -> m", dialect=own_dialect),
        tile("Tile->y", (14, 21), (2, 2), "m r -> y", dialect=dialect),
    ]


def test_a_function_s_other_operators_are_of_its_opset_too() -> None:
    # the axes are an input since opset 13
    body = function("Old (a) => (b) { r = [2, 2]; s = Squeeze<axes=[0]>(a); b = Tile(s, r) }", opset=11)
    assert tile_in(model("y = own.Old(x)", inputs=[typed("x", [1, 2, 3])], functions=[body])).shape == (2, 3)


def nested_ifs(count: int, *last: FunctionProto) -> ModelProto:
    """A model of as many functions, each of which calls the next one in an If."""
    bodies = [function(f"F{i} (x, c) => (w) {{ {if_text(f't = own.F{i + 1}(x, c)')} }}") for i in range(count)]
    return model("y = own.F0(x, c)", inputs=[X, COND], functions=[*bodies, *last])


RECURSIVE: Final = function("Loop (a) => (b) { b = own.Loop(a) }")


@pytest.mark.parametrize("made", [model("y = own.Loop(x)", functions=[RECURSIVE]), nested_ifs(40)])
def test_functions_that_nest_too_deep_are_refused(made: ModelProto) -> None:
    with pytest.raises(InputError, match="nested more than 64 deep"):
        nodes_of(made)


def test_functions_that_come_to_too_many_nodes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MAX_NODES", 1000)
    bodies = [function(f"F{i} (a) => (b) {{ m = own.F{i + 1}(a) b = own.F{i + 1}(m) }}") for i in range(40)]
    with pytest.raises(InputError, match="more than 1000 nodes"):
        nodes_of(model("y = own.F0(x)", functions=[*bodies, function("F40 (a) => (b) {}")]))


FEW: Final = ", ".join(f"a{i}" for i in range(300))


@pytest.mark.parametrize(
    ("bound", "call", "body"),
    [
        ("1000 nodes", "<k=[3]>(x)", f"(a0) => ({', '.join(['a0'] * 300)}) {{ }}"),
        ("9999 bytes", "<k=[3]>(x)", f"({FEW}) => (b) {{ b = Neg(a0) }}"),
        ("9999 bytes", "<k=[3]>(x)", f"(a) => (b) {{ b = Constant<value_ints={[3] * 2000}>() }}"),
        ("9999 bytes", f"<k={[3] * 999}>(x)", f"<k>(a) => (b) {{ {'b = Constant<value_ints: ints = @k>() ' * 3} }}"),
    ],
    ids=["outputs passed on", "inputs", "constants", "attributes"],
)
def test_calls_of_a_function_come_to_few_nodes_and_bytes(
    monkeypatch: pytest.MonkeyPatch, bound: str, call: str, body: str
) -> None:
    monkeypatch.setattr(functions, "MAX_NODES", 1000)
    monkeypatch.setattr(functions, "MAX_BYTES", 9999)
    outputs = ", ".join(f"y{{0}}_{i}" for i in range(300 if "nodes" in bound else 1))
    calls = [f"{outputs.format(i)} = own.F{call}" for i in range(10)]
    nodes_of(model(calls[0], functions=[function(f"F {body}")]))
    with pytest.raises(InputError, match=f"more than {bound}"):
        nodes_of(model(*calls, functions=[function(f"F {body}")]))


def test_subgraphs_that_functions_nest_deeper_than_onnx_s_inference_takes_are_read() -> None:
    found = tile_in(nested_ifs(31, function("F31 (x, c) => (w) { r = [2, 2]; w = Tile(x, r) }")))
    assert (found.shape, found.repeats) == ((2, 3), (2, 2))


# Files

WHOLE: Final[bytes] = model(
    constant("r", [2, 2]), tile_node(), initializer=[tensor("w", range(100))]
).SerializeToString()


def varint(value: int) -> bytes:
    return bytes([*(value >> shift & 0x7F | 0x80 for shift in range(0, 28, 7)), value >> 28])


def sized(path: Path, content: bytes, size: int) -> None:
    """Write a file, and zeros up to a size, which take no room on the disk."""
    path.write_bytes(content)
    os.truncate(path, size)


def without(field: str) -> bytes:
    made = ModelProto.FromString(WHOLE)
    made.ClearField(field)
    return bytes(made.SerializeToString())


def nested(layer: bytes, depth: int) -> bytes:
    """Return the model with messages nested deeper than protobuf reads."""
    for _ in range(depth):
        for field in (b"\x32", b"\x2a", b"\x0a"):  # AttributeProto.g, NodeProto.attribute, GraphProto.node
            layer = field + varint(len(layer)) + layer
    return WHOLE + b"\x3a" + varint(len(layer)) + layer


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        *((content, "")
          for content in (b"", b"\0", b"a text, and no model\n", b"{}", b"\x08", b"\x0b\x0c", b"\xff" * 100)),
        *((WHOLE[:size], "") for size in (1, 10, len(WHOLE) // 2, len(WHOLE) - 1)),
        *((random.Random(seed).randbytes(10 ** (seed + 1)), "") for seed in (0, 4)),
        *((b"\x3a" + varint(LARGE + 1) + byte * (LARGE + 1), "") for byte in (b"\xff", b"\x0b", b"\x09")),
        (b"\x3a" + varint(2**31), ""),
        (nested(bytes(LARGE), 1000), ""),
        (nested(b"", 60), ""),
        (without("ir_version"), "no ir_version"),
        (without("graph"), "no graph"),
        (without("opset_import"), "imports no operator set"),
    ],
    ids=lambda value: f"{len(value)} bytes" if isinstance(value, bytes) else None,
)  # fmt: skip
def test_what_is_no_model_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=f"^is not an ONNX model: .*{reason}"):
        nodes_of(content)


@pytest.mark.posix
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Path.mkdir, "is not a regular file"),
        (lambda path: os.mkfifo(path), "is not a regular file"),
        (Path.exists, "cannot be read: No such file"),
        # would take minutes to go through
        (partial(sized, content=b"", size=2**30), "truncated, or another format"),
        (
            partial(sized, content=WHOLE, size=MAX_MODEL_BYTES + 1),
            f"has {MAX_MODEL_BYTES + 1} bytes; protobuf reads at most {MAX_MODEL_BYTES}",
        ),
    ],
    ids=["folder", "pipe", "nothing", "zeros", "too large"],
)
def test_what_is_no_file_of_a_model_is_refused(make: Callable[[Path], object], reason: str, tmp_path: Path) -> None:
    make(tmp_path / "model.onnx")
    with pytest.raises(InputError, match=reason):
        list(read_nodes(tmp_path / "model.onnx", KnownShapes()))


@pytest.mark.parametrize("name", [b"Tile_1", b"repeats", b"x"])
def test_names_that_are_not_utf_8_are_refused(name: bytes) -> None:
    made = model(constant("repeats", [2, 2]), tile_node(repeats="repeats", name="Tile_1")).SerializeToString()
    assert name in made
    with pytest.raises(InputError, match="has a text that is not UTF-8"):
        nodes_of(made.replace(name, b"\xff" * len(name)))


def test_a_damaged_model_gives_tiles_or_problems() -> None:
    for seed in range(100):
        chance = random.Random(seed)
        damaged = bytearray(WHOLE)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        with suppress(InputError):
            assert all(isinstance(each, TileNode | Finding) for each in nodes_of(bytes(damaged))), seed


def test_weights_take_no_memory(tmp_path: Path) -> None:
    path, size = tmp_path / "model.onnx", 2**20 * 500
    weights = TensorProto(name="w", data_type=FLOAT, dims=[2**18, 500]).SerializeToString()
    weights += b"\x4a" + varint(size)  # TensorProto.raw_data
    weights = b"\x2a" + varint(len(weights) + size) + weights  # GraphProto.initializer
    weights = b"\x3a" + varint(len(weights) + size) + weights  # ModelProto.graph
    whole = model("r = [1, 2]; y = Tile(w, r)").SerializeToString() + weights
    sized(path, whole, len(whole) + size)
    with at_most(2**20 * 10):
        (found,) = read_nodes(path, KnownShapes())
    assert found == tile("Tile->y", (2**18, 500), (1, 2), "w r -> y")
    assert load(path).ByteSize() < 1000


@pytest.mark.parametrize("count", [10, KEPT // 8, KEPT // 4, LARGE // 8 - 8, LARGE // 8])
def test_the_data_of_small_tensors_are_kept_of_others_read_when_asked_for_and_of_large_ones_never(
    count: int, tmp_path: Path
) -> None:
    then = helper.make_graph([constant("t", range(count))], "then", [], [typed("t")])
    own = model(
        node("If", ["c"], ["y"], then_branch=then),
        constant("r", range(count)),
        initializer=[tensor("w", range(count))],
        doc_string="d" * 2 * LARGE,
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(own.SerializeToString())
    light = load(path)
    tensors = [light.graph.initializer[0], light.graph.node[1].attribute[0].t]
    tensors.append(light.graph.node[0].attribute[0].g.node[0].attribute[0].t)
    assert (light == own) == (count == 10)
    assert [list(each.dims) for each in tensors] == [[count]] * 3
    assert [bool(each.raw_data) for each in tensors] == [count == 10] * 3
    for each in tensors:
        held = Tensors(path).held(each)
        array = held() if callable(held) else held
        assert callable(held) == (KEPT // 8 < count < LARGE // 8)
        assert (array is None) == (count == LARGE // 8)
        assert array is None or array.tolist() == [*range(count)]
    assert light.graph.doc_string == own.graph.doc_string


def test_weights_of_64_kib_take_no_memory(tmp_path: Path) -> None:
    weights = [tensor(f"w{i}", [[1.0] * 127] * 128, "float32") for i in range(800)]  # 50 MB
    text = "; ".join(f"y{i} = Add({f'y{i - 1}' if i else 'x'}, w{i})" for i in range(800))
    inputs = [typed("x", [128, 127])]
    repeats = tensor("r", [1, 2])
    save(model(text, "y = Tile(y799, r)", inputs=inputs, initializer=[*weights, repeats]), tmp_path / "a.onnx")
    cost = cost_of("check", "a.onnx", "--via", "ort", folder=tmp_path)
    assert b"FLOAT32 {128,127} x {1,2} -> {128,254}" in cost.printed
    assert cost.peak_bytes < 150e6


# External data


def external(tensor_: TensorProto, **entries: str) -> TensorProto:
    outside = TensorProto(name=tensor_.name, dims=tensor_.dims, data_type=tensor_.data_type)
    outside.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        outside.external_data.add(key=key, value=value)
    return outside


def with_external(**entries: str) -> ModelProto:
    return model(tile_node(), initializer=[external(tensor("r", [2, 5]), **entries)])


DATA: Final = bytes(8) + tensor("r", [2, 5]).raw_data + bytes(8)
PART: Final = {"offset": "8", "length": "16"}


@pytest.mark.parametrize("place", ["initialiser", "constant"])
@pytest.mark.parametrize("location", ["w.bin", "below/w.bin", "./w.bin", "link.bin"])
@pytest.mark.parametrize("part", [PART, {"offset": "8"}])
def test_repeats_are_read_beside_the_model(place: str, location: str, part: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "link.bin").symlink_to("real.bin")
    (tmp_path / location).parent.mkdir(exist_ok=True)
    (tmp_path / location).write_bytes(DATA)
    made = with_external(location=location, **part)
    if place == "constant":
        made.graph.node.insert(0, node("Constant", [], ["r"], value=made.graph.initializer.pop()))
    assert tile_in(made, folder=tmp_path).repeats == (2, 5)


def test_external_repeats_are_seen_by_what_computes_with_them(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(DATA)
    outside = external(tensor("s", [2, 5]), location="w.bin", **PART)
    text = "w = Reshape(x, s); r = [1, 2]; y = Tile(w, r)"
    assert tile_in(model(text, inputs=[typed("x", ["N"])], initializer=[outside]), folder=tmp_path).shape == (2, 5)


@pytest.mark.posix
@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        *(({"location": name}, f"{name!r} is no path below the model's folder")
          for name in ("../w.bin", "below/../w.bin", "/etc/passwd")),
        *(({"location": name}, f"{name!r} leads outside the model's folder") for name in ("link.bin", "link/w.bin")),
        *(({"location": name}, f"{name!r} is not a regular file") for name in ("pipe.bin", ".", "")),
        ({}, "'' is not a regular file"),
        ({"location": "missing.bin"}, "'missing.bin' does not exist"),
        ({"location": "loop.bin"}, "'loop.bin'"),
        ({"location": "a\0b"}, "is no usable path"),
        ({"location": "w.bin", "offset": "24"}, "'w.bin' ends before byte 40"),
        ({"location": "w.bin", "offset": str(2**70)}, "'w.bin' cannot be read"),
        *(({"location": "w.bin", "offset": number}, f"offset {number!r}")
          for number in ("-8", "eight", "٨", "８", "+8", " 8", "0_8")),
        *(({"location": "w.bin", "length": number}, f"length {number!r} in 'w.bin'; the tensor has 16 bytes")
          for number in ("8", "１６")),
        ({"location": "w.bin", "length": "9" * 5000}, "in 'w.bin'; the tensor has 16 bytes"),
    ],
)  # fmt: skip
def test_repeats_elsewhere_or_unreadable_are_a_problem(entries: dict[str, str], reason: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (tmp_path / "w.bin", folder / "w.bin"):
        path.write_bytes(DATA)
    (folder / "link.bin").symlink_to("../w.bin")
    (folder / "link").symlink_to("..")
    (folder / "loop.bin").symlink_to("loop.bin")
    os.mkfifo(folder / "pipe.bin")
    found, problem = nodes_of(with_external(**entries), folder=folder)
    assert found == tile("Tile->y", (2, 3), None)
    assert problem.text.startswith("Tile->y: the data of 'r': ")
    assert reason in problem.message


@pytest.mark.parametrize(
    "text",
    ["r = Identity(s); y = Tile(x, r)", "r = [1, 2]; w = Expand(x, s); y = Tile(w, r)"],
    ids=["repeats", "shape"],
)
def test_what_is_computed_from_unread_data_is_a_problem_too(text: str) -> None:
    outside = external(tensor("s", [2, 5]), location="../w.bin")
    found, problem = nodes_of(model(text, inputs=[typed("x", [1, 1])], initializer=[outside]))
    assert None in (found.shape, found.repeats) or None in (found.shape or ())
    assert problem == unreadable("Tile->y", "the data of 's': '../w.bin' is no path below the model's folder")


def test_weights_in_files_that_are_missing_are_no_problem() -> None:
    weights = [
        external(tensor("w", [[1.5] * 3] * 100, "float32"), location="/w.bin"),
        external(TensorProto(name="v", dims=[2**20, 2**20], data_type=INT64), location="../v.bin"),
        external(tensor("u", [0]), location="missing.bin"),
    ]
    text = "a = Add(x, w); g = Gather(a, u); r = [1, 2]; b = Tile(g, r); y = Tile(v, r)"
    found = nodes_of(model(text, inputs=[typed("x", [100, 3])], initializer=weights))
    assert found == [
        tile("Tile->b", (1, 3), (1, 2), "g r -> b"),
        tile("Tile->y", (2**20, 2**20), (1, 2), "v r -> y", data_type="int64"),
    ]


def nested_loops(depth: int) -> ModelProto:
    """Return Loops inside Loops, each of which changes the shape that it carries, with a Tile in the innermost."""
    inner: list[NodeProto] = [tile_node("a0", "r", "b0")]
    for i in range(depth):
        body = helper.make_graph(
            [node("Identity", [f"k{i}"], [f"l{i}"]), *inner, node("Concat", [f"b{i}", f"b{i}"], [f"d{i}"], axis=0)],
            f"body {i}",
            [typed(f"n{i}", [], INT64), typed(f"k{i}", [], BOOL), typed(f"a{i}", [2, 3])],
            [typed(f"l{i}", [], BOOL), typed(f"d{i}")],
        )
        carried = f"a{i + 1}" if i + 1 < depth else "x"
        inner = [node("Loop", ["m", "c", carried], [f"b{i + 1}"], body=body, name=f"loop {i}")]
    inputs = [X, typed("m", [], INT64), COND]
    return model(*inner, node("Identity", [f"b{depth}"], ["y"]), inputs=inputs, initializer=[tensor("r", [1, 2])])


def test_nested_loops_are_scanned_as_often_as_they_are_deep_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    scans: list[str] = []
    scan_graph = GraphScan._graph

    def counted(scan: GraphScan, graph: GraphProto, *given: Any, **options: Any) -> Any:
        scans.append(graph.name)
        return scan_graph(scan, graph, *given, **options)

    monkeypatch.setattr(GraphScan, "_graph", counted)
    found = tile_in(nested_loops(10))
    assert (found.data_type, found.shape) == ("float32", (None, None))
    assert max(Counter(scans).values()) <= 11


def test_a_function_with_the_name_of_an_operator_is_not_used_and_named(tmp_path: Path) -> None:
    hides = helper.make_function(
        "", "Tile", ["a", "b"], ["c"], [node("Neg", ["a"], ["c"])], [helper.make_opsetid("", 13)]
    )
    made = model(R, tile_node(name="tile"), functions=[hides])
    found = tile_in(made)
    assert (found.pointer, found.repeats) == ("tile", (2, 2))
    save(made, tmp_path / "model.onnx")
    reading = read_nodes(tmp_path / "model.onnx", KnownShapes())
    next(reading)
    with pytest.raises(StopIteration) as caught:
        next(reading)
    assert caught.value.value.contradictions == (
        "the function ai.onnx/Tile has an operator's domain; runtimes take the operator instead",
    )


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *(("2*B", 8), ("B + 1", 5), ("B//2", 2), ("(B - 1)*C", 9)),
        *(("B//0", None), ("B**9", None), ("f(B)", None), ("2*D", None)),
    ],
)
def test_a_size_that_is_named_by_an_expression_follows_from_its_names(name: str, size: int | None) -> None:
    made = model(R, tile_node(), inputs=[typed("x", ["B", name])])
    found = tile_in(made, KnownShapes({"B": 4, "C": 3}))
    assert found.shape == (4, size or name)


def test_the_names_in_an_expression_are_names_of_the_model() -> None:
    made = model(R, tile_node(), inputs=[typed("x", ["2*B", 3])])
    assert names_in(made.graph, KnownShapes()).dimensions == {"2*B", "B"}
