"""Byte and tensor views of objects that support the buffer protocol, without copies, within bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_char
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from dml_tile.directml.data_types import CARRIERS, TensorDataType
from dml_tile.directml.dtypes import DTYPES, require_native, require_unmasked
from dml_tile.geometry.layout import extent, packed_strides, require_data_type_value, require_sizes_and_strides

if TYPE_CHECKING:
    from typing_extensions import Buffer

BufferLike: TypeAlias = "Buffer | NDArray[Any]"
"""Any object that supports the buffer protocol; NumPy's arrays declare it only from Python 3.12 on."""

Bytes: TypeAlias = NDArray[np.uint8]
"""A one-dimensional array of bytes."""

Padding = Literal["preserve", "poison"]
"""The treatment of the bytes between an output's elements: they stay as they are, or are filled with POISON."""

POISON: Final = 0xCD
"""The byte for what the documentation lets DirectML leave between elements; debuggers mark unset memory with it."""

_DLPACK_CPU: Final = 1
"""kDLCPU, of https://dmlc.github.io/dlpack/latest/c_api.html"""

_MAX_WORK: Final[Any] = 10_000
"""The most candidates that NumPy tries to tell two strided arrays apart; beyond, they count as overlapping."""

_RAW_FORMATS: Final = ("B", "<B", "@B", "=B", ">B", "c")


class SupportsDLPack(Protocol):
    """An array that offers its memory through DLPack, such as a tensor of torch.

    Page: https://data-apis.org/array-api/latest/API_specification/generated/array_api.array.__dlpack__.html
    """

    def __dlpack__(self, *, stream: None = ...) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


