"""Removing a device: the causes, those that DirectML does not notice among them, the reason, and what still works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dml_tile import BindingDesc, BindingTableDesc, Buffer, BufferArrayBinding, BufferBinding, Device
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import HRESULT, Feature
from dml_tile.errors import DmlError
from dml_tile.findings import Against
from tests.helpers.descriptors import GOOD, page_tile, row
from tests.helpers.devices import (
    OWNED,
    TILED,
    compiled,
    execute,
    initialise,
    initialised,
    output,
    removing_rules,
    source,
    table,
    written,
)


def test_a_removed_device_does_nothing_and_says_why() -> None:
    (device, operator), out = initialised(GOOD), output()
    bindings, recorder = table(device, operator), device.create_command_recorder()
    bindings.bind_inputs([source()])
    bindings.bind_outputs([out])
    table(device, operator).bind_outputs([BufferBinding(Buffer(256), 4)])
    assert device.get_device_removed_reason() == HRESULT.DXGI_ERROR_DEVICE_REMOVED
    assert str(device.removal).startswith("BindOutputs: [DML-BINDING-Offset] OutputTensor: the value of Offset is mis")
    bindings.bind_inputs([source(), source()])
    first = device.removal
    recorder.record_dispatch(operator, bindings)
    assert device.removal is first, "the first removal stays the reason"
    with pytest.raises(DmlError, match=r"the device was removed by BindOutputs: \[DML-BINDING-Offset\]") as error:
        device.create_operator(GOOD)
    assert error.value.hresult == HRESULT.DXGI_ERROR_DEVICE_REMOVED
    assert not written(out).any()
    assert Device().get_device_removed_reason() == HRESULT.S_OK
    assert repr(device) == "<Device at 6_4, removed by BindOutputs>"


def test_each_error_names_the_call() -> None:
    device = Device(raise_on_removal=True)
    operator = compiled(device, GOOD)
    made = device.create_operator_initializer([operator])
    empty = device.create_binding_table(None)
    bad_size = BindingTableDesc(operator, size_in_descriptors=1)
    calls: dict[str, Callable[[], object]] = {
        "DMLCreateDevice1": lambda: Device("1_0", "2_0"),
        "CheckFeatureSupport": lambda: device.check_feature_support(7, 0),
        "CreateOperator": lambda: device.create_operator(None),
        "CompileOperator": lambda: device.compile_operator(None),
        "CreateOperatorInitializer": lambda: device.create_operator_initializer([compiled(Device(), GOOD)]),
        "Reset": lambda: made.reset([compiled(Device(), GOOD)]),
        "CreateBindingTable": lambda: device.create_binding_table(bad_size),
        "BindInputs": lambda: empty.bind_inputs([]),
        "BindOutputs": lambda: empty.bind_outputs([]),
        "BindTemporaryResource": lambda: empty.bind_temporary_resource(BindingDesc()),
        "BindPersistentResource": lambda: empty.bind_persistent_resource(BindingDesc()),
        "RecordDispatch": lambda: device.create_command_recorder().record_dispatch(operator, empty),
    }
    for name, call in calls.items():
        with pytest.raises(DmlError) as error:
            call()
        assert error.value.call == name
    with pytest.raises(DmlError, match="Reset: E_INVALIDARG"):
        empty.reset(bad_size)
    with pytest.raises(DmlError, match="BindInputs: DXGI_ERROR_DEVICE_REMOVED"):
        table(device, operator).bind_inputs([BindingDesc()])
    with pytest.raises(DmlError, match=r"CreateCommandRecorder: DXGI_ERROR_DEVICE_REMOVED.*\n.*DML-DEVICE-removed"):
        device.create_command_recorder()
    assert device.removal is not None


@pytest.mark.parametrize(("new", "removed_by"), [(GOOD, set()), (OWNED, {"DML-BINDING-missing"})])
def test_a_reset_initializer_s_old_table_lacks_only_what_the_new_operators_need(
    new: TileOperatorDesc, removed_by: set[str]
) -> None:
    device = Device()
    made = device.create_operator_initializer([compiled(device, GOOD)])
    bindings = table(device, made)
    made.reset([compiled(device, new)])
    device.create_command_recorder().record_dispatch(made, bindings)
    assert (removing_rules(device) if device.removal else set()) == removed_by


def test_a_refused_reset_of_an_initializer_leaves_its_tables() -> None:
    device = Device(raise_on_removal=True)
    made = device.create_operator_initializer(iter([compiled(device, GOOD)]))
    bindings = table(device, made)
    with pytest.raises(DmlError, match="compiled by another device"):
        made.reset(compiled(other, GOOD) for other in [Device()])
    device.create_command_recorder().record_dispatch(made, bindings)
    assert [operator.initialisations for operator in made.operators] == [1]


def test_a_failed_reset_of_a_table_leaves_its_bindings() -> None:
    (device, operator), out = initialised(GOOD, raise_on_removal=True), output()
    bindings = table(device, operator)
    bindings.bind_inputs([source()])
    bindings.bind_outputs([out])
    with pytest.raises(DmlError, match="SizeInDescriptors"):
        bindings.reset(BindingTableDesc(operator, size_in_descriptors=1))
    device.create_command_recorder().record_dispatch(operator, bindings)
    np.testing.assert_array_equal(written(out), TILED)


def test_other_objects_are_type_errors() -> None:
    device = Device()
    operator = device.create_operator(GOOD)
    other = device.compile_operator(operator)
    bindings, recorder = table(device, other), device.create_command_recorder()
    calls: list[tuple[Callable[..., object], tuple[Any, ...], str]] = [
        (device.check_feature_support, (Feature.FEATURE_LEVELS, "5_0"), "several feature levels"),
        (device.check_feature_support, (Feature.TENSOR_DATA_TYPE_SUPPORT, ["INT8"]), "a data type"),
        (device.compile_operator, ("tile",), "an Operator was expected, not a str"),
        (device.create_operator_initializer, (["tile"],), "a CompiledOperator was expected, not a str"),
        (device.create_operator_initializer, (other,), "a sequence of operators was expected, not a CompiledOperator"),
        (device.create_binding_table, (other,), "a BindingTableDesc was expected, not a CompiledOperator"),
        (BindingTableDesc, ("tile",), "a dispatchable was expected, not a str"),
        (recorder.record_dispatch, (operator, bindings), "not an Operator; compile it first"),
        (recorder.record_dispatch, (bindings, other), "a dispatchable was expected, not a BindingTable"),
        (recorder.record_dispatch, (other, bindings, 3), "a CommandList was expected, not a int"),
        (recorder.record_dispatch, (other, other), "a BindingTable was expected, not a CompiledOperator"),
        (bindings.bind_inputs, (source(),), "a sequence of bindings was expected, not a BufferBinding"),
        (bindings.bind_inputs, ([np.zeros(6)],), "a BindingDesc, a BufferBinding or a BufferArrayBinding"),
    ]
    for call, arguments, message in calls:
        with pytest.raises(TypeError, match=message):
            call(*arguments)


# Mistakes that DirectML does not notice, or notices by crashing


def test_an_operator_that_an_initializer_has_twice_removes_the_device() -> None:
    device = Device()
    initialise(device, [compiled(device, GOOD)] * 2)
    assert removing_rules(device) == {"DML-BINDING-initialised-twice"}


def test_an_output_over_its_input_removes_the_device_and_writes_nothing() -> None:
    memory = bytearray(512)
    whole, behind = Buffer.wrap(memory), Buffer.wrap(memoryview(memory)[16:])
    pairs = ((whole, 0, 24), (whole, 16, 216)), ((whole,), (behind,))
    for given, out in pairs:
        device, operator = initialised(GOOD)
        execute(device, operator, BufferBinding(*given), BufferBinding(*out))
        assert removing_rules(device) == {"DML-BINDING-overlap"}
        assert not any(memory)
    device, operator = initialised(GOOD, raise_on_removal=True)
    execute(device, operator, BufferBinding(whole, 0), BufferBinding(whole, 32))  # the rest of their ranges overlaps


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ((2048, 256, 512), (1024, 1280, 2048)),
        ((0, 256, 2048), (2048, 1280, 1536)),
        ((0, 256, 512), (1024, 1536, 1536)),
    ],
    ids=["read last", "read first", "persistent"],
)
def test_each_persistent_resource_is_apart_from_each_input_and_from_the_others(
    inputs: tuple[int, ...], outputs: tuple[int, ...]
) -> None:
    device, memory = Device(), Buffer(4096)
    made = device.create_operator_initializer([compiled(device, OWNED) for _ in range(3)])
    bindings = table(device, made)
    bindings.bind_inputs([BufferArrayBinding([BufferBinding(memory, offset)]) for offset in inputs])
    bindings.bind_outputs([BufferBinding(memory, offset) for offset in outputs])
    device.create_command_recorder().record_dispatch(made, bindings)
    assert removing_rules(device) == {"DML-BINDING-overlap"}


@pytest.mark.parametrize("other", [BufferBinding(Buffer(24)), BufferBinding(Buffer.wrap(bytearray(24)))])
def test_another_range_than_that_of_the_initialisation_removes_the_device(other: BufferBinding) -> None:
    device, out = Device(), output()
    operator = compiled(device, OWNED)
    (persistent,) = initialise(device, [operator], [source()])
    assert persistent.buffer is not None
    execute(device, operator, source(), out, BufferBinding(Buffer.wrap(persistent.buffer.memory)))
    np.testing.assert_array_equal(written(out), TILED)
    execute(device, operator, source(), out, other)
    assert removing_rules(device) == {"DML-BINDING-persistent"}
    for desc in (OWNED, GOOD):
        never, untouched = Device(), output()
        execute(never, compiled(never, desc), source(), untouched, other)
        assert removing_rules(never) == {"DML-BINDING-uninitialised"}
        assert not written(untouched).any()


def test_a_persistent_resource_s_own_bytes_are_written_and_no_others() -> None:
    device, memory = Device("6_0", raise_on_removal=True), Buffer.wrap(bytearray(b"\xff" * 16))
    short = row("UINT8", [2], [1], InputTensor__Flags=1, InputTensor__TotalTensorSizeInBytes=5)
    operator = compiled(device, short)
    assert operator.get_binding_properties().persistent_resource_size == 8
    assert compiled(Device("5_2"), short).get_binding_properties().persistent_resource_size == 5
    made = device.create_operator_initializer([operator])
    bindings = table(device, made)
    bindings.bind_inputs([BufferArrayBinding([BufferBinding(Buffer(5))])])
    bindings.bind_outputs([BufferBinding(memory)])
    device.create_command_recorder().record_dispatch(made, bindings)
    assert memory.memory.tolist() == [0] * 5 + [255] * 11


def test_all_that_is_wrong_is_reported_at_once() -> None:
    device = Device()
    operator = compiled(device, GOOD)
    device.create_command_recorder().record_dispatch(operator, table(device, operator))
    assert device.removal is not None
    assert [finding.path for finding in device.removal.findings] == ["InputTensor", "OutputTensor", "dispatchable"]


def test_a_dispatch_that_is_refused_takes_no_memory() -> None:
    (device, operator), huge = initialised(GOOD), BufferBinding(Buffer(2**62))
    bindings = table(device, operator)
    bindings.bind_inputs([huge])
    device.create_command_recorder().record_dispatch(operator, bindings)
    assert removing_rules(device) == {"DML-BINDING-missing"}
    lax = Device("5_2", against="runtime")
    wrapping = page_tile(Repeats=[1, 1, 3, 1431655766], OutputTensor__Sizes=[1, 1, 6, 2])
    execute(lax, compiled(lax, wrapping), huge, huge)
    assert lax.removal is None


def test_a_lack_of_memory_is_an_error_that_changes_nothing() -> None:
    (device, operator), out = initialised(GOOD, raise_on_removal=True), output()
    with pytest.raises(MemoryError):
        execute(device, operator, BufferBinding(Buffer(2**62)), out)
    execute(device, operator, source(), out)
    np.testing.assert_array_equal(written(out), TILED)


@pytest.mark.parametrize("by", ["both", "runtime"])
def test_a_crash_at_one_operator_is_one_whatever_comes_after(by: Against) -> None:
    device = Device(against=by)
    made = device.create_operator_initializer([compiled(device, GOOD), compiled(device, OWNED)])
    short = BufferArrayBinding([BufferBinding(Buffer(8))])
    with pytest.raises(DmlError, match="BindInputs: no HRESULT") as error:
        table(device, made).bind_inputs([BindingDesc(), short])
    assert error.value.hresult is None
    assert device.removal is None
    table(device, device.create_operator_initializer([compiled(device, OWNED), compiled(device, GOOD)])).bind_inputs(
        [short, BindingDesc()]
    )
    assert removing_rules(device) >= {"DML-BINDING-SizeInBytes"}


@pytest.mark.parametrize("against", ["runtime", "both"])
def test_an_owned_input_of_type_none_is_missing_too_by_the_documentation_alone(against: Against) -> None:
    device = Device(against=against)
    made = device.create_operator_initializer([compiled(device, OWNED)])
    with pytest.raises(DmlError) as error:
        table(device, made).bind_inputs([BindingDesc()])
    missing = ["DML-BINDING-missing"] * (against == "both")
    assert [finding.rule for finding in error.value.findings] == ["DML-BINDING-initializer-NONE", *missing]


def test_what_only_the_documentation_allows_passes_against_it() -> None:
    device = Device(against="documentation")
    made = device.create_operator_initializer([compiled(device, GOOD)])
    bindings = table(device, made)
    bindings.bind_inputs([BindingDesc()])
    bindings.bind_temporary_resource(None)
    bindings.bind_persistent_resource(None)
    device.create_command_recorder().record_dispatch(made, bindings)
    assert device.removal is None
