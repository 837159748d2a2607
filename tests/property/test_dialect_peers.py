"""Each dialect against the implementations that others wrote: random cases agree, but where those are known not to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

from dml_tile.arrays import tile_as
from dml_tile.back_ends.dialects import INT64_MAX, OPENVINO_TILE_1, onnx_tile
from dml_tile.errors import DialectError
from tests.helpers.onnx_graphs import tile_node, typed
from tests.helpers.packages import needed

needed("onnxruntime")
ov = needed("openvino")
from tests.helpers.onnx_chains import session  # noqa: E402  # the package is there

Array = NDArray[Any]

BFLOAT16: Final = np.dtype(ml_dtypes.bfloat16)


class Case(NamedTuple):
    """One tile, by the version of the operator."""

    version: int
    data: Array
    repeats: Array


@cache
def onnx_model(version: int, dtype: np.dtype[Any], rank: int, repeats_rank: int) -> onnx.ModelProto:
    """Return a model of one Tile whose sizes are open."""
    element = helper.np_dtype_to_tensor_dtype(dtype)
    inputs = [typed("x", [None] * rank, element), typed("repeats", [None] * repeats_rank, onnx.TensorProto.INT64)]
    graph = helper.make_graph([tile_node(repeats="repeats")], "tile", inputs, [typed("y", [None] * rank, element)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


reference = cache(lambda *kind: ReferenceEvaluator(onnx_model(*kind)))
runtime = cache(lambda *kind: session(onnx_model(*kind), "ORT_ENABLE_ALL"))


def run_onnx(make: Callable[..., Any], case: Case) -> Array:
    made = make(case.version, case.data.dtype, case.data.ndim, case.repeats.ndim)
    return np.asarray(made.run(None, {"x": case.data, "repeats": case.repeats})[0])


def openvino_type(dtype: np.dtype[Any]) -> Any:
    return ov.Type.bf16 if dtype == BFLOAT16 else ov.Type(dtype)


def openvino_tensor(array: Array) -> Any:
    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype == BFLOAT16:
        return ov.Tensor(array.view(np.uint16), list(array.shape), ov.Type.bf16)
    return ov.Tensor(array)


def run_openvino_core(case: Case) -> Array:
    """Run OpenVINO's own shape inference and reference implementation, without a plug-in."""
    data = ov.opset1.parameter(list(case.data.shape), openvino_type(case.data.dtype))
    tile = ov.opset1.tile(data, ov.opset1.constant(case.repeats))
    shape = tile.get_output_partial_shape(0)
    if shape.is_dynamic:  # what it makes of a size past int64
        raise OverflowError
    output = ov.Tensor(openvino_type(case.data.dtype), shape.to_shape())
    assert tile.evaluate([output], [openvino_tensor(case.data), openvino_tensor(case.repeats)])
    lent: Array = output.data  # bfloat16 comes as other 16 bits
    return lent.copy().view(case.data.dtype)


REFERENCE, RUNTIME, CORE = "onnx's reference", "onnxruntime", "OpenVINO's core"
PEERS: Final[dict[str, Callable[[Case], Array]]] = {
    REFERENCE: lambda case: run_onnx(reference, case),
    RUNTIME: lambda case: run_onnx(runtime, case),
    CORE: run_openvino_core,
}


Outcome = tuple[np.dtype[Any], tuple[int, ...], Any]


def outcome(run: Callable[[Case], Array], case: Case, *errors: type[Exception]) -> Outcome | None:
    """Return the type, shape and bits of the output; None for one of the errors."""
    try:
        array = run(case)
    except errors:
        return None
    return array.dtype, array.shape, array.tolist() if array.dtype == object else array.tobytes()


def outcomes(peer: str, case: Case) -> tuple[Outcome | None, Outcome | None]:
    """Return theirs and ours. Each peer has errors of its own kinds, of which some are bare RuntimeErrors."""
    dialect = OPENVINO_TILE_1 if peer == CORE else onnx_tile(case.version)
    ours = outcome(lambda case: tile_as(dialect, case.data, case.repeats), case, DialectError)
    return outcome(PEERS[peer], case, Exception), ours


