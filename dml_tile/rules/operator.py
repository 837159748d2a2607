"""Rules for operators other than Tile that depend on the level: which operators it has, and their rows of types."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from itertools import chain, groupby
from typing import Any, Final

from dml_tile.descriptors.operator import OperatorFields
from dml_tile.descriptors.tile import type_name
from dml_tile.directml import pages
from dml_tile.directml.crashes import ends_the_process
from dml_tile.directml.data_types import FLOATS, TensorDataType
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, HRESULT, OWNED_BY_DML, FeatureLevel
from dml_tile.directml.levels import LEVELS
from dml_tile.directml.operator_table import OperatorTable
from dml_tile.directml.operators import OperatorRow, enumerations, operators
from dml_tile.directml.targets import Target
from dml_tile.findings import BOTH, Basis, Edit, Finding, Rule, Rules, Severity, Try, Violation, apply_rules, set_to
from dml_tile.rules.activations import ACTIVATION_RULES
from dml_tile.rules.dimensions import recounted
from dml_tile.rules.operator_fields import FIELD_LEVEL_RULES, OPERATOR_FIELD_RULES
from dml_tile.rules.operator_view import INT_MAX, OperatorView, viewed
from dml_tile.rules.shapes import holds, misfits_below
from dml_tile.rules.tensor import TensorView, findings_of_tensor, without_flags
from dml_tile.rules.tile import count_outside_row, lacking_capability, level_needed, upgrade_advice
from dml_tile.rules.tile_findings import NEWEST, lowest_passing
from dml_tile.text import counts_text

OPERATOR_LEVEL_RULES: Final = Rules[OperatorView](url=pages.OPERATOR, basis=BOTH | Basis.INFERRED)


@OPERATOR_LEVEL_RULES.add("DML-OPERATOR-level", url=pages.LEVELS)
def operator_is_introduced(op: OperatorView, target: Target) -> Iterator[Violation]:
    """The feature level has the operator."""
    since = op.operator.level
    if target.feature_level < since:
        message, advice = level_needed(op.operator.c_name, since, target), upgrade_advice(since)
        if op.table.directmlx_from and target.feature_level >= op.table.directmlx_from:
            advice += f", or, if DirectMLX made it, build with DML_TARGET_VERSION={int(target.feature_level):#x}"
        yield Violation("Type", message, advice, BOTH)


@OPERATOR_LEVEL_RULES.add("DML-OPERATOR-enumerator")
def enumerators_are_known(op: OperatorView, target: Target) -> Iterator[Violation]:
    """Fields that are enumerators have one that the feature level has."""
    for field in op.operator.enumerators:
        value = op.fields[field.name]
        enumeration = enumerations()[field.enumeration]
        is_taken = field.name in op.table.unchecked or (field.name == op.table.by and value > INT_MAX)
        basis = Basis.DOCUMENTED if is_taken else BOTH
        if value >= len(enumeration.names):
            message = f"{int(value)} is no enumerator of {enumeration.prefix.removesuffix('_')}"
            yield Violation(field.name, message, basis=basis)
        elif (since := enumeration.levels[value]) > max(target.feature_level, op.operator.level):
            message = level_needed(enumeration.names[value], since, target)
            yield Violation(field.name, message, upgrade_advice(since), basis)


def _outside_the_row(
    op: OperatorView, target: Target, field: str, column: str
) -> Iterator[tuple[TensorView, Collection[Any], FeatureLevel | None, Basis]]:
    """Yield each tensor whose field has a value that its column of the level lacks, if the column has any.

    Behind it are the column's values, the next level whose row has the value, and the basis.
    """
    documented, taken = op.table.at(target.feature_level)
    for tensor, views in op.by_field.items() if documented else ():
        expected, accepted = getattr(documented[tensor], column), getattr(taken[tensor], column)
        for view in views:
            value = getattr(view.desc, field)
            is_documented, is_taken = (not expected or value in expected), (not accepted or value in accepted)
            if not (is_documented and is_taken):
                later = (level for level, row in op.table.rows.items() if value in getattr(row[tensor], column))
                since = next((level for level in later if level > target.feature_level), None)
                basis = Basis.RUNTIME if is_documented else Basis.DOCUMENTED if is_taken else BOTH
                yield view, expected & accepted or expected, since if not is_documented else None, basis


@OPERATOR_LEVEL_RULES.add("DML-OPERATOR-DataType")
def data_types_are_in_the_row(op: OperatorView, target: Target) -> Iterator[Violation]:
    """A tensor's data type is in the operator's row of the level."""
    for view, expected, since, basis in _outside_the_row(op, target, "data_type", "data_types"):
        data_type = view.desc.data_type
        if not isinstance(data_type, TensorDataType) or data_type == TensorDataType.UNKNOWN:
            continue  # a rule of buffers has it
        names = ", ".join(type_name(each) for each in sorted(expected))
        message = (
            f"{type_name(data_type)} was provided, but {'one of ' if len(expected) > 1 else ''}{names} was expected"
        )
        advice, path = None, view.path("DataType")
        cast = _cast(data_type, expected)
        edit = Try(f"cast it to {cast.name}", edits=(Edit(path, cast),)) if cast else None
        if since:
            message = level_needed(type_name(data_type), since, target)
            advice = upgrade_advice(since)
        yield Violation(path, message, advice, basis, edit=edit)


def _cast(data_type: TensorDataType, documented: Iterable[TensorDataType]) -> TensorDataType | None:
    """Return the type to cast to: a float for a float, else an integer, if possible of its sign.

    It is the smallest that is as wide, else the largest.
    """
    same_kind = [each for each in documented if (each in FLOATS) == (data_type in FLOATS)]

    def suits(each: TensorDataType) -> tuple[bool, bool, int]:
        is_as_wide = each.bits >= data_type.bits
        return each.name[0] == data_type.name[0], is_as_wide, -each.bits if is_as_wide else each.bits  # I or U

    return max(same_kind, key=suits, default=None)


@OPERATOR_LEVEL_RULES.add("DML-OPERATOR-DataType-adapter", basis=Basis.RUNTIME | Basis.INFERRED)
def data_types_are_supported_by_adapter(op: OperatorView, target: Target) -> Iterator[Violation]:
    """The adapter has what the data types of the tensors need."""
    has_all = target.double_precision and target.typed_uav_loads
    for view in op.views.values() if not has_all else ():
        yield from lacking_capability(view, target, Basis.RUNTIME)


@OPERATOR_LEVEL_RULES.add("DML-OPERATOR-DimensionCount")
def dimension_counts_are_in_the_row(op: OperatorView, target: Target) -> Iterator[Violation]:
    """A tensor's dimension count is in the operator's row of the level."""
    for view, expected, since, basis in _outside_the_row(op, target, "dimension_count", "dimension_counts"):
        if 1 <= view.desc.dimension_count <= DML_TENSOR_DIMENSION_COUNT_MAX1:  # else a rule of buffers has it
            nearest = min(expected, key=lambda count: abs(count - view.desc.dimension_count))
            edit = recounted(op, view, nearest)
            yield count_outside_row(view, expected, since, target, basis, edit=edit)


@OPERATOR_LEVEL_RULES.add("DML-OPERATOR-given")
def needed_tensors_are_given(op: OperatorView, target: Target) -> Iterator[Violation]:
    """Tensors that others, or attributes, need are not null, and those that they rule out are."""
    if not (op.table.given or op.table.null):
        return
    given = {name for name in op.operator.tensors if op.fields[name]}
    for tensors, condition, below, basis in op.table.given:
        if given.isdisjoint(tensors) and not (below and target.feature_level >= below):
            if condition and not holds(op, condition):
                continue
            expected = " or ".join(tensors) if len(tensors) > 1 else "a tensor"
            where = f" where {_in_words(condition)}" if condition else ""
            before = f"{',' if where else ''} below {below.short}" if below else ""
            message = f"null was provided, but {expected} was expected{where}{before}"
            yield Violation(tensors[0], message, upgrade_advice(below) if below else None, basis)
    for tensors, condition, _, basis in op.table.null:
        if not given.isdisjoint(tensors) and holds(op, condition):
            message = f"a tensor was provided, but null was expected where {_in_words(condition)}"
            named = (name for name in tensors if name in given)
            yield from (Violation(name, message, basis=basis, edit=set_to(None, name)) for name in named)


def _in_words(condition: str) -> str:
    return condition.replace(" = ", " is ") if " = " in condition else f"{condition} is given"


@OPERATOR_LEVEL_RULES.add("DML-OPERATOR-Flags")
def inputs_may_be_owned(op: OperatorView, target: Target) -> Iterator[Violation]:
    """DirectML owns no input of an operator whose page says that it does not support that."""
    for view in op.views.values() if op.table.never_owned else ():
        if not view.operand.is_output and int(view.desc.flags) & OWNED_BY_DML:
            message = f"{op.operator.c_name} does not support DML_TENSOR_FLAG_OWNED_BY_DML"
            yield Violation(view.path("Flags"), message, basis=BOTH, edit=without_flags(view))


OPERATOR_LEVEL_RULES.extend(FIELD_LEVEL_RULES)


@OPERATOR_LEVEL_RULES.add("DML-OPERATOR-sources", severity=Severity.NOTE)
def sources_agree(op: OperatorView, target: Target) -> Iterator[Violation]:
    """The operator's page and DirectML's feature level history say the same of the feature level. Where they do not,
    DirectML's measured answer counts, else the one that takes more.
    """
    page, history = "the operator's page", "DirectML's feature level history"
    measured = "taken, as measured" if target.level.operators_are_measured else ""
    taken, (page_row, history_row) = op.table.at(target.feature_level), op.table.differing_at(target.feature_level)
    for row, loser, winner in ((page_row, page, history), (history_row, history, page)):
        for name, view in ((each, view) for each in row for view in op.of(each)):
            (counts, types), count, data_type = row[name], view.desc.dimension_count, view.desc.data_type
            if count not in counts and all(count in each[name].dimension_counts for each in taken):
                others = f"inferred to be taken, as by the other operators that {winner} raises to 8"
                how = measured or (f"taken by {winner}" if count > max(counts) else others)
                message = f"a dimension count of {count} is {how}; {loser} has {counts_text(counts)}"
                yield Violation(view.path("DimensionCount"), message, basis=BOTH)
            if data_type not in types and all(data_type in each[name].data_types for each in taken):
                names = ", ".join(type_name(each) for each in sorted(types))
                message = f"{type_name(data_type)} is {measured or f'taken by {winner}'}; {loser} has {names}"
                yield Violation(view.path("DataType"), message, basis=BOTH)
    for below, violation in misfits_below(op):
        if target.feature_level >= below:
            message = f"{violation.message} by {page}; {history} takes it from {below.short} on"
            yield violation._replace(message=message, edit=None)


OPERATOR_LEVEL_RULES.extend(ACTIVATION_RULES)


def findings(fields: OperatorFields, target: Target) -> tuple[Finding, ...]:
    """Return the findings of an operator other than Tile: each tensor's, then the operator's."""
    op = viewed(fields)
    found = [*_findings_of_tensors(op, target)]
    for rule, violation in (*_violations(OPERATOR_LEVEL_RULES, op, target), *_violations_of_fields(op)):
        if violation.basis and violation.basis & Basis.RUNTIME and not target.level.operators_are_measured:
            violation = violation._replace(basis=violation.basis & ~Basis.RUNTIME | Basis.INFERRED)
        found.append(rule.finding(violation, op.table.page if rule.url == pages.OPERATOR else rule.url))
    if any(each.hresult == HRESULT.E_UNEXPECTED for each in found):
        found.sort(key=_turn_in_a_convolution)
    return tuple([_or_crash(each, op, target) if each.rule in _RULES_OF_POINTERS else each for each in found])


def _turn_in_a_convolution(finding: Finding) -> int:
    """Return the turn in which DirectML looks: at Sizes, GroupCount and an activation's fields last (measured)."""
    if finding.hresult == HRESULT.E_UNEXPECTED:
        return 1
    is_last = finding.path == "GroupCount" or finding.rule.startswith(("DML-OPERATOR-Sizes", "DML-OPERATOR-activation"))
    return 2 if is_last else 0


