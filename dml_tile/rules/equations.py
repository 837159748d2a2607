"""Equations, such as "Axis < DimensionCount of InputTensor" and "OutputTensor[i] = InputTensor[i] + StartPadding[i]".

Each side is an expression in Python's syntax of numbers, enumerators, fields, their members (``ScaleSize.Height``),
entries of arrays and of tensors' Sizes, and a tensor's DimensionCount, DataType or Strides; ``i`` is each index that
the first of them has. Functions are those of ``FUNCTIONS``. Behind " where " is a condition, without which an equation
says nothing. Behind ", modulo 2^32" are equations that the runtime computes in 32 bits, and the page does not; behind
"; " is the right side in words.

An equation says nothing either if a value is missing, such as one of a short array, or if tensors whose dimensions are
counted from the first differ in their number of dimensions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import inf, isfinite, isnan, prod
from types import CodeType
from typing import Any, Final, NamedTuple

from dml_tile.descriptors.tile import DATA_TYPE
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.operator_table import Basis, Sentence
from dml_tile.directml.operators import OperatorRow, enumerations
from dml_tile.findings import Try, Violation, set_to
from dml_tile.geometry.layout import packed_strides
from dml_tile.rules.operator_view import TENSOR_FIELDS, OperatorView
from dml_tile.rules.tensor import counted, sized
from dml_tile.text import braced

EQUATION: Final = re.compile(
    r"(?P<left>.+?) (?P<relation>=|!=|<=|<|>=|>|in) (?P<right>.+?)"
    r"(?: where (?P<where>.+?))?(?P<modulo>, modulo 2\^32)?(?:; (?P<words>.+))?"
)
_WORDS: Final = {"<=": "at most ", "<": "less than ", ">=": "at least ", ">": "more than "}
_OF: Final = re.compile(r"(DimensionCount|DataType|Strides|Values) of (\w+)")
_NAME: Final = re.compile(r"(?<![\w.])[A-Za-z]\w*")
_ENTRY: Final = re.compile(r"(\w+)\[([^][:]+)\]")
_BRANCHES: Final = re.compile(r"\((.+) if (.+) else (.+)\)")
_KEYWORDS: Final = {"and", "else", "for", "if", "in", "not", "or"}
_WRAP: Final = 2**32


def without_leading_ones(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return sizes without the ones before the first larger one."""
    first = next((i for i, size in enumerate(sizes) if size != 1), len(sizes))
    return tuple(sizes[first:])


def _windows(*arrays: Sequence[int]) -> int:
    """Return how many windows fit into padded sizes, beginning a stride apart."""
    each = zip(*arrays, strict=False)
    return prod(
        (size + start + end - (window - 1) * dilation - 1) // stride + 1
        for size, window, stride, dilation, start, end in each
    )


FUNCTIONS: Final[dict[str, Any]] = {
    "__builtins__": {},
    "Infinity": inf,
    "isnan": isnan,
    "packed": packed_strides,
    "rank": lambda sizes: len(without_leading_ones(sizes)),
    "uint32": lambda number: number % _WRAP,
    "windows": _windows,
    "without_leading_ones": without_leading_ones,
    **{function.__name__: function for function in (abs, all, len, max, min, prod, range, sum)},
}


class Requirement(NamedTuple):
    """A requirement on fields or Sizes."""

    test: str
    """An expression of values by their names that is true where it is met, and may bind a name."""
    violations: Callable[[OperatorView, dict[str, Any]], Iterator[Violation]]
    """Yields where it is not met. Takes the values that the test has, and binds its names in them."""


@cache
def names_in(expression: str) -> frozenset[str]:
    """Return the names in an expression, without functions."""
    return frozenset(_NAME.findall(expression)) - FUNCTIONS.keys() - _KEYWORDS


def with_names(text: str) -> str:
    """Return a sentence with one name for each field of a tensor: ``DataType_of_InputTensor``."""
    return _OF.sub(r"\1_of_\2", text)


def is_met(condition: str, value: Callable[[str], Any]) -> bool:
    """Return True if a condition of the package's own holds, of values by their names; not where one is missing.

    Values of None are those of what is not known; the name of a tensor's field is that of ``with_names``.
    """
    expression = _expression(condition)
    scope = FUNCTIONS | {name: value(name) for name in names_in(expression)}
    try:
        return bool(eval(code(expression), scope))  # noqa: S307
    except (LookupError, ArithmeticError, TypeError):
        return False


