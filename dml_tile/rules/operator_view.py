"""An operator other than Tile beside its table, and its tensors in their order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Final

from dml_tile.descriptors.operator import OperatorDesc, OperatorFields, spelling
from dml_tile.descriptors.tile import TensorDesc
from dml_tile.directml.enums import OWNED_BY_DML, FeatureLevel
from dml_tile.directml.operator_table import OperatorTable, Row, operator_table
from dml_tile.directml.operators import Field
from dml_tile.findings import BOTH, Basis
from dml_tile.rules.tensor import Operand, TensorView, ordinary_buffer, view_of

INT_MAX: Final = 2**31 - 1
TAKEN_AS_AVERAGE: Final = "AVERAGE"
"""How the runtime takes a function of REDUCE, the one operator with tables by an enumerator, that is above INT_MAX."""


class OperatorView:
    """An operator's fields beside what is documented and measured of them."""

    def __init__(self, fields: OperatorFields) -> None:
        self.fields, self.operator, self.table = fields, fields.operator, table_of(fields)
        self.operands = [
            Operand(name, tensor, self.table.is_output(field.name))
            for field, name, tensor in _tensors(fields)
            if tensor is not None or not field.is_optional
        ]
        self.views = {operand.name: view for operand in self.operands if (view := view_of(operand))}
        self._by_field: dict[str, list[TensorView]] = {}
        for name, view in self.views.items():
            self._by_field.setdefault(name.partition("[")[0], []).append(view)
        self.kinds = {
            (field, view.desc.data_type, view.desc.dimension_count)
            for field, views in self._by_field.items()
            for view in views
        }
        """The data types and dimension counts of tensors, after their fields."""
        self.sizes = {
            field: sizes
            for field, views in self._by_field.items()
            if (sizes := [each.sizes for each in views if each.sizes])
        }

    @cached_property
    def unusual_operands(self) -> list[Operand]:
        """The operands that may break a rule of tensors."""
        return [
            each for each in self.operands if not ordinary_buffer(each.tensor, 0 if each.is_output else OWNED_BY_DML)
        ]

    @cached_property
    def activations(self) -> list[tuple[str, OperatorDesc]]:
        """The operators that are fused into this one, after their paths."""
        found = list[tuple[str, OperatorDesc]]()
        for field in self.operator.fields:
            if field.kind == "o" and (activation := self.fields[field.name]):
                found.append((field.name, activation))
            elif field.kind == "O":
                found += [(f"{field.name}[{i}]", each) for i, each in enumerate(self.fields[field.name] or ())]
        return found

    def of(self, tensor: str) -> list[TensorView]:
        """Return the tensors of a field that are not null: none, one, or an array's."""
        return self._by_field.get(tensor, [])

    def documented(self, level: FeatureLevel) -> Row:
        """Return a level's documented row."""
        return self.table.documented(level) or {}

    def taken(self, level: FeatureLevel) -> Row:
        """Return the row that the runtime takes: measured, or else documented."""
        return self.table.measured(level) or self.documented(level)


def basis(is_documented: bool = True, is_checked: bool = True) -> Basis:
    """Return the basis of what a page says and the runtime looks at, as measured; that of a guard is inferred."""
    return _BASES[is_documented, is_checked]


_BASES: Final = {
    (True, True): BOTH,
    (True, False): Basis.DOCUMENTED,
    (False, True): Basis.RUNTIME,
    (False, False): Basis.INFERRED,
}


def broadcast_advice(small: TensorView, large: TensorView) -> str | None:
    """Return the suggestion to repeat an input by strides of 0, where it has sizes of 1 for another tensor's larger."""
    if small.operand.is_output or not small.sizes or not large.sizes:
        return None
    pairs = [*zip(reversed(small.sizes), reversed(large.sizes), strict=False)]
    is_repeated = len(small.sizes) <= len(large.sizes) and all(one in (1, other) for one, other in pairs)
    return f"give it {large.operand.name}'s Sizes, with strides of 0" if is_repeated else None


viewed: Final = lru_cache(maxsize=8)(OperatorView)
"""An OperatorView of fields; the last few are kept, since a check looks at an operator several times."""


def table_of(fields: OperatorFields) -> OperatorTable:
    """Return an operator's table, which a field may choose; an empty table for an unknown choice."""
    operator = fields.operator
    table = operator_table(operator.name, operator.tensors)
    if not table.by:
        return table
    names = spelling(operator.named[table.by]).names
    value = fields[table.by]
    choice = TAKEN_AS_AVERAGE if value > INT_MAX else names[value] if value < len(names) else ""
    return operator_table(operator.name, operator.tensors, choice) if choice else OperatorTable()


def _tensors(fields: OperatorFields) -> Iterator[tuple[Field, str, TensorDesc | None]]:
    """Yield the tensors of an operator, in C's order, each after its field and its name: of an array, with an index."""
    for field in fields.operator.fields:
        if field.kind == "t":
            yield field, field.name, fields[field.name]
        elif field.kind == "T":
            for i, tensor in enumerate((fields[field.name] or ())[: fields[field.counted_by]]):
                yield field, f"{field.name}[{i}]", tensor


def tensors_of(fields: OperatorFields) -> tuple[dict[str, TensorDesc | None], dict[str, TensorDesc | None]]:
    """Return the inputs and the outputs of an operator by name; null tensors count in graphs and bindings too."""
    table = table_of(fields)
    tensors = dict[str, TensorDesc | None](), dict[str, TensorDesc | None]()
    for field, name, tensor in _tensors(fields):
        tensors[table.is_output(field.name)][name] = tensor
    return tensors
