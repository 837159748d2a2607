"""Removing a device: the causes, the reported reason, and the calls that still work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.device import BindingDesc, BindingTableDesc, Buffer, BufferBinding, Device
from dml_tile.directml.enums import HRESULT, Feature
from dml_tile.errors import DmlError
from tests.helpers.descriptors import GOOD
from tests.helpers.devices import OWNED, TILED, compiled, initialised, output, removing_rules, source, table, written


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
    with pytest.raises(DmlError, match=r"BindOutputs: DXGI_ERROR_DEVICE_REMOVED.*\n.*DML-DEVICE-removed"):
        empty.bind_outputs([])
    with pytest.raises(DmlError, match="CreateCommandRecorder: DXGI_ERROR_DEVICE_REMOVED"):
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
