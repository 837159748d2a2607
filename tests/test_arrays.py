"""tile(): numpy.tile as far as DirectML would go."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from dml_tile.arrays import tile
from dml_tile.directml.dtypes import ARRAY_TYPES
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.simulation.process import PROCESS
from dml_tile.simulation.target import simulate

ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    "repeats",
    [
        *(2, (2,), [2, 1], (4, 1, 2), np.array([2, 2]), np.int64(3), np.array(2)),
        *((), (1,), (1, 1), (3, 1), (1, 3), (1, 1, 1, 1, 2, 1), (2, 1, 1, 1, 3)),
    ],
)
@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 3), (1, 6), (1, 1, 2, 3)])
def test_promotion_is_numpy_s(shape: tuple[int, ...], repeats: Any) -> None:
    array = np.arange(math.prod(shape), dtype=np.uint16).reshape(shape)
    expected = np.tile(array, repeats)
    out = np.zeros_like(expected)
    for _ in range(2):  # the second time by what is kept
        result = tile(array, repeats)
        assert result.shape == expected.shape
        assert (result == expected).all()
        assert np.array_equal(tile(array, repeats, out=out), expected)


class Tensor:
    """Memory that is offered through DLPack alone, on a device."""

    def __init__(self, array: Any, device: int = 1) -> None:
        self.array, self.device = array, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)


def test_what_offers_its_memory_through_dlpack_is_tiled_as_it_lies() -> None:
    result = tile(Tensor(ARRAY.T), (1, 2))
    assert type(result) is np.ndarray
    assert (result == np.tile(ARRAY.T, (1, 2))).all()
    out = np.empty((3, 4), np.float32)
    assert tile(Tensor(ARRAY.T), (1, 2), out=out) is out


def test_memory_of_another_device_or_without_a_numpy_type_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="the Tensor is not in the CPU's memory; move it there first"):
        tile(Tensor(ARRAY, device=2), 2)
    read_only = np.zeros(2, ">i4")
    with pytest.raises(TypeError, match="the Tensor cannot be read through DLPack: "):
        tile(Tensor(read_only), 2)


def test_a_tensor_of_torch_is_tiled() -> None:
    torch = pytest.importorskip("torch")
    assert (tile(torch.arange(6).reshape(2, 3).T, (2, 1)) == np.tile(np.arange(6).reshape(2, 3).T, (2, 1))).all()
    with pytest.raises(TypeError, match=r"tensor\.detach\(\)"):
        tile(torch.zeros(2, requires_grad=True), 2)


def test_float64_is_refused_by_the_documentation_and_taken_by_the_runtime() -> None:
    with pytest.raises(DmlError, match="FLOAT64 is in no row"):
        tile([1.5], 2)
    assert tile([1.5], 2, against="runtime").tolist() == [1.5, 1.5]


NATIVE = r"use array\.astype\(array\.dtype\.newbyteorder\('='\)\)$"
REFUSED: dict[str, tuple[Any, Any, type[Exception], str]] = {
    # the array, the repeats, and what is said
    "complex numbers": (np.ones(2, complex), 2, TypeError, "DirectML has no tensor data type for"),
    "the other byte order": (np.zeros(2, ">i4"), 2, TypeError, NATIVE),
    "a mask, which would be lost": (np.ma.zeros(2), 2, TypeError, r"the array is masked, .*filled\(\)"),
    "objects": (np.array([None]), 2, TypeError, "DirectML has no tensor data type for"),
    "a repeat of 0": (ARRAY, (2, 0), DmlError, "DML-BUFFER-Sizes-zero"),
    "one repeat of 0": (ARRAY, 0, DmlError, "DML-BUFFER-Sizes-zero"),
    "no elements": (np.ones((2, 0), np.int32), 2, DmlError, "DML-BUFFER-Sizes-zero"),
    "a negative repeat": (ARRAY, (1, -1), ValueError, r"reps\[1\]: is -1; negative values are not allowed"),
    "a float": (ARRAY, 1.5, TypeError, "integer"),
    "None": (ARRAY, None, TypeError, "integer"),
    "9 dimensions": (ARRAY, (1,) * 9, DmlError, "an invalid dimension count of 9"),
    "more than a UINT": (np.zeros(2, np.int8), 2**40, ValueError, "an integer from 0 to 4294967295"),
}


@pytest.mark.parametrize(("array", "repeats", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_what_either_refuses_is_an_error(array: Any, repeats: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tile(array, repeats)


def test_the_target_decides_in_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    longs = np.arange(4).reshape(1, 1, 2, 2)
    for _ in range(2):  # the second time by what is kept
        assert tile(longs, 2).shape == (1, 1, 2, 4)
        with simulate("3_0"), pytest.raises(DmlError, match="INT64 needs DML_FEATURE_LEVEL_4_1"):
            tile(longs, 2)
        monkeypatch.setattr(PROCESS, "outside", "3_0")
        with pytest.raises(DmlError, match="INT64 needs"):
            tile(longs, 2)
        monkeypatch.undo()
        with pytest.raises(DmlError, match="a dimension count of 2 needs DML_FEATURE_LEVEL_3_1; windows-10-2004"):
            tile(ARRAY, 2, "windows-10-2004")
        assert tile(ARRAY, (1, 1, 1, 2), "windows-10-2004").shape == (1, 1, 2, 6)


MEMORY = np.arange(12, dtype=np.float32).reshape(2, 6)


@pytest.mark.parametrize(
    ("array", "out", "error", "message"),
    [
        (ARRAY, [], TypeError, "out is a list; an array was expected"),
        (ARRAY, np.ma.zeros((2, 6)), TypeError, "out is masked"),
        (ARRAY, MEMORY[:, :5], ValueError, r"out is float32 of shape \(2, 5\); float32 of shape \(2, 6\)"),
        (ARRAY, np.zeros((2, 6), np.int32), ValueError, "out is int32"),
        (ARRAY, np.broadcast_to(np.float32(0), (2, 6)), ValueError, "read-only"),
        (ARRAY, as_strided(np.zeros(6, np.float32), (2, 6), (4, 4)), ValueError, "let elements of out share memory"),
        (ARRAY, np.ndarray((2, 6), np.float32, bytearray(80), strides=(32, 6)), ValueError, "elements of out share"),
        (MEMORY[:, :3], MEMORY, ValueError, "out shares memory"),
    ],
)
def test_an_out_that_does_not_fit_is_an_error(array: Any, out: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tile(array, 2, out=out)


def test_out_is_another_array_but_may_lie_between_the_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = np.arange(12, dtype=np.float32)
    assert (tile(memory[::2], 1, out=memory[1::2]) == memory[::2]).all()
    with pytest.raises(ValueError, match="out shares memory"):
        tile(memory, 1, out=memory)
    block = np.ones((9, 9, 9), np.float32)
    array, out = block[:4, :2, :4:2], block[:4, 1:3, 1:6:4]
    assert tile(array, 1, out=out) is out
    monkeypatch.setattr("dml_tile.bindings.memory._MAX_WORK", 1)
    with pytest.raises(ValueError, match="out shares memory"):  # as it might, for all that can be told at once
        tile(array, 1, out=out)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Sizes and repeats of 1 to 8 dimensions, of up to some ten thousand elements."""
    rank = draw(st.integers(1, 8))
    limit = {1: 40, 2: 12, 3: 6, 4: 4}.get(rank, 3)
    sizes = draw(st.lists(st.integers(1, limit), min_size=rank, max_size=rank))
    repeats = draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=rank, max_size=rank))
    return sizes, repeats


