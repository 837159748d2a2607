"""The Tiles of an ONNX model, at any depth, with as much as the file tells of their inputs.

Types and shapes are onnx's inference, first of the whole model with data propagation, then of each node with what is
constant: initialisers, Constants, known shapes, and what small tensors of these are computed to. Weights are not read.

An initialiser that is also an input of the graph is a default that a caller may override, not a constant, as IR version
4 says; before that version all initialisers had to be inputs, and are constants.

Pages: https://onnx.ai/onnx/operators/onnx__Tile.html and https://onnx.ai/onnx/repo-docs/IR.html
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Final, TypeAlias

try:
    import onnx  # noqa: F401
except ImportError as error:
    raise ImportError("dml_tile.readers.onnx.tiles needs onnx: pip install 'dml-tile[onnx]'") from error

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, shape_inference

from dml_tile.dialects.onnx import tile_of_opset
from dml_tile.errors import Problem
from dml_tile.readers.model_tile import KnownShapes, TileNode, tile_node
from dml_tile.readers.onnx.file import load
from dml_tile.readers.onnx.fixed_inputs import fix
from dml_tile.readers.onnx.folding import folded, inferred, is_folded
from dml_tile.readers.onnx.functions import inline, place
from dml_tile.readers.onnx.operators import Operator, default_opset, operator
from dml_tile.readers.onnx.tensors import Unread, internalise, small, subgraphs
from dml_tile.readers.onnx.values import Value, common, merged

Scope: TypeAlias = ChainMap[str, Value]
Tiles: TypeAlias = Generator[TileNode | Problem, None, Scope]

_UNKNOWN: Final = Value()


def read_nodes(path: Path, known_shapes: KnownShapes) -> Iterator[TileNode | Problem]:
    """The Tiles in the order in which they run, and what keeps one of them from being read.

    A pointer is the way to the node, such as ``If_3/then_branch/Tile_1``; a node without a name, or one that shares it,
    is told by its output, ``Tile->y``. A Tile of a model-local function comes once for each call, behind its name. The
    data that a Tile needs are read from other files of the model's folder alone, else a Problem tells why not.

    Raises InputError for a file that is not an ONNX model or cannot be read, and for known shapes that contradict the
    model; names of dimensions that the model lacks are ignored.
    """
    model = load(path)
    if not model.opset_import:  # there were none before IR version 3
        model.opset_import.add(version=1)
    _settle_initialisers(model)
    fix(model.graph, known_shapes)
    inline(model)
    if any(node.op_type == "Tile" for node in _nodes(model.graph)):
        internalise(model.graph, path.parent)
        walk = _Walk(path.parent, default_opset(model.opset_import))
        yield from walk.tiles(_with_types(model).graph, ChainMap(), "")


def _settle_initialisers(model: ModelProto) -> None:
    """Leave of an initialiser and an input of one name the one that counts."""
    graph = model.graph
    if model.ir_version < 4:
        initialisers = {tensor.name for tensor in graph.initializer}
        inputs = [value for value in graph.input if value.name not in initialisers]
        del graph.input[:]
        graph.input.extend(inputs)
        model.ir_version = 4
    else:
        names = {value.name for value in graph.input}
        constants = [tensor for tensor in graph.initializer if tensor.name not in names]
        del graph.initializer[:]
        graph.initializer.extend(constants)


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    for node in graph.node:
        yield node
        for _, inner in subgraphs(node):
            yield from _nodes(inner)


def _with_types(model: ModelProto) -> ModelProto:
    """The model with the types that onnx infers, or without where it fails."""
    imported = {entry.domain for entry in model.opset_import}
    for domain in sorted({node.domain for node in _nodes(model.graph)} - imported - {"", "ai.onnx"}):
        model.opset_import.add(domain=domain, version=1)  # else onnx gives up on the whole model
    try:
        return shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # of any class: onnx's own, protobuf's, what an operator's C++ throws
        return model


class _Walk:
    """Goes through a model's nodes in their order, and remembers what is known of their values."""

    def __init__(self, folder: Path, opset: int | None) -> None:
        self._folder = folder
        self._opset = opset

    def tiles(self, graph: GraphProto, outer: Scope, where: str) -> Tiles:
        """The Tiles of a graph; returns what is known of its values."""
        scope = outer.new_child()
        for value in chain(graph.value_info, graph.output):
            if value.name not in outer:
                scope[value.name] = _of_type(value.type)
        for value in graph.input:
            scope[value.name] = _of_type(value.type)
        for tensor in graph.initializer:
            scope[tensor.name] = self._of_tensor(tensor)
        for sparse in graph.sparse_initializer:
            type_ = helper.make_tensor_type_proto(sparse.values.data_type, sparse.dims)
            scope[sparse.values.name] = Value(type_)
        for node in graph.node:
            kind = operator(node, self._opset)
            inputs = [scope.get(name, _UNKNOWN) for name in node.input]
            if not kind.domain and kind.type == "Tile":
                yield from _tile(place(where, node.name), node, kind, inputs)
            branches = []
            for attribute, inner in subgraphs(node):
                values = yield from self.tiles(inner, scope, place(where, node.name, attribute))
                branches.append([values.get(value.name, _UNKNOWN).type for value in inner.output])
            given = {name: value for name, value in zip(node.input, inputs, strict=True) if name}
            types = _of_branches(node, branches) if branches else inferred(node, kind, given)
            scope.update(self._outputs(node, kind, inputs, types, scope))
        return scope

    def _outputs(
        self,
        node: NodeProto,
        kind: Operator,
        inputs: Sequence[Value],
        types: Mapping[str, TypeProto],
        scope: Mapping[str, Value],
    ) -> Iterator[tuple[str, Value]]:
        """What is known of a node's outputs, of the types that were inferred, or are already in the scope."""
        unread = next((value.unread for value in inputs if value.unread), "")
        values = self._of_constant(node) or folded(node, kind, inputs, types)
        for name in filter(None, node.output):
            value = values.get(name, _UNKNOWN)
            type_ = merged(value.type or types.get(name), scope.get(name, _UNKNOWN).type)
            value = replace(value, type=type_, unread=value.unread or unread)
            is_known = value.constant is not None or (value.is_static and not is_folded(kind))
            yield name, replace(value, unread="") if is_known else value

    def _of_tensor(self, tensor: TensorProto) -> Value:
        type_ = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        values = small(tensor, self._folder)
        return Value(type_, unread=values.reason) if isinstance(values, Unread) else Value(type_, values)

    def _of_constant(self, node: NodeProto) -> Mapping[str, Value]:
        """What the tensor of a Constant tells; nothing for other nodes, and for a Constant without."""
        if node.op_type != "Constant":
            return {}
        tensors = [attribute.t for attribute in node.attribute if attribute.HasField("t")]
        return {name: self._of_tensor(tensor) for name, tensor in zip(node.output, tensors, strict=False)}


