"""Drafts of valid tiles: the fields of a DML_TILE_OPERATOR_DESC in C names, before they are made one.

Sizes and strides are in elements. Every draw is built, none is filtered, so that hypothesis shrinks well.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from dml_tile.enums import TensorDataType, TensorFlags
from dml_tile.geometry.layout import ELEMENT_SIZES, minimum_size_in_bytes
from dml_tile.simulation import resolve
from dml_tile.targets import Target

Draft: TypeAlias = dict[str, Any]

_ALIGNMENTS: Final = st.sampled_from([0, 16, 32, 256, 2**16, 2**31])
_INPUT_FLAGS: Final = st.sampled_from([TensorFlags.NONE, TensorFlags.OWNED_BY_DML])


@st.composite
def drafts(draw: st.DrawFn, target: Target | None, max_elements: int) -> Draft:
    """A tile that passes at the target; its output has at most ``max_elements`` elements."""
    target = resolve(target)
    rank = draw(st.sampled_from(target.tile_support.dimension_counts))
    data_type = draw(st.sampled_from(data_types(target)))
    sizes, repeats = draw(_shapes(rank, max_elements))
    products = list(map(mul, sizes, repeats))
    any_strides = st.lists(st.integers(0, 12), min_size=rank, max_size=rank)  # an input's elements may overlap
    input_strides = draw(st.none() | _spread_strides(sizes) | any_strides)
    output_strides = draw(st.none() | _spread_strides(products))
    return {
        "InputTensor": draw(_tensors(data_type, sizes, input_strides, _INPUT_FLAGS)),
        "OutputTensor": draw(_tensors(data_type, products, output_strides, st.just(TensorFlags.NONE))),
        "RepeatsCount": rank,
        "Repeats": repeats,
    }


def data_types(target: Target) -> list[TensorDataType]:
    """The data types in the target's row of the support table that its adapter takes."""
    return sorted(filter(target.supports_data_type, target.tile_support.data_types))


@st.composite
def _shapes(draw: st.DrawFn, rank: int, max_elements: int) -> tuple[list[int], list[int]]:
    """Sizes and repeats, the larger the fewer there are; their product is at most ``max_elements``."""
    factors = []
    for remaining in range(2 * rank, 0, -1):
        fair_share = int(max_elements ** (1 / remaining))
        factors.append(draw(st.integers(1, min(max_elements, 1 + 2 * fair_share))))
        max_elements //= factors[-1]
    return factors[::2], factors[1::2]


@st.composite
def _spread_strides(draw: st.DrawFn, sizes: Sequence[int]) -> list[int]:
    """Strides for any order of the dimensions, each with some padding: elements never share an address."""
    strides = [0] * len(sizes)
    stride = draw(st.integers(1, 3))
    for i in draw(st.permutations(range(len(sizes)))):
        strides[i] = stride
        stride = stride * sizes[i] + draw(st.sampled_from([0, 0, 1, 3]))
    return strides


@st.composite
def _tensors(
    draw: st.DrawFn,
    data_type: TensorDataType,
    sizes: Sequence[int],
    strides: Sequence[int] | None,
    flags: st.SearchStrategy[TensorFlags],
) -> Draft:
    minimum = minimum_size_in_bytes(ELEMENT_SIZES[data_type], sizes, strides)
    return {
        "DataType": data_type,
        "Flags": draw(flags),
        "DimensionCount": len(sizes),
        "Sizes": sizes,
        "Strides": strides,
        "TotalTensorSizeInBytes": minimum + draw(st.integers(0, 32)),
        "GuaranteedBaseOffsetAlignment": draw(_ALIGNMENTS),
    }
