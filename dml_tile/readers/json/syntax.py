"""Parses JSON as DxDispatch does: comments and trailing commas are allowed, NaN and Infinity are not."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Any, Final

import jiter

from dml_tile.text import shortened

STRING: Final = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
COMMENT: Final = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
"""Both also match what is never closed, up to the end of the text, so that no text takes quadratic time."""

_STRING_OR_COMMENT: Final = re.compile(f"{STRING}|{COMMENT}".encode(), re.DOTALL)
_STRING_OR_TRAILING_COMMA: Final = re.compile(rf"{STRING}|,(?=\s*[\]}}])".encode(), re.DOTALL)
_REPEATED_NAME: Final = re.compile(r'Detected duplicate key "(.*)" at (line \d+ column \d+)\Z', re.DOTALL)
_BLANKS: Final = bytes(byte if byte == ord("\n") else ord(" ") for byte in range(256))


_REST: Final = re.compile(r"trailing characters at line (\d+) column (\d+)\Z")


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON document; ``rest`` is the text that follows it, ``has_mark`` its byte order mark."""

    value: Any
    rest: str = ""
    has_mark: bool = False


def parse_document(text: bytes) -> Document:
    """Parse the JSON document that a text begins with, as DxDispatch does. Raises ValueError where there is none."""
    has_mark = text.startswith(codecs.BOM_UTF8)
    text = text.removeprefix(codecs.BOM_UTF8)
    try:
        return Document(parse_json(text), "", has_mark)
    except ValueError as error:
        found = _REST.match(str(error))
        if not found:
            raise
        line, column = map(int, found.groups())
        lines = text.split(b"\n", line - 1)
        rest = lines.pop()[column - 1 :]
        beginning = text[: len(text) - len(rest)]
        return Document(parse_json(beginning), rest.decode(errors="replace").strip(), has_mark)


def parse_json(text: bytes) -> Any:
    """Parse one JSON document in UTF-8. Raises ValueError, with line and column, for anything else.

    The parser, pydantic's own, limits nesting to 200 levels. An object must not repeat a name: DxDispatch takes the
    first value, other readers the last.
    """
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError("the text is UTF-16; UTF-8 was expected")
    text = text.removeprefix(codecs.BOM_UTF8)
    try:
        return _parsed(text)
    except ValueError as error:
        if repeated := _REPEATED_NAME.match(str(error)):
            name, place = repeated.groups()
            raise ValueError(f"the name {shortened(name, 80)!r} appears twice in one object, at {place}") from None
        # Most documents are plain JSON; only the others pay for a second look. Blanks keep lines and columns true.
        plain = _STRING_OR_TRAILING_COMMA.sub(_blank_comma, _STRING_OR_COMMENT.sub(_blank_comment, text))
        if plain == text:
            raise
    return parse_json(plain)


def _parsed(text: bytes) -> Any:
    return jiter.from_json(text, allow_inf_nan=False, catch_duplicate_keys=True)


def _blank_comment(match: re.Match[bytes]) -> bytes:
    token = match[0]
    return token if token.startswith(b'"') else token.translate(_BLANKS)


def _blank_comma(match: re.Match[bytes]) -> bytes:
    token = match[0]
    if token != b",":
        return token
    before = match.start() - 1
    while before >= 0 and match.string[before] in b" \t\r\n":
        before -= 1
    return b" " if before >= 0 and match.string[before] not in b"[{,:" else token  # a value has to come first
