"""The format: resources, dispatchables and commands, as DxDispatch reads them. Unknown keys are ignored, as there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from dml_tile.descriptors.operator import KINDS, OperatorDesc
from dml_tile.descriptors.structs import JSON_DOCUMENT, Flags, c_names
from dml_tile.descriptors.tile import DATA_TYPE, UINT, UINT64, BufferTensorDesc, TensorDesc, TileOperatorDesc
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import UINT_MAX, ExecutionFlags, OperatorType
from dml_tile.directml.operators import Field as OperatorField
from dml_tile.directml.operators import OperatorRow, operators
from dml_tile.dxdispatch import MODEL_KEYS
from dml_tile.dxdispatch.rules import (
    INITIALIZED,
    TENSORS,
    TILE_NAMES,
    ModelPart,
    desc_of,
    known_operator_of,
    operator_of,
)
from dml_tile.errors import InputError, input_error
from dml_tile.findings import Finding, unreadable
from dml_tile.geometry.layout import round_up_4
from dml_tile.input_errors import ProblemList
from dml_tile.text import json_pointer, shown

IMAGE_SUFFIXES: Final = (".jpg", ".jpeg", ".png")

MAX_BOUND: Final = 1000
"""The most tensors that one ``bindings`` may name, and resources of one; no operator has nearly as many."""

# Tags of unions are in brackets, so that they are never taken for keys of the data.


class JsonObject(BaseModel):
    """An object of a model: its keys are in camelCase, and unknown ones are ignored."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="ignore", alias_generator=to_camel)


PositiveUINT = Annotated[int, Field(strict=True, ge=1, le=UINT_MAX)]

Number = Annotated[Any, WithJsonSchema({"type": ["number", "string"]})]
"""A JSON number, or one of the strings "nan", "inf" and "-inf" where the type is a floating-point one.

What it must be depends on the data type, so it is looked at where the values are made."""


class TypedValue(JsonObject):
    """One value of a resource that mixes types."""

    name: Any = None
    """A comment."""
    type: Annotated[TensorDataType | int, DATA_TYPE]
    """The value's type."""
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

    source_path: str = Field(min_length=1)
    """Relative to the model's folder, or to the current one."""


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


class Resource(JsonObject):
    """A buffer, and its contents before the first command."""

    initial_values: InitialValues
    initial_values_data_type: Annotated[TensorDataType | int, DATA_TYPE] = TensorDataType.UNKNOWN
    """The type of initialValues; UNKNOWN for an array of typed values."""
    size_in_bytes: UINT64 | None = None
    """At least what the values need; rounded up to 4 if omitted."""
    initial_values_offset_in_bytes: UINT64 = 0
    """Checked against sizeInBytes; DxDispatch puts the values at the beginning all the same."""

    @model_validator(mode="before")
    @classmethod
    def _drop_sizes_of_deferred(cls, data: Any) -> Any:
        """Drop what DxDispatch does not read of a deferred resource: all but its data type."""
        if isinstance(data, dict) and data.get("initialValues") == "deferred":
            return pick(data, ("initialValues", "initialValuesDataType"))
        return data


@cache
def _formats() -> frozenset[str]:
    """Return the formats that a binding may name, without their prefix, DXGI_FORMAT_."""
    _, *names = Path(__file__).with_name("dxgi_formats.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(names)


def _require_format(name: str) -> str:
    """Refuse what names no DXGI_FORMAT."""
    if name.removeprefix("DXGI_FORMAT_") not in _formats():
        raise PydanticCustomError("format", "The name of a DXGI_FORMAT was expected")
    return name


class BindingSource(JsonObject):
    """A resource from an element on."""

    name: str
    element_count: UINT64 = 0
    """Read, and not used for a tile."""
    element_size_in_bytes: UINT64 = 0
    """By default the size of the resource's initialValuesDataType."""
    element_offset: UINT64 = 0
    """The first element, in units of elementSizeInBytes."""
    format: Annotated[str, AfterValidator(_require_format)] = "UNKNOWN"
    """A DXGI_FORMAT; read, and not used for a tile."""
    counter: str = ""
    """A resource; read, and not used for a tile."""
    counter_offset_bytes: UINT64 = 0
    """Read with counter only."""
    shape: Annotated[tuple[Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)], ...], Field(fail_fast=True)] = ()
    """Read, and not used for a tile."""


