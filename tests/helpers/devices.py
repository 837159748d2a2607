"""Devices for tests, and the steps that most of them take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dml_tile import (
    BindingDesc,
    BindingTable,
    BindingTableDesc,
    Buffer,
    BufferArrayBinding,
    BufferBinding,
    CompiledOperator,
    Device,
    OperatorInitializer,
)
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import ExecutionFlags
from tests.helpers.descriptors import GOOD, page_tile


def compiled(device: Device, desc: OperatorDesc | TileOperatorDesc, flags: int = 0) -> CompiledOperator:
    return device.compile_operator(device.create_operator(desc), ExecutionFlags(flags))


def table(device: Device, dispatchable: CompiledOperator | OperatorInitializer) -> BindingTable:
    return device.create_binding_table(BindingTableDesc(dispatchable))


def initialise(
    device: Device,
    operators: Sequence[CompiledOperator],
    sources: Sequence[BufferBinding | BufferArrayBinding | None] = (),
) -> list[BufferBinding]:
    """Dispatch an initializer; gives what is bound to the persistent resource of each operator, or a null buffer."""
    made = device.create_operator_initializer(operators)
    bindings = table(device, made)
    sizes = [operator.get_binding_properties().persistent_resource_size for operator in operators]
    persistent = [BufferBinding(Buffer(size) if size else None) for size in sizes]
    given = [source or BufferBinding(None) for source in sources or [None] * len(operators)]
    bindings.bind_inputs([BufferArrayBinding([one]) if isinstance(one, BufferBinding) else one for one in given])
    bindings.bind_outputs([one if one.buffer else BindingDesc() for one in persistent])
    device.create_command_recorder().record_dispatch(made, bindings)
    return persistent


def execute(
    device: Device,
    operator: CompiledOperator,
    source: BufferBinding,
    output: BufferBinding,
    persistent: BufferBinding | None = None,
) -> None:
    """Bind everything, and dispatch; an owned input comes from its persistent resource."""
    bindings = table(device, operator)
    if operator.owns_input:
        assert persistent is not None
        bindings.bind_persistent_resource(persistent)
        bindings.bind_inputs([BindingDesc()])
    else:
        bindings.bind_inputs([source])
    bindings.bind_outputs([output])
    device.create_command_recorder().record_dispatch(operator, bindings)


def floats(buffer: Buffer) -> NDArray[np.float32]:
    return buffer.memory.view(np.float32)


NUMBERS = np.arange(1, 7, dtype=np.float32)
TILED = np.tile(NUMBERS.reshape(2, 3), (3, 3))
OWNED = page_tile(InputTensor__Flags=1)


def source() -> BufferBinding:
    return BufferBinding(Buffer.wrap(NUMBERS.copy()))


def output() -> BufferBinding:
    return BufferBinding(Buffer(216))


def written(binding: BufferBinding) -> NDArray[np.float32]:
    assert binding.buffer is not None
    return floats(binding.buffer).reshape(6, 9)


def removing_rules(device: Device) -> set[str]:
    assert device.removal is not None
    return {finding.rule for finding in device.removal.findings}


def initialised(**options: Any) -> tuple[Device, CompiledOperator]:
    """A device and GOOD's operator, which is initialised on it."""
    device = Device(**options)
    operator = compiled(device, GOOD)
    initialise(device, [operator])
    return device, operator
