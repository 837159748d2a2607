"""Random tiles of every layout, against numpy.tile, with guard bytes on all sides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dml_tile.arrays import tile
from dml_tile.bindings.memory import tensor_view
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.dtypes import ARRAY_TYPES, DTYPES
from dml_tile.execution.executor import execute
from dml_tile.findings import Against
from dml_tile.geometry.layout import packed_strides, round_up_4
from dml_tile.rules.check import check

GUARD = 0xA5
FLOAT64 = 9


@dataclass(frozen=True)
class Case:
    """A descriptor, its input's values, and where its elements lie."""

    desc: TileOperatorDesc
    values: NDArray[Any]
    input_strides: tuple[int, ...]
    output_strides: tuple[int, ...]


@st.composite
def shapes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Sizes and repeats of 1 to 8 dimensions, of up to some ten thousand elements."""
    rank = draw(st.integers(1, 8))
    limit = {1: 40, 2: 12, 3: 6, 4: 4}.get(rank, 3)
    sizes = draw(st.lists(st.integers(1, limit), min_size=rank, max_size=rank))
    repeats = draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=rank, max_size=rank))
    return sizes, repeats


@st.composite
def spread_strides(draw: st.DrawFn, sizes: list[int]) -> tuple[int, ...]:
    """Strides of any order of the dimensions, each with some padding: elements never share an address."""
    strides = [0] * len(sizes)
    stride = draw(st.integers(1, 3))
    for i in draw(st.permutations(range(len(sizes)))):
        strides[i] = stride
        stride = stride * sizes[i] + draw(st.sampled_from([0, 0, 1, 3]))
    return tuple(strides)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    sizes, repeats = draw(shapes())
    products = [size * repeat for size, repeat in zip(sizes, repeats, strict=True)]
    input_strides = draw(st.none() | spread_strides(sizes))
    if input_strides and draw(st.booleans()):  # broadcast some dimensions
        input_strides = tuple(stride * draw(st.sampled_from([0, 1])) for stride in input_strides)
    output_strides = draw(st.none() | spread_strides(products))
    desc = TileOperatorDesc.from_input(
        data_type=draw(st.sampled_from(list(DTYPES))),
        sizes=sizes,
        repeats=repeats,
        strides=input_strides,
        output_strides=output_strides,
    )
    values = np.random.default_rng(draw(st.integers(0, 9))).integers(0, 256, _bytes_of(desc), np.uint8)
    return Case(desc, values, input_strides or packed_strides(sizes), output_strides or packed_strides(products))


def _bytes_of(desc: TileOperatorDesc) -> int:
    assert desc.input_tensor is not None
    assert desc.input_tensor.desc is not None
    return desc.input_tensor.desc.total_tensor_size_in_bytes


@given(cases())
def test_a_tile_is_numpy_s_and_touches_nothing_else(case: Case) -> None:
    source, destination = case.desc.input_tensor, case.desc.output_tensor
    assert source is not None
    assert source.desc is not None
    assert destination is not None
    assert destination.desc is not None
    data_type = source.desc.data_type
    against: Against = "runtime" if data_type == FLOAT64 else "both"  # it is in no documented row
    assert not check(case.desc, against=against)
    total = destination.desc.total_tensor_size_in_bytes
    memory = np.full(total + 32, GUARD, np.uint8)
    given_input = case.values.copy()
    execute(case.desc, case.values, memory[16:], against=against)

    kind = DTYPES[data_type].itemsize
    bits: Any = {1: 5, 2: 4, 4: 3, 8: 10}[kind]  # the unsigned type of as many bytes
    elements = tensor_view(given_input, bits, source.desc.sizes or (), case.input_strides)
    expected = np.full(total + 32, GUARD, np.uint8)
    tensor_view(expected[16:], bits, destination.desc.sizes or (), case.output_strides)[...] = np.tile(
        elements, case.desc.repeats or ()
    )
    assert memory.tobytes() == expected.tobytes()
    assert case.values.tobytes() == given_input.tobytes()


@given(shapes(), st.sampled_from([name for name in ARRAY_TYPES if name != "float64"]), st.data())
def test_tile_is_numpy_tile_for_arrays_of_any_strides(
    shape: tuple[list[int], list[int]], dtype: str, data: st.DataObject
) -> None:
    sizes, repeats = shape
    size = math.prod(sizes) * np.dtype(dtype).itemsize
    array = np.random.default_rng(size).integers(0, 2 if dtype == "bool" else 120, size, np.uint8)
    array = array.view(dtype).reshape(sizes).transpose(data.draw(st.permutations(range(len(sizes)))))
    steps = data.draw(st.lists(st.sampled_from([1, -1, 2]), min_size=len(sizes), max_size=len(sizes)))
    array = array[tuple(slice(None, None, step) for step in steps)]
    repeats = repeats[data.draw(st.integers(0, len(repeats) - 1)) :]
    expected = np.tile(array, repeats)
    result = tile(array, repeats)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    assert result.tobytes() == expected.tobytes()
    out = np.empty(round_up_4(expected.size), expected.dtype)[: expected.size].reshape(expected.shape, order="F")
    assert tile(array, repeats, out=out) is out
    assert out.tobytes() == expected.tobytes()
