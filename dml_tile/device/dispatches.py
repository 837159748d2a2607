"""The command recorder, the dispatches that it records, with their bindings and execution, and command lists.

Pages: https://learn.microsoft.com/en-us/windows/win32/api/directml/nf-directml-idmlcommandrecorder-recorddispatch and
https://learn.microsoft.com/en-us/windows/win32/api/d3d12/nn-d3d12-id3d12graphicscommandlist
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from types import NoneType
from typing import Final

from dml_tile.bindings.memory import POISON, Bytes
from dml_tile.bindings.slots import BoundRange
from dml_tile.descriptors.graph import Descriptor, GraphDesc
from dml_tile.device.dispatchables import CompiledOperator, Dispatchable, Operator, OperatorInitializer
from dml_tile.device.state import DeviceState
from dml_tile.device.table import BindingTable
from dml_tile.directml.enums import CommandListType, ExecutionFlags
from dml_tile.errors import require_instance, require_uint
from dml_tile.findings import Finding, apply_rules
from dml_tile.rules.binding import OVERLAP_RULES, RANGE_RULES
from dml_tile.rules.descriptor import findings_of
from dml_tile.rules.dispatch import DISPATCH_RULES, EXECUTION_RULES, INITIALIZATION_RULES, PERSISTENCE_RULES, Dispatch
from dml_tile.rules.execution import CONSTANT_RULES
from dml_tile.rules.tile_findings import blocks_creation

_CALL: Final = "RecordDispatch"
_DESCRIPTORS_VOLATILE: Final = int(ExecutionFlags.DESCRIPTORS_VOLATILE)


class CommandList:
    """An open command list of Direct3D 12, and the queue that it is submitted to.

    ``type`` is a CommandListType or its value. A list of another type than DIRECT and COMPUTE, or whose ``is_graphics``
    is False, takes no dispatches. It is not thread-safe.
    """

    def __init__(self, type: CommandListType | int = CommandListType.DIRECT, *, is_graphics: bool = True) -> None:  # noqa: A002 - C's name
        self.type = require_uint("type", type)
        self.is_graphics = is_graphics
        self._recorded: list[Callable[[str], object]] = []

    def append(self, dispatch: Callable[[str], object]) -> None:
        """Record a dispatch, as a CommandRecorder does; it takes the name of the call that executes the list."""
        self._recorded.append(dispatch)

    def execute(self) -> None:
        """Execute the recorded dispatches in order; they stay recorded, and may be executed again.

        A wrong dispatch removes its device. Raises DmlError if that device raises its removal, MemoryError if a bound
        buffer is larger than memory.
        """
        for dispatch in self._recorded:
            dispatch("ExecuteCommandLists")

    def reset(self) -> None:
        """Forget the recorded dispatches."""
        self._recorded.clear()


IMMEDIATE: Final = CommandList()
"""A command list that executes each recorded dispatch at once; it holds nothing."""


class Execution:
    """The execution of a compiled operator.

    It uses the bindings at the time of recording or, for volatile descriptors, of execution.
    """

    def __init__(self, state: DeviceState, compiled: CompiledOperator, table: BindingTable) -> None:
        self._state = state
        self._compiled = compiled
        self._table = table
        self.is_volatile = bool(int(compiled.flags) & _DESCRIPTORS_VOLATILE)
        self._recorded = None if self.is_volatile else self._accesses()

    def missing(self) -> list[Finding]:
        """Return the findings of missing bindings that recording requires."""
        return _missing(self._state, chain(*self._recorded)) if self._recorded is not None else []

    def execute(self, call: str) -> None:
        """Write the outputs; findings remove the device, and name ``call``. Does nothing on a removed device."""
        self._table.recorded.discard(self)
        if self._state.is_removed(call) or self._state.direct3d_device.removed_reason:
            return
        compiled, state = self._compiled, self._state
        reads, writes = self._recorded or self._accesses()
        findings = _missing(state, (*reads, *writes))
        if not compiled.initialisations:
            findings += state.findings(EXECUTION_RULES, 0)
        if compiled.owns_input and compiled.initialisations and (kept := reads[-1].span) is not None:
            is_same = kept.buffer is None and kept.start == compiled.persistent_address
            findings += state.findings(PERSISTENCE_RULES, is_same)
        may_write = _may_write(state, call, findings, reads, writes, compiled.desc, compiled.plan.aliases)
        kernel = compiled.plan.kernel
        if not may_write or kernel is None or any(access.span is None for access in (*reads, *writes)):
            return
        regions = {access.name: access.region for access in (*reads, *writes)}
        for access in writes if state.padding == "poison" else ():
            regions[access.name].fill(POISON)
        kernel(regions)
        state.count_dispatch()

    def _accesses(self) -> tuple[list[BoundRange], list[BoundRange]]:
        """Return the bindings read, the persistent resource last, and those written, the temporary resource last."""
        compiled, table = self._compiled, self._table
        is_own_table = table.dispatchable is compiled  # unless it was reset since
        why_unnoticed = "DirectML does not notice: the descriptors are volatile" if self.is_volatile else ""

        def accesses(call: str) -> Iterator[BoundRange]:
            bound = chain(table.bound[call] if is_own_table else (), repeat(None))
            for (slot,), binding in zip(compiled.slots[call], bound, strict=False):
                if slot.size_in_bytes:
                    yield BoundRange(slot, binding, why_unnoticed)

        reads = [*accesses("BindInputs"), *accesses("BindPersistentResource")]
        return reads, [*accesses("BindOutputs"), *accesses("BindTemporaryResource")]


def _missing(state: DeviceState, accesses: Iterable[BoundRange]) -> list[Finding]:
    """Return the findings on bindings that are missing, or were made for a smaller slot."""
    findings = list[Finding]()
    for access in accesses:
        if access.binding is None or access.binding.size_in_bytes < access.slot.size_in_bytes:
            slot = access.slot._replace(checked_by_runtime=False)  # it was checked when it was bound
            findings += state.findings(RANGE_RULES, access._replace(slot=slot))
    return findings


class OperatorsInitialization:
    """The initialisation of an initializer's operators, with the bindings at the time of recording."""

    def __init__(self, state: DeviceState, initializer: OperatorInitializer, table: BindingTable) -> None:
        self._state = state
        self._operators = initializer.operators
        self._owned: list[tuple[CompiledOperator, list[BoundRange], BoundRange]] = []
        bound_before_reset = "DirectML notices only whether anything is bound"
        calls = "BindInputs", "BindOutputs"
        unseen = [bound_before_reset if table.bound[call] else "" for call in calls]
        inputs, outputs = (chain(table.bound[call], repeat(None)) for call in calls)
        slots = (initializer.slots[call] for call in calls)
        for compiled, input_slots, (output_slot,) in zip(initializer.operators, *slots, strict=True):
            sources = [BoundRange(slot, next(inputs), unseen[0]) for slot in input_slots]
            persistent = BoundRange(output_slot, next(outputs), unseen[1])
            if compiled.owns_input:
                self._owned.append((compiled, [each for each in sources if each.slot.size_in_bytes], persistent))

    def missing(self) -> list[Finding]:
        """Return the findings of missing bindings."""
        accesses = (access for _, sources, persistent in self._owned for access in (*sources, persistent))
        return _missing(self._state, accesses)

    def execute(self, call: str) -> None:
        """Write the persistent resources, as ``Execution.execute`` writes the outputs."""
        if self._state.is_removed(call) or self._state.direct3d_device.removed_reason:
            return
        findings, times = self.missing(), []
        with self._state.lock:
            for compiled in self._operators:
                times.append(compiled.initialisations)
                compiled.initialisations += 1
        findings += self._state.findings(INITIALIZATION_RULES, times)
        reads = [source for _, sources, _ in self._owned for source in sources]
        if not _may_write(self._state, call, findings, reads, [persistent for *_, persistent in self._owned]):
            return
        for compiled, sources, persistent in self._owned:
            if any(access.span is None for access in (*sources, persistent)):
                continue
            for source, offset in zip(sources, compiled.plan.persistent_offsets, strict=True):
                copy_bytes(source.region, persistent.region[offset:])
            assert persistent.span is not None
            compiled.persistent_address = persistent.span.start
        self._state.count_dispatch()


