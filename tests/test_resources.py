"""Buffers, bindings and views: what they hold, and when they take memory."""

from __future__ import annotations

import array
import mmap
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dml_tile.bindings.memory import byte_view, tensor_view
from dml_tile.bindings.resources import (
    BindingDesc,
    Buffer,
    BufferArrayBinding,
    BufferBinding,
    binding_desc,
    bindings_of,
)
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.dtypes import DTYPES
from dml_tile.directml.enums import UINT64_MAX, BindingType, HeapType, ResourceFlags


def test_a_buffer_is_zeros_on_the_default_heap() -> None:
    buffer = Buffer(8)
    assert buffer.memory.tolist() == [0] * 8
    assert (buffer.heap, buffer.flags) == (HeapType.DEFAULT, ResourceFlags.ALLOW_UNORDERED_ACCESS)
    assert repr(buffer) == "Buffer(8, heap='DEFAULT', flags=<ResourceFlags.ALLOW_UNORDERED_ACCESS: 4>)"


def test_a_buffer_takes_no_memory_before_it_is_used() -> None:
    tracemalloc.start()
    try:
        buffer = Buffer(2**40)
        assert BufferBinding(buffer, 2**39).size_in_bytes == 2**39
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    with pytest.raises(MemoryError):
        _ = Buffer(UINT64_MAX).memory


