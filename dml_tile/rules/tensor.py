"""Rules for each tensor: DML_TENSOR_DESC and DML_BUFFER_TENSOR_DESC."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from dml_tile.descriptors.tile import DATA_TYPE, BufferTensorDesc, TensorDesc
from dml_tile.directml import pages
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import (
    DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    DML_TENSOR_DIMENSION_COUNT_MAX1,
    OWNED_BY_DML,
    UINT64_MAX,
    UINT_MAX,
    TensorFlags,
    TensorType,
)
from dml_tile.directml.targets import Target
from dml_tile.findings import BOTH, Basis, Edit, Finding, Rules, Try, Violation, apply_rules, set_to
from dml_tile.geometry.layout import extent, minimum_size_in_bytes, packed_strides, round_up_4, shares_addresses
from dml_tile.text import braced

_PRIVATE_TYPE: Final = 0x80000000
_PRIVATE_SIZE: Final = 120
"""The bytes of the library's own struct; it begins with a DML_BUFFER_TENSOR_DESC, of 48 bytes."""


class Operand(NamedTuple):
    """A tensor of an operator, and the name of its field."""

    name: str
    tensor: TensorDesc | None
    is_output: bool = False


class TensorView(NamedTuple):
    """One operand's DML_BUFFER_TENSOR_DESC, with sizes and strides that are safe to compute with."""

    operand: Operand
    desc: BufferTensorDesc
    sizes: tuple[int, ...] | None
    """The sizes of its dimensions; None if they cannot be read, or a size is 0."""
    strides: tuple[int, ...] | None
    """Its strides; None if it is packed, or ``sizes`` is None."""
    element_size: int | None
    """In bytes; None for an unknown type."""
    is_ordinary: bool = False
    """True for a packed, unaligned tensor, which breaks no rule of tensors (a property test shows it)."""

    def path(self, field: str) -> str:
        return f"{self.operand.name}.{field}"


def view_of(operand: Operand) -> TensorView | None:
    """Return the view of an operand; None if the tensor, or its Desc, is null."""
    if ordinary := ordinary_buffer(operand.tensor, 0 if operand.is_output else OWNED_BY_DML):
        return TensorView(operand, ordinary, ordinary.sizes, None, ELEMENT_SIZES[ordinary.data_type], is_ordinary=True)
    desc = operand.tensor.desc if operand.tensor else None
    if desc is None:
        return None
    count = desc.dimension_count
    sizes = strides = None
    if 1 <= count <= DML_TENSOR_DIMENSION_COUNT_MAX1 and desc.sizes is not None and len(desc.sizes) >= count:
        sizes = desc.sizes[:count]
        strides = desc.strides[:count] if desc.strides is not None else None
        if 0 in sizes or (strides is not None and len(strides) < count):
            sizes = strides = None
    return TensorView(operand, desc, sizes, strides, ELEMENT_SIZES.get(desc.data_type))


def runtime_extent(sizes: tuple[int, ...], strides: tuple[int, ...] | None, target: Target) -> int:
    """Return the runtime's extent in elements: up to level 5_2, a strided extent is computed modulo 2^32."""
    exact = extent(sizes, strides)
    return exact & UINT_MAX if strides is not None and target.level.runtime.wraps_extents else exact


TENSOR_RULES: Final = Rules[Operand](url=pages.TENSOR)
BUFFER_RULES: Final = Rules[TensorView](url=pages.BUFFER)


@TENSOR_RULES.add("DML-TENSOR-null")
def tensor_is_given(operand: Operand, target: Target) -> Iterator[Violation]:
    """The operator's tensors are not null."""
    if operand.tensor is None:
        yield Violation(operand.name, "null was provided, but a DML_TENSOR_DESC was expected")


