"""Dispatches that are recorded into a command list, and executed later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dml_tile.device import BindingDesc, BindingTableDesc, Buffer, BufferBinding, CommandList, Device, Direct3DDevice
from dml_tile.directml.enums import HRESULT, ExecutionFlags
from dml_tile.errors import DmlError
from dml_tile.testing import record_calls
from tests.helpers.descriptors import row
from tests.helpers.devices import compiled, removing_rules, table

TILE = row("UINT8", [4], [2])
SOURCE = np.array([1, 2, 3, 4], np.uint8)


class Life:
    """A device, and an operator of it that is initialised and whose buffers are bound, unless the arguments differ."""

    def __init__(self, *, volatile: bool = False, initialised: bool = True, bound: bool = True, **options: Any) -> None:
        self.device = Device(**options)
        self.recorder = self.device.create_command_recorder()
        self.compiled = compiled(self.device, TILE, ExecutionFlags.DESCRIPTORS_VOLATILE if volatile else 0)
        self.table = table(self.device, self.compiled)
        self.output = Buffer(8)
        if initialised:
            self.initialise(CommandList()).execute()
        if bound:
            self.bind()

    def initialise(self, commands: CommandList) -> CommandList:
        made = self.device.create_operator_initializer([self.compiled])
        self.recorder.record_dispatch(made, table(self.device, made), commands)
        return commands

    def bind(self) -> None:
        self.table.bind_inputs([BufferBinding(Buffer.wrap(SOURCE.copy()))])
        self.table.bind_outputs([BufferBinding(self.output)])

    def record(self, commands: CommandList | None = None) -> CommandList:
        commands = commands or CommandList()
        self.recorder.record_dispatch(self.compiled, self.table, commands)
        return commands

    @property
    def written(self) -> list[int]:
        written: list[int] = self.output.memory.tolist()
        return written


DONE = [1, 2, 3, 4, 1, 2, 3, 4]
NOTHING = [0] * 8


def test_a_list_writes_whenever_it_is_executed_until_it_is_reset() -> None:
    life = Life()
    with record_calls() as calls:
        commands = life.record()
    assert [(call.name, call.desc, call.findings) for call in calls] == [("RecordDispatch", TILE, ())]
    assert life.written == NOTHING
    for _ in range(2):
        commands.execute()
        assert life.written == DONE
        life.output.memory[:] = 0
    commands.reset()
    commands.execute()
    assert life.written == NOTHING


def test_volatile_bindings_may_come_after_the_recording() -> None:
    life = Life(volatile=True, bound=False)
    commands = life.record()
    life.bind()
    commands.execute()
    assert (life.written, life.device.removal) == (DONE, None)


def test_volatile_bindings_are_there_when_the_list_is_executed() -> None:
    life, lax = Life(volatile=True, bound=False), Life(volatile=True, bound=False, against="runtime")
    commands = life.record()
    assert life.device.removal is None
    commands.execute()
    assert life.device.removal
    assert life.device.removal.call == "ExecuteCommandLists"
    assert removing_rules(life.device) == {"DML-BINDING-missing"}
    lax.record().execute()
    assert lax.device.removal is None, "DirectML does not notice"
    reset = Life(volatile=True)
    commands = reset.record()
    reset.table.reset(BindingTableDesc(reset.compiled))
    commands.execute()
    assert reset.device.removal


def test_volatile_bindings_of_another_operator_are_not_those_of_the_recorded_one() -> None:
    life = Life(volatile=True)
    commands = life.record()
    life.table.reset(BindingTableDesc(life.device.compile_operator(life.device.create_operator(TILE))))
    life.bind()
    commands.execute()
    assert life.device.removal
    missing = [(finding.rule, finding.path) for finding in life.device.removal.findings]
    assert missing == [("DML-BINDING-missing", "InputTensor"), ("DML-BINDING-missing", "OutputTensor")]
    assert life.written == NOTHING


def test_other_bindings_are_those_of_the_recording() -> None:
    life = Life()
    commands = life.record()
    life.table.bind_outputs([BufferBinding(Buffer(8))])
    commands.execute()
    assert life.written == DONE
    unbound = Life(bound=False)
    commands = unbound.record()
    assert unbound.device.removal
    assert unbound.device.removal.call == "RecordDispatch"
    commands.execute()
    assert unbound.written == NOTHING


def test_an_initialisation_and_an_execution_go_into_one_list() -> None:
    life, never = Life(initialised=False), Life(initialised=False)
    commands, uninitialised = life.record(life.initialise(CommandList())), never.record()
    assert life.device.removal is never.device.removal is None
    commands.execute()
    assert life.written == DONE
    uninitialised.execute()
    assert removing_rules(never.device) == {"DML-BINDING-uninitialised"}


@pytest.mark.parametrize("removes_direct3d_device", [True, False])
def test_what_was_recorded_before_the_removal_writes_nothing(removes_direct3d_device: bool) -> None:
    life = Life(direct3d_device=Direct3DDevice())
    commands = life.record()
    if removes_direct3d_device:
        life.device.direct3d_device.remove(HRESULT.DXGI_ERROR_DEVICE_HUNG)
    else:
        life.device.create_binding_table(BindingTableDesc(life.compiled)).bind_inputs([BindingDesc()])
    assert life.device.get_device_removed_reason() != HRESULT.S_OK
    commands.execute()
    assert life.written == NOTHING


def test_a_removed_direct3d_device_executes_nothing() -> None:
    life = Life()
    life.device.direct3d_device.remove(HRESULT.DXGI_ERROR_DEVICE_HUNG)
    life.recorder.record_dispatch(life.compiled, life.table)
    assert life.written == NOTHING
    assert life.device.removal is None
    life.device.create_operator(TILE)  # all else goes on, until the reason is asked for
    assert life.device.get_device_removed_reason() == HRESULT.DXGI_ERROR_DEVICE_HUNG
    assert str(life.device.removal).startswith("ID3D12Device: [DML-DEVICE-Direct3D-removed]")


def test_no_device_is_made_on_a_removed_direct3d_device() -> None:
    direct3d_device = Direct3DDevice()
    with pytest.raises(ValueError, match="S_OK is no reason"):
        direct3d_device.remove(HRESULT.S_OK)
    direct3d_device.remove()
    with pytest.raises(DmlError, match="DML-DEVICE-Direct3D-removed") as raised:
        Device(direct3d_device=direct3d_device)
    assert raised.value.hresult == HRESULT.DXGI_ERROR_DEVICE_REMOVED
