"""The command recorder. It executes at once: there is no command list and no queue.

Page: https://learn.microsoft.com/en-us/windows/win32/api/directml/nf-directml-idmlcommandrecorder-recorddispatch
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dml_tile.bindings.memory import Bytes
from dml_tile.bindings.resources import BufferBinding, Span
from dml_tile.bindings.slots import BindingPair, BindingStage, BindPoint, Slot
from dml_tile.device.dispatchables import CompiledOperator, Dispatchable, Operator, OperatorInitializer
from dml_tile.device.lifetime import Lifetime
from dml_tile.device.table import BindingTable
from dml_tile.enums import ExecutionFlags
from dml_tile.execution.executor import bind_regions
from dml_tile.findings import Finding
from dml_tile.rules.binding import BIND_POINT_RULES, BINDING_PAIR_RULES
from dml_tile.rules.dispatch import (
    DISPATCH_RULES,
    INITIALIZATION_RULES,
    PERSISTENCE_RULES,
    TABLE_USE_RULES,
    Dispatch,
    Initialization,
    Persistence,
    TableUse,
)

_CALL: Final = "RecordDispatch"


@dataclass(frozen=True, slots=True)
class _Access:
    """A slot that a dispatch reads or writes, and what is bound to it."""

    slot: Slot
    binding: BufferBinding | None

    def point(self, stage: BindingStage, unnoticed: str = "") -> BindPoint:
        return BindPoint(self.slot.name, stage == "initialisation", stage, self.binding is not None, unnoticed)

    @property
    def span(self) -> Span | None:
        """The memory that is accessed; None if nothing is bound, or the range exceeds its buffer."""
        return self.binding.span(self.slot.size_in_bytes) if self.binding is not None else None

    @property
    def region(self) -> Bytes | None:
        """The bytes of ``span``."""
        return self.binding.region(self.slot.size_in_bytes) if self.binding is not None else None


class CommandRecorder:
    """IDMLCommandRecorder. It may be used from many threads, each with a binding table of its own."""

    def __init__(self, lifetime: Lifetime) -> None:
        self.lifetime = lifetime

    def record_dispatch(self, dispatchable: Dispatchable | None, bindings: BindingTable | None) -> None:
        """Initialise operators, or execute one, with the buffers that are bound to a table that was made for it.

        A dispatch with findings removes the device and writes nothing. If the device's ``against`` is ``"runtime"``, a
        dispatch that lacks bindings, or whose ranges overlap or exceed their buffers, goes unnoticed as in the runtime;
        it writes nothing either. Raises DmlError where DirectML would crash, or if the device raises removals;
        MemoryError if a bound buffer does not fit into memory.
        """
        lifetime = self.lifetime
        _require_kinds(dispatchable, bindings)
        if lifetime.is_removed(_CALL):
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
            _Access(compiled.persistent_slot, table.persistent)
            if compiled.owns_input
            else _Access(compiled.input_slots[0], table.inputs[0])
        )
        output = _Access(compiled.output_slots[0], table.outputs[0])
        volatile = compiled.flags & ExecutionFlags.DESCRIPTORS_VOLATILE
        unnoticed = "DirectML does not notice: the descriptors are volatile" if volatile else ""
        findings: list[Finding] = []
        for access in (source, output):
            findings += self.lifetime.findings(BIND_POINT_RULES, access.point("execution", unnoticed))
        state = Initialization("dispatchable", compiled.initialisations, "execution")
        findings += self.lifetime.findings(INITIALIZATION_RULES, state)
        if compiled.owns_input and compiled.initialisations and source.span is not None:
            persistence = Persistence(source.span.buffer is None and source.span.start == compiled.persistent_address)
            findings += self.lifetime.findings(PERSISTENCE_RULES, persistence)
        if not self._may_write(findings, [source], [output]) or not compiled.is_executable:
            return
        if source.span is not None and output.span is not None:
            read, written = source.region, output.region
            assert read is not None
            assert written is not None
            bind_regions(compiled.desc, read, written, self.lifetime.padding).run()

    def _initialize(self, initializer: OperatorInitializer, table: BindingTable) -> None:
        owned = [
            (compiled, _Access(input_slot, source), _Access(output_slot, persistent))
            for compiled, input_slot, output_slot, source, persistent in zip(
                initializer.operators,
                initializer.input_slots,
                initializer.output_slots,
                table.inputs,
                table.outputs,
                strict=True,
            )
            if compiled.owns_input
        ]
        findings: list[Finding] = []
        for _, *accesses in owned:
            for access in accesses:
                findings += self.lifetime.findings(BIND_POINT_RULES, access.point("initialisation"))
        for state in self._initialisations(initializer):
            findings += self.lifetime.findings(INITIALIZATION_RULES, state)
        if not self._may_write(findings, [source for _, source, _ in owned], [persistent for *_, persistent in owned]):
            return
        for compiled, source, persistent in owned:
            if source.span is not None and persistent.span is not None:
                copy_bytes(source.region, persistent.region)
                compiled.persistent_address = persistent.span.start

    def _initialisations(self, initializer: OperatorInitializer) -> list[Initialization]:
        """Count an initialisation of each operator, and return the counts before it."""
        states = []
        with self.lifetime.lock:
            for i, compiled in enumerate(initializer.operators):
                states.append(Initialization(f"operators[{i}]", compiled.initialisations, "initialisation"))
                if compiled.lifetime is self.lifetime:  # another device counts its own
                    compiled.initialisations += 1
        return states

    def _may_write(self, findings: list[Finding], reads: Sequence[_Access], writes: Sequence[_Access]) -> bool:
        """Return whether there are no findings and no overlaps; findings remove the device."""
        pairs = list(_overlaps(reads, writes))
        for pair in pairs:
            findings += self.lifetime.findings(BINDING_PAIR_RULES, pair)
        if findings:
            self.lifetime.remove(_CALL, findings)
        return not findings and not pairs


def copy_bytes(source: Bytes | None, destination: Bytes | None) -> None:
    """Copy the source to the beginning of the destination, which may be larger."""
    assert source is not None
    assert destination is not None
    destination[: source.size] = source


def _overlaps(reads: Sequence[_Access], writes: Sequence[_Access]) -> Iterator[BindingPair]:
    for i, write in enumerate(writes):
        for other in (*reads, *writes[:i]):
            if write.span is not None and other.span is not None and write.span.overlaps(other.span):
                yield BindingPair(write.slot.name, other.slot.name, overlap=True)


def _require_kinds(dispatchable: Dispatchable | None, bindings: BindingTable | None) -> None:
    if isinstance(dispatchable, Operator):
        raise TypeError("a dispatchable was expected, not an Operator; compile it first")
    if dispatchable is not None and not isinstance(dispatchable, Dispatchable):
        raise TypeError(f"a dispatchable was expected, not a {type(dispatchable).__name__}")
    if bindings is not None and not isinstance(bindings, BindingTable):
        raise TypeError(f"a BindingTable was expected, not a {type(bindings).__name__}")