@TENSOR_RULES.add("DML-TENSOR-Type")
def tensor_is_a_buffer(operand: Operand, target: Target) -> Iterator[Violation]:
    """A tensor's Type is DML_TENSOR_TYPE_BUFFER."""
    if operand.tensor is not None and operand.tensor.type != TensorType.BUFFER:
        path = f"{operand.name}.Type"
        message = f"{int(operand.tensor.type)} was provided, but DML_TENSOR_TYPE_BUFFER (1) was expected"
        yield Violation(path, message, basis=Basis.DOCUMENTED if _is_private(operand.tensor, target) else None)


@TENSOR_RULES.add("DML-TENSOR-Type-private", basis=Basis.RUNTIME, crash=True)
def tensor_is_not_private(operand: Operand, target: Target) -> Iterator[Violation]:
    """Type is DML_TENSOR_TYPE_BUFFER. From 6_0 on (measured on 6_2), the runtime has a type of its own, whose struct is
    longer than DML_BUFFER_TENSOR_DESC.
    """
    if operand.tensor is not None and _is_private(operand.tensor, target):
        yield Violation(
            f"{operand.name}.Type",
            f"{_PRIVATE_TYPE} is a type of DirectML's own: it takes Desc for a struct of {_PRIVATE_SIZE} bytes, reads "
            "past the DML_BUFFER_TENSOR_DESC, and may crash",
        )


def _is_private(tensor: TensorDesc, target: Target) -> bool:
    return tensor.type == _PRIVATE_TYPE and tensor.desc is not None and target.level.runtime.has_private_tensors


@TENSOR_RULES.add("DML-TENSOR-Desc-null")
def tensor_is_described(operand: Operand, target: Target) -> Iterator[Violation]:
    """A tensor's Desc is not null."""
    tensor = operand.tensor
    if (
        tensor is not None and tensor.desc is None and isinstance(tensor.type, TensorType)
    ):  # of other Types, Desc may be anything
        yield Violation(f"{operand.name}.Desc", "null was provided, but a DML_BUFFER_TENSOR_DESC was expected")


@BUFFER_RULES.add("DML-BUFFER-DataType")
def data_type_is_known(view: TensorView, target: Target) -> Iterator[Violation]:
    """DataType is an enumerator of DML_TENSOR_DATA_TYPE, and not UNKNOWN."""
    data_type = view.desc.data_type
    if data_type == TensorDataType.UNKNOWN or not isinstance(data_type, TensorDataType):
        yield Violation(view.path("DataType"), f"{DATA_TYPE.write(data_type)} is not the type of any tensor")


@BUFFER_RULES.add("DML-BUFFER-Flags", url=pages.FLAGS)
def flags_are_known(view: TensorView, target: Target) -> Iterator[Violation]:
    """Flags has only bits of DML_TENSOR_FLAGS."""
    flags = int(view.desc.flags)  # the inverse of an IntFlag has known bits only
    if unknown := flags & ~int(TensorFlags.OWNED_BY_DML):
        yield Violation(
            view.path("Flags"),
            f"{flags:#x} has the unknown bits {unknown:#x}; "
            "DML_TENSOR_FLAG_NONE (0) or DML_TENSOR_FLAG_OWNED_BY_DML (1) was expected",
            edit=set_to(0 if view.operand.is_output else flags & OWNED_BY_DML, view.path("Flags")),
        )


@BUFFER_RULES.add("DML-BUFFER-Flags-output", url=pages.FLAGS)
def output_is_not_owned(view: TensorView, target: Target) -> Iterator[Violation]:
    """DML_TENSOR_FLAG_OWNED_BY_DML is for inputs only."""
    if view.operand.is_output and view.desc.flags & TensorFlags.OWNED_BY_DML:
        message = "DML_TENSOR_FLAG_OWNED_BY_DML was provided for an output; DirectML can own inputs only"
        yield Violation(view.path("Flags"), message, edit=without_flags(view))


