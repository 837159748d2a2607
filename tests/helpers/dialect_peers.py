"""Other implementations of tile, and what this package makes of the same cases.

What crashes is not to be run: OpenVINO's CPU plug-in has died of run-time repeats of a scalar, of 0 or less, and in
rank 9, its core of INT64_MAX and, where it computes values, of an empty input.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

from dml_tile.arrays import onnx as onnx_arrays
from dml_tile.arrays import openvino as openvino_arrays
from dml_tile.errors import DialectError
from tests.helpers.packages import needed

ort = needed("onnxruntime")
ov = needed("openvino")

Array = NDArray[Any]

BFLOAT16: Final = np.dtype(ml_dtypes.bfloat16)


class Case(NamedTuple):
    """One tile; ``version`` is that of the operator, ``inputs`` are what it takes: the data, and the repeats."""

    version: int
    inputs: tuple[Array, ...]

    @property
    def data(self) -> Array:
        return self.inputs[0]

    @property
    def repeats(self) -> Array:
        return self.inputs[1]


NAMES: Final = {2: ["x", "repeats"], 3: ["x", "tiles", "axis"]}


@cache
def onnx_model(version: int, kinds: tuple[tuple[np.dtype[Any], int], ...]) -> onnx.ModelProto:
    """Return a model of one Tile whose sizes are open, by the types and ranks of its inputs."""
    names = NAMES[len(kinds)]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), [None] * rank)
        for name, (dtype, rank) in zip(names, kinds, strict=True)
    ]
    output = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(kinds[0][0]), [None] * kinds[0][1])
    graph = helper.make_graph([helper.make_node("Tile", names, ["y"])], "tile", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


@cache
def reference(version: int, kinds: tuple[tuple[np.dtype[Any], int], ...]) -> ReferenceEvaluator:
    return ReferenceEvaluator(onnx_model(version, kinds))


@cache
def session(version: int, kinds: tuple[tuple[np.dtype[Any], int], ...]) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    model = onnx_model(version, kinds).SerializeToString()
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_onnx(make: Callable[..., Any], case: Case) -> Array:
    kinds = tuple((array.dtype, array.ndim) for array in case.inputs)
    feeds = dict(zip(NAMES[len(kinds)], case.inputs, strict=True))
    (output,) = make(case.version, kinds).run(None, feeds)
    return np.asarray(output)


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
    return owned(output.data, case.data.dtype)


@cache
def compiled(dtype: np.dtype[Any], rank: int, count: int) -> Any:
    """Return a model for OpenVINO's CPU plug-in whose sizes and repeats are known at run time only."""
    data = ov.opset1.parameter([-1] * rank, openvino_type(dtype))
    repeats = ov.opset1.parameter([count], ov.Type.i64)
    model = ov.Model([ov.opset1.tile(data, repeats)], [data, repeats], "tile")
    return ov.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1})


def run_openvino_cpu(case: Case) -> Array:
    model = compiled(case.data.dtype, case.data.ndim, len(case.repeats))
    return owned(model([openvino_tensor(case.data), openvino_tensor(case.repeats)])[0], case.data.dtype)


def owned(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return a copy of what OpenVINO only lends; bfloat16 comes as other 16 bits."""
    return array.copy().view(dtype)


ONNX_TILES: Final[dict[int, Callable[..., Array]]] = {
    1: onnx_arrays.tile_1,
    12: onnx_arrays.tile_6,
    13: onnx_arrays.tile_13,
}


def run_ours_as_onnx(case: Case) -> Array:
    return ONNX_TILES[case.version](*case.inputs)


def run_ours_as_openvino(case: Case) -> Array:
    return openvino_arrays.tile_1(*case.inputs)


class Peer(NamedTuple):
    theirs: Callable[[Case], Array]
    ours: Callable[[Case], Array]
    package: str
    seen: tuple[int, int]


PEERS: Final = {
    "onnx's reference": Peer(lambda case: run_onnx(reference, case), run_ours_as_onnx, "onnx", (1, 23)),
    "onnxruntime": Peer(lambda case: run_onnx(session, case), run_ours_as_onnx, "onnxruntime", (1, 31)),
    "OpenVINO's core": Peer(run_openvino_core, run_ours_as_openvino, "openvino", (2026, 4)),
    "OpenVINO's CPU plug-in": Peer(run_openvino_cpu, run_ours_as_openvino, "openvino", (2026, 4)),
}


def is_newer_than_seen(peer: str) -> bool:
    """Return True if the peer was released anew since its disagreements were seen, and so may agree by now."""
    major, minor, *_ = version(PEERS[peer].package).split(".")
    return (int(major), int(minor)) > PEERS[peer].seen


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
    return outcome(PEERS[peer].theirs, case, Exception), outcome(PEERS[peer].ours, case, DialectError)
