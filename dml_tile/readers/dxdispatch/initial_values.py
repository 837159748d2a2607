"""The initial values of a resource, in each of DxDispatch's forms."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, WithJsonSchema

from dml_tile.data_types import TensorDataType
from dml_tile.descriptors import DATA_TYPE
from dml_tile.enums import UINT_MAX
from dml_tile.readers.dxdispatch.json_object import JsonObject

PositiveUINT = Annotated[int, Field(strict=True, ge=1, le=UINT_MAX)]

Number = Annotated[Any, WithJsonSchema({"type": ["number", "string"]})]
"""A JSON number, or one of the strings "nan", "inf" and "-inf" where the type is a floating-point one.

What it must be depends on the data type, so it is looked at where the values are made."""


# Tags of unions are in brackets, so that they are never taken for keys of the data.


class TypedValue(JsonObject):
    """One value of a resource that mixes types."""

    name: Any = Field(default=None, description="A comment.")
    type: Annotated[TensorDataType | int, DATA_TYPE] = Field(description="The value's type.")
    value: Number


class ConstantValues(JsonObject):
    """One value, repeated."""

    value_count: PositiveUINT
    value: Number


class SequenceValues(JsonObject):
    """valueStart, valueStart + valueDelta, and so on."""

    value_count: PositiveUINT
    value_start: Number
    value_delta: Number


class FileValues(JsonObject):
    """The contents of a file: an array (.npy), or raw bytes."""

    source_path: str = Field(min_length=1, description="Relative to the model's folder, or to the current one.")


def _values_tag(values: Any) -> str | None:
    if isinstance(values, list | str):
        return "(list)" if isinstance(values, list) else "(deferred)"
    if isinstance(values, dict):
        kinds = [kind for kind in ("value", "valueStart", "sourcePath") if kind in values]
        return f"({kinds[0]})" if len(kinds) == 1 or kinds == ["valueStart", "sourcePath"] else None
    return None


ListedValues = Annotated[
    list[Any], WithJsonSchema({"type": "array", "minItems": 1, "items": {"type": ["number", "string", "object"]}})
]

InitialValues = Annotated[
    Annotated[ListedValues, Field(min_length=1), Tag("(list)")]
    | Annotated[ConstantValues, Tag("(value)")]
    | Annotated[SequenceValues, Tag("(valueStart)")]
    | Annotated[FileValues, Tag("(sourcePath)")]
    | Annotated[Literal["deferred"], Tag("(deferred)")],
    Discriminator(
        _values_tag,
        custom_error_type="initial_values",
        custom_error_message='Input should be an array, "deferred", or an object with exactly one of value, valueStart '
        "and sourcePath",
    ),
]
