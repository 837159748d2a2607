"""Equations between Sizes and other fields, such as "OutputTensor[i] = InputTensor[i] + StartPadding[i]".

Each side is an expression in Python's syntax of numbers, enumerators, fields, their members (``ScaleSize.Height``), and
entries of arrays and of tensors' Sizes; ``i`` is each index that the first of them has. Functions are those of
``_FUNCTIONS``. Behind ", modulo 2^32" are equations that the runtime computes in 32 bits, and the page does not.

An equation says nothing if a value is missing, or if tensors whose dimensions are counted from the first differ in
their number of dimensions.
"""

from __future__ import annotations

import ast
import operator as comparisons
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import inf, prod
from typing import Any, Final, NamedTuple

from dml_tile.directml.operators import Operator, enumerations
from dml_tile.rules.operator_view import OperatorView

EQUATION: Final = re.compile(r"(?P<left>.+?) (?P<relation>=|<=|<|>=|>) (?P<right>.+?)(?P<modulo>, modulo 2\^32)?")
_BROKEN_IF: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": comparisons.ne,
    "<=": comparisons.gt,
    "<": comparisons.ge,
    ">=": comparisons.lt,
    ">": comparisons.le,
}
"""The opposite of each relation, so that nothing is said of a NaN."""
_WORDS: Final = {"=": "", "<=": "at most ", "<": "less than ", ">=": "at least ", ">": "more than "}
_PLAIN: Final = re.compile(r"\w+(\[[^]]*\])?")
"""A field or an entry of one, which a message does not repeat after its path."""
_WRAP: Final = 2**32


def _uint32(number: int) -> int:
    return number % _WRAP


