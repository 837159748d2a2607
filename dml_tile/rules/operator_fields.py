"""Rules for the fields and Sizes of operators other than Tile: most hold at all levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from dml_tile.directml import pages
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.operator_table import Shared
from dml_tile.directml.targets import Target
from dml_tile.findings import BOTH, MASK, SIZES, Basis, Edit, Rules, Severity, Try, Violation, set_to
from dml_tile.rules.equations import shown
from dml_tile.rules.operator_view import TENSOR_FIELDS, OperatorView, broadcast
from dml_tile.rules.shapes import holds, misfits, misfits_below
from dml_tile.rules.tensor import TensorView, counted, sized
from dml_tile.rules.tile import upgrade_advice

OPERATOR_FIELD_RULES: Final = Rules[OperatorView](url=pages.OPERATOR, basis=BOTH | Basis.INFERRED)
FIELD_LEVEL_RULES: Final = Rules[OperatorView](url=pages.LEVELS, basis=BOTH | Basis.INFERRED)
"""Rules for fields that depend on the level."""


@OPERATOR_FIELD_RULES.add("DML-OPERATOR-same")
def tensors_agree(op: OperatorView, target: Target) -> Iterator[Violation]:
    """Tensors that share a field, by the operator's page, have it equal."""
    return _disagreements(op, op.table.same, target)


@OPERATOR_FIELD_RULES.add("DML-OPERATOR-same-example", basis=Basis.DOCUMENTED, severity=Severity.NOTE)
def tensors_agree_unlike_the_example(op: OperatorView, target: Target) -> Iterator[Violation]:
    """Tensors that share a field, by the operator's page, have it equal; the page's own examples break this."""
    for found in _disagreements(op, op.table.example_same, target):
        message = f"{found.message}; the page's own examples differ too"
        yield found._replace(message=message, basis=Basis.DOCUMENTED, edit=None)


def _disagreements(op: OperatorView, same: Iterable[Shared], target: Target) -> Iterator[Violation]:
    for field, tensors, basis, alias, condition in same:
        if condition and not holds(op, condition):
            continue
        views = [view for tensor in tensors for view in op.by_field.get(tensor, ())]
        values = [*map(TENSOR_FIELDS[field], views)]
        if len(counts := Counter(values)) < 2:
            continue
        suiting = _suiting(op, field, tensors, counts, target)
        expected = (
            values[0] if alias else max(counts, key=lambda value: (value in suiting, value is not None, counts[value]))
        )
        first = views[values.index(expected)]
        if field == "Sizes" and 2 * counts[expected] <= len(values):  # a tensor that can be repeated follows
            others = [view for view in views if view.sizes != expected and len(view.sizes or ()) == len(expected)]
            first = next((view for view in others if broadcast(first, view)), first)
            expected = first.sizes
        has = f"{first.operand.name} has"
        if alias and expected == alias[0]:
            expected, has = alias[1], f"{shown(alias[0])} needs"
        for view, value in zip(views, values, strict=True):
            if view is first or value is None or expected is None or value == expected:
                continue
            message = f"{shown(value)} was provided, but {has} {shown(expected)}"
            yield Violation(view.path(field), message, basis=basis, edit=_alike(field, view, first, expected))


def _suiting(op: OperatorView, field: str, tensors: Iterable[str], values: Iterable[Any], target: Target) -> set[Any]:
    """Return the values that all tensors can have: types of their row, counts by ones, Sizes of the usual count."""
    if field == "DataType":
        row = op.table.at(target.feature_level)[0]
        types = [row[tensor].data_types for tensor in tensors if tensor in row]
        return {value for value in values if all(not each or value in each for each in types)}
    count_of = TENSOR_FIELDS["DimensionCount"]
    if field == "DimensionCount":
        views = [view for tensor in tensors for view in op.by_field.get(tensor, ())]
        return {value for value in values if all(count_of(view) == value or counted(view, value) for view in views)}
    ((usual, _),) = Counter(map(count_of, op.views.values())).most_common(1)
    return {value for value in values if value and len(value) == usual}


def _alike(field: str, view: TensorView, first: TensorView, expected: Any) -> Try | None:
    """Return the way out to give a tensor a field's expected value, as the first has it."""
    if field == "Sizes":
        return broadcast(view, first) or sized(view, expected)
    return counted(view, expected) if field == "DimensionCount" else set_to(expected, view.path(field))


