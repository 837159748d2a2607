"""A node of a graph: its operator, its attributes, and its inputs and outputs as far as they are known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from onnx import AttributeProto, NodeProto, OperatorSetIdProto, defs

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

_OTHER: Final = "ai.onnx@"
_OTHER_OPSET: Final = re.compile(f"{re.escape(_OTHER)}(-?[0-9]{{1,19}})")


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

    def __init__(self, proto: NodeProto, opset: int | None, inputs: Sequence[Value] = ()) -> None:
        moved = _OTHER_OPSET.fullmatch(proto.domain)
        self.proto, self.type, self.inputs = proto, proto.op_type, inputs
        self.given = {name: value for name, value in zip(proto.input, inputs, strict=False) if name}
        self.domain = "" if moved or proto.domain == "ai.onnx" else proto.domain
        self.opset = int(moved[1]) if moved else opset
        self.kind = f"{self.domain}.{self.type}" if self.domain else self.type

    def seeing(self, view: Callable[[Value], Value]) -> Node:
        """Return the node with each input as it is in another view."""
        return Node(self.proto, self.opset, [view(value) for value in self.inputs])

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


def move(proto: NodeProto, source: int | None, target: int | None) -> None:
    """Make a node of one opset mean the same in a graph of another opset.

    If the operator differs, its domain names its opset, so that nothing takes it for the other version.
    """
    here, there = Node(proto, source), Node(proto, target)
    versions = {schema and schema.since_version for schema in (here.schema, there.schema)}
    if not here.domain and here.opset is not None and len(versions) > 1:
        set_apart(proto, source)


def set_apart(proto: NodeProto, opset: int | None) -> None:
    """Name a node's opset in its domain, so that onnx infers nothing; ``Node`` has the original."""
    if opset is not None and not proto.domain.startswith(_OTHER):
        proto.domain = f"{_OTHER}{opset}"
