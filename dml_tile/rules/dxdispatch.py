"""Rules for DxDispatch models: what its own parser makes of one. Bare descriptors are not held to them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Final

from dml_tile.findings import Basis, Finding, Rule, Severity, Violation, rule
from dml_tile.input_errors import MAX_PROBLEMS
from dml_tile.operators import is_operator
from dml_tile.pages import DXDISPATCH_PAGE, DXDISPATCH_PARSER
from dml_tile.simulation import DEFAULT_TARGET
from dml_tile.targets import Target
from dml_tile.text import shown

TENSORS: Final = ("InputTensor", "OutputTensor")
"""The bind points of a tile."""

INITIALIZED: Final = ("InputTensor",)
"""Those that are bound when a tile is initialised."""

TILE_NAMES: Final = ("DML_OPERATOR_TILE", "TILE")
NO_OPERATORS: Final = ("hlsl", "onnx", "dmlserializedgraph")
"""The types of other dispatchables, in lower case: DxDispatch ignores the case of these."""

_NUMBERS_OF_TENSORS: Final = (
    "Sizes",
    "Strides",
    "DimensionCount",
    "TotalTensorSizeInBytes",
    "GuaranteedBaseOffsetAlignment",
)
_NAMES_OF_TENSORS: Final = ("Type", "DataType", "Flags")
_SIZES_OF_RESOURCES: Final = ("sizeInBytes", "initialValuesOffsetInBytes")


class Kind(StrEnum):
    """The parts of a model, in the words of reports."""

    MODEL = "model"
    RESOURCE = "resource"
    DISPATCHABLE = "dispatchable"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class ModelPart:
    """A part of a model, as its JSON value.

    Of the whole model, ``rest`` is the text that follows it, and ``has_mark`` tells of a byte order mark before it.
    """

    kind: Kind
    value: Any
    rest: str = ""
    has_mark: bool = False

    @property
    def operator(self) -> dict[str, Any]:
        """The fields of a dispatchable's operator; empty where there are none."""
        data = self.fields
        return _object(next((data[key] for key in ("Desc", "desc") if key in data), data))

    @property
    def fields(self) -> dict[str, Any]:
        """The value, where it is an object; else empty."""
        return _object(self.value)

    @property
    def is_tile(self) -> bool:
        """True for a dispatchable whose operator is Tile."""
        return self.kind is Kind.DISPATCHABLE and operator_of(self.value) in TILE_NAMES

    @property
    def sized(self) -> dict[str, Any]:
        """The fields of a resource whose sizes are read: it is not deferred."""
        data = self.fields if self.kind is Kind.RESOURCE else {}
        return {} if data.get("initialValues") == "deferred" else data

    def tensors(self) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """The tensors of a dispatchable's operator: the name, the DML_TENSOR_DESC and the DML_BUFFER_TENSOR_DESC."""
        for name in TENSORS if self.kind is Kind.DISPATCHABLE else ():
            tensor = _object(self.operator.get(name))
            yield name, tensor, _object(tensor.get("Desc", tensor))


def operator_of(dispatchable: Any) -> Any:
    """The operator of a dispatchable, for which Type comes before type; what is no operator stands under type."""
    data = _object(dispatchable)
    spelled = data.get("type")
    return spelled if isinstance(spelled, str) and spelled.lower() in NO_OPERATORS else data.get("Type", spelled)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


@rule(
    "DML-DXDISPATCH-null",
    basis=Basis.INFERRED,
    url=DXDISPATCH_PARSER,
    says="A key that may be left out is not null.",
    hresult=None,
    severity=Severity.ERROR,
)
def keys_are_not_null(part: ModelPart, target: Target) -> Iterator[Violation]:
    yield from _nulls(part.sized, _SIZES_OF_RESOURCES)
    if part.kind is Kind.DISPATCHABLE:
        yield from _nulls(part.fields, ("Desc", "desc"))
        yield from _nulls(part.operator, (*TENSORS, "RepeatsCount", "Repeats"))
        for name, tensor, buffer in part.tensors():
            yield from _nulls(tensor, ("Desc",), name)
            yield from _nulls(buffer, _NUMBERS_OF_TENSORS, name)


def _nulls(data: Mapping[str, Any], keys: tuple[str, ...], path: str = "") -> Iterator[Violation]:
    for key in keys:
        if key in data and data[key] is None:
            advice = "write [], or leave it out" if key == "Strides" else "write []" if key == "Repeats" else None
            yield Violation(_joined(path, key), "is null, which DxDispatch's parser refuses", advice)


