"""Documented and measured facts of each operator: ``operators.toml``, whose head explains its keys.

Sentences of ``fields`` and ``sizes`` are equations (``dml_tile.rules.equations``), those of ``shapes`` a tensor's Sizes
by names (``dml_tile.rules.shapes``). Those of ``given`` name tensors of which one is not null, of ``null`` tensors that
all are; behind "if" is a tensor that is not null, or an enumerator: "MaskTensor if MaskType = NONE". Behind "below" is
the level from which on a sentence of ``fields`` or ``given`` no longer holds.

An entry is parsed when its operator is first looked at; Tile's by every check.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Flag
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from dml_tile.directml import pages
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.operators import OperatorRow, enumerations
from dml_tile.directml.sections import sections, values_below

TABLE: Final = Path(__file__).with_name("operators.toml")
_OTHER_ROWS: Final = ("runtime_", "page_", "history_")
"""The prefixes of rows beside those that count."""
_TAKEN_OVER: Final = frozenset(
    (
        "by",
        "channels",
        "free",
        "fused",
        "in_place",
        "inputs",
        "never_owned",
        "not_repeated",
        "runtime_fused",
        "unchecked",
    )
) | {"without_rule"}
"""The keys whose values are those of the table's fields."""


class Basis(Flag):
    """The evidence for a rule; several may hold."""

    DOCUMENTED = 1
    """Microsoft's reference pages say so."""
    RUNTIME = 2
    """Microsoft's runtime was measured to do so, on feature levels 5_0, 5_2 and 6_2."""
    INFERRED = 4
    """It was concluded, not measured: for a level that was not measured, or from a back end's source."""

    @property
    def names(self) -> tuple[str, ...]:
        """The bases one by one, in lower case: ``("documented", "runtime")``."""
        return tuple(str(basis.name).lower() for basis in self)


BOTH: Final = Basis.DOCUMENTED | Basis.RUNTIME
"""The bases of most rules: the documentation and the runtime agree."""
_PREFIXES: Final = {"": BOTH, "page": Basis.DOCUMENTED, "runtime": Basis.RUNTIME, "guard": Basis.INFERRED}
"""The bases of sentences by the prefixes of their keys."""


class Column(NamedTuple):
    """The dimension counts and data types of a tensor; empty where its page does not tell."""

    dimension_counts: frozenset[int]
    data_types: frozenset[TensorDataType]


Row: TypeAlias = Mapping[str, Column]
"""The columns of tensors by the names of their fields."""


class Sentence(NamedTuple):
    """A requirement, as text; an inferred one guards the runtime against a crash."""

    text: str
    basis: Basis
    below: FeatureLevel | None = None
    """The level from which on it no longer holds, if there is one."""


class Given(NamedTuple):
    """Tensors of which one is not null, below a level if there is one, and where a condition holds."""

    tensors: tuple[str, ...]
    condition: str
    below: FeatureLevel | None
    basis: Basis


class Shared(NamedTuple):
    """DataType, DimensionCount or Sizes, and the tensors that have it in common, where a condition holds."""

    field: str
    tensors: tuple[str, ...]
    basis: Basis = BOTH
    alias: tuple[TensorDataType, TensorDataType] | None = None
    """A data type of the first tensor, and that of the others with it."""
    condition: str = ""


