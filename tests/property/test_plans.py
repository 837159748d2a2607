"""Random plans against one strided copy, byte for byte, guards and what lies between the elements included."""

from __future__ import annotations

import math
from itertools import accumulate
from operator import mul
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile.execution import moves, planner, threads
from tests.helpers.tilings import Tiling, assert_equal

CONSTANTS: list[tuple[tuple[Any, ...], dict[str, list[Any]]]] = [
    ((moves, planner), {"SHORT": [32, 512], "FEW": [16, 256]}),
    ((moves,), {"PASSES": [1, 8, 16]}),
    (
        (planner,),
        {"SCRATCH": [64, 1024, 2**18], "BLOCK": [128, 4096, 2**20], "LARGE": [0, 2**24], "_LONG": [64, 2**16]},
    ),
    ((threads,), {"LARGE": [0, 4096, 2**24]}),
]
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
def test_a_random_plan_writes_what_one_copy_would(tiling: Tiling, data: st.DataObject, number: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for modules, constants in CONSTANTS:
            for name, values in constants.items():
                value = data.draw(st.sampled_from(values))
                for module in modules:
                    patch.setattr(module, name, value)
        planned = tiling.planned_anew()
        assert planned.size == math.prod(tiling.shape) * tiling.size
        assert_equal(tiling, planned, number)


@given(tilings())
def test_a_plan_by_the_true_constants_is_right_and_takes_little_scratch(tiling: Tiling) -> None:
    assert tiling.plan.scratch[-1] <= 2**20
    assert_equal(tiling, tiling.plan)
