"""Rules for operators other than Tile: the level that brings them, and what their table says of tensors and fields.

What no rule looks at is named by ``fields_without_rules``.
"""

from __future__ import annotations

import operator as comparisons
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import Any, Final

from dml_tile.descriptors.operator import OperatorFields, spelling
from dml_tile.descriptors.tile import DATA_TYPE, TensorDesc, type_name
from dml_tile.directml import pages
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, OWNED_BY_DML, FeatureLevel, TensorFlags
from dml_tile.directml.levels import LEVELS
from dml_tile.directml.operator_table import OperatorTable, Row, operator_table
from dml_tile.directml.operators import Field, enumerations, operator_name, operators
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis, Finding, Rules, Violation, apply_rules
from dml_tile.rules import equations
from dml_tile.rules.tensor import BUFFER_RULES, TENSOR_RULES, Operand, TensorView, ordinary_buffer, view_of
from dml_tile.rules.tile import target_level_text, upgrade_advice
from dml_tile.text import braced

FIELD_SENTENCE: Final = re.compile(
    r"(?P<field>\w+) (?P<relation><=|>=|<|>|=|within|in) "
    r"(?:(?P<of>DimensionCount|DataType) of (?P<tensor>\w+)(?: - (?P<less>[0-9]))?|(?P<words>[\w ]+))"
)
_SIZES: Final = re.compile(
    r"(?P<relation>same|1 or equal|1|rank 2)(?: (?P<where>except|along) (?P<axes>\w+))?(?: to (?P<of>\w+))?"
    r": (?P<tensors>.+)"
)
_RELATIONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": comparisons.lt,
    "<=": comparisons.le,
    ">": comparisons.gt,
    ">=": comparisons.ge,
    "=": comparisons.eq,
    "within": comparisons.lt,
}


def _equal(value: int, bound: int) -> bool:
    return value == bound


_WORDS: Final = {
    "<": "less than {} was expected",
    "<=": "at most {} was expected",
    ">": "more than {} was expected",
    ">=": "at least {} was expected",
    "=": "{} was expected",
    "within": "less than {} was expected",
}
_FUSED: Final = (
    *("CELU", "ELU", "GELU", "HARD_SIGMOID", "IDENTITY", "LEAKY_RELU", "LINEAR", "PARAMETRIC_SOFTPLUS", "RELU"),
    *("SCALED_ELU", "SCALED_TANH", "SHRINK", "SIGMOID", "SOFTPLUS", "SOFTSIGN", "TANH", "THRESHOLDED_RELU"),
)
"""Activations that can be fused, without their prefix."""
_FUSED_UNDOCUMENTED: Final = frozenset({"HARD_SWISH", "SWISH"})
_FREE_KINDS: Final = frozenset("fbxse")
"""Kinds of fields of which DirectML takes any value, but for those that a sentence names; and enumerators."""


class OperatorView:
    """An operator's fields beside what is documented and measured of them at a target."""

    def __init__(self, fields: OperatorFields, target: Target) -> None:
        self.fields, self.operator, self.target = fields, fields.operator, target
        self.table = table_of(fields)
        self.operands = [*operands_of(fields, target.feature_level)]
        self.views = {operand.name: view for operand in self.operands if (view := view_of(operand))}

    def of(self, tensor: str) -> list[TensorView]:
        """Return the tensors that are described of a field: one, those of an array, or none."""
        if tensor in self.views:
            return [self.views[tensor]]
        return [view for name, view in self.views.items() if name.startswith(f"{tensor}[")]

    def sizes_of(self, tensor: str) -> list[Sequence[int]]:
        """Return the Sizes of the tensors that are described of a field."""
        return [view.sizes for view in self.of(tensor) if view.sizes]

    @cached_property
    def documented(self) -> Row:
        """The row of the target's level."""
        return self.table.documented(self.target.feature_level) or {}

    @cached_property
    def measured(self) -> Row:
        """What the runtime takes."""
        return self.table.measured(self.target.feature_level) or self.documented

    def basis(self, field: str = "", *, documented: bool = True, refused: bool = True) -> Basis:
        """Return the basis of a finding that is documented, and on which the runtime refuses."""
        basis = Basis.DOCUMENTED if documented else Basis(0)
        if refused and field not in self.table.unchecked:
            basis |= Basis.RUNTIME if self.target.level.operators_are_measured else Basis.INFERRED
        return basis


