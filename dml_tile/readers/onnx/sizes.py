"""Sizes that a model's file states of its values, those that a caller gives, and the names by which they are given."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import add, floordiv, mul, sub
from typing import Final

from onnx import GraphProto, TypeProto, ValueInfoProto

from dml_tile.back_ends.dialects import INT64_MAX
from dml_tile.back_ends.placement import NAMELESS
from dml_tile.errors import input_error
from dml_tile.readers.model_names import KnownShapes, ModelFacts, limited_names
from dml_tile.readers.model_tile import MAX_DIMENSIONS, Dimension
from dml_tile.readers.onnx.file import graphs
from dml_tile.readers.onnx.nodes import Node, place
from dml_tile.readers.onnx.values import agree, dimensions, is_made_up, with_sizes


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
    """Return a name as an expression; None for a plain name or another text."""
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


def names_in(graph: GraphProto, asked: KnownShapes) -> ModelFacts:
    """Return the names of the graph's inputs, and of dimensions at any depth."""
    tensors = (value.type.tensor_type for value in _values(graph))
    dimensions = {dim.dim_param for tensor in tensors for dim in tensor.shape.dim if dim.dim_param}
    trees = filter(None, map(_expression, dimensions))
    dimensions |= {each.id for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Name)}
    inputs = {value.name for value in graph.input}
    return ModelFacts(limited_names(dimensions, asked.dims), limited_names(inputs, asked.input_shapes))


def _fix_shape(value: ValueInfoProto, shape: Sequence[int | None], sizes: dict[str, int]) -> None:
    if value.type.WhichOneof("value") != "tensor_type":
        raise input_error(value.name, "is no tensor; it has no shape to be fixed")
    if not value.type.tensor_type.HasField("shape"):
        value.type.CopyFrom(with_sizes(value.type, [None] * len(shape)))
    declared, count = dimensions(value.type) or (), len(value.type.tensor_type.shape.dim)
    if len(declared) != len(shape):
        named = f", {place(shown(declared))}" if count <= MAX_DIMENSIONS else f", and at most {MAX_DIMENSIONS} are read"
        raise input_error(value.name, f"has {count} dimensions{named}; {shown(shape)} was given")
    for i, (dim, known, size) in enumerate(zip(value.type.tensor_type.shape.dim, declared, shape, strict=True)):
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
    """Return the error in the sizes that the file states of a node's output; empty if they may be right."""
    known = made and dimensions(made)
    if sizes is None or known is None or agree(sizes, known):
        return ""
    known = tuple(None if is_made_up(size) else size for size in known)
    maker = f"{place(node.type) or NAMELESS} {place(node.proto.name)!r}"
    return f"the file declares {place(shown(sizes))} for {place(name)!r}; {maker} makes {place(shown(known))}"
