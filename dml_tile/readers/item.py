"""An operator that was read, and the descriptors of JSON: each is an item, or a finding that says why it is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from dml_tile.descriptors.structs import JSON_DOCUMENT, Struct
from dml_tile.descriptors.tile import OPERATOR_TYPE, TileOperatorDesc
from dml_tile.directml.enums import OperatorType
from dml_tile.directml.operators import operator_name
from dml_tile.findings import Finding, Position, unreadable
from dml_tile.input_errors import too_many_keys
from dml_tile.text import abridged

if TYPE_CHECKING:
    from dml_tile.descriptors.graph import Descriptor
    from dml_tile.dxdispatch.rules import ModelPart
    from dml_tile.json_text import SourceText
    from dml_tile.readers.model_tile import TileNode, UnknownField
    from dml_tile.rules.capture import Capture

_MAX_CONTENT: Final = 500  # each entry of a baseline has it
_DIGEST_BYTES: Final = 4

MAX_OPERATOR: Final = 2_000
"""The most characters of an operator."""


@dataclass(frozen=True)
class Item:
    """An operator that was read, or another part of a DxDispatch model, with its place in the source.

    The ``subject`` is its descriptor, a model's Tile, or the C name of an operator whose fields are not read. ``part``
    is the part of a DxDispatch model: a dispatchable, or a part without an operator that breaks a rule. ``capture`` is
    what an application got for the descriptor, ``times`` the number of equal lines of a capture. A captured graph's
    ``operators`` are the pointers of its nodes' operators, empty for unknown ones, with the nodes' names; an operator's
    ``name`` has those of the nodes that it is. ``departure`` says what keeps a model's Tile from DirectML, where that
    was asked.

    ``line`` is the number of a line of JSON. ``places`` is the text of a source of JSON; in a result, only the
    positions needed, so that the text is not pickled. A result's item also has the name of its ``source``, the fields
    of a model's Tile that are ``unknown`` before it runs, and the back end that it goes through (``via``); ``content``
    identifies an item of a list.
    """

    pointer: str
    subject: Descriptor | TileNode | str | None = None
    part: ModelPart | None = field(default=None, compare=False, repr=False)
    capture: Capture | None = field(default=None, compare=False, repr=False)
    departure: Finding | None = field(default=None, compare=False, repr=False)
    times: int = 1
    operators: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    name: str = ""
    line: int | None = field(default=None, compare=False, repr=False)
    places: SourceText | Mapping[str, Position | None] = field(default_factory=dict, compare=False, repr=False)
    source: str = ""
    unknown: tuple[UnknownField, ...] = ()
    via: str = ""
    content: str = ""

    @property
    def desc(self) -> Descriptor | None:
        """The descriptor; None for a null pointer, and for items without one."""
        return self.subject if isinstance(self.subject, Struct) else None

    @property
    def other(self) -> str | None:
        """The C name of an operator whose fields are not read."""
        return self.subject if isinstance(self.subject, str) else None

    @property
    def node(self) -> TileNode | None:
        """The Tile of a model."""
        return None if self.subject is None or isinstance(self.subject, (Struct, str)) else self.subject

    @cached_property
    def operator(self) -> str:
        """The operator, or the kind of a model's part, in one line, after a capture's label and name; cut short."""
        return abridged(f"{self._label}{self.subject or self.part_kind or 'null'}", MAX_OPERATOR)

    @property
    def title(self) -> str:
        """The operator's type, or the kind of another part, after a capture's label and name."""
        kind = self.other or self.part_kind or "null"
        if self.node or isinstance(self.desc, TileOperatorDesc):
            kind = OperatorType.TILE.name
        elif self.desc is not None:
            from dml_tile.descriptors.operator import OperatorDesc  # most tiles are bare

            kind = operator_name(int(self.desc.type)) if isinstance(self.desc, OperatorDesc) else "graph"
        return f"{self._label}{kind.removeprefix(OPERATOR_TYPE.prefix)}"

    @property
    def _label(self) -> str:
        """The label and the name of a captured operator, in front of it."""
        label = self.capture.label if self.capture else ""
        return "".join(f"{abridged(each)}: " for each in (label, self.name) if each)

    @property
    def identity(self) -> str:
        """Its identity within its source, in this version and the next."""
        return self.content or self.pointer

    @property
    def is_operator(self) -> bool:
        """True unless it is a part of a model that holds no operator, such as a resource or a shader."""
        return self.part is None or self.part.is_operator

    @property
    def is_null_graph(self) -> bool:
        """True for a captured CompileGraph with a null pointer."""
        return self.capture is not None and self.capture.is_null_graph

    @property
    def is_whole_model(self) -> bool:
        """True for a whole DxDispatch model, which has findings at some targets only."""
        return self.part is not None and self.part.kind == "model"

    @property
    def part_kind(self) -> str:
        """The kind of a DxDispatch model's part without a descriptor, as ``resource``, ``shader``; empty for others."""
        return self.part.what if self.part and (self.other is not None or not self.part.is_operator) else ""

    @property
    def all_fields(self) -> str:
        """The fields of the descriptor, however they were spelled; the name of another operator."""
        if self.capture and self.capture.content:
            return self.capture.content
        return self.other or (self.desc.model_dump_json(by_alias=True) if self.desc else "null")

    def numbered(self, equals: Counter[str]) -> str:
        """Return what an item of a list says, in short, with a number if ``equals`` has counted equal ones."""
        if not self.pointer[1:2].isdigit() or self.part or self.node:
            return ""
        digest = blake2b(self.all_fields.encode(), digest_size=_DIGEST_BYTES).hexdigest()
        content = f"{abridged(str(self.subject or 'null'), _MAX_CONTENT)} {digest}"
        equals[content] += 1
        return content if equals[content] == 1 else f"{content} {equals[content]}"

    def position(self, path: str) -> Position | None:
        """Return the position of a field, with findings in a result; None if the source is not JSON."""
        if isinstance(self.places, Mapping):
            return self.places.get(path)
        return self.places.position(self.pointer, path)


ItemOrProblem = Item | Finding


def item_of(node: TileNode) -> Item:
    """Return the item of a model's Tile."""
    return Item(node.pointer, node, unknown=node.unknown)


def validated(
    model: type[Descriptor], data: dict[str, Any], pointer: str, text: SourceText | None = None
) -> ItemOrProblem:
    """Return the descriptor in an object of JSON, a part of a ``text``."""
    if crowded := too_many_keys(data):  # pydantic would make an error of each unknown key
        return unreadable(pointer, crowded)
    try:
        return Item(pointer, model.model_validate(data, context=JSON_DOCUMENT), places=text or {})
    except ValidationError as error:
        from dml_tile.readers.refusals import refused

        return refused(error, data, pointer, model)
