"""Shapes of tensors, such as "ATensor if TransA = NONE: ... M K" and "WeightTensor: 1 num_directions 4*hidden_size ?".

Sizes are aligned right, with ones before them. A name is bound to the size where it comes first, ``2*name`` to half of
it, and compared later. ``?`` is any size, ``M|1`` M or 1. Before the others, ``...`` are sizes that all tensors have
alike, but for leading ones; behind them, ``?...`` are any sizes and ``1...`` are ones. A field's name is its value. A
row with ``if`` is for a value of an enumerator, or for a tensor that is not null. "headSize: hiddenSize//HeadCount"
binds a name that no row above it bound, where those that it needs are bound.

The shapes and equations for tensors of the same dimension counts are tests, whose code is compiled once for all
dimension counts that share it; only where one is false, or fails, is a message looked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache, partial
from math import prod
from types import CodeType
from typing import Any, Final, TypeAlias

from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.operator_table import Basis, OperatorTable, Sentence
from dml_tile.directml.operators import OperatorRow, operator_named
from dml_tile.findings import Edit, Try, Violation, set_to
from dml_tile.rules.equations import (
    FUNCTIONS,
    Requirement,
    code,
    enumerators,
    evaluated,
    names_in,
    steps_of_equations,
    value_of,
)
from dml_tile.rules.operator_view import OperatorView
from dml_tile.rules.tensor import counted, sized
from dml_tile.text import braced

SHAPE: Final = re.compile(r"(?P<tensor>\w+)(?: if (?P<condition>[^:]+))?: (?P<sizes>.+)")
_ACTIVATED: Final = ("InputTensor", "OutputTensor")
_BINDING: Final = re.compile(r"(?:(?P<factor>[\w*]+)\*)?(?P<name>[a-zA-Z]\w*)")


def holds(op: OperatorView, condition: str) -> bool:
    """Return True if a field is an enumerator, as in "TransA = NONE", or if a tensor is not null."""
    field, equals, value = condition.partition(" = ")
    given = op.fields[field]
    return given is not None if not equals else given == value_of(op, value)


def misfits(op: OperatorView, *, of_fields: bool = False) -> Iterator[Violation]:
    """Yield what does not fit an operator's shapes and equations of Sizes, or its equations ``of_fields``."""
    sizes = {name: [()] for name in op.by_field} if of_fields else op.sizes
    choices = None if of_fields else tuple([op.fields[name] for name in _choosers(op.table)])
    whole = [name for name in sizes if name not in op.short]
    arrays = [each.name for each in op.operator.array_fields if not each.is_tensor and each.name not in op.short]
    ranks = tuple([(name, len(sizes[name][0])) for name in whole] + [(name, 0) for name in arrays])
    names, tests = _plan(op.operator, op.table, ranks, choices)
    values = {name: value_of(op, name) for name in names}
    scope = FUNCTIONS | values  # one namespace, since loops within a test see no other
    try:
        is_fit = all(eval(test, scope) for test in tests)  # noqa: S307
    except (LookupError, ArithmeticError):
        is_fit = False
    if not is_fit:
        for step in _steps(op.operator, op.table, ranks, choices):
            yield from step.violations(op, values)


def misfits_below(op: OperatorView) -> Iterator[tuple[FeatureLevel, Violation]]:
    """Yield what does not fit an equation of fields that holds below a level, after the level."""
    for sentence in op.table.fields:
        if sentence.below:
            for step in steps_of_equations([sentence], op.operator, {}):
                for violation in step.violations(op, {name: value_of(op, name) for name in names_in(step.test)}):
                    yield sentence.below, violation


@cache
def _choosers(table: OperatorTable) -> list[str]:
    """Return the enumerators that conditions of shapes compare."""
    conditions = [found["condition"] for each in table.shapes if (found := SHAPE.fullmatch(each.text))]
    return [*dict.fromkeys(each.split(" = ")[0] for each in conditions if each and " = " in each)]


