"""What DirectML requires of the buffers that are bound to a tile's tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from dml_tile.descriptors import BufferTensorDesc
from dml_tile.enums import DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT, HRESULT
from dml_tile.findings import Basis, Rule, Violation, rule
from dml_tile.targets import Target

BINDING_PAGE: Final = "https://learn.microsoft.com/en-us/windows/ai/directml/dml-binding"
BUFFER_BINDING_PAGE: Final = (
    "https://learn.microsoft.com/en-us/windows/win32/api/directml/ns-directml-dml_buffer_binding"
)


Stage = Literal["initialisation", "execution"]


@dataclass(frozen=True, slots=True)
class Binding:
    """A range of a buffer, in bytes, and the tensor that is bound to it."""

    name: str
    desc: BufferTensorDesc
    size_in_bytes: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class BindPoint:
    """A tensor of an operator, and whether a buffer is bound to it when it is initialised, or when it is executed."""

    name: str
    owned_by_dml: bool
    stage: Stage
    bound: bool

    @property
    def needed(self) -> bool:
        return self.owned_by_dml == (self.stage == "initialisation")


@dataclass(frozen=True, slots=True)
class BindingPair:
    """Whether an input and an output have memory in common."""

    overlap: bool


@rule(
    "DML-BINDING-missing",
    basis=Basis.DOCUMENTED | Basis.RUNTIME,
    url=BINDING_PAGE,
    says="A tensor that is owned by DirectML is bound at initialisation, any other at execution.",
    hresult=HRESULT.DXGI_ERROR_DEVICE_REMOVED,
)
def tensor_is_bound(point: BindPoint, target: Target) -> Iterator[Violation]:
    if point.needed and not point.bound:
        owned = ", though its Flags say OWNED_BY_DML" if point.owned_by_dml else ""
        yield Violation(point.name, f"nothing is bound at {point.stage}{owned}")


@rule(
    "DML-BINDING-owned",
    basis=Basis.DOCUMENTED | Basis.RUNTIME,
    url=BINDING_PAGE,
    says="A tensor that is owned by DirectML is not bound at execution, any other not at initialisation.",
    hresult=HRESULT.DXGI_ERROR_DEVICE_REMOVED,
)
def tensor_is_bound_once(point: BindPoint, target: Target) -> Iterator[Violation]:
    if point.bound and not point.needed:
        owned = "say" if point.owned_by_dml else "do not say"
        yield Violation(point.name, f"is bound at {point.stage}, though its Flags {owned} OWNED_BY_DML")


@rule(
    "DML-BINDING-SizeInBytes",
    basis=Basis.DOCUMENTED | Basis.RUNTIME,
    url=BUFFER_BINDING_PAGE,
    says="A bound range has at least TotalTensorSizeInBytes bytes.",
    hresult=HRESULT.DXGI_ERROR_DEVICE_REMOVED,
)
def range_is_large_enough(binding: Binding, target: Target) -> Iterator[Violation]:
    expected = binding.desc.total_tensor_size_in_bytes
    if binding.size_in_bytes < expected:
        yield Violation(
            binding.name,
            f"the value of SizeInBytes is too small. {max(binding.size_in_bytes, 0)} was provided, but at least "
            f"{expected} was expected (TotalTensorSizeInBytes)",
        )


@rule(
    "DML-BINDING-Offset",
    basis=Basis.DOCUMENTED | Basis.RUNTIME,
    url=BUFFER_BINDING_PAGE,
    says="The offset of a bound range is a multiple of 16, and of GuaranteedBaseOffsetAlignment.",
    hresult=HRESULT.DXGI_ERROR_DEVICE_REMOVED,
)
def offset_is_aligned(binding: Binding, target: Target) -> Iterator[Violation]:
    alignment = max(DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT, binding.desc.guaranteed_base_offset_alignment)
    if binding.offset % alignment:
        yield Violation(
            binding.name, f"the value of Offset is misaligned. {binding.offset} is not a multiple of {alignment}"
        )


@rule(
    "DML-BINDING-overlap",
    basis=Basis.DOCUMENTED,
    url=BINDING_PAGE,
    says="An output shares no memory with an input: Tile has no in-place form.",
    hresult=HRESULT.DXGI_ERROR_DEVICE_REMOVED,
)
def output_is_apart(pair: BindingPair, target: Target) -> Iterator[Violation]:
    if pair.overlap:
        yield Violation("OutputTensor", "the bound range overlaps that of InputTensor (DirectML does not notice)")


BIND_POINT_RULES: Final[tuple[Rule[BindPoint], ...]] = (tensor_is_bound, tensor_is_bound_once)
BINDING_RULES: Final[tuple[Rule[Binding], ...]] = (range_is_large_enough, offset_is_aligned)
BINDING_PAIR_RULES: Final[tuple[Rule[BindingPair], ...]] = (output_is_apart,)
