"""docs/operators.md: an index of all operators, with the level that brings each and how completely it is checked."""

from __future__ import annotations

from collections.abc import Iterator

from dml_tile.directml.operator_table import tables_of
from dml_tile.directml.operators import Operator, operators

_ABOUT = """\
# Operators

This page is for operators other than Tile: it lists DirectML's {count}. `dml-tile levels GATHER` shows what is
documented of one, level by level. `dml-tile check` checks descriptors of all of them: the level, data types and
dimension counts by the operator's page, what tensors share, enumerators, counts of arrays, and the requirements of
fields that its page names. TILE is emulated whole. Where the last column says *in part*, some Sizes or attributes are
not looked at: `check` then says "accepted in part", and names them.

| operator | value | since | looked at |
|---|---|---|---|
"""

_NEXT = "\n\nNext: [rules](rules.md), for what findings say; [check descriptors](check.md), for how to write one.\n"


def operator_index() -> Iterator[tuple[Operator, str, bool]]:
    """Yield each operator, its page, and whether rules look at all its fields."""
    for operator in operators().values():
        _, table = next(tables_of(operator))
        yield operator, table.page, not table.without_rule


def operators_page() -> str:
    """The page."""
    rows = [
        f"| [{operator.name}]({page}) | {operator.value} | {operator.level.short} | "
        f"{'whole' if is_whole else 'in part'} |"
        for operator, page, is_whole in operator_index()
    ]
    return _ABOUT.format(count=len(rows)) + "\n".join(rows) + _NEXT