_RULES_OF_POINTERS: Final = frozenset(
    {"DML-TENSOR-null", "DML-TENSOR-Desc-null", "DML-BUFFER-Sizes-null", "DML-OPERATOR-array"}
)


def _or_crash(finding: Finding, op: OperatorView, target: Target) -> Finding:
    """Return the finding, as a crash where DirectML ends the process instead of refusing."""
    field = re.sub(r"\[\d+\]", "", finding.path)
    kind = "null" if op.fields.get(field) is None else "short"
    given = [name for name in op.operator.tensors if op.fields[name]]
    if not ends_the_process(op.operator.name, field, kind, target.feature_level, given):
        return finding
    basis = finding.basis if target.level.operators_are_measured else Basis.DOCUMENTED | Basis.INFERRED
    message = f"{finding.message}; DirectML would crash"
    return replace(finding, message=message, basis=basis, hresult=None, crash=True)


def _violations(
    rules: Iterable[Rule[OperatorView]], op: OperatorView, target: Target
) -> list[tuple[Rule[OperatorView], Violation]]:
    return [(rule, violation) for rule in rules for violation in rule.violations(op, target)]


def _findings_of_tensors(op: OperatorView, target: Target) -> Iterator[Finding]:
    """Yield the findings of the tensors."""
    for operand in op.unusual_operands:
        yield from findings_of_tensor(operand, op.views.get(operand.name), target)


