"""The base of the frozen mirrors of C structs: how they are named, printed and copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.alias_generators import to_pascal
from pydantic_core import CoreSchema, core_schema

from dml_tile.errors import require_instance
from dml_tile.text import did_you_mean


class Struct(BaseModel):
    """A frozen C struct. Attributes are snake_case, JSON keys the C names; both are accepted on input.

    A field that is left out is worked out, or has its default. ``repr`` leaves out what the constructor would supply,
    and reads back; ``str`` is one line. Equal structs print and copy equally.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, alias_generator=to_pascal)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values, checked as the constructor checks them; names are Python's or C's.

        What is as the constructor would work it out, such as counts and totals, is worked out anew. Raises TypeError
        for a name that is no field's, with the nearest, and pydantic's ValidationError for a value that no C field can
        hold.
        """
        return self._with(self._named_by_attributes(changes))

    __replace__ = replace

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy in which the fields of ``update`` are changed, and no others; raises what ``replace`` raises.

        It shares no mutable value in any case.
        """
        if not update:
            return super().model_copy(deep=deep)
        require_instance(update, Mapping)
        return self.model_validate(self.__dict__ | self._named_by_attributes(update))

    def _with(self, changes: dict[str, Any]) -> Self:
        return self.model_validate(self._own_values() | changes)

    def _worked_out(self) -> dict[str, Any]:
        """Return what the constructor would work out of the other fields."""
        return {}

    def _own_values(self) -> dict[str, Any]:
        """Return the values that the constructor would not supply."""
        supplied = self._defaults() | self._worked_out()
        return {name: value for name, value in self.__dict__.items() if name not in supplied or value != supplied[name]}

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {name: field.default for name, field in cls.model_fields.items() if not field.is_required()}

    @classmethod
    def _named_by_attributes(cls, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the changes by the names of attributes."""
        attributes = {str(field.alias): name for name, field in cls.model_fields.items()}
        found: dict[str, Any] = {}
        for name, value in changes.items():
            attribute = attributes.get(name, name)
            if attribute not in cls.model_fields:
                known = [*cls.model_fields, *attributes]
                meant = did_you_mean(name, known, f"its fields are {', '.join(cls.model_fields)}")
                raise TypeError(f"{cls.__name__} has no field {name!r}; {meant}")
            if attribute in found:
                raise TypeError(f"{name} was provided twice, by its names in Python and in C")
            found[attribute] = value
        return found

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """Yield the values of its own as the constructor takes them, with enumerators by name."""
        for name, value in self._own_values().items():
            yield name, _written(value)


class OtherSpellings:
    """Annotation of a struct's field that is read in other spellings too; ``respell`` returns the struct's own.

    JSON in C names of the struct, or of one of ``substitutes``, which ``respell`` accepts in its place, is read within
    pydantic's core: converting it to Python's objects first takes half as long as reading it. Falls back to
    ``respell`` for other spellings and for errors, so that an input has the errors of this one way only.
    """

    def __init__(self, respell: Callable[[Any], Any], *substitutes: type[Struct]) -> None:
        self.respell = respell
        self.substitutes = substitutes

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        struct = handler(source)
        respelled = core_schema.no_info_before_validator_function(self.respell, struct)
        others = [handler.generate_schema(other) for other in self.substitutes]
        unread = core_schema.any_schema()
        read = core_schema.union_schema([struct, *others, unread], mode="left_to_right")
        return core_schema.json_or_python_schema(core_schema.chain_schema([read, respelled]), respelled)

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(schema["python_schema"])


def _written(value: object) -> object:
    """Return an enumerator's name, or the number of combined flags; other values are returned as they are."""
    if not isinstance(value, Enum):
        return value
    return value.name if value.name in type(value).__members__ else value.value
