"""Drafts of tiles with one fault, and the faults: what to change in a valid draft so that it breaks a rule.

A fault draws its changes: new fields of the tile, and of a tensor those that differ. It gives None, having drawn
nothing, where the draft has no room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import mul
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, UINT64_MAX, UINT_MAX, TensorFlags
from dml_tile.directml.targets import Target
from dml_tile.geometry.layout import minimum_size_in_bytes, packed_strides
from dml_tile.simulation.target import resolve
from dml_tile.testing.drafts import Draft, data_types, drafts

Fault: TypeAlias = Callable[[st.DrawFn, Draft, Target], Draft | None]

_OPERANDS: Final = st.sampled_from(["InputTensor", "OutputTensor"])


@st.composite
def faulty_drafts(draw: st.DrawFn, target: Target | None, max_elements: int) -> Draft:
    """A tile with one fault: the drawn one, or the first after it for which the draft has room."""
    target = resolve(target)
    draft = draw(drafts(target, max_elements))
    first = draw(st.integers(0, len(FAULTS) - 1))
    drawn = (fault(draw, draft, target) for fault in FAULTS[first:])
    changes = next(changes for changes in drawn if changes is not None)
    return draft | {
        field: draft[field] | change if isinstance(change, dict) else change for field, change in changes.items()
    }


def _field(name: str, wrong: st.SearchStrategy[Any]) -> Fault:
    """A value that is wrong in any draft, for a field of either tensor."""

    def fault(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
        return {draw(_OPERANDS): {name: draw(wrong)}}

    return fault


def null_tensor(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    return {draw(_OPERANDS): None}


def owned_output(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    return {"OutputTensor": {"Flags": TensorFlags.OWNED_BY_DML}}


def unsupported_data_type(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    supported = {TensorDataType.UNKNOWN, *data_types(target)}
    data_type = draw(st.sampled_from([data_type for data_type in TensorDataType if data_type not in supported]))
    return {operand: _with_total(draft[operand], DataType=data_type) for operand in ("InputTensor", "OutputTensor")}


def mismatched_data_type(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    given = draft["InputTensor"]["DataType"]
    other = draw(st.sampled_from([data_type for data_type in data_types(target) if data_type != given]))
    return {"OutputTensor": _with_total(draft["OutputTensor"], DataType=other)}


def unsupported_dimension_count(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    counts = range(1, DML_TENSOR_DIMENSION_COUNT_MAX1 + 2)
    supported = target.tile_support.dimension_counts
    count = draw(st.sampled_from([count for count in counts if count not in supported]))
    return {
        "InputTensor": _packed(draft["InputTensor"], _fitted(draft["InputTensor"]["Sizes"], count)),
        "OutputTensor": _packed(draft["OutputTensor"], _fitted(draft["OutputTensor"]["Sizes"], count)),
        "RepeatsCount": count,
        "Repeats": _fitted(draft["Repeats"], count),
    }


def mismatched_dimension_count(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    output = draft["OutputTensor"]
    return {"OutputTensor": _packed(output, [1, *output["Sizes"]])}


def short_sizes(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    operand = draw(_OPERANDS)
    return {operand: {"Sizes": draft[operand]["Sizes"][:-1]}}


def short_strides(draw: st.DrawFn, draft: Draft, target: Target) -> Draft | None:
    if draft["RepeatsCount"] < 2:
        return None  # empty strides are read as null
    operand = draw(_OPERANDS)
    return {operand: {"Strides": _strides(draft[operand])[:-1]}}


def short_repeats(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    return {"Repeats": draft["Repeats"][:-1]}


def zero_size(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    operand = draw(_OPERANDS)
    return {operand: {"Sizes": _replaced(draft[operand]["Sizes"], draw(_dimensions(draft)), 0)}}


def mismatched_size(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    output, i = draft["OutputTensor"], draw(_dimensions(draft))
    size = output["Sizes"][i] + draw(st.integers(1, 9))
    return {"OutputTensor": _packed(output, _replaced(output["Sizes"], i, size))}


def too_many_elements(draw: st.DrawFn, draft: Draft, target: Target) -> Draft | None:
    if draft["RepeatsCount"] < 2:
        return None  # one size cannot exceed a UINT
    repeats = [2**16, 2**16, *draft["Repeats"][2:]]
    sizes = list(map(mul, draft["InputTensor"]["Sizes"], repeats))
    return {"OutputTensor": _packed(draft["OutputTensor"], sizes), "Repeats": repeats}


def unaddressable_extent(draw: st.DrawFn, draft: Draft, target: Target) -> Draft | None:
    """Strides up to index 2^32-1: too far at all levels, also at those where the runtime computes modulo 2^32."""
    source = draft["InputTensor"]
    reaching = [i for i in _walked(source) if UINT_MAX % (source["Sizes"][i] - 1) == 0]
    if not reaching:
        return None
    i = draw(st.sampled_from(reaching))
    strides = _replaced([0] * draft["RepeatsCount"], i, UINT_MAX // (source["Sizes"][i] - 1))
    return {"InputTensor": _with_total(source, Strides=strides)}


def zero_output_stride(draw: st.DrawFn, draft: Draft, target: Target) -> Draft | None:
    walked = _walked(draft["OutputTensor"])
    if not walked:
        return None
    return {"OutputTensor": {"Strides": _replaced(_strides(draft["OutputTensor"]), draw(st.sampled_from(walked)), 0)}}


def colliding_output_strides(draw: st.DrawFn, draft: Draft, target: Target) -> Draft | None:
    """A step along one dimension reaches as far as some along another; the runtime notices only if these are one."""
    output = draft["OutputTensor"]
    walked, strides = _walked(output), _strides(output)
    if len(walked) < 2:
        return None
    one, other = draw(st.permutations(walked))[:2]
    steps = draw(st.integers(1, output["Sizes"][other] - 1))
    return {"OutputTensor": _with_total(output, Strides=_replaced(strides, one, steps * strides[other]))}


def small_total(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    operand = draw(_OPERANDS)
    return {operand: {"TotalTensorSizeInBytes": draw(st.integers(0, _minimum(draft[operand]) - 1))}}


def large_total(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    operand = draw(_OPERANDS)
    limit = 2**32 * ELEMENT_SIZES[draft[operand]["DataType"]]
    return {operand: {"TotalTensorSizeInBytes": draw(st.integers(limit, UINT64_MAX))}}


def mismatched_repeats_count(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    return {"RepeatsCount": (draft["RepeatsCount"] + draw(st.integers(1, UINT_MAX))) % 2**32}


def null_repeats(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    return {"Repeats": None}


def zero_repeat(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    return {"Repeats": _replaced(draft["Repeats"], draw(_dimensions(draft)), 0)}


FAULTS: Final[tuple[Fault, ...]] = (
    _field("DataType", st.just(0) | st.integers(14, UINT_MAX)),
    _field("Flags", st.integers(2, UINT_MAX)),
    _field("DimensionCount", st.just(0) | st.integers(9, UINT_MAX)),
    _field("Sizes", st.none()),
    _field(
        "GuaranteedBaseOffsetAlignment", st.integers(1, 15) | st.integers(8, UINT_MAX // 2).map(lambda n: 2 * n + 1)
    ),
    _field("Type", st.sampled_from([0, 2**31]) | st.integers(2, UINT_MAX)),
    _field("NullDesc", st.just(value=True)),
    null_tensor,
    owned_output,
    unsupported_data_type,
    mismatched_data_type,
    unsupported_dimension_count,
    mismatched_dimension_count,
    unaddressable_extent,
    colliding_output_strides,
    zero_output_stride,
    short_strides,
    short_sizes,
    short_repeats,
    zero_size,
    mismatched_size,
    too_many_elements,
    small_total,
    large_total,
    mismatched_repeats_count,
    null_repeats,
    zero_repeat,
)


def _dimensions(draft: Draft) -> st.SearchStrategy[int]:
    return st.integers(0, draft["RepeatsCount"] - 1)


def _walked(tensor: Draft) -> list[int]:
    """Return the dimensions along which there is a step."""
    return [i for i, size in enumerate(tensor["Sizes"]) if size > 1]


def _strides(tensor: Draft) -> Sequence[int]:
    strides: Sequence[int] | None = tensor["Strides"]
    return packed_strides(tensor["Sizes"]) if strides is None else strides


def _packed(tensor: Draft, sizes: Sequence[int]) -> Draft:
    return _with_total(tensor, DimensionCount=len(sizes), Sizes=sizes, Strides=None)


def _with_total(tensor: Draft, **changes: Any) -> Draft:
    """Return the changes, and the total that goes with them."""
    return changes | {"TotalTensorSizeInBytes": _minimum(tensor | changes)}


def _minimum(tensor: Draft) -> int:
    element_size = ELEMENT_SIZES.get(tensor["DataType"], 1)  # the 4-bit types have none
    return minimum_size_in_bytes(element_size, tensor["Sizes"], tensor["Strides"])


def _fitted(values: Sequence[int], count: int) -> list[int]:
    """Return the last values, after as many 1s as are missing."""
    return [1] * (count - len(values)) + list(values[-count:])


def _replaced(values: Sequence[int], i: int, value: int) -> list[int]:
    return [*values[:i], value, *values[i + 1 :]]
