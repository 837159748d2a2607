"""Infers types and shapes by onnx: of a whole model, of one node, and of a Loop's carried values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from typing import Any, Final

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper, shape_inference

from dml_tile.readers.onnx.file import nodes
from dml_tile.readers.onnx.nodes import Node, NodeTable, place, schema_of
from dml_tile.readers.onnx.values import Value, common, dimensions, with_sizes, without_shape
from dml_tile.text import abridged

DISTRUSTED: Final = {
    "Attention": "gives 0 for a size, or forgets the past, in later outputs, and in the first where a hidden size is "
    "not known",
    "Cast": "passes on the name of a size that the type may not hold, as bool, int8 and float do not",
    "GatherND": "may end the process",
} | dict.fromkeys(
    (
        "EyeLike",
        "RegexFullMatch",
        *(f"ai.onnx.ml.{name}" for name in ("DictVectorizer", "LabelEncoder", "TreeEnsemble")),
    ),
    "may end the process",
)
"""Operators whose inference is not believed, with the reason; a test compares all others with onnx's own cases."""

_HOLDS_SIZES: Final = frozenset(
    {TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64, TensorProto.DOUBLE}
)
"""Types that hold any size of a tensor exactly, to which a Cast is believed."""

_PACKED_RANK: Final = 3
"""The rank of queries, keys and values with the heads in the last dimension."""

EQUATION: Final = re.compile(r"(?:[ A-Za-z,]|\.\.\.)*(?:->(?:[ A-Za-z]|\.\.\.)*)?")
"""The equations of Einsum that onnx's inference is given."""


GATHERED: Final = range(2**31)
"""The sizes and numbers of batch dimensions of GatherND that onnx's inference is given."""


def _returns(node: Node) -> bool:
    """Return False for an Einsum or a GatherND from whose attributes or sizes onnx's inference does not return."""
    if node.kind == "GatherND":
        shapes = [value.type.tensor_type.shape.dim for value in node.inputs if value.type is not None]
        return all(
            each in GATHERED for each in (node.attributes["batch_dims"].i, *(dim.dim_value for dim in chain(*shapes)))
        )
    texts = (each.s.decode(errors="replace") for each in node.proto.attribute if each.name == "equation")
    return node.kind != "Einsum" or all(map(EQUATION.fullmatch, texts))


_FAILURE: Final = re.compile(
    r".*\(op_type:(\w+)(?:, node name: (.*?))?\): \[(?:Shape|Type)InferenceError\] (?!.*(?:\bexisting\b|is null))(.*)"
)
"""Matches onnx's message about the first node at which inference fails. Passes over shapes that the file states
otherwise, which onnxruntime accepts, and types that onnx does not know."""

_AROUND: Final = re.compile(r"\(op_type:(\w+)")
"""Matches the operators around that node in the message, and its own."""

_MAX_FAILURE: Final = 1_000
"""The characters of a failure that are read, since it holds names of the model."""


def with_types(model: ModelProto, table: NodeTable) -> tuple[ModelProto, str]:
    """Return the model with the types that onnx infers, and why onnxruntime would infer none.

    For nodes that are not believed, onnx infers nothing, since it would pass that on.
    """
    for proto in nodes(model.graph):
        node = table.node(proto)
        if node.kind == "STFT" and "onesided" not in node.attributes:
            proto.attribute.append(helper.make_attribute("onesided", 1))  # else onnx's inference takes 0
        is_believed = node.kind not in DISTRUSTED or node.attributes["to"].i in _HOLDS_SIZES
        if not (is_believed and _returns(node)):
            table.set_apart(node)
    imported = {entry.domain for entry in model.opset_import}
    for domain in sorted({proto.domain for proto in nodes(model.graph)} - imported - {"", "ai.onnx"}):
        model.opset_import.add(domain=domain, version=1)  # else onnx infers nothing
    fault = ""
    for strict in (True, False):  # the results differ only where the first fails
        try:
            return shape_inference.infer_shapes(model, strict_mode=strict, data_prop=True), fault
        except Exception as error:  # of any class: onnx's own, protobuf's, an operator's in C++
            found = _FAILURE.match(str(error)[:_MAX_FAILURE])
            around = _AROUND.findall(found[0])[:-1] if found else []
            if strict and found and not any(_is_inferred_by_body(each, table.opset) for each in around):
                fault = f"onnx's inference fails at {found[1]} '{place(found[2] or '')}': {abridged(found[3])}"
    return model, fault


