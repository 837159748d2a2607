"""The lines of JSON that a process that reads models, and the one that started it, exchange.

An order is answered by a line for each part of the file, and one that ends the answer. The reading process has handled
a stranger's bytes: what it answers is believed only where it is of the form that is expected.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from dml_tile.errors import Problem
from dml_tile.readers.model_tile import DIALECTS, KnownShapes, TileNode
from dml_tile.tile_request import INT64_MAX

Part: TypeAlias = TileNode | Problem

OUT_OF_MEMORY: Final = 3
"""The status with which a reading process exits that has not the memory for a file."""


@dataclass(frozen=True, slots=True)
class Order:
    """A file to be read, the reader (ONNX or OpenVINO) to do it, and its bounds in seconds and bytes of memory."""

    path: str
    reader: str
    known_shapes: KnownShapes
    seconds: float
    memory: int

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"  # in ASCII, whatever the path's bytes are

    @classmethod
    def read(cls, line: bytes) -> Self:
        """The order of a line that ``line`` made."""
        fields = json.loads(line)
        known_shapes = fields.pop("known_shapes")
        shapes = {name: tuple(shape) for name, shape in known_shapes["input_shapes"].items()}
        return cls(known_shapes=KnownShapes(known_shapes["dims"], shapes), **fields)


def answer_line(part: Part | None) -> bytes:
    """The line of a part; None ends the answer."""
    answer = {"end": True} if part is None else asdict(part)
    return json.dumps(answer, ensure_ascii=False).encode(errors="replace") + b"\n"


def read_answer(line: bytes) -> Part | None:
    """The part that a line tells; None: the answer ends. Raises ValueError for what is no line of ``answer_line``."""
    return _ANSWER.validate_json(line).part()


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _End(_Answer):
    end: Literal[True]

    def part(self) -> None:
        return None


class _Problem(_Answer):
    pointer: str
    message: str

    def part(self) -> Problem:
        return Problem(self.pointer, self.message)


def _known(dialect: str) -> str:
    if dialect not in DIALECTS:
        raise ValueError("there is no such dialect")
    return dialect


_Size = Annotated[int, Field(ge=0, le=INT64_MAX)]


class _Node(_Answer):
    pointer: str
    dialect: Annotated[str, AfterValidator(_known)]
    data_type: str | None
    shape: tuple[_Size | str | None, ...] | None
    repeats: tuple[_Size, ...] | None
    error: str

    @model_validator(mode="after")
    def _of_one_rank(self) -> Self:
        if self.repeats is not None and (self.shape is None or len(self.shape) != len(self.repeats)):
            raise ValueError("shape and repeats are not promoted")
        return self

    def part(self) -> TileNode:
        return TileNode(self.pointer, self.dialect, self.data_type, self.shape, self.repeats, self.error)


_ANSWER: Final[TypeAdapter[_End | _Problem | _Node]] = TypeAdapter(_End | _Problem | _Node)
