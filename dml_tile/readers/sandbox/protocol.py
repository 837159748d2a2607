"""Defines the lines of JSON that parent and child exchange.

The child answers an order by a line for each part of the file, and a line that ends the answer. Since it has handled
untrusted bytes, the parent accepts only lines of the expected form.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, PlainValidator, TypeAdapter, model_validator

from dml_tile.dialects.request import INT64_MAX, Dialect
from dml_tile.errors import Problem
from dml_tile.input_errors import Record
from dml_tile.readers.model_tile import DIALECTS, KnownShapes, TileNode

Part: TypeAlias = TileNode | Problem

OUT_OF_MEMORY: Final = 3
"""The child's exit status when it runs out of memory."""


@dataclass(frozen=True, slots=True)
class Order:
    """Asks for a file to be read by a reader (ONNX or OpenVINO), within bounds in seconds and bytes of memory."""

    path: str
    reader: str
    known_shapes: KnownShapes
    seconds: float
    memory: int

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"  # in ASCII, whatever the path's bytes are

    @classmethod
    def read(cls, line: bytes) -> Self:
        """Parse a line made by ``line``."""
        fields = json.loads(line)
        known_shapes = fields.pop("known_shapes")
        shapes = {name: tuple(shape) for name, shape in known_shapes["input_shapes"].items()}
        return cls(known_shapes=KnownShapes(known_shapes["dims"], shapes, known_shapes["infer"]), **fields)


@dataclass(frozen=True, slots=True)
class End:
    """Ends an answer; ``dimensions`` are the names that an ONNX model gives dimensions."""

    dimensions: tuple[str, ...] = ()


def answer_line(part: Part | End) -> bytes:
    """Encode a part of an answer, or its end."""
    answer: dict[str, Any]
    match part:
        case End():
            answer = {"end": True, "dimensions": part.dimensions}
        case Problem():
            answer = {"pointer": part.pointer, "message": part.message}
        case TileNode():
            answer = {field.name: getattr(part, field.name) for field in fields(part)} | {"dialect": part.dialect.name}
    return json.dumps(answer, ensure_ascii=False).encode(errors="replace") + b"\n"


def read_answer(line: bytes) -> Part | End:
    """Decode a line of an answer. Raises ValueError for a malformed line."""
    return _ANSWER.validate_json(line).part()


class _Answer(Record):
    model_config = ConfigDict(strict=True)


_ARRAY: Final = Field(fail_fast=True, strict=False)
"""Takes the list that JSON's array becomes for a tuple; what is in it is held to strict types."""


class _End(_Answer):
    end: Literal[True]
    dimensions: Annotated[tuple[str, ...], _ARRAY] = ()

    def part(self) -> End:
        return End(self.dimensions)


class _Problem(_Answer):
    pointer: str
    message: str

    def part(self) -> Problem:
        return Problem(self.pointer, self.message)


def _dialect_named(name: object) -> object:
    if not isinstance(name, str) or name not in DIALECTS:
        raise ValueError("is not a known dialect")
    return DIALECTS[name]


_Size = Annotated[int, Field(ge=0, le=INT64_MAX)]


class _Node(_Answer):
    pointer: str
    dialect: Annotated[Dialect, PlainValidator(_dialect_named)]
    data_type: str | None
    shape: Annotated[tuple[_Size | str | None, ...], _ARRAY] | None
    repeats: Annotated[tuple[_Size | None, ...], _ARRAY] | None
    error: str
    folded: str
    input_origins: Annotated[tuple[str, ...], _ARRAY]
    repeats_origins: Annotated[tuple[str, ...], _ARRAY]
    inferred_by: str
    contradiction: str

    @model_validator(mode="after")
    def _have_one_rank(self) -> Self:
        if self.repeats is not None and (self.shape is None or len(self.shape) != len(self.repeats)):
            raise ValueError("shape and repeats must have the same length")
        return self

    def part(self) -> TileNode:
        return TileNode(**{name: getattr(self, name) for name in type(self).model_fields})


_ANSWER: Final[TypeAdapter[_End | _Problem | _Node]] = TypeAdapter(_End | _Problem | _Node)
