"""Equations between Sizes and other fields, as in "OutputTensor[i] = InputTensor[i] + StartPadding[i] + EndPadding[i]".

Each side is a sum of products of numbers, fields, members of fields (``ScaleSize.Width``), and entries: of arrays, of a
tensor's Sizes, or, summed up, of the Sizes of an array of tensors. An index is a number (a negative one counts from the
end), a field, ``i`` for each dimension, or ``*`` for the product of all entries; ``[-IndexDimensions:]`` is the product
of that many last entries, of all for 0. An equation says nothing if a value is missing, or if tensors whose dimensions
are counted from the first differ in their number of dimensions.
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
"""Returns the Sizes of each tensor of a field: of none, one, or an array."""


class _Factor(NamedTuple):
    """A number, a field, a member of a field, or entries by a number, a field, ``i``, ``*`` or a slice."""

    number: int | None
    name: str
    member: str
    entry: int | str | None

    @property
    def counts_from_the_first(self) -> bool:
        entry = self.entry
        return entry >= 0 if isinstance(entry, int) else entry is not None and entry[0] not in "-*"


_Side: TypeAlias = tuple[tuple[_Factor, ...], ...]
"""The products of a side; each is a tuple of factors."""


class _Equation(NamedTuple):
    left: _Side
    holds: Callable[[int, int], bool]
    right: _Side
    from_the_first: tuple[str, ...]
    """The tensors that must have the same number of dimensions."""
    is_of_each: bool
    """True if it holds for each dimension ``i``."""


@cache
def _parsed(equation: str) -> _Equation:
    found = EQUATION.fullmatch(equation)
    assert found, equation
    left, right = _side(found["left"]), _side(found["right"])
    factors = [factor for product in (*left, *right) for factor in product]
    names = dict.fromkeys(factor.name for factor in factors if factor.counts_from_the_first)
    return _Equation(left, _RELATIONS[found["relation"]], right, tuple(names), "[i]" in equation)


def _side(text: str) -> _Side:
    return tuple(tuple(map(_factor, product.split(" * "))) for product in text.split(" + "))


def _factor(text: str) -> _Factor:
    found = _FACTOR.fullmatch(text)
    assert found, text
    index: str | None = found["index"]
    entry = int(index) if index and index.lstrip("-").isdecimal() else index
    number = int(text) if text.isdecimal() else None
    return _Factor(number, found["name"], (found["member"] or "").lower(), entry)


def violations(equation: str, fields: OperatorFields, sizes_of: SizesOf) -> Iterator[tuple[str, str]]:
    """Yield the path of each value that breaks an equation, and the reason."""
    left_side, holds, right_side, from_the_first, is_of_each = _parsed(equation)
    ranks = {len(sizes) for name in from_the_first for sizes in sizes_of(name)}
    if len(ranks) > 1:
        return
    for i in range(max(ranks, default=0)) if is_of_each else (0,):
        left, right = _sum(left_side, fields, sizes_of, i), _sum(right_side, fields, sizes_of, i)
        if left is None or right is None or holds(left, right):
            continue
        first = left_side[0][0]
        path, arrays = first.name, sizes_of(first.name)
        if first.entry == "*":
            path += ".Sizes"
        elif first.entry is not None:
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
    number, name, member, entry = factor
    if number is not None:
        return number
    value = fields[name]
    if entry is None:
        value = getattr(value, member) if member else value
        return None if value is None else int(value)
    arrays = sizes_of(name)
    if not arrays:
        if not (isinstance(value, tuple) and value and isinstance(value[0], int)):
            return None
        arrays = (value,)
    if entry == "*":
        return sum(map(prod, arrays))
    if isinstance(entry, str) and entry[-1] == ":":
        count = int(fields[entry[1:-1]])
        return sum(prod(array[-count:]) for array in arrays)
    total, at = 0, _index(entry, fields, i)
    for array in arrays:
        if not -len(array) <= at < len(array):
            return None
        total += array[at]
    return total


def _index(entry: int | str, fields: OperatorFields, i: int) -> int:
    if isinstance(entry, int):
        return entry
    return i if entry == "i" else int(fields[entry])
