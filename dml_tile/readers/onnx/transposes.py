"""The Transposes that onnxruntime moves through later nodes, so that a Tile runs on values as they were before.

From 1.10 on, a Transpose moves through a node if a later one takes it in, whatever its permutation, and if the node has
no more values to be transposed than before. As measured with wheels of 1.9 to 1.24, and 1.32.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/transpose_optimization/onnx_transpose_optimization.cc
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from dml_tile.readers.onnx.nodes import OPERATORS, Node
from dml_tile.readers.onnx.removals import Uses
from dml_tile.readers.onnx.values import Value

Permutation: TypeAlias = tuple[int, ...]

_OF_FIRST_INPUT: Final = OPERATORS["transposed through the first input"]
"""Operators through whose first input a Transpose moves to their first output."""
_OF_ALL_INPUTS: Final = OPERATORS["transposed through all inputs"]
"""Operators that broadcast, through all of whose inputs a Transpose moves."""
_UNKNOWN_RANK: Final = 5
"""The rank that is assumed where none is known."""


def note_transposed_tiles(nodes: Sequence[Node], uses: Uses) -> None:
    """Note the permutation of a Transpose that the file has before a Tile, and that runs behind it."""
    if not {"Transpose", "Tile"} <= {node.kind for node in nodes}:
        return
    moving = [(node, inputs) for node in nodes if (inputs := _moved_inputs(node, uses))]
    wanted = set[str]()
    for node, inputs in reversed(moving):
        if node.type == "Transpose" or not wanted.isdisjoint(node.outputs):
            wanted.update(name for name, _ in inputs)
    moved: dict[str, Permutation] = {}
    for node, inputs in moving:
        order = next((moved[name] for name, _ in inputs if name in moved), ())
        output = node.proto.output[0]
        if node.type == "Transpose":
            own = tuple(node.attributes["perm"].ints)
            if own and sorted(own) == [*range(len(order or own))]:
                moved[output] = tuple(order[j] for j in own) if order else own
            continue
        cost = sum(_cost(value, order, moved.get(name)) for name, value in inputs)
        if not order or cost >= 0 or wanted.isdisjoint(node.outputs):
            continue
        if len(node.outputs[output].sizes or ()) == len(order):
            moved[output] = order
        if node.type == "Tile" and order != tuple(range(len(order))):
            node.transposed = order


def _moved_inputs(node: Node, uses: Uses) -> list[tuple[str, Value]]:
    """Return the inputs through which a Transpose moves to the node's first output, without removed nodes before."""
    inputs = [(uses.root(name), value) for name, value in zip(node.proto.input, node.inputs, strict=True) if name]
    if not any(node.proto.output[:1]):
        return []
    if node.kind in _OF_ALL_INPUTS:
        return inputs
    return inputs[:1] if node.kind == "Transpose" or node.kind in _OF_FIRST_INPUT else []


def _cost(value: Value, order: Permutation, moved: Permutation | None) -> int:
    """Return how many dimensions more are transposed where a Transpose of an input moves behind a node."""
    if value.is_folded:
        return 0
    rank = len(value.sizes or ()) or _UNKNOWN_RANK
    return rank if moved is None else -rank if moved == order else 0
