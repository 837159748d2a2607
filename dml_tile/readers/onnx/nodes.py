"""A node of a graph: its operator, its attributes, and its inputs and outputs as far as they are known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from onnx import AttributeProto, NodeProto, OperatorSetIdProto, defs

from dml_tile.back_ends.described_node import NodePlace
from dml_tile.back_ends.placement import NAMELESS, ModelNode
from dml_tile.readers.model_tile import ValueOrigin
from dml_tile.readers.onnx.values import Value
from dml_tile.text import short_name

OPERATORS: Final = {
    trait: frozenset(names)
    for trait, names in json.loads(Path(__file__).with_name("operators.json").read_text(encoding="utf-8")).items()
    if trait != "source"
}
"""The operators with a trait, by the trait."""

APART: Final = "dml_tile.apart"
"""The domain of onnx's operators of which onnx is to infer nothing."""


def place(*steps: str) -> str:
    """Return the steps as a path, cut short."""
    return short_name("/".join(filter(None, steps)))


class _Attributes(dict[str, AttributeProto]):
    """Attributes by name; one that is not there is empty."""

    def __missing__(self, name: str) -> AttributeProto:
        return AttributeProto()


class Node:
    """A node, with the known values of its inputs, unknown for one that is left out; they are none before the scan.

    ``domain`` is "" for onnx's own operators, ``opset`` the version of these, None if the model imports none. ``kind``
    is the operator's type, behind its domain if it has one. ``given`` are the inputs that are not left out, by name.
    ``outputs`` and ``placed`` are there once the node is scanned; ``quantised`` and ``transposed`` are TileNode's.
    """

    outputs: Mapping[str, Value]
    placed: ModelNode
    quantised = ""
    transposed: tuple[int, ...] = ()

    def __init__(self, proto: NodeProto, domain: str, opset: int | None, inputs: Sequence[Value] = ()) -> None:
        self.proto, self.type, self.inputs = proto, proto.op_type, inputs
        self.given = {name: value for name, value in zip(proto.input, inputs, strict=False) if name}
        self.domain = "" if domain == "ai.onnx" else domain
        self.opset = opset
        self.kind = f"{self.domain}.{self.type}" if self.domain else self.type

    def seeing(self, view: Callable[[Value], Value]) -> Node:
        """Return the node with each input as it is in another view."""
        return Node(self.proto, self.domain, self.opset, [view(value) for value in self.inputs])

    @cached_property
    def attributes(self) -> Mapping[str, AttributeProto]:
        """The attributes by name; empty for one that is not there."""
        return _Attributes((attribute.name, attribute) for attribute in self.proto.attribute)

    @property
    def is_folded(self) -> bool:
        """True if onnxruntime has all outputs of the node, which is scanned, as constants."""
        return all(value.is_folded for value in self.outputs.values())

    @property
    def bounds(self) -> slice:
        """The sizes that a Shape returns."""
        start, end = (self.attributes[name].i if name in self.attributes else None for name in ("start", "end"))
        return slice(start, end)

    @property
    def schema(self) -> defs.OpSchema | None:
        """onnx's schema of the operator; None if there is none."""
        return None if self.opset is None else schema_of(self.domain, self.type, self.opset)

    @property
    def origin(self) -> ValueOrigin:
        """The origin of values that the node computes from known inputs, or passes to graphs inside it."""
        return ValueOrigin(f"{place(self.kind) or NAMELESS} {place(self.proto.name)!r}")


def schema_of(domain: str, type_: str, opset: int) -> defs.OpSchema | None:
    """Return onnx's schema of an operator; None if there is none."""
    try:
        return defs.get_schema(type_, opset, domain)
    except (defs.SchemaError, TypeError):  # TypeError: an opset past a C int
        return None


def default_opset(imports: Iterable[OperatorSetIdProto]) -> int | None:
    """Return the version of onnx's own operators that is imported."""
    return next((entry.version for entry in imports if entry.domain in ("", "ai.onnx")), None)


class NodeTable:
    """The places of a model's nodes, and the opsets of those that are of another opset than the model.

    A proto's doc_string is its number here, which copies of it keep; one without a number is not in the table.
    """

    def __init__(self, protos: Iterable[NodeProto], opset: int | None) -> None:
        for proto in protos:
            proto.ClearField("doc_string")
        self.opset = opset
        self._places: list[NodePlace | None] = []
        self._apart: dict[str, tuple[str, int | None]] = {}
        """The domains and the opsets of nodes that are set apart, by their numbers."""

    def put(self, proto: NodeProto, place: NodePlace | None) -> None:
        """Give a proto a place; None takes it away."""
        if (own := self._apart.get(proto.doc_string)) is not None:
            self._apart[str(len(self._places))] = own
        proto.doc_string = str(len(self._places))
        self._places.append(place)

    def is_apart(self, proto: NodeProto) -> bool:
        """Return True for a node that is set apart."""
        return proto.doc_string in self._apart

    def place_of(self, proto: NodeProto) -> NodePlace | None:
        """Return the place of a proto; None if it has none yet."""
        return self._places[int(proto.doc_string)] if proto.doc_string else None

    def node(self, proto: NodeProto, inputs: Sequence[Value] = ()) -> Node:
        """Return a proto as a node, whose opset is its own or else the model's."""
        domain, opset = self._apart.get(proto.doc_string, (proto.domain, self.opset))
        return Node(proto, domain, opset, inputs)

    def move(self, proto: NodeProto, opset: int | None) -> None:
        """Make a node of an opset mean the same in the model.

        If the operator differs, it is set apart, so that nothing takes it for the other version.
        """
        here, there = Node(proto, proto.domain, opset), Node(proto, proto.domain, self.opset)
        versions = {schema and schema.since_version for schema in (here.schema, there.schema)}
        if opset is not None and not here.domain and len(versions) > 1:
            self.set_apart(here)

    def set_apart(self, node: Node) -> None:
        """Keep a node's domain and opset here and change its domain, so that onnx infers nothing."""
        if node.opset is None and not node.domain:
            return
        if not node.proto.doc_string:
            self.put(node.proto, None)
        if not self.is_apart(node.proto):
            node.proto.domain = APART
            self._apart[node.proto.doc_string] = node.domain, node.opset
