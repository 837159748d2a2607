"""Buffers, bindings and views: what they hold, and when they take memory."""

from __future__ import annotations

import array
import mmap
from collections.abc import Callable
from functools import partial
from typing import Any, Final

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
from tests.helpers.costs import at_most


def test_a_buffer_is_zeros_on_the_default_heap() -> None:
    buffer = Buffer(8)
    assert buffer.memory.tolist() == [0] * 8
    assert (buffer.heap, buffer.flags) == (HeapType.DEFAULT, ResourceFlags.ALLOW_UNORDERED_ACCESS)
    assert repr(buffer) == "Buffer(8, heap='DEFAULT', flags=<ResourceFlags.ALLOW_UNORDERED_ACCESS: 4>)"


def test_a_heap_is_an_enumerator_its_value_or_its_name() -> None:
    assert {Buffer(4, heap=heap).heap for heap in (HeapType.UPLOAD, 2, "UPLOAD")} == {HeapType.UPLOAD}
    odd = Buffer(4, heap=0, flags=0x80)
    assert (odd.heap, int(odd.flags), repr(odd)[:17]) == (0, 0x80, "Buffer(4, heap=0,")


def test_a_buffer_takes_no_memory_before_it_is_used() -> None:
    with at_most(2**20):
        assert BufferBinding(Buffer(2**40), 2**39).size_in_bytes == 2**39
    with pytest.raises(MemoryError):
        _ = Buffer(UINT64_MAX).memory


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
def test_a_range_goes_to_the_end_and_is_empty_without_a_buffer(arguments: Any, size: int, is_empty: bool) -> None:
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
    assert not lazy.address, "a span takes no memory"


def test_a_binding_describes_itself() -> None:
    one = BufferBinding(Buffer(4))
    many = BufferArrayBinding([one])
    assert binding_desc(one) == BindingDesc(BindingType.BUFFER, one)
    assert binding_desc(many) == BindingDesc(BindingType.BUFFER_ARRAY, many)
    assert binding_desc(BindingDesc(7)) == BindingDesc(7)


# Views

ZEROS = bytes(16)
CONTIGUOUS: list[Any] = [
    ZEROS,
    bytearray(ZEROS),
    memoryview(bytearray(ZEROS)),
    memoryview(bytearray(20))[4:],
    array.array("d", [0.0, 0.0]),
    np.zeros((2, 2), np.float32),
    np.zeros(4, ">i4"),
    np.zeros(2, "M8[D]"),
    mmap.mmap(-1, 16),
]


@pytest.mark.parametrize("buffer", CONTIGUOUS)
def test_any_contiguous_buffer_is_seen_as_bytes(buffer: Any) -> None:
    assert bytes(byte_view(buffer)) == ZEROS


def test_a_view_is_no_copy() -> None:
    buffer = bytearray(8)
    byte_view(buffer)[3] = 7
    tensor_view(buffer, TensorDataType.UINT16, [2], [3])[1] = 0x0102  # the tensor ends with the buffer
    assert bytes(buffer) == bytes([0, 0, 0, 7, 0, 0, 2, 1])


@pytest.mark.parametrize("data_type", DTYPES)
def test_a_tensor_has_its_type_and_strides(data_type: int) -> None:
    view = tensor_view(bytearray(8 * 16), TensorDataType(data_type), [2, 3], [8, 2])
    assert view.dtype == np.dtype(TensorDataType(data_type).name.lower())
    assert view.shape == (2, 3)
    assert view.strides == (8 * view.itemsize, 2 * view.itemsize)


F, I = TensorDataType.FLOAT32, TensorDataType.INT32  # noqa: E741
NOTHING: Final = BufferBinding(None)
OBJECTS: Final = np.array([None])
"""An array whose bytes are pointers: reading them leaks addresses, writing them crashes."""

