"""The subjects of rules on bindings: slots, and the ranges of buffers that are bound to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from dml_tile.bindings.resources import BindingDesc, Buffer, BufferArrayBinding, BufferBinding, Direct3DDevice, Span
from dml_tile.descriptors.tile import TensorDesc
from dml_tile.directml.enums import (
    DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    DML_PERSISTENT_BUFFER_ALIGNMENT,
    OWNED_BY_DML,
    BindingType,
    HeapType,
)

if TYPE_CHECKING:  # rules need no NumPy
    from dml_tile.bindings.memory import Bytes

BindingStage = Literal["initialisation", "execution"]


class SlotKind(NamedTuple):
    """A kind of slot: the type of its binding, the stage at which it is bound, and the heaps of its buffer.

    ``unordered_access`` is True for a buffer with an unordered access view. ``name`` tells kinds apart.
    """

    name: str
    stage: BindingStage
    binding: BindingType
    size_is: Literal["TotalTensorSizeInBytes", "PersistentResourceSize", "TemporaryResourceSize"]
    documented_heaps: frozenset[HeapType]
    accepted_heaps: frozenset[HeapType]
    unordered_access: bool = True


_DEFAULT = frozenset({HeapType.DEFAULT})
_UPLOAD = frozenset({HeapType.DEFAULT, HeapType.UPLOAD})
_CUSTOM = frozenset({HeapType.CUSTOM})
_ANY = _UPLOAD | _CUSTOM  # the page of BindInputs lacks CUSTOM, which the feature level history has from 2_0 on
_ONE, _MANY = BindingType.BUFFER, BindingType.BUFFER_ARRAY

TENSOR: Final = SlotKind("a tensor", "execution", _ONE, "TotalTensorSizeInBytes", _DEFAULT, _DEFAULT | _CUSTOM)
PERSISTENT: Final = TENSOR._replace(name="a persistent resource", size_is="PersistentResourceSize")
TEMPORARY: Final = TENSOR._replace(name="a temporary resource", size_is="TemporaryResourceSize")
INITIALIZER_INPUT: Final = SlotKind(
    "an initializer's input", "initialisation", _MANY, "TotalTensorSizeInBytes", _ANY, _ANY, unordered_access=False
)
INITIALIZER_OUTPUT: Final = SlotKind(
    "an initializer's output", "initialisation", _ONE, "PersistentResourceSize", _DEFAULT, _DEFAULT
)
INITIALIZER_PERSISTENT: Final = INITIALIZER_OUTPUT._replace(name="an initializer's persistent resource")


class Slot(NamedTuple):
    """A tensor or resource of a binding table. Sizes and alignment are in bytes; a slot of size 0 takes no binding."""

    name: str
    kind: SlotKind
    size_in_bytes: int
    alignment: int
    data_type: int | None = None
    """The tensor's data type; None for a resource."""
    unused: str = ""
    """Why nothing is bound at any stage, as for an input of a graph that no node reads; else empty."""
    checked_by_runtime: bool = True
    """False if the runtime compares neither SizeInBytes nor GuaranteedBaseOffsetAlignment, as for a graph."""

    @property
    def is_tensor(self) -> bool:
        """True for a tensor, False for a persistent or temporary resource."""
        return self.kind.size_is == "TotalTensorSizeInBytes"

    @classmethod
    def tensor(cls, name: str, tensor: TensorDesc | None, kind: SlotKind = TENSOR) -> Slot:
        """Return the slot of a tensor; its size is 0 if the tensor is null, or bound at the other stage."""
        desc = tensor.desc if tensor is not None else None
        if desc is None:
            return cls(name, kind, 0, DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT, unused="the operator's is null")
        wanted = bool(int(desc.flags) & OWNED_BY_DML) == (kind.stage == "initialisation")
        alignment = max(DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT, desc.guaranteed_base_offset_alignment)
        return cls(name, kind, desc.total_tensor_size_in_bytes if wanted else 0, alignment, desc.data_type)

    @classmethod
    def resource(cls, kind: SlotKind, size_in_bytes: int, *, checked_by_runtime: bool = True) -> Slot:
        """Return the slot of a persistent or temporary resource."""
        name, alignment = kind.size_is.removesuffix("Size"), DML_PERSISTENT_BUFFER_ALIGNMENT
        return cls(name, kind, size_in_bytes, alignment, checked_by_runtime=checked_by_runtime)


class BoundRange(NamedTuple):
    """The range of a buffer that is bound to a slot; ``binding`` is None if none is.

    Of a binding table's, ``desc`` is the program's argument, None for a null pointer, and ``direct3d_device`` is the
    IDMLDevice's.
    """

    slot: Slot
    binding: BufferBinding | None
    why_unnoticed: str = ""
    """Why DirectML does not notice a missing binding; empty if it does."""
    desc: BindingDesc | None = None
    direct3d_device: Direct3DDevice | None = None
    array_length: int = 1
    """The slots that ``desc`` is for, at the first of them; 0 at the others."""

    @property
    def name(self) -> str:
        return self.slot.name

    @property
    def buffer(self) -> Buffer | None:
        """The bound buffer, if the slot takes one."""
        return self.binding.buffer if self.binding is not None and self.slot.size_in_bytes else None

    @property
    def span(self) -> Span | None:
        """The accessed memory; None if nothing is bound, too little, or more than the buffer has."""
        if self.binding is None or self.binding.size_in_bytes < self.slot.size_in_bytes:
            return None
        return self.binding.span(self.slot.size_in_bytes)

    @property
    def region(self) -> Bytes:
        """The bytes of ``span``, which is not None."""
        assert self.binding is not None
        region = self.binding.region(self.slot.size_in_bytes)
        assert region is not None
        return region


def ranges_of(desc: BindingDesc | None, slots: Sequence[Slot], direct3d_device: Direct3DDevice) -> Iterator[BoundRange]:
    """Yield the ranges that a program binds to a slot, or, by an array, to the inputs of an initialised operator.

    A binding of another type than the slots', or an array of another length, binds none.
    """
    for i, slot in enumerate(slots):
        binding = desc.desc if desc is not None and desc.type == slot.kind.binding else None
        if isinstance(binding, BufferArrayBinding):
            array = binding.bindings or ()
            binding = array[i] if len(array) == len(slots) else None
        why_unnoticed = "DirectML fails before it notices" if slot.kind == INITIALIZER_INPUT else ""
        yield BoundRange(slot, binding, why_unnoticed, desc, direct3d_device, 0 if i else len(slots))
