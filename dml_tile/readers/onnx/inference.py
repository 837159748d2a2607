"""Infers types and shapes by onnx: of a whole model, of one node, and of what a Loop passes on."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from operator import add, floordiv, mul, sub
from typing import Final

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
    shape_inference,
)

from dml_tile.back_ends.dialects import INT64_MAX
from dml_tile.errors import input_error
from dml_tile.readers.model_names import KnownShapes, ModelNames, limited_names
from dml_tile.readers.model_tile import Dimension
from dml_tile.readers.onnx.file import graphs
from dml_tile.readers.onnx.nodes import Node, default_opset, place, set_apart
from dml_tile.readers.onnx.values import Value, agree, common, dimensions, is_made_up, with_sizes, without_shape

DISTRUSTED: Final = {
    "Attention": "gives 0 for a size, or forgets the past, in later outputs, and in the first where a hidden size is "
    "not known",
    "Cast": "passes on the name of a size that the type may not hold, as bool, int8 and float do not",
}
"""Operators whose inference is not believed, with the reason; a test compares all others with onnx's own cases."""

_HOLDS_SIZES: Final = frozenset(
    {TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64, TensorProto.DOUBLE}
)
"""Types that hold any size of a tensor exactly, to which a Cast is believed."""

_PACKED_RANK: Final = 3
"""The rank of queries, keys and values with the heads in the last dimension."""

_EQUATION: Final = re.compile(r"(?:\s|[A-Za-z,]|\.\.\.)*(?:->(?:\s|[A-Za-z]|\.\.\.)*)?")


def _returns(node: Node) -> bool:
    """Return False for an Einsum whose equation has another character: onnx's inference does not return."""
    texts = (each.s.decode(errors="replace") for each in node.proto.attribute if each.name == "equation")
    return node.type != "Einsum" or all(map(_EQUATION.fullmatch, texts))


def with_types(model: ModelProto) -> ModelProto:
    """Return the model with the types that onnx infers, or without types if that fails.

    For nodes that are not believed, onnx infers nothing, since it would pass that on.
    """
    opset = default_opset(model.opset_import)
    for proto in nodes(model.graph):
        node = Node(proto, opset)
        if node.kind == "STFT" and "onesided" not in node.attributes:
            proto.attribute.append(helper.make_attribute("onesided", 1))  # else onnx's inference takes 0
        is_believed = node.kind not in DISTRUSTED or node.attributes["to"].i in _HOLDS_SIZES
        if not node.domain and not (is_believed and _returns(node)):
            set_apart(proto, opset)
    imported = {entry.domain for entry in model.opset_import}
    for domain in sorted({proto.domain for proto in nodes(model.graph)} - imported - {"", "ai.onnx"}):
        model.opset_import.add(domain=domain, version=1)  # else onnx infers nothing
    try:
        return shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # of any class: onnx's own, protobuf's, an operator's in C++
        return model


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
    if node.type in _SIZED_BY_ELEMENTS and any(value.known is not None for value in node.inputs):
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
    return value if elements is None else replace(value, elements=np.where(value.mask, elements, unknown), known=None)


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


def nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield the nodes of a graph, at any depth."""
    return (node for each in graphs(graph) for node in each.node)


def fix(graph: GraphProto, known_shapes: KnownShapes) -> None:
    """Give the graph's inputs their known shapes, and its named dimensions, at any depth, their known sizes.

    A shape also fixes the named dimensions that it replaces. Names that the model lacks are ignored. Raises InputError
    for a shape of another rank or size than the model's, two sizes for one name, and a size that is negative or past
    int64.
    """
    sizes = dict(known_shapes.dims)
    for name, size in sizes.items():
        _require_size(name, size)
    inputs = {value.name: value for value in graph.input}
    for name, shape in known_shapes.input_shapes.items():
        if name in inputs:
            _fix_shape(inputs[name], shape, sizes)
    if sizes:
        for value in _values(graph):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param and (named := _size_named(dim.dim_param, sizes)) is not None:
                    dim.dim_value = named


_MAX_EXPRESSION: Final = 200
"""The most characters of a name that is read as an expression."""

_OPERATIONS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.FloorDiv: floordiv,
}


def _size_named(name: str, sizes: Mapping[str, int]) -> int | None:
    """Return the size of a name, or of an expression of names, as torch.export writes: ``2*B``; None if unknown."""
    if name in sizes:
        return sizes[name]
    tree = _expression(name)
    try:
        size = -1 if tree is None else _computed(tree, sizes)
    except (KeyError, ZeroDivisionError):
        return None
    return size if 0 <= size <= INT64_MAX else None


def _expression(name: str) -> ast.expr | None:
    """Return a name as an expression; None for a plain name, and for what is no expression."""
    if name.isidentifier() or len(name) > _MAX_EXPRESSION:
        return None
    try:
        return ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _computed(tree: ast.expr, sizes: Mapping[str, int]) -> int:
    """Compute an expression of integers. Raises KeyError for an unknown name or operation, and ZeroDivisionError."""
    if isinstance(tree, ast.BinOp):
        return _OPERATIONS[type(tree.op)](_computed(tree.left, sizes), _computed(tree.right, sizes))
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if not isinstance(tree, ast.Name):
        raise KeyError(tree)
    return sizes[tree.id]


def names_in(graph: GraphProto, asked: KnownShapes) -> ModelNames:
    """Return the names of the graph's inputs, and of dimensions at any depth."""
    tensors = (value.type.tensor_type for value in _values(graph))
    dimensions = {dim.dim_param for tensor in tensors for dim in tensor.shape.dim if dim.dim_param}
    trees = filter(None, map(_expression, dimensions))
    dimensions |= {each.id for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Name)}
    inputs = {value.name for value in graph.input}
    return ModelNames(limited_names(dimensions, asked.dims), limited_names(inputs, asked.input_shapes))


def _fix_shape(value: ValueInfoProto, shape: Sequence[int | None], sizes: dict[str, int]) -> None:
    if value.type.WhichOneof("value") != "tensor_type":
        raise input_error(value.name, "is no tensor; it has no shape to be fixed")
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        tensor.shape.CopyFrom(TensorShapeProto(dim=[TensorShapeProto.Dimension() for _ in shape]))
    declared = dimensions(value.type) or ()
    if len(declared) != len(shape):
        given = f"{shown(shape)} was given"
        raise input_error(value.name, f"has {len(declared)} dimensions, {shown(declared)}; {given}")
    for i, (dim, known, size) in enumerate(zip(tensor.shape.dim, declared, shape, strict=True)):
        if size is None:
            continue
        wanted = sizes.setdefault(known, size) if isinstance(known, str) else known
        if wanted not in (None, size):
            named = f", {known}," if isinstance(known, str) else ""
            raise input_error(value.name, f"dimension {i}{named} is {wanted}; {size} was given")
        _require_size(value.name, size)
        dim.dim_value = size


def _require_size(name: str, size: int) -> None:
    if not 0 <= size <= INT64_MAX:
        raise input_error(name, f"{size} was given; sizes are from 0 to {INT64_MAX}")


def shown(shape: Sequence[Dimension]) -> str:
    """Return a shape in parentheses, with ? for an unknown size."""
    return f"({', '.join('?' if size is None else str(size) for size in shape)})"


def _values(graph: GraphProto) -> Iterator[ValueInfoProto]:
    return (value for each in graphs(graph) for value in chain(each.input, each.output, each.value_info))


def sizes_in_file(graph: GraphProto) -> dict[str, tuple[Dimension, ...] | None]:
    """Return the sizes that the graph states of its values, at any depth; None if it states several of a name."""
    found: dict[str, tuple[Dimension, ...] | None] = {}
    for value in _values(graph):
        sizes = dimensions(value.type)
        if found.setdefault(value.name, sizes) != sizes:
            found[value.name] = None
    return found


def contradiction(node: Node, name: str, made: TypeProto | None, sizes: Sequence[Dimension] | None) -> str:
    """Return what is wrong with the sizes that the file states of a node's output; empty if they may be right."""
    known = made and dimensions(made)
    if sizes is None or known is None or agree(sizes, known):
        return ""
    known = tuple(None if is_made_up(size) else size for size in known)
    maker = f"{place(node.type)} {place(node.proto.name)!r}"
    return f"the file declares {place(shown(sizes))} for {place(name)!r}; {maker} makes {place(shown(known))}"


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
    pairs = ((one, common(one, other)) for one, other in zip(before, after, strict=True))
    return all(
        dimensions(one) is None or (agreed is not None and dimensions(agreed) == dimensions(one))
        for one, agreed in pairs
    )
