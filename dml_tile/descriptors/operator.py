"""The mirrors of DML_OPERATOR_DESC, and of the struct of any operator other than Tile.

The fields of a struct are those that DirectML.h declares (``dml_tile.directml.operators``); each is of a kind in
``KINDS``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    NoReturn,
    SupportsIndex,
    TypeAlias,
    TypeVar,
)

from pydantic import (
    BeforeValidator,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic import Field as ModelField
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from dml_tile.descriptors.numbers import BOOL, FLOAT, INT, SCALAR, SCALAR_BITS, ScaleBias, Size2D, number_of
from dml_tile.descriptors.structs import JSON_DOCUMENT, Enumerator, Struct, ordered
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
from dml_tile.directml.enums import UINT_MAX, OperatorType
from dml_tile.directml.operators import Field, OperatorRow, enumerations, operator_name, operators
from dml_tile.text import did_you_mean

_MAX_SUGGESTIONS: Final = 64
_Kept = TypeVar("_Kept")


class OperatorFields:
    """The fields of an operator's struct, ``desc["Axis"]`` by their names in C or in snake_case; it does not change.

    Tensors are TensorDesc, operators OperatorDesc, arrays tuples, and null pointers None. Made by ``OperatorDesc``.
    """

    __slots__ = ("_kept", "operator", "values")

    operator: OperatorRow
    values: Mapping[str, Any]
    """All values by their names in C, in C's order."""

    def __init__(self, operator: OperatorRow, values: Mapping[str, Any]) -> None:
        object.__setattr__(self, "operator", operator)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "_kept", {})

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name} cannot be set: {self.operator.struct} does not change; replace() makes another")

    @property
    def attributes(self) -> Mapping[str, str]:
        """The names in Python by those in C."""
        return _python_names(self.operator.value)

    def __getitem__(self, name: str) -> Any:
        values = self.values
        return values[name] if name in values else values[_c_names(self.operator.value)[name]]

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{self.operator.struct} has no field {name!r}") from None

    def get(self, name: str) -> Any:
        """Return the value of a field; None too where the operator has no such field."""
        return self.values.get(_c_names(self.operator.value).get(name, name))

    def replace(self, **changes: Any) -> OperatorFields:
        """Return a copy with other values, read as ``OperatorDesc`` reads them; names are Python's or C's.

        Counts that are the lengths of their arrays are worked out anew. Raises pydantic's ValidationError for a name
        that is no field's, and for a value that no C field can hold.
        """
        lengths = _lengths(self.operator, self.values)
        kept = {name: value for name, value in self.values.items() if value != lengths.get(name)}
        names = _c_names(self.operator.value)
        return read_fields(self.operator, kept | {names.get(name, name): value for name, value in changes.items()})

    __replace__ = replace

    def model_dump(self, *, mode: Literal["json", "python"] = "python", by_alias: bool = False) -> dict[str, Any]:
        """Return the values as pydantic's models do: by their names in Python, or with ``by_alias`` in C."""
        dumped = dict[str, Any]()
        for field in self.operator.fields:
            value, adapter = self.values[field.name], _adapter(field.kind, field.enumeration)
            name = field.name if by_alias else self.attributes[field.name]
            dumped[name] = adapter.dump_python(value, mode=mode, by_alias=by_alias)
        return dumped

    def kept(self, work_out: Callable[[OperatorFields], _Kept]) -> _Kept:
        """Return ``work_out`` of these fields, which is worked out once and kept with them."""
        kept: dict[Any, _Kept] = self._kept
        if work_out not in kept:
            kept[work_out] = work_out(self)
        return kept[work_out]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OperatorFields):
            return NotImplemented
        return self.operator.value == other.operator.value and self.values == other.values

    def __hash__(self) -> int:
        return self.kept(_hash)  # several caches ask

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.operator.value, self.values)

    def __repr__(self) -> str:
        return repr({field.name: self._named(field) for field in self.operator.fields})

    def _named(self, field: Field) -> Any:
        """Return a value, that of an enumerator as its name."""
        value = self.values[field.name]
        if not field.enumeration:
            return value
        names = spelling(field.enumeration).names
        return names[value] if value < len(names) else value

    def __str__(self) -> str:
        """Return the fields in one line, without null pointers and the counts of arrays."""
        counts = {count: len(self.values[arrays[-1]] or ()) for count, arrays in self.operator.arrays.items()}
        shown = ((field.name, self._named(field)) for field in self.operator.fields)
        return ", ".join(
            f"{name} {_text(value)}" for name, value in shown if value is not None and counts.get(name) != value
        )


def _hash(fields: OperatorFields) -> int:
    return hash((fields.operator.value, *fields.values.values()))


def _lengths(operator: OperatorRow, values: Mapping[str, Any]) -> dict[str, int]:
    """Return the counts of arrays where they are left out: the length of the longest array."""
    return {count: max(len(values[array] or ()) for array in arrays) for count, arrays in operator.arrays.items()}


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
def _python_names(value: int) -> Mapping[str, str]:
    """Return the names in Python of an operator's fields by their C names."""
    between_words = "(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
    return {field.name: re.sub(between_words, "_", field.name).lower() for field in operators()[value].fields}