@rule(
    "DML-DXDISPATCH-names",
    basis=Basis.INFERRED,
    url=DXDISPATCH_PARSER,
    says="Enumerators and flags are written as names.",
    hresult=None,
    severity=Severity.ERROR,
)
def enumerators_are_named(part: ModelPart, target: Target) -> Iterator[Violation]:
    if part.kind is Kind.RESOURCE:
        yield from _unnamed(part.fields, ("initialValuesDataType",))
        values = part.fields.get("initialValues")
        for i, value in enumerate(values if isinstance(values, list) else ()):
            yield from _unnamed(_object(value), ("type",), f"initialValues[{i}]")
    if part.kind is Kind.DISPATCHABLE:
        yield from _unnamed(part.fields, ("executionFlags",))
        for name, tensor, buffer in part.tensors():
            yield from _unnamed(tensor | buffer, _NAMES_OF_TENSORS, name)


def _unnamed(data: Mapping[str, Any], keys: tuple[str, ...], path: str = "") -> Iterator[Violation]:
    for key in keys:
        value = data.get(key)
        if any(isinstance(each, int) for each in (value if isinstance(value, list) else [value])):
            yield Violation(_joined(path, key), f"is {shown(value)}; DxDispatch's parser takes names only")


@rule(
    "DML-DXDISPATCH-typed-value",
    basis=Basis.INFERRED,
    url=DXDISPATCH_PARSER,
    says="Values that each have a type are of a type other than FLOAT16.",
    hresult=None,
    severity=Severity.ERROR,
)
def typed_values_are_no_halves(part: ModelPart, target: Target) -> Iterator[Violation]:
    values = part.fields.get("initialValues") if part.kind is Kind.RESOURCE else None
    for i, value in enumerate(values if isinstance(values, list) else ()):
        if str(_object(value).get("type")).removeprefix("DML_TENSOR_DATA_TYPE_") == "FLOAT16":
            message = "is FLOAT16, which DxDispatch's parser refuses in a list of typed values"
            yield Violation(f"initialValues[{i}].type", message, "write its bits as a UINT16")


@rule(
    "DML-DXDISPATCH-number",
    basis=Basis.INFERRED,
    url=DXDISPATCH_PARSER,
    says="An integer among floating-point values is one that a FLOAT64 holds exactly; no number is beyond a FLOAT64.",
    hresult=None,
    severity=Severity.ERROR,
)
def integers_are_exact(part: ModelPart, target: Target) -> Iterator[Violation]:
    if part.kind is not Kind.RESOURCE:
        return
    values = part.fields.get("initialValues")
    data_type = str(part.fields.get("initialValuesDataType"))
    numbers: list[tuple[str, Any, str]] = []
    if isinstance(values, list):
        for i, value in enumerate(values):
            typed = isinstance(value, dict)
            place = (f"initialValues[{i}].value", value.get("value"), str(value.get("type"))) if typed else None
            numbers.append(place or (f"initialValues[{i}]", value, data_type))
    else:
        keys = ("value", "valueStart", "valueDelta")
        numbers = [(f"initialValues.{key}", _object(values).get(key), data_type) for key in keys]
    for path, number, of_type in numbers:
        if type(number) not in (int, float) or "FLOAT" not in of_type:
            continue
        if not math.isfinite(_as_double(number)):
            yield Violation(path, f"is {shown(number)}, which is beyond a FLOAT64", 'write "inf"')
        elif type(number) is int and -(2**63) <= number < 2**64 and not _is_lossless(number):
            yield Violation(
                path, f"is {shown(number)}, which no FLOAT64 holds exactly", "write it with a decimal point"
            )


