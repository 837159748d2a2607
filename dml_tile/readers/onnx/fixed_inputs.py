"""Fixes the sizes of a model's named dimensions, and the shapes of its inputs, to those a caller knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from onnx import GraphProto, TensorShapeProto, ValueInfoProto

from dml_tile.input_errors import unreadable
from dml_tile.readers.model_tile import Dimension, KnownShapes
from dml_tile.readers.onnx.tensors import subgraphs
from dml_tile.readers.onnx.values import dimensions
from dml_tile.tile_request import INT64_MAX


def fix(graph: GraphProto, known_shapes: KnownShapes) -> None:
    """Give the graph's inputs their known shapes, and its named dimensions, at any depth, their known sizes.

    A shape also fixes the named dimensions that it replaces. Names of dimensions that the model lacks are ignored.
    Raises InputError for an unknown input, a shape of another rank or size than the model's, two sizes for one name,
    and a size that is negative or past int64.
    """
    sizes = dict(known_shapes.dims)
    for name, size in sizes.items():
        _require_size(name, size)
    inputs = {value.name: value for value in graph.input}
    for name, shape in known_shapes.input_shapes.items():
        if name not in inputs:
            raise unreadable(name, f"is no input of the model; it has {', '.join(map(repr, inputs)) or 'none'}")
        _fix_shape(inputs[name], shape, sizes)
    if sizes:
        for value in _values(graph):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in sizes:
                    dim.dim_value = sizes[dim.dim_param]


def dimension_names(graph: GraphProto) -> tuple[str, ...]:
    """Return the names that the graph gives dimensions, at any depth."""
    tensors = (value.type.tensor_type for value in _values(graph))
    return tuple(sorted({dim.dim_param for tensor in tensors for dim in tensor.shape.dim if dim.dim_param}))


def _fix_shape(value: ValueInfoProto, shape: Sequence[int], sizes: dict[str, int]) -> None:
    if value.type.WhichOneof("value") != "tensor_type":
        raise unreadable(value.name, "is no tensor; it has no shape to be fixed")
    tensor = value.type.tensor_type
    declared = dimensions(value.type)
    if declared is not None:
        if len(declared) != len(shape):
            given = f"{_shown(shape)} was given"
            raise unreadable(value.name, f"has {len(declared)} dimensions, {_shown(declared)}; {given}")
        for i, (known, size) in enumerate(zip(declared, shape, strict=True)):
            wanted = sizes.setdefault(known, size) if isinstance(known, str) else known
            if wanted not in (None, size):
                named = f", {known}," if isinstance(known, str) else ""
                raise unreadable(value.name, f"dimension {i}{named} is {wanted}; {size} was given")
    for size in shape:
        _require_size(value.name, size)
    tensor.shape.CopyFrom(TensorShapeProto(dim=[TensorShapeProto.Dimension(dim_value=size) for size in shape]))


def _require_size(name: str, size: int) -> None:
    if not 0 <= size <= INT64_MAX:
        raise unreadable(name, f"{size} was given; sizes are from 0 to {INT64_MAX}")


def _shown(shape: Sequence[Dimension]) -> str:
    return f"({', '.join('?' if size is None else str(size) for size in shape)})"


def _values(graph: GraphProto) -> Iterator[ValueInfoProto]:
    yield from chain(graph.input, graph.output, graph.value_info)
    for node in graph.node:
        for _, inner in subgraphs(node):
            yield from _values(inner)
