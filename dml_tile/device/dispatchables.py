"""Operators, and the two kinds of dispatchables: compiled operators and initializers.

Pages: https://learn.microsoft.com/en-us/windows/win32/api/directml/ (nn-directml-idmlcompiledoperator,
nn-directml-idmloperatorinitializer, ns-directml-dml_binding_properties)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from dml_tile.bindings.slots import (
    INITIALIZER_INPUT,
    INITIALIZER_OUTPUT,
    INITIALIZER_PERSISTENT,
    PERSISTENT,
    TEMPORARY,
    Slot,
)
from dml_tile.descriptors.tile import TileOperatorDesc, described
from dml_tile.device.command_list import Lifetime
from dml_tile.directml.enums import ExecutionFlags, FeatureLevel, TensorFlags
from dml_tile.directml.targets import Target
from dml_tile.execution.executor import mover_of_tile
from dml_tile.execution.mover import Mover
from dml_tile.geometry.layout import round_up_4
from dml_tile.rules.check import why_never_executed
from dml_tile.rules.device import INITIALIZER_RULES, InitializerObject, InitializerOperators

_DESCRIPTORS_OF_A_TILE: Final = 2
"""One for its input or its persistent resource, one for its output."""


@dataclass(frozen=True, slots=True)
class BindingProperties:
    """DML_BINDING_PROPERTIES; the sizes are in bytes."""

    required_descriptor_count: int
    temporary_resource_size: int
    persistent_resource_size: int


_NO_TEMPORARY: Final = Slot.resource("TemporaryResource", TEMPORARY, 0)
_INITIALIZER_PROPERTIES: Final = BindingProperties(0, 0, 0)
_INITIALIZER_PERSISTENT_SLOT: Final = Slot.resource("PersistentResource", INITIALIZER_PERSISTENT, 0)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The properties of a compiled operator that follow from its descriptor and the target."""

    move: Mover | None
    owns_input: bool
    properties: BindingProperties
    input_slots: tuple[Slot]
    output_slots: tuple[Slot]
    persistent_slot: Slot


@lru_cache(maxsize=256)
def _layout_of(desc: TileOperatorDesc, target: Target) -> _Layout:
    source, destination = described(desc)
    owns_input = bool(source.flags & TensorFlags.OWNED_BY_DML)
    persistent = source.total_tensor_size_in_bytes if owns_input else 0
    if target.feature_level >= FeatureLevel.DML_FEATURE_LEVEL_6_0:  # measured: 5_2 does not, 6_2 does
        persistent = round_up_4(persistent)
    return _Layout(
        None if why_never_executed(desc, target) else mover_of_tile(desc),
        owns_input,
        BindingProperties(_DESCRIPTORS_OF_A_TILE, 0, persistent),
        (Slot.tensor("InputTensor", source),),
        (Slot.tensor("OutputTensor", destination),),
        Slot.resource("PersistentResource", PERSISTENT, persistent),
    )


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
        layout = _layout_of(self.desc, self.lifetime.target)
        self.move = layout.move
        """None if its output is undefined: by 32-bit arithmetic, the runtime also accepts such tiles."""
        self.owns_input = layout.owns_input
        self.input_slots = layout.input_slots
        self.output_slots = layout.output_slots
        self.persistent_slot = layout.persistent_slot
        self.temporary_slot = _NO_TEMPORARY
        self._properties = layout.properties

    def get_binding_properties(self) -> BindingProperties:
        """Return the requirements of binding it; also works after the device was removed."""
        return self._properties


class OperatorInitializer:
    """IDMLOperatorInitializer: initialises compiled operators in one dispatch."""

    def __init__(self, lifetime: Lifetime, operators: Iterable[CompiledOperator] | None, call: str) -> None:
        self.lifetime = lifetime
        self._set_operators(operators, call)
        self.persistent_slot = _INITIALIZER_PERSISTENT_SLOT
        self.temporary_slot = _NO_TEMPORARY

    def get_binding_properties(self) -> BindingProperties:
        """Return zeros; also works after the device was removed."""
        return _INITIALIZER_PROPERTIES

    def reset(self, operators: Iterable[CompiledOperator] | None = ()) -> None:
        """Replace the operators. Binding tables keep what is bound to them; what the new operators need is bound anew.

        Also works after the device was removed. Raises DmlError for None, which stands for a null array, for None in
        it, and for an object that is not compiled, or of another device; TypeError for any other object. Not
        thread-safe.
        """
        self._set_operators(operators, "Reset")

    def _set_operators(self, operators: Iterable[CompiledOperator] | None, call: str) -> None:
        if operators is None:
            self.lifetime.require(call, INITIALIZER_RULES, InitializerOperators(None))
            raise AssertionError("a null array is refused by any contract")
        if not isinstance(operators, Iterable):
            raise TypeError(f"a sequence of operators was expected, not a {type(operators).__name__}")
        operators = tuple(operators)
        objects = InitializerOperators(tuple(self._object(operator) for operator in operators))
        self.lifetime.require(call, INITIALIZER_RULES, objects)
        self.lifetime.record(call)
        self.operators = operators
        self.input_slots = tuple(
            Slot.tensor(f"operators[{i}].InputTensor", described(operator.desc)[0], INITIALIZER_INPUT)
            for i, operator in enumerate(operators)
        )
        self.output_slots = tuple(
            Slot.resource(f"operators[{i}].PersistentResource", INITIALIZER_OUTPUT, size)
            for i, size in enumerate(op.get_binding_properties().persistent_resource_size for op in operators)
        )

    def _object(self, operator: CompiledOperator | None) -> InitializerObject | None:
        if operator is None:
            return None
        if not isinstance(operator, CompiledOperator | Operator | OperatorInitializer):
            raise TypeError(f"a CompiledOperator was expected, not a {type(operator).__name__}")
        return InitializerObject(operator.lifetime is self.lifetime, isinstance(operator, CompiledOperator))


Dispatchable: TypeAlias = CompiledOperator | OperatorInitializer
"""An IDMLDispatchable."""