@cache
def _expression(condition: str) -> str:
    return re.sub("(?<![<>!=]) = ", " == ", with_names(condition))


@cache
def code(expression: str) -> CodeType:
    """Return the code of an expression, whose members become those of Python's structs."""
    return compile(re.sub(r"\.[A-Z]", lambda found: found[0].lower(), expression), "operators.toml", "eval")


def evaluated(expression: str, values: dict[str, Any]) -> Any:
    """Return the value of an expression, which is the package's own."""
    return eval(code(expression), FUNCTIONS, values)  # noqa: S307


class _Entries:
    """The Sizes of an array of tensors; an index gives that size of each."""

    def __init__(self, sizes: Sequence[Sequence[int]]) -> None:
        self.each = sizes

    def __getitem__(self, index: int) -> list[int]:
        return [sizes[index] for sizes in self.each]


def value_of(op: OperatorView, name: str) -> Any:
    """Return a field: a tensor's Sizes, an array's counted entries, or a number; None for a tensor without Sizes.

    ``DataType_of_InputTensor`` is a field of that tensor.
    """
    field = op.operator.named.get(name)
    if field is None:
        of_tensor, of, tensor = name.partition("_of_")
        return TENSOR_FIELDS[of_tensor](op.of(tensor)[0]) if of else enumerators(op.operator).get(name)
    if field.is_tensor:
        sizes = op.sizes.get(name)
        return None if sizes is None else _Entries(sizes) if field.is_array else sizes[0]
    value = op.fields[name]
    return (value or ())[: op.fields[field.counted_by]] if field.is_array else value


@cache
def enumerators(operator: OperatorRow) -> Mapping[str, int]:
    """Return the enumerators that the fields of an operator may be."""
    known = [enumerations()[field.enumeration].names for field in operator.enumerators]
    return {name: value for names in reversed(known) for value, name in enumerate(names)}


def steps_of_equations(
    sentences: Iterable[Sentence], operator: OperatorRow, ranks: Mapping[str, int]
) -> Iterator[Requirement]:
    """Yield the steps of equations between tensors that have these dimension counts, where tensors are counted.

    ``ranks`` has the arrays of numbers too that are not short, with 0.
    """
    for sentence in sentences:
        equation = _equation(sentence, operator)
        if equation.needed <= ranks.keys() and len({ranks[name] for name in equation.aligned}) < 2:
            yield Requirement(equation.test, equation.violations)