def _of_type(type_: TypeProto) -> Value:
    return Value(type_) if type_.WhichOneof("value") else _UNKNOWN


def _of_branches(node: NodeProto, branches: Sequence[Sequence[TypeProto | None]]) -> Mapping[str, TypeProto]:
    """The types of an If's outputs, where its branches agree."""
    if node.op_type != "If" or len(branches) != 2:
        return {}
    types = zip(node.output, map(common, *branches), strict=False)
    return {name: type_ for name, type_ in types if type_ is not None}


def _tile(pointer: str, node: NodeProto, kind: Operator, inputs: Sequence[Value]) -> Iterator[TileNode | Problem]:
    if kind.opset is None or kind.opset < 1:
        yield Problem(pointer, f"is a Tile; the model imports opset {kind.opset} of onnx's operators, which has none")
        return
    dialect = tile_of_opset(kind.opset)
    expected = ("input", *dialect.arguments)
    value, *others = inputs or [_UNKNOWN]
    shape = value.shape and tuple(place(size) if isinstance(size, str) else size for size in value.shape)
    if len(node.input) != len(expected) or not all(node.input):
        message = f"inputs: there are {sum(map(bool, node.input))}; {', '.join(expected)} were expected"
        yield TileNode(pointer, dialect, value.data_type, shape, None, message)
        return
    yield tile_node(pointer, dialect, value.data_type, shape, [other.constant for other in others])
    unknown = [other for other in others if other.constant is None] + [value] * (not value.is_static)
    yield from (Problem(pointer, reason) for reason in dict.fromkeys(each.unread for each in unknown if each.unread))
