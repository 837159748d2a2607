"""Operators of nodes (domain, type, version of the operator set), and functions that are inlined."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import chain
from typing import Final, NamedTuple

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, defs

from dml_tile.back_ends.kernels import is_runtime_operator
from dml_tile.errors import input_error
from dml_tile.readers.onnx.file import subgraphs
from dml_tile.text import shortened_within

_OTHER: Final = "ai.onnx@"
_OPSET: Final = re.compile("-?[0-9]{1,19}")

MICROSOFT: Final = "com.microsoft"
"""The domain of onnxruntime's own operators."""


class OnnxOperator(NamedTuple):
    """A node's operator; onnx's own domain is "", ``opset`` is None if the model imports none of that domain."""

    domain: str
    type: str
    opset: int | None

    @property
    def since(self) -> int | None:
        """The opset since which the operator has been the same."""
        schema = self.schema
        return schema.since_version if schema else None

    @property
    def schema(self) -> defs.OpSchema | None:
        """onnx's schema of the operator; None if there is none."""
        if self.opset is None:
            return None
        try:
            return defs.get_schema(self.type, self.opset, self.domain)
        except defs.SchemaError:
            return None


def default_opset(imports: Iterable[OperatorSetIdProto]) -> int | None:
    """Return the version of onnx's own operators that is imported."""
    return next((entry.version for entry in imports if entry.domain in ("", "ai.onnx")), None)


def operator(node: NodeProto, opset: int | None) -> OnnxOperator:
    """Return a node's operator in a graph of default opset ``opset``, unless the node was moved there."""
    opset_of_node = node.domain.removeprefix(_OTHER)
    if node.domain.startswith(_OTHER) and _OPSET.fullmatch(opset_of_node):
        return OnnxOperator("", node.op_type, int(opset_of_node))
    return OnnxOperator("" if node.domain == "ai.onnx" else node.domain, node.op_type, opset)


def move(node: NodeProto, source: int | None, target: int | None) -> None:
    """Make a node of one opset mean the same in a graph of another opset.

    If the operator differs, its domain names its opset, so that nothing takes it for the other version.
    """
    here, there = operator(node, source), operator(node, target)
    if not here.domain and here.opset is not None and here.since != there.since:
        set_apart(node, source)


def set_apart(node: NodeProto, opset: int | None) -> None:
    """Name a node's opset in its domain, so that onnx infers nothing; ``operator`` returns the original."""
    if opset is not None and not node.domain.startswith(_OTHER):
        node.domain = f"{_OTHER}{opset}"


DEEPEST: Final = 64
"""The deepest nesting of calls and subgraphs that is read."""

MAX_NODES: Final = 100_000
"""The most nodes that the calls of functions may expand to."""

_LONGEST: Final = 200


ONNX_DOMAINS: Final = frozenset({"", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "ai.onnx.preview.training"})
"""The domains of onnx's operators."""


class NodeBudget:
    """The number of nodes that the calls of a model's functions, and of operators' functions, may still expand to."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def spend(self, nodes: int, call: str) -> None:
        """Raises InputError for more nodes than are left."""
        self._left -= nodes
        if self._left < 0:
            raise input_error(call, f"the calls of functions come to more than {MAX_NODES} nodes")


def inline(model: ModelProto, budget: NodeBudget) -> list[str]:
    """Replace the calls in the model's graph, at any depth, by the functions' nodes; give each node a telling name.

    A name is the call's name and the node's own, with the output's if the node has no name or shares it. The place of
    a node, and its name in the file, become its doc_string. Returns what is to be said of functions with the names of
    operators, which are not used. Raises InputError for calls and subgraphs that are nested too deep, or have too many
    nodes.
    """
    inliner = _Inliner(model, budget)
    inliner.expand_graph(model.graph, inliner.opset, 0)
    del model.functions[:]
    return inliner.unused


def replaced_by(
    function: FunctionProto, call: NodeProto, opset: int, defaults: Iterable[AttributeProto], budget: NodeBudget
) -> list[NodeProto]:
    """Return the nodes of the function of an operator of onnx's, whose attributes have these defaults.

    Raises InputError as ``inline`` does.
    """
    function.attribute_proto.extend(defaults)
    return _Inliner(ModelProto(opset_import=[OperatorSetIdProto(version=opset)]), budget).body(function, call)


class NodePlace(NamedTuple):
    """A node's place by numbers and names (``5/FUNCTION/0``), its name in the file, and whether a function has it."""

    pointer: str
    name: str
    is_of_function: bool


_OF_FUNCTION: Final = "\f"


def place_of(node: NodeProto) -> NodePlace:
    """Return the place of a node that ``inline`` has seen."""
    pointer, _, name = node.doc_string.partition("\n")
    return NodePlace(pointer.removeprefix(_OF_FUNCTION), name, pointer.startswith(_OF_FUNCTION))


def _keep_places(nodes: Iterable[NodeProto], where: str, *, of_function: bool, first: int = 0) -> None:
    mark = _OF_FUNCTION if of_function else ""
    for i, node in enumerate(nodes, first):
        node.doc_string = f"{mark}{where}{i}\n{place(node.name)}"


