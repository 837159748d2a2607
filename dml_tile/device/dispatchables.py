"""Operators, and the two kinds of dispatchables: compiled operators and initializers.

Pages: https://learn.microsoft.com/en-us/windows/win32/api/directml/ (nn-directml-idmlcompiledoperator,
nn-directml-idmloperatorinitializer, ns-directml-dml_binding_properties)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeAlias

from dml_tile.bindings.memory import Bytes
from dml_tile.bindings.slots import (
    INITIALIZER_INPUT,
    INITIALIZER_OUTPUT,
    INITIALIZER_PERSISTENT,
    PERSISTENT,
    TEMPORARY,
    TENSOR,
    Slot,
    SlotKind,
)
from dml_tile.descriptors.graph import GraphDesc
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields
from dml_tile.descriptors.tile import TensorDesc, TileOperatorDesc
from dml_tile.device.state import DeviceState
from dml_tile.directml.enums import ExecutionFlags, OperatorType
from dml_tile.directml.operators import operator_name
from dml_tile.directml.targets import Target
from dml_tile.execution.executor import mover_of_tile
from dml_tile.execution.mover import Mover
from dml_tile.geometry.layout import round_up_4
from dml_tile.rules.check import why_never_executed
from dml_tile.rules.device import INITIALIZER_RULES, InitializerObject
from dml_tile.rules.operator_view import tensors_of


@dataclass(frozen=True, slots=True)
class BindingProperties:
    """DML_BINDING_PROPERTIES; the sizes are in bytes."""

    required_descriptor_count: int
    temporary_resource_size: int
    persistent_resource_size: int


Kernel: TypeAlias = Callable[[Sequence[Bytes], Sequence[Bytes]], object]
"""Reads inputs and the persistent resource, and writes outputs and the temporary resource, in this order."""


@dataclass(frozen=True)
class CompiledPlan:
    """The properties of a compiled operator that follow from its descriptor and the target."""

    kernel: Kernel | None
    """None if its output is undefined, as of a tile that the runtime accepts by 32-bit arithmetic."""
    properties: BindingProperties
    input_slots: tuple[Slot, ...]
    output_slots: tuple[Slot, ...]
    initial_slots: tuple[Slot, ...]
    """The inputs at initialisation."""
    persistent_offsets: tuple[int, ...]
    """The offsets in the persistent resource of inputs that are OWNED_BY_DML."""


@lru_cache(maxsize=256)
def plan_of_operator(desc: OperatorDesc | TileOperatorDesc, target: Target) -> CompiledPlan:
    """Return the plan of an operator; one other than Tile is bound and initialised, and never executed."""
    kernel: Kernel | None = None
    if isinstance(desc, TileOperatorDesc):
        inputs, outputs = {"InputTensor": desc.input_tensor}, {"OutputTensor": desc.output_tensor}
        if not why_never_executed(desc, target):
            kernel = partial(_write_tile, mover_of_tile(desc))
    else:
        assert isinstance(desc.desc, OperatorFields)
        inputs, outputs = tensors_of(desc.desc)
    initial = _slots(inputs, INITIALIZER_INPUT)
    offsets, persistent = list[int](), 0
    for slot in initial:
        if slot.size_in_bytes:
            offsets.append(-(-persistent // slot.alignment) * slot.alignment)
            persistent = offsets[-1] + slot.size_in_bytes
    if target.level.runtime.rounds_persistent_sizes:
        persistent = round_up_4(persistent)
    properties = BindingProperties(len(inputs) + len(outputs), 0, persistent)
    slots = _slots(inputs, TENSOR), _slots(outputs, TENSOR), initial
    return CompiledPlan(kernel, properties, *slots, tuple(offsets))


def _write_tile(move: Mover, reads: Sequence[Bytes], writes: Sequence[Bytes]) -> None:
    move.write(reads[0], writes[0])


def _slots(tensors: Mapping[str, TensorDesc | None], kind: SlotKind) -> tuple[Slot, ...]:
    return tuple(Slot.tensor(name, tensor, kind) for name, tensor in tensors.items())


def require_tiles(desc: OperatorDesc | TileOperatorDesc | GraphDesc | None) -> None:
    """Raise NotImplementedError for an operator other than Tile, and for a graph that has one."""
    nodes = desc.nodes or () if isinstance(desc, GraphDesc) else ()
    for operator in (desc, *(node.operator for node in nodes if node is not None)):
        if isinstance(operator, OperatorDesc) and operator.type != OperatorType.TILE:
            raise NotImplementedError(f"{operator_name(operator.type)} cannot be executed: of operators, Tile alone is")


class Operator:
    """IDMLOperator: an operator that the device accepted."""

    def __init__(self, state: DeviceState, desc: OperatorDesc | TileOperatorDesc) -> None:
        self.state = state
        self.desc = desc


class CompiledOperator:
    """IDMLCompiledOperator: a tile or a graph, initialised once and executed any number of times."""

    def __init__(
        self,
        state: DeviceState,
        desc: OperatorDesc | TileOperatorDesc | GraphDesc,
        flags: ExecutionFlags,
        plan: CompiledPlan,
    ) -> None:
        self.state = state
        self.desc = desc
        self.flags = flags
        self.initialisations = 0
        """The number of initialisations; changed only while the device's lock is held."""
        self.persistent_address = 0
        """The address at which its initialisation wrote the persistent resource; 0 if it wrote none."""
        self.plan = plan
        self.input_slots = tuple((slot,) for slot in plan.input_slots)  # each takes a binding of its own
        self.output_slots = tuple((slot,) for slot in plan.output_slots)
        sizes, is_checked = plan.properties, not isinstance(desc, GraphDesc)
        self.persistent_slot = Slot.resource(PERSISTENT, sizes.persistent_resource_size, checked_by_runtime=is_checked)
        self.temporary_slot = Slot.resource(TEMPORARY, sizes.temporary_resource_size, checked_by_runtime=is_checked)

    @property
    def owns_input(self) -> bool:
        """True if an input is OWNED_BY_DML, and read from the persistent resource."""
        return self.plan.properties.persistent_resource_size > 0

    def get_binding_properties(self) -> BindingProperties:
        """Return what binding it takes; also works after the device was removed.

        For a graph of tiles these are bounds: DirectML needs the same or less, depending on what it fuses. For another
        operator than Tile they hold where DirectML makes one dispatch of it; where it makes several, it needs more.
        """
        return self.plan.properties