def table_of(fields: OperatorFields) -> OperatorTable:
    """Return the table of an operator, which one of its fields may choose; an empty one for an unknown choice."""
    operator = fields.operator
    tensors = [field.name for field in operator.fields if field.is_tensor]
    table = operator_table(operator.name, tensors)
    if not table.by:
        return table
    (chooser,) = (field for field in operator.fields if field.name == table.by)
    names = spelling(chooser).names
    value = fields[table.by]
    return operator_table(operator.name, tensors, names[value]) if value < len(names) else OperatorTable()


def operands_of(fields: OperatorFields, level: FeatureLevel) -> Iterator[Operand]:
    """Yield the tensors of an operator, without those that may be null and are."""
    table = table_of(fields)
    for field in fields.operator.fields:
        value = fields[field.name]
        is_optional = field.is_optional or table.optional_from.get(field.name, level + 1) <= level
        if field.kind == "t" and not (value is None and is_optional):
            yield Operand(field.name, value, table.is_output(field.name))
        elif field.kind == "T" and value is not None:
            for i, tensor in enumerate(value[: fields[field.counted_by]]):
                yield Operand(f"{field.name}[{i}]", tensor, table.is_output(field.name))


def tensors_of(fields: OperatorFields) -> tuple[list[TensorDesc | None], list[TensorDesc | None]]:
    """Return the inputs and the outputs of an operator, by which edges of graphs count them: null ones count too."""
    table = table_of(fields)
    tensors = list[TensorDesc | None](), list[TensorDesc | None]()
    for field in fields.operator.fields:
        if field.is_tensor:
            value = fields[field.name]
            of_field = [value] if field.kind == "t" else (value or ())[: fields[field.counted_by]]
            tensors[table.is_output(field.name)].extend(of_field)
    return tensors


OTHER_OPERATOR_RULES: Final = Rules[OperatorView](
    url=pages.OPERATOR, basis=Basis.DOCUMENTED | Basis.RUNTIME | Basis.INFERRED
)


@OTHER_OPERATOR_RULES.add("DML-OPERATOR-level", url=pages.LEVELS, says="The feature level has the operator.")
def operator_is_introduced(op: OperatorView, target: Target) -> Iterator[Violation]:
    since = op.operator.level
    if target.feature_level < since:
        message = f"{op.operator.c_name} needs {since.name}; {target_level_text(target)}"
        yield Violation("Type", message, upgrade_advice(since), op.basis())


@OTHER_OPERATOR_RULES.add(
    "DML-OPERATOR-enumerator", says="Fields that are enumerators have one that the feature level has."
)
def enumerators_are_known(op: OperatorView, target: Target) -> Iterator[Violation]:
    for field in op.operator.fields:
        if field.kind != "e":
            continue
        value = op.fields[field.name]
        enumeration = enumerations()[field.enumeration]
        if value >= len(enumeration.names):
            message = f"{int(value)} is no enumerator of {enumeration.prefix.removesuffix('_')}"
            yield Violation(field.name, message, basis=op.basis(field.name))
        elif (since := enumeration.levels[value]) > max(target.feature_level, op.operator.level):
            message = f"{enumeration.names[value]} needs {since.name}; {target_level_text(target)}"
            yield Violation(field.name, message, upgrade_advice(since), op.basis(field.name))