@OPERATOR_FIELD_RULES.add("DML-OPERATOR-array")
def arrays_have_their_entries(op: OperatorView, target: Target) -> Iterator[Violation]:
    """An array has as many entries as its count says, and is null only where it has none."""
    for field in op.operator.array_fields:
        value, count = op.fields[field.name], op.fields[field.counted_by]
        if value is None and count and not field.is_optional:
            message = f"null was provided, but {field.counted_by} promises {count} entries"
            yield Violation(field.name, message, basis=BOTH)
        elif value is not None and len(value) < count:
            message = f"an array of {len(value)} was provided, but {field.counted_by} promises {count}"
            edit = Try(f"set {field.counted_by} to {len(value)}", edits=(Edit(field.counted_by, len(value)),))
            yield Violation(field.name, message, basis=BOTH, edit=edit)


@OPERATOR_FIELD_RULES.add("DML-OPERATOR-field")
def fields_fit(op: OperatorView, target: Target) -> Iterator[Violation]:
    """Fields fit the tensors, as their descriptions say."""
    return misfits(op, of_fields=True)


@FIELD_LEVEL_RULES.add("DML-OPERATOR-field-level")
def fields_fit_the_level(op: OperatorView, target: Target) -> Iterator[Violation]:
    """A field has a value that the feature level takes."""
    for below, violation in misfits_below(op):
        if target.feature_level < below:
            message = f"{violation.message} below {below.short}"
            yield violation._replace(message=message, suggestion=upgrade_advice(below))


@OPERATOR_FIELD_RULES.add("DML-OPERATOR-ScaleBias", basis=Basis.RUNTIME | Basis.INFERRED)
def wide_tensors_have_no_scale(op: OperatorView, target: Target) -> Iterator[Violation]:
    """ScaleBias is null, or changes nothing, where the tensors have a data type of 64 bits."""
    view = next(iter(op.views.values()), None)
    scale_bias = op.fields.get("ScaleBias")
    if view is None or scale_bias is None or scale_bias.changes_nothing:
        return
    data_type = view.desc.data_type
    if isinstance(data_type, TensorDataType) and data_type.bits == 64:
        message = f"a scale and a bias were provided, but null was expected for tensors of {data_type.name}"
        edit = Try("scale in an operator of its own", edits=(Edit("ScaleBias", None),))
        yield Violation("ScaleBias", message, basis=Basis.RUNTIME, edit=edit)


@OPERATOR_FIELD_RULES.add("DML-OPERATOR-Strides", basis=Basis.RUNTIME | Basis.INFERRED)
def inputs_are_not_repeated(op: OperatorView, target: Target) -> Iterator[Violation]:
    """The indices of SCATTER_ND are not repeated by a stride of 0."""
    for view in (view for tensor in op.table.not_repeated for view in op.of(tensor)):
        for i, (size, stride) in enumerate(zip(view.sizes or (), view.strides or (), strict=False)):
            if size > 1 and stride == 0:
                message = f"0 was provided, but {op.operator.c_name} needs another stride along {size} elements"
                edit = Try("write the indices out", edits=(Edit(view.path("Strides"), None),))
                yield Violation(view.path(f"Strides[{i}]"), message, basis=Basis.RUNTIME, edit=edit)


@OPERATOR_FIELD_RULES.add(MASK, basis=Basis.RUNTIME, url=pages.COMPILE, crash=True)
def mask_is_given(op: OperatorView, target: Target) -> Iterator[Violation]:
    """MULTIHEAD_ATTENTION has a MaskTensor where its MaskType is not NONE. CreateOperator takes it without one;
    CompileOperator refuses it, or ends the process.
    """
    if op.operator.name == _ATTENTION and op.fields["MaskType"] and op.fields["MaskTensor"] is None:
        message = "null was provided, but a tensor was expected for the MaskType; CompileOperator would refuse or crash"
        yield Violation("MaskTensor", message, "set MaskType to NONE")


_ATTENTION: Final = "MULTIHEAD_ATTENTION"


@OPERATOR_FIELD_RULES.add(SIZES)
def sizes_fit_each_other(op: OperatorView, target: Target) -> Iterator[Violation]:
    """Tensors have the Sizes that the operator's page, or the runtime, asks for."""
    return misfits(op)
