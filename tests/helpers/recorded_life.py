"""The simulated device on which the recorded cases of binding and dispatch are played, and what happens to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dml_tile.bindings.resources import BindingLike
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.device import (
    BindingDesc,
    BindingTable,
    BindingTableDesc,
    Buffer,
    BufferBinding,
    CompiledOperator,
    Device,
    Direct3DDevice,
    OperatorInitializer,
)
from dml_tile.directml.enums import HRESULT, ExecutionFlags
from dml_tile.errors import DmlError
from tests.helpers.descriptors import row

Setup = dict[str, Any]

NONE: Final = BindingDesc()
ROOM: Final = 1 << 16


@dataclass
class Outcome:
    """What a case came to: the calls, each with whether the device was removed after it."""

    calls: list[tuple[str, bool]] = field(default_factory=list)
    hresult: str | None = None
    removed_by: str | None = None
    crash_in: str | None = None


class CrashError(Exception):
    """The process would have died."""


class Life:
    """A device that is held to the runtime, and what happened to it."""

    executes = True
    """Whether a dispatch takes the memory that it reads and writes."""

    def __init__(self, level: str) -> None:
        self.level = level
        self.direct3d_device = Direct3DDevice()
        self.device = self.another_device(self.direct3d_device)
        self.outcome = Outcome()
        self.recorder = self.device.create_command_recorder()

    def another_device(self, direct3d_device: Direct3DDevice | None = None, minimum: str | None = None) -> Device:
        return Device(self.level, minimum, against="runtime", direct3d_device=direct3d_device)

    def call(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        result, returned = None, 0
        try:
            result = function(*arguments)
            returned = result if isinstance(result, HRESULT) else 0
        except DmlError as error:
            if error.hresult is None:
                self.outcome.crash_in = name
                raise CrashError from None
            returned = error.hresult
        if not name.startswith(("Bind", "Record")):
            self.outcome.hresult = f"0x{returned:08X}"
        removed = bool(self.device.get_device_removed_reason())
        if removed and self.outcome.removed_by is None:
            self.outcome.removed_by = name
        self.outcome.calls.append((name, removed))
        return result

    def bookkeeping(self, operator: CompiledOperator) -> dict[str, Callable[[], Any]]:
        """Calls of COM's, which are not emulated."""
        return {}

    def compile(self, desc: TileOperatorDesc | None = None, *, volatile: bool = False) -> CompiledOperator:
        flags = ExecutionFlags.DESCRIPTORS_VOLATILE if volatile else ExecutionFlags.NONE
        return self.device.compile_operator(self.device.create_operator(desc or base()), flags)

    def table(self, dispatchable: CompiledOperator | OperatorInitializer) -> BindingTable:
        return self.device.create_binding_table(BindingTableDesc(dispatchable))

    def inputs(self, table: BindingTable, bindings: Sequence[BindingLike] | None) -> None:
        self.call("BindInputs", table.bind_inputs, bindings)

    def outputs(self, table: BindingTable, bindings: Sequence[BindingLike] | None) -> None:
        self.call("BindOutputs", table.bind_outputs, bindings)

    def dispatch(self, dispatchable: CompiledOperator | OperatorInitializer, table: BindingTable, *to: Any) -> None:
        self.call("RecordDispatch", self.recorder.record_dispatch, dispatchable, table, *to)


def base(**changes: Any) -> TileOperatorDesc:
    """The tile of most cases: 24 bytes of input, 96 of output."""
    return row("FLOAT32", [1, 1, 2, 3], [1, 1, 2, 2], **changes)


def owned(**changes: Any) -> TileOperatorDesc:
    return base(InputTensor__Flags=1, **changes)


def good(size: int | None = None) -> BufferBinding:
    return BufferBinding(Buffer(ROOM), 0, size)