@lru_cache(maxsize=1024)
def _plan(
    operator: OperatorRow, table: OperatorTable, ranks: tuple[tuple[str, int], ...], choices: tuple[int, ...] | None
) -> tuple[list[str], list[CodeType]]:
    """Return the fields and enumerators whose values the tests have, and the tests."""
    tests = [step.test for step in _steps(operator, table, ranks, choices)]
    names = frozenset().union(*map(names_in, tests))
    known = {*operator.named, *enumerators(operator)}
    return sorted(name for name in names if name in known or "_of_" in name), [*map(code, tests)]


@lru_cache(maxsize=32)
def _steps(
    operator: OperatorRow, table: OperatorTable, ranks: tuple[tuple[str, int], ...], choices: tuple[int, ...] | None
) -> list[Requirement]:
    of = dict(ranks)
    if choices is None:
        return [*steps_of_equations([each for each in table.fields if not each.below], operator, of)]
    chosen = dict(zip(_choosers(table), choices, strict=True))

    def is_met(condition: str) -> bool:
        field, equals, value = condition.partition(" = ")
        return chosen[field] == enumerators(operator)[value] if equals else field in of

    shapes = steps_of_shapes(table.shapes, operator, of, is_met)
    return [*steps_of_equations(table.sizes, operator, of), *shapes]


def steps_of_shapes(
    sentences: Iterable[Sentence], operator: OperatorRow, ranks: Mapping[str, int], is_met: Callable[[str], bool]
) -> Iterator[Requirement]:
    """Yield the steps of shapes for tensors of these dimension counts; ``is_met`` is True for conditions that hold."""
    names = dict.fromkeys([*operator.named, *enumerators(operator)], "")  # of those read from Sizes, the place
    leading = ("", "")
    for text, basis, _ in sentences:
        found = SHAPE.fullmatch(text)
        assert found, text
        tensor, condition, words = found["tensor"], found["condition"], found["sizes"].split()
        step = partial(_step, basis=basis)
        if condition and not is_met(condition):
            continue
        if tensor not in operator.named and tensor not in names and names_in(found["sizes"]) <= names.keys():
            deciding = names_in(found["sizes"]) & operator.named.keys()
            names[tensor] = min(deciding, default="")
            yield step(f"({tensor} := {found['sizes']}) >= 0")
        if tensor not in ranks:
            continue
        fitted = _fitted(words, ranks[tensor])
        if not fitted:
            yield step("0", partial(_too_few, tensor, len(words) - (words[0] == "...")))
        elif words[0] == "...":
            batch = f"without_leading_ones({tensor}[:{len(fitted) + 1 - len(words)}])"
            leading = leading if leading[0] else (tensor, batch)
            yield step(f"{batch} == {leading[1]}", partial(_other_batch, tensor, len(words) - 1, batch, *leading))
        elif words == ["?", "?"] and operator.tensors == _ACTIVATED:
            yield from (step(f"{tensor}[{i}] == 1", partial(_no_matrix, i)) for i in range(len(fitted) - 2))
            continue
        for i, word in enumerate(fitted):
            yield from _of_size(tensor, i, word, names, step)


def _fitted(words: list[str], rank: int) -> list[str]:
    """Return a word for each of a tensor's dimensions; none if it has too few."""
    if words[0] != "..." and words[-1].endswith("..."):
        return [*words[:-1], *[words[-1][:-3]] * rank][:rank]
    before, words = ("?", words[1:]) if words[0] == "..." else ("1", words)
    if rank < len(words) and words[0] != "?" and "|1" not in words[0]:
        return []
    return [*[before] * (rank - len(words)), *words][-rank:]


def _of_size(
    tensor: str, i: int, word: str, names: dict[str, str], step: Callable[..., Requirement]
) -> Iterator[Requirement]:
    """Yield the step of a size, if there is one, which may bind a name."""
    if word == "?":
        return
    size, path, binding = f"{tensor}[{i}]", f"{tensor}.Sizes[{i}]", _BINDING.fullmatch(word)
    if binding and binding["name"] not in names:
        name, factor = binding["name"], binding["factor"] or "1"
        if names_in(factor) <= names.keys():
            names[name] = f"{path} / {factor}" if binding["factor"] else path
            test = f"{size} % ({factor}) == 0 and ({name} := {size} // ({factor})) >= 0"
            yield step(test, partial(_no_multiple, size, path, factor))
    elif names_in(word) <= names.keys():
        test = f"{size} in ({word.replace('|', ', ')},)"
        sources = [f"{name} is {names[name]}" for name in sorted(names_in(word) - {word}) if "." in names[name]]
        yield step(test, partial(_other_size, size, path, word, names.get(word, ""), ", ".join(sources)))


