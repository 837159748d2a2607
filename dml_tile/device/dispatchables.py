"""Operators, and the two kinds of dispatchables: compiled operators and initializers.

Pages: https://learn.microsoft.com/en-us/windows/win32/api/directml/ (nn-directml-idmlcompiledoperator,
nn-directml-idmloperatorinitializer, ns-directml-dml_binding_properties)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from dml_tile.bindings.slots import (
    INITIALIZER_INPUT,
    INITIALIZER_OUTPUT,
    INITIALIZER_PERSISTENT,
    PERSISTENT,
    TEMPORARY,
    Slot,
)
from dml_tile.descriptors import TileOperatorDesc
from dml_tile.device.lifetime import Lifetime
from dml_tile.enums import ExecutionFlags, FeatureLevel, TensorFlags
from dml_tile.execution.executor import described, plan_of, why_never_executed
from dml_tile.geometry.layout import round_up_4
from dml_tile.rules.device import INITIALIZER_RULES, InitializerOperators

_DESCRIPTORS_OF_A_TILE: Final = 2
"""One for its input or its persistent resource, one for its output."""


@dataclass(frozen=True, slots=True)
class BindingProperties:
    """DML_BINDING_PROPERTIES; the sizes are in bytes."""

    required_descriptor_count: int
    temporary_resource_size: int
    persistent_resource_size: int


class Operator:
    """IDMLOperator: a tile that the device accepted."""

    def __init__(self, lifetime: Lifetime, desc: TileOperatorDesc) -> None:
        self.lifetime = lifetime
        self.desc = desc


class CompiledOperator:
    """IDMLCompiledOperator: a tile that is initialised, and then executed any number of times."""

    def __init__(self, operator: Operator, flags: ExecutionFlags) -> None:
        self.lifetime = operator.lifetime
        self.desc = operator.desc
        self.flags = flags
        self.initialisations = 0
        """The number of initialisations; changed only while the device's lock is held."""
        self.persistent_address = 0
        """The address at which its initialisation wrote the persistent resource; 0 if it wrote none."""
        source, destination = described(self.desc)
        self.owns_input = bool(source.flags & TensorFlags.OWNED_BY_DML)
        is_executable = not why_never_executed(self.desc, self.lifetime.target)
        self.plan = plan_of(self.desc) if is_executable else None
        """None if its output is undefined: by 32-bit arithmetic, the runtime also accepts such tiles."""
        persistent = source.total_tensor_size_in_bytes if self.owns_input else 0
        if self.lifetime.target.feature_level >= FeatureLevel.DML_FEATURE_LEVEL_6_0:  # measured: 5_2 does not, 6_2 does
            persistent = round_up_4(persistent)
        self._properties = BindingProperties(_DESCRIPTORS_OF_A_TILE, 0, persistent)
        self.input_slots = (Slot.of_tensor("InputTensor", source),)
        self.output_slots = (Slot.of_tensor("OutputTensor", destination),)
        self.persistent_slot = Slot.of_resource("PersistentResource", PERSISTENT, persistent)
        self.temporary_slot = Slot.of_resource("TemporaryResource", TEMPORARY, 0)

    def get_binding_properties(self) -> BindingProperties:
        """Return what binding it requires; also works after the device was removed."""
        return self._properties


class OperatorInitializer:
    """IDMLOperatorInitializer: initialises compiled operators in one dispatch."""

    def __init__(self, lifetime: Lifetime, operators: Iterable[CompiledOperator] | None, call: str) -> None:
        self.lifetime = lifetime
        self.resets = 0
        self._take(operators, call)
        self.persistent_slot = Slot.of_resource("PersistentResource", INITIALIZER_PERSISTENT, 0)
        self.temporary_slot = Slot.of_resource("TemporaryResource", TEMPORARY, 0)

    def get_binding_properties(self) -> BindingProperties:
        """Return zeros; also works after the device was removed."""
        return BindingProperties(0, 0, 0)

    def reset(self, operators: Iterable[CompiledOperator] | None = ()) -> None:
        """Replace the operators. Binding tables that were made before cannot be used any more.

        Also works after the device was removed. Raises DmlError for None, which stands for a null array, and for an
        operator of another device, unless the device's ``against`` is ``"runtime"``; TypeError for anything but
        compiled operators. Not thread-safe.
        """
        self._take(operators, "Reset")
        self.resets += 1

    def _take(self, operators: Iterable[CompiledOperator] | None, call: str) -> None:
        if operators is None:
            self.lifetime.require(call, INITIALIZER_RULES, InitializerOperators(None))
            raise AssertionError("a null array is refused by any contract")
        if not isinstance(operators, Iterable):
            raise TypeError(f"a sequence of operators was expected, not a {type(operators).__name__}")
        operators = tuple(operators)
        for operator in operators:
            if not isinstance(operator, CompiledOperator):
                raise TypeError(f"a CompiledOperator was expected, not a {type(operator).__name__}")
        targets = InitializerOperators(tuple(operator.lifetime is self.lifetime for operator in operators))
        self.lifetime.require(call, INITIALIZER_RULES, targets)
        self.operators = operators
        self.input_slots = tuple(
            Slot.of_tensor(f"operators[{i}].InputTensor", described(operator.desc)[0], INITIALIZER_INPUT)
            for i, operator in enumerate(operators)
        )
        self.output_slots = tuple(
            Slot.of_resource(f"operators[{i}].PersistentResource", INITIALIZER_OUTPUT, size)
            for i, size in enumerate(op.get_binding_properties().persistent_resource_size for op in operators)
        )


Dispatchable: TypeAlias = CompiledOperator | OperatorInitializer
"""An IDMLDispatchable."""
