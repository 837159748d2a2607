"""Operators, and the two kinds of dispatchables: compiled operators and initializers.

Pages: https://learn.microsoft.com/en-us/windows/win32/api/directml/ (nn-directml-idmlcompiledoperator,
nn-directml-idmloperatorinitializer)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from dml_tile.bindings.slots import INITIALIZER_OUTPUT, INITIALIZER_PERSISTENT, PERSISTENT, TEMPORARY, Slot
from dml_tile.descriptors.graph import GraphDesc
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.device.plans import BindingProperties, CompiledPlan
from dml_tile.device.state import DeviceState
from dml_tile.directml.enums import ExecutionFlags
from dml_tile.rules.device import INITIALIZER_RULES, InitializerObject

Slots: TypeAlias = Mapping[str, Sequence[Sequence[Slot]]]
"""The slots of each DML_BINDING_DESC that a binding table takes, by the method that binds it."""


class Operator:
    """IDMLOperator: an operator that the device accepted."""

    def __init__(self, state: DeviceState, desc: OperatorDesc | TileOperatorDesc) -> None:
        self.state = state
        self.desc = desc


class CompiledOperator:
    """IDMLCompiledOperator: an operator or a graph, initialised once and executed any number of times."""

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
        sizes, is_checked = plan.properties, not isinstance(desc, GraphDesc)
        temporary = Slot.resource(TEMPORARY, sizes.temporary_resource_size, checked_by_runtime=is_checked)
        persistent = Slot.resource(PERSISTENT, sizes.persistent_resource_size, checked_by_runtime=is_checked)
        self.slots: Slots = {
            "BindInputs": [[slot] for slot in plan.input_slots],
            "BindOutputs": [[slot] for slot in plan.output_slots],
            "BindTemporaryResource": [[temporary]],
            "BindPersistentResource": [[persistent]],
        }

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
        self.state.require(call, INITIALIZER_RULES, [self._object(operator) for operator in operators])
        self.state.record(call)
        self.operators = operators
        inputs, outputs = [], []
        for i, operator in enumerate(operators):
            ((persistent,),) = operator.slots["BindPersistentResource"]
            bound = *operator.plan.initial_slots, persistent._replace(kind=INITIALIZER_OUTPUT)
            *initial, output = (slot._replace(name=f"operators[{i}].{slot.name}") for slot in bound)
            inputs.append(initial)
            outputs.append([output])
        self.slots: Slots = {
            "BindInputs": inputs,
            "BindOutputs": outputs,
            "BindTemporaryResource": [[Slot.resource(TEMPORARY, 0)]],
            "BindPersistentResource": [[Slot.resource(INITIALIZER_PERSISTENT, 0)]],
        }

    def _object(self, operator: object) -> InitializerObject | None:
        if operator is None:
            return None
        if not isinstance(operator, CompiledOperator | Operator | OperatorInitializer):
            raise TypeError(f"a CompiledOperator was expected, not a {type(operator).__name__}")
        return InitializerObject(operator.state is self.state, isinstance(operator, CompiledOperator))


Dispatchable: TypeAlias = CompiledOperator | OperatorInitializer
"""An IDMLDispatchable."""