def without_leading_ones(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return sizes without the ones before the first larger one."""
    first = next((i for i, size in enumerate(sizes) if size != 1), len(sizes))
    return tuple(sizes[first:])


def _rank(sizes: Sequence[int]) -> int:
    return len(without_leading_ones(sizes))


_FUNCTIONS: Final[dict[str, Any]] = {
    "abs": abs,
    "Infinity": inf,
    "len": len,
    "max": max,
    "min": min,
    "prod": prod,
    "rank": _rank,
    "sum": sum,
    "uint32": _uint32,
    "without_leading_ones": without_leading_ones,
}


class Broken(NamedTuple):
    """A place at which an equation does not hold."""

    path: str
    message: str
    is_taken: bool
    """It holds modulo 2^32, which is all that the runtime looks at."""


class _Equation(NamedTuple):
    names: tuple[str, ...]
    sides: Callable[..., tuple[Any, Any, int | None]]
    """Takes the values of the names and ``i``; returns the sides, and the index that is blamed."""
    is_broken: Callable[[Any, Any], bool]
    blamed: str
    """The first field."""
    suffix: str
    """What of it is blamed, where not an entry."""
    aligned: tuple[str, ...]
    """The tensors whose dimensions are counted from the first."""
    is_of_each: bool
    is_modulo: bool


def names_in(expression: str) -> tuple[str, ...]:
    """Return the names in an expression, without functions, in their order."""
    return tuple(dict.fromkeys(node.id for node in _nodes(expression) if node.id not in _FUNCTIONS))


def _nodes(expression: str) -> list[ast.Name]:
    found = [node for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)]
    return sorted(found, key=lambda node: node.col_offset)


def function_of(names: tuple[str, ...], *expressions: str) -> Callable[..., Any]:
    """Return a function of values by name that returns those of expressions, which are the package's own."""
    source = f"lambda {', '.join(names)}: ({', '.join(expressions)})"
    source = re.sub(r"\.[A-Z]", lambda found: found[0].lower(), source)  # members, which Size2D spells as Python does
    function: Callable[..., Any] = eval(source, {"__builtins__": {}, **_FUNCTIONS})  # noqa: S307
    return function


@cache
def _parsed(equation: str) -> _Equation:
    found = EQUATION.fullmatch(equation)
    assert found, equation
    left, right = found["left"], found["right"]
    names = tuple(name for name in names_in(f"({left}), ({right})") if name != "i")
    blamed = names_in(left)[0]
    index, suffix, aligned = "None", "", list[str]()
    for node in ast.walk(ast.parse(f"({left}), ({right})", mode="eval")):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            if index == "None" and node.value.id == blamed:
                index = ast.unparse(node.slice)
            if not isinstance(node.slice, ast.UnaryOp):
                aligned.append(node.value.id)
        if isinstance(node, ast.Call) and not suffix and ast.unparse(node.args[0]) == blamed:
            suffix = ".DimensionCount" if ast.unparse(node.func) == "len" else ".Sizes"
    return _Equation(
        names,
        function_of((*names, "i"), left, right, index),
        _BROKEN_IF[found["relation"]],
        blamed,
        suffix,
        tuple(dict.fromkeys(aligned)),  # of an array of tensors too, all must have the same number
        "i" in names_in(f"({left}), ({right})"),
        found["modulo"] is not None,
    )


class _Entries:
    """The Sizes of an array of tensors; an index gives that size of each."""

    def __init__(self, sizes: Sequence[Sequence[int]]) -> None:
        self._sizes = sizes

    def __getitem__(self, index: int) -> list[int]:
        return [sizes[index] for sizes in self._sizes]


def value_of(op: OperatorView, name: str) -> Any:
    """Return a field: a tensor's Sizes, an array's counted entries, or a number; None where it is missing."""
    field = op.operator.named.get(name)
    if field is None:
        return _enumerator(op.operator, name)
    if field.is_tensor:
        sizes = op.sizes.get(name)
        return None if sizes is None else sizes[0] if field.kind == "t" else _Entries(sizes)
    value = op.fields[name]
    return value[: op.fields[field.counted_by]] if field.is_array and value is not None else value


@cache
def _enumerator(operator: Operator, name: str) -> int | None:
    known = [enumerations()[field.enumeration].names for field in operator.fields if field.kind == "e"]
    return next((names.index(name) for names in known if name in names), None)


def violations(equation: str, op: OperatorView) -> Iterator[Broken]:
    """Yield the places that break an equation."""
    parsed = _parsed(equation)
    values = [value_of(op, name) for name in parsed.names]
    if None in values:
        return
    if len(parsed.aligned) > 1 and len({len(each) for name in parsed.aligned for each in op.sizes.get(name, ())}) > 1:
        return
    count = len(values[parsed.names.index(parsed.blamed)]) if parsed.is_of_each else 1
    for i in range(count):
        try:
            left, right, index = parsed.sides(*values, i)
        except (LookupError, ArithmeticError):
            continue
        if parsed.is_broken(left, right):
            path = parsed.blamed + parsed.suffix
            if index is not None:
                sizes = op.sizes.get(parsed.blamed)
                path += f".Sizes[{index % len(sizes[0])}]" if sizes else f"[{index}]"
            said = equation.replace("[2 + i]", f"[{i + 2}]").replace("[i]", f"[{i}]") if parsed.is_of_each else equation
            yield Broken(path, _message(said, left, right), parsed.is_modulo and (left - right) % _WRAP == 0)


def _message(equation: str, left: float, right: float) -> str:
    """Return what the sides of a broken equation are; of an index in brackets, only its value."""
    found = EQUATION.fullmatch(equation)
    assert found, equation
    given = f"{left} was provided" if _PLAIN.fullmatch(found["left"]) else f"{found['left']} is {left}"
    wanted = found["right"] if not names_in(found["right"]) else f"{found['right']} = {right}"
    reason = ""
    if " if " in found["right"]:
        wanted, reason = str(right), "" if found["right"][0] == "(" else f": {found['right']}"
    return f"{given}, but {_WORDS[found['relation']]}{wanted} was expected{reason}"
