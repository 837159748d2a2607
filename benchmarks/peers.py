"""Peers to measure dml_tile against: each gives a call that fills the output of a shape, if it can tile it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from shapes import Shape

import dml_tile
from dml_tile import TileOperatorDesc, compile_tile

THREADS: Final = 2
MEMSET_FROM: Final = 25_000_000  # bytes

Array = NDArray[Any]
Call = Callable[[], object]


@dataclass(eq=False)
class Case:
    """A shape with its input, and one output that the peers write to in turn: no two pieces of memory are as fast."""

    shape: Shape
    source: Array = field(init=False)
    memory: Array = field(init=False)
    dtype: np.dtype[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.dtype = np.dtype({1: "u1", 2: "f2", 4: "f4", 8: "i8"}[self.shape.size])
        strides, output_strides = self.shape.byte_strides()
        self.memory = _memory(_span(self.shape.size, self.shape.output_sizes, output_strides))
        self.source = _memory(_span(self.shape.size, self.shape.sizes, strides))
        self.source[:] = np.random.default_rng(1).integers(0, 64, self.source.size, np.uint8)

    @property
    def input(self) -> Array:
        """The input tensor."""
        return np.ndarray(self.shape.sizes, self.dtype, self.source, 0, self.shape.byte_strides()[0])

    @property
    def output(self) -> Array:
        """The output tensor."""
        return np.ndarray(self.shape.output_sizes, self.dtype, self.memory, 0, self.shape.byte_strides()[1])

    def interleaved(self) -> tuple[Array, Array]:
        """Output and input as views of one shape, in which a repeat has the stride 0."""
        pairs = list(zip(self.shape.sizes, self.shape.repeats, strict=True))
        shape = [length for size, repeat in pairs for length in (repeat, size)]
        sources, destinations = self.shape.byte_strides()
        read = [stride for source in sources for stride in (0, source)]
        written = [
            stride for (size, _), step in zip(pairs, destinations, strict=True) for stride in (size * step, step)
        ]
        as_strided = np.lib.stride_tricks.as_strided
        return as_strided(self.output, shape, written), as_strided(self.input, shape, read)


@dataclass(frozen=True)
class Ready:
    """A call; ``fills`` the case's output, unless it makes a new one each time, or is no tile."""

    call: Call
    fills: bool = True


def bound(case: Case) -> Ready:
    """A compiled tile whose buffers are bound, with its checks, beforehand."""
    tile = compile_tile(_desc(case)).bind(case.source, case.memory)
    return Ready(lambda: tile.run(THREADS))


def tile_into(case: Case) -> Ready:
    """``tile`` with an output."""
    array, repeats, output = case.input, case.shape.repeats, case.output
    return Ready(lambda: dml_tile.tile(array, repeats, out=output))


def tile_anew(case: Case) -> Ready:
    """``tile`` without an output."""
    array, repeats = case.input, case.shape.repeats
    return Ready(lambda: dml_tile.tile(array, repeats), fills=False)


def execute(case: Case) -> Ready:
    """``execute`` of a descriptor."""
    desc, source, memory = _desc(case), case.source, case.memory
    return Ready(lambda: dml_tile.execute(desc, source, memory))


WAYS: Final[dict[str, Callable[[Case], Ready]]] = {
    "bound": bound,
    "tile": tile_into,
    "execute": execute,
    "tile anew": tile_anew,
}


def _desc(case: Case) -> TileOperatorDesc:
    return TileOperatorDesc.from_input(
        data_type={"u1": "UINT8", "f2": "FLOAT16", "f4": "FLOAT32", "i8": "INT64"}[case.dtype.str[1:]],
        sizes=case.shape.sizes,
        repeats=case.shape.repeats,
        strides=case.shape.strides,
        output_strides=case.shape.output_strides,
    )


