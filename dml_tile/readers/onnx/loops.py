"""Types of the loop-carried values: those that an iteration of a Loop takes from the one before.

A body may declare sizes that hold in the first iteration only. A loop-carried value keeps a size if the body, given it,
provably returns it; else it is unknown.

Page: https://onnx.ai/onnx/operators/onnx__Loop.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, count, repeat
from typing import Final, NamedTuple, TypeAlias

from onnx import GraphProto, NodeProto, TypeProto, ValueInfoProto

from dml_tile.readers.onnx.inference import nodes
from dml_tile.readers.onnx.values import common, dimensions

FIRST_CARRIED: Final = 2
"""The inputs of a Loop, and of its body, that come before the loop-carried ones."""

Declared: TypeAlias = Mapping[str, TypeProto]
"""The types that a Loop's body declares, by the values' names."""


def take_declared(graph: GraphProto) -> dict[str, Declared]:
    """Take the declared shapes out of all Loops' bodies, and return them by the names that the bodies are given.

    Otherwise onnx would infer from them what holds in the first iteration only.
    """
    taken: dict[str, Declared] = {}
    numbers = count()
    for node in nodes(graph):
        body = body_of(node)
        if body is not None:
            body.name = f"body {next(numbers)}"
            values = [*body.input[FIRST_CARRIED:], *body.output, *body.value_info]
            taken[body.name] = {value.name: _taken(value) for value in values}
    return taken


def body_of(node: NodeProto) -> GraphProto | None:
    """Return the body of a Loop; None for another node, and for a Loop without."""
    if node.op_type != "Loop":
        return None
    return next((attribute.g for attribute in node.attribute if attribute.name == "body"), None)


class LoopCarried(NamedTuple):
    """The names of a loop-carried value: the Loop's input, the body's input and output, and the Loop's output."""

    initial: str
    inner: str
    updated: str
    output: str


def loop_carried(node: NodeProto, body: GraphProto) -> list[LoopCarried]:
    """Return the loop-carried values; an output that is left out is empty.

    The body's first output is the condition.
    """
    given, results = node.input[FIRST_CARRIED:], body.output[FIRST_CARRIED - 1 :]
    inner = [value.name for value in body.input[FIRST_CARRIED:]]
    outputs = chain(node.output, repeat(""))
    return [
        LoopCarried(*names) for names in zip(given, inner, (value.name for value in results), outputs, strict=False)
    ]


def is_kept(before: Sequence[TypeProto | None], after: Sequence[TypeProto | None]) -> bool:
    """Return True if an iteration returns values of the types that it began with."""
    return all(map(_is_the_same, before, after))


def without_shape(type_: TypeProto | None) -> TypeProto | None:
    """Return the type of a tensor of any shape."""
    if type_ is None:
        return None
    shapeless = TypeProto()
    shapeless.CopyFrom(type_)
    shapeless.tensor_type.ClearField("shape")
    return shapeless


def _is_the_same(before: TypeProto | None, after: TypeProto | None) -> bool:
    if before is None or dimensions(before) is None:
        return True  # nothing is said that could be wrong
    agreed = common(before, after)
    return agreed is not None and dimensions(agreed) == dimensions(before)


def _taken(value: ValueInfoProto) -> TypeProto:
    declared = TypeProto()
    declared.CopyFrom(value.type)
    if value.type.HasField("tensor_type"):
        value.type.tensor_type.ClearField("shape")
    return declared
