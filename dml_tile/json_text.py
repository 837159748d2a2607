"""JSON texts: their syntax, the positions of their values, and the place that a JSON pointer names."""

from __future__ import annotations

import codecs
import json
import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Final, NamedTuple

import jiter
from pydantic.alias_generators import to_snake

from dml_tile.findings import Position
from dml_tile.text import pointer_steps, shortened

STRING: Final = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
COMMENT: Final = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
"""Both also match an unclosed one, to the end of the text, so that no text takes quadratic time."""

# the expressions below are compiled when they are first needed: most texts need none
_STRING_OR_COMMENT: Final = f"(?s){STRING}|{COMMENT}".encode()
_STRING_OR_TRAILING_COMMA: Final = rf"(?s){STRING}|(?<=[^\[{{,: \t\r\n])[ \t\r\n]*+,(?=\s*[\]}}])".encode()
"""A trailing comma is behind a value."""
_REPEATED_NAME: Final = r'(?s)Detected duplicate key "(.*)" at (line \d+ column \d+)\Z'
_SHORT: Final = 2**20
"""The bytes of a text from which on it is asked whether its values fit into memory."""

_SIZES: Final = {b"[": 88, b"{": 232, b",": 40, b'"': 32}
"""The bytes that Python takes for a value that each of these begins or separates."""

_BLANKS: Final = bytes(byte if byte == ord("\n") else ord(" ") for byte in range(256))
_PLACE: Final = r"at line (\d+) column (\d+)\Z"
_REST: Final = r"trailing characters at line (\d+) column (\d+)\Z"


