"""Finding the descriptors in a JSON document: a DxDispatch model, a bare descriptor, a list of them, or JSON lines."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from pydantic import ValidationError

from dml_tile.descriptors import OPERATOR_TYPE, BufferTensorDesc, OperatorDesc, TensorDesc, TileOperatorDesc
from dml_tile.enums import OperatorType
from dml_tile.errors import InputError, Problem
from dml_tile.files.reading import open_without_waiting
from dml_tile.input_errors import MAX_PROBLEMS, MAX_PROBLEMS_COUNTED, ProblemList, problems_of, unreadable
from dml_tile.operators import is_operator
from dml_tile.readers.dxdispatch.keys import is_dxdispatch_model
from dml_tile.readers.file_kinds import unread_kind
from dml_tile.readers.json.captures import CapturedLine, is_capture
from dml_tile.readers.json.positions import SourceText
from dml_tile.readers.json.syntax import Document, parse_document, parse_json
from dml_tile.rules.capture import Capture
from dml_tile.rules.dxdispatch import Kind, ModelPart, part_findings
from dml_tile.spellings import JSON_DOCUMENT
from dml_tile.text import json_pointer, shown

MAX_DOCUMENT_BYTES: Final = 2**28
"""The largest document that is read as a whole; JSON lines may be longer together, but not each."""

_SKIPPED_AT_ONCE: Final = 2**20
_TILE_FIELDS: Final = {name: str(field.alias) for name, field in TileOperatorDesc.model_fields.items()}
_KNOWN_KEYS: Final = {
    key
    for model in (OperatorDesc, TileOperatorDesc, TensorDesc, BufferTensorDesc)
    for name, field in model.model_fields.items()
    for key in (name, str(field.alias))
} | {"NullDesc"}
MAX_KEYS: Final = 64
"""Of an object with more, most unknown keys are counted only."""

MAX_PROBLEMS_OF_A_SOURCE: Final = 100
"""The most unreadable parts of a source that are reported one by one."""

LINES_SUFFIXES: Final = (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class JsonDescriptor:
    """A descriptor, its JSON pointer, and the text that it was read from.

    ``other`` is the C name of an operator other than Tile, which is not read. ``part`` is the part of a DxDispatch
    model that was read: a dispatchable, or one without an operator that breaks a rule of its own. ``capture`` is what
    an application got for the descriptor.
    """

    pointer: str
    desc: OperatorDesc | TileOperatorDesc | None = None
    other: str | None = None
    part: ModelPart | None = field(default=None, compare=False, repr=False)
    capture: Capture | None = field(default=None, compare=False, repr=False)
    text: SourceText | None = field(default=None, compare=False, repr=False)

    @property
    def is_operator(self) -> bool:
        """False for a part of a model that holds no operator, such as a resource."""
        return self.part is None or self.part.kind is Kind.DISPATCHABLE


Part = JsonDescriptor | Problem


def read_source(name: str, file: BinaryIO | None = None) -> Iterator[Part]:
    """Yield the descriptors of a file, or of standard input (``-``), and what of it cannot be read.

    Lines of a .jsonl or .ndjson file are read one by one. Where the ``file`` is open, its errors are the caller's.
    """
    try:
        with nullcontext(file) if file else _opened(name) as stream:
            if name.lower().endswith(LINES_SUFFIXES):
                yield from read_lines(_lines_of(stream))
            else:
                yield from read_document(_whole(stream, name), name)
    except InputError as error:
        yield from error.problems
    except OSError as error:
        if file:
            raise
        yield Problem("", error.strerror or str(error))


def read_one(name: str) -> Document:
    """The JSON document that a file, or standard input (``-``), begins with. Raises InputError."""
    try:
        with _opened(name) as file:
            text = _whole(file, name)
            return parse_document(text)
    except OSError as error:
        raise unreadable("", error.strerror or str(error)) from None
    except InputError:
        raise
    except ValueError as error:
        raise unreadable("", _why_unreadable(name, text, error)) from None


def _why_unreadable(name: str, text: bytes, error: ValueError) -> str:
    return unread_kind(name, text) or f"unreadable JSON: {error}"


def _opened(name: str) -> AbstractContextManager[BinaryIO]:
    if name != "-":
        return open_without_waiting(Path(name))
    if sys.stdin is None:
        raise unreadable("", "standard input is closed")
    return nullcontext(sys.stdin.buffer)


def _whole(file: BinaryIO, name: str) -> bytes:
    text = file.read(MAX_DOCUMENT_BYTES + 1)
    if len(text) > MAX_DOCUMENT_BYTES:
        if kind := unread_kind(name, text):
            raise unreadable("", kind)
        raise unreadable("", f"larger than {MAX_DOCUMENT_BYTES} bytes; JSON lines (.jsonl) may be longer")
    return text


def read_document(text: bytes, name: str = "-") -> Iterator[Part]:
    """The descriptors of one document, and what of it cannot be read; ``name`` is its file's.

    What is no document is read as JSON lines if one of several lines is an object of its own, unless it begins as a
    list.
    """
    try:
        document = parse_document(text)
        if document.rest and not is_dxdispatch_model(document.value):
            parse_json(text)  # raises an error that tells where the rest begins
    except ValueError as error:
        blank = text.count(b"\n", 0, len(text) - len(text.lstrip()))
        lines = text.rstrip().split(b"\n")[blank:]
        is_list = b"".join(lines[:1]).lstrip().removeprefix(codecs.BOM_UTF8).startswith(b"[")
        if len(lines) > 1 and not is_list and any(line.startswith(b"{") and _is_json(line) for line in lines):
            yield from read_lines(lines, blank + 1)
        else:
            yield Problem("", _why_unreadable(name, text, error))
        return
    yield from _located(_limited(_parts(document)), SourceText(text))


def read_lines(lines: Iterable[bytes], first: int = 1) -> Iterator[Part]:
    """The descriptors of JSON lines, of which the ``first`` has this number in its file.

    Their pointers begin with the index of the line, from 0.
    """
    yield from _limited(
        part
        for i, line in enumerate(lines)
        if line.strip()
        for part in _located([_line(line, json_pointer([i]), first + i)], SourceText(line, first + i))
    )


def _limited(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts, of which so many problems are told one by one, and the others counted until they are too many."""
    problems = 0
    for part in parts:
        problems += isinstance(part, Problem)
        if problems <= MAX_PROBLEMS_OF_A_SOURCE or not isinstance(part, Problem):
            yield part
        elif problems > MAX_PROBLEMS_COUNTED:
            yield Problem(
                "",
                f"and more than {MAX_PROBLEMS_COUNTED - MAX_PROBLEMS_OF_A_SOURCE} more problems; the rest is not read",
            )
            return
    if problems > MAX_PROBLEMS_OF_A_SOURCE:
        yield Problem("", f"and {problems - MAX_PROBLEMS_OF_A_SOURCE} more problems")


