"""Writes descriptors as Python source text."""

from __future__ import annotations

from enum import Enum
from typing import Final

from pydantic import BaseModel

from dml_tile.descriptors.tile import OperatorDesc, TileOperatorDesc

MAX_WIDTH: Final = 88
"""The width, in characters, above which Python's formatters break a line by default."""


def python_text(desc: OperatorDesc | TileOperatorDesc | None, name: str) -> str:
    """Return Python that defines ``NAME_desc``, after ``import dml_tile``. ``name`` is an identifier."""
    return f"{name}_desc = {_value(desc, 0)}\n"


def _value(value: object, indent: int) -> str:
    match value:
        case BaseModel():
            fields = [_field(name, getattr(value, name), indent + 4) for name in type(value).model_fields]
            return f"dml_tile.{type(value).__name__}(\n{''.join(fields)}{' ' * indent})"
        case Enum():
            return f"dml_tile.{type(value).__name__}.{value.name}"
        case _:
            return repr(value)


def _field(name: str, value: object, indent: int) -> str:
    margin = " " * indent
    line = f"{margin}{name}={_value(value, indent)},\n"
    if isinstance(value, tuple) and len(line) > MAX_WIDTH + 1:
        entries = "".join(f"{margin}    {entry},\n" for entry in value)
        return f"{margin}{name}=(\n{entries}{margin}),\n"
    return line