def without_flags(view: TensorView) -> Try:
    """Return the way out to have no flags."""
    return Try("use DML_TENSOR_FLAG_NONE", edits=(Edit(view.path("Flags"), 0),))


@BUFFER_RULES.add("DML-BUFFER-DimensionCount")
def dimension_count_is_in_range(view: TensorView, target: Target) -> Iterator[Violation]:
    """DimensionCount is from 1 to 8."""
    count = view.desc.dimension_count
    if not 1 <= count <= DML_TENSOR_DIMENSION_COUNT_MAX1:
        message = (
            f"an invalid dimension count of {count} was specified, which is not between 1 and "
            f"{DML_TENSOR_DIMENSION_COUNT_MAX1}"
        )
        scalar = Try("give a scalar the Sizes {1}", edits=(Edit(view.path("Sizes"), (1,)),))
        yield Violation(view.path("DimensionCount"), message, edit=None if count else scalar)


@BUFFER_RULES.add("DML-BUFFER-Sizes-null")
def sizes_are_given(view: TensorView, target: Target) -> Iterator[Violation]:
    """Sizes is not null."""
    if view.desc.sizes is None:
        yield Violation(view.path("Sizes"), "null was provided, but an array of DimensionCount sizes was expected")


@BUFFER_RULES.add("DML-BUFFER-array-length")
def arrays_are_long_enough(view: TensorView, target: Target) -> Iterator[Violation]:
    """Sizes, and Strides if given, have at least DimensionCount entries; the runtime reads past their end."""
    count = view.desc.dimension_count
    if count > DML_TENSOR_DIMENSION_COUNT_MAX1:
        return  # refused before an array is read
    for field, array in (("Sizes", view.desc.sizes), ("Strides", view.desc.strides)):
        if array is not None and len(array) < count:
            message = f"an array of {len(array)} was provided, but DimensionCount promises {count}"
            yield Violation(view.path(field), message)


@BUFFER_RULES.add("DML-BUFFER-Sizes-zero")
def sizes_are_not_zero(view: TensorView, target: Target) -> Iterator[Violation]:
    """No size is 0."""
    count = min(view.desc.dimension_count, DML_TENSOR_DIMENSION_COUNT_MAX1)
    for i, size in enumerate((view.desc.sizes or ())[:count]):
        if size == 0:
            message = "is 0; every size must be at least 1"
            advice = "leave the operator out if its output is empty" if view.operand.is_output else None
            yield Violation(view.path(f"Sizes[{i}]"), message, advice)


@BUFFER_RULES.add("DML-BUFFER-Sizes-elements")
def elements_are_countable(view: TensorView, target: Target) -> Iterator[Violation]:
    """A tensor has at most 2^32-1 elements."""
    if view.sizes is not None and (elements := math.prod(view.sizes)) > UINT_MAX:
        yield Violation(view.path("Sizes"), f"{elements} elements were specified, but at most {UINT_MAX} are allowed")


@BUFFER_RULES.add("DML-BUFFER-Strides-extent", basis=Basis.RUNTIME, url=pages.STRIDES)
def extent_is_addressable(view: TensorView, target: Target) -> Iterator[Violation]:
    """No element lies beyond index 2^32-2; up to level 5_2 the runtime takes the extent modulo 2^32 and refuses 0."""
    if view.sizes is None or view.strides is None:
        return
    exact = extent(view.sizes, view.strides)
    seen = runtime_extent(view.sizes, view.strides, target)
    if seen == 0:
        message = f"the extent is {exact} elements, which is 0 modulo 2^32"
    elif seen > UINT_MAX:
        message = f"the last element has index {exact - 1}, but at most {UINT_MAX - 1} is allowed"
    else:
        return
    yield Violation(view.path("Strides"), message, edit=_packed(view, view.sizes))


def _packed(view: TensorView, sizes: tuple[int, ...]) -> Try:
    strides = packed_strides(sizes)
    return Try(f"the packed strides are {braced(strides)}", edits=(Edit(view.path("Strides"), strides),))


