"""The base of the frozen mirrors of C structs, and the spellings of their fields, as pydantic annotations.

Enumerators and flags are read by the full C name, its suffix alone, or the integer; flags also as a list, ORed. In
Python, names may have any case, integers may be NumPy's, and data types may be dtypes; JSON keeps to its schemas.
Written: the full C name, or the integer where there is no name. A known value becomes the enumeration's member, an
unknown one stays an int.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from enum import Enum
from functools import reduce
from operator import methodcaller, or_
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, GetPydanticSchema
from pydantic.alias_generators import to_pascal
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from dml_tile.directml.enums import UINT_MAX
from dml_tile.directml.operators import nearest_operator_name, operator_named, operators
from dml_tile.errors import integer_of, require_instance
from dml_tile.text import did_you_mean


def left_out() -> Any:
    """Return the field of a count or a total: -1 stands for one that the input leaves out, until it is worked out."""
    return Field(default=-1, json_schema_extra=methodcaller("pop", "default"))


class Struct(BaseModel):
    """A frozen C struct. Attributes are snake_case, JSON keys the C names; both are accepted on input.

    A field that is left out is worked out, or has its default. ``repr`` leaves out what the constructor would supply,
    and reads back; ``str`` is one line. Equal structs print and copy equally.
    """

    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="forbid", populate_by_name=True, alias_generator=to_pascal
    )

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
        fields = type(self).model_fields.items()
        supplied = {name: field.default for name, field in fields if not field.is_required()} | self._worked_out()
        return {name: value for name, value in self.__dict__.items() if name not in supplied or value != supplied[name]}

    @classmethod
    def _named_by_attributes(cls, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the changes by the names of attributes."""
        attributes = {c_name: name for name, c_name in c_names(cls).items()}
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


def c_names(*structs: type[Struct]) -> dict[str, str]:
    """Return the C names of the fields of some structs, by their names in Python."""
    return {name: str(field.alias) for struct in structs for name, field in struct.model_fields.items()}


