"""Replaces the calls of a model's functions, and of operators' functions, by their nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Final, TypeAlias

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto

from dml_tile.back_ends.described_node import NodePlace
from dml_tile.back_ends.kernels import Version, version_text
from dml_tile.back_ends.placement import NAMELESS, Placement, Reason
from dml_tile.errors import input_error
from dml_tile.readers.onnx.file import ANY, nodes, subgraphs
from dml_tile.readers.onnx.nodes import NodeTable, default_opset, place
from dml_tile.readers.onnx.operators import is_operator

DEEPEST: Final = 64
"""The deepest nesting of calls and subgraphs that is read."""

MAX_NODES: Final = 100_000
"""The most nodes that the calls of a model's functions, and of operators' functions, may expand to."""

MAX_BYTES: Final = 2**27
"""The most bytes of functions, and of attributes given to them, that these calls may copy."""

OVERLOADS_SINCE: Final = (1, 27)
"""The release of ONNX Runtime from which on a call runs the overload that it names, as measured."""

_Imports: TypeAlias = Iterable[OperatorSetIdProto]

_IN_NOTHING: Final = NodePlace("")
"""The place of the model's own graph, which no node holds."""


class _ValueNames(dict[str, str]):
    """The model's names for a function's values: the call's names, and the function's own with a prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __missing__(self, name: str) -> str:
        return self._prefix + name if name else ""


class Inliner:
    """Replaces calls in the graphs of one model, which has ``MAX_NODES`` and ``MAX_BYTES`` for them together.

    A node gets a telling name: the call's and its own, with the output's if it has none or shares it. The ``table`` has
    its place and its name in the file; where a function takes in a graph of its call, its nodes keep theirs.
    ``unused`` is what is to be said of functions with the names of operators, which are not used. ``faults`` are the
    first of each kind, by the release from which on no session loads with it, and the kind. Raises InputError for calls
    and subgraphs that are nested too deep, or have too much in them.
    """

    def __init__(self, model: ModelProto, *, by_overload: bool) -> None:
        protos = chain.from_iterable(map(nodes, (model.graph, *model.functions)))
        self.table = NodeTable(protos, default_opset(model.opset_import))
        self.unused: list[str] = []
        self.faults: dict[tuple[Version, str], Reason] = {}
        self._by_overload = by_overload
        self._functions: dict[tuple[str, str, str], FunctionProto] = {}
        for function in model.functions:
            domain = "" if function.domain == "ai.onnx" else function.domain
            if is_operator(domain, function.name):
                name = place(domain or "ai.onnx", function.name)
                self.unused.append(f"the function {name} has an operator's domain; runtimes take the operator instead")
            else:
                overload = function.overload if by_overload else ""
                self._functions[function.domain, function.name, overload] = function
        self._calls = 0
        self._nodes_left, self._bytes_left = MAX_NODES, MAX_BYTES

    def expand_graph(
        self, graph: GraphProto, imports: _Imports, depth: int = 0, where: NodePlace = _IN_NOTHING
    ) -> None:
        """Replace the calls in a graph at any depth; ``where`` is what it is in, whose pointer ends with a slash."""
        opset = default_opset(imports)
        self._find_faults(graph.node, imports, where)
        self._name(graph.node, where)
        if not depth:
            _sort(graph)
        self._expand_subgraphs(graph.node, imports, depth)
        if opset != self.table.opset or any(map(self._called, graph.node)):
            nodes = list(self._expanded(graph.node, opset, depth))
            del graph.node[:]
            graph.node.extend(nodes)

    def _find_faults(self, nodes: Sequence[NodeProto], imports: _Imports, where: NodePlace) -> None:
        """Find faults of nodes as the file has them, as measured with wheels of 1.9 to 1.24."""
        nodes = [node for node in nodes if not self.table.place_of(node)]  # others were seen where their call stands
        is_function, domains = where.function, {entry.domain for entry in imports}
        names = Counter(node.name for node in nodes if node.op_type != "Constant")
        for node in nodes:
            function, is_constant = self._called(node), node.op_type == "Constant"
            if function and function.overload != node.overload:
                name = place(node.domain, node.op_type)
                text = (
                    f"{name}: onnxruntime before {version_text(OVERLOADS_SINCE)} runs its last overload for all calls"
                )
                advice = "give each overload a name of its own"
                self.faults.setdefault((ANY, name), Reason(Placement.NONE, "ORT-MODEL-overload", text, advice))
            is_imported = node.domain in domains or self.table.is_apart(node) or not (function or is_function)
            is_known_call = function is None or (
                len(node.input) <= len(function.input) and len(node.output) == len(function.output)
            )
            is_twice = len({each.name for each in node.attribute}) < len(node.attribute)
            of_if = {len(graph.output) for _, graph in subgraphs(node)} if node.op_type == "If" else set()
            for is_wrong, since, text in (
                (not is_imported, ANY, "is of a domain that is not imported where it stands"),
                (not is_known_call, ANY, "has more inputs, or other outputs, than its function"),
                (node.name and names[node.name] > 1 and not is_constant, ANY, "has the name of another node"),
                (of_if - {len(node.output)}, ANY, "has other outputs than its graphs"),
                (is_constant and len(node.output) != 1, (1, 19), "has more or fewer outputs than one"),
                (
                    is_twice and not is_function and not is_constant,
                    ANY if where.pointer else (1, 18),
                    "has an attribute twice",
                ),
            ):
                if is_wrong:
                    named = f"{place(node.domain, node.op_type) or NAMELESS} {place(node.name)!r} {text}"
                    self.faults.setdefault((since, text), Reason(Placement.NONE, "ORT-MODEL-graph", named))

    def _expand_subgraphs(self, nodes: Iterable[NodeProto], imports: _Imports, depth: int) -> None:
        for node in nodes:
            for attribute, graph in subgraphs(node):
                _require_depth(depth, place(node.name, attribute))
                within = self.table.place_of(node) or _IN_NOTHING
                where = within._replace(pointer=f"{place(within.pointer, attribute)}/")
                self.expand_graph(graph, imports, depth + 1, where)

    def _expanded(self, nodes: Iterable[NodeProto], opset: int | None, depth: int) -> Iterator[NodeProto]:
        for node in nodes:
            function = self._called(node)
            if function is None:
                self.table.move(node, opset)
                yield node
            else:
                _require_depth(depth, node.name)
                own = default_opset(function.opset_import)
                yield from self._expanded(self.body(function, node, depth), own, depth + 1)

    def _called(self, node: NodeProto) -> FunctionProto | None:
        return self._functions.get((node.domain, node.op_type, node.overload if self._by_overload else ""))

    def body(self, function: FunctionProto, call: NodeProto, depth: int = 0) -> list[NodeProto]:
        """Return the function's nodes with the call's values and attributes; other values get unique names."""
        self._calls += 1
        self._spend(call.name, copied=function.ByteSize())
        values = _ValueNames(f"#{self._calls}/")
        values |= {name: name for name in used_from_outside(call)}
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
        self._spend(call.name, nodes=len(passed_on))
        called = self.table.place_of(call) or _IN_NOTHING
        where = NodePlace(f"{place(called.pointer, function.name)}/", function="model")
        self._find_faults(body.node, function.opset_import, where)
        self._adapt(body, values, attributes, where, call.name)
        for i, (name, given) in enumerate(passed_on, len(function.node)):
            own = place(call.name, name)
            added = body.node.add(op_type="Identity", input=[values[name]], output=[given], name=own)
            self.table.put(added, where._replace(pointer=f"{where.pointer}{i}", name=own))
        self._expand_subgraphs(body.node, function.opset_import, depth + 1)
        return list(body.node)

    def _adapt(
        self,
        graph: GraphProto,
        values: _ValueNames,
        attributes: Mapping[str, AttributeProto],
        where: NodePlace | None = None,
        call: str = "",
    ) -> None:
        self._spend(call, nodes=len(graph.node))
        self._name(graph.node, where, call)
        for value in chain(graph.input, graph.output, graph.value_info, graph.initializer):
            value.name = values[value.name]
        for sparse in graph.sparse_initializer:
            sparse.values.name = values[sparse.values.name]
        for node in graph.node:
            node.input[:] = [values[name] for name in node.input]
            node.output[:] = [values[name] for name in node.output]
            for _, inner in subgraphs(node):
                self._adapt(inner, values, attributes)
            self._fill_in(node, attributes, call)

    def _fill_in(self, node: NodeProto, attributes: Mapping[str, AttributeProto], call: str) -> None:
        """Give a function's node the call's attributes that it refers to, as far as the call has them."""
        filled = []
        for attribute in node.attribute:
            given = attributes.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
            if given is not None:
                if given is not attribute:
                    self._spend(call, nodes=sum(1 for _ in nodes(given.g)), copied=given.ByteSize())
                    given = deepcopy(given)
                    for inner in nodes(given.g):  # another node of the function may have this graph too
                        self.table.put(inner, None)
                given.name = attribute.name
                filled.append(given)
        del node.attribute[:]
        node.attribute.extend(filled)

    def _name(self, nodes: Sequence[NodeProto], where: NodePlace | None, call: str = "") -> None:
        counts = Counter(node.name for node in nodes)
        for i, node in enumerate(nodes):
            if where is not None and not self.table.place_of(node):
                self.table.put(node, where._replace(pointer=f"{where.pointer}{i}", name=place(node.name)))
            name = node.name or node.op_type
            if not node.name or counts[node.name] > 1:
                name = f"{name}->{next(filter(None, node.output), '')}"
            node.name = place(call, name)

    def _spend(self, call: str, *, nodes: int = 0, copied: int = 0) -> None:
        """Take nodes and copied bytes off the budget. Raises InputError if that is too little."""
        self._nodes_left -= nodes
        self._bytes_left -= copied
        if self._nodes_left < 0:
            raise input_error(call, f"the calls of functions come to more than {MAX_NODES} nodes")
        if self._bytes_left < 0:
            raise input_error(call, f"the calls of functions copy more than {MAX_BYTES} bytes")


def used_from_outside(node: NodeProto) -> set[str]:
    """Return the values that the graphs inside a node use and do not make."""
    found = set()
    for _, graph in subgraphs(node):
        made = {each.name for each in chain(graph.input, graph.initializer)}
        made |= {each.values.name for each in graph.sparse_initializer}
        for inner in graph.node:
            found |= {*inner.input, *used_from_outside(inner)} - made
            made.update(inner.output)
        found |= {each.name for each in graph.output} - made
    return found


def _sort(graph: GraphProto) -> None:
    """Put each node behind those that make what it uses, as ONNX Runtime does; not if it uses what follows from it."""
    makers = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    inside = ([each.input for _, inner in subgraphs(node) for each in nodes(inner)] for node in graph.node)
    used = (chain(node.input, *inputs) for node, inputs in zip(graph.node, inside, strict=True))
    before = {i: {makers[name] for name in names if name in makers} for i, names in enumerate(used)}
    if any(max(each, default=-1) >= i for i, each in before.items()):
        with suppress(CycleError):
            ordered = [graph.node[i] for i in TopologicalSorter(before).static_order()]
            del graph.node[:]
            graph.node.extend(ordered)


def _require_depth(depth: int, where: str) -> None:
    if depth >= DEEPEST:
        raise input_error(where, f"is nested more than {DEEPEST} deep")
