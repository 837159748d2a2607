"""Random tiles against one strided copy by NumPy.

The tensors are strided, permuted, padded, broadcast or reversed, lie at any address, and have guard bytes on all sides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul

import numpy as np
import pytest

from dml_tile.bindings.memory import Bytes
from dml_tile.execution.mover import BoundTile, Mover, mover_of
from dml_tile.execution.plan import MAX_SCRATCH_BYTES
from dml_tile.execution.steps import Plan
from tests.helpers.tilings import GUARD, Tiling, assert_equal, copied_at_once, set_sizes, span

MAX_ELEMENTS = 1000
LARGER = 2**17
SIZES = {
    "SHORT_RUN": [32, 512],
    "ASSIGNED_AT_ONCE": [16, 256],
    "MAX_SCRATCH_BYTES": [2**10, 2**19],
    "BLOCK_BYTES": [2**7, 2**12, 2**22],
    "BYTEWISE_RUN_BYTES": [64, 2**13],
    "THREADED_BYTES": [0, 2**12, 2**24],
}
"""Constants of plans, by which tiles of any size take the ways of all others."""


def drawn_lengths(random: np.random.Generator, least: int, most: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and repeats of 0 to 5 dimensions, of so many elements."""
    while True:
        rank = int(random.integers(0, 6))
        sizes = random.choice([1, 1, 2, 3, 4, 7, 40, 100], rank).tolist()
        repeats = random.choice([1, 1, 2, 2, 3, 5, 60, 100], rank).tolist()
        if least <= math.prod(sizes) * math.prod(repeats) <= most:
            return tuple(sizes), tuple(repeats)


def drawn_strides(random: np.random.Generator, lengths: Sequence[int], size: int, *, is_input: bool) -> tuple[int, ...]:
    """In bytes: packed or in any order, with or without gaps, reversed, and for an input broadcast."""
    is_packed = random.random() < 0.4
    order = range(len(lengths)) if is_packed else random.permutation(len(lengths)).tolist()
    strides, reach = [0] * len(lengths), size
    for i in reversed(order):
        strides[i] = reach
        reach = reach * lengths[i] + (0 if is_packed else int(random.choice([0, 0, 1, size, 3 * size])))
    signs = random.choice([1, 1, 1, 1, -1] + [0] * is_input, len(lengths)).tolist()
    return tuple(strides if is_packed else map(mul, strides, signs))


def drawn_tiling(random: np.random.Generator, least: int = 1, most: int = MAX_ELEMENTS) -> Tiling:
    size = int(random.choice([1, 2, 4, 8]))
    sizes, repeats = drawn_lengths(random, least, most)
    shape = tuple(map(mul, sizes, repeats))
    source = drawn_strides(random, sizes, size, is_input=True)
    return Tiling(size, sizes, repeats, source, drawn_strides(random, shape, size, is_input=False))


def compare(tiling: Tiling, random: np.random.Generator, number: int) -> None:
    """Raise AssertionError unless all ways write what the copy does, and nothing else: once, bound, and as arrays."""
    sources, outputs = tiling.strides
    before, length = span(tiling.size, tiling.sizes, sources)
    start, reach = span(tiling.size, tiling.shape, outputs)
    first, lowest = (GUARD + int(random.integers(0, 16)) for _ in range(2))
    source = random.integers(0, 256, length + 3 * GUARD, np.uint8)
    guarded = np.full(reach + 3 * GUARD, 0xAB, np.uint8)
    expected = guarded.copy()
    copied_at_once(tiling, source, first + before, expected, lowest + start)
    plan, dtype = tiling.plan, np.dtype(f"u{tiling.size}")

    def tile(plan: Plan, source: Bytes, output: Bytes) -> None:
        array = np.ndarray(tiling.sizes, dtype, source, before, sources)
        out = np.ndarray(tiling.shape, dtype, output, start, outputs)
        mover_of.__wrapped__(tiling.size, tiling.sizes, tiling.repeats, sources, outputs).tile(array, out)

    for move in (lambda plan, *where: Mover(plan).write(*where), tile, lambda *where: BoundTile(*where).run(number)):
        output = guarded.copy()
        move(plan, source[first:], output[lowest:])
        assert np.array_equal(output, expected), tiling


@pytest.mark.parametrize("seed", range(4))
def test_each_element_is_where_one_copy_puts_it(seed: int) -> None:
    random = np.random.default_rng(seed)
    for i in range(500):
        with pytest.MonkeyPatch.context() as patch:
            if i % 2:  # sizes that make small tiles take large ones' ways
                short, threaded = int(random.choice([16, 32])), int(random.choice([0, 2**24]))
                set_sizes(patch, SHORT_RUN=short, ASSIGNED_AT_ONCE=16, MAX_SCRATCH_BYTES=128)
                set_sizes(patch, BLOCK_BYTES=64, BYTEWISE_RUN_BYTES=64, THREADED_BYTES=threaded)
            compare(drawn_tiling(random), random, 1 + i % 3)


@pytest.mark.parametrize("seed", range(150))
def test_larger_tiles_are_what_one_copy_writes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(seed)
    tiling = drawn_tiling(random, MAX_ELEMENTS, LARGER)
    assert tiling.plan.scratch <= MAX_SCRATCH_BYTES
    assert_equal(tiling)
    set_sizes(monkeypatch, **{name: int(random.choice(sizes)) for name, sizes in SIZES.items()})
    assert tiling.plan.size == math.prod(tiling.shape) * tiling.size
    assert_equal(tiling, int(random.choice([1, 2, 8])))
