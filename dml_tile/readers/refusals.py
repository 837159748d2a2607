"""Messages about JSON that pydantic refused as a descriptor, with the keys that are known where one is not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from pydantic import ValidationError
from pydantic.alias_generators import to_snake

from dml_tile.descriptors.graph import ARRAYS, Descriptor, GraphDesc
from dml_tile.descriptors.operator import KINDS, OperatorDesc
from dml_tile.descriptors.structs import Struct, c_names
from dml_tile.descriptors.tile import BufferTensorDesc, TensorDesc
from dml_tile.directml.enums import OperatorType
from dml_tile.directml.operators import OperatorRow, operator_named, operators
from dml_tile.findings import Finding, unreadable
from dml_tile.input_errors import problems_of

_TENSOR_FIELDS: Final = [*c_names(TensorDesc, BufferTensorDesc).values()]


def refused(error: ValidationError, data: Any, pointer: str, model: type[Descriptor]) -> Finding:
    """Return the problem of an object that is no ``model``."""
    names = [field.name for field in _operator_of(data).fields] + _TENSOR_FIELDS
    problems = problems_of(error, data, pointer, names, partial(_keys_at, model, data))
    return unreadable(pointer, "; ".join(problem.message for problem in problems))


def _keys_at(model: type[Descriptor], data: Any, path: Sequence[str | int]) -> Sequence[str]:
    """Return the C names of the keys that an object within a descriptor may have."""
    place: type[Struct] | OperatorRow = GraphDesc if issubclass(model, GraphDesc) else _operator_of(data)
    for step in path:
        data = data[step]
        if step in ("Desc", "desc"):
            place = BufferTensorDesc if place is TensorDesc else place
        elif isinstance(step, str):
            place = _struct_at(place, step, data)
    if isinstance(place, OperatorRow):
        return [field.name for field in place.fields]
    return [*c_names(place).values(), *(c_names(BufferTensorDesc).values() if place is TensorDesc else ())]


def _struct_at(place: type[Struct] | OperatorRow, key: str, data: Any) -> type[Struct] | OperatorRow:
    """Return what describes the object, or the objects, under a key."""
    if not isinstance(place, OperatorRow):
        array = ARRAYS.get(to_snake(key))
        return array.struct if array else _operator_of(data)
    kind = next((field.kind for field in place.fields if to_snake(field.name) == to_snake(key)), "t")
    struct = KINDS[kind].struct if kind in KINDS else None
    return _operator_of(data) if struct is OperatorDesc else struct or TensorDesc


def _operator_of(data: Any) -> OperatorRow:
    """Return the operator whose fields an object has; Tile where it does not say."""
    kind = data.get("Type", data.get("type")) if isinstance(data, dict) else None
    named = operator_named(kind) if isinstance(kind, str) else operators().get(kind) if type(kind) is int else None
    return named or operators()[OperatorType.TILE]