def _list_sources(sources: Any) -> Any:
    """Return a bind point's resources as a list of objects; one may stand alone, by its name."""
    sources = _require_few(sources if isinstance(sources, list) else [sources], "resources")
    listed = [{"name": source} if isinstance(source, str) else source for source in sources]
    for i, source in enumerate(listed):
        if isinstance(source, dict) and "counter" not in source:  # DxDispatch does not read its offset then
            listed[i] = {key: value for key, value in source.items() if key != "counterOffsetBytes"}
    return listed


def _require_few(bound: Any, kind: str) -> Any:
    """Refuse bindings that are so many that looking at each would take long."""
    if isinstance(bound, dict | list) and len(bound) > MAX_BOUND:
        raise PydanticCustomError("required", f"{len(bound)} {kind} are bound; at most {MAX_BOUND} were expected")
    return bound


_Source = str | BindingSource
BoundSources = Annotated[
    dict[
        str,
        Annotated[
            tuple[BindingSource, ...],
            Field(fail_fast=True),
            BeforeValidator(_list_sources, json_schema_input_type=_Source | list[_Source]),
        ],
    ],
    BeforeValidator(partial(_require_few, kind="tensors")),
]


_TENSOR_FIELDS, _BUFFER_FIELDS = (tuple(c_names(struct).values()) for struct in (TensorDesc, BufferTensorDesc))
_TYPES_OF_4_BITS: Final = ("UINT4", "INT4", "DML_TENSOR_DATA_TYPE_UINT4", "DML_TENSOR_DATA_TYPE_INT4")


def _known_fields_of_tile(desc: Any) -> Any:
    if isinstance(desc, dict) and "RepeatsCount" not in desc:
        raise PydanticCustomError("required", "RepeatsCount is missing; DxDispatch requires it")
    return known_fields_of_operator(operators()[OperatorType.TILE], desc)


