"""Rules for DxDispatch models: what its own parser makes of one. Bare descriptors are not held to them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from dml_tile.directml import pages
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.operator_table import operator_table
from dml_tile.directml.operators import Field, OperatorRow, nearest_operator_name, operator_named
from dml_tile.directml.targets import DEFAULT_TARGET, Target
from dml_tile.dxdispatch import MODEL_KEYS
from dml_tile.findings import NO_OPERATOR, Basis, Finding, Rule, Rules, Severity, Violation
from dml_tile.geometry.layout import round_up_4
from dml_tile.input_errors import MAX_PROBLEMS
from dml_tile.json_text import Document
from dml_tile.text import json_pointer, shown

TENSORS: Final = ("InputTensor", "OutputTensor")
"""The bind points of a tile."""

INITIALIZED: Final = ("InputTensor",)
"""The bind points that are bound when a tile is initialised."""

TILE_NAMES: Final = ("DML_OPERATOR_TILE", "TILE")
NO_OPERATORS: Final = {
    "hlsl": ("shader", "a shader was provided, which is no operator of DirectML"),
    "onnx": ("ONNX model", "an ONNX model was provided; check its own file"),
    "dmlserializedgraph": ("serialized graph", "a serialized graph was provided; its operators are not read"),
}
"""The kinds of other dispatchables, with a sentence, by their types in lower case: DxDispatch ignores the case."""

_NUMBERS_OF_TENSORS: Final = ("Sizes", "DimensionCount", "TotalTensorSizeInBytes", "GuaranteedBaseOffsetAlignment")
_NAMES_OF_TENSORS: Final = ("Type", "DataType", "Flags")
_SIZES_OF_RESOURCES: Final = ("sizeInBytes", "initialValuesOffsetInBytes")


class Extent(NamedTuple):
    """The sizes in bytes of a resource and of its elements; None where a file has them, and 0 for mixed elements."""

    size: int | None
    element_size: int | None


@dataclass(frozen=True, slots=True)
class ModelPart:
    """A part of a model; the whole also has the text that follows it, and whether a byte order mark precedes it.

    ``resources`` are those of the model, for parts that bind some; None stands for a deferred one. ``dispatched`` is
    the operator that a command dispatches. ``of_bindings`` are findings on the bindings of the operator's tensors,
    where these are known.
    """

    kind: Literal["model", "resource", "dispatchable", "command"]
    value: Any
    rest: str = ""
    has_mark: bool = False
    resources: Mapping[str, Extent | None] = field(default_factory=dict)
    dispatched: OperatorRow | None = None
    of_bindings: tuple[Finding, ...] = ()

    @property
    def operator(self) -> OperatorRow | None:
        """The operator of a dispatchable, or that a command dispatches; None for one that is not in DirectML.h."""
        return known_operator_of(self.value) if self.is_operator else self.dispatched

    @property
    def bind_points(self) -> tuple[str, ...]:
        """The operator's tensors, or arrays of them, that are bound: by a dispatchable, the inputs."""
        operator = self.operator
        if operator is None or self.kind == "command":
            return operator.tensors if operator else ()
        table = operator_table(operator.name, operator.tensors)
        return tuple(name for name in operator.tensors if not table.is_output(name))

    @property
    def bindings(self) -> dict[str, Any]:
        """The bindings, by bind points; empty where there are none."""
        return _object(self.fields.get("bindings"))

    def sources(self, point: str) -> list[dict[str, Any]] | None:
        """Return the resources that are bound to a tensor, or to an array of them, as objects; None if none are."""
        bindings = self.bindings
        if point not in bindings:
            return None
        bound = bindings[point]
        sources = bound if isinstance(bound, list) else [bound]
        return [{"name": each} if isinstance(each, str) else _object(each) for each in sources]

    def place_of(self, source: Mapping[str, Any]) -> tuple[int | None, int | None]:
        """Return a binding's offset and its resource's size, in bytes; None where they are not known."""
        resource = self.resources.get(str(source.get("name")), Extent(None, 0))
        offset = source.get("elementOffset", 0)
        unit = source.get("elementSizeInBytes") or (resource.element_size if resource else None)
        if resource is None or (unit is None and offset):
            return None, None
        return (offset * unit if type(offset) is type(unit) is int else 0), resource.size

    @property
    def fields(self) -> dict[str, Any]:
        """The value, where it is an object; else empty."""
        return _object(self.value)

    @property
    def _no_operator(self) -> tuple[str, str]:
        named = operator_of(self.value) if self.kind == "dispatchable" else None
        return NO_OPERATORS.get(named.lower(), ("", "")) if isinstance(named, str) else ("", "")

    @property
    def said_of_no_operator(self) -> str:
        """The words on a dispatchable that is a shader or a model, with its file; empty for all other parts."""
        said, path = self._no_operator[1], self.fields.get("sourcePath")
        return f"{said} ({shown(path)})" if said and isinstance(path, str) else said

    @property
    def what(self) -> str:
        """The kind of the part; of a dispatchable that is no operator, which other kind."""
        return self._no_operator[0] or self.kind

    @property
    def is_operator(self) -> bool:
        """True for a dispatchable that is an operator, known or not."""
        return self.kind == "dispatchable" and self._no_operator[0] == ""

    @property
    def listed_values(self) -> Iterator[tuple[str, Any]]:
        """The initial values of a resource that lists them, each behind its path."""
        values = self.fields.get("initialValues") if self.kind == "resource" else None
        return ((f"initialValues[{i}]", each) for i, each in enumerate(values if isinstance(values, list) else ()))

    @property
    def fields_with_sizes(self) -> dict[str, Any]:
        """The fields of a resource whose sizes are read: it is not deferred."""
        data = self.fields if self.kind == "resource" else {}
        return {} if data.get("initialValues") == "deferred" else data

    def operators(self) -> Iterator[tuple[str, OperatorRow, dict[str, Any]]]:
        """Yield a dispatchable's operator and those fused into it, as ``operators_in`` does."""
        operator = self.operator if self.kind == "dispatchable" else None
        return operators_in(operator, _object(desc_of(self.fields))) if operator else iter(())

    def missing_counts(self) -> list[str]:
        """Return the counts of arrays that an operator, or one fused into it, leaves out."""
        operators = self.operators()
        return [f"{prefix}{count}" for prefix, each, desc in operators for count in each.arrays if count not in desc]

    def tensors(self) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Yield an operator's tensors: the name, the DML_TENSOR_DESC and the DML_BUFFER_TENSOR_DESC."""
        for _, operator, desc in islice(self.operators(), 1):  # of fused ones, tensors are not read
            for each in operator.fields:
                for name, value in values_of(each, desc) if each.is_tensor else ():
                    tensor = _object(value)
                    yield name, tensor, _object(tensor.get("Desc", tensor))


