"""The simulated device by the strict contract: what it does, and what it makes of what nobody checks at run time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from devices import compiled, execute, floats, initialise, table
from tiles import GOOD, at, row, tile

import dml_tile
from dml_tile import device as device_package
from dml_tile.device import (
    BindingDesc,
    BindingTableDesc,
    Buffer,
    BufferArrayBinding,
    BufferBinding,
    Device,
)
from dml_tile.enums import HRESULT, ExecutionFlags, Feature, FeatureLevel, TensorDataType
from dml_tile.executor import Prepared
from dml_tile.findings import DmlError
from dml_tile.simulation import simulate

NUMBERS = np.arange(1, 7, dtype=np.float32)
TILED = np.tile(NUMBERS.reshape(2, 3), (3, 3))
OWNED = tile(InputTensor__Flags=1)


def source() -> BufferBinding:
    return BufferBinding(Buffer.wrap(NUMBERS.copy()))


def output() -> BufferBinding:
    return BufferBinding(Buffer(216))


def written(binding: BufferBinding) -> np.ndarray:
    assert binding.buffer is not None
    return floats(binding.buffer).reshape(6, 9)


def removing_rules(device: Device) -> set[str]:
    assert device.removal is not None
    return {finding.rule for finding in device.removal.findings}


def test_a_tile_lives_its_life() -> None:
    device, out = Device("windows-11-21h2", raise_on_removal=True), output()
    operator = compiled(device, GOOD)
    initialise(device, [operator])
    execute(device, operator, source(), out)
    np.testing.assert_array_equal(written(out), TILED)
    assert device.get_device_removed_reason() == HRESULT.S_OK


def test_an_owned_input_is_read_once_at_initialisation() -> None:
    device, out, given = Device(raise_on_removal=True), output(), source()
    operator = compiled(device, OWNED)
    (persistent,) = initialise(device, [operator], [given])
    assert given.buffer is not None
    given.buffer.memory[:] = 0
    for _ in range(2):
        execute(device, operator, given, out, persistent)
    np.testing.assert_array_equal(written(out), TILED)


def test_several_operators_are_initialised_at_once() -> None:
    device, out = Device(raise_on_removal=True), output()
    operators = [compiled(device, desc) for desc in (GOOD, OWNED, GOOD)]
    persistent = initialise(device, operators, [None, source(), None])
    execute(device, operators[1], source(), out, persistent[1])
    np.testing.assert_array_equal(written(out), TILED)
    execute(device, operators[2], source(), out)


def test_a_range_within_a_buffer_is_read_and_written_there() -> None:
    device, memory = Device(raise_on_removal=True), Buffer(1024)
    floats(memory)[4:10] = NUMBERS
    operator = compiled(device, GOOD)
    initialise(device, [operator])
    execute(device, operator, BufferBinding(memory, 16, 24), BufferBinding(memory, 512, 216))
    np.testing.assert_array_equal(floats(memory)[128:182].reshape(6, 9), TILED)
    assert not memory.memory[40:512].any()
    assert not memory.memory[728:].any()


def test_the_simulated_target_is_the_default() -> None:
    with simulate("windows-10-2004"):
        device = Device()
    assert device.target == at("windows-10-2004")
    with pytest.raises(DmlError) as error:
        device.create_operator(row("INT32", [1] * 4, [1] * 4))
    assert error.value.hresult == HRESULT.E_INVALIDARG
    assert str(error.value).startswith("CreateOperator: E_INVALIDARG 0x80070057\n  [DML-TILE-DataType-level]")


def test_a_floor_limits_creation_and_nothing_else() -> None:
    with pytest.raises(DmlError, match="windows-11-21h2 has DML_FEATURE_LEVEL_4_0") as error:
        Device("windows-11-21h2", "4_1")
    assert error.value.hresult == HRESULT.DXGI_ERROR_UNSUPPORTED
    device = Device("6_4", FeatureLevel.DML_FEATURE_LEVEL_1_0)
    device.create_operator(row("INT64", [1] * 8, [2] * 8))


def test_unknown_words_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="did you mean"):
        Device("windows-7")
    with pytest.raises(ValueError, match="against is 'law'"):
        Device(against="law")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="padding is 'zero'; it must be one of 'preserve', 'poison'"):
        Device(padding="zero")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is no feature level"):
        Device(minimum_feature_level=-1)


def test_features_are_queried() -> None:
    device = Device("windows-11-21h2")
    assert device.check_feature_support(Feature.FEATURE_LEVELS, ["3_1", "5_0", 0x4000]) is FeatureLevel.parse("4_0")
    supported = [
        kind for kind in TensorDataType if device.check_feature_support(Feature.TENSOR_DATA_TYPE_SUPPORT, kind)
    ]
    assert supported == [kind for kind in TensorDataType if 1 <= kind <= 11]
    with pytest.raises(DmlError, match="CheckFeatureSupport: DXGI_ERROR_UNSUPPORTED"):
        device.check_feature_support(Feature.FEATURE_LEVELS, ["5_0"])
    with pytest.raises(TypeError, match="several feature levels"):
        device.check_feature_support(Feature.FEATURE_LEVELS, "5_0")
    with pytest.raises(TypeError, match="a data type"):
        device.check_feature_support(Feature.TENSOR_DATA_TYPE_SUPPORT, ["INT8"])


@pytest.mark.parametrize(
    ("level", "types"),
    [("2_1", set(range(1, 9))), ("3_0", set(range(1, 12))), ("6_2", set(range(1, 12))), ("6_3", set(range(1, 14)))],
)
def test_data_types_are_supported_from_the_level_that_introduced_them(level: str, types: set[int]) -> None:
    device = Device(level)
    assert {kind for kind in range(16) if device.check_feature_support(Feature.TENSOR_DATA_TYPE_SUPPORT, kind)} == types


def test_the_adapter_s_capabilities_decide_on_data_types() -> None:
    poor = at("5_2", double_precision=False, typed_uav_loads=False)
    refused = {TensorDataType.FLOAT64, TensorDataType.UINT8, TensorDataType.INT8}
    for kind in refused:
        assert not Device(poor).check_feature_support(Feature.TENSOR_DATA_TYPE_SUPPORT, kind)
    newer = Device(at("6_0", typed_uav_loads=False))
    assert newer.check_feature_support(Feature.TENSOR_DATA_TYPE_SUPPORT, TensorDataType.UINT8)


# What nobody checks at run time


def test_an_operator_that_was_never_initialised_removes_the_device() -> None:
    device, out = Device(), output()
    execute(device, compiled(device, GOOD), source(), out)
    assert removing_rules(device) == {"DML-BINDING-uninitialised"}
    assert not written(out).any()


def test_an_operator_that_is_initialised_twice_removes_the_device() -> None:
    device = Device()
    operator = compiled(device, GOOD)
    initialise(device, [operator])
    assert device.removal is None
    initialise(device, [operator])
    assert removing_rules(device) == {"DML-BINDING-initialised-twice"}


def test_the_same_operator_twice_in_an_initializer_is_initialised_twice() -> None:
    device = Device()
    operator = compiled(device, GOOD)
    initialise(device, [operator, operator])
    assert removing_rules(device) == {"DML-BINDING-initialised-twice"}


def test_an_output_over_its_input_removes_the_device_and_writes_nothing() -> None:
    device = Device()
    operator = compiled(device, GOOD)
    initialise(device, [operator])
    memory = Buffer(512)
    execute(device, operator, BufferBinding(memory, 0, 24), BufferBinding(memory, 16, 216))
    assert removing_rules(device) == {"DML-BINDING-overlap"}
    assert not memory.memory.any()


def test_two_buffers_over_the_same_memory_overlap() -> None:
    device, memory = Device(), bytearray(512)
    operator = compiled(device, GOOD)
    initialise(device, [operator])
    shared = Buffer.wrap(memory), Buffer.wrap(memoryview(memory)[16:])
    execute(device, operator, BufferBinding(shared[0]), BufferBinding(shared[1]))
    assert removing_rules(device) == {"DML-BINDING-overlap"}


def test_only_the_tensors_bytes_overlap_not_the_rest_of_their_ranges() -> None:
    device, memory = Device(raise_on_removal=True), Buffer(512)
    operator = compiled(device, GOOD)
    initialise(device, [operator])
    execute(device, operator, BufferBinding(memory, 0), BufferBinding(memory, 32))


def test_persistent_resources_that_overlap_remove_the_device() -> None:
    device, memory = Device(), Buffer(512)
    made = device.create_operator_initializer([compiled(device, OWNED), compiled(device, OWNED)])
    bindings = table(device, made)
    bindings.bind_inputs([BufferArrayBinding([source()]), BufferArrayBinding([source()])])
    bindings.bind_outputs([BufferBinding(memory, 0), BufferBinding(memory, 0)])
    device.create_command_recorder().record_dispatch(made, bindings)
    assert removing_rules(device) == {"DML-BINDING-overlap"}


@pytest.mark.parametrize(("flags", "by"), [(0, "both"), (0, "runtime"), (4, "both")])
def test_a_missing_binding_removes_the_device(flags: int, by: dml_tile.Against) -> None:
    device = Device(against=by)
    operator = compiled(device, GOOD, flags)
    initialise(device, [operator])
    bindings = table(device, operator)
    bindings.bind_outputs([output()])
    device.create_command_recorder().record_dispatch(operator, bindings)
    assert removing_rules(device) == {"DML-BINDING-missing"}


def test_a_missing_volatile_binding_goes_unnoticed_at_run_time_and_writes_nothing() -> None:
    device, out = Device(against="runtime"), output()
    operator = compiled(device, GOOD, ExecutionFlags.DESCRIPTORS_VOLATILE)
    bindings = table(device, operator)
    bindings.bind_outputs([out])
    device.create_command_recorder().record_dispatch(operator, bindings)
    assert device.removal is None
    assert not written(out).any()


def test_objects_of_two_devices_do_not_mix() -> None:
    mine, other = Device(), Device()
    operator = compiled(other, GOOD)
    with pytest.raises(DmlError, match="compiled by another device"):
        mine.create_operator_initializer([operator])
    with pytest.raises(DmlError, match="made by another device"):
        table(mine, operator)
    initialise(other, [operator])
    bindings = table(other, operator)
    mine.create_command_recorder().record_dispatch(operator, bindings)
    assert removing_rules(mine) == {"DML-DISPATCH-device"}
    assert other.removal is None


def test_a_custom_heap_is_accepted_at_run_time_only() -> None:
    binding = BufferBinding(Buffer(24, heap="CUSTOM"))
    strict, lax = Device(), Device(against="runtime")
    for device in (strict, lax):
        table(device, compiled(device, GOOD)).bind_inputs([binding])
    assert removing_rules(strict) == {"DML-BINDING-heap"}
    assert lax.removal is None


@pytest.mark.parametrize("by", ["both", "runtime"])
def test_what_crashes_is_told(by: dml_tile.Against) -> None:
    device = Device(against=by)
    operator = compiled(device, GOOD)
    empty = device.create_binding_table(None)
    made = device.create_operator_initializer([operator])
    crashes: list[Callable[[], object]] = [
        lambda: device.create_operator(tile(Repeats=None)),
        lambda: device.create_binding_table(BindingTableDesc(None)),
        lambda: empty.bind_inputs([source()]),
        lambda: empty.bind_persistent_resource(BindingDesc()),
        lambda: table(device, operator).bind_temporary_resource(None),
        lambda: table(device, made).bind_inputs([BindingDesc()]),
        lambda: device.create_command_recorder().record_dispatch(None, empty),
        lambda: device.create_command_recorder().record_dispatch(operator, None),
        lambda: device.create_command_recorder().record_dispatch(operator, empty),
    ]
    for crash in crashes:
        with pytest.raises(DmlError, match="crash") as error:
            crash()
        assert error.value.hresult is None
        assert error.value.findings[0].crash
    assert device.removal is None


def test_what_only_the_documentation_allows_passes_against_it() -> None:
    device = Device(against="documentation")
    made = device.create_operator_initializer([compiled(device, GOOD)])
    bindings = table(device, made)
    bindings.bind_inputs([BindingDesc()])
    bindings.bind_temporary_resource(None)
    bindings.bind_persistent_resource(None)
    device.create_command_recorder().record_dispatch(made, bindings)
    assert device.removal is None


# Removal


def test_a_removed_device_does_nothing_and_says_why() -> None:
    device, out = Device(), output()
    operator = compiled(device, GOOD)
    initialise(device, [operator])
    bindings = table(device, operator)
    bindings.bind_inputs([source()])
    bindings.bind_outputs([BufferBinding(Buffer(256), 4)])
    assert device.get_device_removed_reason() == HRESULT.DXGI_ERROR_DEVICE_REMOVED
    assert str(device.removal).startswith("BindOutputs: [DML-BINDING-Offset] OutputTensor: the value of Offset is mis")
    bindings.bind_outputs([out])
    with pytest.raises(DmlError, match=r"the device was removed by BindOutputs: \[DML-BINDING-Offset\]") as error:
        device.create_operator(GOOD)
    assert error.value.hresult == HRESULT.DXGI_ERROR_DEVICE_REMOVED
    assert not written(out).any()
    assert Device().get_device_removed_reason() == HRESULT.S_OK


def test_the_first_removal_stays_the_reason() -> None:
    device = Device()
    bindings = table(device, compiled(device, GOOD))
    bindings.bind_inputs([BindingDesc()])
    bindings.bind_inputs([source(), source()])
    assert removing_rules(device) == {"DML-BINDING-missing"}


def test_removal_is_raised_where_it_is_asked_for() -> None:
    device = Device(raise_on_removal=True)
    bindings = table(device, compiled(device, GOOD))
    with pytest.raises(DmlError, match="BindInputs: DXGI_ERROR_DEVICE_REMOVED") as error:
        bindings.bind_inputs([BufferBinding(Buffer(20))])
    assert error.value.call == "BindInputs"
    assert [finding.rule for finding in error.value.findings] == ["DML-BINDING-SizeInBytes"]
    assert device.get_device_removed_reason() == HRESULT.DXGI_ERROR_DEVICE_REMOVED


def test_a_reset_initializer_s_old_table_is_of_no_use() -> None:
    device = Device()
    made = device.create_operator_initializer([compiled(device, GOOD)])
    bindings = table(device, made)
    made.reset([compiled(device, GOOD)])
    device.create_command_recorder().record_dispatch(made, bindings)
    assert removing_rules(device) == {"DML-DISPATCH-table"}


def test_a_failed_reset_of_a_table_leaves_its_bindings() -> None:
    device, out = Device(raise_on_removal=True), output()
    operator = compiled(device, GOOD)
    initialise(device, [operator])
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
    with pytest.raises(TypeError, match="an Operator was expected, not a str"):
        device.compile_operator("tile")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a CompiledOperator was expected, not a Operator"):
        device.create_operator_initializer([operator])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="a BindingDesc, a BufferBinding or a BufferArrayBinding"):
        table(device, device.compile_operator(operator)).bind_inputs([np.zeros(6)])  # type: ignore[list-item]


# What is written


def test_what_the_runtime_accepts_by_wrapping_writes_nothing() -> None:
    device, memory = Device("5_2", against="runtime"), Buffer(512)
    wrapping = tile(Repeats=[1, 1, 3, 1431655766], OutputTensor__Sizes=[1, 1, 6, 2])
    execute(device, compiled(device, wrapping), BufferBinding(memory), BufferBinding(memory, 256))
    good = compiled(device, GOOD)
    execute(device, good, BufferBinding(memory, 0), BufferBinding(memory, 0))
    execute(device, good, BufferBinding(memory, 0), BufferBinding(memory, 2**64 - 16, 512))
    assert device.removal is None
    assert not memory.memory.any()


def test_padding_is_preserved_or_poisoned() -> None:
    padded = row("FLOAT32", [2, 1], [1, 2], OutputTensor__Strides=[4, 1], OutputTensor__TotalTensorSizeInBytes=28)
    for padding, byte in (("preserve", 0), ("poison", 0xCD)):
        device = Device(padding=padding, raise_on_removal=True)  # type: ignore[arg-type]
        operator, out = compiled(device, padded), Buffer(64)
        initialise(device, [operator])
        given = BufferBinding(Buffer.wrap(np.array([1, 2], np.float32)))
        execute(device, operator, given, BufferBinding(out, 16))
        assert floats(out)[4:6].tolist() == [1, 1]
        assert floats(out)[8:10].tolist() == [2, 2]
        assert set(out.memory[24:32]) == set(out.memory[40:44]) == {byte}
        assert not out.memory[:16].any()
        assert not out.memory[44:].any()


# Threads


def test_many_threads_use_one_device() -> None:
    device, count = Device(raise_on_removal=True), 25
    rng = np.random.default_rng(7)
    inputs = rng.random((8, count, 2, 3), np.float32)
    outputs = np.zeros((8, count, 6, 9), np.float32)
    errors: list[BaseException] = []

    def work(i: int) -> None:
        try:
            for j in range(count):
                operator = compiled(device, OWNED if j % 2 else GOOD)
                given = BufferBinding(Buffer.wrap(inputs[i, j]))
                (persistent,) = initialise(device, [operator], [given if operator.owns_input else None])
                execute(device, operator, given, BufferBinding(Buffer.wrap(outputs[i, j])), persistent)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    np.testing.assert_array_equal(outputs, np.tile(inputs, (1, 1, 3, 3)))


def test_no_lock_is_held_while_bytes_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(raise_on_removal=True)
    both_are_copying = threading.Barrier(2, timeout=30)
    run = Prepared.run

    def run_when_both_are_here(self: Prepared) -> None:
        both_are_copying.wait()
        device.create_operator(GOOD)
        initialise(device, [compiled(device, GOOD)])
        run(self)

    monkeypatch.setattr(Prepared, "run", run_when_both_are_here)
    operator, outputs = compiled(device, GOOD), [output(), output()]
    initialise(device, [operator])
    threads = [threading.Thread(target=execute, args=(device, operator, source(), out)) for out in outputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for out in outputs:
        np.testing.assert_array_equal(written(out), TILED)


def test_the_package_names_what_is_public() -> None:
    assert device_package.Device is dml_tile.Device
    assert device_package.Buffer is dml_tile.Buffer
