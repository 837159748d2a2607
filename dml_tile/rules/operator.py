"""Rules for operators other than Tile that depend on the level: which operators it has, and their rows of types."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, groupby, takewhile
from typing import Final

from dml_tile.descriptors.operator import OperatorFields
from dml_tile.descriptors.tile import type_name
from dml_tile.directml import pages
from dml_tile.directml.data_types import FLOATS, TensorDataType
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, OWNED_BY_DML, FeatureLevel
from dml_tile.directml.levels import LEVELS
from dml_tile.directml.operator_table import Column, OperatorTable, Row
from dml_tile.directml.operators import Operator, enumerations, operators
from dml_tile.directml.targets import Target
from dml_tile.findings import BOTH, Basis, Finding, Rule, Rules, Severity, Violation, apply_rules
from dml_tile.rules.activations import ACTIVATION_RULES
from dml_tile.rules.operator_fields import (
    OPERATOR_FIELD_RULES,
    arrays_have_their_entries,
    fields_fit,
    inputs_are_not_repeated,
    sizes_fit_each_other,
    wide_tensors_have_no_scale,
)
from dml_tile.rules.operator_view import INT_MAX, OperatorView, basis, viewed
from dml_tile.rules.shapes import holds
from dml_tile.rules.tensor import BUFFER_RULES, TENSOR_RULES, Operand
from dml_tile.rules.tile import count_outside_row, lacking_capability, level_needed, upgrade_advice
from dml_tile.rules.tile_findings import NEWEST, TARGETS

_INFERRED: Final = {
    Basis.DOCUMENTED: Basis.DOCUMENTED,
    Basis.RUNTIME: Basis.INFERRED,
    BOTH: Basis.DOCUMENTED | Basis.INFERRED,
    Basis.INFERRED: Basis.INFERRED,
}
"""The bases of findings at levels at which operators were not measured."""

OPERATOR_LEVEL_RULES: Final = Rules[OperatorView](
    url=pages.OPERATOR, basis=Basis.DOCUMENTED | Basis.RUNTIME | Basis.INFERRED
)


@OPERATOR_LEVEL_RULES.add("DML-OPERATOR-level", url=pages.LEVELS, says="The feature level has the operator.")
def operator_is_introduced(op: OperatorView, target: Target) -> Iterator[Violation]:
    since = op.operator.level
    if target.feature_level < since:
        message = level_needed(op.operator.c_name, since, target)
        yield Violation("Type", message, upgrade_advice(since), basis())


@OPERATOR_LEVEL_RULES.add(
    "DML-OPERATOR-enumerator", says="Fields that are enumerators have one that the feature level has."
)
def enumerators_are_known(op: OperatorView, target: Target) -> Iterator[Violation]:
    for field in op.operator.fields:
        if not field.enumeration:
            continue
        value = op.fields[field.name]
        enumeration = enumerations()[field.enumeration]
        is_taken = field.name in op.table.unchecked or (field.name == op.table.by and value > INT_MAX)
        rests_on = basis(is_checked=not is_taken)
        if value >= len(enumeration.names):
            message = f"{int(value)} is no enumerator of {enumeration.prefix.removesuffix('_')}"
            yield Violation(field.name, message, basis=rests_on)
        elif (since := enumeration.levels[value]) > max(target.feature_level, op.operator.level):
            message = level_needed(enumeration.names[value], since, target)
            yield Violation(field.name, message, upgrade_advice(since), rests_on)


@OPERATOR_LEVEL_RULES.add("DML-OPERATOR-DataType", says="A tensor's data type is in the operator's row of the level.")
def data_types_are_in_the_row(op: OperatorView, target: Target) -> Iterator[Violation]:
    documented, measured = op.documented(target.feature_level), op.taken(target.feature_level)
    for name, view in op.views.items():
        tensor, data_type = name.partition("[")[0], view.desc.data_type
        if not isinstance(data_type, TensorDataType) or data_type == TensorDataType.UNKNOWN:
            continue  # a rule of buffers has it
        column, taken = documented.get(tensor), measured.get(tensor)
        is_documented = not column or not column.data_types or data_type in column.data_types
        is_taken = not taken or not taken.data_types or data_type in taken.data_types
        if column is None or (is_documented and is_taken):
            continue
        later = (level for level, row in op.table.rows.items() if data_type in row[tensor].data_types)
        since = next((level for level in later if level > target.feature_level), None)
        names = ", ".join(type_name(each) for each in sorted(column.data_types))
        expected = f"{'one of ' if len(column.data_types) > 1 else ''}{names} was expected"
        message = (
            level_needed(type_name(data_type), since, target)
            if since
            else f"{type_name(data_type)} was provided, but {expected}"
        )
        cast = _cast(data_type, column.data_types)
        suggestions = [*([f"cast it to {cast.name}"] if cast else []), *([upgrade_advice(since)] if since else [])]
        rests_on = basis(not is_documented, not is_taken)
        yield Violation(view.path("DataType"), message, ", or ".join(suggestions) or None, rests_on)


def _cast(data_type: TensorDataType, documented: Collection[TensorDataType]) -> TensorDataType | None:
    """Return the type to cast to: a float for a float, else an integer, if possible of its sign.

    It is the smallest that is as wide, else the largest.
    """
    same_kind = [each for each in documented if (each in FLOATS) == (data_type in FLOATS)]

    def suits(each: TensorDataType) -> tuple[bool, bool, int]:
        is_as_wide = each.bits >= data_type.bits
        return each.name[0] == data_type.name[0], is_as_wide, -each.bits if is_as_wide else each.bits  # I or U

    return max(same_kind, key=suits, default=None)


@OPERATOR_LEVEL_RULES.add(
    "DML-OPERATOR-DataType-adapter",
    basis=Basis.RUNTIME | Basis.INFERRED,
    says="The adapter has what the data types of the tensors need.",
)
def data_types_are_supported_by_adapter(op: OperatorView, target: Target) -> Iterator[Violation]:
    for view in op.views.values():
        yield from lacking_capability(view, target, basis(is_documented=False))


@OPERATOR_LEVEL_RULES.add(
    "DML-OPERATOR-DimensionCount", says="A tensor's dimension count is in the operator's row of the level."
)
def dimension_counts_are_in_the_row(op: OperatorView, target: Target) -> Iterator[Violation]:
    documented, measured = op.documented(target.feature_level), op.taken(target.feature_level)
    for name, view in op.views.items():
        tensor, count = name.partition("[")[0], view.desc.dimension_count
        column, taken = documented.get(tensor), measured.get(tensor)
        if column is None or taken is None or not 1 <= count <= DML_TENSOR_DIMENSION_COUNT_MAX1:
            continue
        is_documented, is_taken = count in column.dimension_counts, count in taken.dimension_counts
        if is_documented and is_taken:
            continue
        later = (level for level, row in op.table.rows.items() if count in row[tensor].dimension_counts)
        since = next((level for level in later if level > target.feature_level), None)
        yield count_outside_row(view, column.dimension_counts, since, target, basis(not is_documented, not is_taken))


@OPERATOR_LEVEL_RULES.add(
    "DML-OPERATOR-given",
    says="Tensors that others, or attributes, need are not null, and those that they rule out are.",
)
def needed_tensors_are_given(op: OperatorView, target: Target) -> Iterator[Violation]:
    given = {name for name in op.operator.tensors if op.fields[name]}
    for tensors, condition, below, *held in op.table.given:
        if given.isdisjoint(tensors) and not (below and target.feature_level >= below):
            if condition and not holds(op, condition):
                continue
            expected = " or ".join(tensors) if len(tensors) > 1 else "a tensor"
            where = f" where {_in_words(condition)}" if condition else ""
            before = f"{',' if where else ''} below {below.short}" if below else ""
            message = f"null was provided, but {expected} was expected{where}{before}"
            yield Violation(tensors[0], message, upgrade_advice(below) if below else None, basis(*held))
    for tensors, condition, _, *held in op.table.null:
        if not given.isdisjoint(tensors) and holds(op, condition):
            message = f"a tensor was provided, but null was expected where {_in_words(condition)}"
            yield from (Violation(name, message, basis=basis(*held)) for name in tensors if name in given)


def _in_words(condition: str) -> str:
    return condition.replace(" = ", " is ") if " = " in condition else f"{condition} is given"


@OPERATOR_LEVEL_RULES.add(
    "DML-OPERATOR-Flags", says="DirectML owns no input of an operator whose page says that it does not support that."
)
def inputs_may_be_owned(op: OperatorView, target: Target) -> Iterator[Violation]:
    for view in op.views.values() if op.table.never_owned else ():
        if not view.operand.is_output and int(view.desc.flags) & OWNED_BY_DML:
            message = f"{op.operator.c_name} does not support DML_TENSOR_FLAG_OWNED_BY_DML"
            yield Violation(view.path("Flags"), message, basis=basis())


OPERATOR_LEVEL_RULES.extend(ACTIVATION_RULES)


def _level_rules_of(op: OperatorView, target: Target) -> Sequence[Rule[OperatorView]]:
    if is_within_the_row(op, target):
        return ()
    return _rules_of(op.table, bool(op.activations), target.double_precision and target.typed_uav_loads)


def is_within_the_row(op: OperatorView, target: Target) -> bool:
    """Return True for a common operator, which breaks no rule of levels (a test of recorded operators shows it)."""
    columns = None if op.activations else _common_columns(op.operator, op.table, target)
    if columns is None:
        return False
    if (op.table.given or op.table.null) and any(needed_tensors_are_given.violations(op, target)):
        return False
    for name, levels in _enumerator_levels(op.operator):
        value = op.fields[name]
        if value >= len(levels) or levels[value] > target.feature_level:
            return False
    for field, column in columns.items():
        for view in op.of(field):
            desc = view.desc
            if desc.data_type not in column.data_types or desc.dimension_count not in column.dimension_counts:
                return False
    return True


@cache
def _enumerator_levels(operator: Operator) -> list[tuple[str, Sequence[FeatureLevel]]]:
    """Return the fields that are enumerators, with the levels of these."""
    return [(each.name, enumerations()[each.enumeration].levels) for each in operator.fields if each.enumeration]


@cache
def _common_columns(operator: Operator, table: OperatorTable, target: Target) -> Row | None:
    """Return the types and counts of tensors that both the page and the runtime take at a target.

    None if other rules of levels may have something to say.
    """
    level = target.feature_level
    if table.never_owned or level < operator.level:
        return None
    if not (target.double_precision and target.typed_uav_loads):
        return None
    documented, found = table.documented(level) or {}, dict[str, Column]()
    for tensor, column in documented.items():
        taken = (table.measured(level) or documented).get(tensor, column)
        types = [frozenset(each.data_types or TensorDataType) for each in (column, taken)]
        found[tensor] = Column(column.dimension_counts & taken.dimension_counts, types[0] & types[1])
    return found


@cache
def _rules_of(table: OperatorTable, has_activations: bool, has_capabilities: bool) -> list[Rule[OperatorView]]:
    """Return the rules of a level that an operator can break: those of activations only if it has any, and so on."""
    can_break = {
        needed_tensors_are_given: bool(table.given or table.null),
        inputs_may_be_owned: table.never_owned,
        data_types_are_supported_by_adapter: not has_capabilities,
        **dict.fromkeys(ACTIVATION_RULES, has_activations),
    }
    return [rule for rule in OPERATOR_LEVEL_RULES if can_break.get(rule, True)]


@cache
def _field_rules_of(operator: Operator, table: OperatorTable) -> list[Rule[OperatorView]]:
    """Return the rules of fields that an operator can break."""
    can_break = {
        arrays_have_their_entries: bool(operator.arrays),
        fields_fit: bool(table.fields),
        wide_tensors_have_no_scale: "ScaleBias" in operator.named,
        inputs_are_not_repeated: bool(table.not_repeated),
        sizes_fit_each_other: bool(table.shapes or table.sizes),
    }
    return [rule for rule in OPERATOR_FIELD_RULES if can_break.get(rule, True)]


def other_operator_findings(fields: OperatorFields, target: Target) -> tuple[Finding, ...]:
    """Return the findings of an operator other than Tile: each tensor's, then the operator's."""
    op = viewed(fields)
    found = [*_findings_of_tensors(op, target)]
    for rule, violation in (*_violations(_level_rules_of(op, target), op, target), *_violations_of_fields(op)):
        if violation.basis and not target.level.operators_are_measured:
            violation = violation._replace(basis=_INFERRED[violation.basis])
        found.append(rule.finding(violation, op.table.page if rule.url == pages.OPERATOR else rule.url))
    return tuple(found)


def _violations(
    rules: Iterable[Rule[OperatorView]], op: OperatorView, target: Target
) -> list[tuple[Rule[OperatorView], Violation]]:
    return [(rule, violation) for rule in rules for violation in rule.violations(op, target)]


def _findings_of_tensors(op: OperatorView, target: Target) -> Iterator[Finding]:
    level = target.feature_level
    for operand, findings in _unusual_operands(op, target) if op.unusual_operands else ():
        if operand.tensor is not None or op.table.optional_from.get(operand.name, level + 1) > level:
            yield from findings


def _unusual_operands(op: OperatorView, target: Target) -> list[tuple[Operand, list[Finding]]]:
    """Return the operands that may break a rule of tensors, with their findings, which depend on the build alone."""
    known, build = op.findings_of_tensors, target.level.runtime
    if build not in known:
        known[build] = [(operand, [*_of_tensor(operand, op, target)]) for operand in op.unusual_operands]
    return known[build]


def _of_tensor(operand: Operand, op: OperatorView, target: Target) -> Iterator[Finding]:
    yield from apply_rules(TENSOR_RULES, operand, target)
    if view := op.views.get(operand.name):
        yield from apply_rules(BUFFER_RULES, view, target)


@lru_cache(maxsize=8)
def _violations_of_fields(op: OperatorView) -> list[tuple[Rule[OperatorView], Violation]]:
    """Return the violations that are the same at all levels; a field's documented and measured ones are one."""
    found, documented = list[tuple[Rule[OperatorView], Violation]](), dict[tuple[str, str], int]()
    for rule, violation in _violations(_field_rules_of(op.operator, op.table), op, NEWEST):
        at = rule.id, violation.path
        if violation.basis == Basis.RUNTIME and at in documented:
            i = documented.pop(at)
            found[i] = rule, found[i][1]._replace(basis=BOTH)
            continue
        if violation.basis == Basis.DOCUMENTED:
            documented[at] = len(found)
        found.append((rule, violation))
    return found