def _lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file; one that is longer than MAX_DOCUMENT_BYTES is cut, which makes it too long to be read."""
    while line := file.readline(MAX_DOCUMENT_BYTES + 1):
        if len(line) > MAX_DOCUMENT_BYTES:
            rest = line
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(_SKIPPED_AT_ONCE)
        yield line


def _line(line: bytes, pointer: str, number: int) -> Part:
    if len(line) > MAX_DOCUMENT_BYTES:
        return Problem(pointer, f"line {number} is larger than {MAX_DOCUMENT_BYTES} bytes")
    try:
        data = parse_json(line.rstrip())
    except ValueError as error:
        place = str(error).replace("at line 1 column", f"at line {number} column")
        return Problem(pointer, f"unreadable JSON: {place}")
    return _descriptor(data, pointer)


def _located(parts: Iterable[Part], text: SourceText) -> Iterator[Part]:
    """The parts of a text, which is asked at once where the problems lie, and where the findings lie when there are."""
    for part in parts:
        if isinstance(part, JsonDescriptor):
            yield replace(part, text=text)
        else:
            yield replace(part, position=text.position(part.pointer) if part.pointer else None)


def _without_schema(data: Any) -> Any:
    """A document without the key that names its JSON Schema to an editor."""
    if isinstance(data, dict) and "$schema" in data:
        return {key: value for key, value in data.items() if key != "$schema"}
    return data


def _parts(document: Document) -> Iterator[Part]:
    data = document.value
    if is_dxdispatch_model(data):
        yield from _model_parts(document)
    elif isinstance(data, list):
        for i, item in enumerate(data):
            yield _descriptor(item, json_pointer([i]))
    else:
        yield _descriptor(data, "")


def _model_parts(document: Document) -> Iterator[Part]:
    # which only models need, and which takes longer to import than all else that reads descriptors
    from dml_tile.readers.dxdispatch.model import TileDispatchable, read_parts
    from dml_tile.readers.dxdispatch.parts import model_parts
    from dml_tile.readers.dxdispatch.resources import literal_problems

    model, problems = read_parts(document.value)
    yield from problems or literal_problems(model.resources)
    parts = dict(model_parts(document))
    for name, dispatchable in model.dispatchables.items():
        pointer = json_pointer(["dispatchables", name])
        part = parts.pop(pointer)
        if isinstance(dispatchable, TileDispatchable):
            yield JsonDescriptor(pointer, OperatorDesc(type=OperatorType.TILE, desc=dispatchable.desc), part=part)
        else:
            yield JsonDescriptor(pointer, other=dispatchable.type, part=part)
    yield from (JsonDescriptor(pointer, part=part) for pointer, part in parts.items() if part_findings(part))


def _descriptor(document: Any, pointer: str) -> Part:
    """A bare DML_TILE_OPERATOR_DESC, or a DML_OPERATOR_DESC with its Type."""
    data = _without_schema(document)
    if data is None:
        return JsonDescriptor(pointer)
    if is_capture(data):
        return _captured(data, pointer)
    typed = next((key for key in ("Type", "type") if isinstance(data, dict) and key in data), None)
    if is_dxdispatch_model(data):
        return Problem(pointer, "a DxDispatch model was provided, which has to be the whole document")
    if not isinstance(data, dict) or (typed is None and not data.keys() & {*_TILE_FIELDS, *_TILE_FIELDS.values()}):
        return Problem(pointer, _no_descriptor(document))
    if typed is None:
        return _validated(TileOperatorDesc, data, pointer)
    operator = _operator_type(data[typed])
    if isinstance(operator, str):
        if not (_may_be_operator(data[typed]) or data.keys() & {"Desc", "desc"}):
            return Problem(pointer, _no_descriptor(document))
        return JsonDescriptor(pointer, other=operator)
    if operator is not None and operator != OperatorType.TILE:
        return _validated(OperatorDesc, {"Type": operator, "Desc": None}, pointer)
    return _validated(OperatorDesc, data, pointer)


def _captured(data: dict[str, Any], pointer: str) -> Part:
    """A line of dml_tile/capture.h."""
    try:
        captured = CapturedLine.model_validate(data)
    except ValidationError as error:
        return Problem(pointer, "; ".join(problem.message for problem in problems_of(error, data, pointer)))
    part = _descriptor(captured.operator, f"{pointer}/operator")
    if not isinstance(part, JsonDescriptor) or part.other is not None:
        return part
    desc = part.desc if isinstance(part.desc, OperatorDesc) else None
    return replace(part, capture=Capture(desc, captured.hresult, captured.feature_level))


def _no_descriptor(data: Any) -> str:
    is_schema = isinstance(data, dict) and data.get("type") == "object" and "properties" in data
    return (
        f"{'a JSON Schema' if is_schema else shown(data)} was provided, but a tile (an object with "
        f"{', '.join(_TILE_FIELDS.values())}), a DML_OPERATOR_DESC (with Type and Desc) or a DxDispatch model (with "
        "resources, dispatchables and commands) was expected"
    )


def _may_be_operator(name: str) -> bool:
    return name.startswith(OPERATOR_TYPE.prefix) or is_operator(name)


def _operator_type(spelling: Any) -> int | str | None:
    """The type's value, or the C name of an operator that is no tile; None if it is neither a name nor an integer."""
    if not isinstance(spelling, str):
        return spelling if type(spelling) is int else None
    try:
        return OPERATOR_TYPE.read(spelling)
    except ValueError:
        return f"{OPERATOR_TYPE.prefix}{spelling.removeprefix(OPERATOR_TYPE.prefix)}"


def _validated(model: type[OperatorDesc | TileOperatorDesc], data: dict[str, Any], pointer: str) -> Part:
    data, left_out = _trimmed(data)
    try:
        return JsonDescriptor(pointer, model.model_validate(data, context=JSON_DOCUMENT))
    except ValidationError as error:
        problems = ProblemList(data, pointer)
        problems.add_error(error)
        problems.leave_out(left_out)
        return Problem(pointer, "; ".join(problem.message for problem in problems.told()))


def _trimmed(data: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """A struct without most of its unknown keys, if they are many, and how many are left out: each makes an error."""
    left_out = 0
    if len(data) > MAX_KEYS:
        unknown = [key for key in data if key not in _KNOWN_KEYS]
        left_out = len(unknown[MAX_PROBLEMS:])
        trimmed = {*unknown[MAX_PROBLEMS:]}
        data = {key: value for key, value in data.items() if key not in trimmed}
    for key, value in data.items():
        if isinstance(value, dict) and key in _KNOWN_KEYS:
            inner, more = _trimmed(value)
            if more:
                data, left_out = {**data, key: inner}, left_out + more
    return data, left_out


def _is_json(text: bytes) -> bool:
    try:
        parse_json(text)
    except ValueError:
        return False
    return True