@OTHER_OPERATOR_RULES.add("DML-OPERATOR-DataType", says="A tensor's data type is in the operator's row of the level.")
def data_types_are_in_the_row(op: OperatorView, target: Target) -> Iterator[Violation]:
    for name, view in op.views.items():
        tensor, data_type = name.partition("[")[0], view.desc.data_type
        if not isinstance(data_type, TensorDataType) or data_type == TensorDataType.UNKNOWN:
            continue  # a rule of buffers has it
        column, taken = op.documented.get(tensor), op.measured.get(tensor)
        is_documented = not column or not column.data_types or data_type in column.data_types
        is_taken = not taken or not taken.data_types or data_type in taken.data_types
        if column is None or (is_documented and is_taken):
            continue
        later = (level for level, row in op.table.rows.items() if data_type in row[tensor].data_types)
        since = next((level for level in later if level > target.feature_level), None)
        expected = f"one of {', '.join(type_name(each) for each in sorted(column.data_types))} was expected"
        message = (
            f"{type_name(data_type)} needs {since.name}; {target_level_text(target)}"
            if since
            else (f"{type_name(data_type)} was provided, but {expected}")
        )
        cast = _cast(data_type, column.data_types)
        suggestions = [*([f"cast it to {cast.name}"] if cast else []), *([upgrade_advice(since)] if since else [])]
        basis = op.basis(documented=not is_documented, refused=not is_taken)
        yield Violation(view.path("DataType"), message, ", or ".join(suggestions) or None, basis)


def _cast(data_type: TensorDataType, taken: Collection[TensorDataType]) -> TensorDataType | None:
    """Return the type to cast to: the largest that is taken of the same sort, of the same sign if there is one."""

    def sort(each: TensorDataType) -> bool:
        return each.kind.startswith("float")

    alike = [each for each in taken if sort(each) == sort(data_type)]
    return max(alike, key=lambda each: (each.name[0] == data_type.name[0], each.bits), default=None)


@OTHER_OPERATOR_RULES.add(
    "DML-OPERATOR-DataType-adapter",
    basis=Basis.RUNTIME | Basis.INFERRED,
    says="The adapter has what the data types of the tensors need.",
)
def data_types_are_supported_by_adapter(op: OperatorView, target: Target) -> Iterator[Violation]:
    for view in op.views.values():
        if needed := target.missing_capability(view.desc.data_type):
            yield Violation(
                view.path("DataType"),
                f"{type_name(view.desc.data_type)} needs an adapter with {needed}, which the target's adapter lacks",
                basis=op.basis(documented=False),
            )


@OTHER_OPERATOR_RULES.add(
    "DML-OPERATOR-DimensionCount", says="A tensor's dimension count is in the operator's row of the level."
)
def dimension_counts_are_in_the_row(op: OperatorView, target: Target) -> Iterator[Violation]:
    for name, view in op.views.items():
        tensor, count = name.partition("[")[0], view.desc.dimension_count
        column, taken = op.documented.get(tensor), op.measured.get(tensor)
        if column is None or taken is None or not 1 <= count <= DML_TENSOR_DIMENSION_COUNT_MAX1:
            continue
        basis = op.basis(documented=count not in column.dimension_counts, refused=count not in taken.dimension_counts)
        if not basis:
            continue
        later = (level for level, row in op.table.rows.items() if count in row[tensor].dimension_counts)
        since = next((level for level in later if level > target.feature_level), None)
        low, high = min(column.dimension_counts), max(column.dimension_counts)
        expected = f"{low}" if low == high else f"{low} to {high}"
        message = f"a dimension count of {count} was provided, but {expected} was expected"
        if since:
            has_level = target_level_text(target)
            message = f"a dimension count of {count} needs {since.name}; {has_level}, where it takes {expected}"
        leading = f"give the tensor leading sizes of 1, up to {low} dimensions" if count < low else None
        yield Violation(
            view.path("DimensionCount"), message, leading or (upgrade_advice(since) if since else None), basis
        )


