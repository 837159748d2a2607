"""Rules for the resources that are bound: the range within one, its kind, flags and heap, and its device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dml_tile.bindings.slots import SlotBinding
from dml_tile.directml.enums import UINT64_MAX, HeapType, ResourceDimension, ResourceFlags
from dml_tile.directml.pages import BIND_INPUTS_PAGE, BINDING_PAGE, BUFFER_BINDING_PAGE, ERRORS_PAGE
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis, Rule, Violation, removal_rule


@removal_rule(
    "DML-BINDING-range",
    url=BUFFER_BINDING_PAGE,
    says="A bound range ends within its buffer. The runtime adds Offset and SizeInBytes modulo 2^64.",
)
def range_is_within_its_buffer(bound: SlotBinding, target: Target) -> Iterator[Violation]:
    if bound.range is None:
        return
    binding, buffer = bound.range
    end = binding.offset + binding.size_in_bytes
    if end > buffer.size:
        wraps = end & UINT64_MAX <= buffer.size
        unnoticed = " (DirectML adds modulo 2^64, and does not notice)" if wraps else ""
        yield Violation(
            bound.name,
            f"the range ends at Offset {binding.offset} + SizeInBytes {binding.size_in_bytes} = {end}, but the buffer "
            f"has {buffer.size} bytes{unnoticed}",
            basis=Basis.DOCUMENTED if wraps else None,
        )


@removal_rule(
    "DML-BINDING-unordered-access",
    url=BINDING_PAGE,
    says="A bound buffer has D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS, unless it is an input of an initializer.",
)
def buffer_allows_unordered_access(bound: SlotBinding, target: Target) -> Iterator[Violation]:
    if bound.range is None or not bound.slot.kind.unordered_access:
        return
    _, buffer = bound.range
    if not buffer.flags & ResourceFlags.ALLOW_UNORDERED_ACCESS:
        yield Violation(
            bound.name,
            f"the buffer's flags are {int(buffer.flags):#x}, without D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS (0x4)",
        )


@removal_rule(
    "DML-BINDING-heap",
    url=BIND_INPUTS_PAGE,
    says="A bound buffer is on a heap of type DEFAULT; an input of an initializer may be on UPLOAD too. The runtime "
    "accepts CUSTOM too, except for the outputs of an initializer.",
)
def heap_is_allowed(bound: SlotBinding, target: Target) -> Iterator[Violation]:
    if bound.range is None:
        return
    kind, (_, buffer) = bound.slot.kind, bound.range
    if buffer.heap not in kind.documented_heaps:
        noticed = buffer.heap not in kind.accepted_heaps
        heap = f"of type {buffer.heap.name}" if isinstance(buffer.heap, HeapType) else f"of unknown type {buffer.heap}"
        expected = " or ".join(sorted(heap.name for heap in kind.documented_heaps))
        yield Violation(
            bound.name,
            f"the buffer is on a heap {heap}, but {expected} was expected{'' if noticed else ' (DirectML accepts it)'}",
            basis=None if noticed else Basis.DOCUMENTED,
        )


@removal_rule(
    "DML-BINDING-Dimension",
    url=BUFFER_BINDING_PAGE,
    says="A bound resource is a buffer.",
)
def resource_is_a_buffer(bound: SlotBinding, target: Target) -> Iterator[Violation]:
    if bound.range is not None and (given := bound.range[1].dimension) != ResourceDimension.BUFFER:
        known = given in ResourceDimension._value2member_map_
        dimension = f"D3D12_RESOURCE_DIMENSION_{ResourceDimension(given).name}" if known else f"dimension {given}"
        yield Violation(bound.name, f"the resource has {dimension}, but D3D12_RESOURCE_DIMENSION_BUFFER was expected")


@removal_rule(
    "DML-BINDING-device",
    url=ERRORS_PAGE,
    says="A bound resource belongs to the device of Direct3D 12 that the IDMLDevice was made on.",
)
def resource_belongs_to_device(bound: SlotBinding, target: Target) -> Iterator[Violation]:
    owner = bound.range[1].direct3d_device if bound.range is not None else None
    if owner is not None and owner is not bound.direct3d_device:
        yield Violation(bound.name, "the resource belongs to another device of Direct3D 12 than the IDMLDevice")


RESOURCE_RULES: Final[tuple[Rule[SlotBinding], ...]] = (
    range_is_within_its_buffer,
    resource_is_a_buffer,
    resource_belongs_to_device,
    buffer_allows_unordered_access,
    heap_is_allowed,
)
