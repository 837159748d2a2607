"""Rules for the fields and Sizes of operators other than Tile that hold at all levels."""

from __future__ import annotations

import operator as comparisons
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Final

from dml_tile.descriptors.tile import DATA_TYPE
from dml_tile.directml import pages
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.operators import enumerations
from dml_tile.directml.targets import Target
from dml_tile.findings import BOTH, Basis, Rules, Violation
from dml_tile.rules.equations import value_of
from dml_tile.rules.operator_view import OperatorView, basis, broadcast_advice
from dml_tile.rules.shapes import holds, misfits
from dml_tile.rules.tensor import TensorView
from dml_tile.text import braced

FIELD_SENTENCE: Final = re.compile(
    r"(?P<field>\w+) (?P<relation>!=|<=|>=|<|>|=|within|in) "
    r"(?:(?P<of>DimensionCount|DataType) of (?P<tensor>\w+)(?: - (?P<less>[0-9]))?|(?P<words>[\w .-]+))"
)
_RELATIONS: Final[dict[str, tuple[Callable[[Any, Any], bool], str]]] = {
    "<": (comparisons.lt, "less than {} was expected"),
    "<=": (comparisons.le, "at most {} was expected"),
    ">": (comparisons.gt, "more than {} was expected"),
    ">=": (comparisons.ge, "at least {} was expected"),
    "=": (comparisons.eq, "{} was expected"),
    "!=": (comparisons.ne, "another number was expected"),
    "within": (comparisons.lt, "less than {} was expected"),
    "in": (comparisons.eq, "one of {} was expected"),
}
"""What a value must be to a bound, and what a message says of it."""

OPERATOR_FIELD_RULES: Final = Rules[OperatorView](url=pages.OPERATOR, basis=BOTH | Basis.INFERRED)


@OPERATOR_FIELD_RULES.add(
    "DML-OPERATOR-same", says="Tensors that share a field, by the operator's page, have it equal."
)
def tensors_agree(op: OperatorView, target: Target) -> Iterator[Violation]:
    for field, tensors, is_documented, is_checked, alias, condition in op.table.same:
        if condition and not holds(op, condition):
            continue
        views = [view for tensor in tensors for view in op.of(tensor)]
        values = [*map(_VALUES[field], views)]
        if values.count(values[0] if values else None) == len(values):
            continue
        first = views[0]
        if field == "Sizes":  # a tensor that could be repeated is to follow the others
            first = next((view for view in views if broadcast_advice(first, view) and view.sizes != first.sizes), first)
        expected = _VALUES[field](first)
        has = f"{first.operand.name} has"
        if alias and expected == alias[0]:
            expected, has = alias[1], f"{_shown(alias[0])} needs"
        for view, value in zip(views, values, strict=True):
            if view is first or value is None or expected is None or value == expected:
                continue
            message = f"{_shown(value)} was provided, but {has} {_shown(expected)}"
            advice = broadcast_advice(view, first) if field == "Sizes" else None
            yield Violation(view.path(field), message, advice, basis(is_documented, is_checked))


_VALUES: Final[dict[str, Callable[[TensorView], Any]]] = {
    "DataType": attrgetter("desc.data_type"),
    "DimensionCount": attrgetter("desc.dimension_count"),
    "Sizes": attrgetter("sizes"),
}
"""Fields of tensors, by their names in C."""


def _shown(value: Any) -> str:
    if isinstance(value, TensorDataType):
        return str(DATA_TYPE.write(value))
    return braced(value) if isinstance(value, tuple) else str(value)


@OPERATOR_FIELD_RULES.add(
    "DML-OPERATOR-array", says="An array has as many entries as its count says, and is null only where it has none."
)
def arrays_have_their_entries(op: OperatorView, target: Target) -> Iterator[Violation]:
    for field in op.operator.fields if op.operator.arrays else ():
        if field.is_array:
            value, count = op.fields[field.name], op.fields[field.counted_by]
            if value is None and count and not field.is_optional:
                message = f"null was provided, but {field.counted_by} promises {count} entries"
                yield Violation(field.name, message, basis=basis())
            elif value is not None and len(value) < count:
                message = f"an array of {len(value)} was provided, but {field.counted_by} promises {count}"
                yield Violation(field.name, message, basis=basis())