@cache
def _c_names(value: int) -> Mapping[str, str]:
    """Return the C names of an operator's fields by their names in Python."""
    return {attribute: name for name, attribute in _python_names(value).items()}


@cache
def spelling(name: str) -> Enumerator:
    """Return the spellings of an enumeration of operators' fields; known data types are members, other values ints."""
    if name == "TENSOR_DATA_TYPE":
        return DATA_TYPE
    enumeration = enumerations()[name]
    return Enumerator({each: value for value, each in enumerate(enumeration.names)}, enumeration.prefix)


def _array_of(entry: Any) -> Any:
    return Annotated[tuple[entry, ...], ModelField(fail_fast=True), ordered("a list or a tuple")] | None


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


_REQUIRED: Final = object()
_LEFT_OUT: Final = -1
"""A count until it is worked out."""


@cache
def _adapter(kind: str, enumeration: str) -> TypeAdapter[Any]:
    """Return what reads and writes fields of a kind; fields of all operators share it, since making it takes long."""
    return TypeAdapter(Annotated[int, spelling(enumeration)] if kind == "e" else KINDS[kind].type)


@cache
def _readers(value: int) -> list[tuple[str, str, Callable[..., Any], Any]]:
    """Return of each field, in C's order, its names, what reads its value, and the value where it is left out."""
    operator, names = operators()[value], _python_names(value)
    return [
        (
            field.name,
            names[field.name],
            _adapter(field.kind, field.enumeration).validator.validate_python,
            _LEFT_OUT if field.name in operator.arrays else None if field.is_optional else _REQUIRED,
        )
        for field in operator.fields
    ]


def read_fields(operator: OperatorRow, data: Mapping[str, Any], context: Any = None) -> OperatorFields:
    """Return an operator's fields. Counts that are left out are the lengths of their arrays.

    Raises pydantic's ValidationError for an unknown name, a missing field, and a value that no C field can hold.
    """
    values, wrong, used = dict[str, Any](), list[InitErrorDetails](), set[str]()
    for name, attribute, read, default in _readers(operator.value):
        key = name if name in data else attribute
        if key in data:
            used.add(key)
            try:
                values[name] = read(data[key], context=context)
            except ValidationError as error:
                wrong += _errors_at(key, error)
        elif default is _REQUIRED:
            wrong.append(InitErrorDetails(type="missing", loc=(name,), input=data))
        else:
            values[name] = default
    if len(used) < len(data):
        wrong += _unknown_names(operator, [key for key in data if key not in used], data)
    if not wrong:
        wrong += _work_out(operator, values)
    if wrong:
        raise ValidationError.from_exception_data(operator.struct, wrong)
    return OperatorFields(operator, values)


def _work_out(operator: OperatorRow, values: dict[str, Any]) -> Iterator[InitErrorDetails]:
    """Work out counts that are left out, and read each DML_SCALAR_UNION by its type. Yields what no type holds."""
    if operator.arrays:
        lengths = _lengths(operator, values)
        values.update((count, length) for count, length in lengths.items() if values[count] == _LEFT_OUT)
    for field in operator.fields:
        if field.kind == "x":
            try:
                values[field.name] = number_of(values[field.name], values[operator.scalar_type])
            except PydanticCustomError as problem:
                yield InitErrorDetails(type=problem, loc=(field.name,), input=values[field.name])


def _errors_at(key: str, error: ValidationError) -> Iterator[InitErrorDetails]:
    """Yield the errors of a field's value, located from the struct on."""
    for each in error.errors(include_url=False):
        kind = PydanticCustomError(each["type"], "{message}", {**each.get("ctx", {}), "message": each["msg"]})
        yield InitErrorDetails(type=kind, loc=(key, *each["loc"]), input=each["input"])


