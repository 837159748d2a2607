"""DirectML's operators: their values, the levels that bring them, and the fields of their structs.

``header.txt`` is generated from DirectML.h (microsoft/DirectX-Headers). It has a line for each operator: its value, its
name, the feature level that brings it, and its fields in C's order, such as ``U2 Repeats``. A letter is the type:

- ``t`` and ``o`` are pointers to a tensor and to an operator, ``T`` and ``O`` arrays of them
- ``u``, ``i``, ``f`` and ``b`` are UINT, INT, FLOAT and BOOL, ``U``, ``I`` and ``F`` arrays of the first three
- ``s`` is a pointer to a DML_SCALE_BIAS, ``z`` a DML_SIZE_2D, ``x`` a DML_SCALAR_UNION
- ``e`` is an enumerator, whose enumeration stands behind the name, after a colon

The number behind an array's letter is the index of the field that counts its entries; a pointer with ``?`` may be null.
Below the operators are the enumerations of their fields: the enumerators in order of their values, from 0 on, after the
level that brings them.

The file is read when the first operator's name is, or an operator other than Tile comes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, cached_property, lru_cache
from heapq import nlargest
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from dml_tile.directml.enums import FeatureLevel
from dml_tile.text import MAX_COMPARED, nearest

HEADER: Final = Path(__file__).with_name("header.txt")
OPERATOR_PREFIX: Final = "DML_OPERATOR_"
_ALIASES: Final = {"SCATTER_ELEMENTS": "SCATTER"}
_FAMILIES: Final = "(ACTIVATION|ELEMENT_?WISE)_"
"""The beginnings of names that are often left out."""
_MAX_ALIKE: Final = 8
"""The number of names compared letter by letter, which is slow: those that share the most pairs of letters."""
_FIELD: Final = r"([a-zA-Z])([0-9]*)(\??) (\w+):?(\w*)"


class Field(NamedTuple):
    """A field of an operator's struct, by its name in C."""

    name: str
    kind: str
    """One of the letters above."""
    counted_by: str = ""
    """The field that counts an array's entries."""
    is_optional: bool = False
    enumeration: str = ""
    """An enumerator's enumeration, without ``DML_``."""

    @property
    def is_tensor(self) -> bool:
        return self.kind in "tT"

    @property
    def is_operator(self) -> bool:
        return self.kind in "oO"

    @property
    def is_array(self) -> bool:
        return self.kind in "TOUIF"


class OperatorRow:
    """An operator of DirectML.h; ``fields_text`` has its fields in the words of ``header.txt``."""

    def __init__(self, value: int, name: str, level: FeatureLevel, fields_text: str) -> None:
        self.value, self.name, self.level, self.fields_text = value, name, level, fields_text

    @property
    def c_name(self) -> str:
        """The full C name."""
        return f"{OPERATOR_PREFIX}{self.name}"

    @property
    def struct(self) -> str:
        """The C name of the struct that describes it."""
        return f"DML_{self.name}_OPERATOR_DESC"

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The fields of the struct, in C's order."""
        found = [re.fullmatch(_FIELD, each) for each in self.fields_text.split(", ")]
        parts = [each.groups() for each in found if each]
        return tuple(
            Field(name, kind, parts[int(count)][3] if count else "", bool(optional), enumeration)
            for kind, count, optional, name, enumeration in parts
        )

    @cached_property
    def named(self) -> Mapping[str, Field]:
        """The fields by their names."""
        return {field.name: field for field in self.fields}

    @cached_property
    def tensor_fields(self) -> tuple[Field, ...]:
        """The fields that are tensors, or arrays of them."""
        return tuple(field for field in self.fields if field.is_tensor)

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        """The names of the fields that are tensors, or arrays of them."""
        return tuple(field.name for field in self.tensor_fields)

    @cached_property
    def enumerators(self) -> tuple[Field, ...]:
        """The fields that are enumerators."""
        return tuple(field for field in self.fields if field.enumeration)

    @cached_property
    def fused(self) -> tuple[Field, ...]:
        """The fields that are other operators, which are fused into it, or arrays of them."""
        return tuple(field for field in self.fields if field.is_operator)

    @cached_property
    def array_fields(self) -> tuple[Field, ...]:
        """The fields that are arrays."""
        return tuple(field for field in self.fields if field.is_array)

    @cached_property
    def arrays(self) -> Mapping[str, list[str]]:
        """The names of the arrays, by the field that counts the entries of each."""
        found: dict[str, list[str]] = {}
        for field in self.array_fields:
            found.setdefault(field.counted_by, []).append(field.name)
        return found

    @property
    def scalar_type(self) -> str:
        """The name of the field that has the data type of its DML_SCALAR_UNIONs."""
        return next(field.name for field in self.fields if field.enumeration == "TENSOR_DATA_TYPE")