def copy_bytes(source: Bytes, destination: Bytes) -> None:
    """Copy the source to the beginning of the destination, which may be larger."""
    destination[: source.size] = source


def _may_write(
    state: DeviceState,
    call: str,
    findings: list[Finding],
    reads: Sequence[BoundRange],
    writes: Sequence[BoundRange],
    desc: Descriptor | None = None,
    aliases: frozenset[tuple[str, str]] = frozenset(),
) -> bool:
    """Return True if there are no findings and no overlaps but ``aliases``; findings remove the device."""
    spans = [(each, each.span) for each in (*reads, *writes)]
    overlaps = [
        (output.name, other.name)
        for i, (output, written) in enumerate(spans[len(reads) :], len(reads))
        for other, accessed in spans[:i]
        if written and accessed and written.overlaps(accessed)
        if written != accessed or (output.name, other.name) not in aliases
    ]
    for names in overlaps:
        findings += state.findings(OVERLAP_RULES, names)
    if findings:
        state.remove(call, findings, desc)
    else:
        state.record(call, desc)
    return not findings and not overlaps


def _why_not_executed(desc: Descriptor | None, state: DeviceState) -> list[Finding]:
    """Return why a graph that was compiled is not executed: also what the runtime alone refuses of it."""
    if not isinstance(desc, GraphDesc):
        return []
    refused = findings_of(desc, state.target, "runtime") if state.against == "documentation" else ()
    return [*apply_rules(CONSTANT_RULES, desc, state.target), *filter(blocks_creation, refused)]


