"""Direct3D 12 buffers, as far as DirectML looks at them, and the structures that bind them.

Pages:
https://learn.microsoft.com/en-us/windows/win32/api/directml/ns-directml-dml_binding_desc
https://learn.microsoft.com/en-us/windows/win32/api/directml/ns-directml-dml_buffer_binding
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dml_tile.enums import UINT64_MAX, BindingType, HeapType, ResourceFlags
from dml_tile.memory import BufferLike, Bytes, byte_view


class Buffer:
    """A buffer resource: ``size`` bytes of zeros, on a heap. It takes no memory until it is read or written.

    ``heap`` is a HeapType, its name or its value. Any size, heap and flags can be held, also what DirectML refuses to
    bind. Raises ValueError for an unknown heap's name, and for a size that no UINT64 holds.
    """

    def __init__(
        self,
        size: int,
        *,
        heap: HeapType | int | str = HeapType.DEFAULT,
        flags: ResourceFlags | int = ResourceFlags.ALLOW_UNORDERED_ACCESS,
    ) -> None:
        self.size = _uint64("size", size)
        self.heap = _heap(heap)
        self.flags = ResourceFlags(flags)
        self._memory: Bytes | None = None
        self._allocating = threading.Lock()

    @classmethod
    def wrap(
        cls,
        memory: BufferLike,
        *,
        heap: HeapType | int | str = HeapType.DEFAULT,
        flags: ResourceFlags | int = ResourceFlags.ALLOW_UNORDERED_ACCESS,
    ) -> Buffer:
        """A buffer over the bytes of a writable object (bytearray, ndarray, mmap, shared memory), not copied.

        Raises TypeError for an object without the buffer protocol, ValueError for one that is read-only or not
        C-contiguous.
        """
        view = byte_view(memory, writable=True)
        buffer = cls(view.nbytes, heap=heap, flags=flags)
        buffer._memory = view
        return buffer

    @property
    def memory(self) -> Bytes:
        """The bytes, as a writable array of uint8. Raises MemoryError if there are not so many."""
        with self._allocating:
            if self._memory is None:
                try:
                    self._memory = np.zeros(self.size, np.uint8)
                except ValueError:  # more than an array can have
                    raise MemoryError(f"there are no {self.size} bytes of memory") from None
            return self._memory

    def __repr__(self) -> str:
        return f"Buffer({self.size}, heap={getattr(self.heap, 'name', self.heap)!r}, flags={self.flags!r})"


@dataclass(frozen=True, slots=True)
class BufferBinding:
    """DML_BUFFER_BINDING: a range of a buffer, in bytes. Without ``size_in_bytes``, it goes to the buffer's end."""

    buffer: Buffer | None
    offset: int = 0
    size_in_bytes: int = -1

    def __post_init__(self) -> None:
        if self.size_in_bytes == -1:
            rest = max(self.buffer.size - self.offset, 0) if self.buffer is not None else 0
            object.__setattr__(self, "size_in_bytes", rest)
        _uint64("offset", self.offset)
        _uint64("size_in_bytes", self.size_in_bytes)

    @property
    def is_empty(self) -> bool:
        """Whether it is ``{null, 0, 0}``, which binds nothing."""
        return self.buffer is None and self.offset == self.size_in_bytes == 0

    def region(self, count: int) -> Bytes | None:
        """The first ``count`` bytes from ``offset`` on; None where the buffer has fewer. Raises MemoryError."""
        if self.buffer is None or self.offset + count > self.buffer.size:
            return None
        return self.buffer.memory[self.offset : self.offset + count]


@dataclass(frozen=True, slots=True)
class BufferArrayBinding:
    """DML_BUFFER_ARRAY_BINDING: one range for each input of an operator that is initialised; None is a null pointer."""

    bindings: Sequence[BufferBinding] | None


@dataclass(frozen=True, slots=True)
class BindingDesc:
    """DML_BINDING_DESC: what kind of binding, and the binding; ``BindingDesc()`` binds nothing."""

    type: BindingType | int = BindingType.NONE
    desc: BufferBinding | BufferArrayBinding | None = None


BindingLike: TypeAlias = BindingDesc | BufferBinding | BufferArrayBinding
"""A DML_BINDING_DESC, or what it would describe."""


def binding_desc(binding: BindingLike) -> BindingDesc:
    """The DML_BINDING_DESC of a binding. Raises TypeError for anything else."""
    match binding:
        case BindingDesc():
            return binding
        case BufferBinding():
            return BindingDesc(BindingType.BUFFER, binding)
        case BufferArrayBinding():
            return BindingDesc(BindingType.BUFFER_ARRAY, binding)
    raise TypeError(
        f"a BindingDesc, a BufferBinding or a BufferArrayBinding was expected, not a {type(binding).__name__}"
    )


def _heap(heap: HeapType | int | str) -> HeapType | int:
    if isinstance(heap, str):
        if heap not in HeapType.__members__:
            raise ValueError(f"{heap!r} is no heap type; expected one of {', '.join(HeapType.__members__)}")
        return HeapType[heap]
    return HeapType(heap) if heap in HeapType._value2member_map_ else heap


def _uint64(name: str, value: int) -> int:
    if not 0 <= value <= UINT64_MAX:
        raise ValueError(f"{name} is {value}; an integer from 0 to {UINT64_MAX} was expected")
    return value