WRONG: Final[list[tuple[Callable[..., object], tuple[Any, ...], type[Exception], str]]] = [
    # what is called, with which arguments, and what it raises
    (Buffer, (-1,), ValueError, "size is -1; an integer from 0 to"),
    (Buffer, (True,), TypeError, "size is True; an integer from 0 to"),
    (Buffer, (2**64,), ValueError, "size is 18446744073709551616; an integer from 0 to"),
    (Buffer, (24.0,), TypeError, "an integer from 0 to"),
    (partial(Buffer, heap="GPU"), (4,), ValueError, "'GPU' is no heap type; expected one of DEFAULT, UPLOAD"),
    (partial(Buffer, heap=None), (4,), TypeError, "an integer from 0 to"),  # type: ignore[arg-type]
    (partial(Buffer, flags=-1), (4,), ValueError, "flags is -1"),
    (Buffer.wrap, (b"1234",), ValueError, "^memory is read-only; a writable buffer was expected"),
    (Buffer.wrap, (np.zeros((4, 4))[:, ::2],), ValueError, "contiguous"),
    (Buffer.wrap, ([1, 2],), TypeError, "an object with the buffer protocol was expected"),
    (BufferBinding, (Buffer(4), -1, 4), ValueError, "an integer from 0 to"),
    (BufferBinding, (Buffer(4), 0, -1), ValueError, "an integer from 0 to"),
    (BufferBinding, (Buffer(4), 0, 2**64), ValueError, "an integer from 0 to"),
    (BufferBinding, (OBJECTS,), TypeError, r"a Buffer was expected, not a ndarray; Buffer.wrap\(\) makes one of it"),
    (BufferArrayBinding, ([None],), TypeError, "a BufferBinding was expected, not a NoneType"),
    (BufferArrayBinding, ([Buffer(4)],), TypeError, "a BufferBinding was expected, not a Buffer"),
    (BindingDesc, (BindingType.BUFFER, BufferArrayBinding([])), TypeError, "takes a BufferBinding, not a BufferArray"),
    (BindingDesc, (2, NOTHING), TypeError, "takes a BufferArrayBinding, not a BufferBinding"),
    (BindingDesc, (0, Buffer(4)), TypeError, "takes a BufferBinding or a BufferArrayBinding, not a Buffer"),
    (BindingDesc, ("BUFFER",), TypeError, "an integer from 0 to"),
    (binding_desc, (Buffer(4),), TypeError, "not a Buffer$"),
    (bindings_of, (NOTHING,), TypeError, "a sequence of bindings was expected, not a BufferBinding"),
    (byte_view, (OBJECTS,), TypeError, "holds Python objects"),
    (byte_view, (memoryview(OBJECTS.data),), TypeError, "holds Python objects"),
    (byte_view, (np.zeros(1, [("a", "O")]),), TypeError, "holds Python objects"),
    (byte_view, (memoryview(bytes(8))[::2],), ValueError, "contiguous"),
    (tensor_view, (bytes(19), F, [2, 2, 1], [3, 1, 1]), ValueError, "the tensor takes 20 bytes, but the buffer has 19"),
    (tensor_view, (bytes(19), F, [2**32 - 1] * 8), ValueError, "the tensor takes"),
    (tensor_view, (bytes(19), TensorDataType.UNKNOWN, [1]), ValueError, "has no NumPy type"),
    (tensor_view, (bytes(19), TensorDataType.UINT4, [1]), ValueError, "has no NumPy type"),
    (tensor_view, (bytes(19), TensorDataType.INT4, [1]), ValueError, "has no NumPy type"),
    (tensor_view, (bytes(19), "INT32", [2]), TypeError, "DataType: 'INT32' is a name; write TensorDataType.INT32"),
    (tensor_view, (bytes(19), I, [2.0]), TypeError, r"Sizes\[0\] is 2.0; an integer"),
    (tensor_view, (bytes(19), I, [2], [1.5]), TypeError, r"Strides\[0\] is 1.5; an integer"),
    (tensor_view, (bytes(19), I, [2], [-1]), ValueError, r"Strides\[0\] is -1; an integer from 0"),
    (tensor_view, (bytes(19), I, [2, 1], [1]), ValueError, "Strides: 1 were provided for 2 Sizes; write as many"),
]


@pytest.mark.parametrize(("call", "arguments", "error", "message"), WRONG)
def test_what_there_cannot_be_is_an_error_that_says_why(
    call: Callable[..., object], arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(*arguments)