def _unknown_names(operator: OperatorRow, names: Sequence[Any], data: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    """Yield the errors of keys that are no field's; a few suggest the nearest field."""
    known = [*_python_names(operator.value), *_python_names(operator.value).values()]
    for name in names:
        message = "Extra inputs are not permitted"
        if len(names) <= _MAX_SUGGESTIONS:
            message += f"; {did_you_mean(str(name), known, 'docs/operators.md has all')}"
        kind = PydanticCustomError("extra_forbidden", "{message}", {"message": message})
        yield InitErrorDetails(type=kind, loc=(str(name),), input=data[name])


def _read_desc(value: Any, handler: core_schema.ValidatorFunctionWrapHandler, info: core_schema.ValidationInfo) -> Any:
    if "type" not in info.data:  # it is wrong, and no fields are known
        return None
    kind = info.data["type"]
    if kind == OperatorType.TILE or value is None or (operator := operators().get(kind)) is None:
        return handler(value)
    if isinstance(value, OperatorFields) and value.operator is operator:
        return value
    if isinstance(value, OperatorFields):
        value = {field.name: value[field.name] for field in value.operator.fields}
    if not isinstance(value, Mapping):
        message = "Input should be an object with the fields of {struct}"
        raise PydanticCustomError("dict_type", message, {"struct": operator.struct})
    return read_fields(operator, value, JSON_DOCUMENT if info.mode == "json" else info.context)


def _write_desc(value: Any, handler: core_schema.SerializerFunctionWrapHandler, info: Any) -> Any:
    if isinstance(value, OperatorFields):
        return value.model_dump(mode=info.mode, by_alias=bool(info.by_alias))
    return handler(value)


def _schema_of_desc(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    tile = handler.generate_schema(TileOperatorDesc | None)
    written = core_schema.wrap_serializer_function_ser_schema(_write_desc, info_arg=True, schema=tile)
    return core_schema.with_info_wrap_validator_function(_read_desc, tile, serialization=written)


_OF_TYPE: Final = GetPydanticSchema(_schema_of_desc, lambda schema, handler: handler(schema["schema"]))
"""The annotation of ``OperatorDesc.desc``, which is read by the operator's type."""

OperatorFieldsLike: TypeAlias = TileOperatorDesc | OperatorFields | Mapping[str, Any]
"""The fields of an operator's struct: by their names in C or in snake_case, or a tile."""


class OperatorDesc(Struct):
    """DML_OPERATOR_DESC: an operator's type, and its description, which is read by the type.

    A tile's is a TileOperatorDesc, that of another operator of DirectML.h an OperatorFields. ``type`` may be a name,
    with or without ``DML_OPERATOR_``.
    """

    type: Annotated[OperatorType | int, OPERATOR_TYPE]
    """DML_OPERATOR_TYPE."""
    desc: Annotated[TileOperatorDesc | OperatorFields | None, _OF_TYPE]
    """The operator's struct, such as DML_TILE_OPERATOR_DESC, or null."""

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


class Kind(NamedTuple):
    """A kind of fields: the type of their values, the C type, the definition in JSON Schemas, and a struct's mirror."""

    type: Any
    c_type: str
    name: str
    schema: dict[str, Any]
    struct: type[Struct] | None = None


def ref(name: str) -> dict[str, Any]:
    """Return the schema that refers to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that allows null too."""
    return {"anyOf": [schema, {"type": "null"}]}


def _array(name: str) -> dict[str, Any]:
    return or_null({"type": "array", "items": ref(name)})


def _pair(first: str, second: str, kind: str) -> dict[str, Any]:
    properties = {first: ref(kind), second: ref(kind)}
    return {"type": "object", "properties": properties, "required": [first, second], "additionalProperties": False}


_TENSOR: Final[Any] = Annotated[TensorDesc, TENSOR]
_FUSED: Final[Any] = Annotated[OperatorDesc, BeforeValidator(_with_null_tensors)]
_UINT: Final = {"type": "integer", "minimum": 0, "maximum": UINT_MAX}
_INT: Final = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}
_FLOAT: Final = {"anyOf": [{"type": "number"}, {"enum": ["Infinity", "-Infinity", "NaN"]}]}
_BITS: Final = {"type": "string", "pattern": f"^{SCALAR_BITS.pattern}$(?!\\n)"}

KINDS: Final[dict[str, Kind]] = {
    "t": Kind(_TENSOR | None, "DML_TENSOR_DESC*", "Tensor", or_null(ref("TensorDesc")), TensorDesc),
    "T": Kind(_array_of(_TENSOR), "DML_TENSOR_DESC*", "Tensors", _array("TensorDesc"), TensorDesc),
    "o": Kind(_FUSED | None, "DML_OPERATOR_DESC*", "Operator", or_null(ref("FusedOperatorDesc")), OperatorDesc),
    "O": Kind(_array_of(_FUSED), "DML_OPERATOR_DESC*", "Operators", _array("FusedOperatorDesc"), OperatorDesc),
    "u": Kind(UINT, "UINT", "UINT", _UINT),
    "i": Kind(INT, "INT", "INT", _INT),
    "f": Kind(FLOAT, "FLOAT", "FLOAT", _FLOAT),
    "b": Kind(BOOL, "BOOL", "BOOL", {"anyOf": [{"type": "boolean"}, ref("INT")]}),
    "U": Kind(UINTS | None, "UINT*", "UINTs", _array("UINT")),
    "I": Kind(_array_of(INT), "INT*", "INTs", _array("INT")),
    "F": Kind(_array_of(FLOAT), "FLOAT*", "FLOATs", _array("FLOAT")),
    "s": Kind(
        ScaleBias | None, "DML_SCALE_BIAS*", "DML_SCALE_BIAS", or_null(_pair("Scale", "Bias", "FLOAT")), ScaleBias
    ),
    "z": Kind(Size2D, "DML_SIZE_2D", "DML_SIZE_2D", _pair("Width", "Height", "UINT"), Size2D),
    "x": Kind(SCALAR, "DML_SCALAR_UNION", "DML_SCALAR_UNION", {"anyOf": [*_FLOAT["anyOf"], _BITS]}),
}
"""The kinds of fields, by the letters of ``dml_tile.directml.operators``; an enumerator's is by its enumeration."""
