"""The Sizes that an operator's shapes and equations ask for.

Those for tensors of the same dimension counts are tests, whose code is compiled once; only where one is false, or
fails, is a message looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from types import CodeType
from typing import NamedTuple

from dml_tile.directml.operator_table import OperatorTable
from dml_tile.directml.operators import Operator
from dml_tile.findings import Violation
from dml_tile.rules.equations import FUNCTIONS, Step, code, enumerators, names_in, steps_of_equations, value_of
from dml_tile.rules.operator_view import OperatorView
from dml_tile.rules.shapes import SHAPE, steps_of_shapes


class _Plan(NamedTuple):
    names: list[str]
    """The fields and enumerators whose values the tests have."""
    tests: list[CodeType]


def misfits(op: OperatorView) -> Iterator[Violation]:
    """Yield what does not fit the shapes and equations of an operator."""
    ranks = tuple([(name, len(sizes[0])) for name, sizes in op.sizes.items()])
    choices = tuple([op.fields[name] for name in _choosers(op.table)])
    plan = _plan(op.operator, op.table, ranks, choices)
    values = {name: value_of(op, name) for name in plan.names}
    scope = FUNCTIONS | values  # one namespace, since loops within a test see no other
    try:
        is_fit = all(eval(test, scope) for test in plan.tests)  # noqa: S307
    except (LookupError, ArithmeticError):
        is_fit = False
    if not is_fit:
        for step in _steps(op.operator, op.table, ranks, choices):
            yield from step.violations(op, values)


@cache
def _choosers(table: OperatorTable) -> list[str]:
    """Return the enumerators that conditions of shapes compare."""
    conditions = [found["condition"] for each in table.shapes if (found := SHAPE.fullmatch(each.text))]
    return [*dict.fromkeys(each.split(" = ")[0] for each in conditions if each and " = " in each)]


@lru_cache(maxsize=1024)
def _plan(
    operator: Operator, table: OperatorTable, ranks: tuple[tuple[str, int], ...], choices: tuple[int, ...]
) -> _Plan:
    tests = [step.test for step in _steps(operator, table, ranks, choices)]
    names = frozenset().union(*map(names_in, tests)) & {*operator.named, *enumerators(operator)}
    return _Plan(sorted(names), [*map(code, tests)])


@lru_cache(maxsize=32)
def _steps(
    operator: Operator, table: OperatorTable, ranks: tuple[tuple[str, int], ...], choices: tuple[int, ...]
) -> list[Step]:
    chosen, of = dict(zip(_choosers(table), choices, strict=True)), dict(ranks)

    def is_met(condition: str) -> bool:
        field, equals, value = condition.partition(" = ")
        return chosen[field] == enumerators(operator)[value] if equals else field in of

    shapes = steps_of_shapes(table.shapes, operator, of, is_met)
    return [*steps_of_equations(table.sizes, operator, of), *shapes]