def _is_inferred_by_body(operator: str, opset: int | None) -> bool:
    """Return True for a function of onnx's whose types onnx infers from its nodes, and onnxruntime does not.

    Without an attribute that has a default, as MeanVarianceNormalization's axes, onnx's inference fails there.
    """
    schema: Any = schema_of("", operator, opset or 0)  # onnx's stubs lack has_function
    return bool(schema and schema.has_function and not schema.has_type_and_shape_inference_function)


def unbelieved(node: Node) -> set[str]:
    """Return the outputs of a node whose sizes are unknown, whatever onnx infers."""
    if node.kind != "Attention" or all(value.is_static for value in node.given.values()):
        return set()
    hidden = [value.shape[-1] for value in node.inputs[:3] if value.shape and len(value.shape) == _PACKED_RANK]
    return set(node.proto.output[all(isinstance(size, int) for size in hidden) :])


_SIZED_BY_ELEMENTS: Final = frozenset({"ConstantOfShape", "Expand", "Reshape", "Tile"})


def inferred(node: Node) -> dict[str, TypeProto]:
    """Return the types of a node's outputs; none if onnx's inference fails.

    Sizes for which onnx is not believed are unknown. If single elements of a shape or of repeats are known, so are the
    sizes that depend on no other elements.
    """
    types: dict[str, TypeProto] = {}
    if node.type in _SIZED_BY_ELEMENTS and any(np.ma.is_masked(value.elements) for value in node.inputs):
        one, two = (_inferred(node.seeing(partial(_with_unknown, unknown))) for unknown in (1, 2))
        shared = {name: common(type_, two.get(name)) for name, type_ in one.items()}
        types = {name: type_ for name, type_ in shared.items() if type_}
    types = types or _inferred(node)
    for name in unbelieved(node).intersection(types):
        sizes = dimensions(types[name])
        types[name] = with_sizes(types[name], sizes and [None for _ in sizes])
    return types


def _with_unknown(unknown: int, value: Value) -> Value:
    elements = value.elements
    return value if elements is None else replace(value, held=np.ma.filled(elements, unknown))


def _inferred(node: Node) -> dict[str, TypeProto]:
    schema = node.schema
    types = {name: value.type for name, value in node.given.items() if value.type is not None}
    if schema is None or node.opset is None or len(types) < len(node.given) or not _returns(node):
        return {}
    constants = ((name, value.constant) for name, value in node.given.items())
    try:
        data = {name: numpy_helper.from_array(array, name) for name, array in constants if array is not None}
        imports = [helper.make_opsetid("", node.opset)]
        return dict(shape_inference.infer_node_outputs(schema, node.proto, types, data, opset_imports=imports))
    except Exception:  # of any class: whatever an operator's C++ throws
        return {}


FIRST_CARRIED: Final = 2
"""The number of a Loop's, and its body's, inputs before the loop-carried inputs."""


def take_loop_types(graph: GraphProto) -> dict[str, Mapping[str, TypeProto]]:
    """Take the declared shapes out of all Loops' bodies; return the values' types by the bodies' new names.

    Otherwise onnx would infer from them what holds in the first iteration only.
    """
    types: dict[str, Mapping[str, TypeProto]] = {}
    for body in filter(None, map(body_of, nodes(graph))):
        body.name = f"body {len(types)}"
        values = [*body.input[FIRST_CARRIED:], *body.output, *body.value_info]
        types[body.name] = {value.name: deepcopy(value.type) for value in values}
        for value in values:
            value.type.CopyFrom(without_shape(value.type))
    return types


def body_of(node: NodeProto) -> GraphProto | None:
    """Return the body of a Loop; None for another node, and for a Loop without a body."""
    if node.op_type != "Loop":
        return None
    return next((attribute.g for attribute in node.attribute if attribute.name == "body"), None)


def loop_carried(node: Node, body: GraphProto) -> list[tuple[Value, str, str, str]]:
    """Return the loop-carried values: the first, and the names of the body's input and output and of the Loop's output.

    An output that is left out is empty.
    """
    inner = [each.name for each in body.input[FIRST_CARRIED:]]
    updated = [each.name for each in body.output[FIRST_CARRIED - 1 :]]  # the first output is the condition
    return list(zip(node.inputs[FIRST_CARRIED:], inner, updated, chain(node.proto.output, repeat("")), strict=False))


def is_kept(before: Iterable[TypeProto], after: Iterable[TypeProto | None]) -> bool:
    """Return True if an iteration returns values of the types that it began with, as far as these are known."""
    pairs = ((dimensions(one), common(one, other)) for one, other in zip(before, after, strict=True))
    return all(sizes is None or (agreed is not None and dimensions(agreed) == sizes) for sizes, agreed in pairs)