@dataclass(frozen=True, eq=False)
class OperatorTable:
    """An operator's entry, or the sub-table that its field ``by`` chooses."""

    rows: Mapping[FeatureLevel, Row] = field(default_factory=dict)
    runtime: Mapping[FeatureLevel, Row] = field(default_factory=dict)
    page_rows: Mapping[FeatureLevel, Row] = field(default_factory=dict)
    """The operator's page, where it differs from the feature level history and the history counts."""
    history_rows: Mapping[FeatureLevel, Row] = field(default_factory=dict)
    """The feature level history, where it differs from the operator's page and the page counts."""
    same: tuple[Shared, ...] = ()
    example_same: tuple[Shared, ...] = ()
    """The fields that tensors share by the page, but not in the page's own examples."""
    fields: tuple[Sentence, ...] = ()
    sizes: tuple[Sentence, ...] = ()
    shapes: tuple[Sentence, ...] = ()
    given: tuple[Given, ...] = ()
    null: tuple[Given, ...] = ()
    """Tensors that are all null, where a condition holds."""
    free: tuple[str, ...] = ()
    """Fields that neither the page nor the runtime limits."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of the names used in shapes."""
    unchecked: tuple[str, ...] = ()
    """Enumerators of which the runtime takes any value."""
    without_rule: tuple[str, ...] = ()
    """Fields of which DirectML may want more than the entry says."""
    fused: bool = False
    """The operator is an activation that can be fused into any other with a field for one."""
    runtime_fused: bool = False
    """The runtime fuses it, though its page does not say so."""
    fused_from: Mapping[str, FeatureLevel] = field(default_factory=dict)
    """Operators that can be fused into this one, besides the activations that can be fused into any."""
    never_owned: bool = False
    """No input may be owned by DirectML."""
    not_repeated: tuple[str, ...] = ()
    """Inputs that the runtime does not take with strides of 0 along dimensions of several elements."""
    in_place: tuple[str, ...] = ()
    """Inputs that an output of the same layout may alias during binding, by the operator's page."""
    inputs: tuple[str, ...] = ()
    """Tensors that the operator reads, though their names begin with Output."""
    channels: bool = False
    """The first two dimensions are a batch and channels, so that a missing one stands behind these."""
    directmlx_from: FeatureLevel | None = None
    """The level from which on DirectMLX has an older operator for this one, by DML_TARGET_VERSION."""
    by: str = ""
    """The field that chooses a table of its own."""
    page: str = pages.OPERATOR

    def at(self, level: FeatureLevel) -> tuple[Row, Row]:
        """Return the newest row that is not above a level, empty if there is none, and the row that the runtime has."""
        return _newest(self, level)

    def differing_at(self, level: FeatureLevel) -> tuple[Row, Row]:
        """Return what the operator's page and the history have instead of the row of a level; empty if they agree."""
        return _differing(self, level)

    def is_output(self, tensor: str) -> bool:
        """Return True for a tensor that the operator writes."""
        return tensor.startswith("Output") and tensor not in self.inputs


@cache
def _newest(table: OperatorTable, level: FeatureLevel) -> tuple[Row, Row]:
    documented, measured = (  # in the order of the levels
        next((rows[since] for since in reversed([*rows]) if since <= level), {}) for rows in (table.rows, table.runtime)
    )
    return documented, measured or documented


@cache
def _differing(table: OperatorTable, level: FeatureLevel) -> tuple[Row, Row]:
    since = max((each for each in (*table.rows, *table.page_rows, *table.history_rows) if each <= level), default=level)
    return table.page_rows.get(since, {}), table.history_rows.get(since, {})


@cache
def _group(word: str) -> frozenset[TensorDataType]:
    words = values_below(TABLE, "types").get(word)
    if words is None:
        return frozenset([TensorDataType[word]])
    return frozenset().union(*map(_group, words.split()))


@cache
def _column(cell: str) -> Column:
    counts, _, words = cell.partition(" ")
    ends = [part.split("-") for part in counts.split(",") if part]
    numbers = frozenset(number for end in ends for number in range(int(end[0]), int(end[-1]) + 1))
    return Column(numbers, frozenset().union(*map(_group, words.split())))


_level: Final = cache(FeatureLevel.parse)


@cache
def _rows(groups: tuple[str, ...], names: tuple[str, ...], cells: tuple[str, ...]) -> Row:
    columns = zip(groups, map(_column, cells), strict=True)
    return {name: column for group, column in columns for name in (names if group == "*" else group.split())}


def _sentences(values: Mapping[str, Any]) -> dict[str, list[Sentence]]:
    """Return the sentences by their keys without prefixes, in the order of the entry."""
    found = {key: list[Sentence]() for key in ("same", "example_same", "fields", "sizes", "shapes", "given", "null")}
    for name, texts in values.items():
        prefix, _, key = name.rpartition("_") if name not in found else ("", "", name)
        if key in found:
            found[key] += [_sentence(text, _PREFIXES[prefix]) for text in texts]
    return found


