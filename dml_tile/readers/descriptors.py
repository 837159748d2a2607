"""Finds the descriptors in JSON: a DxDispatch model, a bare descriptor, a list of them, or JSON lines."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final

from pydantic import ValidationError

from dml_tile.descriptors.structs import c_names
from dml_tile.descriptors.tile import OPERATOR_TYPE, TileOperatorDesc
from dml_tile.directml.enums import OperatorType
from dml_tile.directml.operators import operator_name, operators
from dml_tile.dxdispatch import MODEL_KEYS
from dml_tile.errors import InputError, input_error
from dml_tile.files.paths import STANDARD_INPUT, require_local
from dml_tile.files.whole import open_without_waiting, read_at_most
from dml_tile.findings import Finding, unreadable
from dml_tile.input_errors import limited_problems, problems_of
from dml_tile.json_text import Document, SourceText, parse_document, parse_json, position_of_error, require_utf_8
from dml_tile.readers.contents import MAX_DOCUMENT_BYTES
from dml_tile.readers.file_kinds import IS_A_POINTER, LFS_POINTER, kind_of, read_as_json, why_unread
from dml_tile.readers.item import Item, ItemOrProblem, validated
from dml_tile.text import json_pointer, shown

_SKIPPED_AT_ONCE: Final = 2**20
_TILE_FIELDS: Final = c_names(TileOperatorDesc)
_TILE_KEYS: Final = frozenset((*_TILE_FIELDS, *_TILE_FIELDS.values()))
_REPEATS: Final = frozenset(("Repeats", "RepeatsCount", "repeats", "repeats_count"))
_CAPTURE: Final = "dml_tile_capture"
"""The key of a captured line."""


def read_source(name: str, called: str = "") -> Iterator[ItemOrProblem]:
    """Yield the descriptors of a file, or of standard input (``-``), and problems for parts that cannot be read.

    Its kind follows from the name that it is ``called``, if any.
    """
    called = called or name
    try:
        with open_source(name) as stream:
            kind = kind_of(called)
            if kind and kind.reader == "JSON lines":
                yield from read_lines(_bounded_lines(stream))
            else:
                yield from read_document(_read_document_text(stream, called), called)
    except InputError as error:
        yield from error.problems
    except OSError as error:
        yield unreadable("", error.strerror or str(error))


def parse_source(name: str) -> Document:
    """Parse the JSON document that a file, or standard input (``-``), begins with. Raises InputError."""
    try:
        with open_source(name) as file:
            text = _read_document_text(file, name)
            return parse_document(text)
    except OSError as error:
        raise input_error("", error.strerror or str(error)) from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError([_unreadable(name, text, error)]) from None


def _unreadable(name: str, text: bytes, error: ValueError) -> Finding:
    if reason := why_unread(name, text):
        return unreadable("", reason)
    if not text.strip():
        return unreadable("", "is empty")
    suffixes = "" if name == STANDARD_INPUT or kind_of(name) else f" ({read_as_json()})"
    return unreadable("", f"unreadable JSON: {error}{suffixes}", position_of_error(text, error))


def open_source(name: str) -> AbstractContextManager[BinaryIO]:
    """Open a file without waiting, or standard input (``-``). Raises OSError, and InputError if ``-`` is closed."""
    if name != STANDARD_INPUT:
        require_local(name)
        return open_without_waiting(Path(name))
    if sys.stdin is None:
        raise input_error("", "standard input is closed")
    return nullcontext(sys.stdin.buffer)


def _read_document_text(file: BinaryIO, name: str) -> bytes:
    text = read_at_most(file, MAX_DOCUMENT_BYTES + 1)
    if len(text) > MAX_DOCUMENT_BYTES:
        too_large = f"larger than {MAX_DOCUMENT_BYTES} bytes; JSON lines (.jsonl) may be longer"
        raise input_error("", why_unread(name, text) or too_large)
    return text


def read_document(text: bytes, name: str = STANDARD_INPUT) -> Iterator[ItemOrProblem]:
    """Yield the descriptors of a document, and its problems; ``name`` is its file's.

    A text that is no document is read as JSON lines if one of its lines is an object, unless it begins as a list.
    """
    try:
        document = parse_document(text)
        if document.rest and not _is_dxdispatch_model(document.value):
            parse_json(text)  # raises an error with the position of the rest
    except ValueError as error:
        blank = text.count(b"\n", 0, len(text) - len(text.lstrip()))
        lines = text.rstrip().split(b"\n")[blank:]
        is_list = b"".join(lines[:1]).lstrip().removeprefix(codecs.BOM_UTF8).startswith(b"[")
        if len(lines) > 1 and not is_list and any(line.startswith(b"{") and _is_json(line) for line in lines):
            yield from read_lines(lines, blank + 1)
        else:
            yield _unreadable(name, text, error)
        return
    source = SourceText(text)
    parts = (_located(part, source) for part in _count_nulls(_read_parts(document, source)))
    yield from limited_problems(_joined(parts))


def read_lines(lines: Iterable[bytes], first: int = 1) -> Iterator[ItemOrProblem]:
    """Yield the descriptors of JSON lines, with pointers from /0 on; ``first`` is the number of the first line."""
    texts = ((f"/{i}", SourceText(line, first + i)) for i, line in enumerate(lines) if line.strip())
    parts = (_located(_read_line(text, pointer), text) for pointer, text in texts)
    yield from limited_problems(_joined(_count_nulls(parts)))


def _joined(parts: Iterator[ItemOrProblem]) -> Iterator[ItemOrProblem]:
    """Yield parts, the two lines of a capturing device's call as one."""
    for part in parts:
        if isinstance(part, Item) and part.capture:
            from dml_tile.readers.captures import joined_calls  # most sources are no captures

            yield from joined_calls(chain([part], parts))
        else:
            yield part


