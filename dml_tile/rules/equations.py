"""Equations between Sizes and other fields, as in "OutputTensor[i] = InputTensor[i] + StartPadding[i] + EndPadding[i]".

Each side is a sum of products of numbers, fields, members of fields (``ScaleSize.Width``), and entries: of arrays, of a
tensor's Sizes, or, summed up, of the Sizes of an array of tensors. An index is a number, counted from the end where it
is negative, a field, ``i``, which stands for each dimension, or ``*``, which stands for the product of all entries. An
equation says nothing where a value is missing, or where tensors whose dimensions are counted from the first differ in
their number of dimensions.
"""

from __future__ import annotations

import operator as comparisons
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final

from dml_tile.descriptors.operator import OperatorFields

EQUATION: Final = re.compile(r"(?P<left>.+?) (?P<relation>=|<=|<) (?P<right>.+)")
_FACTOR: Final = re.compile(r"(?P<name>\w+)(?:\.(?P<member>\w+))?(?:\[(?P<index>-?\w+|\*)\])?")
_RELATIONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "=": comparisons.eq,
    "<=": comparisons.le,
    "<": comparisons.lt,
}
SizesOf = Callable[[str], Sequence[Sequence[int]]]
"""Returns the Sizes of the tensors of a field: none, one, or those of an array."""


def violations(equation: str, fields: OperatorFields, sizes_of: SizesOf) -> Iterator[tuple[str, str]]:
    """Yield the path of each value that breaks an equation, and what is wrong."""
    found = EQUATION.fullmatch(equation)
    assert found, equation
    factors = [match for match in _FACTOR.finditer(equation) if match["index"] and match["index"][0] not in "-*"]
    ranks = {len(sizes) for match in factors for sizes in sizes_of(match["name"])}
    if len(ranks) > 1:
        return
    for i in range(max(ranks, default=0)) if "[i]" in equation else (0,):
        left, right = (_sum(found[side], fields, sizes_of, i) for side in ("left", "right"))
        if left is None or right is None or _RELATIONS[found["relation"]](left, right):
            continue
        first = _FACTOR.match(found["left"])
        assert first
        path, arrays = first["name"], sizes_of(first["name"])
        if first["index"]:
            index = _index(first["index"], fields, i)
            path += f".Sizes[{index % len(arrays[0])}]" if arrays else f"[{index}]"
        shown = equation.replace("[i]", f"[{i}]")
        yield path, f"{shown} was expected, but {left} and {right} were provided"


def _sum(side: str, fields: OperatorFields, sizes_of: SizesOf, i: int) -> int | None:
    total = 0
    for product in side.split(" + "):
        values = [_value(factor, fields, sizes_of, i) for factor in product.split(" * ")]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        total += prod(known)
    return total


def _value(factor: str, fields: OperatorFields, sizes_of: SizesOf, i: int) -> int | None:
    if factor.isdecimal():
        return int(factor)
    found = _FACTOR.fullmatch(factor)
    assert found, factor
    value: Any = fields[found["name"]]
    if found["member"]:
        value = getattr(value, found["member"].lower())
    if not found["index"]:
        return None if value is None else int(value)
    arrays: Sequence[Sequence[int]] = sizes_of(found["name"])
    if not arrays and isinstance(value, tuple) and value and isinstance(value[0], int):
        arrays = [value]
    if found["index"] == "*":
        return sum(map(prod, arrays)) if arrays else None
    index = _index(found["index"], fields, i)
    if not arrays or any(not -len(array) <= index < len(array) for array in arrays):
        return None
    return sum(array[index] for array in arrays)


def _index(index: str, fields: OperatorFields, i: int) -> int:
    if index == "i":
        return i
    return int(index) if index.lstrip("-").isdecimal() else int(fields[index])
