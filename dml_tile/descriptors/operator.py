"""The mirrors of DML_OPERATOR_DESC, and of the struct of any operator other than Tile.

The fields of a struct are those that DirectML.h declares (``dml_tile.directml.operators``). Pydantic validates each by
the kind of its type, so that one model holds all operators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import IntEnum
from functools import cache
from math import inf, isfinite, isnan, nan
from struct import pack, unpack_from
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, SupportsIndex, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    SerializeAsAny,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic import Field as ModelField
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, SchemaValidator, core_schema

from dml_tile.descriptors.structs import JSON_DOCUMENT, Enumerator, Ordered, Struct
from dml_tile.descriptors.tile import (
    DATA_TYPE,
    OPERATOR_TYPE,
    TENSOR,
    UINT,
    UINTS,
    TensorDesc,
    TileOperatorDesc,
    array_text,
    nested,
)
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import OperatorType
from dml_tile.directml.operators import Field, Operator, enumerations, operator_name, operators
from dml_tile.errors import integer_of
from dml_tile.text import did_you_mean

_MAX_SUGGESTIONS: Final = 64
_FLOAT_MAX: Final = 2.0**128 - 2.0**104
_WORDS: Final = {"Infinity": inf, "-Infinity": -inf, "NaN": nan}
"""What stands for the numbers that JSON lacks."""


def _float(value: Any, format_: str = "f") -> float:
    """Return a number as a float. Raises ValueError for what no number of a C type is, given as struct's format."""
    if isinstance(value, bool | str | bytes):
        number = _WORDS.get(value) if isinstance(value, str) else None
    else:
        number = value if isinstance(value, float) else _real(value)
    if number is None:
        raise ValueError("no number")
    try:
        pack(f"<{format_}", number)
    except OverflowError:
        raise ValueError("too large") from None
    return number


def _real(value: Any) -> float | None:
    """Return a number that is no float, such as an integer or one of NumPy's, as one; None for anything else."""
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        return None


class _Float:
    """Annotation of a FLOAT's field; what is no number, or too large, is refused."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.union_schema(
            [
                core_schema.float_schema(strict=True, ge=-_FLOAT_MAX, le=_FLOAT_MAX),
                core_schema.no_info_plain_validator_function(_float),
            ],
            mode="left_to_right",
            custom_error_type="float32",
            custom_error_message="Input should be {expected}",
            custom_error_context={"expected": _NUMBER_OF.format("FLOAT", "3.4028235e38")},
        )


_NUMBER_OF: Final = 'a {0} (a number from -{1} to {1}, "Infinity", "-Infinity" or "NaN")'
SCALAR_BITS: Final = re.compile("0x[0-9A-Fa-f]{16}")
"""A DML_SCALAR_UNION of an unknown type, by its 8 bytes as one number."""
SCALAR_FORMATS: Final[Mapping[int, str]] = {
    TensorDataType.FLOAT32: "f",
    TensorDataType.FLOAT64: "d",
    TensorDataType.UINT8: "B",
    TensorDataType.UINT16: "H",
    TensorDataType.UINT32: "I",
    TensorDataType.UINT64: "Q",
    TensorDataType.INT8: "b",
    TensorDataType.INT16: "h",
    TensorDataType.INT32: "i",
    TensorDataType.INT64: "q",
}
"""The members of DML_SCALAR_UNION by data type, as formats of the module struct."""
_FLOATS: Final = {
    TensorDataType.FLOAT16: ("e", "65504"),
    TensorDataType.FLOAT32: ("f", "3.4028235e38"),
    TensorDataType.FLOAT64: ("d", "1.7976931348623157e308"),
}
"""Floats as formats of the module struct, and the largest of each."""


def _boolean(value: Any, handler: ValidatorFunctionWrapHandler) -> bool | int:
    """Return a BOOL: its values 0 and 1 are False and True."""
    number: int = handler(int(value) if isinstance(value, bool) else value)
    return bool(number) if number in (0, 1) else number


def _scalar(value: Any) -> int | float | str:
    """Return a number, or its bytes as in ``0x000000003f800000`` where the type of the union is unknown."""
    if isinstance(value, str) and SCALAR_BITS.fullmatch(value):
        return value.lower()
    if (number := integer_of(value)) is not None and -(2**63) <= number < 2**64:
        return number
    try:
        return _float(value, "d")
    except ValueError:
        raise PydanticCustomError("scalar", "Input should be {expected}", {"expected": _SCALAR}) from None


_SCALAR: Final = 'a number, "Infinity", "-Infinity", "NaN", or the 8 bytes of a DML_SCALAR_UNION as 0x and 16 digits'


def _json_number(value: Any) -> Any:
    """Return a number, by the word for it where JSON has no such number."""
    if not isinstance(value, float) or isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


INT = Annotated[int, ModelField(strict=True, ge=-(2**31), lt=2**31)]
"""An integer of 32 bits with a sign."""
BOOL = SerializeAsAny[Annotated[INT, WrapValidator(_boolean)]]
"""True or False, or another integer that C holds."""
_JSON_NUMBER: Final = PlainSerializer(_json_number, when_used="json")
FLOAT = Annotated[float, _Float(), _JSON_NUMBER]
"""A float of 32 bits, as Python's; infinities and NaN may be words, as in JSON."""
SCALAR = Annotated[Any, PlainValidator(_scalar), _JSON_NUMBER]
"""A DML_SCALAR_UNION."""


