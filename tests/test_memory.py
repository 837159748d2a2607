"""Views over buffers of every kind."""

from __future__ import annotations

import array
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dml_tile.bindings.memory import byte_view, tensor_view
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.dtypes import DTYPES

ZEROS = bytes(16)
MAKERS: list[Callable[[], Any]] = [
    lambda: ZEROS,
    lambda: bytearray(ZEROS),
    lambda: memoryview(bytearray(ZEROS)),
    lambda: memoryview(bytearray(20))[4:],
    lambda: array.array("d", [0.0, 0.0]),
    lambda: np.zeros((2, 2), np.float32),
    lambda: np.zeros(4, ">i4"),
    lambda: np.zeros(2, "M8[D]"),
    lambda: mmap.mmap(-1, 16),
]


@pytest.mark.parametrize("make", MAKERS)
def test_any_contiguous_buffer_is_seen_as_bytes(make: Callable[[], Any]) -> None:
    buffer = make()
    assert bytes(byte_view(buffer)) == ZEROS


def test_a_view_is_no_copy() -> None:
    buffer = bytearray(8)
    byte_view(buffer)[3] = 7
    tensor_view(buffer, TensorDataType.UINT16, [2], [3])[1] = 0x0102  # the tensor ends with the buffer
    assert bytes(buffer) == bytes([0, 0, 0, 7, 0, 0, 2, 1])


@pytest.mark.parametrize(
    ("buffer", "error", "message"),
    [
        ([1, 2], TypeError, "an object with the buffer protocol was expected"),
        # their bytes are pointers: reading them leaks addresses, writing them crashes
        (np.array([None]), TypeError, "holds Python objects"),
        (memoryview(np.array([None]).data), TypeError, "holds Python objects"),
        (np.zeros(1, [("a", "O")]), TypeError, "holds Python objects"),
        (np.zeros((4, 4))[:, ::2], ValueError, "contiguous"),
        (memoryview(bytes(8))[::2], ValueError, "contiguous"),
    ],
)
def test_what_has_no_contiguous_bytes_is_refused(buffer: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        byte_view(buffer)


def test_what_is_read_only_is_refused_for_writing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^the buffer is read-only; a writable buffer was expected"):
        byte_view(b"1234", writable=True)
    path = tmp_path / "data.bin"
    path.write_bytes(ZEROS)
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        pytest.raises(ValueError, match="read-only"),
    ):
        byte_view(mapped, writable=True)


@pytest.mark.parametrize("data_type", DTYPES)
def test_a_tensor_has_its_type_and_strides(data_type: int) -> None:
    view = tensor_view(bytearray(8 * 16), TensorDataType(data_type), [2, 3], [8, 2])
    assert view.dtype == np.dtype(TensorDataType(data_type).name.lower())
    assert view.shape == (2, 3)
    assert view.strides == (8 * view.itemsize, 2 * view.itemsize)


F, I = TensorDataType.FLOAT32, TensorDataType.INT32  # noqa: E741


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((F, [2, 2, 1], [3, 1, 1]), ValueError, "the tensor takes 20 bytes, but the buffer has 19"),
        ((F, [2**32 - 1] * 8), ValueError, "the tensor takes"),
        ((TensorDataType.UNKNOWN, [1]), ValueError, "has no NumPy type"),
        ((TensorDataType.UINT4, [1]), ValueError, "has no NumPy type"),
        ((TensorDataType.INT4, [1]), ValueError, "has no NumPy type"),
        (("INT32", [2]), TypeError, "DataType: 'INT32' is a name; write TensorDataType.INT32"),
        ((I, [2.0]), TypeError, r"Sizes\[0\]: 2.0 is no integer; write 2"),
        ((I, [2], [1.5]), TypeError, r"Strides\[0\]: 1.5 is no integer; write an integer"),
        ((I, [2], [-1]), ValueError, r"Strides\[0\]: -1 was provided; write an integer from 0"),
        ((I, [2, 1], [1]), ValueError, "Strides: 1 were provided for 2 Sizes; write as many"),
    ],
)
def test_a_tensor_view_that_there_cannot_be_is_an_error_that_says_why(
    arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tensor_view(bytes(19), *arguments)
