"""Plays the recorded cases of dispatch, and of life after removal, on the simulated device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dml_tile.descriptors.tile import described
from dml_tile.device import (
    BindingTable,
    BindingTableDesc,
    Buffer,
    BufferArrayBinding,
    BufferBinding,
    CommandList,
    CompiledOperator,
)
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import HRESULT, CommandListType, Feature
from tests.helpers.descriptors import row
from tests.helpers.recorded_life import NONE, Life, Setup, base, good, owned


def bind_all(life: Life, compiled: CompiledOperator, table: BindingTable, missing: str = "") -> None:
    """Bind what an operator needs, but for what is missing, in the order of the recorded cases."""
    if compiled.owns_input and missing != "persistent":
        life.call("BindPersistentResource", table.bind_persistent_resource, good())
    if missing not in ("input", "both", "BindInputs(NONE)"):
        life.inputs(table, [NONE if compiled.owns_input else good()])
    if missing not in ("output", "both"):
        life.outputs(table, [good()])


def initialise(life: Life, *operators: CompiledOperator, times: int = 1) -> None:
    """Dispatch an initializer, without a word in the outcome before the dispatch."""
    made = life.device.create_operator_initializer(operators)
    table = life.table(made)
    if any(operator.owns_input for operator in operators):
        table.bind_inputs([BufferArrayBinding([good()])])
        table.bind_outputs([good()])
    for _ in range(times):
        life.dispatch(made, table)


def dispatch(life: Life, setup: Setup) -> None:
    compiled = life.compile(owned() if setup.get("owned") else base(), volatile=setup["volatile"])
    if setup.get("initialised", True) is True:
        initialise(life, compiled)
        life.outcome.calls.clear()
    if "SizeInDescriptors" in setup or setup["id"].startswith("uninitialised"):
        desc = BindingTableDesc(compiled, size_in_descriptors=setup.get("SizeInDescriptors", 16))
        table: BindingTable = life.call("CreateBindingTable", life.device.create_binding_table, desc)
    else:
        table = life.table(compiled)
    bind_all(life, compiled, table, setup.get("missing", ""))
    if setup.get("initialised") == "after binding":
        initialise(life, compiled)
        life.outcome.calls.pop()
    if "recorder" not in setup:
        life.dispatch(compiled, table)
        return
    other = life.another_device()
    life.call("RecordDispatch", other.create_command_recorder().record_dispatch, compiled, table)
    life.call("other device", bool, other.get_device_removed_reason())
    assert other.get_device_removed_reason()


def dispatch_initialised_twice(life: Life, setup: Setup) -> None:
    compiled = life.compile(owned() if setup["owned"] else base(), volatile=setup["volatile"])
    if setup["id"].startswith("two initializers"):
        initialise(life, compiled)
        life.call("CreateOperatorInitializer", life.device.create_operator_initializer, [compiled])
        initialise(life, compiled)
    else:
        initialise(life, compiled, times=2)
    table = life.table(compiled)
    life.inputs(table, [NONE if compiled.owns_input else good()])
    life.outputs(table, [good()])
    if compiled.owns_input:
        life.call("BindPersistentResource", table.bind_persistent_resource, good())
    life.dispatch(compiled, table)


def dispatch_after_reset(life: Life, setup: Setup) -> None:
    operators = [life.compile(volatile=setup["volatile"]) for _ in range(2)]
    made = life.device.create_operator_initializer(operators[:1])
    life.call("initializer.Reset", made.reset, operators[1:])
    life.dispatch(made, life.table(made))
    for compiled in operators:
        table = life.table(compiled)
        bind_all(life, compiled, table)
        life.dispatch(compiled, table)


def dispatch_then_bind(life: Life, setup: Setup) -> None:
    """Record into a command list what is bound only after that."""
    compiled = life.compile(volatile=setup["volatile"])
    initialise(life, compiled)
    life.outcome.calls.clear()
    table = life.table(compiled)
    life.dispatch(compiled, table, CommandList())
    bind_all(life, compiled, table)


def any_dispatch(life: Life, setup: Setup) -> None:
    if "bound" in setup:
        dispatch_then_bind(life, setup)
    elif "order" in setup:
        dispatch_after_reset(life, setup)
    elif "dispatched" in setup["id"] and "never" not in setup["id"]:
        dispatch_initialised_twice(life, setup)
    else:
        dispatch(life, setup)


def dispatch_mismatch(life: Life, setup: Setup) -> None:
    volatile = setup["volatile"]
    makers: dict[str, Callable[[], Any]] = {
        "exec": lambda: life.compile(volatile=volatile),
        "exec_owned": lambda: life.compile(owned(), volatile=volatile),
        "init": lambda: life.device.create_operator_initializer([life.compile()]),
        "init_owned": lambda: life.device.create_operator_initializer([life.compile(owned())]),
    }
    table_of = makers[setup["table_of"]]()
    table = life.table(table_of)
    if setup["table_of"] == "exec":
        bind_all(life, table_of, table)
    life.dispatch(makers[setup["dispatchable"]](), table)


def dispatch_null(life: Life, setup: Setup) -> None:
    compiled = life.compile(volatile=setup["volatile"])
    table = life.table(compiled)
    bind_all(life, compiled, table)
    given = [compiled if setup["dispatchable"] else None, table if setup["bindings"] else None]
    life.call("RecordDispatch", life.recorder.record_dispatch, *given, CommandList() if setup["commandList"] else None)


def dispatch_list(life: Life, setup: Setup) -> None:
    """Record into a list of another type, or one that is no ID3D12GraphicsCommandList."""
    compiled = life.compile(volatile=setup["volatile"])
    initialise(life, compiled)
    life.outcome.calls.clear()
    table = life.table(compiled)
    bind_all(life, compiled, table)
    kind = setup.get("D3D12_COMMAND_LIST_TYPE", CommandListType.DIRECT)
    life.dispatch(compiled, table, CommandList(kind, is_graphics="QueryInterface" not in setup))


def thread_groups(life: Life, setup: Setup) -> None:
    desc = row(TensorDataType(setup["dtype"]).name, setup["input"], setup["repeats"])
    compiled = life.compile(desc)
    table = life.table(compiled)
    source, output = described(desc)
    life.inputs(table, [BufferBinding(Buffer(source.total_tensor_size_in_bytes))])
    life.outputs(table, [BufferBinding(Buffer(output.total_tensor_size_in_bytes))])
    life.dispatch(compiled, table)


def violate(life: Life, setup: Setup) -> BindingTable:
    """Remove the device as the case does, if it does."""
    compiled = life.compile()
    table = life.table(compiled)
    violation = setup["violation"] or ""
    if violation.startswith("BindInputs(NONE)"):
        life.inputs(table, [NONE])
    elif violation.startswith("BindPersistentResource"):
        life.call("BindPersistentResource", table.bind_persistent_resource, good())
    elif violation.startswith("RecordDispatch"):
        life.dispatch(compiled, table)
    return table


def full_table(life: Life, compiled: CompiledOperator) -> BindingTable:
    """A table with all bindings of an operator that is initialised."""
    initialise(life, compiled)
    table = life.table(compiled)
    table.bind_inputs([good()])
    table.bind_outputs([good()])
    life.outcome.calls.clear()
    return table


def after_violation(life: Life, setup: Setup) -> None:
    before = life.compile()
    operator = life.device.create_operator(base())
    made = life.device.create_operator_initializer([before])
    full = full_table(life, before)
    other, second = life.another_device(), life.another_device(life.direct3d_device)
    table = violate(life, setup)
    device = life.device
    if "d3d_removed_reason" in setup:
        life.direct3d_device.remove(HRESULT(int(setup["d3d_removed_reason"], 16)))
    functions: dict[str, Callable[[], Any]] = life.bookkeeping(before) | {
        "CreateOperator": lambda: device.create_operator(base()),
        "CreateOperator(bad)": lambda: device.create_operator(None),
        "CompileOperator": lambda: device.compile_operator(operator),
        "CreateOperatorInitializer": lambda: device.create_operator_initializer([before]),
        "CreateCommandRecorder": device.create_command_recorder,
        "CreateBindingTable": lambda: device.create_binding_table(BindingTableDesc(before)),
        "CheckFeatureSupport": lambda: device.check_feature_support(Feature.FEATURE_LEVELS, ["1_0"]),
        "GetDeviceRemovedReason": device.get_device_removed_reason,
        "CreateBindingTable(bad)": lambda: device.create_binding_table(BindingTableDesc(before, size_in_descriptors=1)),
        "table.Reset(bad)": lambda: table.reset(BindingTableDesc(before, size_in_descriptors=1)),
        "RecordDispatch(full table)": lambda: life.recorder.record_dispatch(before, full),
        "other IDMLDevice": other.create_command_recorder,
        "second IDMLDevice": second.create_command_recorder,
        "GetBindingProperties": before.get_binding_properties,
        "table.Reset": lambda: table.reset(BindingTableDesc(before)),
        "initializer.Reset": lambda: made.reset([before]),
        "BindInputs": lambda: table.bind_inputs([good()]),
        "BindInputs(bad)": lambda: table.bind_inputs([NONE]),
        "BindOutputs": lambda: table.bind_outputs([good()]),
        "BindTemporaryResource(NONE)": lambda: table.bind_temporary_resource(NONE),
        "BindPersistentResource(NONE)": lambda: table.bind_persistent_resource(NONE),
        "DMLCreateDevice same d3d": lambda: life.another_device(life.direct3d_device),
        "DMLCreateDevice1 same d3d": lambda: life.another_device(life.direct3d_device, "1_0"),
        "DMLCreateDevice1 other d3d": lambda: life.another_device(None, "1_0"),
    }
    otherwise = "second IDMLDevice" if setup["id"].startswith("second") else "CreateCommandRecorder"
    both = ["CreateOperatorInitializer", "DMLCreateDevice1 same d3d"]
    for then in both if "first" in setup else [setup.get("then", otherwise)]:
        life.call(then.partition("(")[0] if then.startswith(("Bind", "Record")) else then, functions[then])


DISPATCH_CASES: Final[dict[str, Callable[[Life, Setup], None]]] = {
    **dict.fromkeys(("after_violation", "control", "d3d_removed", "removed_both", "violation_reason"), after_violation),
    "dispatch": any_dispatch,
    "dispatch_list": dispatch_list,
    "dispatch_mismatch": dispatch_mismatch,
    "dispatch_null": dispatch_null,
    "thread_groups": thread_groups,
}