class ScaleBias(Struct):
    """DML_SCALE_BIAS: what the elements of an input are multiplied by, and what is then added."""

    scale: FLOAT
    bias: FLOAT

    if TYPE_CHECKING:

        def __init__(self, *, scale: float, bias: float) -> None: ...

    @property
    def changes_nothing(self) -> bool:
        """True for a scale of 1 and a bias of 0."""
        return self.scale == 1 and self.bias == 0


class Size2D(Struct):
    """DML_SIZE_2D: a width and a height."""

    width: UINT
    height: UINT

    if TYPE_CHECKING:

        def __init__(self, *, width: SupportsIndex, height: SupportsIndex) -> None: ...


class OperatorFields(Mapping[str, Any]):
    """The fields of an operator's struct, by their names in C or in snake_case, in C's order; it does not change.

    Tensors are TensorDesc, operators OperatorDesc, arrays tuples, and null pointers None. Made by ``OperatorDesc``.
    """

    __slots__ = ("_hash", "_values", "operator")

    def __init__(self, operator: Operator, values: Mapping[str, Any]) -> None:
        self.operator, self._hash = operator, 0
        self._values = {field.name: values[field.name] for field in operator.fields}

    def __getitem__(self, name: str) -> Any:
        values = self._values
        return values[name] if name in values else values[_c_names(self.operator.value)[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OperatorFields):
            return NotImplemented
        return self.operator is other.operator and self._values == other._values

    def __hash__(self) -> int:
        self._hash = self._hash or hash((self.operator.value, *self._values.values()))  # several caches ask
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.operator.value, self._values)

    def __repr__(self) -> str:
        return repr({field.name: self._named(field) for field in self.operator.fields})

    def _named(self, field: Field) -> Any:
        """Return a value, that of an enumerator as its name."""
        value = self._values[field.name]
        if field.kind != "e":
            return value
        names = spelling(field).names
        return names[value] if value < len(names) else value

    def __str__(self) -> str:
        """Return the fields in one line, without null pointers and the counts of arrays."""
        counts = {count: len(self._values[arrays[-1]] or ()) for count, arrays in self.operator.arrays.items()}
        shown = ((field.name, self._named(field)) for field in self.operator.fields)
        return ", ".join(
            f"{name} {_text(value)}" for name, value in shown if value is not None and counts.get(name) != value
        )

    def _dumped(self, *, mode: Literal["json", "python"], by_alias: bool) -> dict[str, Any]:
        """Return the fields as ``model_dump`` has them, in JSON's types or in Python's."""
        names = _python_names(self.operator.value)
        return {
            field.name if by_alias else names[field.name]: _adapter(field.kind, field.enumeration).dump_python(
                self._values[field.name], mode=mode, by_alias=by_alias
            )
            for field in self.operator.fields
        }


