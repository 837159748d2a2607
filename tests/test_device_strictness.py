"""The simulated device reports mistakes that DirectML does not notice, or notices by crashing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dml_tile
from dml_tile.device import BindingDesc, Buffer, BufferArrayBinding, BufferBinding, Device
from dml_tile.errors import DmlError
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
def test_a_crash_at_one_operator_is_one_whatever_comes_after(by: dml_tile.Against) -> None:
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
def test_an_owned_input_of_type_none_is_missing_too_by_the_documentation_alone(against: Any) -> None:
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
