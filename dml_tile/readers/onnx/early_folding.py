"""The nodes that onnxruntime folds before it runs a model, as measured of its basic optimisations (1.31).

It folds a node whose inputs are all constant, and a Shape whose input has a static shape, if its inference knows the
shapes of the outputs and its CPU provider has the operator. Its inference follows single elements of a shape through
other nodes, differently by release and operator; what rests on such elements is taken to be kept, and so is a Tile in
the branch that an If does not take, unless the condition is folded. It keeps a DequantizeLinear for the providers,
unless its output is quantised again, directly or behind one node.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/constant_folding.cc
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from onnx import TypeProto

from dml_tile.back_ends.described_node import NodePlace
from dml_tile.back_ends.kernels import releases
from dml_tile.back_ends.placement import Edge, Gone, ModelNode
from dml_tile.back_ends.release_tables import cpu_provider_has
from dml_tile.readers.onnx.folding import is_deterministic
from dml_tile.readers.onnx.nodes import Node
from dml_tile.readers.onnx.operators import Resolved, type_name
from dml_tile.readers.onnx.removals import Uses
from dml_tile.readers.onnx.values import Value

_NEVER_FOLDED: Final = {"DequantizeLinear", "Dropout"}
"""Operators that are kept despite constant inputs; random chains through all others are folded."""


def _folded_from(node: Node, uses: Uses) -> Collection[Value]:
    """Return the values that have to be constant so that onnxruntime folds a node: its inputs.

    For a QuantizeLinear of dequantised values it is what these are computed from. Between the two nodes may be
    Transposes, which onnxruntime moves, and one other node, each of one input; each output is used once.
    """
    before, left = node if node.type == "QuantizeLinear" else None, 1
    while before and (before := uses.only_maker(before)):
        if before.type == "DequantizeLinear":
            return [*before.given.values(), *[*node.given.values()][1:]]
        left -= before.type != "Transpose"
        if left < 0 or len(before.proto.input) != 1 or len(before.proto.output) != 1:
            break
    return node.given.values()


def is_folded(node: Node, operator: Resolved, types: Mapping[str, TypeProto], uses: Uses) -> bool:
    """Return True if onnxruntime has the node's outputs, whose early types are ``types``, as constants."""
    is_sized = all(Value(types.get(name)).is_typed for name in node.proto.output if name)
    if node.type in _NEVER_FOLDED or not is_sized or not is_deterministic(node):
        return False
    sources = _folded_from(node, uses)
    if node.type == "Constant" or (node.type == "Shape" and all(Value(each.early_type).is_static for each in sources)):
        return True
    if not all(value.is_folded for value in sources):
        return False
    computed = ModelNode(
        NodePlace("", "", node.domain, node.type, operator.version),
        tuple(value.edge if value.is_folded else None for value in node.inputs),
        tuple(Edge(type_name(types.get(name))) if name else None for name in node.proto.output),
        operator.formals,
    )
    return any(cpu_provider_has(computed, release) for release in reversed([*releases()]))


_FOLDED: Final = Gone("its inputs are constants; onnxruntime folds it", is_computed=True)
_FOLDED_FOR: Final = {
    "Constant": Gone("it is a constant"),
    "Shape": Gone("its input's sizes are known; onnxruntime folds it"),
}
_KNOWN_CONDITION: Final = Gone(
    "its condition is known; onnxruntime puts the graph that runs in its place", since=(1, 17), is_unwrapped=True
)


def why_folded(node: Node) -> Gone | None:
    """Return why onnxruntime has a node's outputs as constants; None if it does not."""
    if node.kind == "If" and node.inputs and node.inputs[0].is_folded and node.inputs[0].constant is not None:
        return _KNOWN_CONDITION
    has_constants = node.attributes if node.kind == "Constant" else node.outputs and node.is_folded
    return _FOLDED_FOR.get(node.kind, _FOLDED) if has_constants else None