@OTHER_OPERATOR_RULES.add(
    "DML-OPERATOR-same", says="Tensors that share a field, by the operator's page, have it equal."
)
def tensors_agree(op: OperatorView, target: Target) -> Iterator[Violation]:
    for field, tensors, is_documented in op.table.same:
        views = [view for tensor in tensors for view in op.of(tensor)]
        for view in views[1:]:
            value, first = _shared_value(view, field), _shared_value(views[0], field)
            if value is None or first is None or value == first:
                continue
            message = f"{_shown(value)} was provided, but {views[0].operand.name} has {_shown(first)}"
            basis = op.basis(field if is_documented else "", documented=is_documented)
            yield Violation(view.path(field), message, basis=basis)


def _shared_value(view: TensorView, field: str) -> Any:
    match field:
        case "DataType":
            return view.desc.data_type
        case "DimensionCount":
            return view.desc.dimension_count
    return view.sizes


def _shown(value: Any) -> str:
    if isinstance(value, TensorDataType):
        return str(DATA_TYPE.write(value))
    return braced(value) if isinstance(value, tuple) else str(value)


@OTHER_OPERATOR_RULES.add(
    "DML-OPERATOR-array", says="An array has as many entries as its count says, and is null only where it has none."
)
def arrays_have_their_entries(op: OperatorView, target: Target) -> Iterator[Violation]:
    for field in op.operator.fields:
        if field.is_array:
            value, count = op.fields[field.name], op.fields[field.counted_by]
            if value is None and count and not field.is_optional:
                message = f"null was provided, but {field.counted_by} promises {count} entries"
                yield Violation(field.name, message, basis=op.basis())
            elif value is not None and len(value) < count:
                message = f"an array of {len(value)} was provided, but {field.counted_by} promises {count}"
                yield Violation(field.name, message, basis=op.basis())


@OTHER_OPERATOR_RULES.add(
    "DML-OPERATOR-Flags", says="DirectML owns no input of an operator whose page says that it does not support that."
)
def inputs_may_be_owned(op: OperatorView, target: Target) -> Iterator[Violation]:
    for view in op.views.values():
        owned = view.desc.flags & TensorFlags.OWNED_BY_DML
        if op.table.never_owned and owned and not view.operand.is_output:
            message = f"{op.operator.c_name} does not support DML_TENSOR_FLAG_OWNED_BY_DML"
            yield Violation(view.path("Flags"), message, basis=op.basis())


@OTHER_OPERATOR_RULES.add(
    "DML-OPERATOR-activation", url=pages.FUSED_ACTIVATIONS, says="A fused activation is one that can be fused."
)
def activations_can_be_fused(op: OperatorView, target: Target) -> Iterator[Violation]:
    for field in op.operator.fields:
        value = op.fields[field.name] if field.kind in "oO" else None
        for i, each in enumerate(value if isinstance(value, tuple) else [value] if value else []):
            activation = operators().get(each.type)
            name = activation.name.removeprefix("ACTIVATION_") if activation else ""
            known = activation is not None and activation.level <= target.feature_level
            since = op.table.fused_from.get(name)
            is_documented = (known and name in _FUSED) or (since is not None and since <= target.feature_level)
            is_taken = is_documented or (known and name in _FUSED_UNDOCUMENTED)
            if basis := op.basis(documented=not is_documented, refused=not is_taken):
                path = f"{field.name}[{i}]" if field.kind == "O" else field.name
                message = f"{operator_name(int(each.type))} cannot be fused into {op.operator.c_name}"
                yield Violation(f"{path}.Type", message, basis=basis)


