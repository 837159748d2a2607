"""Scans a model's nodes once, in their order: types and sizes of values, the Tiles, and what placing a node takes.

In a model with Tiles, shapes and repeats are followed element by element; in another, onnx's inference says the types.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from typing import Any, Final, NamedTuple

from onnx import GraphProto, ModelProto, SparseTensorProto, TensorProto, TypeProto, helper

from dml_tile.back_ends.described_node import NodePlace
from dml_tile.back_ends.placement import Edge, Gone, ModelNode, Placement, Reason
from dml_tile.errors import InputError
from dml_tile.findings import Finding
from dml_tile.readers.model_tile import NO_ORIGIN, Dimension, ValueOrigin, ValueSource
from dml_tile.readers.onnx.early_folding import is_folded, why_folded
from dml_tile.readers.onnx.file import Lacking, Tensors, elements_of, of_elements, subgraphs
from dml_tile.readers.onnx.folding import ConstantFolding
from dml_tile.readers.onnx.functions import Inliner
from dml_tile.readers.onnx.fusions import note_fusions
from dml_tile.readers.onnx.inference import inferred, is_kept, loop_carried, take_loop_types, unbelieved, with_types
from dml_tile.readers.onnx.kernels import kernel_node
from dml_tile.readers.onnx.matches import Graph
from dml_tile.readers.onnx.nodes import Node, place
from dml_tile.readers.onnx.operators import (
    Resolved,
    attributes_of,
    depends_on_unknown_type,
    edge_of,
    facts_of,
    fits,
    function_of,
    operator_of,
    types_by_formals,
    version_at,
)
from dml_tile.readers.onnx.origins import with_origins
from dml_tile.readers.onnx.possible_fusions import note_possible_fusions
from dml_tile.readers.onnx.quantised_groups import note_quantised_groups
from dml_tile.readers.onnx.removals import Uses, drop, note_quantised_tiles
from dml_tile.readers.onnx.sizes import contradiction, sizes_in_file
from dml_tile.readers.onnx.transposes import note_transposed_tiles
from dml_tile.readers.onnx.values import UNKNOWN, Value, common, merged, with_sizes, without_shape


class Scope(ChainMap[str, Value]):
    """The values that a graph sees, by name: its own, and those outside."""

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of this name; ChainMap's own takes three times as long."""
        for values in self.maps:
            if key in values:
                return values[key]
        return default


class ScannedGraph(NamedTuple):
    """A graph: its Tiles at any depth with their places, its known values, its nodes, and what they use from outside.

    ``fault`` is one of the graph as a whole.
    """

    tiles: list[tuple[str, Node]]
    values: Scope
    nodes: list[ModelNode]
    implicit: dict[str, Edge]
    fault: Reason | None


