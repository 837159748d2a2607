"""Shapes of tensors, such as "ATensor if TransA = NONE: ... M K" and "WeightTensor: 1 num_directions 4*hidden_size ?".

Sizes are aligned right, with ones before them. A name is bound to the size where it comes first, ``2*name`` to half of
it, and compared later. ``?`` is any size, ``M|1`` M or 1. Before the others, ``...`` are sizes that all tensors have
alike, but for leading ones; behind them, ``?...`` are any sizes and ``1...`` are ones. A field's name is its value. A
row with ``if`` is for a value of an enumerator, or for a tensor that is not null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from dml_tile.directml.operator_table import operator_table
from dml_tile.directml.operators import Operator
from dml_tile.findings import Violation
from dml_tile.rules.equations import function_of, names_in, value_of, without_leading_ones
from dml_tile.rules.operator_view import OperatorView, basis
from dml_tile.rules.tensor import TensorView
from dml_tile.text import braced

SHAPE: Final = re.compile(r"(?P<tensor>\w+)(?: if (?P<condition>[^:]+))?: (?P<sizes>.+)")
_BINDING: Final = re.compile(r"(?:(?P<factor>[\w*]+)\*)?(?P<name>[a-zA-Z]\w*)")
_LEADING: Final = "..."


class _Dimension(NamedTuple):
    """An expression for a size."""

    text: str
    binds: str
    """The name that it binds, if that is unbound; the size is it times the factor."""
    factor: tuple[tuple[str, ...], Callable[..., int]] | None
    allowed: tuple[tuple[tuple[str, ...], Callable[..., int]], ...]


class _Row(NamedTuple):
    tensor: str
    condition: str
    is_leading: bool
    dimensions: tuple[_Dimension, ...]
    trailing: _Dimension | None
    names: frozenset[str]

    def fitted(self, count: int) -> tuple[_Dimension, ...]:
        """Return as many dimensions as a tensor has, if it has enough."""
        missing = count - len(self.dimensions)
        if self.trailing:
            return (*self.dimensions, *[self.trailing] * missing)[:count]
        return (*[_ANY if self.is_leading else _ONE] * missing, *self.dimensions)


def _compiled(expression: str) -> tuple[tuple[str, ...], Callable[..., int]]:
    names = names_in(expression)
    return names, function_of(names, expression)


def _dimension(text: str) -> _Dimension:
    if text == "?":
        return _Dimension(text, "", None, ())
    found = _BINDING.fullmatch(text)
    factor = _compiled(found["factor"]) if found and found["factor"] else None
    return _Dimension(text, found["name"] if found else "", factor, tuple(map(_compiled, text.split("|"))))


_ONE: Final = _dimension("1")
_ANY: Final = _dimension("?")


@cache
def _row(text: str) -> _Row:
    found = SHAPE.fullmatch(text)
    assert found, text
    words = found["sizes"].split()
    is_leading, trailing = words[0] == _LEADING, None
    if words[-1].endswith(_LEADING) and not is_leading:
        trailing = _dimension(words.pop().removesuffix(_LEADING))
    dimensions = tuple(map(_dimension, words[is_leading:]))
    names = {name for each in dimensions for of, _ in each.allowed for name in of}
    return _Row(found["tensor"], found["condition"] or "", is_leading, dimensions, trailing, frozenset(names))


@cache
def _condition(text: str) -> tuple[str, str, str]:
    return text.partition(" = ")


def holds(op: OperatorView, condition: str) -> bool:
    """Return True if a field is an enumerator, as in "TransA = NONE", or if a tensor is not null."""
    field, equals, value = _condition(condition)
    given = op.fields[field]
    return given is not None if not equals else given == value_of(op, value)


class _Bound(NamedTuple):
    value: int
    place: str
    """The field that is it; empty for a value that was not read from one."""


def shape_violations(op: OperatorView, known: Mapping[str, int]) -> Iterator[Violation]:
    """Yield the sizes that do not fit the shapes of an operator; ``known`` has values of names."""
    if op.table.shapes and not all_fit(op, known):
        yield from _misfits(op, known)


def all_fit(op: OperatorView, known: Mapping[str, int]) -> bool:
    """Return True if the shapes are plainly right: in one expression, which is compiled once for tensors' ranks."""
    used, sizes = list[tuple[int, int]](), list[Sequence[int]]()
    for i, row in enumerate(_rows(op.operator)):
        if (found := op.sizes.get(row.tensor)) and (not row.condition or holds(op, row.condition)):
            used.append((i, len(found[0])))
            sizes.append(found[0])
    try:
        names, fits = _expression(op.operator, tuple(used), tuple(known))
        return bool(fits(*sizes, *(known[name] if name in known else op.fields[name] for name in names)))
    except (LookupError, ZeroDivisionError):
        return False


@cache
def _rows(operator: Operator) -> list[_Row]:
    return [_row(sentence.text) for sentence in operator_table(operator.name, operator.tensors).shapes]


