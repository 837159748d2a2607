"""Random tiles of all types and layouts at all targets: lowered, they write the same bytes; or nothing could."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dml_tile.checking import check
from dml_tile.descriptors.tile import TileOperatorDesc, described
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.geometry.axes import Axis, TileInBytes, dimensions_of
from dml_tile.lowering.chains import can_be_chained, shortest_chain
from dml_tile.lowering.lower import carriers, lower
from tests.helpers.descriptors import at
from tests.helpers.drafts import drafts
from tests.helpers.strided_tiles import assert_same_bytes, compare, moves_whole_elements

Addresses = NDArray[np.int64]


def fewest_steps(axes: tuple[Axis, ...], most: int) -> tuple[int, int] | None:
    """Returns how many tiles of at most ``most`` dimensions do it, and their packed scratch memory; or None.

    Each way is tried to see what is written as sizes and repeats; what a step reads is packed, but for the first.
    """
    read, written = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for axis in axes:
        read = np.add.outer(read, axis.source * np.arange(axis.length)).ravel()
        written = np.add.outer(written, axis.destination * np.arange(axis.length)).ravel()
    wanted = {read.tobytes(): 0}
    seen: set[bytes] = set()
    for steps in range(1, 12):
        least: dict[bytes, int] = {}
        finished: list[int] = []
        for contents, scratch in wanted.items():
            needed = np.frombuffer(contents, np.int64)
            places = written if steps == 1 else np.arange(len(needed))
            for source in _sources(needed, places, most):
                if _is_regular(source) and source.flat[0] == 0:
                    finished.append(scratch)
                key = source.tobytes()
                if key not in seen:
                    least[key] = min(least.get(key, scratch + source.size), scratch + source.size)
        if finished:
            return steps, min(finished)
        seen |= least.keys()
        wanted = least
    return None


def _sources(needed: Addresses, places: Addresses, most: int) -> Iterator[Addresses]:
    """All that one tile could read, in its dimensions, to write ``needed`` at these places."""
    for sizes, repeats in _factorings(len(needed), most):
        if not _is_regular(places.reshape(np.multiply(sizes, repeats))):
            continue
        split = needed.reshape([factor for pair in zip(repeats, sizes, strict=True) for factor in pair])
        first = split[tuple(slice(None) if i % 2 else slice(1) for i in range(2 * len(sizes)))]
        if (split == first).all():
            yield first.reshape(sizes)


def _is_regular(addresses: Addresses) -> bool:
    """Tells whether each dimension has a stride."""
    return all(
        np.unique(np.diff(addresses, axis=i)).size <= 1 and (np.diff(addresses, axis=i) >= 0).all()
        for i in range(addresses.ndim)
    )


@cache
def _factorings(count: int, dimensions: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All sizes and repeats of exactly so many dimensions, some of size 1, with ``count`` elements."""
    if dimensions == 0:
        return [((), ())] if count == 1 else []
    return [
        ((size, *sizes), (repeat, *repeats))
        for size in range(1, count + 1)
        if count % size == 0
        for repeat in range(1, count // size + 1)
        if count // size % repeat == 0
        for sizes, repeats in _factorings(count // size // repeat, dimensions - 1)
    ]


# Random tiles


TARGETS: Final = [
    *(Target.parse(level) for level in ("1_0", "2_1", "3_1", "4_0", "4_1", "6_4")),
    at("2_1", typed_uav_loads=False),
    at("5_2", typed_uav_loads=False, double_precision=False),
    at("6_4", typed_uav_loads=False, native_16_bit_ops=False),
]
INT64, FLOAT64 = 11, 9


@st.composite
def tiles(draw: st.DrawFn) -> TileOperatorDesc:
    """Tiles that run at 6_4 by the runtime: FLOAT64 too, packed or not."""
    draft = draw(drafts(Target.parse("6_4"), 1024))
    tensors = draft["InputTensor"], draft["OutputTensor"]
    if draft["InputTensor"]["DataType"] == INT64 and draw(st.booleans()):
        for tensor in tensors:
            tensor["DataType"] = FLOAT64
    if draw(st.booleans()):
        for tensor in tensors:
            del tensor["Strides"], tensor["TotalTensorSizeInBytes"]
    return TileOperatorDesc.model_validate(draft)


@pytest.mark.long
@given(tiles(), st.sampled_from(TARGETS), st.sampled_from([True, True, True, False]))
def test_a_lowering_if_any_writes_the_same_bytes(desc: TileOperatorDesc, target: Target, allow_floats: bool) -> None:
    source, destination = described(desc)
    try:
        lowering = lower(desc, target, allow_float_reinterpretation=allow_floats)
    except DmlError as error:
        assert check(desc, target)
        own = TensorDataType(source.data_type)
        types = carriers(ELEMENT_SIZES[own], own, target, allow_floats=allow_floats)
        (rule,) = {finding.rule for finding in error.findings}
        if rule == "DML-LOWER-DataType":
            assert not allow_floats
            assert not types
        elif rule == "DML-LOWER-elements":
            assert not moves_whole_elements(desc, min(ELEMENT_SIZES[data_type] for data_type in types))
        else:
            assert rule == "DML-LOWER-steps"
            assert source.strides or destination.strides
        return
    assert max(lowering.scratch_sizes, default=0) <= destination.total_tensor_size_in_bytes
    assert lowering.is_original == (not check(desc, target))
    assert_same_bytes(desc, lowering, np.random.default_rng(7))


@st.composite
def small_axes(draw: st.DrawFn) -> tuple[Axis, ...]:
    """Draw the axes of a small tile, with gaps in the input and the output."""
    rank = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(1, 2), min_size=rank, max_size=rank))
    repeats = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    assume(np.prod(sizes) * np.prod(repeats) <= 144)
    gaps = draw(st.lists(st.sampled_from([0, 0, 0, 1]), min_size=2 * rank, max_size=2 * rank))
    source_strides, destination_strides = [0] * rank, [0] * rank
    source = destination = 1
    for i in reversed(range(rank)):
        source_strides[i], destination_strides[i] = source, destination
        source = source * sizes[i] + gaps[2 * i]
        destination = destination * sizes[i] * repeats[i] + gaps[2 * i + 1]
    if draw(st.booleans()):
        source_strides = draw(st.permutations(source_strides))
    return TileInBytes.from_elements(1, sizes, repeats, source_strides, destination_strides).axes


@pytest.mark.long
@given(small_axes(), st.integers(2, 3))
def test_no_chain_is_shorter_nor_has_less_scratch_memory(axes: tuple[Axis, ...], most: int) -> None:
    expected = fewest_steps(axes, most)
    assert can_be_chained(axes, most) == (expected is not None)
    if expected:
        chain = shortest_chain(axes, most)
        dimensions = [dimensions_of(step) for step in chain]
        assert all(len(step) <= most for step in dimensions)
        scratch = [np.prod([each.size * each.repeat for each in step]) for step in dimensions[:-1]]
        assert (len(chain), sum(scratch)) == expected


def test_random_strided_tiles_write_the_same_bytes() -> None:
    lowered = compare(100, seed=5)
    assert lowered[1]
    assert lowered[2]
