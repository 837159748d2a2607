"""A descriptor that was read from JSON, or why it could not be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from dml_tile.descriptors.graph import Descriptor
from dml_tile.descriptors.structs import JSON_DOCUMENT, c_names
from dml_tile.descriptors.tile import BufferTensorDesc, TensorDesc
from dml_tile.dxdispatch.rules import ModelPart
from dml_tile.errors import Problem
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


DescriptorOrProblem = JsonDescriptor | Problem


def validated(
    model: type[Descriptor], data: dict[str, Any], pointer: str, fields: Sequence[str] = ()
) -> DescriptorOrProblem:
    if crowded := too_many_keys(data):  # pydantic would make an error of each unknown key
        return Problem(pointer, crowded)
    try:
        return JsonDescriptor(pointer, model.model_validate(data, context=JSON_DOCUMENT))
    except ValidationError as error:
        return refused(error, data, pointer, fields)


def refused(error: ValidationError, data: Any, pointer: str, fields: Sequence[str] = ()) -> Problem:
    names = [*fields, *_TENSOR_FIELDS] if fields else C_NAMES
    return Problem(pointer, "; ".join(problem.message for problem in problems_of(error, data, pointer, names)))
