"""Equations between Sizes and other fields, as in "OutputTensor[i] = InputTensor[i] + StartPadding[i] + EndPadding[i]".

Each side is a sum of products of numbers, fields, members of fields (``ScaleSize.Width``), and entries: of arrays, of a
tensor's Sizes, or, summed up, of the Sizes of an array of tensors. An index is a number, counted from the end where it
is negative, a field, ``i``, which stands for each dimension, ``*``, which stands for the product of all entries, or as
in ``[-IndexDimensions:]`` the product of so many last ones, of all for 0. An equation says nothing where a value is
missing, or where tensors whose dimensions are counted from the first differ in their number of dimensions.
"""

from __future__ import annotations

import operator as comparisons
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import prod
from typing import Final, NamedTuple, TypeAlias

from dml_tile.descriptors.operator import OperatorFields

EQUATION: Final = re.compile(r"(?P<left>.+?) (?P<relation>=|<=|<) (?P<right>.+)")
_FACTOR: Final = re.compile(r"(?P<name>\w+)(?:\.(?P<member>\w+))?(?:\[(?P<index>-?\w+:?|\*)\])?")
_RELATIONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "=": comparisons.eq,
    "<=": comparisons.le,
    "<": comparisons.lt,
}
SizesOf = Callable[[str], Sequence[Sequence[int]]]
"""Returns the Sizes of the tensors of a field: none, one, or those of an array."""


class _Factor(NamedTuple):
    """A number, by its digits, or a field, a member of it or an entry."""

    name: str
    member: str
    entry: str

    @property
    def counts_from_the_first(self) -> bool:
        return self.entry != "" and self.entry[0] not in "-*"


_Side: TypeAlias = tuple[tuple[_Factor, ...], ...]
"""The products of a side, each by its factors."""


class _Equation(NamedTuple):
    left: _Side
    holds: Callable[[int, int], bool]
    right: _Side
    from_the_first: tuple[str, ...]
    """The fields that must have as many dimensions."""


@cache
def _parsed(equation: str) -> _Equation:
    found = EQUATION.fullmatch(equation)
    assert found, equation
    left, right = _side(found["left"]), _side(found["right"])
    factors = [factor for product in (*left, *right) for factor in product]
    names = dict.fromkeys(factor.name for factor in factors if factor.counts_from_the_first)
    return _Equation(left, _RELATIONS[found["relation"]], right, tuple(names))


def _side(text: str) -> _Side:
    return tuple(tuple(map(_factor, product.split(" * "))) for product in text.split(" + "))


def _factor(text: str) -> _Factor:
    found = _FACTOR.fullmatch(text)
    assert found, text
    return _Factor(found["name"], (found["member"] or "").lower(), found["index"] or "")


def violations(equation: str, fields: OperatorFields, sizes_of: SizesOf) -> Iterator[tuple[str, str]]:
    """Yield the path of each value that breaks an equation, and what is wrong."""
    left_side, holds, right_side, from_the_first = _parsed(equation)
    ranks = {len(sizes) for name in from_the_first for sizes in sizes_of(name)}
    if len(ranks) > 1:
        return
    for i in range(max(ranks, default=0)) if "[i]" in equation else (0,):
        left, right = _sum(left_side, fields, sizes_of, i), _sum(right_side, fields, sizes_of, i)
        if left is None or right is None or holds(left, right):
            continue
        first = left_side[0][0]
        path, arrays = first.name, sizes_of(first.name)
        if first.entry == "*":
            path += ".Sizes"
        elif first.entry:
            index = _index(first.entry, fields, i)
            path += f".Sizes[{index % len(arrays[0])}]" if arrays else f"[{index}]"
        yield path, f"{equation.replace('[i]', f'[{i}]')} was expected, but {left} and {right} were provided"


def _sum(side: _Side, fields: OperatorFields, sizes_of: SizesOf, i: int) -> int | None:
    total = 0
    for product in side:
        term = 1
        for factor in product:
            value = _value(factor, fields, sizes_of, i)
            if value is None:
                return None
            term *= value
        total += term
    return total


def _value(factor: _Factor, fields: OperatorFields, sizes_of: SizesOf, i: int) -> int | None:
    name, member, entry = factor
    if name.isdecimal():
        return int(name)
    value = fields[name]
    if not entry:
        value = getattr(value, member) if member else value
        return None if value is None else int(value)
    arrays = sizes_of(name)
    if not arrays and isinstance(value, tuple) and value and isinstance(value[0], int):
        arrays = [value]
    if entry == "*":
        return sum(map(prod, arrays)) if arrays else None
    if entry[-1] == ":":
        count = int(fields[entry[1:-1]])
        return sum(prod(array[-count:]) for array in arrays) if arrays else None
    at = _index(entry, fields, i)
    if not arrays or any(not -len(array) <= at < len(array) for array in arrays):
        return None
    return sum(array[at] for array in arrays)


def _index(index: str, fields: OperatorFields, i: int) -> int:
    if index == "i":
        return i
    return int(index) if index.lstrip("-").isdecimal() else int(fields[index])
