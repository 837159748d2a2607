"""Finds the positions of values in a JSON text that has been parsed; positions in any other text mean nothing."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Final

from dml_tile.errors import Position
from dml_tile.readers.json.syntax import COMMENT, STRING

_TOKEN: Final = re.compile(rf'{STRING}|{COMMENT}|[\[\]{{}}:,]|[^\s\[\]{{}}:,"/]+', re.DOTALL | re.ASCII)
_CONTAINERS_REMEMBERED: Final = 32


class Children:
    """The offsets of a container's values, by name or index; the container is scanned only as far as is asked for."""

    def __init__(self, entries: Iterator[tuple[str, int]]) -> None:
        self._entries = entries
        self._found: dict[str, int] = {}

    def get(self, name: str) -> int | None:
        """Return the offset of the value with this name or index; None if there is none."""
        if name not in self._found:
            for found, offset in self._entries:
                self._found[found] = offset
                if found == name:
                    break
        return self._found.get(name)


class JsonText:
    """A text of one JSON value; ``root`` is the offset of that value, None if there is none.

    Offsets count code points from the text's beginning. The text is scanned only as far as a question needs.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        tokens = _TOKEN.finditer(text)
        self.root = next((token.start() for token in tokens if not token[0].startswith("/")), None)
        self.children = lru_cache(_CONTAINERS_REMEMBERED)(lambda offset: Children(self._children(offset)))
        """The values of the container at an offset; none for anything else."""

    def follow(self, steps: Iterable[str]) -> int | None:
        """Return the offset of the value at the steps of a JSON pointer; None if there is none."""
        offset = self.root
        for step in steps:
            offset = None if offset is None else self.children(offset).get(step)
        return offset

    def position(self, offset: int) -> Position:
        """Return the position of the value at an offset."""
        end = self._end_offset(offset) or len(self._text)
        return Position(*self._line_and_column(offset), *self._line_and_column(end))

    def _end_offset(self, offset: int) -> int | None:
        """Return the offset after the value at ``offset``; None if it never ends."""
        depth = 0
        for token in _TOKEN.finditer(self._text, offset):
            depth += (token[0] in "[{") - (token[0] in "]}")
            if depth == 0:
                return token.end()
        return None

    def _children(self, offset: int) -> Iterator[tuple[str, int]]:
        is_object = self._text[offset] == "{"
        name = None if is_object else "0"
        depth = index = 0
        for token in _TOKEN.finditer(self._text, offset):
            word = token[0]
            if word.startswith("/"):
                continue
            if word in "]}":
                depth -= 1
                if depth == 0:
                    break
                continue
            if depth == 1:
                if word == ",":
                    index += 1
                    name = None if is_object else str(index)
                elif name is None:
                    name = _name(word)
                elif word != ":":
                    yield name, token.start()
            if word in "[{":
                depth += 1
            if depth == 0:  # no container
                break

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        before = bisect_left(self._ends_of_lines, offset)
        return before + 1, offset - (self._ends_of_lines[before - 1] if before else -1)

    @cached_property
    def _ends_of_lines(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self._text)]


def _name(token: str) -> str:
    if "\\" not in token:
        return token[1:-1]
    try:
        return str(json.loads(token, strict=False))
    except ValueError:
        return token