def _as_double(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _is_lossless(number: int) -> bool:
    """True for what RapidJSON calls a lossless double."""
    return int(float(number)) == number < 2**64


@rule(
    "DML-DXDISPATCH-type",
    basis=Basis.INFERRED,
    url=DXDISPATCH_PARSER,
    says="A dispatchable names its operator under `type`.",
    hresult=None,
    severity=Severity.ERROR,
)
def the_operator_is_under_type(part: ModelPart, target: Target) -> Iterator[Violation]:
    if part.kind is Kind.DISPATCHABLE and "type" not in part.fields and "Type" in part.fields:
        yield Violation("Type", "is written with a capital; DxDispatch's parser wants type", "write type")


@rule(
    "DML-DXDISPATCH-operator",
    basis=Basis.INFERRED,
    url=DXDISPATCH_PARSER,
    says="The type of a dispatchable is an operator of DirectML's, hlsl, onnx or dmlSerializedGraph.",
    hresult=None,
    severity=Severity.ERROR,
)
def the_operator_is_known(part: ModelPart, target: Target) -> Iterator[Violation]:
    if part.kind is not Kind.DISPATCHABLE or str(part.fields.get("type")).lower() in NO_OPERATORS:
        return
    key = "Type" if "Type" in part.fields else "type"
    name = part.fields.get(key)
    if isinstance(name, str) and not is_operator(name):
        yield Violation(key, f"{shown(name)} is no operator of DirectML's", "write a tile as DML_OPERATOR_TILE or TILE")


@rule(
    "DML-DXDISPATCH-byte-order-mark",
    basis=Basis.INFERRED,
    url=DXDISPATCH_PARSER,
    says="The file begins without a byte order mark.",
    hresult=None,
    severity=Severity.ERROR,
)
def there_is_no_byte_order_mark(part: ModelPart, target: Target) -> Iterator[Violation]:
    if part.kind is Kind.MODEL and part.has_mark:
        yield Violation("", "begins with a byte order mark", "save it as UTF-8 without one")


@rule(
    "DML-DXDISPATCH-trailing-text",
    basis=Basis.INFERRED,
    url=DXDISPATCH_PARSER,
    says="Nothing follows the model; DxDispatch ignores what does.",
    hresult=None,
    severity=Severity.NOTE,
)
def nothing_follows_the_model(part: ModelPart, target: Target) -> Iterator[Violation]:
    if part.rest:
        yield Violation("", f"{shown(part.rest)} follows the model, and is ignored")


@rule(
    "DML-DXDISPATCH-bind-point",
    basis=Basis.INFERRED,
    url=DXDISPATCH_PAGE,
    says="A bind point is one of the operator's; DxDispatch ignores others.",
    hresult=None,
    severity=Severity.NOTE,
)
def bind_points_are_the_tile_s(part: ModelPart, target: Target) -> Iterator[Violation]:
    if part.kind is Kind.DISPATCHABLE and not part.is_tile:
        return
    known = TENSORS if part.kind is Kind.COMMAND else INITIALIZED
    for point in _object(part.fields.get("bindings")):
        if point not in known:
            when = "when it initialises a tile" if point in TENSORS else "for a tile"
            message = f"{shown(point)} is ignored: DxDispatch binds {' and '.join(known)} {when}"
            yield Violation("bindings", message)


@rule(
    "DML-DXDISPATCH-offset",
    basis=Basis.INFERRED,
    url=DXDISPATCH_PAGE,
    says="initialValuesOffsetInBytes is 0; DxDispatch checks it, then puts the values at the beginning all the same.",
    hresult=None,
    severity=Severity.NOTE,
)
def values_begin_at_the_beginning(part: ModelPart, target: Target) -> Iterator[Violation]:
    if offset := part.sized.get("initialValuesOffsetInBytes"):
        yield Violation("initialValuesOffsetInBytes", f"is {shown(offset)}, which moves nothing")


DXDISPATCH_RULES: Final[tuple[Rule[ModelPart], ...]] = (
    keys_are_not_null,
    enumerators_are_named,
    typed_values_are_no_halves,
    integers_are_exact,
    the_operator_is_under_type,
    the_operator_is_known,
    there_is_no_byte_order_mark,
    nothing_follows_the_model,
    bind_points_are_the_tile_s,
    values_begin_at_the_beginning,
)


def part_findings(part: ModelPart) -> tuple[Finding, ...]:
    """The findings on a part of a model, which are the same at any target; of one rule, few, and how many more."""
    if part.kind is not Kind.MODEL and not part.fields:
        return ()  # of many values that are no objects, none costs much
    return tuple(finding for each in DXDISPATCH_RULES for finding in _few_findings(each, part))


def _few_findings(each: Rule[ModelPart], part: ModelPart) -> Iterator[Finding]:
    violations = iter(each.violations(part, DEFAULT_TARGET))
    for violation in islice(violations, MAX_PROBLEMS):
        yield each.finding(violation)
    for violation in violations:
        more = 1 + sum(1 for _ in violations)
        yield each.finding(Violation(violation.path.partition("[")[0], f"{more} more are like these"))


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