def _restored(value: int, values: dict[str, Any]) -> OperatorFields:
    return OperatorFields(operators()[value], values)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        texts = (f"({each})" if isinstance(each, OperatorDesc) else str(each) for each in value)
        return f"{{{', '.join(texts)}}}" if value and isinstance(value[0], Struct) else array_text(value)
    if isinstance(value, ScaleBias | Size2D):
        return f"{{{', '.join(f'{name} {number}' for name, number in value.model_dump(by_alias=True).items())}}}"
    return str(value)


@cache
def _python_names(value: int) -> dict[str, str]:
    """Return the names in Python of an operator's fields by their C names."""
    between_words = "(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
    return {field.name: re.sub(between_words, "_", field.name).lower() for field in operators()[value].fields}


@cache
def _c_names(value: int) -> dict[str, str]:
    """Return the C names of an operator's fields by their names in Python."""
    return {name: c_name for c_name, name in _python_names(value).items()}


@cache
def _enumerator(name: str) -> Enumerator:
    enumeration = enumerations()[name]
    made: Callable[..., Any] = IntEnum
    return Enumerator(made(name, enumeration.names, start=0), enumeration.prefix)


def spelling(field: Field) -> Enumerator:
    """Return the spellings of the enumerators that a field may have."""
    return DATA_TYPE if field.enumeration == "TENSOR_DATA_TYPE" else _enumerator(field.enumeration)


@cache
def _adapter(kind: str, enumeration: str) -> TypeAdapter[Any]:
    """Return what reads and writes the fields of a kind."""
    tensor: Any = Annotated[TensorDesc, TENSOR]
    operator: Any = Annotated[OperatorDesc, BeforeValidator(_with_null_tensors)]
    types: dict[str, Any] = {
        "t": tensor | None,
        "T": _array_of(tensor),
        "o": operator | None,
        "O": _array_of(operator),
        "u": UINT,
        "i": INT,
        "f": FLOAT,
        "b": BOOL,
        "U": UINTS | None,
        "I": _array_of(INT),
        "F": _array_of(FLOAT),
        "s": ScaleBias | None,
        "z": Size2D,
        "x": SCALAR,
    }
    if enumeration == "TENSOR_DATA_TYPE":
        return TypeAdapter(Annotated[int, DATA_TYPE])
    if enumeration:
        return TypeAdapter(Annotated[int, _enumerator(enumeration), AfterValidator(int)])
    return TypeAdapter(types[kind])


def _array_of(entry: Any) -> Any:
    return Annotated[tuple[entry, ...], ModelField(fail_fast=True), Ordered("a list or a tuple")] | None


def _with_null_tensors(data: Any) -> Any:
    """Return the data of a fused operator, whose tensors are null where they are left out."""
    if not isinstance(data, dict):
        return data
    data = nested(data)
    kind = data.get("Type", data.get("type"))
    try:
        operator = operators().get(OPERATOR_TYPE.read(kind))
    except (TypeError, ValueError):
        return data
    key = "desc" if "desc" in data else "Desc"
    if operator is None or not isinstance(data.get(key), Mapping | None):
        return data
    names = _python_names(operator.value)
    given = dict(data.get(key) or {})
    nulls = {name: None for name in operator.tensors if names[name] not in given}
    return data | {key: nulls | given}


