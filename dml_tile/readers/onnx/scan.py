"""Scans a model's nodes once, in their order: types and sizes of values, the Tiles, and what placing a node takes.

In a model with Tiles, shapes and repeats are followed element by element; in another, onnx's inference says the types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from onnx import GraphProto, NodeProto, TensorProto, TypeProto, helper

from dml_tile.back_ends.placement import Edge, Gone, ModelNode
from dml_tile.errors import ContradictoryDataError, InputError
from dml_tile.findings import Finding
from dml_tile.readers.model_tile import ValueOrigin, ValueSource
from dml_tile.readers.onnx.file import dense, small, subgraphs
from dml_tile.readers.onnx.folding import ConstantFolding
from dml_tile.readers.onnx.functions import NodeBudget, OnnxOperator, operator, place, replaced_by
from dml_tile.readers.onnx.inference import (
    LoopTypes,
    SizesInFile,
    body_of,
    contradiction,
    inferred,
    is_kept,
    loop_carried,
    take_loop_types,
    unbelieved,
    without_shape,
)
from dml_tile.readers.onnx.nodes import Edges, GraphNodes, Seen, edge_of, function_of, resolved, types_by_formals
from dml_tile.readers.onnx.onnxruntime import (
    NOTHING_AROUND,
    UNUSED,
    Surroundings,
    is_folded,
    not_taken,
    removed_nodes,
    sources_of_requantised,
    surroundings_of_tiles,
    unneeded_nodes,
    why_folded,
)
from dml_tile.readers.onnx.values import (
    Value,
    common,
    dimensions,
    input_origins,
    is_made_up,
    merged,
    node_origin,
    origin_of_size,
    with_origins,
)

Scope: TypeAlias = Seen[Value]

_UNKNOWN: Final = Value()


class FoundTile(NamedTuple):
    """A Tile: its place, node, operator and known inputs, and why onnxruntime never runs it, if it does not."""

    pointer: str
    node: NodeProto
    operator: OnnxOperator
    inputs: Sequence[Value]
    gone: Gone | None
    around: Surroundings = NOTHING_AROUND


class ScannedGraph(NamedTuple):
    """A graph: its Tiles at any depth, its known values, and its nodes."""

    tiles: list[FoundTile]
    values: Scope
    nodes: GraphNodes


class Inside(NamedTuple):
    """The graphs inside a node, and the node's outputs as these graphs tell them."""

    graphs: Sequence[ScannedGraph] = ()
    outputs: Mapping[str, Value] = {}