@OTHER_OPERATOR_RULES.add("DML-OPERATOR-field", says="Fields fit the tensors, as their descriptions say.")
def fields_fit(op: OperatorView, target: Target) -> Iterator[Violation]:
    for sentence in (*op.table.fields, *op.table.runtime_fields):
        found = FIELD_SENTENCE.fullmatch(sentence)
        assert found, sentence
        name, relation = found["field"], found["relation"]
        is_documented = sentence in op.table.fields
        basis = op.basis(name if is_documented else "", documented=is_documented)
        expected = _expected(op, found)
        value = op.fields[name]
        if expected is None or value is None:
            continue
        values = [(name, value)]
        if isinstance(value, tuple):
            counted = value[: op.fields[_field(op, name).counted_by]]
            values = [(f"{name}[{i}]", entry) for i, entry in enumerate(counted)]
        for path, each in values:
            (allowed, shown), compare = expected, _RELATIONS.get(relation, _equal)
            if any(compare(each, bound) for bound in allowed):
                continue
            words = _WORDS.get(relation, "one of {} was expected").format(shown)
            given = enumerations()[_field(op, name).enumeration].names[each] if relation == "in" else _shown(each)
            yield Violation(path, f"{given} was provided, but {words}", basis=basis)


def _field(op: OperatorView, name: str) -> Field:
    return next(field for field in op.operator.fields if field.name == name)


def _expected(op: OperatorView, found: re.Match[str]) -> tuple[list[int], str] | None:
    """Return the values that a sentence compares with, and their text; None where a tensor is missing."""
    if found["words"]:
        words = [word for word in found["words"].split() if word != "or"]
        if found["relation"] != "in":
            return [int(word) for word in words], found["words"]
        field = _field(op, found["field"])
        names = enumerations()[field.enumeration].names
        value = op.fields[field.name]
        known = [names.index(word) for word in words]
        return (known if value < len(names) else [value]), ", ".join(words)  # an unknown one has a rule of its own
    views = op.of(found["tensor"])
    if not views:
        return None
    bound = getattr(views[0].desc, "data_type" if found["of"] == "DataType" else "dimension_count")
    bound -= int(found["less"] or 0)
    text = _shown(TensorDataType(bound)) if found["of"] == "DataType" and bound in {*TensorDataType} else str(bound)
    less = f" - {found['less']}" if found["less"] else ""
    return [bound], f"{found['tensor']}.{found['of']}{less} = {text}"


@OTHER_OPERATOR_RULES.add(
    "DML-OPERATOR-ScaleBias",
    basis=Basis.RUNTIME | Basis.INFERRED,
    says="ScaleBias is null where the tensors have a data type of 64 bits.",
)
def wide_tensors_have_no_scale(op: OperatorView, target: Target) -> Iterator[Violation]:
    view = next(iter(op.views.values()), None)
    if view is None or op.fields.get("ScaleBias") is None:
        return
    data_type = view.desc.data_type
    if isinstance(data_type, TensorDataType) and data_type.bits == 64:
        message = f"a scale and a bias were provided, but null was expected for tensors of {data_type.name}"
        yield Violation("ScaleBias", message, basis=op.basis(documented=False))


@OTHER_OPERATOR_RULES.add(
    "DML-OPERATOR-Sizes", says="Tensors have the Sizes that the operator's page, or the runtime, asks for."
)
def sizes_fit_each_other(op: OperatorView, target: Target) -> Iterator[Violation]:
    for sentence in (*op.table.sizes, *op.table.runtime_sizes):
        found = _SIZES.fullmatch(sentence)
        if found is None:
            basis = op.basis(documented=sentence in op.table.sizes)
            for path, message in equations.violations(sentence, op.fields, op.sizes_of):
                yield Violation(path, message, basis=basis)
            continue
        views = [view for tensor in found["tensors"].split() for view in op.of(tensor)]
        reference = op.of(found["of"]) if found["of"] else views[:1]
        first = reference[0].sizes if reference else None
        axes = _axes(op, found["axes"]) if found["axes"] else ()
        for view in views:
            for i, size in enumerate(view.sizes or ()):
                if (found["axes"] and (i in axes) == (found["where"] == "except")) or (
                    first and len(first) != len(view.sizes or ())
                ):
                    continue
                if found["relation"] == "rank 2" and i >= len(view.sizes or ()) - 2:
                    continue
                allowed = {1} if found["relation"] != "same" else set()
                if found["relation"] in ("same", "1 or equal"):
                    if first is None:
                        break
                    allowed.add(first[i])
                if size not in allowed:
                    words = " or ".join(map(str, sorted(allowed)))
                    of = f", as in {reference[0].operand.name}" if found["relation"] in ("same", "1 or equal") else ""
                    message = f"{size} was provided, but {words} was expected{of}"
                    yield Violation(view.path(f"Sizes[{i}]"), message, basis=op.basis(view.operand.name))


