"""The one table of data types, and what the package makes of each row."""

from __future__ import annotations

import array
import mmap
import re
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from pydantic import ValidationError

from dml_tile import (
    BindingTableDesc,
    Buffer,
    BufferBinding,
    BufferTensorDesc,
    Device,
    Target,
    TensorDataType,
    TileOperatorDesc,
    check,
    data_type_of,
    dtype_of,
    execute,
    lower,
    run_lowering,
)
from dml_tile.arrays import tile
from dml_tile.directml.data_types import CARRIERS, ELEMENT_SIZES, ELEMENT_TYPES, ONNX_NAMES, OPENVINO_NAMES, ElementType
from dml_tile.directml.dtypes import DTYPES
from dml_tile.directml.targets import tile_rows
from dml_tile.reports.levels import KINDS

TAKEN: Final = sorted(tile_rows()[-1].data_types)


def missing(data_type: TensorDataType) -> list[str]:
    """What a data type of the support table needs and does not have."""
    since = next((row.since for row in tile_rows() if data_type in row.data_types), tile_rows()[-1].since)
    needed = {
        "whole bytes": data_type in ELEMENT_SIZES,
        "a dtype of its size": data_type in DTYPES and DTYPES[data_type].itemsize * 8 == data_type.bits,
        "its dtype's name": data_type in DTYPES and data_type_of(DTYPES[data_type]) is data_type,
        "its names in models": CARRIERS.get(data_type.onnx) is CARRIERS.get(data_type.openvino) is data_type,
        "its level": Target(since).supports_data_type(data_type),
        "a column of the matrix": data_type in KINDS.get(data_type.kind, ()),
    }
    return [what for what, has in needed.items() if not has]


@pytest.mark.parametrize("data_type", TAKEN, ids=lambda member: member.name)
def test_each_type_of_the_support_table_has_all_it_needs(data_type: TensorDataType) -> None:
    assert missing(data_type) == []
    array = np.arange(8).reshape(2, 4).astype(DTYPES[data_type])
    expected, output = np.tile(array, (2, 2)), np.zeros((4, 8), array.dtype)
    desc = TileOperatorDesc.from_array(array, (2, 2))
    assert check(desc) == ()
    execute(desc, array, output)
    assert output.tobytes() == expected.tobytes() == tile(array, (2, 2)).tobytes()
    lowered = np.zeros_like(output)
    run_lowering(lower(desc, "2_1"), array, lowered)
    assert lowered.tobytes() == expected.tobytes()


def bits(name: str) -> int:
    """The bits that the name of a type gives, as in int16 and f8e4m3."""
    found = re.match("[a-z]+([0-9]+)", name)
    return int(found[1]) if found else 8  # bool


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.onnx)
def test_an_element_type_and_its_carrier_have_the_size_that_their_names_give(row: ElementType) -> None:
    assert row.bits == bits(row.onnx) == bits(row.openvino or row.onnx)
    if row.carrier is not None:
        assert bits(row.carrier.onnx) == row.bits
        assert CARRIERS[row.onnx] is CARRIERS[str(row.openvino)] is row.carrier
    assert ONNX_NAMES.get(OPENVINO_NAMES.get(row.onnx, "")) == (row.onnx if row.openvino else None)


@pytest.mark.parametrize("row", [row for row in ELEMENT_TYPES if row.openvino], ids=lambda row: row.onnx)
def test_openvino_knows_each_name_and_its_size(row: ElementType) -> None:
    ov = pytest.importorskip("openvino", reason="there is no wheel of openvino for every platform")
    known = getattr(ov.Type, str(row.openvino))
    assert known.to_string() == row.openvino
    assert known.bitwidth == row.bits
    assert known.is_real() == (row.onnx[0] in "fb" and row.onnx != "bool")


SHARED = [member for member in TensorDataType if member not in (0, TensorDataType.INT4, TensorDataType.UINT4)]