def operator_of(dispatchable: Any) -> Any:
    """Return the operator of a dispatchable: that under Type, if any, unless type is one of NO_OPERATORS."""
    data = _object(dispatchable)
    spelled = data.get("type")
    return spelled if isinstance(spelled, str) and spelled.lower() in NO_OPERATORS else data.get("Type", spelled)


def desc_of(data: Mapping[str, Any]) -> Any:
    """Return the fields of a dispatchable, or of an operator fused into one: they stand under Desc, desc, or beside."""
    return next((data[key] for key in ("Desc", "desc") if key in data), data)


def known_operator_of(data: Any) -> OperatorRow | None:
    """Return the operator of DirectML.h that a dispatchable, or an operator fused into one, names; None if none."""
    name = operator_of(data)
    return operator_named(name) if isinstance(name, str) else None


def values_of(member: Field, desc: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield a field's value with its name, or each entry of an array."""
    value = desc.get(member.name)
    if not member.is_array:
        yield member.name, value
    elif isinstance(value, list):
        yield from ((f"{member.name}[{i}]", each) for i, each in enumerate(value))


def operators_in(
    operator: OperatorRow, desc: dict[str, Any], prefix: str = ""
) -> Iterator[tuple[str, OperatorRow, dict[str, Any]]]:
    """Yield an operator and those fused into it, each with what stands before its fields' names, and its fields."""
    yield prefix, operator, desc
    for each in operator.fields:
        for name, value in values_of(each, desc) if each.is_operator else ():
            if fused := known_operator_of(value):
                yield from operators_in(fused, _object(desc_of(value)), f"{prefix}{name}.")


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def model_parts(document: Document) -> Iterator[tuple[str, ModelPart]]:
    """Yield the parts of a model with their JSON pointers, and those of its commands that dispatch an operator."""
    yield "", ModelPart("model", document.value, document.rest, document.has_mark)
    data: dict[str, Any] = document.value
    resources, dispatchables, commands = map(data.get, MODEL_KEYS)
    for name, value in resources.items() if isinstance(resources, dict) else ():
        yield json_pointer(["resources", name]), ModelPart("resource", value)
    operators, extents = {}, {name: _extent_of(_object(value)) for name, value in _object(resources).items()}
    for name, value in dispatchables.items() if isinstance(dispatchables, dict) else ():
        part = ModelPart("dispatchable", value, resources=extents)
        yield json_pointer(["dispatchables", name]), part
        operators[name] = part.operator
    for i, value in enumerate(commands if isinstance(commands, list) else ()):
        name = _object(value).get("dispatchable")
        if isinstance(name, str) and (operator := operators.get(name)):
            part = ModelPart("command", value, resources=extents, dispatched=operator)
            yield json_pointer(["commands", i]), part


def _extent_of(resource: Mapping[str, Any]) -> Extent | None:
    """Return the sizes of a resource, as far as the model says them; None for a deferred one."""
    values = resource.get("initialValues")
    if values == "deferred":
        return None
    spelled = str(resource.get("initialValuesDataType")).removeprefix("DML_TENSOR_DATA_TYPE_")
    element_size = ELEMENT_SIZES.get(TensorDataType.__members__.get(spelled, TensorDataType.UNKNOWN), 0)
    count = len(values) if isinstance(values, list) else _object(values).get("valueCount")
    size = resource.get(
        "sizeInBytes", round_up_4(count * element_size) if type(count) is int and element_size else None
    )
    is_file = "sourcePath" in _object(values)
    return Extent(size if type(size) is int else None, None if is_file and not element_size else element_size)


DXDISPATCH_RULES: Final = Rules[ModelPart](basis=Basis.INFERRED, url=pages.DXDISPATCH_PARSER, hresult=None)
"""Rules for what DxDispatch makes of a model; no HRESULT says that one is broken."""


@DXDISPATCH_RULES.add("DML-DXDISPATCH-null")
def keys_are_not_null(part: ModelPart, target: Target) -> Iterator[Violation]:
    """A key that may be left out is not null."""
    yield from _nulls(part.fields_with_sizes, _SIZES_OF_RESOURCES)
    if part.kind == "dispatchable":
        yield from _nulls(part.fields, ("Desc", "desc"))
        for prefix, operator, desc in part.operators():
            for each in operator.fields:
                if not (prefix and each.is_tensor):
                    advice = "write []" if each.is_array else "leave it out" if each.is_optional else None
                    yield from _nulls(desc, (each.name,), prefix, advice)
        for name, tensor, buffer in part.tensors():
            yield from _nulls(tensor, ("Desc",), f"{name}.")
            yield from _nulls(buffer, ("Strides",), f"{name}.", "write [], or leave it out")
            yield from _nulls(buffer, _NUMBERS_OF_TENSORS, f"{name}.")


def _nulls(
    data: Mapping[str, Any], keys: tuple[str, ...], prefix: str = "", advice: str | None = None
) -> Iterator[Violation]:
    for key in keys:
        if key in data and data[key] is None:
            yield Violation(f"{prefix}{key}", "is null, which DxDispatch's parser refuses", advice)


@DXDISPATCH_RULES.add("DML-DXDISPATCH-names")
def enumerators_are_named(part: ModelPart, target: Target) -> Iterator[Violation]:
    """Enumerators and flags are written as names, and a BOOL as true or false."""
    if part.kind == "resource":
        yield from _unnamed(part.fields, ("initialValuesDataType",))
        for path, value in part.listed_values:
            yield from _unnamed(_object(value), ("type",), f"{path}.")
    if part.kind == "dispatchable":
        yield from _unnamed(part.fields, ("executionFlags",))
        for name, tensor, buffer in part.tensors():
            yield from _unnamed(tensor | buffer, _NAMES_OF_TENSORS, f"{name}.")
        for prefix, operator, desc in part.operators():
            for each in operator.fields:
                value = desc.get(each.name)
                if each.enumeration:
                    yield from _unnamed(desc, (each.name,), prefix)
                elif each.kind == "b" and type(value) is int:
                    message = f"is {shown(value)}; DxDispatch's parser takes true or false only"
                    yield Violation(f"{prefix}{each.name}", message)
                for name, fused in values_of(each, desc) if each.is_operator else ():
                    yield from _unnamed({"Type": operator_of(fused)}, ("Type",), f"{prefix}{name}.")


def _unnamed(data: Mapping[str, Any], keys: tuple[str, ...], prefix: str = "") -> Iterator[Violation]:
    for key in keys:
        value = data.get(key)
        if any(isinstance(each, int) for each in (value if isinstance(value, list) else [value])):
            yield Violation(f"{prefix}{key}", f"is {shown(value)}; DxDispatch's parser takes names only")


@DXDISPATCH_RULES.add("DML-DXDISPATCH-typed-value")
def typed_values_are_not_halves(part: ModelPart, target: Target) -> Iterator[Violation]:
    """Values that each have a type are of a type other than FLOAT16."""
    for path, value in part.listed_values:
        if str(_object(value).get("type")).removeprefix("DML_TENSOR_DATA_TYPE_") == "FLOAT16":
            message = "is FLOAT16, which DxDispatch's parser refuses in a list of typed values"
            yield Violation(f"{path}.type", message, "write its bits as a UINT16")


@DXDISPATCH_RULES.add("DML-DXDISPATCH-number")
def integers_are_exact(part: ModelPart, target: Target) -> Iterator[Violation]:
    """An integer among floating-point values is one that a FLOAT64 holds exactly; no number is beyond a FLOAT64."""
    if part.kind != "resource":
        return
    values, data_type = _object(part.fields.get("initialValues")), part.fields.get("initialValuesDataType")
    keys, numbers = ("value", "valueStart", "valueDelta"), list[tuple[str, Any, Any]]()
    numbers += ((f"initialValues.{key}", values.get(key), data_type) for key in keys)
    for path, value in part.listed_values:
        typed = isinstance(value, dict)
        numbers.append((f"{path}.value", value.get("value"), value.get("type")) if typed else (path, value, data_type))
    for path, number, of_type in numbers:
        if type(number) not in (int, float) or "FLOAT" not in str(of_type):
            continue
        if not math.isfinite(as_float64(number)):
            yield Violation(path, f"is {shown(number)}, which is beyond a FLOAT64", 'write "inf"')
        elif type(number) is int and -(2**63) <= number < 2**64 and not number == int(float(number)) < 2**64:
            message = f"is {shown(number)}, which no FLOAT64 holds exactly"
            yield Violation(path, message, "write it with a decimal point")


def as_float64(number: float) -> float:
    """Return a number of JSON as a float; one too large is infinite, as in C++."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


@DXDISPATCH_RULES.add("DML-DXDISPATCH-type")
def operator_is_under_type(part: ModelPart, target: Target) -> Iterator[Violation]:
    """A dispatchable names its operator under `type`."""
    if part.kind == "dispatchable" and "type" not in part.fields and "Type" in part.fields:
        yield Violation("Type", "is written with a capital; DxDispatch's parser wants type", "write type")


@DXDISPATCH_RULES.add("DML-DXDISPATCH-operator")
def operator_is_known(part: ModelPart, target: Target) -> Iterator[Violation]:
    """The type of a dispatchable is an operator of DirectML's, hlsl, onnx or dmlSerializedGraph."""
    if not part.is_operator:
        return
    key = "Type" if "Type" in part.fields else "type"
    name = part.fields.get(key)
    if isinstance(name, str) and not operator_named(name):
        meant = nearest_operator_name(name)
        way = f"write {meant}" if meant else "docs/operators.md has all names"
        yield Violation(key, f"{shown(name)} is no operator of DirectML's", way)


@DXDISPATCH_RULES.add(NO_OPERATOR, url=pages.DXDISPATCH, severity=Severity.NOTE)
def dispatchable_is_an_operator(part: ModelPart, target: Target) -> Iterator[Violation]:
    """A dispatchable is an operator; of a shader, an ONNX model or a serialized graph nothing is checked."""
    if part.said_of_no_operator:
        yield Violation("type", part.said_of_no_operator)


@DXDISPATCH_RULES.add("DML-DXDISPATCH-byte-order-mark")
def byte_order_mark_is_absent(part: ModelPart, target: Target) -> Iterator[Violation]:
    """The file begins without a byte order mark."""
    if part.kind == "model" and part.has_mark:
        yield Violation("", "begins with a byte order mark", "save it as UTF-8 without one")


@DXDISPATCH_RULES.add("DML-DXDISPATCH-trailing-text", severity=Severity.NOTE)
def trailing_text_is_absent(part: ModelPart, target: Target) -> Iterator[Violation]:
    """Nothing follows the model; DxDispatch ignores what does."""
    if part.rest:
        yield Violation("", f"{shown(part.rest)} follows the model, and is ignored")


@DXDISPATCH_RULES.add("DML-DXDISPATCH-bind-point", url=pages.DXDISPATCH, severity=Severity.NOTE)
def bind_points_belong_to_operator(part: ModelPart, target: Target) -> Iterator[Violation]:
    """A bind point is one of the operator's; DxDispatch ignores others."""
    if part.operator is None or not part.bindings:
        return
    points = part.bind_points
    *others, last = points or ("nothing",)
    bound = f"{', '.join(others)} and {last}" if others else last
    name = "a tile" if part.operator.name == "TILE" else part.operator.name
    for point in part.bindings:
        if point not in points:
            when = f"when it initialises {name}" if point in part.operator.tensors else f"for {name}"
            yield Violation("bindings", f"{shown(point)} is ignored: DxDispatch binds {bound} {when}")


@DXDISPATCH_RULES.add("DML-DXDISPATCH-offset", url=pages.DXDISPATCH, severity=Severity.NOTE)
def values_have_no_offset(part: ModelPart, target: Target) -> Iterator[Violation]:
    """initialValuesOffsetInBytes is 0; DxDispatch checks it, then puts the values at the beginning all the same."""
    if offset := part.fields_with_sizes.get("initialValuesOffsetInBytes"):
        yield Violation("initialValuesOffsetInBytes", f"is {shown(offset)}, which moves nothing")


@DXDISPATCH_RULES.add("DML-DXDISPATCH-elementOffset")
def bindings_begin_within_resources(part: ModelPart, target: Target) -> Iterator[Violation]:
    """A binding begins within its resource. Behind it, DxDispatch's subtraction wraps, so that DirectML takes the
    binding, and the GPU would read behind the buffer.
    """
    for point in part.bind_points if part.bindings else ():
        for source in part.sources(point) or ():
            offset, size = part.place_of(source)
            if offset is not None and size is not None and offset > size:
                message = f"begins at byte {offset}, but the resource has {size}; the GPU would read behind the buffer"
                yield Violation(point, message)


@DXDISPATCH_RULES.add("DML-DXDISPATCH-dmlCompileType", url=pages.COMPILE_GRAPH)
def graphs_can_be_compiled(part: ModelPart, target: Target) -> Iterator[Violation]:
    """DmlCompileGraph, which calls CompileGraph, is for targets from 2_1 on, which have IDMLDevice1."""
    if part.is_operator and part.fields.get("dmlCompileType") == "DmlCompileGraph" and not target.level.has_graphs:
        yield Violation("dmlCompileType", f"DmlCompileGraph needs IDMLDevice1, which {target.name} does not have")


@DXDISPATCH_RULES.add("DML-DXDISPATCH-IDMLDevice1", url=pages.DXDISPATCH, severity=Severity.NOTE)
def device_can_be_made(part: ModelPart, target: Target) -> Iterator[Violation]:
    """DxDispatch makes an IDMLDevice1, which targets have from 2_1 on; before it, it runs no model. For `check`, this
    is a note: other applications may dispatch the same tiles.
    """
    if part.kind == "model" and not target.level.has_graphs:
        yield Violation("", f"DxDispatch needs IDMLDevice1, which {target.name} does not have")


def part_findings(part: ModelPart, target: Target = DEFAULT_TARGET) -> tuple[Finding, ...]:
    """Return the findings on a part of a model at a target; few of each rule, with the number of others."""
    if part.kind != "model" and not part.fields:
        return ()  # of many values that are no objects, none costs much
    found = (finding for each in DXDISPATCH_RULES for finding in _few_findings(each, part, target))
    return (*found, *part.of_bindings)


def model_findings(parts: Mapping[str, ModelPart], target: Target = DEFAULT_TARGET) -> dict[str, tuple[Finding, ...]]:
    """Return the findings on the parts of a model that have any at a target, by their JSON pointers."""
    return {pointer: found for pointer, part in parts.items() if (found := part_findings(part, target))}


def _few_findings(each: Rule[ModelPart], part: ModelPart, target: Target) -> Iterator[Finding]:
    violations = iter(each.violations(part, target))
    for violation in islice(violations, MAX_PROBLEMS):
        yield each.finding(violation)
    for violation in violations:
        more = 1 + sum(1 for _ in violations)
        yield each.finding(Violation(violation.path.partition("[")[0], f"{more} more are like these"))
