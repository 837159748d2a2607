"""Finds the line and column of a finding's field in its JSON file.

A file is opened again when its first position is asked for, so that a check without findings costs nothing.
"""

from __future__ import annotations

import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from pydantic.alias_generators import to_snake

from dml_tile.readers.json.descriptors import LINES_SUFFIXES, MAX_DOCUMENT_BYTES
from dml_tile.readers.json.locate import JsonText, Position
from dml_tile.readers.json.syntax import parse_json
from dml_tile.readers.sources import is_model_file
from dml_tile.text import pointer_steps

_STEP: Final = re.compile(r"[^.\[\]]+")
_BESIDE_DESC: Final = ("Type", "Desc", "NullDesc")


class Positions:
    """The positions of fields in files; the last file is remembered, as findings come file by file."""

    def __init__(self) -> None:
        self._name = ""
        self._source: _Source | None = None

    def of(self, source: str, pointer: str, path: str = "") -> Position | None:
        """Return the position of a field of the descriptor at a JSON pointer; ``path`` has C names, as in findings.

        A missing field has the position of the object that lacks it. Standard input, models, files that have changed
        and pointers that lead nowhere have none.
        """
        if source != self._name:
            self._name, self._source = source, _opened(source)
        if self._source is None:
            return None
        steps = pointer_steps(pointer)
        try:
            return self._source.position(steps, _STEP.findall(path))
        except OSError:
            return None

    def of_problem(self, source: str, pointer: str) -> Position | None:
        """Return the position of an unreadable part; a whole source has none."""
        return self.of(source, pointer) if pointer else None


class _Source(Protocol):
    def position(self, steps: list[str], fields: list[str]) -> Position | None: ...


class _Document:
    """A text of one JSON value."""

    def __init__(self, text: JsonText) -> None:
        self._text = text

    def position(self, steps: list[str], fields: list[str]) -> Position | None:
        offset = self._text.follow(steps)
        if offset is None:
            return None
        for field in fields:
            inner = self._field(offset, field)
            if inner is None:
                return self._text.position(self._within_desc(offset, field))
            offset = inner
        return self._text.position(offset)

    def _field(self, offset: int, name: str) -> int | None:
        children = self._text.children(self._within_desc(offset, name))
        return next((children[key] for key in (name, to_snake(name)) if key in children), None)

    def _within_desc(self, offset: int, name: str) -> int:
        """The object with a struct's fields: the one under ``Desc`` if there is one, else the struct's own."""
        children = {} if name in _BESIDE_DESC else self._text.children(offset)
        return next((children[key] for key in ("Desc", "desc") if key in children), offset)


class _Lines:
    """JSON lines, of which ``blank`` lines before the first do not count.

    Positions asked for in the order of the lines are found in one pass.
    """

    def __init__(self, path: Path, blank: int = 0) -> None:
        self._path = path
        self._blank = blank
        self._number = -1
        self._end = 0
        self._line = _Document(JsonText(""))

    def position(self, steps: list[str], fields: list[str]) -> Position | None:
        if not steps or not steps[0].isdecimal():
            return None
        number = int(steps[0]) + self._blank
        if number != self._number:
            self._go_to(number)
        position = self._line.position(steps[1:], fields)
        return position and replace(position, line=number + 1, end_line=number + 1)

    def _go_to(self, number: int) -> None:
        if number < self._number:
            self._number, self._end = -1, 0
        with self._path.open("rb") as file:
            file.seek(self._end)
            line = b""
            while self._number < number:
                line = file.readline(MAX_DOCUMENT_BYTES)
                self._number += 1
                self._end += len(line)
        self._line = _Document(JsonText(_decoded(line)))


def _opened(name: str) -> _Source | None:
    if name == "-" or is_model_file(name):
        return None
    path = Path(name)
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe has nothing to be read twice
            return None
        if name.lower().endswith(LINES_SUFFIXES):
            return _Lines(path)
        with path.open("rb") as file:
            content = file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError:
        return None
    try:
        parse_json(content)
    except ValueError:
        return _Lines(path, blank=content.count(b"\n", 0, len(content) - len(content.lstrip())))
    return _Document(JsonText(_decoded(content)))


def _decoded(text: bytes) -> str:
    return text.decode("utf-8-sig", errors="replace")
