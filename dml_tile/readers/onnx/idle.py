"""The nodes that return an input, which onnxruntime removes, as measured with wheels of 1.9 to 1.24.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/noop_elimination.cc, slice_elimination.cc, and others there
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from dml_tile.back_ends.dialects import INT64_MAX
from dml_tile.back_ends.kernels import Version
from dml_tile.back_ends.placement import Gone
from dml_tile.readers.onnx.nodes import Node
from dml_tile.readers.onnx.uses import ANY, Uses
from dml_tile.readers.onnx.values import Value

NUMBERS: Final = frozenset({"float16", "float32", "float64", "int32", "int64"})
"""The types of constants that onnxruntime looks at."""


def passed_on(node: Node, uses: Uses) -> tuple[str, Gone] | None:
    """Return the input that a node does nothing to, and the reason why it is gone.

    It is the node's only input, or the only one that a node of the graph computes.
    """
    rules = _IDLE.get(node.kind, ())
    names = [uses.root(name) for name in node.proto.input] if rules else []
    made = [i for i, name in enumerate(names) if name in uses.makers and not node.inputs[i].is_folded]
    i = made[0] if len(made) == 1 else 0
    if len(made) == 1 or (not made and len(names) == 1):
        for rule in rules:
            if rule.does_nothing(node, i, uses):
                return node.proto.input[i], Gone(f"the {node.type} does nothing", rule.since)
    return None


def _is_cast_to_its_type(node: Node, i: int, uses: Uses) -> bool:
    type_ = node.inputs[i].type
    return type_ is not None and type_.tensor_type.elem_type == node.attributes["to"].i


def _is_cast_for_shapes(node: Node, i: int, uses: Uses) -> bool:
    (name,) = node.outputs
    return 13 <= node.placed.version < 21 and uses.counts[name] == uses.shapes[name] > 0


def _expands_nothing(node: Node, i: int, uses: Uses) -> bool:
    data, shape = (*node.inputs, Value())[:2]
    sizes = Value(data.early_type).shape
    if shape.constant is None or not shape.is_folded or sizes is None:
        return False
    wanted = shape.constant.ravel().tolist()
    pairs = zip(reversed(sizes), reversed(wanted), strict=False)
    return 0 < len(wanted) <= len(sizes) and all(size <= 1 or size == have for have, size in pairs)


def _slices_nothing(node: Node, i: int, uses: Uses) -> bool:
    given = zip(node.proto.input, node.inputs, strict=True)
    arguments = [value.constant for name, value in given if name][1:]
    if node.placed.version < 10:
        arguments = [np.array(node.attributes[name].ints) for name in ("starts", "ends")]
    if len(arguments) < 2 or any(each is None for each in arguments):
        return False
    starts, ends, *others = (each.ravel().tolist() for each in arguments if each is not None)
    steps = others[1] if len(others) > 1 else []  # without axes, onnxruntime does not look at steps
    return not any(starts) and all(end == INT64_MAX for end in ends) and all(step == 1 for step in steps)


def _drops_for_inference(node: Node, i: int, uses: Uses) -> bool:
    """Return True for a Dropout without a used mask, which onnxruntime takes to drop nothing."""
    return i == 0 and node.placed.version < 22 and not any(map(uses.counts.get, filter(None, node.proto.output[1:])))


def _is_neutral(number: int, operands: Collection[int], node: Node, i: int, uses: Uses) -> bool:
    """Return True if the other of two inputs is a number that returns this one, of as many dimensions or more."""
    if i not in operands or len(node.inputs) != len("AB"):
        return False
    other = node.inputs[1 - i].constant if node.inputs[1 - i].is_folded else None
    if other is None or other.size != 1 or other.item() != number or other.dtype.name not in NUMBERS:
        return False
    shape = Value(node.inputs[i].early_type).shape
    return shape is not None and other.ndim <= len(shape)


class _Idle(NamedTuple):
    """A rule for nodes that return an input, given by its number, and the release from which on they are removed."""

    does_nothing: Callable[[Node, int, Uses], bool]
    since: Version = ANY


_IDLE: Final[Mapping[str, Sequence[_Idle]]] = {
    "Add": [_Idle(partial(_is_neutral, 0, (0, 1)))],
    "Cast": [_Idle(_is_cast_to_its_type), _Idle(_is_cast_for_shapes, (1, 16))],
    "Div": [_Idle(partial(_is_neutral, 1, (0,)), (1, 14))],
    "Dropout": [_Idle(_drops_for_inference)],
    "Expand": [_Idle(_expands_nothing)],
    "Identity": [_Idle(lambda node, i, uses: True)],
    "Mul": [_Idle(partial(_is_neutral, 1, (0, 1)), (1, 14))],
    "Slice": [_Idle(_slices_nothing)],
    "Sub": [_Idle(partial(_is_neutral, 0, (0,)), (1, 14))],
}
"""Operators that onnxruntime removes where they do nothing."""