@BUFFER_RULES.add("DML-BUFFER-Strides-overlap", url=pages.STRIDES)
def output_elements_are_apart(view: TensorView, target: Target) -> Iterator[Violation]:
    """No two elements of an output share an address. The runtime looks only for a zero stride and for two equal
    strides, in dimensions of more than one element, and for more elements than addresses.
    """
    if not view.operand.is_output or view.sizes is None or view.strides is None:
        return
    path, advice = view.path("Strides"), None
    shared = shares_addresses(view.sizes, view.strides)
    refused = _runtime_sees_overlap(view.sizes, view.strides, target)
    basis = BOTH if refused else Basis.DOCUMENTED
    if shared is None:
        message = "elements of the output may share an address; there are too many to look at each"
        advice = "let each stride exceed what all smaller ones reach"
    elif shared:
        unnoticed = "" if refused else " (DirectML does not notice)"
        message = f"elements of the output share an address; what is written there is undefined{unnoticed}"
    elif refused:
        message = "the runtime takes the extent modulo 2^32, and finds it too small for the tensor's elements"
        basis = Basis.RUNTIME
    else:
        return
    yield Violation(path, message, advice, basis, edit=_packed(view, view.sizes))


def _runtime_sees_overlap(sizes: tuple[int, ...], strides: tuple[int, ...], target: Target) -> bool:
    walked = [stride for size, stride in zip(sizes, strides, strict=True) if size > 1]
    return 0 in walked or len(set(walked)) < len(walked) or math.prod(sizes) > runtime_extent(sizes, strides, target)


@BUFFER_RULES.add("DML-BUFFER-TotalTensorSizeInBytes-minimum", url=pages.HELPER)
def total_is_large_enough(view: TensorView, target: Target) -> Iterator[Violation]:
    """TotalTensorSizeInBytes is at least the size that Sizes, Strides and DataType imply, rounded up to 4 bytes."""
    if view.sizes is None or view.element_size is None:
        return
    total = view.desc.total_tensor_size_in_bytes
    expected = minimum_size_in_bytes(view.element_size, view.sizes, view.strides)
    if total >= expected:
        return
    compared = round_up_4(runtime_extent(view.sizes, view.strides, target) * view.element_size)
    wrapped = "" if compared == expected else f" (DirectML computes in 32 bits here, and expects {compared})"
    message = f"the value is too small. {total} was provided, but at least {expected} was expected{wrapped}"
    basis = BOTH if total < compared else Basis.DOCUMENTED
    yield Violation(view.path("TotalTensorSizeInBytes"), message, basis=basis, edit=_total(view, expected))


def _total(view: TensorView, expected: int) -> Try | None:
    """Return the way out to set the total to the least that a tensor needs, if that is not too large."""
    is_addressable = view.element_size and expected <= UINT_MAX * view.element_size
    return set_to(expected, view.path("TotalTensorSizeInBytes")) if is_addressable else None


@BUFFER_RULES.add("DML-BUFFER-TotalTensorSizeInBytes-maximum", basis=Basis.RUNTIME)
def total_is_addressable(view: TensorView, target: Target) -> Iterator[Violation]:
    """TotalTensorSizeInBytes has room for at most 2^32-1 elements."""
    total, path = view.desc.total_tensor_size_in_bytes, view.path("TotalTensorSizeInBytes")
    if view.element_size is not None and total // view.element_size > UINT_MAX:
        limit = 2**32 * view.element_size
        message = f"the value is too large. {total} was provided, but less than {limit} was expected"
        expected = minimum_size_in_bytes(view.element_size, view.sizes, view.strides) if view.sizes else UINT64_MAX
        yield Violation(path, message, edit=_total(view, expected))