_Describe: TypeAlias = Callable[[OperatorView, dict[str, Any]], Violation]


def _step(test: str, violation: _Describe = lambda op, values: Violation("", ""), *, basis: Basis) -> Requirement:
    def violations(op: OperatorView, values: dict[str, Any]) -> Iterator[Violation]:
        try:
            is_met = evaluated(test, values)
        except (LookupError, ArithmeticError, NameError):  # it rests on a name that another step could not bind
            return
        if not is_met:
            yield violation(op, values)._replace(basis=basis)

    return Requirement(test, violations)


def _too_few(tensor: str, least: int, op: OperatorView, values: dict[str, Any]) -> Violation:
    view = op.views[tensor]
    message = f"{view.desc.dimension_count} was provided, but at least {least} was expected"
    return Violation(view.path("DimensionCount"), message, edit=counted(view, least))


def _other_batch(
    tensor: str, rank: int, batch: str, first: str, leading: str, op: OperatorView, values: dict[str, Any]
) -> Violation:
    """Describe other sizes before those of a tensor's last ``rank`` dimensions than the ``first`` tensor has."""
    one, other = (evaluated(each, values) for each in (batch, leading))
    sizes = values[tensor]
    missing = len(sizes) - rank - len(other)
    edit = sized(op.views[tensor], (1,) * missing + other + sizes[-rank:]) if missing >= 0 else None
    return Violation(f"{tensor}.Sizes", f"begins with {braced(one)}, but {first} with {braced(other)}", edit=edit)


def _no_matrix(i: int, op: OperatorView, values: dict[str, Any]) -> Violation:
    sizes = values["InputTensor"]
    matrix = (*(1,) * (len(sizes) - 2), prod(sizes[:-1]), sizes[-1])
    newer, edit, advice = operator_named(f"{op.operator.name}1"), None, None
    if all(view.strides is None for view in op.views.values()):  # so the matrix has the same elements
        edits = tuple(Edit(view.path("Sizes"), matrix) for view in op.views.values())
        edit = Try(f"describe both tensors as matrices, with Sizes {braced(matrix)}", edits=edits)
    if newer:
        advice = f"use {newer.name} with Axes {braced([len(sizes) - 1])}, from {newer.level.short}"
    return Violation(f"InputTensor.Sizes[{i}]", f"{sizes[i]} was provided, but 1 was expected", advice, edit=edit)


def _no_multiple(size: str, path: str, factor: str, op: OperatorView, values: dict[str, Any]) -> Violation:
    given, expected = evaluated(size, values), evaluated(factor, values)
    return Violation(path, f"{given} was provided, but a multiple of {_spaced(factor)} = {expected} was expected")


def _other_size(
    size: str, path: str, word: str, place: str, sources: str, op: OperatorView, values: dict[str, Any]
) -> Violation:
    """Describe a size; ``place`` is where the name that it has was bound, or the field that decides its value.

    ``sources`` are the places where names in an expression were bound, in words.
    """
    given, choices = evaluated(size, values), word.split("|")
    edit = set_to(evaluated(choices[0], values), path)
    if place and place not in op.fields:
        described = op.table.names.get(word, "")
        message = f"{place} is {values[word]}; {path} is {given}: both are {word}{described and f', {described}'}"
        return Violation(path, message, edit=edit)
    texts = [each if each.isdigit() else f"{_spaced(each)} = {evaluated(each, values)}" for each in choices]
    since = f", since {place} is {op.named(place)}" if place else f", where {sources}" if sources else ""
    return Violation(path, f"{given} was provided, but {' or '.join(reversed(texts))} was expected{since}", edit=edit)


def _spaced(text: str) -> str:
    return re.sub(r"([*+])", r" \1 ", text)
