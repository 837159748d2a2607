"""Groups of an operator's tensors with one data type or dimension count, for drawing descriptors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.operator_table import Column, OperatorTable, Shared, tables_of
from dml_tile.directml.operators import Operator

Groups = list[tuple[Sequence[str], list[int]]]
"""Tensors that have a field in common, and the values of it that they all may have."""

TIED: Final = {"TILE": Shared("DimensionCount", ("InputTensor", "OutputTensor"))}
"""Properties that tensors share by other rules than the table's ``same``."""


def tables(operator: Operator) -> list[tuple[OperatorTable, dict[str, Any]]]:
    """Return the operator's table, or that of each value of the field which chooses one, with that field."""
    of_values = enumerate(table for _, table in tables_of(operator))
    return [(table, {table.by: value} if table.by else {}) for value, table in of_values]


def tied_columns(operator: Operator, table: OperatorTable, level: FeatureLevel) -> tuple[Groups, Groups]:
    """Return the groups of tensors that share their data type, and those that share their dimension count."""
    _, row = table.at(level)
    ties = (*table.same, *filter(None, [TIED.get(operator.name)]))

    def grouped(field: str, column: Callable[[Column], frozenset[int]]) -> Groups:
        groups = {name: [name] for name in row}
        for shared in ties:
            if shared.field == field:
                united = list(dict.fromkeys(each for name in shared.tensors for each in groups[name]))
                groups |= dict.fromkeys(united, united)
        different = {id(group): group for group in groups.values()}.values()
        return [(group, sorted(frozenset.intersection(*(column(row[name]) for name in group)))) for group in different]

    return grouped("DataType", lambda each: each.data_types), grouped(
        "DimensionCount", lambda each: each.dimension_counts
    )