class Document(NamedTuple):
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
        found = re.match(_REST, str(error))
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
    text = text.removeprefix(codecs.BOM_UTF8)
    if len(text) > _SHORT:  # jiter may abort the process where the values do not fit
        bytes(len(text) + sum(size * text.count(token) for token, size in _SIZES.items()))  # no page of it is used
    try:
        return jiter.from_json(text, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        require_utf_8(text)
        if repeated := re.match(_REPEATED_NAME, str(error)):
            name, place = repeated.groups()
            raise ValueError(f"the name {shortened(name, 80)!r} appears twice in one object, at {place}") from None
        # Most documents are plain JSON; only the others pay for a second look. Blanks keep lines and columns true.
        plain = re.sub(_STRING_OR_TRAILING_COMMA, _blanked, re.sub(_STRING_OR_COMMENT, _blanked, text))
        if plain == text:
            raise
    return parse_json(plain)


def require_utf_8(text: bytes) -> None:
    """Raise ValueError for JSON in another encoding, by its byte order mark or where it has zeros."""
    encoding = json.detect_encoding(text)
    if not encoding.startswith("utf-8"):
        raise ValueError(f"the text is {encoding[: len('utf-16')].upper()}; UTF-8 was expected")


def position_of_error(text: bytes, error: ValueError, first: int = 1) -> Position | None:
    """Return the position that an error of ``parse_json`` names; the text's first line has the number ``first``."""
    found = re.search(_PLACE, str(error))
    if not found:
        return None
    line, column = map(int, found.groups())
    before = text.removeprefix(codecs.BOM_UTF8).split(b"\n", line)[line - 1][: max(column - 1, 0)]
    place = first + line - 1, len(before.decode(errors="replace")) + 1
    return Position(*place, *place)


def _blanked(match: re.Match[bytes]) -> bytes:
    """Return a string as it is, and blanks for anything else."""
    token = match[0]
    return token if token.startswith(b'"') else token.translate(_BLANKS)


_STEP: Final = r"[^.\[\]]+"
_BESIDE_DESC: Final = ("Type", "Desc", "NullDesc")


_WORD: Final = rf'{STRING}|{COMMENT}|[\[\]{{}}:,]|[^\s\[\]{{}}:,"/]+'
_TOKEN: Final = f"(?as){_WORD}"
_CLOSED_STRING: Final = r'"(?:[^"\\]++|\\.)*+"'
_FLAT_ARRAY: Final = rf'\[(?:[^\[\]{{}}"/]++|{_CLOSED_STRING})*+\]'
_SHALLOW: Final = rf'\{{(?:[^\[\]{{}}"/]++|{_CLOSED_STRING}|{_FLAT_ARRAY})*+\}}'
"""An object, such as a tensor's, that holds no objects, arrays of arrays or comments."""
_VALUE: Final = f"(?as){_SHALLOW}|{_FLAT_ARRAY}|{_WORD}"
"""A shallow object, an array of scalars, or a token."""
_VALUES_REMEMBERED: Final = 32


class _Span(NamedTuple):
    """The end of a value, and the offsets of a container's values by name or index."""

    children: dict[str, int]
    end: int


@dataclass(frozen=True, eq=False)
class SourceText:
    """The UTF-8 text of one JSON value. It is scanned when a position is first asked for.

    A JSON line has its ``line_number`` in the source, from 1, and its value is one step down in a pointer. Offsets
    count code points from the text's beginning.
    """

    content: bytes
    line_number: int | None = None

    def position(self, pointer: str, path: str = "") -> Position | None:
        """Return the position of a field of the descriptor at a JSON pointer; ``path`` has C names, as in findings.

        A missing field has the position of the object that lacks it; a pointer to nothing has none.
        """
        steps = pointer_steps(pointer)
        if self.line_number is not None and not steps:
            return None
        offset = self._root
        for step in steps if self.line_number is None else steps[1:]:
            offset = None if offset is None else self._scan(offset).children.get(step)
        if offset is None:
            return None
        for field in re.findall(_STEP, path):
            children = self._scan(offset).children
            if field not in _BESIDE_DESC and (desc := children.get("Desc") or children.get("desc")):
                offset, children = desc, self._scan(desc).children  # a struct's fields may be under Desc
            found = children.get(field) or children.get(to_snake(field))
            if found is None:
                break
            offset = found
        return Position(*self._line_and_column(offset), *self._line_and_column(self._scan(offset).end))

    @cached_property
    def _text(self) -> str:
        return self.content.decode("utf-8-sig", errors="replace")

    @cached_property
    def _root(self) -> int | None:
        """The offset of the value; None if there is none."""
        return next((token.start() for token in re.finditer(_TOKEN, self._text) if not token[0].startswith("/")), None)

    @cached_property
    def _scan(self) -> Callable[[int], _Span]:
        """Returns the value at an offset."""
        return lru_cache(_VALUES_REMEMBERED)(partial(_scanned, self._text))  # not of self: a cycle would stay

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        before = bisect_left(self._ends_of_lines, offset)
        return before + (self.line_number or 1), offset - (self._ends_of_lines[before - 1] if before else -1)

    @cached_property
    def _ends_of_lines(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self._text)]


def _scanned(text: str, offset: int) -> _Span:
    """Return the value at an offset; the end of a malformed text is its end."""
    is_object = text[offset] == "{"
    if not is_object and text[offset] != "[":
        token = re.compile(_TOKEN).match(text, offset)
        return _Span({}, token.end() if token else len(text))
    children: dict[str, int] = {}
    name: str | None = None
    depth = 1
    for token in re.compile(_VALUE).finditer(text, offset + 1):
        word = token[0]
        if word in "]}":
            depth -= 1
            if depth == 0:
                return _Span(children, token.end())
        elif depth == 1 and word not in ",:" and not word.startswith("/"):
            if is_object and name is None:
                name = _name(word)
            else:
                children[str(len(children)) if name is None else name] = token.start()
                name = None
        depth += word in "[{"
    return _Span(children, len(text))


def _name(token: str) -> str:
    if "\\" not in token:
        return token[1:-1]
    try:
        return str(json.loads(token, strict=False))
    except ValueError:
        return token
