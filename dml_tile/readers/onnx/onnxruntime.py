"""The nodes that onnxruntime folds or removes before it runs a model, as measured of its basic optimisations (1.31).

It folds a node whose inputs are all constant, and a Shape whose input has a static shape, if its inference knows the
shapes of the outputs and its CPU provider has the operator. Its inference follows single elements of a shape through
other nodes, differently by release and operator; what rests on such elements is taken to be kept, and so is a Tile in
the branch that an If does not take, unless the condition is folded. It keeps a DequantizeLinear for the providers,
unless its output is quantised again, directly or behind one node. With the last Shape of a value it removes the nodes
that computed nothing else. A node whose output nobody uses stays.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/constant_folding.cc
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from onnx import GraphProto, NodeProto, TypeProto

from dml_tile.readers.onnx.file import graphs
from dml_tile.readers.onnx.folding import is_deterministic
from dml_tile.readers.onnx.functions import OnnxOperator
from dml_tile.readers.onnx.values import Value

_UNSUPPORTED: Final = frozenset({"bfloat16", "complex64", "complex128", "float16", None})
"""Data types for which its CPU provider, which folds, has few kernels or none; None is an unknown type."""


_NEVER_FOLDED: Final = {
    "CenterCropPad": "is a function, and what it expands to is not folded",
    "DequantizeLinear": "is kept for the providers",
    "Dropout": "is removed by another rule, and only where its mask is not used",
    "HardSwish": "is a function, and what it expands to is not folded",
    "Mish": "is a function, and what it expands to is not folded",
    "NegativeLogLikelihoodLoss": "has no kernel of the CPU provider",
    "SoftmaxCrossEntropyLoss": "has no kernel of the CPU provider",
    "Swish": "is a function, and what it expands to is not folded",
}
"""Operators that are kept despite constant inputs, with the reason; random chains through all others are folded."""


def is_folded(
    node: NodeProto, operator: OnnxOperator, inputs: Mapping[str, Value], types: Mapping[str, TypeProto]
) -> bool:
    """Return True if onnxruntime has the node's outputs, whose early types are ``types``, as constants."""
    if operator.type in _NEVER_FOLDED:
        return False
    is_sized = all(Value(types.get(name)).is_typed for name in node.output if name)
    if not is_sized or not is_deterministic(node, operator):
        return False
    if operator.type == "Shape" and all(Value(value.early_type).is_static for value in inputs.values()):
        return True
    is_supported = all(value.data_type not in _UNSUPPORTED for value in inputs.values())
    return (
        is_supported
        and (operator.type, operator.since) != ("Tile", 1)
        and all(value.is_folded for value in inputs.values())
    )


UNUSED: Final = "only the shape of its output is used, which is known; onnxruntime removes it"


def why_folded(node: NodeProto, operator: OnnxOperator, outputs: Mapping[str, Value]) -> str:
    """Return why onnxruntime has a node's outputs as constants; empty if it does not."""
    if not outputs or not all(value.is_folded for value in outputs.values()):
        return ""
    if operator.type == "Constant" and not operator.domain:
        return "it is a constant"
    return "its inputs are constants; onnxruntime folds it"


def sources_of_requantised(graph: GraphProto) -> Iterator[tuple[str, list[str]]]:
    """Yield the output of each QuantizeLinear of dequantised values, with the values that it is computed from.

    It is folded if these values are constant. Between the two nodes may be Transposes, which onnxruntime moves, and one
    other node, each of one input; each output is used once.
    """
    makers = {name: node for node in graph.node for name in node.output}
    uses = Counter(name for node in graph.node for name in node.input)
    uses.update({*(value.name for value in graph.output), *_used_inside(graph)})
    for node in graph.node:
        before, left = node if node.op_type == "QuantizeLinear" and node.input and node.output else None, 1
        while before and uses[before.input[0]] == 1 and (before := makers.get(before.input[0])):
            if before.op_type == "DequantizeLinear":
                yield node.output[0], [*before.input, *node.input[1:]]
                break
            left -= before.op_type != "Transpose"
            if left < 0 or len(before.input) != 1 or len(before.output) != 1:
                break


def unneeded_nodes(graph: GraphProto, values: Mapping[str, Value]) -> set[int]:
    """Return the positions of the nodes that only folded or removed nodes use."""
    needed = {value.name for value in graph.output} | _used_inside(graph)
    used: set[str] = set()
    found = set()
    for i, node in reversed(list(enumerate(graph.node))):
        outputs = set(filter(None, node.output))
        is_gone = all(values[name].is_folded for name in outputs)
        if not is_gone and outputs & used and not outputs & needed:
            found.add(i)
            is_gone = True
        used.update(node.input)
        if not is_gone:
            needed.update(node.input)
    return found


def _used_inside(graph: GraphProto) -> set[str]:
    """Return the names that graphs inside the nodes use."""
    inside = list(graphs(graph))[1:]
    used = (name for inner in inside for node in inner.node for name in node.input)
    return {*used, *(value.name for inner in inside for value in inner.output)}