@dataclass(frozen=True)
class GraphScan:
    """Remembers what is known of a model's values.

    ``loop_types`` are the types that Loops' bodies declare, by the bodies' names, ``sizes_in_file`` the sizes that the
    file declares. ``imports`` are the opsets of other domains than onnx's own, ``overridable`` the numbers of elements
    of inputs with a default. ``function`` is that of ModelNode, ``budget`` what functions' nodes are counted against.
    """

    folder: Path
    opset: int | None
    loop_types: Mapping[str, LoopTypes]
    sizes_in_file: SizesInFile
    imports: Mapping[str, int] = field(default_factory=dict)
    overridable: Mapping[str, int] = field(default_factory=dict)
    has_tiles: bool = False
    function: str = ""
    budget: NodeBudget = field(default_factory=NodeBudget)
    origins_of_sizes: dict[str, ValueOrigin] = field(default_factory=dict, init=False)
    """The origins of sizes, by the names that the model or onnx's inference gives them."""
    contradictions: dict[str, str] = field(default_factory=dict, init=False)
    """Contradictions of the sizes that the file states of values, by the values' names."""
    wrong_data: dict[Finding, None] = field(default_factory=dict, init=False)
    """Problems of tensors with other data than their types and shapes say."""
    _folding: ConstantFolding = field(default_factory=ConstantFolding, init=False)
    _sources_of_requantised: dict[str, list[str]] = field(default_factory=dict, init=False)
    _changing: set[str] = field(default_factory=set, init=False)
    """The bodies, by name, that return loop-carried values of other shapes than they begin with."""

    def scanned(self, graph: GraphProto) -> ScannedGraph:
        """Scan the model's graph: its Tiles come in the order in which they run."""
        typed = ((value, _typed(value.type, *input_origins(value.name))) for value in graph.input)
        inputs = {value.name: replace(known, early_type=known.type) for value, known in typed}
        return self._graph(graph, Scope(), Edges(), inputs, "", None)

    def _graph(
        self,
        graph: GraphProto,
        outer: Scope,
        outer_edges: Edges,
        inputs: Mapping[str, Value],
        where: str,
        skipped: Gone | None,
        declared: Mapping[str, TypeProto] | None = None,
        outputs: Mapping[str, Edge] | None = None,
    ) -> ScannedGraph:
        """Scan a graph; ``skipped`` is why onnxruntime never runs it, if it does not."""
        scope, edges = outer.new_child(), outer_edges.new_child()
        for value in chain(graph.value_info, graph.output):
            if value.name not in outer:
                scope[value.name] = _typed(value.type)
        for name, type_ in (declared or {}).items():
            scope[name] = Value(merged(scope.get(name, _UNKNOWN).type, type_))
        scope.update(inputs)
        edges.update((name, self._input_edge(name, value)) for name, value in inputs.items())
        tensors = chain(graph.initializer, map(dense, graph.sparse_initializer))
        for name, known in ((tensor.name, self._tensor_value(tensor)) for tensor in tensors):
            scope[name], edges[name] = known, edge_of(known)
        self._sources_of_requantised.update(sources_of_requantised(graph))
        nodes = GraphNodes(edges, self.imports, outputs, self.function)
        found: list[tuple[int, FoundTile]] = []
        kinds: list[OnnxOperator] = []
        for i, node in enumerate(graph.node):
            kinds.append(kind := operator(node, self.opset))
            given = [scope.get(name, _UNKNOWN) for name in node.input]
            inside = self._inside(node, kind, given, scope, edges, where, skipped)
            made = dict(self._outputs(node, kind, given, inside.outputs, scope))
            scope.update(made)
            placed = nodes.add(node, kind, made, [graph.nodes for graph in inside.graphs])
            placed.body = self._body(placed, node, kind, given, nodes)
            placed.gone = skipped or why_folded(kind, given, made)
            found += [(i, tile) for graph in inside.graphs for tile in graph.tiles]
            if not kind.domain and kind.type == "Tile":
                found.append((i, FoundTile(place(where, node.name), node, kind, given, placed.gone)))
        around = surroundings_of_tiles(graph, kinds, scope) if self.has_tiles else {}
        for i in unneeded_nodes(graph, scope):
            nodes.nodes[i].gone = nodes.nodes[i].gone or UNUSED
        for i, reason in removed_nodes(graph, kinds, scope, is_subgraph=bool(where)).items():
            nodes.nodes[i].gone = nodes.nodes[i].gone or reason
        gone = [None if node.gone and node.gone.is_unwrapped else node.gone for node in nodes.nodes]
        tiles = [tile._replace(gone=tile.gone or gone[i], around=around.get(i, tile.around)) for i, tile in found]
        return ScannedGraph(tiles, scope, nodes)

    def _input_edge(self, name: str, value: Value) -> Edge:
        edge = edge_of(value)
        if (elements := self.overridable.get(name)) is None:
            edge.is_input = True
        else:
            edge.is_initialiser, edge.elements = True, elements
        return edge

    def _body(
        self, placed: ModelNode, node: NodeProto, kind: OnnxOperator, inputs: Sequence[Value], nodes: GraphNodes
    ) -> Callable[[], Sequence[ModelNode]] | None:
        """Return what finds the nodes of the operator's own function; None if it has none."""
        schema = resolved(kind, self.imports).schema
        if schema is None or not (schema.has_function or schema.has_context_dependent_function):
            return None

        @cache
        def body() -> Sequence[ModelNode]:
            opset = kind.opset or 1
            function = function_of(schema, node, opset, inputs)
            if function is None:
                return ()
            defaults = [each.default_value for each in schema.attributes.values() if each.default_value.name]
            graph = GraphProto(node=replaced_by(function, node, opset, defaults, self.budget))
            types = take_loop_types(graph)
            scan = GraphScan(self.folder, self.opset, types, {}, self.imports, function="onnx", budget=self.budget)
            given = {name: value for name, value in zip(node.input, inputs, strict=True) if name}
            edges = {name: edge for name, edge in zip(node.input, placed.inputs, strict=True) if edge}
            outputs = {name: edge for name, edge in zip(node.output, placed.outputs, strict=True) if edge}
            return scan._graph(graph, Scope(given), Edges(edges), {}, "", None, outputs=outputs).nodes.nodes

        return body

    def _inside(
        self,
        node: NodeProto,
        kind: OnnxOperator,
        inputs: Sequence[Value],
        scope: Scope,
        edges: Edges,
        where: str,
        skipped: Gone | None,
    ) -> Inside:
        """Scan the graphs inside a node."""
        attributes = list(subgraphs(node))
        if not attributes:
            return _NOTHING_INSIDE
        where = place(where, node.name)
        if not kind.domain and kind.type == "If":
            return self._if(node, inputs, scope, edges, where, skipped)
        if not kind.domain and kind.type == "Loop":
            return self._loop(node, kind, scope, edges, where, skipped)
        origin = node_origin(node, kind)
        return Inside(
            [
                self._graph(graph, scope, edges, _subgraph_inputs(graph, origin), place(where, attribute), skipped)
                for attribute, graph in attributes
            ]
        )

    def _if(
        self, node: NodeProto, inputs: Sequence[Value], scope: Scope, edges: Edges, where: str, skipped: Gone | None
    ) -> Inside:
        condition = inputs[0].constant if inputs else None
        taken = None
        if condition is not None and condition.size == 1:
            taken = "then_branch" if condition.any() else "else_branch"
        found: list[ScannedGraph] = []
        branches: dict[str, list[Value]] = {}
        for attribute, graph in subgraphs(node):
            is_skipped = taken is not None and attribute != taken and inputs[0].is_folded
            reason = skipped or (not_taken(node, attribute) if is_skipped else None)
            inside = self._graph(graph, scope, edges, {}, place(where, attribute), reason)
            found.append(inside)
            branches[attribute] = [inside.values.get(value.name, _UNKNOWN) for value in graph.output]
        if taken in branches:
            outputs = branches[taken]
            if not inputs[0].is_folded:
                outputs = [replace(value, is_folded=False, early_type=None) for value in outputs]
        elif len(branches) == 2:
            pairs = zip(*branches.values(), strict=False)
            outputs = [
                Value(common(one.type, other.type), early_type=common(one.early_type, other.early_type))
                for one, other in pairs
            ]
        else:
            outputs = []
        return Inside(found, dict(zip(node.output, outputs, strict=False)))

    def _loop(
        self, node: NodeProto, kind: OnnxOperator, scope: Scope, edges: Edges, where: str, skipped: Gone | None
    ) -> Inside:
        """Scan a Loop's body: again, without shapes, if an iteration changes one, but never from then on."""
        body = body_of(node)
        if body is None:
            return _NOTHING_INSIDE
        where, declared = place(where, "body"), self.loop_types[body.name]
        names = loop_carried(node, body)
        types = {
            each.inner: merged(scope.get(each.initial, _UNKNOWN).type, declared[each.inner]) or TypeProto()
            for each in names
        }
        inputs = _subgraph_inputs(body, node_origin(node, kind))
        if body.name not in self._changing:
            found = self._graph(body, scope, edges, _retyped(inputs, types), where, skipped, declared)
            updated = [found.values.get(each.updated, _UNKNOWN).type for each in names]
            if not is_kept(types.values(), updated):
                self._changing.add(body.name)
        if body.name in self._changing:
            types = {name: without_shape(type_) for name, type_ in types.items()}
            found = self._graph(body, scope, edges, _retyped(inputs, types), where, skipped)
        return Inside([found], {each.output: Value(types[each.inner]) for each in names if each.output})

    def _outputs(
        self, node: NodeProto, kind: OnnxOperator, inputs: Sequence[Value], values: Mapping[str, Value], scope: Scope
    ) -> Iterator[tuple[str, Value]]:
        """Yield the known value of each output of a node; ``values`` and the scope already have some."""
        if self._is_typed_already(node, kind, inputs, scope):
            for name in filter(None, node.output):
                yield name, Value(type_ := scope[name].type, early_type=type_)
            return
        given = {name: value for name, value in zip(node.input, inputs, strict=True) if name}
        types = inferred(node, kind, given)
        if any(name and name not in types for name in node.output):
            types = {**types_by_formals(node, resolved(kind, self.imports), inputs), **types}
        early_types = self._early_types(node, kind, given, types)
        constants = self._constant_values(node, kind)
        values = constants or values or self._folding.folded(node, kind, inputs, types)
        names = self._sources_of_requantised.get(next(iter(node.output), ""))
        folded_from = given if names is None else {name: scope.get(name, _UNKNOWN) for name in names if name}
        folds = bool(constants) or is_folded(node, kind, resolved(kind, self.imports), folded_from, early_types)
        origins = self.origins_of_sizes
        doubted = unbelieved(node, kind, inputs)
        for name in filter(None, node.output):
            value = values.get(name, _UNKNOWN)
            inferred_type = value.type or types.get(name)
            if wrong := contradiction(node, name, inferred_type, self.sizes_in_file):
                self.contradictions.setdefault(name, wrong)
            type_ = merged(inferred_type, scope.get(name, _UNKNOWN).type)
            early = merged(value.early_type or early_types.get(name), self._as_in_file(name, type_))
            value = replace(value, type=type_, is_folded=folds or value.is_folded, early_type=type_ if folds else early)
            if name in doubted:
                value = replace(value, sizes_origin=node_origin(node, kind))
            value = with_origins(_explained(value, inputs), node, kind, inputs, origins)
            for i, size in enumerate((value.type and dimensions(value.type)) or ()):
                if is_made_up(size):
                    origins.setdefault(str(size), origin_of_size(value, i, inputs, origins))
            yield name, value

    def _is_typed_already(self, node: NodeProto, kind: OnnxOperator, inputs: Sequence[Value], scope: Scope) -> bool:
        """Return True if onnx's inference of the whole model has all that is wanted of a node's outputs."""
        if self.has_tiles or kind.type in _MEASURING or all(value.is_folded for value in inputs):
            return False
        return all(scope.get(name, _UNKNOWN).type is not None for name in node.output if name)

    def _early_types(
        self, node: NodeProto, kind: OnnxOperator, inputs: Mapping[str, Value], types: Mapping[str, TypeProto]
    ) -> Mapping[str, TypeProto]:
        """Return the outputs' types by what onnxruntime knows of the inputs; ``types`` are by all that is known."""
        early = {
            name: Value(value.early_type, value.elements if value.is_folded else None) for name, value in inputs.items()
        }
        pairs = ((early[name], value) for name, value in inputs.items())
        knows_all = all(each.type == value.type and each.elements is value.elements for each, value in pairs)
        return types if knows_all else inferred(node, kind, early)

    def _as_in_file(self, name: str, type_: TypeProto | None) -> TypeProto | None:
        """Return a value's type with the sizes that the file states of it, if any."""
        sizes = self.sizes_in_file.get(name)
        return helper.make_tensor_type_proto(type_.tensor_type.elem_type, sizes) if type_ and sizes else None

    def _tensor_value(self, tensor: TensorProto) -> Value:
        type_ = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        try:
            values = small(tensor, self.folder)
        except InputError as error:
            if isinstance(error, ContradictoryDataError):
                self.wrong_data.setdefault(error.problems[0], None)
            return Value(type_, unread=str(error), is_folded=True, early_type=type_)
        origin = ValueOrigin(source=ValueSource("tensor", place(tensor.name)))
        return Value(type_, values, is_folded=True, early_type=type_, elements_origin=origin)

    def _constant_values(self, node: NodeProto, kind: OnnxOperator) -> Mapping[str, Value]:
        """Return the value of a Constant by its tensor; nothing for another node, or without a tensor."""
        if kind.domain or kind.type != "Constant":
            return {}
        tensors = [attribute.t for attribute in node.attribute if attribute.HasField("t")]
        sparse = [attribute.sparse_tensor for attribute in node.attribute if attribute.HasField("sparse_tensor")]
        tensors += map(dense, sparse)
        return {name: self._tensor_value(tensor) for name, tensor in zip(node.output, tensors, strict=False)}


