"""The Transposes that onnxruntime moves through later nodes, so that a Tile runs on values as they were before.

From 1.10 on, a Transpose moves through a node if a later one takes it in, whatever its permutation, and if the node has
no more values to be transposed than before. As measured with wheels of 1.9 to 1.24, and 1.32.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/transpose_optimization/onnx_transpose_optimization.cc
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from onnx import GraphProto, NodeProto

from dml_tile.readers.onnx.functions import OnnxOperator
from dml_tile.readers.onnx.values import Value

Permutation: TypeAlias = tuple[int, ...]

_OF_FIRST_INPUT: Final = frozenset(
    {
        *("Abs", "Acos", "Acosh", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh", "Cast", "Ceil", "Celu"),
        *("Clip", "Cos", "Cosh", "DequantizeLinear", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish"),
        *("Hardmax", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "LogSoftmax", "Neg", "Not", "Pad"),
        *("QuantizeLinear", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"),
        *("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu"),
        *("Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Slice", "Softmax", "Softplus"),
        *("Softsign", "Split", "Sqrt", "Squeeze", "Tan", "Tanh", "ThresholdedRelu", "Tile", "Unsqueeze"),
    }
)
"""Operators through whose first input a Transpose moves to their first output."""
_OF_ALL_INPUTS: Final = frozenset(
    {
        *("Add", "And", "BitShift", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max"),
        *("Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor"),
    }
)
"""Operators that broadcast, through all of whose inputs a Transpose moves."""
_UNKNOWN_RANK: Final = 5
"""The rank that is assumed where none is known."""


def transposed_tiles(
    graph: GraphProto, kinds: Sequence[OnnxOperator], values: Mapping[str, Value]
) -> dict[int, Permutation]:
    """Return the Tiles, by position, that run before a Transpose that the file has before them; its permutation."""
    nodes = [(i, node, _moved_inputs(node, kind)) for i, (node, kind) in enumerate(zip(graph.node, kinds, strict=True))]
    nodes = [(i, node, inputs) for i, node, inputs in nodes if inputs]
    wanted = set[str]()
    for _, node, inputs in reversed(nodes):
        if node.op_type == "Transpose" or not wanted.isdisjoint(node.output):
            wanted.update(inputs)
    moved: dict[str, Permutation] = {}
    found = {}
    for i, node, inputs in nodes:
        order = next((moved[name] for name in inputs if name in moved), ())
        if node.op_type == "Transpose":
            own = _permutation(node)
            if own:
                moved[node.output[0]] = tuple(order[j] for j in own) if order else own
            continue
        cost = sum(_cost(name, order, moved, values) for name in inputs)
        if not order or cost >= 0 or wanted.isdisjoint(node.output):
            continue
        if _rank(values.get(node.output[0])) == len(order):
            moved[node.output[0]] = order
        if node.op_type == "Tile" and order != tuple(range(len(order))):
            found[i] = order
    return found


def _moved_inputs(node: NodeProto, kind: OnnxOperator) -> Sequence[str]:
    """Return the inputs through which a Transpose moves to the node's output."""
    if kind.domain or not node.output:
        return ()
    if kind.type in _OF_ALL_INPUTS:
        return [name for name in node.input if name]
    return node.input[:1] if kind.type == "Transpose" or kind.type in _OF_FIRST_INPUT else ()


def _cost(name: str, order: Permutation, moved: Mapping[str, Permutation], values: Mapping[str, Value]) -> int:
    """Return how many dimensions more are transposed where a Transpose of an input moves behind a node."""
    value = values.get(name)
    if value is not None and value.is_folded:
        return 0
    rank = _rank(value) or _UNKNOWN_RANK
    return rank if name not in moved else -rank if moved[name] == order else 0


def _rank(value: Value | None) -> int:
    return 0 if value is None or value.shape is None else len(value.shape)


def _permutation(node: NodeProto) -> Permutation:
    return next((tuple(each.ints) for each in node.attribute if each.name == "perm"), ())
