"""The nodes of a model as ``dml_tile.back_ends.placement`` places them: versions, types, and what level 1 removes."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import onnx
from onnx import FunctionProto, NodeProto, TensorProto, TypeProto, defs, helper

from dml_tile.back_ends.kernels import cpu_kernels, directml_kernels, is_runtime_operator, releases
from dml_tile.back_ends.kernels import formals as runtime_formals
from dml_tile.back_ends.placement import Edge, Formals, ModelNode, Placement, Reason
from dml_tile.readers.onnx.functions import ONNX_DOMAINS, OnnxOperator, place, place_of
from dml_tile.readers.onnx.inference import without_shape
from dml_tile.readers.onnx.values import Value

_Seen = TypeVar("_Seen")


class Seen(ChainMap[str, _Seen]):
    """What a graph sees, by name: its own, and what is outside."""

    def get(self, key: str, default: Any = None) -> Any:
        """Return what has this name; ChainMap's own takes three times as long."""
        for names in self.maps:
            if key in names:
                return names[key]
        return default


Edges: TypeAlias = Seen[Edge]

RUNTIME_DOMAINS: Final = frozenset(
    {"com.microsoft", "com.microsoft.dml", "com.microsoft.experimental", "com.microsoft.nchwc", "com.ms.internal.nhwc"}
)
"""The domains of ONNX Runtime's own operators."""

_TYPE_NAMES: Final = {number: name.lower() for name, number in TensorProto.DataType.items() if number}


def type_name(type_: TypeProto | None) -> str | None:
    """Return ONNX's name of a value's type, such as ``float`` or ``seq(int64)``; None if it is unknown."""
    kind = None if type_ is None else type_.WhichOneof("value")
    if type_ is None or kind is None:
        return None
    if kind == "tensor_type":
        return _TYPE_NAMES.get(type_.tensor_type.elem_type)
    if kind == "sparse_tensor_type":
        return f"sparse({_TYPE_NAMES.get(type_.sparse_tensor_type.elem_type)})"
    if kind == "map_type":
        key = _TYPE_NAMES.get(type_.map_type.key_type)
        return f"map({key},{type_name(type_.map_type.value_type)})"
    word, inner = ("seq", type_.sequence_type) if kind == "sequence_type" else ("optional", type_.optional_type)
    name = type_name(inner.elem_type)
    return name and f"{word}({name})"


def edge_of(value: Value) -> Edge:
    """Return what placing takes of a value."""
    if not value.is_folded:
        return Edge(type_name(value.type))
    sizes = value.shape if value.is_static else None
    elements = None if sizes is None else math.prod(size for size in sizes if isinstance(size, int))
    return Edge(type_name(value.type), elements, is_initialiser=True)


class Resolved(NamedTuple):
    """The version of a node's operator, its inputs and outputs, and what is wrong with it, if anything is."""

    version: int = 0
    formals: Formals = Formals()
    fault: Reason | None = None
    schema: Any = None  # onnx's types lack what its schemas say of functions


@cache
def _by_schema(schema: defs.OpSchema) -> Formals:
    inputs, outputs = ([(each.name, each.type_str) for each in given] for given in (schema.inputs, schema.outputs))
    return Formals(tuple(inputs), tuple(outputs), is_exact=True)


@cache
def _of_runtime(domain: str, operator: str) -> Formals:
    rows = runtime_formals()[domain, operator]
    inputs, outputs = ([(name, type_) for letter, name, type_ in rows if letter == wanted] for wanted in "io")
    return Formals(tuple(inputs), tuple(outputs))


def resolved(kind: OnnxOperator, imports: Mapping[str, int]) -> Resolved:
    """Return the version of a node's operator, and what else its opset decides."""
    return _resolved(kind.domain, kind.type, imports.get(kind.domain) if kind.domain else kind.opset)


@cache
def _resolved(domain: str, operator: str, opset: int | None) -> Resolved:
    """Return the operator of nodes in a model that imports an opset of their domain, or none."""
    if domain in ONNX_DOMAINS and opset is not None:
        if opset > (newest := _newest_opset(domain)):
            text = (
                f"the installed onnx {onnx.__version__} knows {domain or 'ai.onnx'} up to opset {newest}, not {opset}"
            )
            return Resolved(fault=Reason(Placement.UNKNOWN, "ORT-UNKNOWN-opset", text))
        schema = OnnxOperator(domain, operator, opset).schema
        if schema is not None and not schema.deprecated:
            return Resolved(schema.since_version, _by_schema(schema), schema=schema)
    if is_runtime_operator(domain, operator):
        return Resolved(1, _of_runtime(domain, operator))
    if opset is None:
        text = f"the model imports no opset of the domain {place(domain) or 'ai.onnx'}"
        return Resolved(fault=Reason(Placement.NONE, "ORT-MODEL-opset-import", text))
    if domain in ONNX_DOMAINS or domain in RUNTIME_DOMAINS:
        text = f"{domain or 'ai.onnx'} has no operator {place(operator)} at opset {opset}"
        return Resolved(fault=Reason(Placement.NONE, "ORT-MODEL-operator", text))
    text = (
        f"the domain {place(domain)} is neither onnx's nor ONNX Runtime's: no provider, unless the application adds it"
    )
    return Resolved(fault=Reason(Placement.NONE, "ORT-NODE-domain", text))