@cache
def _validator(value: int) -> SchemaValidator:
    """Return the validator of an operator's fields."""
    operator, fields = operators()[value], {}
    for field in operator.fields:
        schema = _read_by(_adapter(field.kind, field.enumeration))
        is_count = field.name in operator.arrays
        if is_count or field.is_optional:
            schema = core_schema.with_default_schema(schema, default=-1 if is_count else None)
        names: list[list[str | int]] = [[field.name], [_python_names(value)[field.name]]]
        fields[field.name] = core_schema.typed_dict_field(schema, validation_alias=names)
    return SchemaValidator(core_schema.typed_dict_schema(fields, extra_behavior="forbid"))


def _read_by(adapter: TypeAdapter[Any]) -> CoreSchema:
    """Return the schema of a field; adapters are not copied into it, since each takes longer to build than to call."""
    return core_schema.with_info_plain_validator_function(
        lambda value, info: adapter.validate_python(value, context=info.context)
    )


def read_fields(operator: Operator, data: Any, context: Any = None) -> OperatorFields:
    """Return an operator's fields. Counts that are left out are the lengths of their arrays.

    Raises pydantic's ValidationError for an unknown name, a missing field, and a value that no C field can hold.
    """
    try:
        values = _validator(operator.value).validate_python(data, context=context)
    except ValidationError as error:
        raise _with_nearest_names(error, operator) from None
    for count, arrays in operator.arrays.items():
        if values[count] < 0:
            values[count] = max(len(values[array] or ()) for array in arrays)
    wrong: list[InitErrorDetails] = []
    for field in operator.fields:
        if field.kind == "x":
            try:
                values[field.name] = _number_of(values[field.name], values[operator.scalar_type])
            except PydanticCustomError as problem:
                wrong.append(InitErrorDetails(type=problem, loc=(field.name,), input=values[field.name]))
    if wrong:
        raise ValidationError.from_exception_data(operator.struct, wrong)
    return OperatorFields(operator, values)


def _with_nearest_names(error: ValidationError, operator: Operator) -> ValidationError:
    """Return the error, in which the messages about unknown names suggest the nearest fields."""
    if error.error_count() > _MAX_SUGGESTIONS:
        return error
    names = _python_names(operator.value)
    details: list[InitErrorDetails] = []
    for each in error.errors(include_url=False):
        message, path = each["msg"], each["loc"]
        if each["type"] == "extra_forbidden" and len(path) == 1:
            message = f"{message}; {did_you_mean(str(path[0]), [*names, *names.values()], 'docs/operators.md has all')}"
        kind = PydanticCustomError(each["type"], "{message}", {**each.get("ctx", {}), "message": message})
        details.append(InitErrorDetails(type=kind, loc=path, input=each["input"]))
    return ValidationError.from_exception_data(operator.struct, details)


def _number_of(scalar: float | str, data_type: int) -> Any:
    """Return the value of a DML_SCALAR_UNION, given as a number or by its bytes; these, if its type is unknown.

    Raises PydanticCustomError for a number that its type does not hold.
    """
    kind = data_type if isinstance(data_type, TensorDataType) else TensorDataType.UNKNOWN
    if isinstance(scalar, str):
        format_ = SCALAR_FORMATS.get(kind)
        return unpack_from(f"<{format_}", int(scalar, 16).to_bytes(8, "little"))[0] if format_ else scalar
    if kind in _FLOATS:
        format_, largest = _FLOATS[kind]
        with suppress(ValueError):
            _float(scalar, format_)
            return scalar
        expected = _NUMBER_OF.format(kind.name, largest)
    elif kind.bits:
        least = -(2 ** (kind.bits - 1)) if kind.name.startswith("INT") else 0
        most = 2**kind.bits - 1 + least
        if least <= scalar <= most and scalar == int(scalar):
            return int(scalar)
        expected = f"{'an' if least else 'a'} {kind.name} (an integer from {least} to {most})"
    else:
        return scalar
    raise PydanticCustomError("scalar", "Input should be {expected}", {"expected": expected})


