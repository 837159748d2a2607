"""Strides, extents and sizes, true ones and Microsoft's, and the coalesced form of a tile."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import UINT_MAX
from dml_tile.geometry import layout
from dml_tile.geometry.layout import (
    calc_buffer_tensor_size,
    minimum_size_in_bytes,
    packed_strides,
    shares_addresses,
    wrapping_size_in_bytes,
)
from tests.helpers.costs import at_most

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=5)


@given(SHAPES | st.just([]))
def test_packed_strides_are_numpy_s(sizes: list[int]) -> None:
    assert packed_strides(sizes) == tuple(stride // 4 for stride in np.empty(sizes, np.float32).strides)


@pytest.mark.parametrize(
    ("data_type", "sizes", "strides", "expected"),
    [
        (TensorDataType.FLOAT32, [1, 1, 2, 3], None, 24),
        (TensorDataType.FLOAT16, [3], None, 8),
        (TensorDataType.FLOAT32, [3, 1, 1, 1], [UINT_MAX, 1, 1, 1], 17_179_869_180),
        (TensorDataType.FLOAT32, [2**16] * 4, None, 0),
        (TensorDataType.UINT8, [UINT_MAX, UINT_MAX], None, (UINT_MAX**2 + 3) // 4 * 4),
        (TensorDataType.FLOAT32, [0, 2], [1, 1], 4),
        (TensorDataType.UINT8, [2**32 - 1, 2**32 - 1, 3], None, 3 * (UINT_MAX**2) % 2**64 // 4 * 4 + 4),
        (TensorDataType.UNKNOWN, [2], None, 0),
        (TensorDataType.UINT4, [2], None, 0),
        (99, [2], None, 0),
        (TensorDataType.INT8, [*np.array([2**16, 2**16])], None, 2**32),
    ],
)
def test_sizes_wrap_as_microsoft_s(data_type: int, sizes: list[int], strides: list[int] | None, expected: int) -> None:
    assert calc_buffer_tensor_size(data_type, sizes, strides) == expected


@given(st.lists(st.integers(0, UINT_MAX), min_size=1, max_size=12))
def test_a_packed_product_wraps_at_64_bits(sizes: list[int]) -> None:
    exact = math.prod(sizes) * 2 % 2**64
    assert calc_buffer_tensor_size(TensorDataType.INT16, sizes, None) == (exact + 3) // 4 * 4 % 2**64


def test_a_long_product_wraps_as_it_grows() -> None:
    """Until it did, a million sizes took minutes: the product had as many digits."""
    sizes = [7] * 300_000
    with at_most(50_000):  # of all threads; the whole product has 105,000 bytes
        size = wrapping_size_in_bytes(4, sizes, None)
    assert size == pow(7, 300_000, 2**64) * 4 % 2**64 == calc_buffer_tensor_size(TensorDataType.FLOAT32, sizes, None)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("float32", [2], None), TypeError, "DataType: 'float32' is a name; write TensorDataType.FLOAT32"),
        (("DML_TENSOR_DATA_TYPE_UINT8", [2], None), TypeError, "is a name; write TensorDataType.UINT8"),
        (("float", [2], None), TypeError, "DataType: 'float' is a name; write its value"),
        ((1.0, [2], None), TypeError, "DataType is 1.0; an integer from 0 to"),
        ((1, [2, 3.0], None), TypeError, r"Sizes\[1\] is 3.0; an integer from 0 to"),
        ((1, [2.5], None), TypeError, r"Sizes\[0\] is 2.5; an integer from 0 to 4294967295 was expected"),
        ((1, [True], None), TypeError, r"Sizes\[0\] is True; an integer from 0 to"),
        ((1, [-1], None), ValueError, r"Sizes\[0\] is -1; an integer from 0 to 4294967295 was expected"),
        ((1, "23", None), TypeError, "Sizes: '23' was provided; write a list of integers"),
        ((1, {2, 3}, None), TypeError, "Sizes: {2, 3} was provided; write a list of integers"),
        ((1, [2, 3], [1]), ValueError, "Strides: 1 were provided for 2 Sizes; write as many"),
        ((1, [2, 3], [3, "1"]), TypeError, r"Strides\[1\] is '1'; an integer from 0 to"),
        ((1, [2, 3], [2**32, 1]), ValueError, r"Strides\[0\] is 4294967296; an integer from 0 to"),
    ],
)
def test_the_helper_tells_the_field_and_what_to_write(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        calc_buffer_tensor_size(*arguments)


@given(SHAPES.flatmap(lambda sizes: st.tuples(st.just(sizes), st.lists(st.integers(0, 30), min_size=len(sizes)))))
def test_without_wrapping_the_helper_gives_the_true_minimum(shape: tuple[list[int], list[int]]) -> None:
    sizes = shape[0]
    for strides in (None, packed_strides(sizes), shape[1][: len(sizes)]):
        assert calc_buffer_tensor_size(TensorDataType.INT16, sizes, strides) == minimum_size_in_bytes(2, sizes, strides)
    assert minimum_size_in_bytes(4, [3, 1], [UINT_MAX, 1]) == 34_359_738_364, "it does not wrap"


def brute_force(sizes: list[int], strides: list[int]) -> bool:
    """Tells whether two of all the indices have the same address."""
    addresses = [
        sum(index * stride for index, stride in zip(indices, strides, strict=True))
        for indices in itertools.product(*map(range, sizes))
    ]
    return len(set(addresses)) < len(addresses)


@given(
    st.integers(1, 4).flatmap(
        lambda rank: st.tuples(
            st.lists(st.integers(1, 5), min_size=rank, max_size=rank),
            st.lists(st.integers(0, 25), min_size=rank, max_size=rank),
        )
    )
)
@pytest.mark.parametrize("few", [0, 4096])
def test_shared_addresses_are_found_exactly(few: int, shape: tuple[list[int], list[int]]) -> None:
    sizes, strides = shape
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "_FEW", few)
        layout._differences_make_up_steps.cache_clear()
        assert shares_addresses(sizes, strides) == brute_force(sizes, strides)


@pytest.mark.parametrize(
    ("sizes", "strides", "shared"),
    [
        ([2, 4], [6, 2], True),
        ([3, 3], [2, 3], False),
        ([1, 4], [0, 1], False),
        ([4096, 4096], [4096, 1], False),
        ([4096, 4096], [1, 4096], False),
        ([4096, 4096], [4095, 1], True),
        ([UINT_MAX, UINT_MAX], [0, 1], True),
        # equal strides alone
        ([4096, 4096], [8192, 8192], True),
        # two dimensions that do not nest are decided by arithmetic, however large
        ([2**12, 2**12], [2**20, 2**20 + 1], False),
        ([2**21, 2**21], [2**20, 2**20 + 1], True),
        ([2**20, 2**20 + 1], [2**20 + 1, 2**20], False),
        ([2**20 + 1, 2**20 + 2], [2**20 + 1, 2**20], True),
        # the inner two reach less than the common divisor of the outer two, which do not nest
        ([2**12, 2**12, 3, 3], [3 * 2**20, 2 * 2**20, 3, 2], True),
        ([2, 3, 3, 3], [3 * 2**20, 2 * 2**20, 3, 2], False),
        # does not nest, and is too large to be enumerated
        ([2**8, 2**8, 2**8], [2**30, 2**30 + 1, 2**31 + 1], None),
        # the outer dimension nests, so only the inner two are enumerated
        ([2**20, 3, 3], [2**12, 2, 3], False),
    ],
)
def test_large_layouts_are_judged_without_enumeration(
    sizes: list[int], strides: list[int], shared: bool | None
) -> None:
    assert shares_addresses(sizes, strides) is shared


@pytest.mark.parametrize(("limit", "shared"), [(9, False), (8, None)])
def test_differences_are_looked_at_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, limit: int, shared: bool | None
) -> None:
    monkeypatch.setattr(layout, "MAX_DIFFERENCES", limit)
    layout._differences_make_up_steps.cache_clear()
    assert shares_addresses([2, 2, 2], [3, 5, 7]) is shared, "they are distinct, but not nested"
