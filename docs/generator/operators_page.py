"""docs/operators.md: an index of all operators, with the level that brings each and how completely it is checked."""

from __future__ import annotations

from collections.abc import Iterator

from dml_tile.back_ends.descriptions import creators_of
from dml_tile.directml.operator_table import tables_of
from dml_tile.directml.operators import OperatorRow, operators
from dml_tile.directml.values import NOT_EXECUTED, values
from dml_tile.reports.operator_levels import created_of, departures_of

_ABOUT = """\
# Operators

This page is for one operator: it lists DirectML's {count}. `dml-tile levels RESAMPLE3` shows the row of one, and what
is documented of it, level by level, with the shapes of its tensors. *Created of* are the ONNX operators of which ONNX
Runtime's DirectML provider creates it, by release (*1.19+*: and later). `dml-tile check` looks at every field: the
level, data types and dimension counts, what tensors share, their Sizes, attributes, and fused activations. TILE is
emulated whole. The pages of those marked *in part* leave open what DirectML wants: `check` says "accepted in part", and
names the fields.

`evaluate` and `execute` compute an operator's values as DirectML does. *bytes* are equal to what Microsoft's library
wrote, in every case recorded of the operator; *values* are within a tolerance (FLOAT16: 0.004 relative, 1e-4 absolute;
integers are equal). 5,836 cases were recorded, at 5_0, 5_2 and 6_2, on one software driver and no GPU: the last bits of
transcendental functions and sums, the rounding of FLOAT16, and integer division by zero are that driver's.

| operator | value | since | looked at | executed | created of | known departures |
|---|---|---|---|---|---|---|
"""

_NEXT = "\n\nNext: [rules](rules.md), for what findings say; [check descriptors](check.md), for how to write one.\n"


def operator_index() -> Iterator[tuple[OperatorRow, str, bool]]:
    """Yield each operator, its page, and whether rules look at all its fields."""
    for operator in operators().values():
        _, table = next(tables_of(operator))
        yield operator, table.page, not table.without_rule


def _created(operator: OperatorRow) -> str:
    spans = created_of(creators_of(operator.name)).items()
    return "; ".join(f"{', '.join(names)} ({span.replace(' and later', '+')})" for span, names in spans)


def operators_page() -> str:
    """The page."""
    rows = [
        f"| [{operator.name}]({page}) | {operator.value} | {operator.level.short} | "
        f"{'whole' if is_whole else 'in part'} | {values().get(operator.name) or NOT_EXECUTED} | "
        f"{_created(operator)} | {', '.join(f'`{row.id}`' for row in departures_of(operator.name))} |"
        for operator, page, is_whole in operator_index()
    ]
    return _ABOUT.format(count=len(rows)) + "\n".join(rows) + _NEXT
