"""A model's Tile becomes a request, whether the file gives all of it or a part."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dml_tile.back_ends.dialects import ONNX_TILE_1, ONNX_TILE_6, Dialect, Request
from dml_tile.back_ends.dialects import ONNX_TILE_13 as ONNX
from dml_tile.back_ends.dialects import OPENVINO_TILE_1 as OPENVINO
from dml_tile.readers.model_tile import TileNode, ValueOrigin, ValueSource, tile_node


def node(shape: Any, *arguments: Any, dialect: Dialect = ONNX, data_type: str | None = "float32") -> TileNode:
    arrays = [argument if argument is None else np.asanyarray(argument) for argument in arguments]
    return tile_node("here", dialect, data_type and dialect.type_name(data_type), shape, arrays)


@pytest.mark.parametrize(
    ("made", "line", "unknown"),
    [
        (node([2, 3], [1, 2]), "FLOAT32 {2,3} x {1,2} -> {2,6}", ()),
        (node([], np.array([], np.int64)), "FLOAT32 {} x {} -> {}", ()),
        (
            node(["N", None, "C"], [2, 2, 1]),
            "FLOAT32 {N,?,C} x {2,2,1} -> {2*N,?,C}",
            ("InputTensor.Sizes[0] (N)", "InputTensor.Sizes[1]", "InputTensor.Sizes[2] (C)"),
        ),
        (node([2, 3], None), "FLOAT32 {2,3} x ? -> ?", ("Repeats",)),
        (
            node(None, None, data_type=None),
            "? ? x ? -> ?",
            ("InputTensor.DataType", "InputTensor.DimensionCount", "Repeats"),
        ),
        (node([2], [3], data_type="bool"), "UINT8 {2} x {3} -> {6}", ()),
        (node([2], [3], data_type="string"), "string {2} x {3} -> {6}", ()),
        (node([None], [1, 2], dialect=OPENVINO), "FLOAT32 {1,?} x {1,2} -> {1,?}", ("InputTensor.Sizes[1]",)),
        (node([3], None, 0.0, dialect=ONNX_TILE_1), "FLOAT32 {3} x ? -> ?", ("Repeats",)),
    ],
)
def test_a_tile_is_one_line_and_parts_that_are_known_at_run_time_only_are_named(
    made: TileNode, line: str, unknown: tuple[str, ...]
) -> None:
    assert (str(made), tuple(map(str, made.unknown)), made.error) == (line, unknown, "")


def partly(*repeats: int | None) -> Any:
    """Repeats of which those that are None are unknown."""
    return np.ma.masked_array([repeat or 0 for repeat in repeats], [repeat is None for repeat in repeats], np.int64)


@pytest.mark.parametrize(
    ("made", "repeats", "unknown"),
    [
        (node([2, 3], partly(None, 4)), (None, 4), ("Repeats[0]",)),
        (node([2, 3], partly(3, 4)), (3, 4), ()),
        (node([2, 3], partly(None, None)), None, ("Repeats",)),
        (node([2, 3], partly(4, None), dialect=OPENVINO), (4, None), ("Repeats[1]",)),
        (node([2, 3, 4], partly(None, 4), dialect=OPENVINO), (1, None, 4), ("Repeats[1]",)),
        (node([2], partly(5, None), dialect=OPENVINO), (5, None), ("Repeats[1]",)),
        (node([3], np.ma.masked_array(0, True), 0, dialect=ONNX_TILE_1), None, ("Repeats",)),
    ],
)
def test_repeats_may_be_known_singly(made: TileNode, repeats: Any, unknown: tuple[str, ...]) -> None:
    assert (made.repeats, tuple(map(str, made.unknown))) == (repeats, unknown)
    assert made.request.repeats == tuple(repeat or 1 for repeat in repeats or made.request.repeats)


A, B = ValueOrigin(source=ValueSource("tensor", "a")), ValueOrigin("Add 'b'")


def test_what_computes_an_unknown_part_is_named() -> None:
    made = replace(node(["n", None], partly(2, None), data_type=None), input_origins=(A,), repeats_origins=(B,))
    sizes = ("InputTensor.Sizes[0] (n)", f"InputTensor.Sizes[1]: {A}")
    assert tuple(map(str, made.unknown)) == ("InputTensor.DataType: the tensor 'a'", *sizes, f"Repeats[1]: {B}")
    none_known = replace(node(None, None), input_origins=(A,), repeats_origins=(B,))
    assert tuple(map(str, none_known.unknown)) == (f"InputTensor.DimensionCount: {A}", f"Repeats: {B}")
    two_causes = replace(node([2, 3, 4], None, dialect=OPENVINO, data_type="f32"), repeats_origins=(A, B))
    assert tuple(map(str, two_causes.unknown)) == (f"Repeats[1]: {A}", f"Repeats[2]: {B}")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (node([2, 3], [1, 2]), ("float32", (2, 3), (1, 2))),
        (node(["batch", 3], [2, 2]), ("float32", (1, 3), (2, 2))),
        (node([2, 3], None), ("float32", (2, 3), (1, 1))),
        (node(None, None, data_type="int8"), ("int8", (1, 1, 1, 1), (1, 1, 1, 1))),
        (node([2], [2], data_type=None, dialect=OPENVINO), ("f32", (2,), (2,))),
    ],
)
def test_unknown_parts_are_assumed_to_break_no_rule(made: TileNode, expected: Any) -> None:
    assert made.request == Request(made.dialect, *expected)


def test_shapes_are_promoted_as_the_dialect_says() -> None:
    promoted = node(["n", 3], [5, 1, 2], dialect=OPENVINO)
    assert (promoted.shape, promoted.repeats) == ((1, "n", 3), (5, 1, 2))
    assert node([3, 4], 2, 1, dialect=ONNX_TILE_1).repeats == (1, 2)


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (node([2, 3], [1]), "repeats: has 1 values; the input has 2 dimensions, and as many repeats"),
        (node(["n", 3], [1, -1]), "repeats[1]: is -1; repeats must not contain negative values"),
        (node([2, 3], partly(None, -1)), "repeats[1]: is -1; repeats must not contain negative values"),
        (node(["n"], None, dialect=ONNX_TILE_6, data_type="bfloat16"), "data type: bfloat16 is not one of"),
        (node([2], [1.5]), "repeats: is of float64; int64 was expected"),
    ],
)
def test_what_the_dialect_rules_out_is_an_error_also_where_sizes_are_unknown(made: TileNode, error: str) -> None:
    assert made.error.startswith(error)
    assert made.unknown == ()