@pytest.mark.parametrize("data_type", SHARED, ids=lambda member: member.name)
def test_each_data_type_and_its_dtype_name_one_another(data_type: TensorDataType) -> None:
    dtype = np.dtype(data_type.name.lower())
    assert dtype_of(data_type) == dtype_of(data_type.name.lower()) == dtype_of(int(data_type)) == dtype
    assert data_type_of(dtype) is data_type_of(dtype.type) is data_type_of(dtype.name) is data_type


def test_the_4_bit_types_are_those_of_ml_dtypes() -> None:
    assert dtype_of("INT4") == ml_dtypes.int4
    assert dtype_of("DML_TENSOR_DATA_TYPE_UINT4") == ml_dtypes.uint4
    assert data_type_of(ml_dtypes.int4) is TensorDataType.INT4
    assert BufferTensorDesc(data_type=ml_dtypes.uint4, sizes=[2]).data_type is TensorDataType.UINT4


@pytest.mark.parametrize(
    ("convert", "wrong", "error", "message"),
    [
        (dtype_of, TensorDataType.UNKNOWN, ValueError, "has no NumPy dtype; expected one of float32, "),
        (dtype_of, "FLOAT", ValueError, "has no NumPy dtype; expected one of float32, "),
        (dtype_of, 99, ValueError, "99 is not a valid TensorDataType"),
        (data_type_of, None, TypeError, "a dtype was expected, not None"),  # which NumPy reads as float64
    ],
)
def test_what_has_no_dtype_is_an_error(convert: Any, wrong: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        convert(wrong)


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        (np.complex64, "^DirectML has no tensor data type for complex64$"),
        (np.bool_, "for bool; UINT8 carries its bits$"),
        (ml_dtypes.bfloat16, "for bfloat16; UINT16 carries its bits$"),
        (ml_dtypes.float8_e4m3fn, "for float8_e4m3fn$"),
        (np.dtype("M8[D]"), r"for datetime64\[D\]$"),
        (np.dtype(">f4"), r"is >f4, in the other byte order, .*; use dtype\.newbyteorder\('='\)$"),
    ],
    ids=str,
)
def test_a_dtype_without_a_data_type_is_an_error_that_says_what_to_write(dtype: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        data_type_of(dtype)
    with pytest.raises(ValidationError, match=message.strip("^$")):
        BufferTensorDesc(data_type=dtype, sizes=[2])


def test_numpy_s_integers_are_taken_wherever_python_s_are() -> None:
    two = np.uint8(2)
    buffer = BufferTensorDesc(
        data_type=np.int64(1),
        flags=np.uint32(1),
        dimension_count=two,
        sizes=np.array([2, 3], np.int16),
        strides=(np.int64(4), 1),
        total_tensor_size_in_bytes=np.uint64(2**63),
        guaranteed_base_offset_alignment=np.int32(16),
    )
    assert all(type(value) is int for value in (*(buffer.sizes or ()), *(buffer.strides or ()), buffer.dimension_count))
    assert buffer.total_tensor_size_in_bytes == 2**63
    desc = TileOperatorDesc(input_tensor=buffer, output_tensor=None, repeats=[two], repeats_count=two)
    assert (desc.repeats, desc.repeats_count) == ((2,), 2)


def test_inferred_sizes_do_not_overflow_a_small_numpy_integer() -> None:
    desc = TileOperatorDesc.from_input(data_type="int8", sizes=np.array([200], np.uint8), repeats=[np.uint8(2)])
    assert str(desc) == "INT8 {200} x {2} -> {400}"


@pytest.mark.parametrize(
    ("array", "line"),
    [
        (np.array(1, np.int8), "INT8 {1} x {1} -> {1}"),
        (np.zeros((4, 6), np.float32), "FLOAT32 {4,6} x {2,2} -> {8,12}"),
        (np.zeros((4, 6), np.float32)[:, ::2], "FLOAT32 {4,3} strides {6,2} x {2,2} -> {8,6}"),
        (np.zeros((4, 6), np.int64).T, "INT64 {6,4} strides {1,6} x {2,2} -> {12,8}"),
        (np.broadcast_to(np.int8(1), (3, 5)), "INT8 {3,5} strides {0,0} x {2,2} -> {6,10}"),
        (np.zeros((4, 6), np.bool_), "UINT8 {4,6} x {2,2} -> {8,12}"),
        (np.zeros((4, 6), np.int8)[1:2, ::-1][:, :1], "INT8 {1,1} x {2,2} -> {2,2}"),
    ],
)
def test_an_array_is_described_as_it_lies(array: Any, line: str) -> None:
    assert str(TileOperatorDesc.from_array(array, (2,) * array.ndim)) == line


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (np.zeros((4, 6))[::-1], ValueError, r"-48 is negative, .*; describe np\.ascontiguousarray\(array\)"),
        (np.zeros(3, "u1,f4")["f1"], ValueError, "5 is no multiple of an element's 4 bytes"),
        (np.zeros(3, ">f4"), TypeError, r"use array\.astype\(array\.dtype\.newbyteorder\('='\)\)"),
        (np.ma.zeros(3), TypeError, r"masked, .*filled\(\)"),
        (np.zeros(3, ml_dtypes.int4), TypeError, "takes a byte in NumPy, but INT4 half of one"),
        (np.zeros(3, np.complex64), TypeError, "no tensor data type for complex64"),
        ([1, 2], TypeError, "a NumPy array was expected, not a list"),
        (np.zeros((2, 3, 4)), ValueError, "3 sizes take as many repeats; 2 were provided"),
    ],
    ids=["reversed", "a field of records", "byte-swapped", "masked", "4 bits", "complex", "a list", "3 dimensions"],
)
def test_an_array_that_no_descriptor_describes_is_an_error(array: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TileOperatorDesc.from_array(array, [1, 1])


# Typed arrays are executed and bound only as tensors of their own data type

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
        mmap.mmap(-1, size),
    ]


