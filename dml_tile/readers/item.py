"""An operator that was read, and the descriptors of JSON: each is an item, or a finding that says why it is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

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
from dml_tile.findings import Finding, Position, unreadable
from dml_tile.input_errors import C_NAMES, problems_of, too_many_keys
from dml_tile.json_text import SourceText
from dml_tile.text import abridged

if TYPE_CHECKING:
    from dml_tile.dxdispatch.rules import ModelPart
    from dml_tile.readers.captured_line import CapturedLine
    from dml_tile.readers.model_tile import TileNode, UnknownField
    from dml_tile.rules.capture import Capture

_MAX_CONTENT: Final = 500  # each entry of a baseline has it
_DIGEST_BYTES: Final = 4
_TENSOR_FIELDS: Final = [*c_names(TensorDesc, BufferTensorDesc).values()]


@dataclass(frozen=True, slots=True)
class Item:
    """An operator that was read, or another part of a DxDispatch model, with its place in the source.

    ``desc`` is its descriptor, ``node`` a model's Tile; ``other`` is the C name of an operator whose fields are not
    read. ``part`` is the part of a DxDispatch model: a dispatchable, or a part without an operator that breaks a rule.
    ``capture`` is what an application got for the descriptor, ``times`` the number of equal lines of a capture.

    A result's item also has the name of its ``source``, the ``operator`` in one line, the node's fields that are
    ``unknown`` before it runs, and the back end that the node goes through (``via``); ``content`` identifies an item of
    a list. It has ``positions`` of the fields with findings in a source of JSON, in place of the reader's: a capturing
    device's ``line``, a captured graph's content, and the source's ``text``.
    """

    pointer: str
    desc: Descriptor | None = None
    other: str | None = None
    node: TileNode | None = field(default=None, compare=False, repr=False)
    part: ModelPart | None = field(default=None, compare=False, repr=False)
    capture: Capture | None = field(default=None, compare=False, repr=False)
    line: CapturedLine | None = field(default=None, compare=False, repr=False)
    captured_content: str = field(default="", compare=False, repr=False)
    times: int = 1
    text: SourceText | None = field(default=None, compare=False, repr=False)
    source: str = ""
    operator: str = ""
    unknown: tuple[UnknownField, ...] = ()
    via: str = ""
    content: str = ""
    positions: Mapping[str, Position | None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def identity(self) -> str:
        """Its identity within its source, in this version and the next."""
        return self.content or self.pointer

    @property
    def is_operator(self) -> bool:
        """True unless it is a part of a model that holds no operator, such as a resource or a shader."""
        return self.part is None or self.part.is_operator

    @property
    def is_whole_model(self) -> bool:
        """True for a whole DxDispatch model, which has findings at some targets only."""
        return self.part is not None and self.part.kind == "model"

    @property
    def part_kind(self) -> str:
        """The kind of a part of a DxDispatch model without a descriptor, such as ``resource``; empty for others."""
        return self.part.kind if self.part and (self.other is not None or not self.part.is_operator) else ""

    @property
    def all_fields(self) -> str:
        """The fields of the descriptor, however they were spelled; the name of another operator."""
        return (
            self.other or self.captured_content or (self.desc.model_dump_json(by_alias=True) if self.desc else "null")
        )

    def numbered(self, equals: Counter[str]) -> str:
        """Return what an item of a list says, in short, with a number if ``equals`` has counted equal ones."""
        if self.node or self.part or not self.pointer[1:2].isdigit():
            return ""
        digest = blake2b(self.all_fields.encode(), digest_size=_DIGEST_BYTES).hexdigest()
        content = f"{abridged(str(self.other or self.desc or 'null'), _MAX_CONTENT)} {digest}"
        equals[content] += 1
        return content if equals[content] == 1 else f"{content} {equals[content]}"

    def position(self, path: str) -> Position | None:
        """Return the position of a field with findings; None if the source is not JSON."""
        return self.positions.get(path)


ItemOrProblem = Item | Finding


def item_of(node: TileNode) -> Item:
    """Return the item of a model's Tile."""
    return Item(node.pointer, node=node, operator=str(node), unknown=node.unknown)


def validated(model: type[Descriptor], data: dict[str, Any], pointer: str, fields: Sequence[str] = ()) -> ItemOrProblem:
    if crowded := too_many_keys(data):  # pydantic would make an error of each unknown key
        return unreadable(pointer, crowded)
    try:
        return Item(pointer, model.model_validate(data, context=JSON_DOCUMENT))
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
