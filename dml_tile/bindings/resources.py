"""Direct3D 12 buffers, as far as DirectML looks at them, and the structures that bind them.

Pages:
https://learn.microsoft.com/en-us/windows/win32/api/directml/ns-directml-dml_binding_desc
https://learn.microsoft.com/en-us/windows/win32/api/directml/ns-directml-dml_buffer_binding
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, SupportsIndex, TypeAlias

from dml_tile.directml.enums import HRESULT, UINT64_MAX, BindingType, HeapType, ResourceDimension, ResourceFlags
from dml_tile.errors import require_instance, require_uint
from dml_tile.simulation.calls import report_fault, report_met
from dml_tile.simulation.process import caller

if TYPE_CHECKING:  # rules need no NumPy
    import numpy as np

    from dml_tile.bindings.memory import BufferLike, Bytes


class Direct3DDevice:
    """ID3D12Device, on which an IDMLDevice is made, and to which resources belong.

    ``removed_reason`` is S_OK until ``remove`` changes it. Hangs and resets are not simulated.
    """

    def __init__(self) -> None:
        self.removed_reason: HRESULT = HRESULT.S_OK
        self._counting = threading.Lock()
        self._removal: tuple[HRESULT, int] | None = None  # a later removal, and the dispatches until then

    def remove(self, reason: HRESULT = HRESULT.DXGI_ERROR_DEVICE_REMOVED, *, after_dispatches: int = 0) -> None:
        """Remove the device, as a hang or a driver's update does: now, or after some dispatches more.

        Dispatches that initialise operators count. A later removal is in the record of calls; a test of pytest fails if
        it never comes. Raises ValueError for an unknown reason, S_OK, and a negative number.
        """
        if not HRESULT(reason):
            raise ValueError("S_OK is no reason to remove a device")
        if after_dispatches < 0:
            raise ValueError(f"after_dispatches is {after_dispatches}; it must be at least 0")
        if not after_dispatches:
            self.removed_reason = HRESULT(reason)
            return
        self._removal = HRESULT(reason), after_dispatches
        asked = f"HRESULT.{HRESULT(reason).name}, after_dispatches={after_dispatches}"
        report_fault(self, f"Direct3DDevice.remove({asked}) of {caller()}")

    def count_dispatch(self) -> bool:
        """Count an executed dispatch; remove the device, and return True, if it was the last."""
        with self._counting:
            if self._removal is None:
                return False
            reason, left = self._removal
            self._removal = (reason, left - 1) if left > 1 else None
        if left == 1:
            self.removed_reason = reason
            report_met(self)
        return left == 1


class Buffer:
    """A buffer resource: ``size`` bytes of zeros, on a heap. It takes no memory until it is read or written.

    ``heap`` is a HeapType, its name or its value. Any size, heap and flags can be held, even if DirectML refuses to
    bind them; with another ``dimension`` it stands for a texture of that width. ``direct3d_device`` is the device that
    it belongs to; None means the device of the IDMLDevice that binds it. Raises ValueError for an unknown heap's name,
    and for a size that no UINT64 holds.
    """

    def __init__(
        self,
        size: SupportsIndex,
        *,
        heap: HeapType | int | str = HeapType.DEFAULT,
        flags: ResourceFlags | int = ResourceFlags.ALLOW_UNORDERED_ACCESS,
        dimension: ResourceDimension | int = ResourceDimension.BUFFER,
        direct3d_device: Direct3DDevice | None = None,
    ) -> None:
        self.size = require_uint("size", size, UINT64_MAX)
        self.heap = _heap(heap)
        self.flags = ResourceFlags(require_uint("flags", flags))
        self.dimension = require_uint("dimension", dimension)
        self.direct3d_device = direct3d_device
        self.dtype: np.dtype[Any] | None = None
        """The wrapped array's dtype: only tensors of its data type take the buffer; None for raw memory."""
        self._memory: Bytes | None = None
        self.address = 0
        """The address of its memory; 0 while it has none."""
        self._allocating = threading.Lock()

    @classmethod
    def wrap(
        cls,
        memory: BufferLike,
        *,
        heap: HeapType | int | str = HeapType.DEFAULT,
        flags: ResourceFlags | int = ResourceFlags.ALLOW_UNORDERED_ACCESS,
    ) -> Buffer:
        """Return a buffer over the bytes of a writable object (bytearray, ndarray, mmap, shared memory), not copied.

        A typed array is bound as a tensor of its own data type only; bytes and uint8 as any. Raises TypeError for an
        object without the buffer protocol, a masked array and an array in the other byte order, ValueError for memory
        that is read-only or not C-contiguous.
        """
        from dml_tile.bindings.memory import byte_view, element_dtype

        view = byte_view(memory, "memory", writable=True)
        buffer = cls(view.nbytes, heap=heap, flags=flags)
        buffer.dtype = element_dtype(memory, "memory")
        buffer._take(view)
        return buffer

    @property
    def memory(self) -> Bytes:
        """The bytes, as a writable array of uint8. Raises MemoryError if memory is too small."""
        with self._allocating:
            if self._memory is None:
                import numpy as np

                try:
                    memory = np.zeros(self.size, np.uint8)
                except ValueError:  # more than an array can have
                    raise MemoryError(f"there are no {self.size} bytes of memory") from None
                return self._take(memory)
            return self._memory

    def _take(self, memory: Bytes) -> Bytes:
        self.address = memory.__array_interface__["data"][0]
        self._memory = memory
        return memory

    def __repr__(self) -> str:
        return f"Buffer({self.size}, heap={getattr(self.heap, 'name', self.heap)!r}, flags={self.flags!r})"