def numpy_tile(case: Case) -> Ready | None:
    is_kept_in_its_order = set(case.shape.repeats) == {1} and case.shape.strides is not None
    if (
        case.shape.output_strides is not None or is_kept_in_its_order
    ):  # without repeats, its copy lies as its input does
        return None
    array, repeats = case.input, case.shape.repeats
    return Ready(lambda: np.tile(array, repeats), fills=False)


def numpy_copyto(case: Case) -> Ready:
    written, read = case.interleaved()
    return Ready(lambda: np.copyto(written, read))


def torch(case: Case) -> Ready:
    import torch

    torch.set_num_threads(THREADS)
    dtype = {1: torch.uint8, 2: torch.float16, 4: torch.float32, 8: torch.int64}[case.shape.size]
    written, read = case.interleaved()
    destination, source = (
        torch.as_strided(
            torch.from_numpy(flat).view(dtype), view.shape, [step // case.shape.size for step in view.strides]
        )
        for flat, view in ((case.memory, written), (case.source, read))
    )
    return Ready(lambda: destination.copy_(source))


def onnxruntime(case: Case) -> Ready | None:
    if not case.shape.is_packed:
        return None
    import onnxruntime
    from onnx import helper, numpy_helper

    kind = helper.np_dtype_to_tensor_dtype(case.dtype)
    graph = helper.make_graph(
        [helper.make_node("Tile", ["x", "r"], ["y"])],
        "tile",
        [helper.make_tensor_value_info("x", kind, case.shape.sizes)],
        [helper.make_tensor_value_info("y", kind, case.shape.output_sizes)],
        [numpy_helper.from_array(np.array(case.shape.repeats), "r")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    binding = session.io_binding()
    source = np.ascontiguousarray(case.input)
    for bind, name, array in ((binding.bind_input, "x", source), (binding.bind_output, "y", case.output)):
        bind(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    return Ready(lambda: (session.run_with_iobinding(binding), source))


def openvino(case: Case) -> Ready | None:
    if not case.shape.is_packed or case.shape.size == 8:  # its CPU plug-in narrows 64 bits
        return None
    import openvino

    data = openvino.opset1.parameter(list(case.shape.sizes), openvino.Type(case.dtype))
    tile = openvino.opset1.tile(data, openvino.opset1.constant(np.array(case.shape.repeats)))
    model = openvino.Model([tile], [data], "tile")
    precise = {"INFERENCE_NUM_THREADS": THREADS, "INFERENCE_PRECISION_HINT": "f16" if case.shape.size == 2 else "f32"}
    request = openvino.Core().compile_model(model, "CPU", precise).create_infer_request()
    request.set_input_tensor(openvino.Tensor(np.ascontiguousarray(case.input)))
    request.set_output_tensor(openvino.Tensor(case.output, shared_memory=True))
    return Ready(request.infer)


def memset(case: Case) -> Ready | None:
    """The limit: the bytes of a dense output, set to one value by as many threads."""
    if case.shape.written < MEMSET_FROM or not case.shape.is_dense or case.shape.is_plain_copy:
        return None
    halves = np.array_split(case.memory, THREADS)
    pool = ThreadPoolExecutor(THREADS - 1)

    def fill() -> None:
        helpers = [pool.submit(half.fill, 1) for half in halves[1:]]
        halves[0].fill(1)
        for helper in helpers:
            helper.result()

    return Ready(fill, fills=False)


PEERS: Final[dict[str, Callable[[Case], Ready | None]]] = {
    "numpy.tile": numpy_tile,
    "np.copyto": numpy_copyto,
    "torch": torch,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "memset": memset,
}


def installed() -> list[str]:
    """The peers that can be measured here."""
    needs = {"torch": "torch", "onnxruntime": "onnxruntime", "openvino": "openvino"}
    return [name for name in PEERS if name not in needs or importlib.util.find_spec(needs[name])]


def _memory(size: int) -> Array:
    """Bytes that begin at a multiple of 64, as frameworks allocate tensors; copies are faster between such."""
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size]


def _span(size: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The bytes of a tensor, rounded up to a whole number of elements of 8 bytes."""
    extent = sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True)) + size
    return -(-extent // 8) * 8