class CommandRecorder:
    """IDMLCommandRecorder. It may be used from many threads, each with its own binding table and command list."""

    def __init__(self, state: DeviceState) -> None:
        self.state = state

    def record_dispatch(
        self,
        dispatchable: Dispatchable | None,
        bindings: BindingTable | None,
        command_list: CommandList | None = IMMEDIATE,
    ) -> None:
        """Initialise operators, or execute one, with the buffers that are bound to its table.

        By default this happens at once; with a command list, when the list is executed. Until then, the table of an
        operator that was compiled with DESCRIPTORS_VOLATILE may still be bound; binding that of another again removes
        the device, or is a finding of the recorded call if ``against`` is ``"runtime"``. A dispatch with findings
        removes the device and writes nothing. If the device's ``against`` is ``"runtime"``, a dispatch that lacks
        bindings, or whose ranges overlap or exceed their buffers, goes unnoticed as in the runtime, and writes nothing.
        Raises DmlError where DirectML would crash, or if the device raises removals; MemoryError if a bound buffer does
        not fit into memory; DmlError for a graph that is not executed, for an index out of range
        that an executed operator meets, and for more work than docs/limits.md allows.
        """
        state = self.state
        if isinstance(dispatchable, Operator):
            raise TypeError("a dispatchable was expected, not an Operator; compile it first")
        if not isinstance(dispatchable, Dispatchable | None):
            raise TypeError(f"a dispatchable was expected, not a {type(dispatchable).__name__}")
        require_instance(bindings, BindingTable, NoneType)
        require_instance(command_list, CommandList, NoneType)
        if state.is_removed(_CALL):
            return
        dispatch = Dispatch(
            dispatchable is not None,
            bindings is not None,
            own=(dispatchable is None or dispatchable.state is state) and (bindings is None or bindings.state is state),
            same=bindings is None or bindings.dispatchable in (dispatchable, None),
            filled=bindings is None or bindings.dispatchable is not None,
            list_type=command_list.type if command_list is not None else None,
            is_graphics=command_list is None or command_list.is_graphics,
        )
        desc = dispatchable.desc if isinstance(dispatchable, CompiledOperator) else None
        if findings := state.findings(DISPATCH_RULES, dispatch):
            state.remove(_CALL, findings, desc)
            return
        assert dispatchable is not None
        assert bindings is not None
        assert command_list is not None
        recorded: Execution | OperatorsInitialization = (
            Execution(state, dispatchable, bindings)
            if isinstance(dispatchable, CompiledOperator)
            else OperatorsInitialization(state, dispatchable, bindings)
        )
        state.refuse(_CALL, _why_not_executed(desc, state), desc)
        if command_list is IMMEDIATE and not state.direct3d_device.removed_reason:
            recorded.execute(_CALL)
        elif missing := recorded.missing():
            state.remove(_CALL, missing, desc)
        else:
            state.record(_CALL, desc)
            if command_list is not IMMEDIATE:
                command_list.append(recorded.execute)
                if isinstance(recorded, Execution) and not recorded.is_volatile:
                    bindings.recorded.add(recorded)
