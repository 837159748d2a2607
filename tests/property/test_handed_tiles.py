"""A descriptor that a back end makes writes what the tile that was asked for would write."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile.back_ends import BACK_ENDS, describe
from dml_tile.dialects import onnx
from dml_tile.execution.executor import execute
from dml_tile.rules.check import check

NAMES = sorted(onnx.TILE_6_TYPES - {"string", "complex64", "complex128"})


@st.composite
def shapes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    rank = draw(st.integers(0, 9))
    sizes, repeats = (draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank)) for _ in range(2))
    while np.prod(sizes, dtype=int) * np.prod(repeats, dtype=int) > 5000:
        i = int(np.argmax(np.multiply(sizes, repeats)))
        sizes[i] = repeats[i] = 1
    return sizes, repeats


@pytest.mark.parametrize("back_end", BACK_ENDS)
@given(name=st.sampled_from(NAMES), shape=shapes(), seed=st.integers(0, 2**32 - 1))
def test_a_back_end_s_descriptor_does_what_numpy_does(
    back_end: str, name: str, shape: tuple[list[int], list[int]], seed: int
) -> None:
    sizes, repeats = shape
    desc = describe(onnx.tile_6(name, sizes, repeats), "6_4", back_end).desc
    if desc is None or check(desc, "6_4", "runtime"):
        return
    dtype = np.dtype(name)
    noise = np.random.default_rng(seed).integers(0, 256, (*sizes, dtype.itemsize), np.uint8)
    expected = np.tile(noise, (*repeats, 1))
    assert desc.input_tensor is not None
    assert desc.input_tensor.desc is not None
    assert desc.output_tensor is not None
    assert desc.output_tensor.desc is not None
    source = np.zeros(desc.input_tensor.desc.total_tensor_size_in_bytes, np.uint8)
    output = np.zeros(desc.output_tensor.desc.total_tensor_size_in_bytes, np.uint8)
    assert noise.size <= source.size < noise.size + 4
    assert expected.size <= output.size < expected.size + 4
    source[: noise.size] = noise.reshape(-1)
    execute(desc, source, output, "6_4", "runtime")
    np.testing.assert_array_equal(output[: expected.size], expected.reshape(-1))
