"""Nodes as the kernels of ONNX Runtime's DirectML provider see them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, Final

from onnx import AttributeProto

from dml_tile.back_ends.descriptions.node import Input, KernelNode
from dml_tile.back_ends.kernels import Version
from dml_tile.readers.onnx.file import Array, Tensors
from dml_tile.readers.onnx.nodes import Node, place, schema_of
from dml_tile.readers.onnx.values import Value, dimensions

_READ: Final[Mapping[int, Callable[[AttributeProto], Any]]] = {
    AttributeProto.FLOAT: lambda attribute: attribute.f,
    AttributeProto.INT: lambda attribute: attribute.i,
    AttributeProto.STRING: lambda attribute: attribute.s.decode(errors="replace"),
    AttributeProto.FLOATS: lambda attribute: list(attribute.floats),
    AttributeProto.INTS: lambda attribute: list(attribute.ints),
    AttributeProto.STRINGS: lambda attribute: [each.decode(errors="replace") for each in attribute.strings],
}
"""Reads the attributes that descriptions read, by their kinds; tensors have a reader of their own."""


def kernel_node(
    node: Node, version: int, own: Collection[str], tensors: Tensors | None, release: Version
) -> KernelNode:
    """Return a scanned node as a kernel of a release sees it, before the model runs.

    ``version`` is the opset that introduced its operator, ``own`` are the names of its graph's values: a constant from
    outside is not DirectML's to own. ``tensors`` reads what is not in memory.
    """
    pairs = zip(node.proto.input, node.inputs, strict=True)
    inputs = [_input(name, value, name in own) if name else None for name, value in pairs]
    outputs = [_input(name, node.outputs[name], True) if name else None for name in node.proto.output]
    attributes = {
        name: _plain(attribute, tensors)
        for name, attribute in node.attributes.items()
        if (attribute.type in _READ or attribute.type == AttributeProto.TENSOR) and not attribute.ref_attr_name
    }
    attributes = {**_defaults(node.domain, node.type, version), **attributes}
    return KernelNode(node.domain, node.type, version, release, inputs, outputs, attributes)


def _input(name: str, value: Value, is_own: bool) -> Input:
    sizes = None if value.early_type is None else dimensions(value.early_type)
    known = tuple([size for size in sizes or () if isinstance(size, int)])
    shape = known if sizes is not None and len(known) == len(sizes) else None
    return Input(
        place(name),
        value.data_type,
        shape,
        value.is_folded,
        is_own,
        lambda: value.constant if value.is_folded else None,
    )


def _plain(attribute: AttributeProto, tensors: Tensors | None) -> Any:
    """Return an attribute's value; of a tensor, its elements, None if they are not read."""
    if read := _READ.get(attribute.type):
        return read(attribute)
    held: Array | Callable[[], Array | None] | None = tensors.held(attribute.t) if tensors else None
    return held() if callable(held) else held


@cache
def _defaults(domain: str, operator: str, version: int) -> Mapping[str, Any]:
    """Return the defaults of the attributes of an operator's version, which ONNX Runtime adds to its nodes."""
    schema: Any = schema_of(domain, operator, version)
    attributes = {} if schema is None else schema.attributes
    return {name: _plain(each.default_value, None) for name, each in attributes.items() if each.default_value.type}