def _count_nulls(parts: Iterable[ItemOrProblem]) -> Iterator[ItemOrProblem]:
    """Yield parts, of null ones the first, and at the end how many more there are."""
    nulls = 0
    for part in parts:
        is_null = isinstance(part, Item) and not (part.desc or part.other or part.part or part.capture)
        nulls += is_null
        if nulls <= 1 or not is_null:
            yield part
    if nulls > 1:
        yield unreadable("", f"{nulls - 1} more descriptors are null")


def _bounded_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file, of at most MAX_DOCUMENT_BYTES and one byte.

    Raises InputError if the first shows a pointer of Git LFS, or another encoding than UTF-8.
    """
    line = file.readline(MAX_DOCUMENT_BYTES + 1)
    if line.startswith(LFS_POINTER):
        raise input_error("", IS_A_POINTER)
    try:
        require_utf_8(line)
    except ValueError as error:
        raise input_error("", f"unreadable JSON: {error}") from None
    while line:
        if len(line) > MAX_DOCUMENT_BYTES:
            rest = line
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(_SKIPPED_AT_ONCE)
        yield line
        line = file.readline(MAX_DOCUMENT_BYTES + 1)


def _read_line(text: SourceText, pointer: str) -> ItemOrProblem:
    line, number = text.content, text.line_number
    if len(line) > MAX_DOCUMENT_BYTES:
        return unreadable(pointer, f"line {number} is larger than {MAX_DOCUMENT_BYTES} bytes")
    try:
        data = parse_json(line.rstrip())
    except ValueError as error:
        place = str(error).replace("at line 1 column", f"at line {number} column")
        return unreadable(pointer, f"unreadable JSON: {place}", position_of_error(line, error, number or 1))
    return _read_descriptor(data, pointer, text)


def _located(part: ItemOrProblem, text: SourceText) -> ItemOrProblem:
    """Return a problem with its position in a text, or an operator with the text, for its findings' positions."""
    line = text.line_number
    if isinstance(part, Item):
        return part if part.places and line is None else replace(part, places=part.places or text, line=line)
    return replace(part, position=part.position or (text.position(part.path) if part.path else None), line=line)


def _is_dxdispatch_model(data: Any) -> bool:
    return isinstance(data, dict) and not data.keys().isdisjoint(MODEL_KEYS)


def _read_parts(document: Document, text: SourceText) -> Iterator[ItemOrProblem]:
    data = document.value
    if _is_dxdispatch_model(data):
        from dml_tile.readers.dxdispatch import read_model_parts  # imports more than all other kinds need

        yield from read_model_parts(document)
    elif isinstance(data, list):
        for i, item in enumerate(data):
            yield _read_descriptor(item, json_pointer([i]), text)
    else:
        yield _read_descriptor(data, "", text)


def _read_descriptor(data: Any, pointer: str, text: SourceText) -> ItemOrProblem:
    """Read a bare DML_TILE_OPERATOR_DESC, a DML_OPERATOR_DESC with its Type, or a DML_GRAPH_DESC with its Nodes."""
    if data is None:
        return Item(pointer)
    if not isinstance(data, dict):
        return unreadable(pointer, _no_descriptor_message(data))
    if "$schema" in data:  # it names the JSON Schema to an editor
        data = {key: value for key, value in data.items() if key != "$schema"}
    if _CAPTURE in data:
        return _read_capture(data, pointer, text)
    if _is_dxdispatch_model(data):
        return unreadable(pointer, "a DxDispatch model was provided, which has to be the whole document")
    if own := _own_file(data):
        return unreadable(pointer, own)
    if "Nodes" in data or "nodes" in data:
        from dml_tile.descriptors.graph import GraphDesc

        return validated(GraphDesc, data, pointer, text)
    for key in ("Type", "type"):
        if key in data:
            return _read_typed(data, key, pointer, text)
    if data.keys().isdisjoint(_TILE_KEYS):
        return unreadable(pointer, _no_descriptor_message(data))
    if not (data.keys() <= _TILE_KEYS or data.keys() & _REPEATS):
        foreign = next((key for key in data if key not in _TILE_KEYS and key in _fields_of_all_operators()), None)
        if foreign is not None:
            return unreadable(pointer, f"Type is missing; a descriptor without it is a tile's, which has no {foreign}")
    return validated(TileOperatorDesc, data, pointer, text)