@dataclass(frozen=True)
class GraphScan:
    """Remembers a model's values as far as they are known.

    ``imports`` are the opsets of other domains than onnx's own, ``overridable`` the defaults of inputs.
    In the nodes of an operator's ``function``, which has the meaning of NodePlace's, ``outputs`` are the operator's.
    """

    tensors: Tensors
    inliner: Inliner
    imports: Mapping[str, int]
    overridable: Mapping[str, TensorProto] = field(default_factory=dict)
    has_tiles: bool = False
    function: str = ""
    outputs: Mapping[str, Edge | None] = field(default_factory=dict)
    folding: ConstantFolding = field(default_factory=ConstantFolding)
    """One for a model, whose bounds it keeps."""
    origins_of_sizes: dict[str, ValueOrigin] = field(default_factory=dict, init=False)
    """The origins of sizes, by the names that the model or onnx's inference gives them."""
    contradictions: dict[str, str] = field(default_factory=dict, init=False)
    """Contradictions of the sizes that the file states of values, by the values' names."""
    wrong_data: dict[str, Finding] = field(default_factory=dict, init=False)
    """Problems of tensors with other data than their types and shapes say, by their texts."""
    lacking: dict[Lacking, list[str]] = field(default_factory=dict, init=False)
    """The names of initialisers that are used and whose data onnxruntime does not find, by the reason."""
    _loop_types: dict[str, Mapping[str, TypeProto]] = field(default_factory=dict, init=False)
    """The types of values that Loops' bodies declare, by the bodies' names."""
    _sizes_in_file: dict[str, tuple[Dimension, ...] | None] = field(default_factory=dict, init=False)
    _better: set[str] = field(default_factory=set, init=False)
    """The values of which more is known than onnx's inference of the whole model knows, which skips some nodes."""
    _changing: set[str] = field(default_factory=set, init=False)
    """The bodies, by name, that return loop-carried values of other shapes than they begin with."""

    def scanned(self, model: ModelProto) -> ScannedGraph:
        """Scan the model's graph: its Tiles come in the order in which they run."""
        self._loop_types.update(take_loop_types(model.graph))
        self._sizes_in_file.update(sizes_in_file(model.graph))
        typed, why = with_types(model, self.inliner.table)
        graph = typed.graph
        inputs = {}
        for each in graph.input:
            elements, sizes = (
                ValueOrigin(source=ValueSource(kind, place(each.name))) for kind in ("elements of the input", "input")
            )
            value = _typed(each.type, elements, sizes)
            inputs[each.name] = replace(value, early_type=value.type)
        found = self._graph(graph, Scope(), inputs, "", None)
        if why and not found.fault and not any(node.fault for node in found.nodes):
            found = found._replace(fault=Reason(Placement.NONE, "ORT-MODEL-node", why))
        return found

    def _graph(
        self,
        graph: GraphProto,
        outer: Scope,
        inputs: Mapping[str, Value],
        where: str,
        skipped: Gone | None,
        declared: Mapping[str, TypeProto] | None = None,
    ) -> ScannedGraph:
        """Scan a graph; ``skipped`` is why onnxruntime never runs it, if it does not."""
        own: dict[str, Value] = {}
        scope = outer.new_child(own)
        for each in chain(graph.value_info, graph.output):
            if each.name not in outer:
                scope[each.name] = _typed(each.type)
        for name, type_ in (declared or {}).items():
            scope[name] = Value(merged(scope.get(name, UNKNOWN).type, type_))
        for name, value in inputs.items():
            edge = edge_of(value, name)
            scope[name] = replace(value, edge=edge)
            edge.elements = elements_of(self.overridable[name]) if name in self.overridable else None
            edge.is_input, edge.is_initialiser = name not in self.overridable, name in self.overridable
        for each in chain(graph.initializer, graph.sparse_initializer):
            name = of_elements(each).name
            scope[name] = self._with_edge(name, self._tensor_value(each))
        uses = Uses(graph)
        nodes: list[Node] = []
        implicit: dict[str, Edge] = {}
        tiles: list[tuple[str, Node]] = []
        used_names = {each.name for each in graph.output}
        for proto in graph.node:
            node = self.inliner.table.node(proto, [scope.get(name, UNKNOWN) for name in proto.input])
            graphs, known = self._inside(node, scope, where, skipped)
            used_inside = {name: edge for each in graphs for name, edge in each.implicit.items()}
            used = used_inside | {name: value.edge for name, value in node.given.items() if value.edge}
            implicit |= {name: edge for name, edge in used.items() if name not in own}
            opset = self.imports.get(node.domain) if node.domain else node.opset
            operator = operator_of(node, opset, (scope.get(name, UNKNOWN).type for name in proto.output))
            faults = chain([operator.fault], _wrong_values(node, scope), (each.fault for each in graphs))
            if fault := next(filter(None, faults), None):
                operator = operator._replace(fault=fault)
            node.outputs = self._outputs(node, operator, known, scope, uses)
            own.update(node.outputs)
            uses.makers |= dict.fromkeys(node.outputs, node)
            outside = {name: scope.get(name, UNKNOWN) for name in used_inside}
            node.placed = self._model_node(node, operator, outside, graphs)
            node.placed.kernel = partial(kernel_node, node, operator.version, own, self.tensors)
            node.placed.gone = skipped or why_folded(node)
            used_names.update(node.proto.input, used_inside)
            nodes.append(node)
            tiles += [tile for each in graphs for tile in each.tiles]
            if node.kind == "Tile":
                tiles.append((place(where, node.proto.name), node))
        if not any(node.placed.fault and node.placed.place.version for node in nodes):  # else it does not load
            drop(nodes, uses, is_subgraph=bool(where))
            note_quantised_tiles(nodes, uses)
            note_transposed_tiles(nodes, uses)
            if opset := self.inliner.table.opset:
                following = Graph(nodes, uses, opset)
                note_fusions(following)
                note_possible_fusions(following)
                note_quantised_groups(following)
        if not skipped:
            defaults = () if where else self.overridable.values()
            self._note_lacking(each for each in (*graph.initializer, *defaults) if each.name in used_names)
        placed = [node.placed for node in nodes]
        return ScannedGraph(tiles, scope, placed, implicit, next(self._faults(graph, own, placed, where), None))

    def _note_lacking(self, tensors: Iterable[TensorProto]) -> None:
        """Note the tensors of which a file lacks the data."""
        for tensor in tensors:
            if why := self.tensors.lacking(tensor):
                self.lacking.setdefault(why, []).append(place(tensor.name))

    def _faults(
        self, graph: GraphProto, own: Mapping[str, Value], nodes: Sequence[ModelNode], where: str
    ) -> Iterator[Reason]:
        """Yield the faults of a graph as a whole."""
        used = {edge for node in nodes if not node.gone for edge in (*node.inputs, *node.implicit)}
        for tensor in chain(graph.initializer, graph.sparse_initializer):
            elements = of_elements(tensor)
            value, name = own[elements.name], place(elements.name)
            if value.edge in used and any(size < 0 for size in tensor.dims):
                yield _wrong(f"the initialiser {name} has a negative size")
            if value.edge in used and value.unread in self.wrong_data:
                yield _wrong(value.unread)
            if not elements.data_type:
                yield _wrong(f"the initialiser {name} has no type")
        names = Counter(each.name for each in graph.input)
        yield from (_wrong(f"two inputs have the name {place(name)}") for name, count in names.items() if count > 1)
        for each in () if where else graph.input:
            is_typed = each.type.tensor_type.elem_type or each.type.WhichOneof("value") not in (None, "tensor_type")
            if not is_typed and each.name not in self.overridable:
                yield _wrong(f"the input {place(each.name)} has no type")
        unmade = (each.name for each in graph.output if not own.get(each.name, UNKNOWN).edge)
        yield from (_wrong(f"the output {place(name)} is no value of the graph") for name in unmade)
        if not graph.node and not graph.output:
            yield _wrong("the graph has neither nodes nor outputs")

    def _model_node(
        self, node: Node, operator: Resolved, outside: Mapping[str, Value], graphs: Sequence[ScannedGraph]
    ) -> ModelNode:
        """Return the node as placing takes it; ``outside`` are the values from outside that its graphs use."""
        where = self.inliner.table.place_of(node.proto) or NodePlace("")
        inputs = zip(node.proto.input, node.inputs, strict=True)
        placed = ModelNode(
            where._replace(
                domain=node.domain,
                operator=node.type,
                version=operator.version,
                function=self.function or where.function,
            ),
            tuple(each.edge or Edge() if name else None for name, each in inputs),
            tuple(node.outputs[name].edge if name else None for name in node.proto.output),
            operator.formals,
            {} if operator.fault else dict(attributes_of(node)),
            tuple(value.edge for value in outside.values() if value.edge),
            tuple(each.nodes for each in graphs),
            introduced=operator.introduced,
            fits=partial(fits, node),
            version_at=partial(version_at, node.domain, node.type),
            fault=operator.fault,
            facts=partial(facts_of, node),
        )
        if operator.schema and (operator.schema.has_function or operator.schema.has_context_dependent_function):
            placed.body = cache(partial(self._body, operator.schema, node, {**outside, **node.given}))
        return placed

    def _body(self, schema: Any, node: Node, used: Mapping[str, Value]) -> Sequence[ModelNode] | None:
        """Return the nodes of the operator's own function; none if it has none, None if a type that decides is open.

        ``used`` are the values of the node's graph that the function, or a graph in it, uses.
        """
        if depends_on_unknown_type(schema, node):
            return None
        function = function_of(schema, node)
        if function is None:
            return ()
        graph = GraphProto(node=self.inliner.body(function, node.proto))
        outputs = {name: value.edge for name, value in node.outputs.items()}
        scan = GraphScan(
            self.tensors, self.inliner, self.imports, function="onnx", outputs=outputs, folding=self.folding
        )
        scan._loop_types.update(take_loop_types(graph))
        return scan._graph(graph, Scope(dict(used)), {}, "", None).nodes

    def _inside(
        self, node: Node, scope: Scope, where: str, skipped: Gone | None
    ) -> tuple[list[ScannedGraph], Mapping[str, Value]]:
        """Scan the graphs inside a node; return them, and the node's outputs as these graphs tell them."""
        graphs = dict(subgraphs(node.proto))
        if not graphs:
            return [], {}
        where = place(where, node.proto.name)
        if node.kind == "If":
            return self._if(node, graphs, scope, where, skipped)
        if node.kind == "Loop" and "body" in graphs:
            return self._loop(node, graphs["body"], scope, place(where, "body"), skipped)
        inside = ((graph, _inputs(graph, node, {}), place(where, attribute)) for attribute, graph in graphs.items())
        return [self._graph(graph, scope, inputs, each, skipped) for graph, inputs, each in inside], {}

    def _if(
        self, node: Node, graphs: Mapping[str, GraphProto], scope: Scope, where: str, skipped: Gone | None
    ) -> tuple[list[ScannedGraph], Mapping[str, Value]]:
        condition = node.inputs[0] if node.inputs else UNKNOWN
        taken = None
        if condition.constant is not None and condition.constant.size == 1:
            taken = "then_branch" if condition.constant.any() else "else_branch"
        found: list[ScannedGraph] = []
        branches: dict[str, list[Value]] = {}
        for attribute, graph in graphs.items():
            gone = skipped
            if gone is None and condition.is_folded and taken not in (None, attribute):
                reason = f"the condition of If {node.proto.name!r} is known; its {attribute} does not run"
                gone = Gone(reason, since=(1, 17))
            found.append(self._graph(graph, scope, {}, place(where, attribute), gone))
            branches[attribute] = [found[-1].values.get(value.name, UNKNOWN) for value in graph.output]
        outputs: list[Value] = []
        if taken in branches:
            outputs = branches[taken]
            if not condition.is_folded:
                outputs = [replace(value, is_folded=False, early_type=None) for value in outputs]
        elif len(branches) == 2:
            outputs = [
                Value(common(one.type, other.type), early_type=common(one.early_type, other.early_type))
                for one, other in zip(*branches.values(), strict=False)
            ]
        return found, dict(zip(node.proto.output, outputs, strict=False))

    def _loop(
        self, node: Node, body: GraphProto, scope: Scope, where: str, skipped: Gone | None
    ) -> tuple[list[ScannedGraph], Mapping[str, Value]]:
        """Scan a Loop's body: again, without shapes, if an iteration changes one, but never from then on."""
        declared = self._loop_types[body.name]
        carried = loop_carried(node, body)
        types = {name: merged(initial.type, declared[name]) or TypeProto() for initial, name, _, _ in carried}
        if body.name not in self._changing:
            found = self._graph(body, scope, _inputs(body, node, types), where, skipped, declared)
            after = [found.values.get(name, UNKNOWN).type for _, _, name, _ in carried]
            if not is_kept([types[name] for _, name, _, _ in carried], after):
                self._changing.add(body.name)
        if body.name in self._changing:
            types = {name: without_shape(type_) for name, type_ in types.items()}
            found = self._graph(body, scope, _inputs(body, node, types), where, skipped)
        return [found], {output: Value(types[name]) for _, name, _, output in carried if output}

    def _outputs(
        self, node: Node, operator: Resolved, known: Mapping[str, Value], scope: Scope, uses: Uses
    ) -> dict[str, Value]:
        """Return the known value of each output of a node; some may be ``known`` by the graphs inside it."""
        names = [name for name in node.proto.output if name]
        declared = {name: scope.get(name, UNKNOWN).type for name in names}
        is_followed = self.has_tiles or node.type in _MEASURING or all(value.is_folded for value in node.inputs)
        if not is_followed and None not in declared.values():  # onnx's inference of the whole model is enough
            better = declared
            if not self._better.isdisjoint(node.proto.input):
                types = inferred(node)
                better = {name: merged(types.get(name), type_) for name, type_ in declared.items()}
                self._better.update(name for name, type_ in better.items() if type_ != declared[name])
            return {name: self._with_edge(name, Value(type_, early_type=type_)) for name, type_ in better.items()}
        types = inferred(node)
        if any(name not in types for name in names):
            types = {**types_by_formals(node, operator.formals), **types}
        early_types = self._early_types(node, types)
        constants = self._constant_values(node)
        values = constants or known or self.folding.folded(node, types)
        folds = bool(constants) or is_folded(node, operator, early_types, uses)
        doubted = unbelieved(node)
        found = {}
        for name in names:
            value = values.get(name, UNKNOWN)
            inferred_type = value.type or types.get(name)
            if wrong := contradiction(node, name, inferred_type, self._sizes_in_file.get(name)):
                self.contradictions.setdefault(name, wrong)
            type_ = merged(inferred_type, declared[name])
            sizes = self._sizes_in_file.get(name)
            in_file = with_sizes(type_, sizes) if type_ and sizes else None
            early = merged(value.early_type or early_types.get(name), in_file)
            value = replace(value, type=type_, is_folded=folds or value.is_folded, early_type=type_ if folds else early)
            if name in doubted:
                value = replace(value, sizes_origin=node.origin)
            found[name] = self._with_edge(name, with_origins(value, node, self.origins_of_sizes))
            if type_ != declared[name] or (folds and not constants):
                self._better.add(name)
        return found

    def _early_types(self, node: Node, types: Mapping[str, TypeProto]) -> Mapping[str, TypeProto]:
        """Return the outputs' types by what onnxruntime knows of the inputs; ``types`` are by all that is known."""
        early = node.seeing(lambda value: Value(value.early_type, value.held if value.is_folded else None))
        pairs = zip(early.inputs, node.inputs, strict=True)
        knows_all = all(each.type == value.type and each.held is value.held for each, value in pairs)
        return types if knows_all else inferred(early)

    def _with_edge(self, name: str, value: Value) -> Value:
        return replace(value, edge=self.outputs.get(name) or edge_of(value, name))

    def _tensor_value(self, tensor: TensorProto | SparseTensorProto) -> Value:
        elements = of_elements(tensor)
        type_ = helper.make_tensor_type_proto(elements.data_type, tensor.dims)
        try:
            held = self.tensors.held(tensor)
        except InputError as error:
            if elements.data_location != TensorProto.EXTERNAL:
                self.wrong_data.setdefault(str(error), error.problems[0])
            return Value(type_, unread=str(error), is_folded=True, early_type=type_)
        origin = ValueOrigin(source=ValueSource("tensor", place(elements.name)))
        return Value(type_, held, is_folded=True, early_type=type_, elements_origin=origin)

    def _constant_values(self, node: Node) -> Mapping[str, Value]:
        """Return the value of a Constant by its tensor; nothing for another node, or without a tensor."""
        given = node.proto.attribute if node.kind == "Constant" else ()
        tensors = [getattr(each, name) for each in given for name in ("t", "sparse_tensor") if each.HasField(name)]
        return dict(zip(node.proto.output, map(self._tensor_value, tensors), strict=False))


