"""An operator other than Tile beside what its table says of it at a target; its tensors in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from dml_tile.descriptors.operator import OperatorFields, spelling
from dml_tile.descriptors.tile import TensorDesc
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.operator_table import OperatorTable, Row, operator_table
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis
from dml_tile.rules.tensor import Operand, TensorView, view_of


class OperatorView:
    """An operator's fields beside what is documented and measured of them at a target."""

    def __init__(self, fields: OperatorFields, target: Target) -> None:
        self.fields, self.operator, self.target = fields, fields.operator, target
        self.table = table_of(fields)
        self.operands = [*operands_of(fields, target.feature_level)]
        self.views = {operand.name: view for operand in self.operands if (view := view_of(operand))}
        self._sizes: dict[str, list[Sequence[int]]] = {}

    def of(self, tensor: str) -> list[TensorView]:
        """Return the tensors that are described of a field: one, those of an array, or none."""
        if tensor in self.views:
            return [self.views[tensor]]
        return [view for name, view in self.views.items() if name.startswith(f"{tensor}[")]

    def sizes_of(self, tensor: str) -> list[Sequence[int]]:
        """Return the Sizes of the tensors that are described of a field."""
        if tensor not in self._sizes:
            self._sizes[tensor] = [view.sizes for view in self.of(tensor) if view.sizes]
        return self._sizes[tensor]

    @cached_property
    def documented(self) -> Row:
        """The row of the target's level."""
        return self.table.documented(self.target.feature_level) or {}

    @cached_property
    def measured(self) -> Row:
        """What the runtime takes."""
        return self.table.measured(self.target.feature_level) or self.documented

    def basis(self, field: str = "", *, documented: bool = True, refused: bool = True) -> Basis:
        """Return the basis of a finding that is documented, and on which the runtime refuses."""
        basis = Basis.DOCUMENTED if documented else Basis(0)
        if refused and field not in self.table.unchecked:
            basis |= Basis.RUNTIME if self.target.level.operators_are_measured else Basis.INFERRED
        return basis


def table_of(fields: OperatorFields) -> OperatorTable:
    """Return the table of an operator, which one of its fields may choose; an empty one for an unknown choice."""
    operator = fields.operator
    tensors = [field.name for field in operator.fields if field.is_tensor]
    table = operator_table(operator.name, tensors)
    if not table.by:
        return table
    (chooser,) = (field for field in operator.fields if field.name == table.by)
    names = spelling(chooser).names
    value = fields[table.by]
    return operator_table(operator.name, tensors, names[value]) if value < len(names) else OperatorTable()


def operands_of(fields: OperatorFields, level: FeatureLevel) -> Iterator[Operand]:
    """Yield the tensors of an operator, without those that may be null and are."""
    table = table_of(fields)
    for field in fields.operator.fields:
        value = fields[field.name]
        is_optional = field.is_optional or table.optional_from.get(field.name, level + 1) <= level
        if field.kind == "t" and not (value is None and is_optional):
            yield Operand(field.name, value, table.is_output(field.name))
        elif field.kind == "T" and value is not None:
            for i, tensor in enumerate(value[: fields[field.counted_by]]):
                yield Operand(f"{field.name}[{i}]", tensor, table.is_output(field.name))


def tensors_of(fields: OperatorFields) -> tuple[list[TensorDesc | None], list[TensorDesc | None]]:
    """Return the inputs and the outputs of an operator, by which edges of graphs count them: null ones count too."""
    table = table_of(fields)
    tensors = list[TensorDesc | None](), list[TensorDesc | None]()
    for field in fields.operator.fields:
        if field.is_tensor:
            value = fields[field.name]
            of_field = [value] if field.kind == "t" else (value or ())[: fields[field.counted_by]]
            tensors[table.is_output(field.name)].extend(of_field)
    return tensors
