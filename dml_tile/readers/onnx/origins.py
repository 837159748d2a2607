"""Finds the node that makes a value unknown, and the input of the model that it is computed from.

Of the nodes between an input and an unknown value, the first says most; but where the data of a model become shapes,
as in an ArgMax or NonZero, it is the node that first computes whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from onnx import NodeProto

from dml_tile.readers.model_tile import ONNXRUNTIME
from dml_tile.readers.onnx.functions import place
from dml_tile.readers.onnx.operators import MICROSOFT, Operator
from dml_tile.readers.onnx.values import Value, ValueOrigin

_ADVICE: Final = f"--infer {ONNXRUNTIME} may know it"


def input_origin(name: str) -> ValueOrigin:
    """Return the origin of an input of the model, or of a tensor that is too large to be looked at."""
    return ValueOrigin(source=f"the input {place(name)!r}")


def node_origin(node: NodeProto, operator: Operator) -> ValueOrigin:
    """Return the origin of what a node computes from known inputs only, or passes to the graphs inside it."""
    kind = f"{operator.domain}.{operator.type}" if operator.domain else operator.type
    return ValueOrigin(f"{place(kind)} {place(node.name)!r}")


def with_origins(
    value: Value, node: NodeProto, operator: Operator, inputs: Sequence[Value], *, is_inferred_by_onnxruntime: bool
) -> Value:
    """Return the output of a node with the origins of what is unknown of it.

    Unless it ``is_inferred_by_onnxruntime``, the origin at an operator of onnxruntime's advises the option for that.
    """
    if value.constant is None and not value.elements_origin.node:
        value = replace(value, elements_origin=_elements_origin(value, node, operator, inputs))
    if not value.is_typed and not value.sizes_origin.node:
        origin = _sizes_origin(value, node, operator, inputs)
        if operator.domain == MICROSOFT and origin == node_origin(node, operator) and not is_inferred_by_onnxruntime:
            origin = origin._replace(advice=_ADVICE)
        value = replace(value, sizes_origin=origin)
    return value


def _elements_origin(value: Value, node: NodeProto, operator: Operator, inputs: Sequence[Value]) -> ValueOrigin:
    own = node_origin(node, operator)
    if operator.type in ("Shape", "Size") and not operator.domain:
        origin = next((given.sizes_origin for given in inputs), ValueOrigin())
        return origin if origin.node else own._replace(source=origin.source)
    unknown = next((given for given in inputs if given.constant is None), None)
    if unknown is None:
        return own
    origin = unknown.elements_origin
    if origin.node and (unknown.is_whole or not value.is_whole or not origin.source):
        return origin
    return own._replace(source=origin.source)


def _sizes_origin(value: Value, node: NodeProto, operator: Operator, inputs: Sequence[Value]) -> ValueOrigin:
    untyped = next((given for given in inputs if not given.is_typed), None)
    if untyped is not None and (not operator.domain or untyped.type is None or value.inferred_by):
        return untyped.sizes_origin
    own = node_origin(node, operator)
    sources = [given.elements_origin.source for given in inputs if given.constant is None]
    return own._replace(source=sources[-1] if sources and not operator.domain else "")