_NOTHING_INSIDE: Final = Inside()
_MEASURING: Final = frozenset({"Shape", "Size"})
"""Operators whose result onnxruntime has before it runs a model if it knows the input's sizes."""


def _typed(
    type_: TypeProto, elements: ValueOrigin = _UNKNOWN.elements_origin, sizes: ValueOrigin = _UNKNOWN.sizes_origin
) -> Value:
    return Value(type_ if type_.WhichOneof("value") else None, elements_origin=elements, sizes_origin=sizes)


def _subgraph_inputs(graph: GraphProto, origin: ValueOrigin) -> dict[str, Value]:
    """Return the inputs of a graph inside a node, whose values are unknown."""
    return {value.name: _typed(value.type, origin, origin) for value in graph.input}


def _retyped(values: Mapping[str, Value], types: Mapping[str, TypeProto]) -> dict[str, Value]:
    """Return the values with the types that ``types`` has for them."""
    return {name: replace(value, type=types.get(name, value.type)) for name, value in values.items()}


def _explained(value: Value, inputs: Sequence[Value]) -> Value:
    """Return the value; if external data are missing for it, with the reason why they were not read."""
    unread = value.unread or next((each.unread for each in inputs if each.unread), "")
    is_run_time = any(each.constant is None and not each.unread for each in inputs)
    is_known = value.constant is not None or (value.is_static and is_run_time)
    return replace(value, unread="" if is_known else unread)