class OperatorInitializer:
    """IDMLOperatorInitializer: initialises compiled operators in one dispatch."""

    def __init__(self, state: DeviceState, operators: Iterable[CompiledOperator] | None, call: str) -> None:
        self.state = state
        self._set_operators(operators, call)
        self.persistent_slot = Slot.resource(INITIALIZER_PERSISTENT, 0)
        self.temporary_slot = Slot.resource(TEMPORARY, 0)

    def get_binding_properties(self) -> BindingProperties:
        """Return zeros; also works after the device was removed."""
        return BindingProperties(0, 0, 0)

    def reset(self, operators: Iterable[CompiledOperator] | None = ()) -> None:
        """Replace the operators. Binding tables keep their bindings; what the new operators need is bound anew.

        Also works after the device was removed. Raises DmlError for None (a null array), for None in the array, and for
        an object that is not compiled, or of another device; TypeError for any other object. Not thread-safe.
        """
        self._set_operators(operators, "Reset")

    def _set_operators(self, operators: Iterable[CompiledOperator] | None, call: str) -> None:
        if operators is None:
            self.state.require(call, INITIALIZER_RULES, None)
            raise AssertionError("a null array is refused by any contract")
        if not isinstance(operators, Iterable):
            raise TypeError(f"a sequence of operators was expected, not a {type(operators).__name__}")
        operators = tuple(operators)
        if not all(type(each) is CompiledOperator and each.state is self.state for each in operators):
            self.state.require(call, INITIALIZER_RULES, [self._object(operator) for operator in operators])
        self.state.record(call)
        self.operators = operators
        self.input_slots = tuple(
            tuple(slot._replace(name=f"operators[{i}].{slot.name}") for slot in operator.plan.initial_slots)
            for i, operator in enumerate(operators)
        )
        self.output_slots = tuple(
            (operator.persistent_slot._replace(name=f"operators[{i}].PersistentResource", kind=INITIALIZER_OUTPUT),)
            for i, operator in enumerate(operators)
        )

    def _object(self, operator: object) -> InitializerObject | None:
        if operator is None:
            return None
        if not isinstance(operator, CompiledOperator | Operator | OperatorInitializer):
            raise TypeError(f"a CompiledOperator was expected, not a {type(operator).__name__}")
        return InitializerObject(operator.state is self.state, isinstance(operator, CompiledOperator))


Dispatchable: TypeAlias = CompiledOperator | OperatorInitializer
"""An IDMLDispatchable."""
