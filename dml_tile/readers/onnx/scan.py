"""Scans a model's nodes in their order, and finds its Tiles with what is known of their inputs."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from onnx import GraphProto, NodeProto, TensorProto, TypeProto, helper

from dml_tile.errors import InputError
from dml_tile.readers.onnx.file import dense, small, subgraphs
from dml_tile.readers.onnx.folding import ConstantFolding
from dml_tile.readers.onnx.functions import OnnxOperator, operator, place
from dml_tile.readers.onnx.inference import (
    LoopTypes,
    SizesInFile,
    body_of,
    contradiction,
    inferred,
    is_kept,
    loop_carried,
    unbelieved,
    without_shape,
)
from dml_tile.readers.onnx.onnxruntime import is_folded, sources_of_requantised, unneeded_nodes
from dml_tile.readers.onnx.values import (
    Value,
    ValueOrigin,
    common,
    dimensions,
    input_origins,
    is_made_up,
    merged,
    node_origin,
    origin_of_size,
    with_origins,
)

Scope: TypeAlias = ChainMap[str, Value]

_UNKNOWN: Final = Value()


class FoundTile(NamedTuple):
    """A Tile: its place, node, operator and known inputs, and why onnxruntime does not kernel it."""

    pointer: str
    node: NodeProto
    operator: OnnxOperator
    inputs: Sequence[Value]
    folded: str


@dataclass(frozen=True)
class GraphScan:
    """Remembers what is known of a model's values.

    ``declared`` has the types that Loops' bodies declare, by the bodies' names; ``stated`` has the sizes that the rest
    of the file declares.
    """

    folder: Path
    opset: int | None
    loop_types: Mapping[str, LoopTypes]
    sizes_in_file: SizesInFile
    origins_of_sizes: dict[str, ValueOrigin] = field(default_factory=dict, init=False)
    """The origins of sizes, by the names that the model or onnx's inference gives them."""
    contradictions: dict[str, str] = field(default_factory=dict, init=False)
    """Contradictions of the sizes that the file states of values, by the values' names."""
    _folding: ConstantFolding = field(default_factory=ConstantFolding, init=False)
    _sources_of_requantised: dict[str, list[str]] = field(default_factory=dict, init=False)

    def tiles(self, graph: GraphProto) -> list[FoundTile]:
        """Return the Tiles of the model's graph, at any depth, in the order in which they run."""
        typed = ((value, _typed(value.type, *input_origins(value.name))) for value in graph.input)
        inputs = {value.name: replace(known, early_type=known.type) for value, known in typed}
        return self._graph(graph, Scope(), inputs, "", "")[0]

    def _graph(
        self,
        graph: GraphProto,
        outer: Scope,
        inputs: Mapping[str, Value],
        where: str,
        skipped: str,
        declared: Mapping[str, TypeProto] | None = None,
    ) -> tuple[list[FoundTile], Scope]:
        """Return the Tiles of a graph, and the known values; ``skipped`` is why it does not kernel, or empty."""
        scope = outer.new_child()
        for value in chain(graph.value_info, graph.output):
            if value.name not in outer:
                scope[value.name] = _typed(value.type)
        for name, type_ in (declared or {}).items():
            scope[name] = Value(merged(scope.get(name, _UNKNOWN).type, type_))
        scope.update(inputs)
        for tensor in graph.initializer:
            scope[tensor.name] = self._tensor_value(tensor)
        for sparse in graph.sparse_initializer:
            scope[sparse.values.name] = self._tensor_value(dense(sparse))
        self._sources_of_requantised.update(sources_of_requantised(graph))
        found: list[tuple[int, FoundTile]] = []
        for i, node in enumerate(graph.node):
            kind = operator(node, self.opset)
            given = [scope.get(name, _UNKNOWN) for name in node.input]
            inside, values = self._inside(node, kind, given, scope, where, skipped)
            scope.update(self._outputs(node, kind, given, values, scope))
            if not kind.domain and kind.type == "Tile":
                folds = bool(node.output) and all(scope[name].is_folded for name in node.output if name)
                reason = skipped or ("its inputs are constants; onnxruntime folds it" if folds else "")
                inside = [FoundTile(place(where, node.name), node, kind, given, reason)]
            found += [(i, each) for each in inside]
        gone = unneeded_nodes(graph, scope)
        unused = "only the shape of its output is used, which is known; onnxruntime removes it"
        return [each._replace(folded=each.folded or unused) if i in gone else each for i, each in found], scope

    def _inside(
        self, node: NodeProto, kind: OnnxOperator, inputs: Sequence[Value], scope: Scope, where: str, skipped: str
    ) -> tuple[list[FoundTile], Mapping[str, Value]]:
        """Return the Tiles of the graphs inside a node, and the node's outputs as these graphs tell them."""
        where = place(where, node.name)
        if not kind.domain and kind.type == "If":
            return self._if(node, inputs, scope, where, skipped)
        if not kind.domain and kind.type == "Loop":
            return self._loop(node, kind, inputs, scope, where, skipped)
        origin = node_origin(node, kind)
        found = []
        for attribute, graph in subgraphs(node):
            found += self._graph(graph, scope, _subgraph_inputs(graph, origin), place(where, attribute), skipped)[0]
        return found, {}

    def _if(
        self, node: NodeProto, inputs: Sequence[Value], scope: Scope, where: str, skipped: str
    ) -> tuple[list[FoundTile], Mapping[str, Value]]:
        condition = inputs[0].constant if inputs else None
        taken = None
        if condition is not None and condition.size == 1:
            taken = "then_branch" if condition.any() else "else_branch"
        found: list[FoundTile] = []
        branches: dict[str, list[Value]] = {}
        for attribute, graph in subgraphs(node):
            is_skipped = taken is not None and attribute != taken and inputs[0].is_folded
            reason = f"the condition of If {node.name!r} is known; its {attribute} does not run" if is_skipped else ""
            inside, values = self._graph(graph, scope, {}, place(where, attribute), skipped or reason)
            found += inside
            branches[attribute] = [values.get(value.name, _UNKNOWN) for value in graph.output]
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
        return found, dict(zip(node.output, outputs, strict=False))

    def _loop(
        self, node: NodeProto, kind: OnnxOperator, inputs: Sequence[Value], scope: Scope, where: str, skipped: str
    ) -> tuple[list[FoundTile], Mapping[str, Value]]:
        body = body_of(node)
        if body is None:
            return [], {}
        where, declared = place(where, "body"), self.loop_types[body.name]
        names = loop_carried(node, body)
        types = {
            each.inner: merged(scope.get(each.initial, _UNKNOWN).type, declared[each.inner]) or TypeProto()
            for each in names
        }
        inside = _subgraph_inputs(body, node_origin(node, kind))
        found, values = self._graph(body, scope, _retyped(inside, types), where, skipped, declared)
        updated = [values.get(each.updated, _UNKNOWN).type for each in names]
        if not is_kept(types.values(), updated):
            types = {name: without_shape(type_) for name, type_ in types.items()}
            found, _ = self._graph(body, scope, _retyped(inside, types), where, skipped)
        return found, {each.output: Value(types[each.inner]) for each in names if each.output}

    def _outputs(
        self, node: NodeProto, kind: OnnxOperator, inputs: Sequence[Value], values: Mapping[str, Value], scope: Scope
    ) -> Iterator[tuple[str, Value]]:
        """Yield the known value of each output of a node; ``values`` and the scope already have some."""
        given = {name: value for name, value in zip(node.input, inputs, strict=True) if name}
        types = inferred(node, kind, given)
        early_types = self._early_types(node, kind, given, types)
        constants = self._constant_values(node, kind)
        values = constants or values or self._folding.folded(node, kind, inputs, types)
        names = self._sources_of_requantised.get(next(iter(node.output), ""))
        folded_from = given if names is None else {name: scope.get(name, _UNKNOWN) for name in names if name}
        folds = bool(constants) or is_folded(node, kind, folded_from, early_types)
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
            return Value(type_, unread=str(error), is_folded=True, early_type=type_)
        origin = ValueOrigin(source=f"the tensor {place(tensor.name)!r}")
        return Value(type_, values, is_folded=True, early_type=type_, elements_origin=origin)

    def _constant_values(self, node: NodeProto, kind: OnnxOperator) -> Mapping[str, Value]:
        """Return the value of a Constant by its tensor; nothing for another node, or without a tensor."""
        if kind.domain or kind.type != "Constant":
            return {}
        tensors = [attribute.t for attribute in node.attribute if attribute.HasField("t")]
        sparse = [attribute.sparse_tensor for attribute in node.attribute if attribute.HasField("sparse_tensor")]
        tensors += map(dense, sparse)
        return {name: self._tensor_value(tensor) for name, tensor in zip(node.output, tensors, strict=False)}


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