@cache
def _expression(
    operator: Operator, used: tuple[tuple[int, int], ...], known: tuple[str, ...]
) -> tuple[list[str], Callable[..., bool]]:
    """Return a function of the Sizes of rows' tensors and of names' values, which come first, that is True if all fit.

    ``used`` are the indices of the rows and the dimension counts. Raises LookupError for a tensor with too few.
    """
    parts, bound, needed, leading = ["True"], {*known}, dict.fromkeys(known), ""
    for number, (index, count) in enumerate(used):
        row, tensor = _rows(operator)[index], f"_{number}"
        missing = len(row.dimensions) - count
        if missing > 0 and not row.trailing and "|1" not in row.dimensions[0].text:
            raise LookupError(row.tensor)
        if row.is_leading:
            batch = f"without_leading_ones({tensor}[:{-missing}])"
            parts.append(f"{batch} == {leading or batch}")
            leading = leading or batch
        for i, dimension in enumerate(row.fitted(count)[-count:]):
            size, name = f"{tensor}[{i}]", dimension.binds
            names = {each for of, _ in dimension.allowed for each in of}
            needed.update(dict.fromkeys(names & operator.named.keys()))
            bound |= names & operator.named.keys()
            if name and name not in bound:
                factor = dimension.text[: -len(name) - 1] or "1"
                if names - {name} <= bound:
                    parts.append(f"{size} % ({factor}) == 0 and ({name} := {size} // ({factor}))")
                    bound.add(name)
            elif dimension.allowed and names <= bound:
                parts.append(f"({' or '.join(f'{size} == {each}' for each in dimension.text.split('|'))})")
    arguments = (*(f"_{number}" for number in range(len(used))), *needed)
    return [*needed], function_of(arguments, " and ".join(parts))


def _misfits(op: OperatorView, known: Mapping[str, int]) -> Iterator[Violation]:
    bound = {name: _Bound(value, "") for name, value in known.items()}
    leading: tuple[str, Sequence[int]] | None = None
    for sentence in op.table.shapes:
        row = _row(sentence.text)
        if not (views := op.of(row.tensor)) or (row.condition and not holds(op, row.condition)):
            continue
        view, sizes = views[0], views[0].sizes
        if not sizes:
            continue
        for name in row.names & op.operator.named.keys():
            bound[name] = _Bound(op.fields[name], name)
        rests_on = basis(sentence.is_documented, sentence.is_checked)
        missing = len(row.dimensions) - len(sizes)
        if missing > 0 and not row.trailing:
            if "|1" not in row.dimensions[0].text:
                message = f"{len(sizes)} was provided, but at least {len(row.dimensions)} was expected"
                yield Violation(view.path("DimensionCount"), message, basis=rests_on)
                continue
            sizes = (*[1] * missing, *sizes)
        if row.is_leading:
            batch = without_leading_ones(sizes[: len(sizes) - len(row.dimensions)])
            leading = leading or (view.operand.name, batch)
            if batch != leading[1]:
                message = f"begins with {braced(batch)}, but {leading[0]} with {braced(leading[1])}"
                yield Violation(view.path("Sizes"), message, basis=rests_on)
        for i, (size, dimension) in enumerate(zip(sizes, row.fitted(len(sizes)), strict=True)):
            index = i - max(0, missing)
            if wrong := _broken(op, bound, view, index, size, dimension):
                yield Violation(view.path(f"Sizes[{index}]"), wrong, basis=rests_on)


def _broken(
    op: OperatorView, bound: dict[str, _Bound], view: TensorView, i: int, size: int, dimension: _Dimension
) -> str | None:
    """Return what is wrong with a size, or bind the name that it tells."""
    name = dimension.binds
    if name and name not in bound:
        factor = _value(dimension.factor, bound) if dimension.factor else 1
        if not factor:
            return None
        if size % factor:
            expected = _spaced(dimension.text.removesuffix(f"*{name}"))
            return f"{size} was provided, but a multiple of {expected} = {factor} was expected"
        place = view.path(f"Sizes[{i}]")
        bound[name] = _Bound(size // factor, f"{place} / {factor}" if dimension.factor else place)
        return None
    allowed = [value for each in dimension.allowed if (value := _value(each, bound)) is not None]
    if not allowed or len(allowed) < len(dimension.allowed) or size in allowed:
        return None
    if name and not dimension.factor and bound[name].place not in ("", name):
        described = op.table.names.get(name, "")
        one, other = f"{bound[name].place} is {bound[name].value}", f"{view.path(f'Sizes[{i}]')} is {size}"
        return f"{one}; {other}: both are {name}{described and f', {described}'}"
    texts = zip(dimension.text.split("|"), allowed, strict=True)
    choices = [text if text.isdigit() else f"{_spaced(text)} = {value}" for text, value in texts]
    return f"{size} was provided, but {' or '.join(reversed(choices))} was expected"


def _spaced(text: str) -> str:
    return re.sub(r"([*+])", r" \1 ", text)


def _value(expression: tuple[tuple[str, ...], Callable[..., Any]], bound: Mapping[str, _Bound]) -> int | None:
    names, function = expression
    if not all(name in bound for name in names):
        return None
    return int(function(*(bound[name].value for name in names)))