@given(shapes(), st.sampled_from([name for name in ARRAY_TYPES if name != "float64"]), st.data())
def test_tile_is_numpy_s_for_any_strides(shape: tuple[list[int], list[int]], dtype: str, data: st.DataObject) -> None:
    sizes, repeats = shape
    size = math.prod(sizes) * np.dtype(dtype).itemsize
    array = np.random.default_rng(size).integers(0, 2 if dtype == "bool" else 120, size, np.uint8)
    array = array.view(dtype).reshape(sizes).transpose(data.draw(st.permutations(range(len(sizes)))))
    steps = data.draw(st.lists(st.sampled_from([1, -1, 2]), min_size=len(sizes), max_size=len(sizes)))
    array = array[tuple(slice(None, None, step) for step in steps)]
    if data.draw(st.booleans()):
        array = np.broadcast_to(array[:1], array.shape)
    repeats = repeats[data.draw(st.integers(0, len(repeats) - 1)) :]
    expected = np.tile(array, repeats)
    result = tile(array, repeats)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    assert result.tobytes() == expected.tobytes()
    *outer, width = expected.shape
    whole = np.ones((*outer, width + data.draw(st.sampled_from([0, 3]))), dtype, order=data.draw(st.sampled_from("CF")))
    out, between = np.split(whole, [width], axis=-1)
    assert tile(array, repeats, out=out) is out
    assert out.tobytes() == expected.tobytes()
    assert (between == 1).all()


def test_a_float_is_no_repeat_even_where_its_value_is_known() -> None:
    tile(ARRAY, (2, 3))
    with pytest.raises(TypeError):
        tile(ARRAY, (2.0, 3.0))  # type: ignore[arg-type]


def test_what_tells_no_number_may_change_between_calls() -> None:
    class Count:
        def __init__(self) -> None:
            self.value = 2

        def __index__(self) -> int:
            return self.value

    repeats: Any = (count := Count(), Count())
    assert tile(ARRAY, repeats).shape == (4, 6)
    count.value = 3
    assert tile(ARRAY, repeats).shape == (6, 6)


def test_arrays_of_one_shape_may_lie_in_any_way_in_each_call() -> None:
    square = np.arange(16, dtype=np.int16).reshape(4, 4)
    wide = np.zeros((8, 24), np.int16)
    ways_to_say: list[Any] = [(2, 3), (np.int64(2), 3), [2, 3]]
    for _ in range(2):  # the second time by what is kept
        for array in (square, square.T, square[::-1], np.broadcast_to(square[:1], (4, 4))):
            for out in (wide[:, :12].copy(), np.zeros((12, 8), np.int16).T, wide[:, ::2]):
                for repeats in ways_to_say:
                    out[...] = 0
                    assert tile(array, repeats, Target.parse("6_2"), out=out) is out
                    assert out.tolist() == np.tile(array, (2, 3)).tolist()


def test_more_tiles_are_tiled_than_are_kept() -> None:
    for length in (*range(1, 300), 1):
        assert tile(np.arange(length, dtype=np.int32), (2,)).tolist() == [*range(length)] * 2


def test_threads_may_tile_alike_at_once() -> None:
    arrays = [np.full((4, 3, 5, 7), value, np.float32) + np.arange(7, dtype=np.float32) for value in range(8)]

    def are_right(i: int) -> bool:
        return all(np.array_equal(tile(arrays[i], (2, 2, 2, 2)), np.tile(arrays[i], (2, 2, 2, 2))) for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(are_right, range(8)))