NUMBERS: Final = tuple(map(np.dtype, ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")))
ALL: Final = (*NUMBERS, np.dtype(bool), BFLOAT16, np.dtype(np.complex64), np.dtype(np.complex128), np.dtype(object))


def deviates(peer: str, case: Case) -> bool:
    """Return True where a peer is known to deviate from its specification."""
    data, repeats = case.data, case.repeats
    if peer == REFERENCE:
        return (
            # promotes repeats as numpy.tile does
            len(repeats) != data.ndim
            # takes a negative repeat where the input is empty
            or (data.size == 0 and bool((repeats < 0).any()))
            # takes bfloat16, which Tile-6 does not list
            or (case.version == 12 and data.dtype == BFLOAT16)
        )
    return peer == RUNTIME and (
        # has no complex numbers, and tiles no bfloat16 on the CPU
        data.dtype.kind == "c"
        or data.dtype == BFLOAT16
        # casts float16 to float32 and back, which changes the bits of a NaN
        or (data.dtype == np.float16 and bool(np.isnan(data).any()))
    )


# Random cases


@st.composite
def arrays(draw: st.DrawFn, dtypes: Sequence[np.dtype[Any]], min_rank: int, max_rank: int, min_size: int) -> Array:
    """Arrays of random bits of a type; objects are strings."""
    shape = draw(st.lists(st.integers(min_size, 3), min_size=min_rank, max_size=max_rank))
    dtype = draw(st.sampled_from(dtypes))
    bits = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 256, [*shape, 16], np.uint8)
    if dtype.kind == "O":
        return np.array([f"{byte:c}" * (byte % 5) for byte in bits[..., 0].flat], object).reshape(shape)
    if dtype.kind == "b":
        return np.asarray(bits[..., 0] > 99)
    array: Array = np.ascontiguousarray(bits[..., : dtype.itemsize]).view(dtype).reshape(shape)
    return array


@st.composite
def onnx_cases(draw: st.DrawFn) -> Case:
    data = draw(arrays(ALL, 0, 5, 0))
    count = draw(st.sampled_from([data.ndim] * 9 + [max(data.ndim - 1, 0), data.ndim + 1]))
    values = st.sampled_from([1, 1, 2, 2, 3, 3, 0, -1])
    repeats = draw(st.lists(values, min_size=count, max_size=count))
    return Case(draw(st.sampled_from([12, 13])), data, np.array(repeats, np.int64))


@st.composite
def openvino_cases(draw: st.DrawFn) -> Case:
    """Cases that the core survives: it has died of INT64_MAX and, where it computes values, of an empty input."""
    data = draw(arrays((*NUMBERS, np.dtype(bool), BFLOAT16), 0, 5, 1))
    repeats = draw(st.lists(st.integers(-2, 3), min_size=1, max_size=6))
    return Case(1, data, np.array(repeats, draw(st.sampled_from([np.int64, np.int32, np.int8]))))


def assert_agreement(peer: str, case: Case) -> None:
    if not deviates(peer, case):
        theirs, ours = outcomes(peer, case)
        assert theirs == ours


@pytest.mark.parametrize("peer", [REFERENCE, RUNTIME])
@given(case=onnx_cases())
def test_onnx_s_implementations_agree(peer: str, case: Case) -> None:
    assert_agreement(peer, case)


@given(openvino_cases())
def test_openvino_s_core_agrees(case: Case) -> None:
    assert_agreement(CORE, case)


ONES: Final = np.ones((2, 2), np.float32)


@pytest.mark.parametrize("peer", [REFERENCE, RUNTIME])
@pytest.mark.parametrize(
    ("data", "repeats", "is_error"),
    [
        (ONES, [2**62, 1], True),
        (ONES, [2**62, 0], True),
        (ONES, [0, INT64_MAX], True),
        (ONES[:, :0], [2**62, 1], True),
        (ONES[:0], [INT64_MAX, 1], False),
        (ONES, [[1, 2]], True),
        (ONES, [1, -1], True),
        (np.ones([1] * 9, np.float32), [2] * 9, False),
        (np.float32(3), np.zeros(0, np.int64), False),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_the_edges_of_onnx_are_where_others_have_them(peer: str, data: Any, repeats: Any, is_error: bool) -> None:
    theirs, ours = outcomes(peer, Case(13, np.asarray(data), np.asarray(repeats)))
    assert theirs == ours
    assert (ours is None) == is_error


@given(
    st.lists(st.integers(0, 2**40), max_size=7),
    st.lists(st.sampled_from([1, 2, 7, 0, -1, -INT64_MAX, 2**20, 2**40]), min_size=1, max_size=9),
)
def test_openvino_infers_the_shapes_that_the_dialect_does(shape: list[int], repeats: list[int]) -> None:
    tile = ov.opset1.tile(ov.opset1.parameter(shape, ov.Type.f32), ov.opset1.constant(np.array(repeats, np.int64)))
    inferred = tile.get_output_partial_shape(0)
    try:
        expected = OPENVINO_TILE_1.request("f32", shape, repeats).output_shape
    except DialectError:
        assert inferred.is_dynamic
    else:
        assert tuple(inferred.to_shape()) == expected
