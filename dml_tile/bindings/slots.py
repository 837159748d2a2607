"""The places of a binding table, and what is given for them: what the rules of bindings look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from dml_tile.bindings.resources import BindingDesc, Buffer, BufferArrayBinding, BufferBinding
from dml_tile.descriptors import BufferTensorDesc
from dml_tile.enums import (
    DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    DML_PERSISTENT_BUFFER_ALIGNMENT,
    BindingType,
    HeapType,
    TensorFlags,
)

Stage = Literal["initialisation", "execution"]


class Place(NamedTuple):
    """What is bound where: the kind of binding, the heaps that are documented and accepted, and whether by a UAV."""

    name: str
    stage: Stage
    binding: BindingType
    size_is: Literal["TotalTensorSizeInBytes", "PersistentResourceSize", "TemporaryResourceSize"]
    documented_heaps: frozenset[HeapType]
    accepted_heaps: frozenset[HeapType]
    unordered_access: bool = True


_DEFAULT = frozenset({HeapType.DEFAULT})
_CUSTOM = frozenset({HeapType.CUSTOM})
_UPLOAD = frozenset({HeapType.UPLOAD})
_ONE, _MANY = BindingType.BUFFER, BindingType.BUFFER_ARRAY

TENSOR: Final = Place("a tensor", "execution", _ONE, "TotalTensorSizeInBytes", _DEFAULT, _DEFAULT | _CUSTOM)
PERSISTENT: Final = Place(
    "a persistent resource", "execution", _ONE, "PersistentResourceSize", _DEFAULT, _DEFAULT | _CUSTOM
)
TEMPORARY: Final = Place(
    "a temporary resource", "execution", _ONE, "TemporaryResourceSize", _DEFAULT, _DEFAULT | _CUSTOM
)
INITIALIZER_INPUT: Final = Place(
    "an initializer's input",
    "initialisation",
    _MANY,
    "TotalTensorSizeInBytes",
    _DEFAULT | _UPLOAD,
    _DEFAULT | _UPLOAD | _CUSTOM,
    False,
)
INITIALIZER_OUTPUT: Final = Place(
    "an initializer's output", "initialisation", _ONE, "PersistentResourceSize", _DEFAULT, _DEFAULT
)
INITIALIZER_PERSISTENT: Final = Place(
    "an initializer's persistent resource", "initialisation", _ONE, "PersistentResourceSize", _DEFAULT, _DEFAULT
)


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a binding table, by name, and how many bytes are wanted there; 0: nothing is to be bound."""

    name: str
    place: Place
    size_in_bytes: int
    alignment: int

    @classmethod
    def of_tensor(cls, name: str, desc: BufferTensorDesc, place: Place = TENSOR) -> Slot:
        """The slot of a tensor; it is empty if the tensor is bound at the other stage."""
        wanted = bool(desc.flags & TensorFlags.OWNED_BY_DML) == (place.stage == "initialisation")
        alignment = max(DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT, desc.guaranteed_base_offset_alignment)
        return cls(name, place, desc.total_tensor_size_in_bytes if wanted else 0, alignment)

    @classmethod
    def of_resource(cls, name: str, place: Place, size_in_bytes: int) -> Slot:
        """The slot of a persistent or temporary resource."""
        return cls(name, place, size_in_bytes, DML_PERSISTENT_BUFFER_ALIGNMENT)


@dataclass(frozen=True, slots=True)
class Binding:
    """A range of memory, in bytes, that is bound to a slot."""

    slot: Slot
    size_in_bytes: int
    offset: int = 0

    @property
    def name(self) -> str:
        return self.slot.name


@dataclass(frozen=True, slots=True)
class Bound:
    """What a program gives for a slot; ``desc`` is None for a null pointer."""

    slot: Slot
    desc: BindingDesc | None

    @property
    def name(self) -> str:
        return self.slot.name

    @property
    def given(self) -> BufferBinding | None:
        """The one buffer binding of the slot's kind, if it is that."""
        binding = self.desc.desc if self.desc is not None and self.desc.type == self.slot.place.binding else None
        if isinstance(binding, BufferArrayBinding):
            return binding.bindings[0] if binding.bindings is not None and len(binding.bindings) == 1 else None
        return binding

    @property
    def range(self) -> tuple[BufferBinding, Buffer] | None:
        """The range to look at: that of a buffer, where one is wanted."""
        given = self.given
        return (given, given.buffer) if self.slot.size_in_bytes and given and given.buffer is not None else None


@dataclass(frozen=True, slots=True)
class Count:
    """How many bindings are given, of how many; None for a null array."""

    given: int | None
    expected: int


@dataclass(frozen=True, slots=True)
class BindPoint:
    """A tensor of an operator, and whether a buffer is bound to it when it is initialised, or when it is executed."""

    name: str
    owned_by_dml: bool
    stage: Stage
    bound: bool
    unnoticed: str = ""
    """Why DirectML does not notice that nothing is bound, if it does not."""

    @property
    def needed(self) -> bool:
        return self.owned_by_dml == (self.stage == "initialisation")


@dataclass(frozen=True, slots=True)
class BindingPair:
    """An output, what else is bound, and whether the two have memory in common."""

    name: str
    other: str
    overlap: bool
