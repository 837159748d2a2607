"""An operator that was read, and the descriptors of JSON: each is an item, or a finding that says why it is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from dml_tile.descriptors.structs import JSON_DOCUMENT
from dml_tile.findings import Finding, Position, unreadable
from dml_tile.input_errors import MAX_KEYS, too_many_keys
from dml_tile.json_text import SourceText
from dml_tile.text import abridged

if TYPE_CHECKING:
    from dml_tile.descriptors.graph import Descriptor
    from dml_tile.directml.operators import Operator
    from dml_tile.dxdispatch.rules import ModelPart
    from dml_tile.readers.captured_line import CapturedLine
    from dml_tile.readers.model_tile import TileNode, UnknownField
    from dml_tile.rules.capture import Capture

_MAX_CONTENT: Final = 500  # each entry of a baseline has it
_DIGEST_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Item:
    """An operator that was read, or another part of a DxDispatch model, with its place in the source.

    ``desc`` is its descriptor, ``node`` a model's Tile; ``other`` is the C name of an operator whose fields are not
    read. ``part`` is the part of a DxDispatch model: a dispatchable, or a part without an operator that breaks a rule.
    ``capture`` is what an application got for the descriptor, ``times`` the number of equal lines of a capture.
    ``departure`` says what keeps the node from DirectML, where that was asked.

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
    departure: Finding | None = field(default=None, compare=False, repr=False)
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
    def is_null_graph(self) -> bool:
        """True for a captured CompileGraph with a null pointer."""
        return self.capture is not None and self.capture.is_null_graph

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


def validated(
    model: type[Descriptor],
    data: dict[str, Any],
    pointer: str,
    text: SourceText | None = None,
    operator: Operator | None = None,
) -> ItemOrProblem:
    """Return the descriptor in an object of JSON, a part of a ``text``.

    Messages suggest the names of the ``operator``'s fields.
    """
    may_be_crowded = text is None or text.most_names > MAX_KEYS
    if may_be_crowded and (crowded := too_many_keys(data)):  # pydantic would make an error of each unknown key
        return unreadable(pointer, crowded)
    try:
        return Item(pointer, model.model_validate(data, context=JSON_DOCUMENT), text=text)
    except ValidationError as error:
        from dml_tile.readers.refusals import refused

        return refused(error, data, pointer, [field.name for field in operator.fields] if operator else (), model)
