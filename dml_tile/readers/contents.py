"""Decides whether a whole file may hold tiles, and reads a bounded part of it at a time."""

from __future__ import annotations

import codecs
import json
import os
import re
from pathlib import Path
from typing import Any, BinaryIO, Final

from dml_tile.errors import input_error
from dml_tile.files.whole import read_at_most
from dml_tile.json_text import parse_json
from dml_tile.readers.file_kinds import IS_A_POINTER, LFS_POINTER, Content, FileKind

MAX_DOCUMENT_BYTES: Final = 2**28
"""The largest JSON document, or JSON line, that is read."""

HOLDS_A_SCHEMA: Final = "holding a JSON Schema"

_FIRST_PART: Final = 2**16
_PART: Final = 2**18
_OVERLAP: Final = 2**10
"""Bytes of a part that are looked at again with the next part, since a key, or the blanks behind it, may be cut."""

_SCHEMA_SITE: Final = "json-schema.org/"
_SCHEMA_KEYWORDS: Final = {
    *("$defs", "$id", "$ref", "additionalProperties", "allOf", "anyOf", "const", "definitions", "enum", "items"),
    *("oneOf", "patternProperties", "properties", "required"),
}
_SCHEMA_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")


def require_no_pointer(path: Path, name: str = "") -> None:
    """Raise InputError for a pointer of Git LFS in place of a file; ``name`` names weights beside a model."""
    if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises where a folder above is closed
        return
    with path.open("rb", buffering=0) as file:
        if file.read(len(LFS_POINTER)) == LFS_POINTER:
            raise input_error("", f"{f'its weights: {name} ' if name else ''}{IS_A_POINTER}")


def why_nothing(kind: FileKind, file: BinaryIO) -> str:
    """Return why a whole file holds no tile; empty if it may hold one, or is a pointer of Git LFS."""
    if kind.content is None:
        return ""
    beginning = file.read(_FIRST_PART)
    if beginning.startswith(LFS_POINTER):
        return ""
    if not _is_found(kind.content, beginning, file):
        return f"without {kind.content.name}"
    if kind.reader == "JSON":
        file.seek(0)
        if _is_schema(read_at_most(file, MAX_DOCUMENT_BYTES + 1), kind.content):
            return HOLDS_A_SCHEMA
    return ""


def _is_found(content: Content, beginning: bytes, file: BinaryIO) -> bool:
    """Return True if a file, whose ``beginning`` was read, has the content; text is converted to UTF-8."""
    encoding = json.detect_encoding(beginning) if content.is_text else "utf-8"
    decoder = None if encoding.startswith("utf-8") else codecs.getincrementaldecoder(encoding)("replace")
    kept, part, size = b"", beginning, _FIRST_PART
    while True:
        text = kept + (decoder.decode(part).encode(errors="replace") if decoder else part)
        # single quotes: as Python prints objects
        found = re.search(content.pattern, text.replace(b"'", b'"'))
        is_last = len(part) < size
        if found and (is_last or found.start() < len(text) - _OVERLAP):
            return True
        if is_last:
            return False
        kept, part, size = text[-_OVERLAP:], file.read(_PART), _PART


def _is_schema(text: bytes, content: Content) -> bool:
    """Return True for a document that names JSON Schema as its schema, has its keywords and no tile's keys."""
    if _SCHEMA_SITE.encode() not in text or len(text) > MAX_DOCUMENT_BYTES:
        return False
    try:
        data: Any = parse_json(text)
    except ValueError:
        return False
    if not isinstance(data, dict) or _SCHEMA_SITE not in str(data.get("$schema")):
        return False
    has_keyword = not _SCHEMA_KEYWORDS.isdisjoint(data) or data.get("type") in _SCHEMA_TYPES
    return has_keyword and not any(re.match(content.pattern, f'"{key}":'.encode()) for key in data)
