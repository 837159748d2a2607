"""The nodes that onnxruntime folds or removes before it runs a model, as measured of its basic optimisations (1.31).

It folds a node whose inputs are all constant, and a Shape or Size whose input has a static shape, if its inference
knows the shapes of the outputs and its CPU provider has the operator. With the last Shape of a value it removes the
nodes that computed nothing else. A node whose output nobody uses stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onnx import GraphProto, NodeProto, TypeProto

from dml_tile.readers.onnx.folding import may_fold
from dml_tile.readers.onnx.operators import Operator
from dml_tile.readers.onnx.tensors import subgraphs
from dml_tile.readers.onnx.values import Value

_UNSUPPORTED: Final = frozenset({"bfloat16", "complex64", "complex128", "float16", None})
"""Data types that its CPU provider, which folds, has no kernels for, or few; None is an unknown one."""


def is_folded(node: NodeProto, operator: Operator, inputs: Mapping[str, Value], types: Mapping[str, TypeProto]) -> bool:
    """Return True if onnxruntime has the node's outputs, of the inferred types, as constants."""
    if not may_fold(node, operator) or not all(Value(types.get(name)).is_typed for name in node.output if name):
        return False
    if operator.type in ("Shape", "Size"):
        return all(value.is_static for value in inputs.values())
    is_supported = all(value.data_type not in _UNSUPPORTED for value in inputs.values())
    return (
        is_supported
        and (operator.type, operator.since) != ("Tile", 1)
        and all(value.is_folded for value in inputs.values())
    )


def removed(graph: GraphProto, values: Mapping[str, Value]) -> set[int]:
    """Return the positions of the nodes that are used by nodes alone that onnxruntime folds or removes."""
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
    """Return the names that the graphs inside the nodes use."""
    names: set[str] = set()
    for node in graph.node:
        for _, inner in subgraphs(node):
            names.update(value.name for value in inner.output)
            names.update(name for each in inner.node for name in each.input)
            names |= _used_inside(inner)
    return names