@cache
def _newest_opset(domain: str) -> int:
    if not domain:
        return defs.onnx_opset_version()
    return max((schema.since_version for schema in defs.get_all_schemas() if schema.domain == domain), default=1)


@cache
def _queried() -> frozenset[tuple[str, str]]:
    """Return the operators whose attributes a support query may look at."""
    kernels = (directml_kernels(release) for release in releases())
    return frozenset(key for each in kernels for key, rows in each.items() if any(row.query for row in rows))


def _attributes(node: NodeProto) -> dict[str, Any]:
    found = {}
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        found[attribute.name] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return found


def types_by_formals(node: NodeProto, resolved: Resolved, inputs: Sequence[Value]) -> dict[str, TypeProto]:
    """Return the outputs' types, without sizes, as far as the operator's inputs and outputs share variables.

    A variable of which all kernels of a provider take one type alone has that type.
    """
    known = {f"tensor({name})": number for number, name in _TYPE_NAMES.items()}
    variables: dict[str, TypeProto] = {}
    for (_, variable), value in zip(resolved.formals.inputs, inputs, strict=False):
        if value.type is not None:
            variables.setdefault(variable, value.type)
    found = {}
    for name, (_, variable) in zip(node.output, resolved.formals.outputs, strict=False):
        given = variables.get(variable)
        if given is not None:
            found[name] = without_shape(given)
        elif variable in known:
            found[name] = helper.make_tensor_type_proto(known[variable], None)
        elif (only := _only_type(node.domain, node.op_type, variable)) and f"tensor({only})" in known:
            found[name] = helper.make_tensor_type_proto(known[f"tensor({only})"], None)
    return found


@cache
def _only_type(domain: str, operator: str, variable: str) -> str:
    """Return the only type of a variable that any kernel of ONNX Runtime's own operator takes; empty if several."""
    newest = list(releases())[-1]
    kernels = (table.get((domain, operator), ()) for table in (cpu_kernels(newest), directml_kernels(newest)))
    types = {name for rows in kernels for kernel in rows for name in kernel.types.get(variable, ())}
    return types.pop() if len(types) == 1 and domain else ""


class GraphNodes:
    """The nodes of a graph as they are found; ``edges`` are the values that it sees, ``implicit`` those from outside.

    ``imports`` are the opsets by domain, without that of onnx's own operators. ``outputs`` are values that exist before
    the nodes that compute them: those of a node whose function's nodes these are. ``function`` is that of ModelNode.
    """

    def __init__(
        self, edges: Edges, imports: Mapping[str, int], outputs: Mapping[str, Edge] | None = None, function: str = ""
    ) -> None:
        self.edges = edges
        self._function = function
        self._imports = imports
        self.nodes: list[ModelNode] = []
        self.implicit: dict[str, Edge] = {}
        self._outputs = outputs or {}

    def add(
        self, node: NodeProto, kind: OnnxOperator, outputs: Mapping[str, Value], inside: Sequence[GraphNodes]
    ) -> ModelNode:
        """Append a node, whose ``inside`` are the graphs in it, and return it."""
        version, formals, fault, _ = resolved(kind, self._imports)
        inputs = tuple(self._seen(name) if name else None for name in node.input)
        implicit = {name: self._seen(name) for graph in inside for name in graph.implicit}
        made = {name: self._outputs.get(name) or edge_of(value) for name, value in outputs.items()}
        self.edges.update(made)
        pointer, name, is_of_function = place_of(node)
        found = ModelNode(
            pointer,
            name,
            kind.domain,
            kind.type,
            version,
            inputs,
            tuple(made.get(name) for name in node.output),
            formals,
            _attributes(node) if (kind.domain, kind.type) in _queried() else {},
            tuple(implicit.values()),
            tuple(graph.nodes for graph in inside),
            function=self._function or ("model" if is_of_function else ""),
            fault=fault,
        )
        self.nodes.append(found)
        return found

    def _seen(self, name: str) -> Edge:
        """Return the value of a name; one from outside is noted."""
        edge: Edge | None = self.edges.get(name)
        if edge is None:
            return Edge()  # nobody computes it
        if name not in self.edges.maps[0]:
            self.implicit[name] = edge
        return edge


def function_of(schema: Any, node: NodeProto, opset: int, inputs: Sequence[Value]) -> FunctionProto | None:
    """Return the function that replaces a node of an operator in an opset; None if there is none."""
    types = [value.type or TypeProto() for value in inputs]
    try:
        if schema.has_context_dependent_function:
            version = _version_in(schema.context_dependent_function_opset_versions, opset)
            given = [type_.SerializeToString() for type_ in types]
            text = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), given)
        elif schema.has_function:
            text = schema.get_function_with_opset_version(_version_in(schema.function_opset_versions, opset))
        else:
            return None
        return FunctionProto.FromString(text) if text else None
    except Exception:  # of any class: the C++ that builds functions assumes sound nodes
        return None


def _version_in(versions: Iterable[int], opset: int) -> int:
    return max((version for version in versions if version <= opset), default=opset)
