"""The DirectML operators that the provider creates, with their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from dml_tile.back_ends.descriptions.tensors import Tensor


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