def _axes(op: OperatorView, name: str) -> tuple[int, ...]:
    value = op.fields[name]
    return value if isinstance(value, tuple) else (value,) if value is not None else ()


def other_operator_findings(fields: OperatorFields, target: Target) -> Iterator[Finding]:
    """Yield the findings of an operator other than Tile: each tensor's, then the operator's."""
    op = OperatorView(fields, target)
    for operand in op.operands:
        if ordinary_buffer(operand.tensor, int(TensorFlags.NONE) if operand.is_output else OWNED_BY_DML):
            continue  # no rule of tensors is broken
        yield from apply_rules(TENSOR_RULES, operand, target)
        if view := op.views.get(operand.name):
            yield from apply_rules(BUFFER_RULES, view, target)
    url = op.table.page
    for finding in apply_rules(OTHER_OPERATOR_RULES, op, target):
        yield replace(finding, url=url) if finding.url == pages.OPERATOR else finding


_NAMED_LEVELS: Final = frozenset("oOe")
"""Kinds of fields whose values have levels of their own: fused operators and enumerators."""
_RUNTIME_CHANGES: Final = tuple(next(levels) for _, levels in groupby(FeatureLevel, lambda at: LEVELS[at].runtime))


def distinct_levels(fields: OperatorFields) -> Collection[FeatureLevel]:
    """Return the levels at which the answer to an operator can differ from the next older level's."""
    if any(field.kind in _NAMED_LEVELS for field in fields.operator.fields):
        return tuple(FeatureLevel)
    table = table_of(fields)
    return {fields.operator.level, *table.rows, *table.runtime, *table.optional_from.values(), *_RUNTIME_CHANGES}


def fields_without_rules(fields: OperatorFields) -> tuple[str, ...]:
    """Return the fields that no rule looks at whole: what DirectML wants of them may be more than the rules know."""
    table, operator = table_of(fields), fields.operator
    sentences = (*table.fields, *table.runtime_fields)
    ruled = {found["field"] for sentence in sentences if (found := FIELD_SENTENCE.fullmatch(sentence))}
    counts = {field.counted_by for field in operator.fields}
    unknown = ["Sizes"] if not _sizes_are_ruled(fields, table) else []
    for field in operator.fields:
        is_free = field.is_tensor or field.kind in _FREE_KINDS or field.name in counts | ruled
        if field.name in table.without_rule or (not is_free and fields[field.name] not in (None, ())):
            unknown.append(field.name)
    return tuple(dict.fromkeys(unknown))


def _sizes_are_ruled(fields: OperatorFields, table: OperatorTable) -> bool:
    """Return True if every tensor but one has Sizes that follow from another's."""
    given = [field.name for field in fields.operator.fields if field.is_tensor and fields[field.name]]
    ruled = {given[0]} if given else set()
    groups = [{*tensors} for field, tensors, _ in table.same if field == "Sizes"]
    for sentence in table.sizes:
        found = _SIZES.fullmatch(sentence)
        if found and not found["axes"]:
            groups.append({*found["tensors"].split(), *([found["of"]] if found["of"] else given[:1])})
    for _ in given:
        ruled |= {name for group in groups if group & ruled for name in group}
    return ruled >= {*given} and not any(field.kind == "T" for field in fields.operator.fields)
