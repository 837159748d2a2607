"""Rules for the bindings of a tile's tensors and persistent resource, and for the resources that are bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dml_tile.bindings.resources import BindingDesc, Buffer, BufferArrayBinding, BufferBinding, Direct3DDevice
from dml_tile.bindings.slots import INITIALIZER_INPUT, INITIALIZER_PERSISTENT, TENSOR, BoundRange, Slot
from dml_tile.directml import pages
from dml_tile.directml.enums import (
    DEVICE_REMOVED,
    DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    DML_PERSISTENT_BUFFER_ALIGNMENT,
    UINT64_MAX,
    BindingType,
    HeapType,
    ResourceDimension,
    ResourceFlags,
)
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis, Finding, Rules, Violation, apply_rules

RANGE_RULES: Final = Rules[BoundRange](url=pages.BUFFER_BINDING, hresult=DEVICE_REMOVED)
OVERLAP_RULES: Final = Rules[tuple[str, str]](url=pages.BIND_OUTPUTS, hresult=DEVICE_REMOVED)
"""Each subject names an output, and a binding that shares memory with the output, "" if none does."""
REBINDING_RULES: Final = Rules[str](url=pages.STATIC_DESCRIPTORS, hresult=DEVICE_REMOVED, basis=Basis.DOCUMENTED)
"""Each subject names a slot of a recorded dispatch that is bound to something else; "" if none is."""
BINDING_COUNT_RULES: Final = Rules[tuple[int | None, int]](url=pages.BIND_INPUTS, hresult=DEVICE_REMOVED)
"""Each subject is the number of bindings given, None for a null array, and expected."""
BINDING_DESC_RULES: Final = Rules[BoundRange](url=pages.BINDING_DESC, hresult=DEVICE_REMOVED)
"""Rules for the DML_BINDING_DESC that a program passes to a binding table, and for its buffer."""


@RANGE_RULES.add("DML-BINDING-missing", url=pages.BINDING)
def tensor_is_bound(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """A tensor that is owned by DirectML is bound at initialisation, any other at execution. If the operator was
    compiled with DESCRIPTORS_VOLATILE, the runtime does not check this at dispatch.
    """
    if bound.slot.size_in_bytes and bound.binding is None:
        stage = bound.slot.kind.stage
        owned = " (the input's Flags say OWNED_BY_DML)" if stage == "initialisation" else ""
        unnoticed = f" ({bound.why_unnoticed})" if bound.why_unnoticed else ""
        basis = Basis.DOCUMENTED if bound.why_unnoticed else None
        yield Violation(bound.name, f"nothing is bound at {stage}{owned}{unnoticed}", basis=basis)


@RANGE_RULES.add("DML-BINDING-owned", url=pages.BINDING)
def tensor_is_bound_once(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """A tensor that is owned by DirectML is not bound at execution, any other not at initialisation; nor is an input or
    output of a graph that no node uses, or one that is null.
    """
    slot, binding = bound.slot, bound.binding
    if slot.is_tensor and not slot.size_in_bytes and binding is not None and not binding.is_empty:
        why = f"its Flags {'say' if slot.kind.stage == 'execution' else 'do not say'} OWNED_BY_DML"
        yield Violation(slot.name, f"is bound at {slot.kind.stage}, though {slot.unused or why}")


@RANGE_RULES.add("DML-BINDING-SizeInBytes")
def range_is_large_enough(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """A bound range has at least TotalTensorSizeInBytes, TemporaryResourceSize or PersistentResourceSize bytes. The
    runtime compares neither those of a compiled graph, nor tensors bound before an initializer's Reset.
    """
    slot, binding = bound.slot, bound.binding
    if bound.buffer is not None and binding is not None and binding.size_in_bytes < slot.size_in_bytes:
        yield Violation(
            slot.name,
            f"the value of SizeInBytes is too small. {binding.size_in_bytes} was provided, but at least "
            f"{slot.size_in_bytes} was expected ({slot.kind.size_is})",
        ).unless(slot.checked_by_runtime)


@RANGE_RULES.add("DML-BINDING-Offset")
def offset_is_aligned(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """The offset of a bound range is a multiple of 16 and of GuaranteedBaseOffsetAlignment, which the runtime does not
    compare for a compiled graph; that of a persistent or temporary resource, of 256.
    """
    slot, binding = bound.slot, bound.binding
    if bound.buffer is not None and binding is not None and binding.offset % slot.alignment:
        multiple = DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT if slot.is_tensor else DML_PERSISTENT_BUFFER_ALIGNMENT
        message = f"the value of Offset is misaligned. {binding.offset} is not a multiple of {slot.alignment}"
        yield Violation(slot.name, message).unless(slot.checked_by_runtime or binding.offset % multiple)


@BINDING_COUNT_RULES.add("DML-BINDING-count")
def count_is_right(counts: tuple[int | None, int], target: Target) -> Iterator[Violation]:
    """There are as many bindings as tensors, or as operators of an initializer; 0 unbind."""
    count, expected = counts
    if count is None and expected:
        yield Violation("bindings", f"null was provided, but an array of {expected} was expected")
    elif count and count != expected:
        yield Violation("bindingCount", f"{count} was provided, but {expected} was expected")


@BINDING_DESC_RULES.add("DML-BINDING-null", url=pages.BIND_PERSISTENT, crash=True)
def binding_is_given(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """The binding of a persistent or temporary resource is not null. The documentation allows it where nothing is
    needed.
    """
    if bound.desc is None:
        needed = bound.slot.size_in_bytes
        allowed = "" if needed else ", which the documentation allows"
        message = f"null was provided{allowed}; DirectML would crash"
        advice = None if needed else "pass a binding of type DML_BINDING_TYPE_NONE"
        yield Violation(bound.name, message, advice, None if needed else Basis.RUNTIME)


@BINDING_DESC_RULES.add("DML-BINDING-initializer-persistent", url=pages.INITIALIZER)
def initializer_has_no_persistent_resource(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """An initializer has no persistent resource of its own: those of its operators are its outputs. The runtime refuses
    even an empty binding.
    """
    if bound.slot.kind == INITIALIZER_PERSISTENT and bound.desc is not None:
        nothing = bound.desc.type == BindingType.NONE or (bound.binding is not None and bound.binding.is_empty)
        message = "BindPersistentResource was called on an initializer's table"
        advice = "bind the persistent resources of its operators with BindOutputs"
        yield Violation(bound.name, message, advice, Basis.RUNTIME if nothing else None)


@BINDING_DESC_RULES.add("DML-BINDING-initializer-NONE", basis=Basis.RUNTIME, url=pages.INITIALIZER, crash=True)
def initializer_input_is_not_none(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """An input of an initializer is not of type NONE with a null Desc. The documentation allows it."""
    if bound.slot.kind == INITIALIZER_INPUT and bound.desc == BindingDesc():
        message = "DML_BINDING_TYPE_NONE was provided, which the documentation allows; DirectML would crash"
        yield Violation(f"{bound.name}.Type", message, "bind an array of one empty buffer binding {null, 0, 0}")


@BINDING_DESC_RULES.add("DML-BINDING-initializer-NONE-Desc")
def initializer_input_of_no_type_has_no_desc(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """An input of an initializer of type NONE has no Desc."""
    desc = bound.desc
    if bound.slot.kind == INITIALIZER_INPUT and desc is not None and desc.type == BindingType.NONE and desc.desc:
        message = "a Desc was provided, but null was expected: Type is DML_BINDING_TYPE_NONE"
        yield Violation(f"{bound.name}.Desc", message, "set Type to DML_BINDING_TYPE_BUFFER_ARRAY")


@BINDING_DESC_RULES.add("DML-BINDING-Type")
def binding_type_fits(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """A tensor and a resource are bound as DML_BINDING_TYPE_BUFFER, the inputs of an operator that is initialised as
    DML_BINDING_TYPE_BUFFER_ARRAY. The runtime takes an array of 0 bindings for nothing where nothing is needed.
    """
    expected = bound.slot.kind.binding
    if bound.desc is not None and bound.desc.type not in (BindingType.NONE, expected):
        type_ = bound.desc.type
        name = f"DML_BINDING_TYPE_{type_.name}" if isinstance(type_, BindingType) else str(type_)
        nothing = (
            bound.desc.desc == BufferArrayBinding(())
            and not bound.slot.size_in_bytes
            and bound.slot.kind != INITIALIZER_PERSISTENT
        )
        path = f"{bound.name}.Type"
        message = f"{name} was provided, but DML_BINDING_TYPE_{expected.name} was expected"
        yield Violation(path, message).unless(not nothing, "DirectML takes an array of 0 bindings for nothing")


@BINDING_DESC_RULES.add("DML-BINDING-Desc-null")
def binding_is_described(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """A binding of type BUFFER has a Desc, one of type BUFFER_ARRAY also an array."""
    if bound.desc is None or bound.desc.type != bound.slot.kind.binding:
        return
    if bound.desc.desc is None:
        expected = f"DML_{bound.slot.kind.binding.name}_BINDING"
        yield Violation(f"{bound.name}.Desc", f"null was provided, but a {expected} was expected")
    elif isinstance(bound.desc.desc, BufferArrayBinding) and bound.desc.desc.bindings is None:
        yield Violation(f"{bound.name}.Bindings", "null was provided, but an array of buffer bindings was expected")


@BINDING_DESC_RULES.add("DML-BINDING-BindingCount", url=pages.BIND_INPUTS)
def array_has_one_binding(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """For each operator, an initializer takes an array of as many bindings as the operator has inputs. The runtime
    requires it even where there is nothing to bind.
    """
    array = bound.desc.desc if bound.desc is not None else None
    if not isinstance(array, BufferArrayBinding) or array.bindings is None or len(array.bindings) == bound.array_length:
        return
    if bound.slot.kind == INITIALIZER_INPUT and bound.array_length:
        allowed = bound.array_length == 1 and not array.bindings and not bound.slot.size_in_bytes
        message = (
            f"{len(array.bindings)} was provided, but {bound.array_length} was expected"
            f"{': a tile has one input' if bound.array_length == 1 else ''}"
            f"{'; the documentation allows an empty array here' if allowed else ''}"
        )
        advice = "bind an array of one empty buffer binding {null, 0, 0}" if allowed else None
        yield Violation(f"{bound.name}.BindingCount", message, advice, Basis.RUNTIME if allowed else None)


@BINDING_DESC_RULES.add("DML-BINDING-Buffer-null", url=pages.BUFFER_BINDING)
def buffer_is_given(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """A binding names a buffer where one is needed."""
    if bound.slot.size_in_bytes and bound.binding is not None and bound.binding.buffer is None:
        message = f"null was provided, but a buffer of at least {bound.slot.size_in_bytes} bytes was expected"
        yield Violation(f"{bound.name}.Buffer", message)


@BINDING_DESC_RULES.add("DML-BINDING-unneeded", url=pages.BIND_PERSISTENT)
def resource_is_needed(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """A persistent or temporary resource is bound only where more than 0 bytes of it are needed."""
    kind, binding = bound.slot.kind, bound.binding
    if bound.slot.is_tensor or kind == INITIALIZER_PERSISTENT or bound.slot.size_in_bytes:
        return
    if binding is not None and not binding.is_empty:
        yield Violation(bound.name, f"a buffer was provided, but nothing was expected: {kind.size_is} is 0")


@OVERLAP_RULES.add("DML-BINDING-overlap", basis=Basis.DOCUMENTED)
def output_is_apart(names: tuple[str, str], target: Target) -> Iterator[Violation]:
    """An output shares no memory with any other bound buffer, unless the operator's page lets it alias an input of the
    same layout. Tile has no in-place form.
    """
    output, other = names
    if other:
        yield Violation(
            output,
            f"the bound range overlaps that of {other} (DirectML does not notice: on a software driver, an output in "
            "its input's range was right, one that was shifted over its input was wrong)",
        )


@REBINDING_RULES.add("DML-BINDING-recorded")
def recorded_binding_stays(slot: str, target: Target) -> Iterator[Violation]:
    """A table is not bound again before its recorded dispatch is executed, unless the operator was compiled with
    DESCRIPTORS_VOLATILE: Direct3D 12 takes other descriptors as static, and does not define which buffer is used.
    """
    if slot:
        yield Violation(
            slot,
            "is bound again, though a recorded dispatch of the table is not executed yet (DirectML does not notice: on "
            "a software driver it wrote to the buffer that was bound last, not to the one that was recorded)",
            "execute the list first, bind another table, or compile with DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE",
        )


@BINDING_DESC_RULES.add("DML-BINDING-range", url=pages.BUFFER_BINDING)
def range_is_within_its_buffer(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """A bound range ends within its buffer. The runtime adds Offset and SizeInBytes modulo 2^64."""
    binding, buffer = bound.binding, bound.buffer
    if binding is None or buffer is None:
        return
    end = binding.offset + binding.size_in_bytes
    if end > buffer.size:
        yield Violation(
            bound.name,
            f"the range ends at Offset {binding.offset} + SizeInBytes {binding.size_in_bytes} = {end}, but the buffer "
            f"has {buffer.size} bytes",
        ).unless(end & UINT64_MAX > buffer.size, "DirectML adds modulo 2^64, and does not notice")


@BINDING_DESC_RULES.add("DML-BINDING-Dimension", url=pages.BUFFER_BINDING)
def resource_is_a_buffer(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """A bound resource is a buffer."""
    if bound.buffer is not None and (value := bound.buffer.dimension) != ResourceDimension.BUFFER:
        is_known = value in ResourceDimension._value2member_map_
        dimension = f"D3D12_RESOURCE_DIMENSION_{ResourceDimension(value).name}" if is_known else f"dimension {value}"
        yield Violation(bound.name, f"the resource has {dimension}, but D3D12_RESOURCE_DIMENSION_BUFFER was expected")


@BINDING_DESC_RULES.add("DML-BINDING-device", url=pages.ERRORS)
def resource_belongs_to_device(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """A bound resource belongs to the device of Direct3D 12 that the IDMLDevice was made on."""
    owner = bound.buffer.direct3d_device if bound.buffer is not None else None
    if owner is not None and owner is not bound.direct3d_device:
        yield Violation(bound.name, "the resource belongs to another device of Direct3D 12 than the IDMLDevice")


@BINDING_DESC_RULES.add("DML-BINDING-unordered-access", url=pages.BINDING)
def buffer_allows_unordered_access(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """A bound buffer has D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS, unless it is an input of an initializer."""
    buffer = bound.buffer
    if (
        buffer is not None
        and bound.slot.kind.unordered_access
        and not buffer.flags & ResourceFlags.ALLOW_UNORDERED_ACCESS
    ):
        yield Violation(
            bound.name,
            f"the buffer's flags are {int(buffer.flags):#x}, without D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS (0x4)",
        )


@BINDING_DESC_RULES.add("DML-BINDING-heap", url=pages.BIND_INPUTS)
def heap_is_allowed(bound: BoundRange, target: Target) -> Iterator[Violation]:
    """A bound buffer is on a heap of type DEFAULT; an input of an initializer may be on UPLOAD and, from 2_0 on, on
    CUSTOM. The runtime accepts CUSTOM elsewhere too, except for the outputs of an initializer.
    """
    kind, buffer = bound.slot.kind, bound.buffer
    documented = kind.documented_heaps - (frozenset() if target.level.takes_custom_heaps else {HeapType.CUSTOM})
    if buffer is not None and buffer.heap not in documented:
        heap = f"of type {buffer.heap.name}" if isinstance(buffer.heap, HeapType) else f"of unknown type {buffer.heap}"
        expected = " or ".join(sorted(heap.name for heap in documented))
        message = f"the buffer is on a heap {heap}, but {expected} was expected"
        yield Violation(bound.name, message).unless(buffer.heap not in kind.accepted_heaps, "DirectML accepts it")


_ANYWHERE: Final = (resource_belongs_to_device, resource_is_a_buffer, offset_is_aligned, range_is_within_its_buffer)


def wrong_anywhere(binding: BufferBinding, direct3d_device: Direct3DDevice | None, target: Target) -> str:
    """Return what the runtime finds wrong with a range, whatever it is bound to; empty if nothing."""
    somewhere = Slot("", TENSOR, 1, DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT)
    bound = BoundRange(somewhere, binding, direct3d_device=direct3d_device)
    found = apply_rules(_ANYWHERE, bound, target)
    return next((finding.message for finding in found if finding.basis & Basis.RUNTIME), "")


def in_order_of_notice(findings: list[Finding], *, malformed: bool) -> list[Finding]:
    """Return the findings of a call in the runtime's order, which decides whether it crashes.

    The runtime looks at all bindings three times: at each by itself, whose faults make the call ``malformed``; at what
    each is bound to, where it may crash; and at heaps.
    """
    return sorted(findings, key=lambda found: found.crash if malformed else found.rule == heap_is_allowed.id)


def buffer_findings(needed: tuple[int, int], sizes: tuple[int, int], *, overlap: bool, target: Target) -> list[Finding]:
    """Return the findings of an input and an output of ``sizes`` bytes, for tensors that need ``needed``."""
    findings: list[Finding] = []
    for name, least, size in zip(("InputTensor", "OutputTensor"), needed, sizes, strict=True):
        if size < least:
            bound = BoundRange(Slot(name, TENSOR, least, 1), BufferBinding(Buffer(size)))
            findings += range_is_large_enough.findings(bound, target)
    return [*findings, *output_is_apart.findings(("OutputTensor", "InputTensor" if overlap else ""), target)]