@pytest.mark.parametrize("heap", [HeapType.UPLOAD, 2, "UPLOAD"])
def test_a_heap_is_an_enumerator_its_value_or_its_name(heap: HeapType | int | str) -> None:
    assert Buffer(4, heap=heap).heap is HeapType.UPLOAD
    odd = Buffer(4, heap=0, flags=0x80)
    assert (odd.heap, int(odd.flags)) == (0, 0x80)
    assert "heap=0" in repr(odd)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Buffer(4, heap="GPU"), "'GPU' is no heap type; expected one of DEFAULT, UPLOAD"),
        (lambda: Buffer(-1), "size is -1; an integer from 0 to"),
        (lambda: Buffer(2**64), "size is 18446744073709551616; an integer from 0 to"),
        (lambda: Buffer(4, flags=-1), "flags is -1"),
        (lambda: BufferBinding(Buffer(4), -1, 4), "an integer from 0 to"),
        (lambda: BufferBinding(Buffer(4), 0, -1), "an integer from 0 to"),
        (lambda: BufferBinding(Buffer(4), 0, 2**64), "an integer from 0 to"),
        (lambda: Buffer.wrap(b"1234"), "^memory is read-only; a writable buffer was expected"),
        (lambda: Buffer.wrap(np.zeros((4, 4))[:, ::2]), "contiguous"),
    ],
)
def test_an_impossible_buffer_or_range_is_a_value_error(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_wrapped_object_is_written_in_place() -> None:
    array = np.zeros((2, 2), np.float32)
    buffer = Buffer.wrap(array)
    assert buffer.size == 16
    buffer.memory.view(np.float32)[3] = 7
    assert array[1, 1] == 7
    with mmap.mmap(-1, 16) as memory:
        wrapped = Buffer.wrap(memory, heap="UPLOAD", flags=0)
        assert (wrapped.size, wrapped.heap, wrapped.flags) == (16, HeapType.UPLOAD, ResourceFlags.NONE)
        del wrapped


@pytest.mark.parametrize(
    ("arguments", "size", "is_empty"),
    [
        ((Buffer(64), 16), 48, False),
        ((Buffer(64), 65), 0, False),
        ((Buffer(4), 0, 0), 0, False),
        ((None,), 0, True),
        ((None, 16), 0, False),
        ((None, 0, 4), 4, False),
    ],
)
def test_a_range_goes_to_the_end_by_default_and_is_empty_without_a_buffer(
    arguments: Any, size: int, is_empty: bool
) -> None:
    binding = BufferBinding(*arguments)
    assert (binding.size_in_bytes, binding.is_empty) == (size, is_empty)


def test_a_region_is_there_if_the_buffer_has_it() -> None:
    buffer = Buffer(64)
    region = BufferBinding(buffer, 16).region(48)
    assert region is not None
    region[:] = 1
    assert buffer.memory.sum() == 48
    assert BufferBinding(buffer, 16).region(49) is None
    assert BufferBinding(None).region(0) is None


@pytest.mark.parametrize("integer", [np.uint8, np.int32, np.uint64])
def test_numpy_s_integers_are_integers(integer: type[np.integer[Any]]) -> None:
    binding = BufferBinding(Buffer(integer(64)), integer(48), integer(16))
    assert (type(binding.offset), type(binding.size_in_bytes)) == (int, int)
    assert binding.buffer is not None
    assert type(binding.buffer.size) is int


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BufferBinding(np.zeros(6)), "a Buffer was expected, not a ndarray; Buffer.wrap\\(\\) makes one of it"),  # type: ignore[arg-type]
        (lambda: BufferArrayBinding([None]), "a BufferBinding was expected, not a NoneType"),  # type: ignore[list-item]
        (lambda: BufferArrayBinding([Buffer(4)]), "a BufferBinding was expected, not a Buffer"),  # type: ignore[list-item]
        (lambda: BindingDesc(BindingType.BUFFER, BufferArrayBinding([])), "takes a BufferBinding, not a BufferArray"),
        (lambda: BindingDesc(2, BufferBinding(None)), "takes a BufferArrayBinding, not a BufferBinding"),
        (lambda: BindingDesc(0, Buffer(4)), "takes a BufferBinding or a BufferArrayBinding, not a Buffer"),  # type: ignore[arg-type]
        (lambda: BindingDesc("BUFFER"), "cannot be interpreted as an integer"),  # type: ignore[arg-type]
        (lambda: Buffer(24.0), "cannot be interpreted as an integer"),  # type: ignore[arg-type]
        (lambda: Buffer.wrap([1, 2]), "an object with the buffer protocol was expected"),  # type: ignore[arg-type]
        (lambda: Buffer(4, heap=None), "cannot be interpreted as an integer"),  # type: ignore[arg-type]
        (lambda: bindings_of(BufferBinding(None)), "a sequence of bindings was expected, not a BufferBinding"),  # type: ignore[arg-type]
    ],
)
def test_an_object_of_another_kind_is_a_type_error(make: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


def test_spans_overlap_by_buffer_or_by_address() -> None:
    lazy, other, memory = Buffer(64), Buffer(64), bytearray(64)
    whole, half = Buffer.wrap(memory), Buffer.wrap(memoryview(memory)[32:])

    def overlap(one: BufferBinding, two: BufferBinding, count: int = 16) -> bool:
        spans = one.span(count), two.span(count)
        assert spans[0] is not None
        assert spans[1] is not None
        return spans[0].overlaps(spans[1])

    assert overlap(BufferBinding(lazy, 0), BufferBinding(lazy, 15))
    assert not overlap(BufferBinding(lazy, 0), BufferBinding(lazy, 16))
    assert not overlap(BufferBinding(lazy), BufferBinding(other))
    assert overlap(BufferBinding(whole, 17), BufferBinding(half))
    assert not overlap(BufferBinding(whole, 16), BufferBinding(half))
    assert overlap(BufferBinding(whole, 48), BufferBinding(half, 16))
    assert BufferBinding(lazy, 49).span(16) is None
    assert lazy.home == (lazy, 0), "a span takes no memory"


def test_a_binding_describes_itself() -> None:
    one = BufferBinding(Buffer(4))
    many = BufferArrayBinding([one])
    assert binding_desc(one) == BindingDesc(BindingType.BUFFER, one)
    assert binding_desc(many) == BindingDesc(BindingType.BUFFER_ARRAY, many)
    assert binding_desc(BindingDesc(7)) == BindingDesc(7)
    with pytest.raises(TypeError, match=r"not a Buffer$"):
        binding_desc(Buffer(4))  # type: ignore[arg-type]


# Views

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
        # their bytes are pointers: reading them leaks addresses, writing them crashes
        (np.array([None]), TypeError, "holds Python objects"),
        (memoryview(np.array([None]).data), TypeError, "holds Python objects"),
        (np.zeros(1, [("a", "O")]), TypeError, "holds Python objects"),
        (memoryview(bytes(8))[::2], ValueError, "contiguous"),
    ],
)
def test_what_has_no_contiguous_bytes_is_refused(buffer: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        byte_view(buffer)


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
