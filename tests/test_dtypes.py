"""NumPy's dtypes and DirectML's data types, and arrays that are described as they lie."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from pydantic import ValidationError

from dml_tile import BufferTensorDesc, TileOperatorDesc, check, data_type_of, dtype_of, execute
from dml_tile.descriptors.spellings import JSON_DOCUMENT
from dml_tile.directml.data_types import TensorDataType

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


@pytest.mark.parametrize("data_type", [TensorDataType.UNKNOWN, "FLOAT", 99])
def test_what_has_no_dtype_is_a_value_error(data_type: Any) -> None:
    with pytest.raises(
        ValueError, match=r"99 is not a valid TensorDataType|has no NumPy dtype; expected one of float32, "
    ):
        dtype_of(data_type)


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


def test_json_keeps_its_spellings() -> None:
    text = '{"DataType": "float32", "Sizes": [2]}'
    with pytest.raises(ValidationError, match="did you mean FLOAT32"):
        BufferTensorDesc.model_validate_json(text)
    with pytest.raises(ValidationError, match="did you mean FLOAT32"):
        BufferTensorDesc.model_validate({"DataType": "float32", "Sizes": [2]}, context=JSON_DOCUMENT)


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


def test_the_memory_of_a_described_array_is_tiled_as_numpy_tiles_the_array() -> None:
    whole = np.arange(24, dtype=np.int16).reshape(4, 6)
    array, output = whole[:, ::2], np.zeros((8, 6), np.int16)
    desc = TileOperatorDesc.from_array(array, [2, 2])
    assert check(desc) == ()
    execute(desc, whole, output)
    assert (output == np.tile(array, (2, 2))).all()


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
