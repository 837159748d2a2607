"""Asks at which null fields, and arrays of too few structs, DirectML ends the process: each alone in what it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from random import Random
from typing import Any, Final, NamedTuple

from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.operators import OperatorRow, operators
from tests.helpers.recorded_answers import S_OK
from tests.recorder.operator_bases import Fields
from tests.recorder.operator_draws import line, valid
from tests.recorder.releases import RELEASES
from tests.recorder.runtime import answered_operators

SOURCE: Final = (
    "# From Microsoft's DirectML, at its levels 5_1, 5_2 and 6_2; python tests/recorder crashes writes this file."
)
DESCRIPTORS: Final = 24
"""How many of each operator are asked about at each level, with each of their fields."""


class Asked(NamedTuple):
    """A question: what is null or short in a descriptor, the tensors that are given, and whether the process ended."""

    field: str
    kind: str
    level: str
    given: frozenset[str]
    crashed: bool = False


def without(operator: OperatorRow, fields: Fields) -> Iterator[tuple[str, str, Fields]]:
    """Yield a field, "null" or "short", and the descriptor's fields with it so; of an array of tensors, the first."""
    for field in operator.fields:
        value: Any = fields[field.name]
        if value is None or (field.is_optional and not field.is_tensor):
            continue
        if field.is_array or (field.kind == "t" and not field.is_optional):
            yield field.name, "null", fields | {field.name: None}
        if field.kind in "TO":
            yield field.name, "short", fields | {field.name: value[:-1]}
        if field.is_tensor:
            first, *others = value if field.is_array else [value]
            for part, changed in (("Desc", {"Type": 1, "Desc": None}), ("Sizes", first | {"Sizes": None})):
                new = [changed, *others] if field.is_array else changed
                yield f"{field.name}.{part}", "null", fields | {field.name: new}


def crashing_lines() -> Iterator[str]:
    """Yield the lines of ``dml_tile/directml/crashes.txt``, as the releases answer now."""
    yield SOURCE
    known = [operator for operator in operators().values() if operator.name != "TILE"]  # which has rules of its own
    for operator in known:
        levels = [release.operator_level for release in RELEASES if release.operator_level >= operator.level]
        yield from lines(asked for level in levels for asked in _asked(operator, level))


def _asked(operator: OperatorRow, level: FeatureLevel) -> Iterator[Asked]:
    random = Random(operator.name)
    drawn = [valid(operator, level, random) for _ in range(DESCRIPTORS)]
    taken = [row["hresult"] == S_OK for row in answered_operators([line(operator, fields, level) for fields in drawn])]
    questions, changed = list[Asked](), list[Fields]()
    for fields, is_taken in zip(drawn, taken, strict=True):
        given = frozenset(name for name in operator.tensors if fields[name])
        for field, kind, each in without(operator, fields) if is_taken else ():
            questions.append(Asked(f"{operator.name}.{field}", kind, level.short, given))
            changed.append(each)
    rows = answered_operators([line(operator, fields, level) for fields in changed])
    for question, row in zip(questions, rows, strict=True):
        yield question._replace(crashed=row["hresult"].startswith("CRASH"))


def lines(asked: Iterable[Asked]) -> Iterator[str]:
    """Yield a line for each field of an operator at which the process ended, at any level.

    Raises ValueError where it ended for some descriptors only, and no given tensor tells them from the others.
    """
    for (field, kind), group in groupby(sorted(asked), key=lambda each: each[:2]):
        of_field = [*group]
        levels = [*dict.fromkeys(each.level for each in of_field if each.crashed)]
        there = [each for each in of_field if each.level in levels]
        tensors = frozenset().union(*(each.given for each in there))
        telling = [name for name in sorted(tensors) if all((name in each.given) == each.crashed for each in there)]
        if not levels:
            continue
        if not all(each.crashed for each in there) and not telling:
            raise ValueError(f"{field} {kind}: the process ends for some descriptors, and no tensor says for which")
        condition = "" if all(each.crashed for each in there) else f" if {telling[0]}"
        yield f"{field} {kind} {' '.join(levels)}{condition}"
