"""Descriptors as JSON without what can be left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc

Descriptor = OperatorDesc | TileOperatorDesc | None

_PREFIXES: Final = ("DML_TENSOR_DATA_TYPE_", "DML_TENSOR_TYPE_", "DML_TENSOR_FLAG_", "DML_OPERATOR_")


def terse_json(desc: Descriptor) -> str:
    """A descriptor as JSON that is read as the same, with one line for each field of the tile."""
    if desc is None:
        return "null"
    model = type(desc)

    def is_the_same() -> bool:
        try:
            return model.model_validate(data) == desc
        except ValueError:
            return False

    data = desc.model_dump(mode="json", by_alias=True)
    for part in _objects(data):
        _flatten(part, is_the_same)
    for part in _objects(data):
        for key in list(part):
            value = part.pop(key)
            if not is_the_same():
                part[key] = _short(value)
    return "{" + ",\n ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in data.items()) + "}"


def _flatten(part: dict[str, Any], is_the_same: Callable[[], bool]) -> None:
    """Put the fields of ``Desc`` beside ``Type``."""
    before = dict(part)
    if isinstance(part.get("Desc"), dict):
        part.update(part.pop("Desc"))
        if not is_the_same():
            part.clear()
            part.update(before)


def _objects(data: dict[str, Any]) -> list[dict[str, Any]]:
    """An object and those in it, outermost first."""
    return [data, *(one for value in data.values() if isinstance(value, dict) for one in _objects(value))]


def _short(value: Any) -> Any:
    for prefix in _PREFIXES:
        if isinstance(value, str):
            value = value.removeprefix(prefix)
    return value