@BUFFER_RULES.add("DML-BUFFER-GuaranteedBaseOffsetAlignment")
def alignment_is_a_power_of_two(view: TensorView, target: Target) -> Iterator[Violation]:
    """GuaranteedBaseOffsetAlignment is 0, or a power of two and at least the element's size; the runtime wants at least
    16.
    """
    alignment = view.desc.guaranteed_base_offset_alignment
    if alignment == 0:
        return
    path = view.path("GuaranteedBaseOffsetAlignment")
    minimum = DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT
    if alignment & (alignment - 1):
        message = f"{alignment} was provided, but 0 or a power of two was expected"
        yield Violation(path, message, edit=set_to(0, path))
    elif alignment < (view.element_size or 1):
        message = f"{alignment} was provided, but the element's size is {view.element_size} bytes"
        yield Violation(path, message, edit=set_to(0, path))
    elif alignment < minimum:
        message = f"{alignment} was provided, which the documentation allows; DirectML wants 0 or at least {minimum}"
        yield Violation(path, message, basis=Basis.RUNTIME, edit=set_to(0, path))


def sized(view: TensorView, sizes: tuple[int, ...]) -> Try:
    """Return the way out to give a tensor other Sizes; its strides, if it has any, become those of a packed one."""
    edits, text = [Edit(view.path("Sizes"), sizes)], f"set Sizes to {braced(sizes)}"
    if view.desc.strides is None:
        return Try(text, edits=(*edits,))
    return Try(f"{text}, packed", edits=(*edits, Edit(view.path("Strides"), None)))


def counted(view: TensorView, count: int) -> Try | None:
    """Return the way out to give a tensor so many dimensions by leading sizes of 1, or without its own."""
    sizes, strides = view.desc.sizes or (), view.desc.strides
    missing, excess = max(0, count - len(sizes)), max(0, len(sizes) - count)
    if not sizes or count > DML_TENSOR_DIMENSION_COUNT_MAX1 or any(size != 1 for size in sizes[:excess]):
        return None
    if len(sizes) == count:
        return set_to(count, view.path("DimensionCount"))
    after = (1,) * missing + sizes[excess:]
    edits = [Edit(view.path("Sizes"), after)]
    if strides is not None:
        edits.append(Edit(view.path("Strides"), (0,) * missing + strides[excess:]))
    return Try(f"{'leave out' if excess else 'give it'} leading sizes of 1: {braced(after)}", edits=(*edits,))


def findings_of_tensor(operand: Operand, view: TensorView | None, target: Target) -> Iterator[Finding]:
    """Yield the findings of a tensor, then those of its buffer."""
    if view is None or not view.is_ordinary:
        yield from apply_rules(TENSOR_RULES, operand, target)
        yield from apply_rules(BUFFER_RULES, view, target) if view else ()


_BUFFER: Final = int(TensorType.BUFFER)  # looking up an enumerator costs more than comparing with it


def ordinary_buffer(tensor: TensorDesc | None, allowed_flags: int) -> BufferTensorDesc | None:
    """Return the buffer of a packed, unaligned tensor that breaks no rule of tensors; None for another tensor."""
    if tensor is None or tensor.type != _BUFFER or tensor.desc is None:
        return None
    buffer = tensor.desc
    sizes, element_size = buffer.sizes, ELEMENT_SIZES.get(buffer.data_type)
    if (
        sizes is None
        or element_size is None
        or not 0 < len(sizes) == buffer.dimension_count <= DML_TENSOR_DIMENSION_COUNT_MAX1
        or buffer.strides is not None
        or buffer.guaranteed_base_offset_alignment
        or buffer.flags > allowed_flags  # there is one flag, 1
    ):
        return None
    elements, total = math.prod(sizes), buffer.total_tensor_size_in_bytes
    is_large_enough = elements * element_size <= total // 4 * 4  # rounding up to 4 bytes leaves that true
    return buffer if 0 < elements <= UINT_MAX and is_large_enough and total <= UINT_MAX * element_size else None