def also_reads(respell: Callable[[Any], Any], *substitutes: type[Struct]) -> GetPydanticSchema:
    """Return the annotation of a struct's field that is read in other spellings; ``respell`` returns the struct's own.

    JSON in C names of the struct, or of one of ``substitutes``, which ``respell`` accepts in its place, is read within
    pydantic's core: converting it to Python's objects first takes half as long as reading it. Falls back to
    ``respell`` for other spellings and for errors, so that an input has the errors of this one way only.
    """

    def schema(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        struct = handler(source)
        respelled = core_schema.no_info_before_validator_function(respell, struct)
        others = [handler.generate_schema(other) for other in substitutes]
        read = core_schema.union_schema([struct, *others, core_schema.any_schema()], mode="left_to_right")
        return core_schema.json_or_python_schema(core_schema.chain_schema([read, respelled]), respelled)

    return GetPydanticSchema(schema, lambda schema, handler: handler(schema["python_schema"]))


def _written(value: object) -> object:
    """Return an enumerator's name, or the number of combined flags; other values are returned as they are."""
    if not isinstance(value, Enum):
        return value
    return value.name if value.name in type(value).__members__ else value.value


JSON_DOCUMENT: Final = object()
"""The context of a validation whose values come from a JSON document: it keeps to the spellings of the schemas."""


def unsigned(maximum: int) -> GetPydanticSchema:
    """Return the annotation of an unsigned C integer's field.

    NumPy's integers become Python's; bool and floats are refused.
    """

    def schema(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.union_schema(
            [
                core_schema.int_schema(strict=True, ge=0, le=maximum),
                core_schema.no_info_plain_validator_function(lambda value: _unsigned(value, maximum)),
            ],
            mode="left_to_right",
            custom_error_type="unsigned",
            custom_error_message="Input should be an integer from 0 to {maximum}",
            custom_error_context={"maximum": maximum},
        )

    return GetPydanticSchema(schema, lambda schema, handler: {"type": "integer", "minimum": 0, "maximum": maximum})


SEQUENCE: Final = "a list or a tuple of integers, or an array of one dimension"


def is_sequence(values: object) -> bool:
    """Return True for values in an order: not for a set, a dictionary, or the bytes or characters of something."""
    if isinstance(values, str | bytes | bytearray | memoryview | Set | Mapping):
        return False
    try:
        iter(values)  # type: ignore[call-overload]
    except TypeError:
        return False
    return True


def ordered(expected: str = SEQUENCE) -> GetPydanticSchema:
    """Return the annotation of an array's field: a sequence is required, where pydantic itself takes sets too."""

    def require(values: Any) -> Any:
        if type(values) is list or type(values) is tuple or is_sequence(values):
            return values
        raise PydanticCustomError("tuple_type", f"Input should be {expected}")

    def schema(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        array = handler(source)
        checked = core_schema.no_info_before_validator_function(require, array)
        return core_schema.json_or_python_schema(array, checked)

    return GetPydanticSchema(schema)


class Enumerator:
    """Annotation of a C enumeration's field, as in ``Annotated[X | int, Enumerator(X.__members__, "DML_…_")]``."""

    def __init__(self, members: Mapping[str, int], prefix: str) -> None:
        self.prefix = prefix
        self.names = list(members)
        self.c_names = {int(member): f"{prefix}{name}" for name, member in members.items()}
        self._values = _Spellings({int(member): member for member in members.values()})
        self._values.error_of = self._unknown_name
        for name, member in members.items():
            self._values[name] = self._values[f"{prefix}{name}"] = member
        self._known = f"expected one of {', '.join(self.names)}, with or without {prefix} before it"

    def read(self, spelling: str | int) -> int:
        """Return the value of one spelling. Raises PydanticCustomError, a ValueError, for an unknown name."""
        return self._values[spelling]

    def write(self, value: int) -> str | int:
        """Return the full C name of a value, or the value itself where it has none."""
        return self.c_names.get(value, value)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # What is spelled as it should be never leaves pydantic's core; a dict's own lookup is the cheapest call out.
        spelling = core_schema.union_schema(
            [
                core_schema.literal_schema([name for name in self._values if isinstance(name, str)]),
                core_schema.int_schema(strict=True, ge=0, le=UINT_MAX),
                core_schema.with_info_plain_validator_function(self._key),
            ],
            mode="left_to_right",
            custom_error_type="enumerator",
            custom_error_message=f"Input should be a name or an integer from 0 to {UINT_MAX}; {self._known}",
        )
        looked_up = core_schema.no_info_plain_validator_function(self._values.__getitem__)
        return core_schema.chain_schema(
            [spelling, looked_up],
            serialization=core_schema.plain_serializer_function_ser_schema(self.write, when_used="json"),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return self.json_schema(self.names, {"type": "integer", "minimum": 0, "maximum": UINT_MAX})

    def json_schema(self, names: Sequence[str], integers: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON Schema of some of the enumerators; an editor offers their short names alone.

        ``integers`` is that of the values. The full C names are a pattern, which is offered nowhere.
        """
        full_names = {"type": "string", "pattern": f"^{self.prefix}({'|'.join(names)})$(?!\\n)"}
        return {"anyOf": [{"enum": [*names]}, full_names, integers]}

    def _key(self, value: Any, info: core_schema.ValidationInfo) -> Any:
        """Return the key of a value that is none of the names. Raises ValueError for any other text."""
        if not isinstance(value, str):
            return self._key_of_object(value)
        is_python = info.mode == "python" and info.context is not JSON_DOCUMENT
        return value.upper() if is_python and value.upper() in self._values else value

    def _key_of_object(self, value: Any) -> Any:
        return _unsigned(value, UINT_MAX)

    def _unknown_name(self, name: str) -> PydanticCustomError:
        meant = did_you_mean(name.upper(), [known for known in self._values if isinstance(known, str)])
        hint = f" ({meant})" if meant else f"; {self._known}"
        return PydanticCustomError("enumerator", "No enumerator has this name{hint}", {"hint": hint})


class OperatorTypes(Enumerator):
    """Annotation of a DML_OPERATOR_TYPE's field; names other than Tile's are looked up when they come."""

    def __init__(self, members: Mapping[str, int], prefix: str) -> None:
        super().__init__(members, prefix)
        self._known = "see docs/operators.md for all names"

    def read(self, spelling: str | int) -> int:
        operator = operator_named(spelling) if isinstance(spelling, str) else None
        return super().read(operator.value if operator else spelling)

    def write(self, value: int) -> str | int:
        """Return the full C name of a value, or the value itself where it has none."""
        if value in self.c_names:
            return self.c_names[value]
        operator = operators().get(value)
        return operator.c_name if operator else value

    def _key(self, value: Any, info: core_schema.ValidationInfo) -> Any:
        key = super()._key(value, info)
        is_python = info.mode == "python" and info.context is not JSON_DOCUMENT
        operator = operator_named(key.upper() if is_python else key) if isinstance(key, str) else None
        return operator.value if operator and operator.value not in self.c_names else key

    def _unknown_name(self, name: str) -> PydanticCustomError:
        meant = nearest_operator_name(name)
        hint = f"did you mean {meant}?" if meant else "docs/operators.md has all"
        return PydanticCustomError("enumerator", "An operator of DirectML.h was expected ({hint})", {"hint": hint})


class DataTypes(Enumerator):
    """Annotation of a DML_TENSOR_DATA_TYPE's field; it may be a NumPy dtype or scalar type too, or one of ml_dtypes."""

    def _key_of_object(self, value: Any) -> Any:
        numpy = sys.modules.get("numpy")  # without it, there are no dtypes
        if numpy and (isinstance(value, numpy.dtype) or (isinstance(value, type) and issubclass(value, numpy.generic))):
            return value
        return super()._key_of_object(value)


class Flags(Enumerator):
    """Annotation of a C flags field: one spelling as for an enumeration, or a list of them."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        one = super().__get_pydantic_core_schema__(source, handler)
        ored = core_schema.no_info_plain_validator_function(lambda values: self.read(reduce(or_, values, 0)))
        return core_schema.union_schema(
            [one, core_schema.chain_schema([core_schema.list_schema(one, fail_fast=True), ored])],
            mode="left_to_right",
            custom_error_type="flags",
            custom_error_message=f"Input should be a name, an integer or a list of them; {self._known}",
            serialization=core_schema.plain_serializer_function_ser_schema(self.write, when_used="json"),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        one = super().__get_pydantic_json_schema__(schema, handler)
        return {"anyOf": [*one["anyOf"], {"type": "array", "items": one}]}


class _Spellings(dict[Any, int]):
    """The enumerators of an enumeration by spelling; ``error_of`` returns the error of an unknown name."""

    error_of: Callable[[str], PydanticCustomError]

    def __missing__(self, key: Any) -> int:
        if isinstance(key, int):
            return key
        if not isinstance(key, str):
            return _data_type(key)
        raise self.error_of(key)


def _data_type(dtype: Any) -> int:
    from dml_tile.directml.dtypes import data_type_of

    try:
        return data_type_of(dtype)
    except TypeError as error:
        raise PydanticCustomError("enumerator", "{reason}", {"reason": str(error)}) from None


def _unsigned(value: Any, maximum: int) -> int:
    """Return an integer, Python's or NumPy's, as Python's. Raises ValueError, which pydantic needs, for another."""
    number = integer_of(value)
    if number is None or not 0 <= number <= maximum:
        raise ValueError(f"no integer from 0 to {maximum}")
    return number
