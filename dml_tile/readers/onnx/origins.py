"""The origins of a value's unknown parts: the node that computes it, and the part of the model that it is from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from dml_tile.readers.model_tile import MAX_DIMENSIONS, NO_ORIGIN, Dimension, ValueOrigin, ValueSource
from dml_tile.readers.onnx.nodes import Node, place
from dml_tile.readers.onnx.values import Value, is_made_up

_PASSED_ON: Final = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators that keep the order of a vector's elements."""

UNSIZED: Final = frozenset({"Compress", "NonMaxSuppression", "NonZero", "StringSplit", "Unique"})
"""Operators whose inputs' elements decide the outputs' sizes, which are about as small as the inputs."""

_ADVICE: Final = "save the model with shapes"
_TOOL: Final = ", as onnxruntime.tools.symbolic_shape_infer does"


def with_origins(value: Value, node: Node, known: dict[str, ValueOrigin]) -> Value:
    """Return the output of a node with the origins of its unknown parts, and why external data are missing for it.

    ``known`` are the origins of sizes with made-up names, to which those of the output are added.
    """
    if value.constant is None and not value.elements_origin.node:
        origins = tuple(_origins(value, node, known))
        origin = origins[0] if len(origins) == 1 else _elements_origin(value, node)
        value = replace(value, elements_origin=origin, origins=origins)
    if not value.is_typed and not value.sizes_origin.node:
        origin = _sizes_origin(node)
        if node.domain and origin == node.origin:
            origin = origin._replace(advice=_ADVICE + _TOOL * (node.domain == "com.microsoft"))
        value = replace(value, sizes_origin=origin)
    for i, size in enumerate(value.sizes or ()):
        if is_made_up(size):
            known.setdefault(str(size), _origin_of_size(value, i, node, known))
    is_run_time = any(each.constant is None and not each.unread for each in node.inputs)
    is_known = value.constant is not None or (value.is_static and is_run_time)
    unread = value.unread or next((each.unread for each in node.inputs if each.unread), "")
    return replace(value, unread="" if is_known else unread)


def _through(node: Node, origin: ValueOrigin) -> ValueOrigin:
    """Return the origin of values that a node computes of others: the first node from their source counts."""
    return origin if origin.node else node.origin._replace(source=origin.source)


def _elements_origin(value: Value, node: Node) -> ValueOrigin:
    if node.kind in ("Shape", "Size"):
        return _through(node, node.inputs[0].sizes_origin if node.inputs else NO_ORIGIN)
    unknown = next((given for given in node.inputs if given.constant is None), None)
    if unknown is None:
        return node.origin
    origin = unknown.elements_origin
    if unknown.is_whole or not value.is_whole or not origin.source:
        return _through(node, origin)
    return node.origin._replace(source=origin.source)


def _origin_of_size(value: Value, i: int, node: Node, known: Mapping[str, ValueOrigin]) -> ValueOrigin:
    """Return the origin of an output's size that no input has."""
    rank = len(value.sizes or ())
    for vector in reversed(node.inputs):
        is_known = vector.elements is not None and vector.elements.shape == (rank,) and vector.mask[i]
        if vector.constant is None and vector.is_whole and len(vector.sizes or ()) == 1 and not is_known:
            return vector.origins[i] if len(vector.origins) == rank else vector.elements_origin
    for given in node.inputs:
        sizes = given.sizes or ()
        if len(sizes) == rank and not isinstance(sizes[i], int):
            return _origin_of_known(sizes[i], given, known)
    return value.sizes_origin


def _origin_of_known(size: Dimension, value: Value, known: Mapping[str, ValueOrigin]) -> ValueOrigin:
    """Return the origin of a size of the value: a name of the file's own is an origin."""
    if isinstance(size, str) and not is_made_up(size):
        return ValueOrigin(source=ValueSource("dimension", place(size)))
    return known.get(str(size), value.sizes_origin)


def _origins(value: Value, node: Node, known: Mapping[str, ValueOrigin]) -> Sequence[ValueOrigin]:
    """Return the origins of a vector's elements, if the operator passes on its inputs' elements one by one."""
    if not node.inputs or not value.is_whole:
        return ()
    data, *arguments = node.inputs
    if node.kind == "Shape":
        return [_through(node, _origin_of_known(size, data, known)) for size in (data.sizes or ())[node.bounds]]
    if node.kind in _PASSED_ON:
        return data.origins
    indices = arguments[0].constant if arguments else None
    is_of_elements = node.kind == "Gather" and data.origins and len(data.sizes or ()) == 1
    if is_of_elements and indices is not None and indices.dtype.kind == "i":
        return [data.origins[i % len(data.origins)] for i in indices.ravel().tolist()]
    lengths = [given.sizes[0] if given.sizes and len(given.sizes) == 1 else None for given in node.inputs]
    known_lengths = [length for length in lengths if isinstance(length, int)]
    if node.kind != "Concat" or len(known_lengths) < len(lengths) or sum(known_lengths) > MAX_DIMENSIONS:
        return ()
    origins = (
        given.origins or (given.elements_origin,) * n for given, n in zip(node.inputs, known_lengths, strict=True)
    )
    return list(chain.from_iterable(origins))


def _sizes_origin(node: Node) -> ValueOrigin:
    untyped = None if node.type in UNSIZED else next((given for given in node.inputs if not given.is_typed), None)
    if untyped is not None and (not node.domain or untyped.type is None):
        return untyped.sizes_origin
    sources = [given.elements_origin.source for given in node.inputs if given.constant is None]
    return node.origin._replace(source=sources[-1] if sources and not node.domain else None)
