"""The subjects of rules on binding tables: slots, and the bindings given for them."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from dml_tile.bindings.resources import BindingDesc, Buffer, BufferArrayBinding, BufferBinding, Direct3DDevice
from dml_tile.descriptors.tile import BufferTensorDesc
from dml_tile.directml.enums import (
    DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    DML_PERSISTENT_BUFFER_ALIGNMENT,
    OWNED_BY_DML,
    BindingType,
    HeapType,
)

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
_CUSTOM = frozenset({HeapType.CUSTOM})
_UPLOAD = frozenset({HeapType.UPLOAD})
_ONE, _MANY = BindingType.BUFFER, BindingType.BUFFER_ARRAY

TENSOR: Final = SlotKind("a tensor", "execution", _ONE, "TotalTensorSizeInBytes", _DEFAULT, _DEFAULT | _CUSTOM)
PERSISTENT: Final = TENSOR._replace(name="a persistent resource", size_is="PersistentResourceSize")
TEMPORARY: Final = TENSOR._replace(name="a temporary resource", size_is="TemporaryResourceSize")
INITIALIZER_INPUT: Final = SlotKind(
    "an initializer's input",
    "initialisation",
    _MANY,
    "TotalTensorSizeInBytes",
    _DEFAULT | _UPLOAD,
    _DEFAULT | _UPLOAD | _CUSTOM,
    False,
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
    def tensor(cls, name: str, desc: BufferTensorDesc, kind: SlotKind = TENSOR) -> Slot:
        """Return the slot of a tensor; its size is 0 if the tensor is bound at the other stage."""
        wanted = bool(int(desc.flags) & OWNED_BY_DML) == (kind.stage == "initialisation")
        alignment = max(DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT, desc.guaranteed_base_offset_alignment)
        return cls(name, kind, desc.total_tensor_size_in_bytes if wanted else 0, alignment, desc.data_type)

    @classmethod
    def absent(cls, name: str, kind: SlotKind) -> Slot:
        """Return the slot of a tensor that is null: it takes no binding, but counts."""
        return cls(name, kind, 0, DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT, unused="the operator's is null")

    @classmethod
    def resource(cls, name: str, kind: SlotKind, size_in_bytes: int, *, checked_by_runtime: bool = True) -> Slot:
        """Return the slot of a persistent or temporary resource."""
        return cls(name, kind, size_in_bytes, DML_PERSISTENT_BUFFER_ALIGNMENT, checked_by_runtime=checked_by_runtime)


class BoundRange(NamedTuple):
    """A range of memory that is bound to a slot; size and offset are in bytes."""

    slot: Slot
    size_in_bytes: int
    offset: int = 0


class SlotBinding(NamedTuple):
    """A program's binding for a slot; ``desc`` is None for a null pointer.

    ``direct3d_device`` is the IDMLDevice's. An array of bindings has one for each of ``of`` slots.
    """

    slot: Slot
    desc: BindingDesc | None
    direct3d_device: Direct3DDevice | None = None
    position: int = 0
    of: int = 1

    @property
    def name(self) -> str:
        return self.slot.name

    @property
    def given(self) -> BufferBinding | None:
        """The slot's buffer binding, if it is of the right type, in an array of the right length; else None."""
        binding = self.desc.desc if self.desc is not None and self.desc.type == self.slot.kind.binding else None
        if isinstance(binding, BufferArrayBinding):
            bindings = binding.bindings or ()
            return bindings[self.position] if len(bindings) == self.of else None
        return binding

    @property
    def range(self) -> tuple[BufferBinding, Buffer] | None:
        """The bound range and its buffer, if the slot takes a buffer and has one, else None."""
        given = self.given
        return (given, given.buffer) if self.slot.size_in_bytes and given and given.buffer is not None else None


class SlotState(NamedTuple):
    """A slot, and whether anything is bound to it. A slot that needs no binding has the size 0."""

    slot: Slot
    bound: bool
    why_unnoticed: str = ""
    """Why DirectML does not notice a missing binding; empty if it does."""