class _DescOfType:
    """Annotation of ``OperatorDesc.desc``, which is read by the operator's type."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        tile = handler.generate_schema(TileOperatorDesc | None)
        return core_schema.with_info_wrap_validator_function(
            self._read,
            tile,
            serialization=core_schema.wrap_serializer_function_ser_schema(self._write, info_arg=True, schema=tile),
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(schema["schema"])

    @staticmethod
    def _read(value: Any, handler: core_schema.ValidatorFunctionWrapHandler, info: core_schema.ValidationInfo) -> Any:
        if "type" not in info.data:  # it is wrong, and no fields are known
            return None
        kind = info.data["type"]
        if kind == OperatorType.TILE or value is None or (operator := operators().get(kind)) is None:
            return handler(value)
        if isinstance(value, OperatorFields) and value.operator is operator:
            return value
        if not isinstance(value, Mapping):
            raise PydanticCustomError(
                "dict_type", "Input should be an object with the fields of {struct}", {"struct": operator.struct}
            )
        return read_fields(operator, value, JSON_DOCUMENT if info.mode == "json" else info.context)

    @staticmethod
    def _write(value: Any, handler: core_schema.SerializerFunctionWrapHandler, info: Any) -> Any:
        if isinstance(value, OperatorFields):
            return value._dumped(mode=info.mode, by_alias=bool(info.by_alias))
        return handler(value)


OperatorFieldsLike: TypeAlias = TileOperatorDesc | OperatorFields | Mapping[str, Any]
"""The fields of an operator's struct: by their names in C or in snake_case, or a tile."""


class OperatorDesc(Struct):
    """DML_OPERATOR_DESC: an operator's type, and its description, which is read by the type.

    A tile's is a TileOperatorDesc, that of another operator of DirectML.h an OperatorFields. ``type`` may be a name,
    with or without ``DML_OPERATOR_``.
    """

    type: Annotated[OperatorType | int, OPERATOR_TYPE] = ModelField(description="DML_OPERATOR_TYPE.")
    desc: Annotated[TileOperatorDesc | OperatorFields | None, _DescOfType()] = ModelField(
        description="The operator's struct, such as DML_TILE_OPERATOR_DESC, or null."
    )

    @model_validator(mode="before")
    @classmethod
    def _nest(cls, data: Any) -> Any:
        """Put the fields that stand beside ``Type`` under ``Desc``."""
        return nested(data) if isinstance(data, dict) else data

    if TYPE_CHECKING:

        def __init__(self, *, type: SupportsIndex | str, desc: OperatorFieldsLike | None) -> None: ...  # noqa: A002

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        name = OPERATOR_TYPE.write(self.type)
        yield "type", name.removeprefix(OPERATOR_TYPE.prefix) if isinstance(name, str) else name
        yield "desc", self.desc

    def __str__(self) -> str:
        """Return the operator in one line: a tile's, or the name of another operator and its fields."""
        if self.type == OperatorType.TILE:
            return "null" if self.desc is None else str(self.desc)
        name = operator_name(int(self.type))
        if self.desc is None or self.desc == UNKNOWN_STRUCT:
            return name
        return f"{name.removeprefix(OPERATOR_TYPE.prefix)} {self.desc}".rstrip()


UNKNOWN_STRUCT: Final = TileOperatorDesc(input_tensor=None, output_tensor=None, repeats=None)
"""Stands for the Desc of an operator that is not in DirectML.h, where it is not null."""


def tile_of(desc: OperatorDesc | TileOperatorDesc | None) -> TileOperatorDesc | None:
    """Return the tile that is described; None for a null one, and for another operator."""
    if isinstance(desc, OperatorDesc):
        return desc.desc if desc.type == OperatorType.TILE and isinstance(desc.desc, TileOperatorDesc) else None
    return desc
