"""Views over buffers of every kind."""

from __future__ import annotations

import array
import mmap
from collections.abc import Callable
from multiprocessing import shared_memory
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
    tensor_view(buffer, TensorDataType.UINT16, [2], [3])[1] = 0x0102
    assert bytes(buffer) == bytes([0, 0, 0, 7, 0, 0, 2, 1])


def test_shared_memory_is_a_buffer() -> None:
    block = shared_memory.SharedMemory(create=True, size=64)
    try:
        assert block.buf is not None
        byte_view(block.buf)[:4] = 9
        assert bytes(block.buf[:4]) == b"\t\t\t\t"
    finally:
        block.close()
        block.unlink()


def test_what_is_no_buffer_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        byte_view([1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize("buffer", [np.array([None]), memoryview(np.array([None]).data), np.zeros(1, [("a", "O")])])
def test_what_holds_python_objects_is_refused(buffer: Any) -> None:
    """Their bytes are pointers: reading them leaks addresses, writing them crashes."""
    with pytest.raises(TypeError, match="holds Python objects"):
        byte_view(buffer)


def test_what_is_not_contiguous_is_refused() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        byte_view(np.zeros((4, 4))[:, ::2])
    with pytest.raises(ValueError, match="contiguous"):
        byte_view(memoryview(bytes(8))[::2])


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


def test_a_tensor_may_end_with_the_buffer_and_not_behind_it() -> None:
    assert tensor_view(bytes(20), TensorDataType.FLOAT32, [2, 2], [3, 1]).shape == (2, 2)
    with pytest.raises(ValueError, match="the tensor takes 20 bytes, but the buffer has 19"):
        tensor_view(bytes(19), TensorDataType.FLOAT32, [2, 2], [3, 1])


def test_astronomic_sizes_are_refused_before_anything_is_made() -> None:
    with pytest.raises(ValueError, match="the tensor takes"):
        tensor_view(bytes(19), TensorDataType.FLOAT32, [2**32 - 1] * 8)


@pytest.mark.parametrize("data_type", [TensorDataType.UNKNOWN, TensorDataType.UINT4, TensorDataType.INT4])
def test_a_type_without_whole_bytes_has_no_view(data_type: TensorDataType) -> None:
    with pytest.raises(ValueError, match="has no NumPy type"):
        tensor_view(bytes(8), data_type, [1])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("INT32", [2]), TypeError, "DataType: 'INT32' is a name; write TensorDataType.INT32"),
        ((TensorDataType.INT32, [2.0]), TypeError, r"Sizes\[0\]: 2.0 is no integer; write 2"),
        ((TensorDataType.INT32, [2], [1.5]), TypeError, r"Strides\[0\]: 1.5 is no integer; write an integer"),
        ((TensorDataType.INT32, [2], [-1]), ValueError, r"Strides\[0\]: -1 was provided; write an integer from 0"),
        ((TensorDataType.INT32, [2, 1], [1]), ValueError, "Strides: 1 were provided for 2 Sizes; write as many"),
    ],
)
def test_a_tensor_view_tells_the_field_and_what_to_write(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tensor_view(bytes(8), *arguments)