class Span(NamedTuple):
    """A range of memory: by address, or within a buffer that has no memory yet."""

    buffer: Buffer | None
    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        """Return True if both ranges have a byte in common."""
        return self.buffer is other.buffer and self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True, init=False)
class BufferBinding:
    """DML_BUFFER_BINDING: a range of a buffer, in bytes. Without ``size_in_bytes``, it goes to the buffer's end.

    Raises TypeError unless it is a Buffer, ValueError for a number that no UINT64 holds.
    """

    buffer: Buffer | None
    offset: int
    size_in_bytes: int

    def __init__(
        self, buffer: Buffer | None, offset: SupportsIndex = 0, size_in_bytes: SupportsIndex | None = None
    ) -> None:
        if buffer is not None and not isinstance(buffer, Buffer):
            raise TypeError(f"a Buffer was expected, not a {type(buffer).__name__}; Buffer.wrap() makes one of it")
        start = require_uint("offset", offset, UINT64_MAX)
        if size_in_bytes is None:
            size_in_bytes = max(buffer.size - start, 0) if buffer is not None else 0
        object.__setattr__(self, "buffer", buffer)
        object.__setattr__(self, "offset", start)
        object.__setattr__(self, "size_in_bytes", require_uint("size_in_bytes", size_in_bytes, UINT64_MAX))

    @property
    def is_empty(self) -> bool:
        """True for ``{null, 0, 0}``, which binds nothing."""
        return self.buffer is None and self.offset == self.size_in_bytes == 0

    def span(self, count: int) -> Span | None:
        """Return the place of the first ``count`` bytes; None if the buffer has fewer. Takes no memory."""
        if self.buffer is None or self.offset + count > self.buffer.size:
            return None
        start = self.buffer.address + self.offset
        return Span(None if self.buffer.address else self.buffer, start, start + count)

    def region(self, count: int) -> Bytes | None:
        """Return the bytes of ``span``. Raises MemoryError if memory is too small."""
        if self.buffer is None or self.offset + count > self.buffer.size:
            return None
        return self.buffer.memory[self.offset : self.offset + count]


@dataclass(frozen=True, slots=True)
class BufferArrayBinding:
    """DML_BUFFER_ARRAY_BINDING: a range for each input of an initialised operator; None is a null pointer."""

    bindings: Sequence[BufferBinding] | None

    def __post_init__(self) -> None:
        if self.bindings is None:
            return
        object.__setattr__(self, "bindings", tuple(self.bindings))
        for binding in self.bindings:
            require_instance(binding, BufferBinding)


_BINDING_TYPES: Final[dict[type, BindingType]] = {
    BufferBinding: BindingType.BUFFER,
    BufferArrayBinding: BindingType.BUFFER_ARRAY,
}


@dataclass(frozen=True, slots=True)
class BindingDesc:
    """DML_BINDING_DESC: the type of a binding, and the binding; ``BindingDesc()`` binds nothing.

    Raises TypeError for a binding of another kind.
    """

    type: BindingType | int = BindingType.NONE
    desc: BufferBinding | BufferArrayBinding | None = None

    def __post_init__(self) -> None:
        number, fitting = require_uint("type", self.type), _BINDING_TYPES.get(type(self.desc))
        if self.desc is not None and (fitting is None or (number != fitting and number in _BINDING_TYPES.values())):
            wanted = [kind for kind, type_ in _BINDING_TYPES.items() if type_ == number] or _BINDING_TYPES
            names = " or ".join(f"a {kind.__name__}" for kind in wanted)
            raise TypeError(f"a binding of type {self.type!r} takes {names}, not a {type(self.desc).__name__}")


BindingLike: TypeAlias = BindingDesc | BufferBinding | BufferArrayBinding
"""A DML_BINDING_DESC, or the binding that it would describe."""


def binding_desc(binding: BindingLike) -> BindingDesc:
    """Return the DML_BINDING_DESC of a binding. Raises TypeError for anything else."""
    if isinstance(binding, BindingDesc):
        return binding
    if type(binding) in _BINDING_TYPES:
        return BindingDesc(_BINDING_TYPES[type(binding)], binding)
    message = f"a BindingDesc, a BufferBinding or a BufferArrayBinding was expected, not a {type(binding).__name__}"
    raise TypeError(message)


def bindings_of(bindings: Iterable[BindingLike] | None) -> list[BindingDesc] | None:
    """Return the DML_BINDING_DESC of each binding; None for a null array. Raises TypeError for anything else."""
    if bindings is None:
        return None
    if not isinstance(bindings, Iterable):
        raise TypeError(f"a sequence of bindings was expected, not a {type(bindings).__name__}")
    return [binding_desc(binding) for binding in bindings]


def _heap(heap: HeapType | int | str) -> HeapType | int:
    if isinstance(heap, str) and heap not in HeapType.__members__:
        raise ValueError(f"{heap!r} is no heap type; expected one of {', '.join(HeapType.__members__)}")
    value = require_uint("heap", HeapType[heap] if isinstance(heap, str) else heap)
    return HeapType(value) if value in HeapType._value2member_map_ else value