def byte_view(buffer: BufferLike, name: str = "the buffer", *, writable: bool = False) -> Bytes:
    """Return the bytes of a buffer (bytes, bytearray, memoryview, ndarray, mmap, shared memory), not copied.

    ``name`` is the argument's, for messages. Raises TypeError for an object without the buffer protocol, or with Python
    objects, ValueError if it is not C-contiguous, or is read-only and should be ``writable``.
    """
    if _holds_objects(buffer, name):
        raise TypeError(f"{name} holds Python objects, whose bytes are pointers")
    try:
        view: Bytes = np.frombuffer(cast("bytes", buffer), np.uint8)
    except (BufferError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    if writable and not view.flags.writeable:
        raise ValueError(f"{name} is read-only; a writable buffer was expected")
    return view


def contiguous(buffer: BufferLike, name: str, *, writable: bool = False) -> NDArray[Any]:
    """Return a C-contiguous array over a buffer's bytes: the buffer itself if possible, else its ``byte_view``."""
    if type(buffer) is np.ndarray and not buffer.dtype.hasobject:
        flags = buffer.flags
        if flags.c_contiguous and (not writable or flags.writeable):
            return buffer
    return byte_view(buffer, name, writable=writable)


def element_dtype(buffer: BufferLike, name: str = "array") -> np.dtype[Any] | None:
    """Return the dtype of a buffer's elements; None for raw memory (bytes, memoryviews of bytes, arrays of uint8)."""
    if isinstance(buffer, np.ndarray):
        require_unmasked(buffer, name)
        dtype = buffer.dtype
    else:
        view = memoryview(buffer)
        if view.format in _RAW_FORMATS:
            return None
        dtype = np.asarray(view).dtype
    require_native(dtype, name, name)
    return None if dtype == np.uint8 else dtype


def require_data_type(dtype: np.dtype[Any] | None, data_type: int, name: str) -> None:
    """Raise TypeError unless a dtype from ``element_dtype`` is the tensor's; raw memory fits any tensor."""
    wanted = DTYPES.get(data_type)
    if dtype is None or dtype is wanted:
        return
    if CARRIERS.get(dtype.name) == data_type:
        if wanted is None:
            raise TypeError(f"{name} holds {dtype}, an element a byte; DirectML's memory has two in a byte: pass bytes")
        return
    cast_to = f"pass {name}.astype(np.{wanted})" if wanted is not None else "pass what the descriptor describes"
    raise TypeError(
        f"{name} holds {dtype}, but the tensor's DataType is {TensorDataType(data_type).name}; {cast_to}, or the bytes "
        f"as they are: {name}.view(np.uint8), or memoryview.cast('B')"
    )


def _holds_objects(buffer: BufferLike, name: str) -> bool:
    if isinstance(buffer, np.ndarray):
        return buffer.dtype.hasobject
    try:
        return "O" in (memoryview(buffer).format or "")
    except TypeError:
        kind = type(buffer).__name__
        raise TypeError(f"{name} is of type {kind}; an object with the buffer protocol was expected") from None


def span_of(size: int, shape: Sequence[int], strides: Sequence[int]) -> Callable[[NDArray[Any]], Any]:
    """Return a function that returns the memory that arrays of one layout span; strides are in bytes.

    ``shape`` may have more leading ones than the arrays. The memory is a contiguous view of the array if nothing lies
    between its elements, else ctypes' bytes, which take longer to make.
    """
    long = [(length, stride) for length, stride in zip(shape, strides, strict=True) if length > 1]
    walked = [(length, abs(stride)) for length, stride in long if stride]
    order = sorted(range(len(walked)), key=lambda i: walked[i][1], reverse=True)
    if walked and [walked[i][1] for i in order] == [*packed_strides([walked[i][0] for i in order], size)]:
        has_ones, index = len(long) < len(shape), tuple(_FROM_THE_LOWEST[(step > 0) - (step < 0)] for _, step in long)
        if index.count(_FROM_THE_LOWEST[1]) == len(index):
            if order == [*range(len(order))]:
                return lambda array: array
            if not has_ones:
                return lambda array: array.transpose(order)
        return lambda array: array.squeeze()[index].transpose(order)
    reach = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    memory, lowest = c_char * (sum(map(abs, reach)) + size), sum(step for step in reach if step < 0)
    return lambda array: memory.from_address(array.ctypes.data + lowest)


_FROM_THE_LOWEST: Final = (0, slice(None), slice(None, None, -1))
"""By the sign of a stride (-1 is the last), the index that takes a dimension's lowest address first, or no repeat."""


def tensor_view(
    buffer: BufferLike, data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None = None
) -> NDArray[Any]:
    """Return a typed, strided view of a tensor at the start of a buffer, not copied; writable if the buffer is.

    ``sizes`` and ``strides`` are in elements, ``strides=None`` means packed. Raises what ``byte_view`` raises,
    TypeError for a value that is no integer, and ValueError where the tensor does not fit into the buffer, there are
    not as many strides as sizes, no UINT holds a value, or the type has no NumPy equivalent.
    """
    dtype = DTYPES.get(require_data_type_value(data_type))
    if dtype is None:
        raise ValueError(f"DataType: {data_type!r} has no NumPy type")
    sizes, strides = require_sizes_and_strides(sizes, strides)
    strides = packed_strides(sizes) if strides is None else strides
    view = byte_view(buffer)
    needed = extent(sizes, strides) * dtype.itemsize if 0 not in sizes else 0
    if needed > view.nbytes:
        raise ValueError(f"the tensor takes {needed} bytes, but the buffer has {view.nbytes}")
    return np.ndarray(sizes, dtype, view, strides=tuple(stride * dtype.itemsize for stride in strides))


def as_array(array: Any) -> NDArray[Any]:
    """Return an object's array, also through DLPack; raises TypeError for other objects."""
    require_unmasked(array, "the array")
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return np.asarray(array)
    device, _ = array.__dlpack_device__()
    if device != _DLPACK_CPU:
        raise TypeError(f"the {type(array).__name__} is not in the CPU's memory; move it there first")
    try:
        return np.from_dlpack(array)
    except (BufferError, RuntimeError) as error:  # a tensor that requires its gradient, a type that NumPy lacks
        raise TypeError(f"the {type(array).__name__} cannot be read through DLPack: {error}") from None


def require_array(array: object, name: str) -> None:
    """Raise TypeError for anything but an array without a mask."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} is a {type(array).__name__}; an array was expected")
    require_unmasked(array, name)


def parts_overlap(source: NDArray[Any], read: int, destination: NDArray[Any], written: int) -> bool:
    """Return True if the first ``read`` and ``written`` bytes of two contiguous arrays share memory."""
    if source is not destination and source.flags.owndata and destination.flags.owndata:
        return False
    return np.may_share_memory(source, destination) and np.may_share_memory(
        byte_view(source)[:read], byte_view(destination)[:written]
    )


def share_memory(out: NDArray[Any], array: NDArray[Any]) -> bool:
    """Return True if elements of two arrays share memory, or might."""
    try:
        return np.may_share_memory(out, array) and np.shares_memory(out, array, _MAX_WORK)
    except np.exceptions.TooHardError:
        return True


def require_padding(padding: Padding) -> None:
    """Raise ValueError for an unknown word."""
    if padding not in get_args(Padding):
        raise ValueError(f"padding is {padding!r}; it must be one of {', '.join(map(repr, get_args(Padding)))}")