class _Equation:
    """A sentence: its test, the tensors and arrays that it needs, and a violation's message."""

    def __init__(self, sentence: Sentence, operator: OperatorRow) -> None:
        text, self._basis, _ = sentence
        found = EQUATION.fullmatch(with_names(text))
        assert found, text
        self._left, self._right, self._words = found["left"], found["right"], found["words"] or ""
        self._relation, self._is_modulo = found["relation"], bool(found["modulo"])
        where, sides = found["where"] or "1", f"({self._left}), ({self._right})"
        names, entries = names_in(f"{sides}, ({where})"), _ENTRY.findall(f"{sides}, ({where})")
        self._sized = names & {*operator.tensors}
        arrays = {field.name for field in operator.array_fields if field.name in names}
        self.needed = self._sized | arrays | {tensor for _, tensor in _OF.findall(text)}
        self.aligned = self._sized & {name for name, index in entries if index[0] != "-"}
        self._blamed = next(name for name in _NAME.findall(self._left) if name in operator.named)
        self._index = next((index for name, index in entries if name == self._blamed), "")
        self._is_of_each = "i" in names
        field = operator.named[self._blamed]
        self._names: Sequence[str] = ()
        if field.enumeration and names & enumerators(operator).keys():  # another rule refuses an unknown value
            self._names = enumerations()[field.enumeration].names
            where = f"{self._blamed} < {len(self._names)}"
        holds = f"({self._left}) {'==' if self._relation == '=' else self._relation} ({self._right})"
        self._found = f"({where}) and not ({holds}) and ({sides})"
        loops = [f"for {self._blamed} in {self._blamed}.each"] * (field.kind == "T")
        loops += [f"for i in range(len({self._blamed}))"] * self._is_of_each
        fits = f"({holds})" if where == "1" else f"not ({where}) or ({holds})"
        self.test = f"all({fits} {' '.join(loops)})" if loops else fits

    def violations(self, op: OperatorView, values: dict[str, Any]) -> Iterator[Violation]:
        name, blamed = self._blamed, values[self._blamed]
        is_array = isinstance(blamed, _Entries)
        for k, each in enumerate(blamed.each if is_array else [blamed]):
            scope = values | {name: each}
            for i in range(len(each)) if self._is_of_each else (0,):
                scope["i"] = i
                try:
                    found = evaluated(self._found, scope)
                except (LookupError, ArithmeticError):
                    continue
                if found:
                    yield self._violation(op, f"{name}[{k}]" if is_array else name, scope, *found)

    def _violation(self, op: OperatorView, path: str, scope: dict[str, Any], left: Any, right: Any) -> Violation:
        sizes = scope[self._blamed] if self._blamed in self._sized else ()
        if self._index:
            index = evaluated(self._index, scope)
            path += f".Sizes[{index % len(sizes)}]" if sizes else f"[{index}]"
        elif sizes:
            path += ".DimensionCount" if self._left.startswith("len(") else ".Sizes"
        is_plain = self._words or re.fullmatch(r"\w+(\[[^]]*\])?", self._left)
        given = f"{shown(left)} was provided" if is_plain else f"{_told(self._left, op, scope)} is {left}"
        choices = self._right[1:-1].split(", ") if self._relation == "in" else [self._right]
        if self._words:
            wanted = shown(right)
        elif self._relation == "!=":
            wanted = "another number"
        elif self._names:
            given, wanted = f"{self._names[left]} was provided", f"one of {', '.join(choices)}"
        else:
            pairs = [(_told(each, op, scope), shown(evaluated(each, scope))) for each in choices]
            wanted = " or ".join(text if text in (value, "Infinity") else f"{text} = {value}" for text, value in pairs)
            wanted = _WORDS.get(self._relation, "") + wanted
        message = f"{given}, but {wanted} was expected{self._words and f': {self._words}'}"
        is_taken = self._is_modulo and (left - right) % _WRAP == 0
        basis = Basis.DOCUMENTED if is_taken else self._basis
        return Violation(path, message, basis=basis, edit=self._edit(op, path, right))

    def _edit(self, op: OperatorView, path: str, right: Any) -> Try | None:
        """Return the way out to give the field its expected value, or a bound of it, if there is one."""
        if self._relation == "in" and len(right) == 2 and right[0] == 1:  # one for each, or one for all
            right = right[1]
        elif self._relation not in ("=", "<=", ">="):
            return None
        tensor, _, field = path.rpartition(".")
        if field == "DimensionCount" and tensor:
            return counted(op.views[tensor], right)
        if field == "Sizes" and isinstance(right, tuple) and self._left == f"without_leading_ones({self._blamed})":
            view = op.views[tensor]
            return sized(view, (1,) * (view.desc.dimension_count - len(right)) + right)
        is_value = re.fullmatch(r"\w+(\[[^]]*\])?", self._left) and isinstance(right, int | float) and isfinite(right)
        return set_to(right, path) if is_value else None


_equation: Final = cache(_Equation)


def shown(value: Any) -> str:
    """Return a field's value as messages show it."""
    if isinstance(value, TensorDataType):
        return str(DATA_TYPE.write(value))
    return braced(value) if isinstance(value, tuple) else str(value)


def _told(expression: str, op: OperatorView, scope: dict[str, Any]) -> str:
    """Return an expression in C names, with the branch that is taken, and the indices of entries."""

    def entry(found: re.Match[str]) -> str:
        name, index = found[1], evaluated(found[2], scope)
        sizes = op.sizes.get(name)
        return f"{name}.Sizes[{index % len(sizes[0])}]" if sizes else f"{name}[{index}]"

    if branches := _BRANCHES.fullmatch(expression):
        expression = branches[1] if evaluated(branches[2], scope) else branches[3]
    expression = re.sub(r"\blen\((\w+)\)", r"\1.DimensionCount", _ENTRY.sub(entry, expression))
    expression = re.sub(r"(\w+)_of_(\w+)", r"\2.\1", expression)
    return re.sub(r"\b(\w+Tensors?)\b(?![.[])", r"\1.Sizes", expression)
