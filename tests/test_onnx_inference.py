"""onnx's inference of sizes is believed where it is right, and the node named whose sizes are not believed."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from dml_tile.readers.model_names import KnownShapes
from dml_tile.readers.model_tile import TileNode
from dml_tile.readers.onnx.inference import DISTRUSTED, EQUATION, GATHERED
from tests.helpers.described_nodes import node_tests
from tests.helpers.onnx_graphs import model, nodes_of, tensor, tile_in, tile_node, typed

HEADS: Final = [typed("q", ["B", "H", "L", 8]), *(typed(name, ["B", "H", "S", 8]) for name in ("k", "v"))]
PAST: Final = [typed(name, ["B", "H", "P", 8]) for name in ("past_k", "past_v")]
PACKED: Final = [typed("q", [2, 4, 24]), *(typed(name, [2, 6, "hidden"]) for name in ("k", "v"))]


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize(
    ("inputs", "output", "shape"),
    [
        (HEADS, "a", ("B", "H", "L", 8)),
        *((HEADS + PAST, output, None) for output in ("present_k", "present_v", "scores")),
        (PACKED, "a", None),
        ([typed("q", [2, 3, 4, 8]), *(typed(name, [2, 3, 6, 8]) for name in "kv")], "scores", (2, 3, 4, 6)),
    ],
)
def test_sizes_behind_an_attention_are_unknown_unless_all_its_inputs_are_static(
    opset: int, inputs: Any, output: str, shape: Any
) -> None:
    heads = "<q_num_heads=3, kv_num_heads=3>" if inputs is PACKED else ""
    past = ", , past_k, past_v" if len(inputs) > 3 else ""
    text = f"[A] a, present_k, present_v, scores = Attention{heads}(q, k, v{past})"
    ones = [1] * (3 if inputs is PACKED else 4)
    found = tile_in(model(text, f"r = {ones}", tile_node(output), inputs=inputs, opset=opset))
    assert found.shape == (shape or (None,) * len(ones))
    if shape is None:
        assert set(map(str, found.input_origins)) == {"computed by Attention 'A'"}


def test_equations_whose_blanks_are_other_than_spaces_are_not_handed_to_onnx() -> None:
    read = {char for char in map(chr, range(0x3001)) if EQUATION.fullmatch(char)}
    assert read == {*string.ascii_letters, " ", ","}


def test_negative_sizes_are_not_handed_to_onnx_with_a_gather() -> None:
    assert (-1 in GATHERED, 0 in GATHERED, 2**31 - 1 in GATHERED, 2**63 - 1 in GATHERED) == (False, True, True, False)


@pytest.mark.parametrize(
    ("text", "shape"), [("y = EyeLike<dtype=1>(x)", ("N", 3)), ("i = [[0], [1]]; y = GatherND(x, i)", (2, 3))]
)
def test_sizes_behind_operators_at_which_onnx_may_end_are_inferred_one_by_one(text: str, shape: Any) -> None:
    text = f"x = Relu(w); {text}; z = Neg(y); r = [1, 1]"
    assert tile_in(model(text, tile_node("z"), inputs=[typed("w", ["N", 3])])).shape == shape


@pytest.mark.parametrize(
    ("element", "shape"),
    [
        *((name, ("N", 300)) for name in ("INT32", "UINT32", "UINT64", "DOUBLE")),
        *((name, (None, 300)) for name in ("FLOAT", "INT16", "UINT16")),
        *((name, (None, 44)) for name in ("INT8", "UINT8")),
        ("BOOL", (None, 1)),
    ],
)
def test_a_size_keeps_its_name_through_types_that_hold_it(element: str, shape: Any) -> None:
    cast = f"c = Cast<to={getattr(TensorProto, element)}>(s); d = Cast<to=7>(c)"
    made = model(f"s = Shape(x); {cast}; e = Expand(x, d); r = [1, 1]; y = Tile(e, r)", inputs=[typed("x", ["N", 300])])
    made.graph.node[3].input[0] = "one"
    made.graph.input.append(typed("one", [1, 1]))
    assert tile_in(made).shape == shape


def test_each_distrusted_operator_is_one_of_onnx_with_a_reason() -> None:
    for name, reason in DISTRUSTED.items():
        domain, _, operator = name.rpartition(".")
        assert onnx.defs.has(operator, domain)
        assert reason


def tiled_cases(rng: random.Random, quarter: int) -> Iterator[tuple[str, ModelProto, dict[str, int], dict[str, Any]]]:
    """Yield a quarter of onnx's own cases with a Tile behind each output, and half of the inputs' sizes named.

    With each come those sizes, and the outputs by their names. Some small inputs are constants.
    """
    for case, (given, runs, *_) in [*node_tests().items()][quarter::4]:
        if not runs:
            continue
        made, sizes, kept = deepcopy(given), dict[str, int](), dict[str, Any]()
        graph = made.graph
        for value, array in zip(given.graph.input, runs[0][0], strict=False):
            if not isinstance(array, np.ndarray | np.generic):
                continue
            own = next(each for each in graph.input if each.name == value.name)
            if np.size(array) <= 16 and rng.random() < 0.3:
                graph.input.remove(own)
                graph.initializer.append(numpy_helper.from_array(np.asarray(array), value.name))
                continue
            for i, (dim, size) in enumerate(zip(own.type.tensor_type.shape.dim, np.shape(array), strict=False)):
                if rng.random() < 0.5:
                    dim.dim_param = f"{value.name}_{i}"
                    sizes[dim.dim_param] = size
        del graph.output[:]
        for value, array in zip(given.graph.output, runs[0][1], strict=False):
            if isinstance(array, np.ndarray | np.generic):
                ones, tiled = f"{value.name}_ones", f"{value.name}_tiled"
                graph.initializer.append(tensor(ones, [1] * np.ndim(array)))
                graph.node.append(tile_node(value.name, ones, tiled, name=tiled))
                graph.output.append(onnx.ValueInfoProto(name=tiled))
                kept[tiled] = array
        yield case, made, sizes, kept


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("quarter", range(4))
def test_each_size_behind_an_operator_is_what_onnx_s_own_cases_compute(quarter: int) -> None:
    wrong, checked = [], 0
    for case, made, sizes, outputs in tiled_cases(random.Random(quarter), quarter):
        for known_shapes in (KnownShapes(), KnownShapes(sizes)):
            for found in nodes_of(made, known_shapes):
                if not isinstance(found, TileNode) or found.shape is None or found.pointer not in outputs:
                    continue
                real = np.shape(outputs[found.pointer])
                known = [sizes.get(size) if isinstance(size, str) else size for size in found.shape]
                pairs = zip(known, real, strict=False)
                if len(known) != len(real) or any(one not in (None, other) for one, other in pairs):
                    wrong.append(f"{case}#{found.pointer}: {found.shape} is {real}")
                checked += 1
    assert wrong == []
    assert checked > 750