class Enumeration(NamedTuple):
    """An enumeration of DirectML.h: the names of its values from 0 on, without their prefix, and their levels."""

    name: str
    names: tuple[str, ...]
    levels: tuple[FeatureLevel, ...]

    @property
    def prefix(self) -> str:
        return f"DML_{self.name}_"


@cache
def _sections() -> list[list[str]]:
    _, _, lines = HEADER.read_text(encoding="utf-8").partition("\n")  # its source comes first
    return [section.splitlines() for section in lines.split("\n\n")]


@cache
def operators() -> Mapping[int, OperatorRow]:
    """Return the operators by their values in DML_OPERATOR_TYPE, in order."""
    found = {}
    for line in _sections()[0]:
        head, _, strings = line.partition(": ")
        value, name, level = head.split(" ")
        found[int(value)] = OperatorRow(int(value), name, FeatureLevel.parse(level), strings)
    return found


@cache
def _by_names() -> Mapping[str, OperatorRow]:
    named = {operator.name: operator for operator in operators().values()}
    return named | {alias: named[name] for alias, name in _ALIASES.items()}


def operator_named(name: str) -> OperatorRow | None:
    """Return the operator of a name, in full or without its prefix; None for a name that is no operator's."""
    return _by_names().get(name.removeprefix(OPERATOR_PREFIX))


def operator_names() -> list[str]:
    """Return the names of all operators without their prefix, aliases among them."""
    return [*_by_names()]


@lru_cache(maxsize=64)
def nearest_operator_name(name: str) -> str:
    """Return the name most like that of no operator, in full if ``name`` is; empty if there is none.

    >>> nearest_operator_name("relu")
    'ACTIVATION_RELU'
    >>> nearest_operator_name("ELEMENTWISE_ADD")
    'ELEMENT_WISE_ADD'
    """
    prefix = OPERATOR_PREFIX if name.upper().startswith(OPERATOR_PREFIX) else ""
    short = name.upper().removeprefix(prefix)[:MAX_COMPARED]
    pairs, known = _pairs(short), _spellings(bool(re.match(_FAMILIES, short)))
    alike = nlargest(_MAX_ALIKE, known, lambda each: len(pairs & known[each][1]))
    return next((f"{prefix}{known[each][0]}" for each in nearest(short, alike)), "")


@cache
def _spellings(has_family: bool) -> dict[str, tuple[str, frozenset[str]]]:
    """Return the operators' names and their pairs of letters, by the name with or without its family."""
    found = {}
    for name in operator_names():
        spelt = name if has_family else re.sub(_FAMILIES, "", name)
        found[spelt] = name, _pairs(spelt)
    return found


def _pairs(text: str) -> frozenset[str]:
    return frozenset(map("".join, pairwise(text)))


def operator_name(value: int) -> str:
    """Return the full C name of an operator, or ``operator 1000`` for a value without one."""
    operator = operators().get(value)
    return operator.c_name if operator else f"operator {value}"


@cache
def enumerations() -> Mapping[str, Enumeration]:
    """Return the enumerations of operators' fields, by their names without ``DML_``."""
    found = {}
    for line in _sections()[1]:
        name, *words = line.split(" ")
        names, levels, level = [], [], ""
        for word in words:
            if word.endswith(":"):
                level = word[:-1]
            else:
                names.append(word)
                levels.append(FeatureLevel.parse(level))
        found[name] = Enumeration(name, tuple(names), tuple(levels))
    return found