def _read_typed(data: dict[str, Any], key: str, pointer: str, text: SourceText) -> ItemOrProblem:
    """Read a DML_OPERATOR_DESC, whose type is under a key."""
    from dml_tile.descriptors.operator import UNKNOWN_STRUCT, OperatorDesc  # most tiles are bare

    operator = _operator_type(data[key])
    if operator is None and not _is_like_an_operator(data, data[key]):
        return unreadable(pointer, _no_descriptor_message(data))
    if operator is not None and operator not in operators():
        is_null = data.get("Desc", data.get("desc", UNKNOWN_STRUCT)) is None
        return validated(OperatorDesc, {"Type": operator, "Desc": None if is_null else UNKNOWN_STRUCT}, pointer, text)
    return validated(OperatorDesc, data, pointer, text)


def _read_captured_operator(data: dict[str, Any] | None, pointer: str, text: SourceText) -> ItemOrProblem:
    """Read the operator of a captured line; early headers wrote the types of operators other than Tile alone."""
    kind = data["Type"] if data and data.keys() == {"Type"} else None
    operator = _operator_type(kind)
    if operator is not None and operator in operators() and operator != OperatorType.TILE:
        return Item(pointer, operator_name(operator))
    if operator is None and isinstance(kind, str):  # of a newer DirectML.h
        return Item(pointer, f"{OPERATOR_TYPE.prefix}{kind.removeprefix(OPERATOR_TYPE.prefix)}")
    return _read_descriptor(data, pointer, text)


def _read_capture(data: dict[str, Any], pointer: str, text: SourceText) -> ItemOrProblem:
    from dml_tile.descriptors.graph import UNKNOWN_OPERATOR
    from dml_tile.descriptors.operator import OperatorDesc
    from dml_tile.readers.captures import CapturedCall, CapturedLine, capture_of

    try:
        captured = CapturedLine.model_validate(data)
    except ValidationError as error:
        problems = problems_of(error, data, pointer, [*CapturedLine.model_fields])
        return unreadable(pointer, "; ".join(problem.message for problem in problems))
    if captured.model_fields_set >= {"operator", "graph"}:
        return unreadable(pointer, "operator and graph were provided; one of them was expected")
    is_of_device = captured.session is not None and captured.call is not None
    if captured.is_return or captured.is_graph:
        if not is_of_device:
            return unreadable(pointer, "operator is missing; a graph has session and call")
        pointer = pointer if captured.is_return else f"{pointer}/graph"
        return CapturedCall(pointer, capture=capture_of(None, captured), written=captured)
    part = _read_captured_operator(captured.operator, f"{pointer}/operator", text)
    if not isinstance(part, Item):
        return part
    desc = part.desc if isinstance(part.desc, OperatorDesc) else None
    # the fields of another were not captured
    capture = capture_of(desc if part.other is None else UNKNOWN_OPERATOR, captured)
    if is_of_device:
        return CapturedCall(part.pointer, part.subject, capture=capture, places=part.places, written=captured)
    return replace(part, capture=capture)


def _own_file(data: dict[str, Any]) -> str:
    """Return what an object that ``check`` itself wrote is, and what to do; empty for others."""
    if "version" in data and isinstance(data.get("findings"), list):
        return "is a baseline; --baseline names it, beside the files to check"
    if ("version" in data and isinstance(data.get("results"), list)) or data.keys() >= {"source", "verdict", "target"}:
        return "is an output of `dml-tile check`; check the files that it names again"
    return ""


def _no_descriptor_message(data: Any) -> str:
    if isinstance(data, dict) and isinstance(code := data.get("base_code"), dict) and code.get("magic") == "pir":
        return "is a Paddle 3 model, which is not read; convert it with paddle2onnx and check the .onnx file"
    is_schema = isinstance(data, dict) and data.get("type") == "object" and "properties" in data
    return (
        f"{'a JSON Schema' if is_schema else shown(data)} was provided, but a tile (an object with "
        f"{', '.join(_TILE_FIELDS.values())}), a DML_OPERATOR_DESC (with Type and Desc), a DML_GRAPH_DESC (with Nodes) "
        "or a DxDispatch model (with resources, dispatchables and commands) was expected"
    )


def _operator_type(spelling: Any) -> int | None:
    """Return the type's value; None unless it is the name of an operator or an integer."""
    if not isinstance(spelling, str):
        return spelling if type(spelling) is int else None
    try:
        return OPERATOR_TYPE.read(spelling)
    except ValueError:
        return None


def _is_like_an_operator(data: dict[str, Any], kind: Any) -> bool:
    """Return True for an object that describes an operator, of whatever type, and is no other object with a type."""
    if not isinstance(kind, str) or data.keys() & {"Desc", "desc"} or kind.startswith(OPERATOR_TYPE.prefix):
        return True
    return len(data) == 1 or not data.keys().isdisjoint(_fields_of_all_operators())


@cache
def _fields_of_all_operators() -> frozenset[str]:
    names = {field.name for operator in operators().values() for field in operator.fields}
    return frozenset(names | {*_TILE_FIELDS}) - {"Type"}


def _is_json(text: bytes) -> bool:
    try:
        parse_json(text)
    except ValueError:
        return False
    return True
