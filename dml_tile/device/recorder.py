"""The command recorder, which executes at once: there is no command list, and no queue to wait for.

Page: https://learn.microsoft.com/en-us/windows/win32/api/directml/nf-directml-idmlcommandrecorder-recorddispatch
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dml_tile.binding_rules import BIND_POINT_RULES, BINDING_PAIR_RULES
from dml_tile.device.dispatchables import CompiledOperator, Dispatchable, OperatorInitializer
from dml_tile.device.lifetime import Lifetime
from dml_tile.device.table import BindingTable
from dml_tile.dispatch_rules import (
    DISPATCH_RULES,
    INITIALIZATION_RULES,
    TABLE_USE_RULES,
    Dispatch,
    Initialization,
    TableUse,
)
from dml_tile.enums import ExecutionFlags
from dml_tile.executor import described, prepare_regions
from dml_tile.findings import Finding
from dml_tile.memory import Bytes
from dml_tile.resources import BufferBinding
from dml_tile.slots import BindingPair, BindPoint, Slot, Stage

_CALL: Final = "RecordDispatch"


@dataclass(frozen=True, slots=True)
class _Access:
    """What is bound to a slot that is read or written; ``region`` is None where that cannot be done."""

    slot: Slot
    binding: BufferBinding | None
    region: Bytes | None

    @classmethod
    def of(cls, slot: Slot, binding: BufferBinding | None) -> _Access:
        return cls(slot, binding, binding.region(slot.size_in_bytes) if binding is not None else None)

    def point(self, stage: Stage, unnoticed: str = "") -> BindPoint:
        return BindPoint(self.slot.name, stage == "initialisation", stage, self.binding is not None, unnoticed)


class CommandRecorder:
    """IDMLCommandRecorder. It may be used from many threads, with a binding table for each."""

    def __init__(self, lifetime: Lifetime) -> None:
        self.lifetime = lifetime

    def record_dispatch(self, dispatchable: Dispatchable | None, bindings: BindingTable | None) -> None:
        """Initialise operators, or execute one, with what is bound to a table that was made for it.

        What is wrong removes the device, and nothing is written. Where the device is held to the runtime alone, a
        dispatch without its bindings, between overlapping ranges, or past a buffer's end goes unnoticed as there; it
        writes nothing either. Raises DmlError where DirectML would crash, or if the device raises its removal,
        MemoryError where a bound buffer is larger than memory.
        """
        lifetime = self.lifetime
        if lifetime.removal is not None:
            return
        if dispatchable is None or bindings is None:
            lifetime.require(_CALL, DISPATCH_RULES, Dispatch(dispatchable is not None, bindings is not None))
            raise AssertionError("a null pointer is a crash by any contract")
        lifetime.require(_CALL, TABLE_USE_RULES, TableUse(bindings.dispatchable is not None))
        dispatch = Dispatch(
            own=dispatchable.lifetime is lifetime and bindings.lifetime is lifetime,
            same=bindings.dispatchable is dispatchable,
            current=not isinstance(dispatchable, OperatorInitializer) or bindings.resets == dispatchable.resets,
        )
        if findings := lifetime.findings(DISPATCH_RULES, dispatch):
            lifetime.remove(_CALL, findings)
        elif isinstance(dispatchable, CompiledOperator):
            self._execute(dispatchable, bindings)
        else:
            self._initialize(dispatchable, bindings)

    def _execute(self, compiled: CompiledOperator, table: BindingTable) -> None:
        source = (
            _Access.of(compiled.persistent_slot, table.persistent)
            if compiled.owns_input
            else _Access.of(compiled.input_slots[0], table.inputs[0])
        )
        output = _Access.of(compiled.output_slots[0], table.outputs[0])
        volatile = compiled.flags & ExecutionFlags.DESCRIPTORS_VOLATILE
        unnoticed = "DirectML does not notice: the descriptors are volatile" if volatile else ""
        points = [access.point("execution", unnoticed) for access in (source, output)]
        state = Initialization("dispatchable", compiled.initialisations, "execution")
        if not self._is_sound(points, [state], [source], [output]) or not compiled.is_executable:
            return
        if source.region is not None and output.region is not None:
            size = described(compiled.desc)[0].total_tensor_size_in_bytes  # a persistent resource may be larger
            prepare_regions(compiled.desc, source.region[:size], output.region, self.lifetime.padding).run()

    def _initialize(self, initializer: OperatorInitializer, table: BindingTable) -> None:
        slots = zip(initializer.input_slots, initializer.output_slots, strict=True)
        bound = zip(table.inputs, table.outputs, strict=True)
        owned = [
            (_Access.of(input_slot, source), _Access.of(output_slot, persistent))
            for (input_slot, output_slot), (source, persistent) in zip(slots, bound, strict=True)
            if input_slot.size_in_bytes
        ]
        points = [access.point("initialisation") for pair in owned for access in pair]
        reads, writes = [source for source, _ in owned], [persistent for _, persistent in owned]
        if self._is_sound(points, self._initialisations(initializer), reads, writes):
            for source, persistent in owned:
                if source.region is not None and persistent.region is not None:
                    persistent.region[: source.region.size] = source.region

    def _initialisations(self, initializer: OperatorInitializer) -> list[Initialization]:
        """How often each operator was initialised before now, which is written down."""
        states = []
        with self.lifetime.lock:
            for i, compiled in enumerate(initializer.operators):
                states.append(Initialization(f"operators[{i}]", compiled.initialisations, "initialisation"))
                compiled.initialisations += 1
        return states

    def _is_sound(
        self,
        points: Sequence[BindPoint],
        states: Sequence[Initialization],
        reads: Sequence[_Access],
        writes: Sequence[_Access],
    ) -> bool:
        """Whether bytes may be written; removes the device if that breaks a rule."""
        pairs = list(_overlaps(reads, writes))
        findings: list[Finding] = []
        for point in points:
            findings += self.lifetime.findings(BIND_POINT_RULES, point)
        for state in states:
            findings += self.lifetime.findings(INITIALIZATION_RULES, state)
        for pair in pairs:
            findings += self.lifetime.findings(BINDING_PAIR_RULES, pair)
        if findings:
            self.lifetime.remove(_CALL, findings)
        return not findings and not pairs


def _overlaps(reads: Sequence[_Access], writes: Sequence[_Access]) -> Iterator[BindingPair]:
    for i, write in enumerate(writes):
        for other in (*reads, *writes[:i]):
            regions = write.region, other.region
            if regions[0] is not None and regions[1] is not None and np.may_share_memory(regions[0], regions[1]):
                yield BindingPair(write.slot.name, other.slot.name, overlap=True)