@OPERATOR_FIELD_RULES.add("DML-OPERATOR-field", says="Fields fit the tensors, as their descriptions say.")
def fields_fit(op: OperatorView, target: Target) -> Iterator[Violation]:
    for sentence, is_documented, is_checked in op.table.fields:
        found, holds, words, numbers = _field_sentence(sentence)
        name = found["field"]
        value = value_of(op, name)
        bounds = numbers or _bounds(op, found)
        if value is None or not bounds:
            continue
        for i, each in enumerate(value if isinstance(value, tuple) else (value,)):
            if any(holds(each, bound) for bound in bounds):
                continue
            field = op.operator.named[name]
            path = f"{name}[{i}]" if field.is_array else name
            given = enumerations()[field.enumeration].names[each] if found["relation"] == "in" else _shown(each)
            message = f"{given} was provided, but {words.format(_expected(found, bounds))}"
            yield Violation(path, message, basis=basis(is_documented, is_checked))


@cache
def _field_sentence(sentence: str) -> tuple[re.Match[str], Callable[[Any, Any], bool], str, list[float]]:
    """Return a sentence's parts, its relation in Python and in words, and the numbers that it compares with, if any."""
    found = FIELD_SENTENCE.fullmatch(sentence)
    assert found, sentence
    words = found["words"].split() if found["words"] and found["relation"] != "in" else []
    return found, *_RELATIONS[found["relation"]], [float(word) for word in words if word != "or"]


def _bounds(op: OperatorView, found: re.Match[str]) -> list[float]:
    """Return the values that a sentence compares with; none if a tensor is missing."""
    if found["words"]:
        field = op.operator.named[found["field"]]
        names, value = enumerations()[field.enumeration].names, op.fields[field.name]
        # another rule refuses an unknown value
        return [names.index(word) for word in found["words"].split()] if value < len(names) else [value]
    views = op.of(found["tensor"])
    return [_VALUES[found["of"]](views[0]) - int(found["less"] or 0)] if views else []


def _expected(found: re.Match[str], bounds: Sequence[float]) -> str:
    if found["words"]:
        return ", ".join(found["words"].split()) if found["relation"] == "in" else found["words"]
    bound, less = bounds[0], f" - {found['less']}" if found["less"] else ""
    text = (
        _shown(TensorDataType(int(bound))) if found["of"] == "DataType" and bound in {*TensorDataType} else str(bound)
    )
    return f"{found['tensor']}.{found['of']}{less} = {text}"


@OPERATOR_FIELD_RULES.add(
    "DML-OPERATOR-ScaleBias",
    basis=Basis.RUNTIME | Basis.INFERRED,
    says="ScaleBias is null, or changes nothing, where the tensors have a data type of 64 bits.",
)
def wide_tensors_have_no_scale(op: OperatorView, target: Target) -> Iterator[Violation]:
    view = next(iter(op.views.values()), None)
    scale_bias = op.fields.get("ScaleBias")
    if view is None or scale_bias is None or scale_bias.changes_nothing:
        return
    data_type = view.desc.data_type
    if isinstance(data_type, TensorDataType) and data_type.bits == 64:
        message = f"a scale and a bias were provided, but null was expected for tensors of {data_type.name}"
        yield Violation("ScaleBias", message, basis=basis(is_documented=False))


@OPERATOR_FIELD_RULES.add(
    "DML-OPERATOR-Strides",
    basis=Basis.RUNTIME | Basis.INFERRED,
    says="The indices of SCATTER_ND are not repeated by a stride of 0.",
)
def inputs_are_not_repeated(op: OperatorView, target: Target) -> Iterator[Violation]:
    for view in (view for tensor in op.table.not_repeated for view in op.of(tensor)):
        for i, (size, stride) in enumerate(zip(view.sizes or (), view.strides or (), strict=False)):
            if size > 1 and stride == 0:
                message = f"0 was provided, but {op.operator.c_name} needs another stride along {size} elements"
                advice = "write the indices out"
                yield Violation(view.path(f"Strides[{i}]"), message, advice, basis(is_documented=False))


@OPERATOR_FIELD_RULES.add(
    "DML-OPERATOR-Sizes", says="Tensors have the Sizes that the operator's page, or the runtime, asks for."
)
def sizes_fit_each_other(op: OperatorView, target: Target) -> Iterator[Violation]:
    yield from misfits(op) if op.table.shapes or op.table.sizes else ()