@lru_cache(maxsize=8)
def _violations_of_fields(op: OperatorView) -> list[tuple[Rule[OperatorView], Violation]]:
    """Return the violations that are the same at all levels; a field's documented and measured ones are one."""
    found, documented = list[tuple[Rule[OperatorView], Violation]](), dict[tuple[str, str], int]()
    for rule, violation in _violations(OPERATOR_FIELD_RULES, op, NEWEST):
        at = rule.id, violation.path
        if violation.basis == Basis.RUNTIME and at in documented:
            i = documented.pop(at)
            found[i] = rule, found[i][1]._replace(basis=BOTH)
            continue
        if violation.basis == Basis.DOCUMENTED:
            documented[at] = len(found)
        found.append((rule, violation))
    return found


_RUNTIME_CHANGES: Final = {next(levels) for _, levels in groupby(FeatureLevel, lambda at: LEVELS[at].runtime)}


def lowest_level(fields: OperatorFields) -> FeatureLevel | None:
    """Return the lowest feature level from which on an operator passes; None if not at the newest.

    A higher level may refuse what a lower level takes.
    """
    op = viewed(fields)
    if any(rule.severity is not Severity.NOTE for rule, _ in _violations_of_fields(op)):
        return None

    def of_level(target: Target) -> Iterator[Finding]:
        return chain(_findings_of_tensors(op, target), apply_rules(OPERATOR_LEVEL_RULES, op, target))

    levels = _levels_of(op.operator, op.table)
    return lowest_passing(of_level, levels | _RUNTIME_CHANGES if op.unusual_operands else levels)


def not_looked_at(fields: OperatorFields) -> tuple[str, ...]:
    """Return the fields that hold a value, and of which DirectML may want more than the rules know."""
    op = viewed(fields)
    return tuple([name for name in op.table.without_rule if name == "Sizes" or op.fields[name] not in (None, ())])


@cache
def _levels_of(operator: OperatorRow, table: OperatorTable) -> frozenset[FeatureLevel]:
    """Return the levels at which the answer to an operator can differ from the next older level's."""
    levels = {operator.level, *table.rows, *table.runtime}
    levels.update(given.below for given in table.given if given.below)
    levels.update(sentence.below for sentence in table.fields if sentence.below)
    levels.update(*(enumerations()[field.enumeration].levels for field in operator.enumerators))
    if operator.fused:
        levels.update(table.fused_from.values(), (each.level for each in operators().values()))
    return frozenset(levels)
