"""Dispatches that are recorded into a command list, and executed later."""

from __future__ import annotations

import numpy as np
import pytest

from dml_tile.device import (
    BindingDesc,
    BindingTable,
    BindingTableDesc,
    Buffer,
    BufferArrayBinding,
    BufferBinding,
    CommandList,
    CommandRecorder,
    CompiledOperator,
    Device,
    Direct3DDevice,
)
from dml_tile.directml.enums import HRESULT, CommandListType, ExecutionFlags
from dml_tile.errors import DmlError
from dml_tile.findings import Against
from dml_tile.testing import record_calls
from tests.helpers.descriptors import row

TILE = row("UINT8", [4], [2])
SOURCE = np.array([1, 2, 3, 4], np.uint8)


class Life:
    """A device, and an operator that is initialised on it."""

    def __init__(self, *, volatile: bool = False, against: Against = "both", initialised: bool = True) -> None:
        self.device = Device(against=against)
        self.recorder = self.device.create_command_recorder()
        flags = ExecutionFlags.DESCRIPTORS_VOLATILE if volatile else ExecutionFlags.NONE
        self.compiled = self.device.compile_operator(self.device.create_operator(TILE), flags)
        self.table = self.device.create_binding_table(BindingTableDesc(self.compiled))
        self.output = Buffer(8)
        if initialised:
            self.initialise(CommandList()).execute()

    def initialise(self, commands: CommandList) -> CommandList:
        made = self.device.create_operator_initializer([self.compiled])
        self.recorder.record_dispatch(made, self.device.create_binding_table(BindingTableDesc(made)), commands)
        return commands

    def bind(self) -> None:
        self.table.bind_inputs([BufferBinding(Buffer.wrap(SOURCE.copy()))])
        self.table.bind_outputs([BufferBinding(self.output)])

    def record(self) -> CommandList:
        commands = CommandList()
        self.recorder.record_dispatch(self.compiled, self.table, commands)
        return commands

    @property
    def written(self) -> list[int]:
        written: list[int] = self.output.memory.tolist()
        return written


DONE = [1, 2, 3, 4, 1, 2, 3, 4]


def test_nothing_is_written_before_the_list_is_executed() -> None:
    life = Life()
    life.bind()
    commands = life.record()
    assert life.written == [0] * 8
    commands.execute()
    assert life.written == DONE


def test_a_recorded_dispatch_is_a_call_with_its_descriptor() -> None:
    life = Life()
    life.bind()
    with record_calls() as calls:
        life.record()
    assert [(call.name, call.desc, call.findings) for call in calls] == [("RecordDispatch", TILE, ())]


def test_a_list_may_be_executed_again_until_it_is_reset() -> None:
    life = Life()
    life.bind()
    commands = life.record()
    commands.execute()
    life.output.memory[:] = 0
    commands.execute()
    assert life.written == DONE
    life.output.memory[:] = 0
    commands.reset()
    commands.execute()
    assert life.written == [0] * 8


def test_volatile_bindings_may_come_after_the_recording() -> None:
    life = Life(volatile=True)
    commands = life.record()
    life.bind()
    commands.execute()
    assert life.written == DONE
    assert life.device.removal is None


def test_volatile_bindings_are_there_when_the_list_is_executed() -> None:
    life = Life(volatile=True)
    commands = life.record()
    assert life.device.removal is None
    commands.execute()
    assert life.device.removal
    assert life.device.removal.call == "ExecuteCommandLists"
    assert {finding.rule for finding in life.device.removal.findings} == {"DML-BINDING-missing"}


def test_directml_does_not_notice_that_volatile_bindings_are_missing() -> None:
    life = Life(volatile=True, against="runtime")
    life.record().execute()
    assert life.device.removal is None


def test_a_volatile_table_that_was_reset_has_no_bindings_left() -> None:
    life = Life(volatile=True)
    life.bind()
    commands = life.record()
    life.table.reset(BindingTableDesc(life.compiled))
    commands.execute()
    assert life.device.removal


def test_other_bindings_are_there_when_a_dispatch_is_recorded() -> None:
    life = Life()
    commands = life.record()
    assert life.device.removal
    assert life.device.removal.call == "RecordDispatch"
    commands.execute()
    assert life.written == [0] * 8


def test_other_bindings_are_those_of_the_recording() -> None:
    life = Life()
    life.bind()
    commands = life.record()
    life.table.bind_outputs([BufferBinding(Buffer(8))])
    commands.execute()
    assert life.written == DONE


def test_an_initialisation_and_an_execution_go_into_one_list() -> None:
    life = Life(initialised=False)
    life.bind()
    commands = life.initialise(CommandList())
    life.recorder.record_dispatch(life.compiled, life.table, commands)
    assert life.device.removal is None
    commands.execute()
    assert life.written == DONE


def test_what_was_never_initialised_is_found_when_the_list_is_executed() -> None:
    life = Life(initialised=False)
    life.bind()
    commands = life.record()
    assert life.device.removal is None
    commands.execute()
    assert life.device.removal
    assert {finding.rule for finding in life.device.removal.findings} == {"DML-BINDING-uninitialised"}


