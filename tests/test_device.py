"""The simulated device: what it is made of, what it answers, and what it writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dml_tile.device import Buffer, BufferBinding, Device
from dml_tile.directml.enums import HRESULT, Feature, FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.simulation.target import simulate
from tests.helpers.descriptors import GOOD, at, page_tile, row
from tests.helpers.devices import (
    NUMBERS,
    OWNED,
    TILED,
    compiled,
    execute,
    floats,
    initialise,
    initialised,
    output,
    source,
    written,
)


def test_a_tile_lives_its_life() -> None:
    (device, operator), out = initialised(GOOD, target="windows-11-21h2", raise_on_removal=True), output()
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
    wrong: dict[str, dict[str, Any]] = {
        "did you mean": {"target": "windows-7"},
        "against is 'law'": {"against": "law"},
        "padding is 'zero'; it must be one of 'preserve', 'poison'": {"padding": "zero"},
        "the feature level is -1; an integer from 0 to": {"minimum_feature_level": -1},
        "the feature level is 4294967296; an integer from 0 to": {"minimum_feature_level": 2**32},
        "flags is -1": {"flags": -1},
    }
    for message, arguments in wrong.items():
        with pytest.raises(ValueError, match=message):
            Device(**arguments)


def test_features_are_queried() -> None:
    device = Device("windows-11-21h2")
    assert device.check_feature_support(Feature.FEATURE_LEVELS, ["3_1", "5_0", 0x4000]) is FeatureLevel.parse("4_0")
    with pytest.raises(DmlError, match="CheckFeatureSupport: DXGI_ERROR_UNSUPPORTED"):
        device.check_feature_support(Feature.FEATURE_LEVELS, ["5_0"])
    with pytest.raises(TypeError, match="several feature levels"):
        device.check_feature_support(Feature.FEATURE_LEVELS, "5_0")
    with pytest.raises(TypeError, match="a data type"):
        device.check_feature_support(Feature.TENSOR_DATA_TYPE_SUPPORT, ["INT8"])


@pytest.mark.parametrize(
    ("target", "types"),
    [
        (at("2_1"), set(range(1, 9))),
        (at("3_0"), set(range(1, 12))),
        (at("6_2"), set(range(1, 12))),
        (at("6_3"), set(range(1, 14))),
        (at("5_2", double_precision=False, typed_uav_loads=False), {1, 2, 3, 4, 6, 7, 10, 11}),
        (at("6_0", typed_uav_loads=False), set(range(1, 12))),
        (at("6_2", native_16_bit_ops=False), set(range(1, 12))),
        (at("6_2", typed_uav_loads=False, native_16_bit_ops=False), {1, 3, 5, 6, 8, 9, 10, 11}),
    ],
)
def test_the_level_and_the_adapter_s_capabilities_decide_on_data_types(target: Target, types: set[int]) -> None:
    device = Device(target)
    assert {kind for kind in range(16) if device.check_feature_support(Feature.TENSOR_DATA_TYPE_SUPPORT, kind)} == types


def test_what_the_runtime_accepts_by_wrapping_writes_nothing() -> None:
    device, memory = Device("5_2", against="runtime"), Buffer.wrap(bytearray(range(256)) * 2)
    before = memory.memory.copy()
    wrapping = page_tile(Repeats=[1, 1, 3, 1431655766], OutputTensor__Sizes=[1, 1, 6, 2])
    execute(device, compiled(device, wrapping), BufferBinding(memory), BufferBinding(memory, 256))
    good = compiled(device, GOOD)
    execute(device, good, BufferBinding(memory, 0), BufferBinding(memory, 0))
    execute(device, good, BufferBinding(memory, 0), BufferBinding(memory, 2**64 - 16, 512))
    assert device.removal is None
    np.testing.assert_array_equal(memory.memory, before)


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
