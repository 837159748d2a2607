"""Infers types and shapes by onnx: of a whole model, with the names of its dimensions, and of one node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto, NodeProto, TypeProto, helper, numpy_helper, shape_inference

from dml_tile.readers.onnx.operators import Operator, default_opset, operator
from dml_tile.readers.onnx.tensors import subgraphs
from dml_tile.readers.onnx.values import Value


def with_types(model: ModelProto) -> ModelProto:
    """Return the model with the types that onnx infers, or without where it fails."""
    opset = default_opset(model.opset_import)
    for node in nodes(model.graph):
        _spell_out_defaults(node, operator(node, opset))
    imported = {entry.domain for entry in model.opset_import}
    for domain in sorted({node.domain for node in nodes(model.graph)} - imported - {"", "ai.onnx"}):
        model.opset_import.add(domain=domain, version=1)  # else onnx gives up on the whole model
    try:
        return shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # of any class: onnx's own, protobuf's, what an operator's C++ throws
        return model


def inferred(node: NodeProto, operator: Operator, values: Mapping[str, Value]) -> Mapping[str, TypeProto]:
    """Return the types of the outputs; none where onnx's inference fails. ``values`` are those of the inputs."""
    schema = operator.schema
    types = {name: value.type for name, value in values.items() if value.type is not None}
    if schema is None or operator.opset is None or len(types) < len(values):
        return {}
    constants = ((name, value.constant) for name, value in values.items())
    try:
        data = {name: numpy_helper.from_array(array, name) for name, array in constants if array is not None}
        imports = [helper.make_opsetid("", operator.opset)]
        return shape_inference.infer_node_outputs(schema, node, types, data, opset_imports=imports)
    except Exception:  # of any class: whatever an operator's C++ throws
        return {}


def nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield the nodes of a graph, at any depth."""
    for node in graph.node:
        yield node
        for _, inner in subgraphs(node):
            yield from nodes(inner)


def _spell_out_defaults(node: NodeProto, operator: Operator) -> None:
    """Write out the default that onnx's inference takes for another: STFT's onesided is 1."""
    is_stft = not operator.domain and operator.type == "STFT"
    if is_stft and all(attribute.name != "onesided" for attribute in node.attribute):
        node.attribute.append(helper.make_attribute("onesided", 1))