@pytest.mark.parametrize("kind", [CommandListType.COPY, CommandListType.BUNDLE, CommandListType.VIDEO_DECODE, 9])
def test_a_list_of_another_type_takes_no_dispatch(kind: int) -> None:
    life = Life()
    life.bind()
    commands = CommandList(kind)
    life.recorder.record_dispatch(life.compiled, life.table, commands)
    commands.execute()
    assert life.device.get_device_removed_reason() == HRESULT.DXGI_ERROR_DEVICE_REMOVED
    assert life.written == [0] * 8


def test_a_compute_list_takes_dispatches() -> None:
    life = Life()
    life.bind()
    commands = CommandList(CommandListType.COMPUTE)
    life.recorder.record_dispatch(life.compiled, life.table, commands)
    commands.execute()
    assert life.written == DONE


def test_no_list_at_all_is_a_crash() -> None:
    life = Life()
    with pytest.raises(DmlError, match="commandList: null was provided; DirectML would crash"):
        life.recorder.record_dispatch(life.compiled, life.table, None)


def test_what_is_no_list_is_a_type_error() -> None:
    life = Life()
    with pytest.raises(TypeError, match="a CommandList was expected, not a int"):
        life.recorder.record_dispatch(life.compiled, life.table, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("removes_direct3d_device", [True, False])
def test_what_was_recorded_before_the_removal_writes_nothing(removes_direct3d_device: bool) -> None:
    direct3d_device = Direct3DDevice()
    device = Device(direct3d_device=direct3d_device)
    compiled, table, output = prepared(device)
    commands = CommandList()
    device.create_command_recorder().record_dispatch(compiled, table, commands)
    if removes_direct3d_device:
        direct3d_device.remove(HRESULT.DXGI_ERROR_DEVICE_HUNG)
    else:
        device.create_binding_table(BindingTableDesc(compiled)).bind_inputs([BindingDesc()])
    assert device.get_device_removed_reason() != HRESULT.S_OK
    commands.execute()
    assert output.memory.tolist() == [0] * 8


def test_a_removed_direct3d_device_executes_nothing() -> None:
    direct3d_device = Direct3DDevice()
    device = Device(direct3d_device=direct3d_device)
    compiled, table, output = prepared(device)
    direct3d_device.remove(HRESULT.DXGI_ERROR_DEVICE_HUNG)
    device.create_command_recorder().record_dispatch(compiled, table)
    assert output.memory.tolist() == [0] * 8
    assert device.get_device_removed_reason() == HRESULT.DXGI_ERROR_DEVICE_HUNG
    assert device.removal is None
    device.create_operator(TILE)  # all else goes on


def test_no_device_is_made_on_a_removed_direct3d_device() -> None:
    direct3d_device = Direct3DDevice()
    direct3d_device.remove()
    with pytest.raises(DmlError, match="DML-DEVICE-Direct3D-removed") as raised:
        Device(direct3d_device=direct3d_device)
    assert raised.value.hresult == HRESULT.DXGI_ERROR_DEVICE_REMOVED


def test_a_device_is_removed_for_a_reason() -> None:
    with pytest.raises(ValueError, match="S_OK is no reason"):
        Direct3DDevice().remove(HRESULT.S_OK)


def test_two_devices_may_share_a_direct3d_device_and_its_buffers() -> None:
    direct3d_device = Direct3DDevice()
    devices = [Device(direct3d_device=direct3d_device) for _ in range(2)]
    memory = Buffer(8, direct3d_device=direct3d_device)
    for device in devices:
        compiled, table, _ = prepared(device)
        table.bind_outputs([BufferBinding(memory)])
        device.create_command_recorder().record_dispatch(compiled, table)
        assert device.removal is None


def test_an_empty_output_of_an_initializer_binds_nothing() -> None:
    device = Device()
    compiled = device.compile_operator(device.create_operator(TILE))
    made = device.create_operator_initializer([compiled])
    table = device.create_binding_table(BindingTableDesc(made))
    table.bind_outputs([BufferBinding(None)])
    device.create_command_recorder().record_dispatch(made, table)
    assert device.removal is None


def test_an_input_of_an_initializer_of_type_none_with_a_desc_removes_the_device() -> None:
    device = Device()
    made = device.create_operator_initializer([device.compile_operator(device.create_operator(TILE))])
    table = device.create_binding_table(BindingTableDesc(made))
    table.bind_inputs([BindingDesc(0, BufferArrayBinding([BufferBinding(None)]))])
    assert device.removal
    assert "DML-BINDING-initializer-NONE-Desc" in {finding.rule for finding in device.removal.findings}


def prepared(device: Device) -> tuple[CompiledOperator, BindingTable, Buffer]:
    """An initialised operator, and a table with all that it needs."""
    compiled = device.compile_operator(device.create_operator(TILE))
    made = device.create_operator_initializer([compiled])
    recorder: CommandRecorder = device.create_command_recorder()
    recorder.record_dispatch(made, device.create_binding_table(BindingTableDesc(made)))
    table, output = device.create_binding_table(BindingTableDesc(compiled)), Buffer(8)
    table.bind_inputs([BufferBinding(Buffer.wrap(SOURCE.copy()))])
    table.bind_outputs([BufferBinding(output)])
    return compiled, table, output
