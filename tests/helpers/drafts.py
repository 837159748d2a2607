"""Drafts of tiles: the fields of a DML_TILE_OPERATOR_DESC in C names, before they are made one; and faults of them.

Sizes and strides are in elements. Every draw is built, none is filtered, so that hypothesis shrinks well. A fault draws
what to change in a valid draft so that it breaks a rule: new fields of the tile, and of a tensor those that differ. It
gives None, having drawn nothing, where the draft has no room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import mul
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, UINT64_MAX, UINT_MAX, TensorFlags
from dml_tile.directml.targets import Target
from dml_tile.geometry.layout import minimum_size_in_bytes, packed_strides

Draft: TypeAlias = dict[str, Any]
Fault: TypeAlias = Callable[[st.DrawFn, Draft, Target], Draft | None]

_ALIGNMENTS: Final = (0, 16, 32, 256, 2**16, 2**31)
_WRONG_ALIGNMENTS: Final = st.integers(1, 15) | st.integers(8, UINT_MAX // 2).map(lambda n: 2 * n + 1)
_GAPS: Final = (0, 0, 1, 3)
"""The elements left free between one dimension and the next; 0 twice, so that half of them have none."""
_OPERANDS: Final = ("InputTensor", "OutputTensor")
_MAX_OVERLAPPING_STRIDE: Final = 12
_MAX_SLACK: Final = 32
"""The most by which a tensor's total is drawn larger than need be, in bytes."""

# Strategies are made once for each range and size: to make one takes longer than to draw from it.
_between: Final = lru_cache(maxsize=1024)(st.integers)
_bytes: Final = lru_cache(maxsize=64)(st.binary)


@st.composite
def drafts(draw: st.DrawFn, target: Target, max_elements: int) -> Draft:
    """A tile that passes at the target; its output has at most ``max_elements`` elements.

    What tests seldom depend on is chosen by the bytes of few draws, since each draw takes time.
    """
    ranks, types = _ranks_and_types(target)
    rank, data_type = draw(ranks), draw(types)
    sizes, repeats = _shapes(draw, rank, max_elements)
    products = list(map(mul, sizes, repeats))
    choose = _choices(draw, 8)
    strided, overlapping, owned = choose(2), choose(2), choose(2)
    input_strides = output_strides = None
    if strided:
        input_strides = _any_strides(draw, rank) if overlapping else _spread_strides(draw, sizes)
    if choose(2):
        output_strides = _spread_strides(draw, products)
    return {
        "InputTensor": _tensor(data_type, sizes, input_strides, TensorFlags(owned), choose),
        "OutputTensor": _tensor(data_type, products, output_strides, TensorFlags.NONE, choose),
        "RepeatsCount": rank,
        "Repeats": repeats,
    }


def _choices(draw: st.DrawFn, count: int) -> Callable[[int], int]:
    """Draw bytes, and return a function that uses one each to choose from range(n); the byte 0 gives 0.

    The bytes of a draw are all equally likely; of integers, hypothesis draws mostly small ones.
    """
    drawn = iter(draw(_bytes(min_size=count, max_size=count)))
    return lambda options: next(drawn) * options >> 8


@lru_cache(maxsize=64)
def _ranks_and_types(target: Target) -> tuple[st.SearchStrategy[int], st.SearchStrategy[TensorDataType]]:
    """Return strategies of what a target supports."""
    return st.sampled_from(sorted(target.tile_support.dimension_counts)), st.sampled_from(supported_types(target))


def supported_types(target: Target) -> list[TensorDataType]:
    """Return the data types in the target's row of the support table that its adapter takes."""
    return sorted(filter(target.supports_data_type, target.tile_support.data_types))


def _shapes(draw: st.DrawFn, rank: int, max_elements: int) -> tuple[list[int], list[int]]:
    """Return sizes and repeats, the larger the fewer there are; their product is at most ``max_elements``."""
    factors = []
    for remaining in range(2 * rank, 0, -1):
        fair_share = int(max_elements ** (1 / remaining))
        factors.append(draw(_between(1, min(max_elements, 1 + 2 * fair_share))))
        max_elements //= factors[-1]
    return factors[::2], factors[1::2]


def _any_strides(draw: st.DrawFn, rank: int) -> list[int]:
    """Return strides of an input, whose elements may overlap."""
    choose = _choices(draw, rank)
    return [choose(_MAX_OVERLAPPING_STRIDE + 1) for _ in range(rank)]


def _spread_strides(draw: st.DrawFn, sizes: Sequence[int]) -> list[int]:
    """Return strides for any order of the dimensions, each with some padding: elements never share an address."""
    choose = _choices(draw, 1 + 2 * len(sizes))
    strides = [0] * len(sizes)
    stride = 1 + choose(3)
    left = list(range(len(sizes)))
    while left:
        i = left.pop(choose(len(left)))
        strides[i] = stride
        stride = stride * sizes[i] + _GAPS[choose(len(_GAPS))]
    return strides


def _tensor(
    data_type: TensorDataType,
    sizes: Sequence[int],
    strides: Sequence[int] | None,
    flags: TensorFlags,
    choose: Callable[[int], int],
) -> Draft:
    minimum = minimum_size_in_bytes(ELEMENT_SIZES[data_type], sizes, strides)
    return {
        "DataType": data_type,
        "Flags": flags,
        "DimensionCount": len(sizes),
        "Sizes": sizes,
        "Strides": strides,
        "TotalTensorSizeInBytes": minimum + choose(_MAX_SLACK + 1),
        "GuaranteedBaseOffsetAlignment": _ALIGNMENTS[choose(len(_ALIGNMENTS))],
    }


