"""An operator other than Tile beside its table, and its tensors in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

from dml_tile.descriptors.operator import OperatorDesc, OperatorFields, spelling
from dml_tile.descriptors.tile import TensorDesc
from dml_tile.directml.operator_table import OperatorTable, operator_table
from dml_tile.directml.operators import Field, enumerations
from dml_tile.findings import Edit, Try
from dml_tile.geometry.layout import packed_strides
from dml_tile.rules.tensor import Operand, TensorView, view_of

INT_MAX: Final = 2**31 - 1
TAKEN_AS_AVERAGE: Final = "AVERAGE"
"""The function as which the runtime takes one above INT_MAX in REDUCE, the only operator with tables by enumerator."""


class OperatorView:
    """An operator's fields beside their documented and measured facts.

    ``fields`` are the values by their names in C. ``views`` has the tensors that are not null, by name: of an array's
    entry with an index. ``unusual_operands`` may break a rule of tensors. ``sizes`` are those of each field's tensors
    that are known, ``short`` the arrays of which entries are not known. ``activations`` are the operators that are
    fused into this one, after their paths.
    """

    def __init__(self, described: OperatorFields) -> None:
        self.fields, self.operator, self.table = described.values, described.operator, table_of(described)
        self.views = dict[str, TensorView]()
        self.by_field = dict[str, list[TensorView]]()
        self.sizes = dict[str, list[tuple[int, ...]]]()
        self.unusual_operands = list[Operand]()
        for field, name, tensor in _tensors(described):
            if tensor is None and field.is_optional:
                continue
            operand = Operand(name, tensor, self.table.is_output(field.name))
            view = view_of(operand)
            if view is None or not view.is_ordinary:
                self.unusual_operands.append(operand)
            if view is not None:
                self.views[name] = view
                self.by_field.setdefault(field.name, []).append(view)
                if view.sizes:
                    self.sizes.setdefault(field.name, []).append(view.sizes)
        known = {name: value for name, value in self.fields.items() if name not in self.operator.tensors} | self.sizes
        arrays = self.operator.array_fields
        self.short = {each.name for each in arrays if len(known.get(each.name) or ()) < self.fields[each.counted_by]}
        self.activations = [*self._activations()]

    def _activations(self) -> Iterator[tuple[str, OperatorDesc]]:
        for field in self.operator.fused:
            value = self.fields[field.name]
            if field.is_array:
                yield from ((f"{field.name}[{i}]", each) for i, each in enumerate(value or ()))
            elif value:
                yield field.name, value

    def named(self, name: str) -> Any:
        """Return a field's value; that of an enumerator as its name."""
        enumeration, value = self.operator.named[name].enumeration, self.fields[name]
        names = enumerations()[enumeration].names if enumeration else ()
        return names[value] if names and value < len(names) else value

    @cached_property
    def has_one_count(self) -> bool:
        """True if all tensors have the same number of dimensions."""
        return len({view.desc.dimension_count for view in self.views.values()}) == 1

    def of(self, tensor: str) -> list[TensorView]:
        """Return the tensors of a field that are not null: none, one, or an array's."""
        return self.by_field.get(tensor, [])


TENSOR_FIELDS: Final[dict[str, Callable[[TensorView], Any]]] = {
    "DataType": attrgetter("desc.data_type"),
    "DimensionCount": attrgetter("desc.dimension_count"),
    "Sizes": attrgetter("sizes"),
    "Strides": attrgetter("strides"),
}
"""Fields of tensors, by their names in C."""


def broadcast(small: TensorView, large: TensorView) -> Try | None:
    """Return the way out to repeat an input by strides of 0, where it has sizes of 1 for another tensor's larger."""
    if small.operand.is_output or not small.sizes or not large.sizes or len(small.sizes) > len(large.sizes):
        return None
    missing = (1,) * (len(large.sizes) - len(small.sizes))
    sizes, strides = missing + small.sizes, missing + (small.strides or packed_strides(small.sizes))
    if any(one not in (1, other) for one, other in zip(sizes, large.sizes, strict=True)):
        return None
    repeated = tuple([0 if size == 1 else stride for size, stride in zip(sizes, strides, strict=True)])
    edits = Edit(small.path("Sizes"), large.sizes), Edit(small.path("Strides"), repeated)
    return Try(f"give it {large.operand.name}'s Sizes, with strides of 0", edits=edits)


def viewed(fields: OperatorFields) -> OperatorView:
    """Return the view of fields, which is kept with them, since a check looks at an operator several times."""
    return fields.kept(OperatorView)


def table_of(fields: OperatorFields) -> OperatorTable:
    """Return an operator's table, which a field may choose; an empty table for an unknown choice."""
    operator = fields.operator
    table = operator_table(operator.name, operator.tensors)
    if not table.by:
        return table
    names = spelling(operator.named[table.by].enumeration).names
    value = fields[table.by]
    choice = TAKEN_AS_AVERAGE if value > INT_MAX else names[value] if value < len(names) else ""
    return operator_table(operator.name, operator.tensors, choice) if choice else OperatorTable()


def _tensors(fields: OperatorFields) -> Iterator[tuple[Field, str, TensorDesc | None]]:
    """Yield the tensors of an operator, in C's order, each after its field and its name: of an array, with an index."""
    values = fields.values
    for field in fields.operator.tensor_fields:
        if not field.is_array:
            yield field, field.name, values[field.name]
        else:
            for i, tensor in enumerate((values[field.name] or ())[: values[field.counted_by]]):
                yield field, f"{field.name}[{i}]", tensor


def tensors_of(fields: OperatorFields) -> tuple[dict[str, TensorDesc | None], dict[str, TensorDesc | None]]:
    """Return the inputs and the outputs of an operator by name; null tensors count in graphs and bindings too."""
    table = table_of(fields)
    tensors = dict[str, TensorDesc | None](), dict[str, TensorDesc | None]()
    for field, name, tensor in _tensors(fields):
        tensors[table.is_output(field.name)][name] = tensor
    return tensors