def _sentence(text: str, basis: Basis) -> Sentence:
    text, _, below = text.partition(" below ")
    return Sentence(text, basis, FeatureLevel.parse(below) if below else None)


def _given(sentence: Sentence) -> Given:
    tensors, _, condition = sentence.text.partition(" if ")
    return Given(tuple(tensors.replace(" or ", " ").split()), condition, sentence.below, sentence.basis)


def _shared(sentences: Iterable[Sentence], names: tuple[str, ...]) -> Iterator[Shared]:
    for sentence, basis, _ in sentences:
        text, _, condition = sentence.partition(" if ")
        text, _, alias = text.partition(", ")
        one, _, other = alias.partition(" as ")
        words = text.split()
        fields = [word for word in words if word in ("DataType", "DimensionCount", "Sizes")]
        tensors = tuple(words[len(fields) :])
        for each in fields:
            types = (TensorDataType[one], TensorDataType[other]) if alias else None
            yield Shared(each, names if tensors == ("*",) else tensors, basis, types, condition)


def _levels(sentences: Iterable[str]) -> dict[str, FeatureLevel]:
    return {name: FeatureLevel.parse(level) for name, level in map(str.split, sentences)}


@cache
def operator_table(operator: str, tensors: tuple[str, ...], choice: str = "") -> OperatorTable:
    """Return an operator's entry, by its name without a prefix and the names of its tensors.

    ``choice`` is the enumerator of the field that the entry is ``by``, as in REDUCE. Raises ValueError for an operator
    without an entry, and for a choice that it has not.
    """
    values = values_below(TABLE, operator)
    if choice:
        values |= values_below(TABLE, _heading(operator, choice))
    groups = tuple(values.get("tensors", ()))
    rows: dict[str, dict[FeatureLevel, Row]] = {prefix: {} for prefix in ("", *_OTHER_ROWS)}
    for key, cells in values.items():
        if key[-1].isdigit():
            rows[key[:-3]][_level(key[-3:])] = _rows(groups, tensors, tuple(cells))
    sentences = _sentences(values)
    taken_over: dict[str, Any] = {key: tuple(sentences[key]) for key in ("fields", "sizes", "shapes")}
    for key in _TAKEN_OVER & values.keys():
        taken_over[key] = tuple(values[key]) if isinstance(values[key], list) else values[key]
    return OperatorTable(
        rows=rows[""],
        runtime=rows["runtime_"],
        page_rows=rows["page_"],
        history_rows=rows["history_"],
        same=tuple(_shared(sentences["same"], tensors)),
        example_same=tuple(_shared(sentences["example_same"], tensors)),
        given=tuple(map(_given, sentences["given"])),
        null=tuple(map(_given, sentences["null"])),
        names=dict(each.split(": ") for each in values.get("names", ())),
        fused_from=_levels(values.get("fused_from", ())),
        directmlx_from=_level(values["directmlx_from"]) if "directmlx_from" in values else None,
        page=pages.operator(operator, is_in_guide="read" not in values),
        **taken_over,
    )


def tables_of(operator: OperatorRow) -> Iterator[tuple[str, OperatorTable]]:
    """Yield an operator's table, or those of the choices that it has tables by, after the choice."""
    table = operator_table(operator.name, operator.tensors)
    if not table.by:
        yield "", table
        return
    for choice in enumerations()[operator.named[table.by].enumeration].names:
        yield f"{table.by} {choice}", operator_table(operator.name, operator.tensors, choice)


def _heading(operator: str, choice: str) -> str:
    """Return the heading of the sub-table whose name has the enumerator among its words. Raises ValueError."""
    for heading in sections(TABLE):
        family, _, name = heading.partition(".")
        if family == operator and choice in name.strip('"').split():
            return heading
    raise ValueError(f"{operator} has no table for {choice}")
