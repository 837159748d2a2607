"""Random tiles against one strided copy, byte for byte, guards and what lies between the elements included."""

from __future__ import annotations

import math
from itertools import accumulate
from operator import mul

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dml_tile.execution.plan import MEMORY
from tests.helpers.tilings import Tiling, assert_equal, set_sizes

SIZES = {
    "SHORT": [32, 512],
    "FEW": [16, 256],
    "LOOP": [4, 16],
    "PASSES": [1, 8, 16],
    "MEMORY": [2**10, 2**19],
    "BLOCK": [2**7, 2**12, 2**22],
    "HUGE": [64, 2**13],
    "LARGE": [0, 2**12, 2**24],
}
MAX_BYTES = 2**20


@st.composite
def strides(draw: st.DrawFn, shape: tuple[int, ...], size: int, *, is_input: bool) -> tuple[int, ...]:
    """Packed, in another order, padded or reversed; an input's also broadcast."""
    order = draw(st.one_of(st.just(range(len(shape))), st.permutations(range(len(shape)))))
    padded = draw(st.booleans())
    found, reach = [0] * len(shape), draw(st.integers(1, 3)) if padded else 1
    for dimension in reversed(order):
        found[dimension] = reach * size
        reach = reach * shape[dimension] + (draw(st.sampled_from([0, 0, 1, 5])) if padded else 0)
    if draw(st.integers(0, 4)) == 0:
        found = [draw(st.sampled_from([stride, -stride] + [0] * is_input)) for stride in found]
    return tuple(found)


@st.composite
def tilings(draw: st.DrawFn) -> Tiling:
    size = draw(st.sampled_from([1, 2, 4, 8]))
    pairs = draw(
        st.lists(
            st.tuples(
                st.sampled_from([1, 1, 2, 3, 4, 5, 7, 16, 40, 100]),
                st.sampled_from([1, 1, 2, 2, 3, 4, 6, 8, 16, 64, 100]),
            ),
            min_size=1,
            max_size=6,
        )
    )
    kept = sum(product <= MAX_BYTES // size for product in accumulate((a * b for a, b in pairs), mul))
    sizes, repeats = zip(*pairs[: max(kept, 1)], strict=True)
    source = draw(strides(sizes, size, is_input=True))
    return Tiling(size, sizes, repeats, source, draw(strides(tuple(map(mul, sizes, repeats)), size, is_input=False)))


@given(tiling=tilings(), data=st.data(), number=st.sampled_from([1, 2, 8]))
@settings(max_examples=400)
def test_random_moves_write_what_one_copy_would(tiling: Tiling, data: st.DataObject, number: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        set_sizes(patch, **{name: data.draw(st.sampled_from(sizes)) for name, sizes in SIZES.items()})
        assert tiling.plan.size == math.prod(tiling.shape) * tiling.size
        assert_equal(tiling, number)


@given(tilings())
@settings(max_examples=200)
def test_moves_by_the_true_sizes_are_right_and_take_little_scratch_memory(tiling: Tiling) -> None:
    assert tiling.plan.scratch <= MEMORY
    assert_equal(tiling)
