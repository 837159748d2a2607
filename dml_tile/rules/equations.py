"""Equations between Sizes and other fields, as in "OutputTensor[i] = InputTensor[i] + StartPadding[i] + EndPadding[i]".

Each side is a sum of products of numbers, fields, members of fields (``ScaleSize.Width``), and entries: of arrays, of a
tensor's Sizes, or, summed up, of the Sizes of an array of tensors. An index is a number (a negative one counts from the
end), a field, ``i`` for each dimension, or ``*`` for the product of all entries; ``[-IndexDimensions:]`` is the product
of that many last entries (of all if it is 0). An equation says nothing if a value is missing, or if tensors whose
dimensions are counted from the first differ in their number of dimensions.
"""

from __future__ import annotations

import operator as comparisons
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

from dml_tile.descriptors.operator import OperatorFields

EQUATION: Final = re.compile(r"(?P<left>.+?) (?P<relation>=|<=|<) (?P<right>.+)")
_FACTOR: Final = re.compile(r"(?P<name>\w+)(?:\.(?P<member>\w+))?(?:\[(?P<index>-?\w+:?|\*)\])?")
_RELATIONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "=": comparisons.eq,
    "<=": comparisons.le,
    "<": comparisons.lt,
}
Sizes: TypeAlias = Mapping[str, Sequence[Sequence[int]]]
"""The Sizes of each tensor of a field, by its name: of one, or of an array."""
_Value: TypeAlias = Callable[[OperatorFields, Sizes, int], int | None]
"""Returns the value of a side, or of a part of it, for a dimension ``i``; None where it is missing."""


class _Equation(NamedTuple):
    left: _Value
    holds: Callable[[int, int], bool]
    right: _Value
    name: str
    """The field that is blamed: the first one."""
    entry: str | None
    """The entry of it that is blamed."""
    from_the_first: tuple[str, ...]
    """The tensors that must have the same number of dimensions."""
    is_of_each: bool
    """True if it holds for each dimension ``i``."""


@cache
def _parsed(equation: str) -> _Equation:
    found = EQUATION.fullmatch(equation)
    assert found, equation
    factors = [_factor(text) for text in re.split(r" [+*=<]=? ", equation)]
    counted = dict.fromkeys(each["name"] for each in factors if each["index"] and each["index"][0] not in "-*")
    blamed = factors[0]
    left, right = _sum(found["left"]), _sum(found["right"])
    is_of_each = "[i]" in equation
    holds = _RELATIONS[found["relation"]]
    return _Equation(left, holds, right, blamed["name"], blamed["index"], tuple(counted), is_of_each)


def _factor(text: str) -> re.Match[str]:
    found = _FACTOR.fullmatch(text)
    assert found, text
    return found


def violations(equation: str, fields: OperatorFields, sizes: Sizes) -> Iterator[tuple[str, str]]:
    """Yield the path of each value that breaks an equation, and the reason."""
    parsed = _parsed(equation)
    if not (parsed.is_of_each or _broken(parsed, fields, sizes, 0)):  # as most hold, whatever the ranks
        return
    ranks = {len(each) for name in parsed.from_the_first for each in sizes.get(name, ())}
    if len(ranks) > 1:
        return
    for i in range(max(ranks, default=0)) if parsed.is_of_each else (0,):
        numbers = _broken(parsed, fields, sizes, i)
        if numbers is None:
            continue
        path, arrays = parsed.name, sizes.get(parsed.name)
        if parsed.entry == "*":
            path += ".Sizes"
        elif parsed.entry is not None:
            index = _position(parsed.entry)(fields, i)
            path += f".Sizes[{index % len(arrays[0])}]" if arrays else f"[{index}]"
        yield path, f"{equation.replace('[i]', f'[{i}]')} was expected, but {numbers[0]} and {numbers[1]} were provided"


def _broken(equation: _Equation, fields: OperatorFields, sizes: Sizes, i: int) -> tuple[int, int] | None:
    """Return the numbers of the two sides for a dimension if they break the equation."""
    left, right = equation.left(fields, sizes, i), equation.right(fields, sizes, i)
    return None if left is None or right is None or equation.holds(left, right) else (left, right)


def _sum(text: str) -> _Value:
    return _combined([_product(each) for each in text.split(" + ")], sum)


def _product(text: str) -> _Value:
    return _combined([_value(_factor(each)) for each in text.split(" * ")], prod)


def _combined(values: Sequence[_Value], combine: Callable[[Sequence[int]], int]) -> _Value:
    if len(values) == 1:
        return values[0]

    def combined(fields: OperatorFields, sizes: Sizes, i: int) -> int | None:
        numbers = [number for value in values if (number := value(fields, sizes, i)) is not None]
        return combine(numbers) if len(numbers) == len(values) else None

    return combined


def _value(factor: re.Match[str]) -> _Value:
    name, member, index = factor["name"], (factor["member"] or "").lower(), factor["index"]
    if name.isdecimal():
        number = int(name)
        return lambda fields, sizes, i: number
    if index is None:
        return lambda fields, sizes, i: _number(fields[name], member)
    position, taken = _position(index), _product_of_last if index[-1] in "*:" else _entry

    def summed(fields: OperatorFields, sizes: Sizes, i: int) -> int | None:
        arrays = sizes.get(name) or _array(fields[name])
        at, total = position(fields, i), 0
        for array in arrays:
            value = taken(array, at)
            if value is None:
                return None
            total += value
        return total if arrays else None

    return summed


def _number(value: Any, member: str) -> int | None:
    return None if value is None else int(getattr(value, member) if member else value)


def _array(value: Any) -> Sequence[Sequence[int]]:
    return (value,) if isinstance(value, tuple) and value and isinstance(value[0], int) else ()


def _position(index: str) -> Callable[[OperatorFields, int], int]:
    if index == "i":
        return lambda fields, i: i
    if index == "*" or index.lstrip("-").isdecimal():
        number = 0 if index == "*" else int(index)
        return lambda fields, i: number
    name = index.strip("-:")
    return lambda fields, i: int(fields[name])


def _entry(array: Sequence[int], at: int) -> int | None:
    return array[at] if -len(array) <= at < len(array) else None


def _product_of_last(array: Sequence[int], count: int) -> int:
    return prod(array[-count:])  # array[-0:] is the whole array