_MEASURING: Final = frozenset({"Shape", "Size"})
"""Operators whose result onnxruntime has before it runs a model if it knows the input's sizes."""


def _wrong(text: str) -> Reason:
    return Reason(Placement.NONE, "ORT-MODEL-graph", text)


def _wrong_values(node: Node, scope: Scope) -> Iterator[Reason]:
    """Yield which values a node uses before they are there, and which it makes again."""
    unmade = (name for name, value in node.given.items() if value.edge is None and node.kind != "Constant")
    yield from (_wrong(f"nothing before it makes its input {place(name)}") for name in unmade)
    again = (name for name in node.proto.output if name and scope.get(name, UNKNOWN).edge)
    yield from (_wrong(f"its output {place(name)} has the name of an earlier value") for name in again)


def _typed(type_: TypeProto, elements: ValueOrigin = NO_ORIGIN, sizes: ValueOrigin = NO_ORIGIN) -> Value:
    """Return a value of a declared type, and of these origins."""
    return Value(type_ if type_.WhichOneof("value") else None, elements_origin=elements, sizes_origin=sizes)


def _inputs(graph: GraphProto, node: Node, types: Mapping[str, TypeProto]) -> dict[str, Value]:
    """Return the inputs of a graph inside a node, whose values are unknown, of the declared types or of ``types``."""
    return {each.name: _typed(types.get(each.name, each.type), node.origin, node.origin) for each in graph.input}
