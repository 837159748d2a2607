"""The Sizes that an operator's shapes and equations ask for.

They are compiled into one expression for tensors of the same dimension counts, and only where it is false, or fails,
are they looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from dml_tile.directml.operator_table import OperatorTable
from dml_tile.directml.operators import Operator
from dml_tile.findings import Violation
from dml_tile.rules.equations import FUNCTIONS, Step, enumerators, names_in, python, steps_of_equations, value_of
from dml_tile.rules.operator_view import OperatorView
from dml_tile.rules.shapes import SHAPE, steps_of_shapes


class _Plan(NamedTuple):
    steps: list[Step]
    tensors: list[str]
    others: list[str]
    fit: Callable[..., bool]
    """Takes the Sizes of the tensors, then the values of the others."""


def misfits(op: OperatorView) -> Iterator[Violation]:
    """Yield what does not fit the shapes and equations of an operator."""
    ranks = tuple([(name, len(sizes[0])) for name, sizes in op.sizes.items()])
    choices = tuple([op.fields[name] for name in _choosers(op.table)])
    plan = _plan(op.operator, op.table, ranks, choices)
    sizes = [op.sizes[name][0] for name in plan.tensors]
    try:
        is_fit = plan.fit(*sizes, *[value_of(op, name) for name in plan.others])
    except (LookupError, ArithmeticError):
        is_fit = False
    if not is_fit:
        values = {name: value_of(op, name) for name in (*plan.tensors, *plan.others)}
        for step in plan.steps:
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
    chosen, of = dict(zip(_choosers(table), choices, strict=True)), dict(ranks)

    def is_met(condition: str) -> bool:
        field, equals, value = condition.partition(" = ")
        return chosen[field] == enumerators(operator)[value] if equals else field in of

    shapes = steps_of_shapes(table.shapes, operator, of, is_met)
    steps = [*steps_of_equations(table.sizes, operator, of), *shapes]
    test = " and ".join(f"({step.test})" for step in steps) or "True"
    names = sorted(names_in(test) & {*operator.named, *enumerators(operator)})
    tensors = [name for name in names if name in operator.named and operator.named[name].kind == "t"]
    others = [name for name in names if name not in tensors]
    fit: Callable[..., bool] = eval(python(f"lambda {', '.join([*tensors, *others])}: {test}"), FUNCTIONS)  # noqa: S307
    return _Plan(steps, tensors, others, fit)
