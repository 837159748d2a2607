"""Typed arrays are executed and bound only as tensors of their own data type."""

from __future__ import annotations

import array
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from dml_tile import (
    BindingTableDesc,
    Buffer,
    BufferBinding,
    Device,
    TileOperatorDesc,
    compile_tile,
    execute,
    lower,
    run_lowering,
)

FLOATS = TileOperatorDesc.from_input(data_type="float32", sizes=[4], repeats=[2])
VALUES = np.arange(4, dtype=np.float32)
RESULT = np.tile(VALUES, 2)


def kind(value: object) -> str:
    return type(value).__name__


def raw(size: int) -> list[Any]:
    return [
        bytearray(size),
        memoryview(bytearray(size)),
        np.zeros(size, np.uint8),
        np.zeros(size, np.uint8).data,
    ]


@pytest.mark.parametrize("output", [np.zeros(8, np.float32), array.array("f", [0.0] * 8), *raw(32)], ids=kind)
@pytest.mark.parametrize("given", [VALUES, VALUES.tobytes(), VALUES.view(np.uint8), VALUES.data], ids=kind)
def test_arrays_of_the_tensors_type_and_raw_memory_are_executed(given: Any, output: Any) -> None:
    execute(FLOATS, given, output)
    assert bytes(memoryview(output).cast("B")) == RESULT.tobytes()


@pytest.mark.parametrize(
    ("typed", "dtype"),
    [
        (np.zeros(8), "float64"),
        (np.zeros(8, np.int32), "int32"),
        (np.zeros(32, np.int8), "int8"),
        (np.zeros(16, ml_dtypes.bfloat16), "bfloat16"),
        (np.zeros(4, "M8[s]"), "datetime64"),
        (array.array("i", [0] * 8), "int32"),
        (np.zeros(8).data, "float64"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_an_array_of_another_type_is_refused_before_anything_is_written(typed: Any, dtype: str) -> None:
    message = rf"holds {dtype}.*DataType is FLOAT32; pass \w+\.astype\(np\.float32\), or the bytes .*view\(np\.uint8\)"
    output = np.zeros(8, np.float32)
    with pytest.raises(TypeError, match=f"input {message}"):
        execute(FLOATS, typed, output)
    with pytest.raises(TypeError, match=f"output {message}"):
        compile_tile(FLOATS).bind(VALUES, typed)
    assert not output.any()


def test_an_array_in_the_other_byte_order_is_refused_with_the_call_that_mends_it() -> None:
    swapped = VALUES.astype(VALUES.dtype.newbyteorder())
    with pytest.raises(TypeError, match=r"use input\.astype\(input\.dtype\.newbyteorder\('='\)\)"):
        execute(FLOATS, swapped, np.zeros(8, np.float32))
    with pytest.raises(TypeError, match="in the other byte order"):
        Buffer.wrap(swapped)


def test_a_masked_array_is_refused_since_its_mask_would_be_lost() -> None:
    masked = np.ma.array(VALUES, mask=[True, False, False, False])
    with pytest.raises(TypeError, match=r"input is masked, .*filled\(\)"):
        execute(FLOATS, masked, np.zeros(8, np.float32))
    with pytest.raises(TypeError, match="masked"):
        Buffer.wrap(masked)


@pytest.mark.parametrize(("dtype", "carrier"), [(np.bool_, "UINT8"), (ml_dtypes.bfloat16, "UINT16")])
def test_elements_without_a_type_of_their_own_are_those_of_the_type_that_carries_them(dtype: Any, carrier: str) -> None:
    given, output = np.ones(4, dtype), np.zeros(8, dtype)
    execute(TileOperatorDesc.from_input(data_type=carrier, sizes=[4], repeats=[2]), given, output)
    assert (output == np.ones(8, dtype)).all()


def test_a_lowering_takes_arrays_of_the_original_s_type() -> None:
    desc = TileOperatorDesc.from_input(data_type="int64", sizes=[4], repeats=[2])
    lowering, output = lower(desc, "3_1"), np.zeros(8, np.int64)
    run_lowering(lowering, np.arange(4), output)
    assert output.tolist() == [0, 1, 2, 3] * 2
    with pytest.raises(TypeError, match="input holds float64, but the tensor's DataType is INT64"):
        run_lowering(lowering, np.zeros(4), output)


def test_a_buffer_over_an_array_is_bound_as_a_tensor_of_its_type_only() -> None:
    device = Device()
    compiled = device.compile_operator(device.create_operator(FLOATS))
    table = device.create_binding_table(BindingTableDesc(compiled))
    table.bind_inputs([BufferBinding(Buffer.wrap(VALUES.copy()))])
    table.bind_inputs([BufferBinding(Buffer.wrap(VALUES.copy().view(np.uint8)))])
    table.bind_outputs([BufferBinding(Buffer(32))])
    with pytest.raises(TypeError, match="InputTensor holds float64, but the tensor's DataType is FLOAT32"):
        table.bind_inputs([BufferBinding(Buffer.wrap(np.zeros(4)))])
    with pytest.raises(TypeError, match="OutputTensor holds int32"):
        table.bind_outputs([BufferBinding(Buffer.wrap(np.zeros(8, np.int32)))])


@pytest.mark.parametrize("is_writable", [True, False])
def test_a_device_s_execute_refuses_an_array_of_another_type(is_writable: bool) -> None:
    given = np.zeros(4, np.int32)
    given.flags.writeable = is_writable
    with pytest.raises(TypeError, match="InputTensor holds int32"):
        Device().execute(FLOATS, given, np.zeros(8, np.float32))
