"""A descriptor that was read from JSON, or why it could not be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from pydantic import ValidationError
from pydantic.alias_generators import to_snake

from dml_tile.descriptors.graph import (
    Descriptor,
    GraphDesc,
    InputGraphEdge,
    IntermediateGraphEdge,
    OperatorGraphNodeDesc,
    OutputGraphEdge,
)
from dml_tile.descriptors.operator import KINDS, OperatorDesc
from dml_tile.descriptors.structs import JSON_DOCUMENT, Struct, c_names
from dml_tile.descriptors.tile import BufferTensorDesc, TensorDesc
from dml_tile.directml.enums import OperatorType
from dml_tile.directml.operators import Operator, operator_named, operators
from dml_tile.dxdispatch.rules import ModelPart
from dml_tile.findings import Finding, unreadable
from dml_tile.input_errors import C_NAMES, problems_of, too_many_keys
from dml_tile.json_text import SourceText
from dml_tile.readers.captured_line import CapturedLine
from dml_tile.rules.capture import Capture

_TENSOR_FIELDS: Final = [*c_names(TensorDesc, BufferTensorDesc).values()]


@dataclass(frozen=True, slots=True)
class JsonDescriptor:
    """A descriptor, its JSON pointer, and the text that it was read from.

    ``other`` is the C name of an operator other than Tile that is not read. ``part`` is the part of a DxDispatch model
    that was read: a dispatchable, or a part without an operator that breaks a rule. ``capture`` is what an application
    got for the descriptor, ``times`` the number of equal lines of a capture; ``line`` is a capturing device's line,
    ``captured_content`` a captured graph's content.
    """

    pointer: str
    desc: Descriptor | None = None
    other: str | None = None
    part: ModelPart | None = field(default=None, compare=False, repr=False)
    capture: Capture | None = field(default=None, compare=False, repr=False)
    line: CapturedLine | None = field(default=None, compare=False, repr=False)
    captured_content: str = field(default="", compare=False, repr=False)
    times: int = 1
    text: SourceText | None = field(default=None, compare=False, repr=False)

    @property
    def is_operator(self) -> bool:
        """True unless it is a part of a model that holds no operator, such as a resource or a shader."""
        return self.part is None or self.part.is_operator

    @property
    def is_whole_model(self) -> bool:
        """True for a whole DxDispatch model, which has findings at some targets only."""
        return self.part is not None and self.part.kind == "model"

    @property
    def content(self) -> str:
        """The fields of the descriptor, however they were spelled; the name of another operator."""
        return (
            self.other or self.captured_content or (self.desc.model_dump_json(by_alias=True) if self.desc else "null")
        )


DescriptorOrProblem = JsonDescriptor | Finding


def validated(
    model: type[Descriptor], data: dict[str, Any], pointer: str, fields: Sequence[str] = ()
) -> DescriptorOrProblem:
    if crowded := too_many_keys(data):  # pydantic would make an error of each unknown key
        return unreadable(pointer, crowded)
    try:
        return JsonDescriptor(pointer, model.model_validate(data, context=JSON_DOCUMENT))
    except ValidationError as error:
        return refused(error, data, pointer, fields, model)


def refused(
    error: ValidationError, data: Any, pointer: str, fields: Sequence[str] = (), model: type[Descriptor] | None = None
) -> Finding:
    names = [*fields, *_TENSOR_FIELDS] if fields else C_NAMES
    keys_at = partial(_keys_at, model, data) if model else None
    problems = problems_of(error, data, pointer, names, keys_at)
    return unreadable(pointer, "; ".join(problem.message for problem in problems))


def _keys_at(model: type[Descriptor], data: Any, path: Sequence[str | int]) -> Sequence[str]:
    """Return the C names of the keys that an object within a descriptor may have."""
    place: type[Struct] | Operator = GraphDesc if issubclass(model, GraphDesc) else _operator_of(data)
    for step in path:
        data = data[step]
        if step in ("Desc", "desc"):
            place = BufferTensorDesc if place is TensorDesc else place
        elif isinstance(step, str):
            place = _struct_at(place, step, data)
    if isinstance(place, Operator):
        return [field.name for field in place.fields]
    return [*c_names(place).values(), *(c_names(BufferTensorDesc).values() if place is TensorDesc else ())]


def _struct_at(place: type[Struct] | Operator, key: str, data: Any) -> type[Struct] | Operator:
    """Return what describes the object, or the objects, under a key."""
    if not isinstance(place, Operator):
        return _GRAPH_PARTS.get(to_snake(key)) or _operator_of(data)
    kind = next((field.kind for field in place.fields if to_snake(field.name) == to_snake(key)), "t")
    struct = KINDS[kind].struct if kind in KINDS else None
    return _operator_of(data) if struct is OperatorDesc else struct or TensorDesc


def _operator_of(data: Any) -> Operator:
    """Return the operator whose fields an object has; Tile where it does not say."""
    kind = data.get("Type", data.get("type")) if isinstance(data, dict) else None
    named = operator_named(kind) if isinstance(kind, str) else operators().get(kind) if type(kind) is int else None
    return named or operators()[OperatorType.TILE]


_GRAPH_PARTS: Final[dict[str, type[Struct]]] = {
    "nodes": OperatorGraphNodeDesc,
    "input_edges": InputGraphEdge,
    "output_edges": OutputGraphEdge,
    "intermediate_edges": IntermediateGraphEdge,
}
