"""Finds the position of a descriptor's field in the text that the descriptor was read from."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from typing import Final

from pydantic.alias_generators import to_snake

from dml_tile.errors import Position
from dml_tile.readers.json.locate import JsonText
from dml_tile.text import pointer_steps

_STEP: Final = re.compile(r"[^.\[\]]+")
_BESIDE_DESC: Final = ("Type", "Desc", "NullDesc")


class SourceText:
    """The UTF-8 text of one JSON value. It is scanned when a position is first asked for.

    A JSON line has its ``line_number`` in the source, from 1, and its value lies one step down in a pointer.
    """

    def __init__(self, content: bytes, line_number: int | None = None) -> None:
        self._content = content
        self._line_number = line_number

    def position(self, pointer: str, path: str = "") -> Position | None:
        """Return the position of a field of the descriptor at a JSON pointer; ``path`` has C names, as in findings.

        A missing field has the position of the object that lacks it. A pointer that leads nowhere has none.
        """
        steps = pointer_steps(pointer)
        if self._line_number is None:
            return self._position(steps, path)
        position = self._position(steps[1:], path) if steps else None
        return position and replace(position, line=self._line_number, end_line=self._line_number)

    def _position(self, steps: list[str], path: str) -> Position | None:
        offset = self._text.follow(steps)
        if offset is None:
            return None
        for field in _STEP.findall(path):
            inner = self._field(offset, field)
            if inner is None:
                return self._text.position(self._struct_offset(offset, field))
            offset = inner
        return self._text.position(offset)

    @cached_property
    def _text(self) -> JsonText:
        return JsonText(self._content.decode("utf-8-sig", errors="replace"))

    def _field(self, offset: int, name: str) -> int | None:
        children = self._text.children(self._struct_offset(offset, name))
        return next((found for key in (name, to_snake(name)) if (found := children.get(key)) is not None), None)

    def _struct_offset(self, offset: int, name: str) -> int:
        """Return the offset of the object with a struct's fields, which may be under ``Desc``."""
        if name in _BESIDE_DESC:
            return offset
        children = self._text.children(offset)
        return next((found for key in ("Desc", "desc") if (found := children.get(key)) is not None), offset)
