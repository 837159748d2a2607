"""RecordedDispatch dispatches: their bindings, and their execution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Final, NamedTuple, TypeAlias

from dml_tile.bindings.memory import POISON, Bytes
from dml_tile.bindings.resources import BufferBinding, Span
from dml_tile.bindings.slots import BindingPair, BindingStage, BindPoint, Slot
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.device.command_list import Lifetime
from dml_tile.device.dispatchables import CompiledOperator, OperatorInitializer
from dml_tile.device.table import BindingTable
from dml_tile.directml.enums import ExecutionFlags
from dml_tile.findings import Finding
from dml_tile.rules.binding import BIND_POINT_RULES, BINDING_PAIR_RULES
from dml_tile.rules.dispatch import INITIALIZATION_RULES, PERSISTENCE_RULES, Initialization, Persistence

_DESCRIPTORS_VOLATILE: Final = int(ExecutionFlags.DESCRIPTORS_VOLATILE)


class _Access(NamedTuple):
    """A slot that a dispatch reads or writes, and its binding."""

    slot: Slot
    binding: BufferBinding | None

    unnoticed: str = ""
    """The reason why DirectML does not notice a missing binding; empty if it does."""

    def point(self, stage: BindingStage) -> BindPoint:
        return BindPoint(self.slot.name, stage == "initialisation", stage, self.binding is not None, self.unnoticed)

    @property
    def span(self) -> Span | None:
        """The memory that is accessed; None if nothing is bound, or the range exceeds its buffer."""
        return self.binding.span(self.slot.size_in_bytes) if self.binding is not None else None

    @property
    def region(self) -> Bytes | None:
        """The bytes of ``span``."""
        return self.binding.region(self.slot.size_in_bytes) if self.binding is not None else None


class Execution:
    """The execution of a compiled operator.

    It uses the bindings at the time of recording or, if the operator's descriptors are volatile, of execution.
    """

    def __init__(self, lifetime: Lifetime, compiled: CompiledOperator, table: BindingTable) -> None:
        self._lifetime = lifetime
        self._compiled = compiled
        self._table = table
        self._is_volatile = bool(int(compiled.flags) & _DESCRIPTORS_VOLATILE)
        self._recorded = None if self._is_volatile else self._accesses()

    def missing(self) -> list[Finding]:
        """Return the findings of bindings that are missing although they are required for recording."""
        return self._missing(self._recorded) if self._recorded is not None else []

    def execute(self, call: str) -> None:
        """Write the output; findings remove the device, in the name of a call. Does nothing on a removed device."""
        if self._lifetime.is_removed(call) or self._lifetime.direct3d_device.removed_reason:
            return
        compiled, lifetime = self._compiled, self._lifetime
        source, output = accesses = self._recorded or self._accesses()
        findings = self._missing(accesses)
        state = Initialization("dispatchable", compiled.initialisations, "execution")
        findings += lifetime.findings(INITIALIZATION_RULES, state)
        if compiled.owns_input and compiled.initialisations and source.span is not None:
            persistence = Persistence(source.span.buffer is None and source.span.start == compiled.persistent_address)
            findings += lifetime.findings(PERSISTENCE_RULES, persistence)
        may_write = _may_write(lifetime, call, findings, [source], [output], compiled.desc)
        if not may_write or compiled.move is None:
            return
        if source.span is not None and output.span is not None:
            read, written = source.region, output.region
            assert read is not None
            assert written is not None
            if lifetime.padding == "poison":
                written.fill(POISON)
            compiled.move(read, written)

    def _accesses(self) -> tuple[_Access, _Access]:
        compiled, table = self._compiled, self._table
        is_own_table = table.dispatchable is compiled  # unless it was reset since
        unnoticed = "DirectML does not notice: the descriptors are volatile" if self._is_volatile else ""
        slot = compiled.persistent_slot if compiled.owns_input else compiled.input_slots[0]
        bound = table.persistent if compiled.owns_input else next(iter(table.inputs), None)
        output = next(iter(table.outputs), None)
        return (
            _Access(slot, bound if is_own_table else None, unnoticed),
            _Access(compiled.output_slots[0], output if is_own_table else None, unnoticed),
        )

    def _missing(self, accesses: Sequence[_Access]) -> list[Finding]:
        points = (access.point("execution") for access in accesses if access.binding is None)
        return [finding for point in points for finding in self._lifetime.findings(BIND_POINT_RULES, point)]


class OperatorsInitialization:
    """The initialisation of an initializer's operators, with the bindings at the time of recording."""

    def __init__(self, lifetime: Lifetime, initializer: OperatorInitializer, table: BindingTable) -> None:
        self._lifetime = lifetime
        self._operators = initializer.operators
        bound_before_reset = "DirectML notices only whether anything is bound"
        unseen = [bound_before_reset if bound else "" for bound in (table.inputs, table.outputs)]
        self._owned = [
            (compiled, _Access(input_slot, source, unseen[0]), _Access(output_slot, persistent, unseen[1]))
            for compiled, input_slot, output_slot, source, persistent in zip(
                initializer.operators,
                initializer.input_slots,
                initializer.output_slots,
                *(chain(bound, repeat(None)) for bound in (table.inputs, table.outputs)),  # another number before Reset
                strict=False,
            )
            if compiled.owns_input
        ]

    def missing(self) -> list[Finding]:
        """Return the findings of missing bindings."""
        unbound = (access for _, *accesses in self._owned for access in accesses if access.binding is None)
        points = (access.point("initialisation") for access in unbound)
        return [finding for point in points for finding in self._lifetime.findings(BIND_POINT_RULES, point)]

    def execute(self, call: str) -> None:
        """Write the persistent resources; findings remove the device, in the name of a call.

        Does nothing on a removed device.
        """
        if self._lifetime.is_removed(call) or self._lifetime.direct3d_device.removed_reason:
            return
        findings = self.missing()
        for state in self._initialisations():
            findings += self._lifetime.findings(INITIALIZATION_RULES, state)
        reads, writes = [source for _, source, _ in self._owned], [persistent for *_, persistent in self._owned]
        if not _may_write(self._lifetime, call, findings, reads, writes):
            return
        for compiled, source, persistent in self._owned:
            if source.span is not None and persistent.span is not None:
                copy_bytes(source.region, persistent.region)
                compiled.persistent_address = persistent.span.start

    def _initialisations(self) -> list[Initialization]:
        """Count an initialisation of each operator, and return the counts before it."""
        states = []
        with self._lifetime.lock:
            for i, compiled in enumerate(self._operators):
                states.append(Initialization(f"operators[{i}]", compiled.initialisations, "initialisation"))
                compiled.initialisations += 1
        return states


RecordedDispatch: TypeAlias = Execution | OperatorsInitialization


def copy_bytes(source: Bytes | None, destination: Bytes | None) -> None:
    """Copy the source to the beginning of the destination, which may be larger."""
    assert source is not None
    assert destination is not None
    destination[: source.size] = source


def _may_write(
    lifetime: Lifetime,
    call: str,
    findings: list[Finding],
    reads: Sequence[_Access],
    writes: Sequence[_Access],
    desc: TileOperatorDesc | None = None,
) -> bool:
    """Return True if there are no findings and no overlaps; findings remove the device."""
    pairs = list(_overlaps(reads, writes))
    for pair in pairs:
        findings += lifetime.findings(BINDING_PAIR_RULES, pair)
    if findings:
        lifetime.remove(call, findings, desc)
    else:
        lifetime.record(call, desc)
    return not findings and not pairs


def _overlaps(reads: Sequence[_Access], writes: Sequence[_Access]) -> Iterator[BindingPair]:
    for i, write in enumerate(writes):
        written = write.span
        if written is None:
            continue
        for other in (*reads, *writes[:i]):
            accessed = other.span
            if accessed is not None and written.overlaps(accessed):
                yield BindingPair(write.slot.name, other.slot.name, overlap=True)
