"""Drafts of valid tiles: the fields of a DML_TILE_OPERATOR_DESC in C names, before they are made one.

Sizes and strides are in elements. Every draw is built, none is filtered, so that hypothesis shrinks well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from typing import Any, Final, NamedTuple, TypeAlias

from hypothesis import strategies as st

from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import TensorFlags
from dml_tile.directml.targets import Target
from dml_tile.geometry.layout import minimum_size_in_bytes
from dml_tile.simulation.target import resolve

Draft: TypeAlias = dict[str, Any]

_ALIGNMENTS: Final = (0, 16, 32, 256, 2**16, 2**31)
_GAPS: Final = (0, 0, 1, 3)
"""The elements left free between one dimension and the next; 0 twice, so that half of them have none."""
_MAX_OVERLAPPING_STRIDE: Final = 12
_MAX_SLACK: Final = 32
"""The most by which a tensor's total is drawn larger than need be, in bytes."""

_between: Final = lru_cache(maxsize=1024)(st.integers)
"""A strategy of integers, made once for each range: to make one takes longer than to draw from it."""


class Limits(NamedTuple):
    """The data types and dimension counts to draw; none stands for all that the target supports."""

    data_types: tuple[int, ...] = ()
    dimension_counts: tuple[int, ...] = ()

    def __str__(self) -> str:
        types = " or ".join(TensorDataType(kind).name for kind in self.data_types) or "any data type"
        return f"{types} with {' or '.join(map(str, self.dimension_counts)) or 'any number of'} dimensions"


@st.composite
def drafts(draw: st.DrawFn, target: Target | None, max_elements: int, limits: Limits = Limits()) -> Draft:  # noqa: B008
    """A tile that passes at the target; its output has at most ``max_elements`` elements.

    What tests seldom depend on is chosen by the bytes of few draws, since each draw takes time.
    """
    target = resolve(target)
    ranks, types = _ranks_and_types(target, limits)
    rank, data_type = draw(ranks), draw(types)
    sizes, repeats = _shapes(draw, rank, max_elements)
    products = list(map(mul, sizes, repeats))
    details = draw(_choices(8))
    strided, overlapping, owned = details.take(2), details.take(2), details.take(2)
    input_strides = output_strides = None
    if strided:
        input_strides = _any_strides(draw, rank) if overlapping else _spread_strides(draw, sizes)
    if details.take(2):
        output_strides = _spread_strides(draw, products)
    return {
        "InputTensor": _tensor(data_type, sizes, input_strides, TensorFlags(owned), details),
        "OutputTensor": _tensor(data_type, products, output_strides, TensorFlags.NONE, details),
        "RepeatsCount": rank,
        "Repeats": repeats,
    }


class _Choices:
    """Drawn bytes, each of which makes one choice; the simplest byte, 0, chooses 0.

    The bytes of a draw are all equally likely; of integers, hypothesis draws mostly small ones.
    """

    def __init__(self, drawn: bytes) -> None:
        self._bytes = iter(drawn)

    def take(self, count: int) -> int:
        """Return the next choice of 0 to ``count`` - 1."""
        return next(self._bytes) * count >> 8


@lru_cache(maxsize=64)
def _choices(count: int) -> st.SearchStrategy[_Choices]:
    return st.binary(min_size=count, max_size=count).map(_Choices)


@lru_cache(maxsize=64)
def _ranks_and_types(
    target: Target, limits: Limits
) -> tuple[st.SearchStrategy[int], st.SearchStrategy[TensorDataType]]:
    """Return strategies of what a target supports within limits. Raises ValueError if there is nothing."""
    counts = [count for count in target.tile_support.dimension_counts if count in (limits.dimension_counts or [count])]
    types = [kind for kind in data_types(target) if kind in (limits.data_types or [kind])]
    if not counts or not types:
        raise ValueError(f"no tile of {limits} passes at {target.label}")
    return st.sampled_from(counts), st.sampled_from(types)


def data_types(target: Target) -> list[TensorDataType]:
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
    choices = draw(_choices(rank))
    return [choices.take(_MAX_OVERLAPPING_STRIDE + 1) for _ in range(rank)]


def _spread_strides(draw: st.DrawFn, sizes: Sequence[int]) -> list[int]:
    """Return strides for any order of the dimensions, each with some padding: elements never share an address."""
    choices = draw(_choices(1 + 2 * len(sizes)))
    strides = [0] * len(sizes)
    stride = 1 + choices.take(3)
    left = list(range(len(sizes)))
    while left:
        i = left.pop(choices.take(len(left)))
        strides[i] = stride
        stride = stride * sizes[i] + _GAPS[choices.take(len(_GAPS))]
    return strides


def _tensor(
    data_type: TensorDataType,
    sizes: Sequence[int],
    strides: Sequence[int] | None,
    flags: TensorFlags,
    details: _Choices,
) -> Draft:
    minimum = minimum_size_in_bytes(ELEMENT_SIZES[data_type], sizes, strides)
    return {
        "DataType": data_type,
        "Flags": flags,
        "DimensionCount": len(sizes),
        "Sizes": sizes,
        "Strides": strides,
        "TotalTensorSizeInBytes": minimum + details.take(_MAX_SLACK + 1),
        "GuaranteedBaseOffsetAlignment": _ALIGNMENTS[details.take(len(_ALIGNMENTS))],
    }