def _known_fields_of_tensor(tensor: Any) -> Any:
    if not isinstance(tensor, dict):
        return tensor
    is_nested = isinstance(tensor.get("Desc"), dict)
    buffer = pick(tensor["Desc"] if is_nested else tensor, _BUFFER_FIELDS)
    if buffer.get("TotalTensorSizeInBytes") == 0:
        del buffer["TotalTensorSizeInBytes"]  # worked out as if it were missing
    if buffer.get("DataType") in _TYPES_OF_4_BITS and "TotalTensorSizeInBytes" not in buffer:
        # as DxDispatch's helper does; that of the reference page does not know these types
        try:
            of_8_bytes = BufferTensorDesc.model_validate(buffer | {"DataType": "UINT64"}, context=JSON_DOCUMENT)
            elements = of_8_bytes.total_tensor_size_in_bytes // 8
        except ValidationError:
            elements = 0  # the tensor itself cannot be read
        buffer["TotalTensorSizeInBytes"] = round_up_4((elements + 1) // 2)
    return pick(tensor, _TENSOR_FIELDS) | ({"Desc": buffer} if is_nested else buffer)


def pick(data: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return the items with these keys."""
    return {key: data[key] for key in keys if key in data}


_EXECUTION_FLAGS: Final = Flags(ExecutionFlags.__members__, "DML_EXECUTION_FLAG_")


class TileDispatchable(JsonObject):
    """A tile; the operator's fields stand under ``desc`` or beside ``type``."""

    type: Literal["DML_OPERATOR_TILE", "TILE"]
    desc: TileOperatorDesc | None
    dml_compile_type: Literal["DmlCompileOp", "DmlCompileGraph"] = "DmlCompileOp"
    execution_flags: Annotated[ExecutionFlags | int, _EXECUTION_FLAGS] = ExecutionFlags.NONE
    bindings: BoundSources = Field(default_factory=dict)
    """Bound at initialisation: tensors OWNED_BY_DML."""

    @property
    def operator(self) -> OperatorDesc:
        """The DML_OPERATOR_DESC that DxDispatch makes of it."""
        return OperatorDesc.model_construct(type=OperatorType.TILE, desc=self.desc)  # both are valid

    @model_validator(mode="before")
    @classmethod
    def _nest(cls, data: dict[str, Any]) -> Any:
        bindings = data.get("bindings")  # anything but an object is ignored there
        bound = {"bindings": bindings} if isinstance(bindings, dict) else {}
        options = pick(data, ("dmlCompileType", "executionFlags"))
        return {"type": operator_of(data), "desc": _known_fields_of_tile(desc_of(data)), **options, **bound}


class OtherDispatchable(JsonObject):
    """Any other operator, whose fields ``read_operator`` reads, a shader or a model."""

    type: str

    @model_validator(mode="before")
    @classmethod
    def _spell(cls, data: Any) -> Any:
        return {**data, "type": operator_of(data)} if isinstance(data, dict) and "Type" in data else data


_SPECIAL_FLOATS: Final = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}


def known_fields_of_operator(operator: OperatorRow, desc: Any) -> Any:
    """Return an operator's fields as DxDispatch takes them, without unknown keys."""
    if not isinstance(desc, dict):
        return desc
    return {field.name: _known_field(field, desc[field.name]) for field in operator.fields if field.name in desc}


def _known_field(field: OperatorField, value: Any) -> Any:
    if field.is_array and value == []:
        return None
    if field.is_tensor or field.is_operator:
        read = _known_fields_of_tensor if field.is_tensor else _known_fields_of_fused
        return [read(each) for each in value] if field.is_array and isinstance(value, list) else read(value)
    kind = KINDS.get(field.kind)  # None for an enumerator
    if kind and kind.struct and isinstance(value, dict):
        value = pick(value, c_names(kind.struct).values())
    return _respelled(value, is_union=kind is not None and kind.c_type == "DML_SCALAR_UNION")


def _known_fields_of_fused(data: Any) -> Any:
    """Return an operator that is fused into another; DxDispatch does not read its tensors."""
    operator = known_operator_of(data)
    if operator is None:
        return data
    desc = known_fields_of_operator(operator, desc_of(data))
    if isinstance(desc, dict):
        desc = {name: value for name, value in desc.items() if name not in operator.tensors}
    return {"Type": operator.value, "Desc": desc}


def _respelled(value: Any, *, is_union: bool = False) -> Any:
    """Return a value with DxDispatch's spelling of infinities, and of unions as in {"Float32": 1}, undone."""
    match value:
        case str():
            return _SPECIAL_FLOATS.get(value.lower(), value)
        case list():
            return [_respelled(each) for each in value]
        case dict() if is_union and len(value) == 1:
            return _respelled(next(iter(value.values())))
        case dict():
            return {key: _respelled(each) for key, each in value.items()}
    return value


def read_operator(operator: OperatorRow, part: ModelPart) -> OperatorDesc:
    """Read another operator than Tile, as DxDispatch takes it. Raises pydantic's ValidationError."""
    data = {"Type": operator.value, "Desc": known_fields_of_operator(operator, desc_of(part.fields))}
    return OperatorDesc.model_validate(data, context=JSON_DOCUMENT)


_Dispatchable = Annotated[
    Annotated[TileDispatchable, Tag("(tile)")] | Annotated[OtherDispatchable, Tag("(other)")],
    Discriminator(lambda data: "(tile)" if operator_of(data) in TILE_NAMES else "(other)"),
]


class DispatchCommand(JsonObject):
    """Bind resources to a dispatchable's tensors, and run it."""

    type: Literal["dispatch"]
    dispatchable: str
    bindings: BoundSources
    thread_group_count: tuple[UINT, UINT, UINT] = (1, 1, 1)
    """For shaders only."""


class PrintCommand(JsonObject):
    """Print a resource's elements."""

    type: Literal["print"]
    resource: str
    verbose: bool = Field(default=False, strict=True)
    """One element a line, with its index and its bits."""


class WriteFileCommand(JsonObject):
    """Write a resource to a file: an array (.npy), or raw bytes."""

    type: Literal["writeFile"]
    resource: str
    target_path: str = Field(min_length=1)
    """Relative to the current folder."""
    dimensions: Annotated[tuple[PositiveUINT, ...], Field(fail_fast=True)] = ()
    """The shape of a .npy file; by default one dimension."""


_COMMANDS: Final = {name.lower(): name for name in ("dispatch", "print", "writeFile")}  # whose case DxDispatch ignores


def _spelt_type(command: Any) -> Any:
    if isinstance(command, dict) and isinstance(command.get("type"), str):
        return {**command, "type": _COMMANDS.get(name := command["type"].lower(), name)}
    return command


Command = Annotated[
    Annotated[DispatchCommand | PrintCommand | WriteFileCommand, Field(discriminator="type")],
    BeforeValidator(_spelt_type),
]


class Model(JsonObject):
    """A DxDispatch model, of which the dispatchables that are operators can be run."""

    resources: dict[str, Resource]
    dispatchables: dict[str, _Dispatchable]
    commands: tuple[Command, ...]

    @property
    def tiles(self) -> dict[str, TileDispatchable]:
        """The dispatchables that are tiles."""
        return {name: each for name, each in self.dispatchables.items() if isinstance(each, TileDispatchable)}


class _Outline(JsonObject):
    """A model whose parts are not looked at: making a validator of a whole model takes longer than reading one."""

    resources: dict[str, Any]
    dispatchables: dict[str, Any]
    commands: tuple[Any, ...]


_PARTS: Final[dict[str, tuple[type[dict[str, Any]] | type[list[Any]], TypeAdapter[Any]]]] = {
    "resources": (dict, TypeAdapter(Resource)),
    "dispatchables": (dict, TypeAdapter(_Dispatchable)),
    "commands": (list, TypeAdapter(Command)),
}


def read_model(data: Any) -> Model:
    """Read a model from its JSON value. Raises InputError with all that is wrong with it."""
    if not isinstance(data, dict) or data.keys().isdisjoint(MODEL_KEYS):
        expected = "a DxDispatch model (with resources, dispatchables and commands) was expected"
        message = f"{shown(data)} was provided, but {expected}; `dml-tile check` takes bare descriptors too"
        raise input_error("", message)
    model, problems = read_parts(data)
    if problems:
        raise InputError(problems)
    return model


def read_parts(data: dict[str, Any]) -> tuple[Model, list[Finding]]:
    """Return those parts of a model that can be read, and all that is wrong with it."""
    problems = ProblemList(data, sections=("resources", "dispatchables"))
    shells = {name: kind() for name, (kind, _) in _PARTS.items() if isinstance(data.get(name), kind)}
    parts = {name: _validated_parts(data.get(name), name, problems) for name in _PARTS}
    model = Model.model_construct(
        resources=parts["resources"], dispatchables=parts["dispatchables"], commands=tuple(parts["commands"].values())
    )
    try:
        _Outline.model_validate({**data, **shells}, context=JSON_DOCUMENT)
    except ValidationError as error:
        problems.add_error(error)
    if not problems.reported():
        for problem in _dangling_names(model):
            problems.add(problem)
    return model, problems.reported()


def _validated_parts(values: Any, name: str, problems: ProblemList) -> dict[str | int, Any]:
    """Validate resources, dispatchables or commands one by one, so that errors do not add up."""
    kind, adapter = _PARTS[name]
    parts: dict[str | int, Any] = {}
    if not isinstance(values, kind):
        return parts
    for key, value in values.items() if isinstance(values, dict) else enumerate(values):
        try:
            parts[key] = adapter.validate_python(value, context=JSON_DOCUMENT)
        except ValidationError as error:
            problems.add_error(error, (name, key))
            if problems.is_full:
                break
    return parts


def _dangling_names(model: Model) -> Iterator[Finding]:
    for name, tile in model.tiles.items():
        yield from _dangling_resources(tile.bindings, model, ["dispatchables", name])
    for i, command in enumerate(model.commands):
        if isinstance(command, DispatchCommand):
            if command.dispatchable not in model.dispatchables:
                message = f"no dispatchable is called {command.dispatchable!r}"
                yield unreadable(json_pointer(["commands", i, "dispatchable"]), message)
            yield from _dangling_resources(command.bindings, model, ["commands", i])
        elif command.resource not in model.resources:
            yield unreadable(json_pointer(["commands", i, "resource"]), f"no resource is called {command.resource!r}")
    for pointer, count in resource_counts(model):
        if count > 1:
            yield unreadable(pointer, f"{count} resources are bound; a tensor takes one")


def _dangling_resources(bindings: BoundSources, model: Model, steps: list[str | int]) -> Iterator[Finding]:
    for point, sources in bindings.items():
        pointer = json_pointer([*steps, "bindings", point])
        for source in sources:
            if source.name not in model.resources:
                yield unreadable(pointer, f"no resource is called {source.name!r}")
            if source.counter and source.counter not in model.resources and steps[0] == "commands":
                yield unreadable(pointer, f"no resource is called {source.counter!r}")


def resource_counts(model: Model) -> Iterator[tuple[str, int]]:
    """Yield the JSON pointer of each binding of a tile's tensor, and how many resources it names."""
    tiles = model.tiles
    bound: list[tuple[list[str | int], BoundSources, tuple[str, ...]]] = [
        (["dispatchables", name], tile.bindings, INITIALIZED) for name, tile in tiles.items()
    ]
    for i, command in enumerate(model.commands):
        if isinstance(command, DispatchCommand) and command.dispatchable in tiles:
            bound.append((["commands", i], command.bindings, TENSORS))
    for steps, bindings, points in bound:
        for point in points:
            if point in bindings:
                yield json_pointer([*steps, "bindings", point]), len(bindings[point])