def place(*steps: str) -> str:
    """Return the steps as a path, cut in the middle if it is long."""
    return shortened_within("/".join(filter(None, steps)), _LONGEST)


class _ValueNames(dict[str, str]):
    """The model's names for a function's values: the call's names, and the function's own with a prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __missing__(self, name: str) -> str:
        return self._prefix + name if name else ""


class _Inliner:
    def __init__(self, model: ModelProto, budget: NodeBudget) -> None:
        self.opset = default_opset(model.opset_import)
        self._functions: dict[tuple[str, str, str], FunctionProto] = {}
        self.unused: list[str] = []
        for function in model.functions:
            domain = "" if function.domain == "ai.onnx" else function.domain
            if domain in ONNX_DOMAINS or is_runtime_operator(domain, function.name):
                name = place(domain or "ai.onnx", function.name)
                self.unused.append(f"the function {name} has an operator's domain; runtimes take the operator instead")
            else:
                self._functions[function.domain, function.name, function.overload] = function
        self._calls = 0
        self._budget = budget

    def expand_graph(
        self, graph: GraphProto, opset: int | None, depth: int, where: str = "", *, of_function: bool = False
    ) -> None:
        _keep_places(graph.node, where, of_function=of_function)
        _name(graph.node)
        self._expand_subgraphs(graph.node, opset, depth)
        if opset != self.opset or any(map(self._called, graph.node)):
            nodes = list(self._expanded(graph.node, opset, depth))
            del graph.node[:]
            graph.node.extend(nodes)

    def _expand_subgraphs(self, nodes: Iterable[NodeProto], opset: int | None, depth: int) -> None:
        for node in nodes:
            for attribute, graph in subgraphs(node):
                _require_depth(depth, place(node.name, attribute))
                pointer, _, of_function = place_of(node)
                self.expand_graph(graph, opset, depth + 1, f"{pointer}/{attribute}/", of_function=of_function)

    def _expanded(self, nodes: Iterable[NodeProto], opset: int | None, depth: int) -> Iterator[NodeProto]:
        for node in nodes:
            function = self._called(node)
            if function is None:
                move(node, opset, self.opset)
                yield node
            else:
                _require_depth(depth, node.name)
                own = default_opset(function.opset_import)
                yield from self._expanded(self.body(function, node, depth), own, depth + 1)

    def _called(self, node: NodeProto) -> FunctionProto | None:
        return self._functions.get((node.domain, node.op_type, node.overload))

    def body(self, function: FunctionProto, call: NodeProto, depth: int = 0) -> list[NodeProto]:
        """Return the function's nodes with the call's values and attributes; other values get unique names."""
        self._calls += 1
        values = _ValueNames(f"#{self._calls}/")
        for i, name in enumerate(function.input):
            values[name] = call.input[i] if i < len(call.input) else ""
        passed_on = []
        for name, given in zip(function.output, call.output, strict=False):
            if given and name in values:  # an input, or an output that is given twice
                passed_on.append((name, given))
            elif given:
                values[name] = given
        attributes = {attribute.name: attribute for attribute in chain(function.attribute_proto, call.attribute)}
        body = GraphProto(node=function.node)
        where = f"{place_of(call).pointer}/{place(function.name)}/"
        _keep_places(body.node, where, of_function=True)
        self._adapt(body, values, attributes, call.name)
        for name, given in passed_on:
            body.node.add(op_type="Identity", input=[values[name]], output=[given], name=place(call.name, name))
        first = len(function.node)
        _keep_places(body.node[first:], where, of_function=True, first=first)
        self._expand_subgraphs(body.node, default_opset(function.opset_import), depth + 1)
        return list(body.node)

    def _adapt(
        self, graph: GraphProto, values: _ValueNames, attributes: Mapping[str, AttributeProto], call: str = ""
    ) -> None:
        self._budget.spend(len(graph.node), call)
        _name(graph.node, call)
        for value in chain(graph.input, graph.output, graph.value_info, graph.initializer):
            value.name = values[value.name]
        for sparse in graph.sparse_initializer:
            sparse.values.name = values[sparse.values.name]
        for node in graph.node:
            node.input[:] = [values[name] for name in node.input]
            node.output[:] = [values[name] for name in node.output]
            for _, inner in subgraphs(node):
                self._adapt(inner, values, attributes)
            _fill_in(node, attributes)


def _fill_in(node: NodeProto, attributes: Mapping[str, AttributeProto]) -> None:
    """Give a function's node the call's attributes that it refers to, as far as the call has them."""
    filled = []
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            filled.append(attribute)
        elif attribute.ref_attr_name in attributes:
            given = deepcopy(attributes[attribute.ref_attr_name])
            given.name = attribute.name
            filled.append(given)
    del node.attribute[:]
    node.attribute.extend(filled)


def _name(nodes: Sequence[NodeProto], call: str = "") -> None:
    counts = Counter(node.name for node in nodes)
    for node in nodes:
        name = node.name or node.op_type
        if not node.name or counts[node.name] > 1:
            name = f"{name}->{next(filter(None, node.output), '')}"
        node.name = place(call, name)


def _require_depth(depth: int, where: str) -> None:
    if depth >= DEEPEST:
        raise input_error(where, f"is nested more than {DEEPEST} deep")