@st.composite
def faulty_drafts(draw: st.DrawFn, target: Target, max_elements: int) -> Draft:
    """A tile with one fault: the drawn one, or the first after it for which the draft has room."""
    draft = draw(drafts(target, max_elements))
    first = draw(st.integers(0, len(FAULTS) - 1))
    drawn = (fault(draw, draft, target) for fault in FAULTS[first:])
    changes = next(changes for changes in drawn if changes is not None)
    return draft | {
        field: draft[field] | change if isinstance(change, dict) else change for field, change in changes.items()
    }


def _field(name: str, wrong: Callable[[st.DrawFn, Draft], Any]) -> Fault:
    """Return a fault: a wrong value of a field of either tensor."""

    def fault(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
        operand = draw(st.sampled_from(_OPERANDS))
        return {operand: {name: wrong(draw, draft[operand])}}

    return fault


def unsupported_data_type(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    supported = {TensorDataType.UNKNOWN, *supported_types(target)}
    data_type = draw(st.sampled_from([data_type for data_type in TensorDataType if data_type not in supported]))
    return {operand: _with_total(draft[operand], DataType=data_type) for operand in _OPERANDS}


def mismatched_data_type(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    given = draft["InputTensor"]["DataType"]
    other = draw(st.sampled_from([data_type for data_type in supported_types(target) if data_type != given]))
    return {"OutputTensor": _with_total(draft["OutputTensor"], DataType=other)}


def unsupported_dimension_count(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    counts = range(1, DML_TENSOR_DIMENSION_COUNT_MAX1 + 2)
    supported = target.tile_support.dimension_counts
    count = draw(st.sampled_from([count for count in counts if count not in supported]))
    tensors = {operand: _packed(draft[operand], _fitted(draft[operand]["Sizes"], count)) for operand in _OPERANDS}
    return tensors | {"RepeatsCount": count, "Repeats": _fitted(draft["Repeats"], count)}


def short_strides(draw: st.DrawFn, draft: Draft, target: Target) -> Draft | None:
    if draft["RepeatsCount"] < 2:
        return None  # empty strides are read as null
    operand = draw(st.sampled_from(_OPERANDS))
    return {operand: {"Strides": _strides(draft[operand])[:-1]}}


def mismatched_size(draw: st.DrawFn, draft: Draft, target: Target) -> Draft:
    output, i = draft["OutputTensor"], draw(_dimensions(draft["Repeats"]))
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


def colliding_output_strides(draw: st.DrawFn, draft: Draft, target: Target) -> Draft | None:
    """A step along a dimension reaches as far as some along another, or nowhere."""
    output = draft["OutputTensor"]
    walked, strides = _walked(output), _strides(output)
    if not walked:
        return None
    one, other = draw(st.sampled_from(walked)), draw(st.sampled_from(walked))
    steps = draw(st.integers(0, output["Sizes"][other] - 1)) if one != other else 0
    return {"OutputTensor": _with_total(output, Strides=_replaced(strides, one, steps * strides[other]))}


FAULTS: Final[tuple[Fault, ...]] = (
    _field("DataType", lambda draw, tensor: draw(st.just(0) | st.integers(14, UINT_MAX))),
    _field("Flags", lambda draw, tensor: draw(st.integers(2, UINT_MAX))),
    _field("DimensionCount", lambda draw, tensor: draw(st.just(0) | st.integers(9, UINT_MAX))),
    _field("Sizes", lambda draw, tensor: None),
    _field("GuaranteedBaseOffsetAlignment", lambda draw, tensor: draw(_WRONG_ALIGNMENTS)),
    _field("Type", lambda draw, tensor: draw(st.sampled_from([0, 2**31]) | st.integers(2, UINT_MAX))),
    _field("NullDesc", lambda draw, tensor: True),
    lambda draw, draft, target: {draw(st.sampled_from(_OPERANDS)): None},
    lambda draw, draft, target: {"OutputTensor": {"Flags": TensorFlags.OWNED_BY_DML}},
    unsupported_data_type,
    mismatched_data_type,
    unsupported_dimension_count,
    lambda draw, draft, target: {"OutputTensor": _packed(draft["OutputTensor"], [1, *draft["OutputTensor"]["Sizes"]])},
    unaddressable_extent,
    colliding_output_strides,
    short_strides,
    _field("Sizes", lambda draw, tensor: tensor["Sizes"][:-1]),
    lambda draw, draft, target: {"Repeats": draft["Repeats"][:-1]},
    _field("Sizes", lambda draw, tensor: _replaced(tensor["Sizes"], draw(_dimensions(tensor["Sizes"])), 0)),
    mismatched_size,
    too_many_elements,
    _field("TotalTensorSizeInBytes", lambda draw, tensor: draw(st.integers(0, _minimum(tensor) - 1))),
    _field("TotalTensorSizeInBytes", lambda draw, tensor: draw(st.integers(2**32 * 8, UINT64_MAX))),
    lambda draw, draft, target: {"RepeatsCount": (draft["RepeatsCount"] + draw(st.integers(1, UINT_MAX))) % 2**32},
    lambda draw, draft, target: {"Repeats": None},
    lambda draw, draft, target: {"Repeats": _replaced(draft["Repeats"], draw(_dimensions(draft["Repeats"])), 0)},
)


def _dimensions(values: Sequence[int]) -> st.SearchStrategy[int]:
    return st.integers(0, len(values) - 1)


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
