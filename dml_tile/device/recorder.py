"""The command recorder.

Page: https://learn.microsoft.com/en-us/windows/win32/api/directml/nf-directml-idmlcommandrecorder-recorddispatch
"""

from __future__ import annotations

from typing import Final

from dml_tile.device.command_list import IMMEDIATE, CommandList, Lifetime
from dml_tile.device.dispatchables import CompiledOperator, Dispatchable, Operator
from dml_tile.device.dispatches import Execution, OperatorsInitialization, RecordedDispatch
from dml_tile.device.table import BindingTable
from dml_tile.directml.enums import CommandListType
from dml_tile.rules.dispatch import DISPATCH_RULES, ORDINARY_DISPATCH, Dispatch

_CALL: Final = "RecordDispatch"


class CommandRecorder:
    """IDMLCommandRecorder. It may be used from many threads, each with its own binding table and command list."""

    def __init__(self, lifetime: Lifetime) -> None:
        self.lifetime = lifetime

    def record_dispatch(
        self,
        dispatchable: Dispatchable | None,
        bindings: BindingTable | None,
        command_list: CommandList | None = IMMEDIATE,
    ) -> None:
        """Initialise operators, or execute one, with the buffers that are bound to a table that was made for it.

        By default this happens at once. With a command list, it happens when the list is executed; until then, the
        table of an operator that was compiled with DESCRIPTORS_VOLATILE may still be bound. A dispatch with findings
        removes the device and writes nothing. If the device's ``against`` is ``"runtime"``, a dispatch that lacks
        bindings, or whose ranges overlap or exceed their buffers, goes unnoticed as in the runtime; it writes nothing
        either. Raises DmlError where DirectML would crash, or if the device raises removals; MemoryError if a bound
        buffer does not fit into memory.
        """
        lifetime = self.lifetime
        _require_kinds(dispatchable, bindings, command_list)
        if lifetime.is_removed(_CALL):
            return
        dispatch = Dispatch(
            dispatchable is not None,
            bindings is not None,
            own=(dispatchable is None or dispatchable.lifetime is lifetime)
            and (bindings is None or bindings.lifetime is lifetime),
            same=bindings is None or bindings.dispatchable in (dispatchable, None),
            filled=bindings is None or bindings.dispatchable is not None,
            command_list=command_list is not None,
            list_type=command_list.type if command_list is not None else CommandListType.DIRECT,
            is_graphics=command_list is None or command_list.is_graphics,
        )
        desc = dispatchable.desc if isinstance(dispatchable, CompiledOperator) else None
        if dispatch != ORDINARY_DISPATCH and (findings := lifetime.findings(DISPATCH_RULES, dispatch)):
            lifetime.remove(_CALL, findings, desc)
            return
        assert dispatchable is not None
        assert bindings is not None
        assert command_list is not None
        recorded: RecordedDispatch = (
            Execution(lifetime, dispatchable, bindings)
            if isinstance(dispatchable, CompiledOperator)
            else OperatorsInitialization(lifetime, dispatchable, bindings)
        )
        if command_list is IMMEDIATE and not lifetime.direct3d_device.removed_reason:
            recorded.execute(_CALL)
        elif missing := recorded.missing():
            lifetime.remove(_CALL, missing, desc)
        else:
            lifetime.record(_CALL, desc)
            command_list.append(recorded)


def _require_kinds(
    dispatchable: Dispatchable | None, bindings: BindingTable | None, command_list: CommandList | None
) -> None:
    if isinstance(dispatchable, Operator):
        raise TypeError("a dispatchable was expected, not an Operator; compile it first")
    if dispatchable is not None and not isinstance(dispatchable, Dispatchable):
        raise TypeError(f"a dispatchable was expected, not a {type(dispatchable).__name__}")
    if bindings is not None and not isinstance(bindings, BindingTable):
        raise TypeError(f"a BindingTable was expected, not a {type(bindings).__name__}")
    if command_list is not None and not isinstance(command_list, CommandList):
        raise TypeError(f"a CommandList was expected, not a {type(command_list).__name__}")