_RUNTIME_CHANGES: Final = tuple(next(levels) for _, levels in groupby(FeatureLevel, lambda at: LEVELS[at].runtime))


def lowest_level_of_operator(fields: OperatorFields) -> FeatureLevel | None:
    """Return the lowest feature level from which on an operator passes; None if not at the newest.

    A higher level may refuse what a lower level takes.
    """
    op = viewed(fields)
    if _violations_of_fields(op):
        return None
    levels = sorted(_distinct_levels(op), reverse=True)
    return min(takewhile(lambda level: _passes(op, TARGETS[level]), levels), default=None)


def _passes(op: OperatorView, target: Target) -> bool:
    rules = _level_rules_of(op, target)
    if not (rules or op.unusual_operands):
        return True
    found = chain(_findings_of_tensors(op, target), apply_rules(rules, op, target))
    return all(finding.severity is Severity.NOTE for finding in found)


def _distinct_levels(op: OperatorView) -> set[FeatureLevel]:
    """Return the levels at which the answer to an operator can differ from the next older level's."""
    levels = {*_levels_of(op.operator, op.table)}
    if op.unusual_operands:
        levels.update(op.table.optional_from.values(), _RUNTIME_CHANGES)
    for name, levels_of_values in _enumerator_levels(op.operator):
        value = op.fields[name]
        levels.update(levels_of_values[value : value + 1])
    if op.activations:
        levels.update(op.table.fused_from.values())
        levels.update(known.level for _, each in op.activations if (known := operators().get(each.type)))
    return levels


@cache
def _levels_of(operator: Operator, table: OperatorTable) -> frozenset[FeatureLevel]:
    """Return the levels at which an operator, or its row, changes."""
    return frozenset(
        [operator.level, *table.rows, *table.runtime, *(given.below for given in table.given if given.below)]
    )
