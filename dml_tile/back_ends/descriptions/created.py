"""The DirectML operators that the provider creates, with their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias

from dml_tile.back_ends.descriptions.refusals import NotDescribed
from dml_tile.back_ends.descriptions.tensors import Tensor
from dml_tile.directml.enums import UINT_MAX
from dml_tile.directml.operators import operator_named


class Described(NamedTuple):
    """A DirectML operator, by its name without prefix, with its fields; a tensor is a ``Tensor``, or None for null."""

    operator: str
    fields: Mapping[str, Any]

    @property
    def desc(self) -> dict[str, Any]:
        """The DML_OPERATOR_DESC, as ``OperatorDesc`` reads it."""
        return {"Type": self.operator, "Desc": {name: _plain(value) for name, value in self.fields.items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.field
    return [_plain(each) for each in value] if isinstance(value, list) else value


_RANGES: Final = dict.fromkeys("tTuUz", (0, UINT_MAX)) | dict.fromkeys("iI", (-(2**31), 2**31 - 1))
"""The least and the most that fields of UINTs and of INTs hold, by their kinds."""


def require_c_integers(described: Described) -> None:
    """Raise NotDescribed for an integer that its field in C cannot hold: what kernels make of it was not read.

    A tensor's are its sizes and strides.
    """
    row = operator_named(described.operator)
    assert row is not None
    for name, value in described.fields.items():
        least, most = _RANGES.get(row.named[name].kind, (-inf, inf))
        for integer in _integers(value):
            if not least <= integer <= most:
                raise NotDescribed(f"{integer} does not fit into its {name}")


def _integers(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, list | tuple | Mapping):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _integers(each)


Descriptions: TypeAlias = Sequence[Described]
"""A node's operators, in the provider's order."""


def operator(name: str, /, **fields: Any) -> Described:
    """Return an operator with these fields."""
    return Described(name, fields)


def unary(name: str, source: Tensor, result: Tensor, **fields: Any) -> Described:
    """Return an operator of one input and one output."""
    return operator(name, InputTensor=source, OutputTensor=result, **fields)


def binary(name: str, a: Tensor, b: Tensor, result: Tensor, **fields: Any) -> Described:
    """Return an element-wise operator of two inputs, by its name without ELEMENT_WISE_."""
    return operator(f"ELEMENT_WISE_{name}", ATensor=a, BTensor=b, OutputTensor=result, **fields)