@pytest.mark.parametrize("output", [np.zeros(8, np.float32), array.array("f", [0.0] * 8), *raw(32)], ids=kind)
@pytest.mark.parametrize("given", [VALUES, VALUES.tobytes(), VALUES.view(np.uint8), VALUES.data], ids=kind)
def test_arrays_of_the_tensors_type_and_raw_memory_are_executed(given: Any, output: Any) -> None:
    execute(FLOATS, given, output)
    assert bytes(memoryview(output).cast("B")) == RESULT.tobytes()


@pytest.mark.parametrize(("dtype", "carrier"), [(np.bool_, "UINT8"), (ml_dtypes.bfloat16, "UINT16")])
def test_elements_without_a_type_of_their_own_are_those_of_the_type_that_carries_them(dtype: Any, carrier: str) -> None:
    given, output = np.ones(4, dtype), np.zeros(8, dtype)
    execute(TileOperatorDesc.from_input(data_type=carrier, sizes=[4], repeats=[2]), given, output)
    assert (output == np.ones(8, dtype)).all()


def test_a_lowering_takes_arrays_of_the_original_s_type() -> None:
    desc = TileOperatorDesc.from_input(data_type="int64", sizes=[4], repeats=[2])
    with pytest.raises(TypeError, match="input holds float64, but the tensor's DataType is INT64"):
        run_lowering(lower(desc, "3_1"), np.zeros(4), np.zeros(8, np.int64))


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
    with pytest.raises(TypeError, match="in the other byte order"):
        Buffer.wrap(VALUES.astype(VALUES.dtype.newbyteorder()))
    with pytest.raises(TypeError, match="masked"):
        Buffer.wrap(np.ma.array(VALUES))


@pytest.mark.parametrize("is_writable", [True, False])
def test_a_device_s_execute_refuses_an_array_of_another_type(is_writable: bool) -> None:
    given = np.zeros(4, np.int32)
    given.flags.writeable = is_writable
    with pytest.raises(TypeError, match="InputTensor holds int32"):
        Device().execute(FLOATS, given, np.zeros(8, np.float32))
