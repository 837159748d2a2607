"""Times executed operators beside onnxruntime's CPU provider, on one thread each.

The goals: a convolution or a GEMM takes at most 10 times as long, another operator at most 60 times. Both are measured
in turn, so that what else the machine does falls on both. Ends with 1 if a goal is missed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, Final

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import ValueInfoProto, helper

from dml_tile import OperatorDesc, evaluate

RNG: Final = np.random.default_rng(1)
PRODUCTS: Final = {"CONVOLUTION": 10, "GEMM": 10}
OTHERS: Final = 60


def drawn(*shape: int) -> NDArray[Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def theirs(operator: str, inputs: list[NDArray[Any]], **attributes: Any) -> Callable[[], Any]:
    """A run of a model of one node on one thread."""
    names = [f"i{k}" for k in range(len(inputs))]
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
        for name, each in zip(names, inputs, strict=True)
    ]
    node = helper.make_node(operator, names, ["o"], **attributes)
    graph = helper.make_graph([node], "g", given, [ValueInfoProto(name="o")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, dict(zip(names, inputs, strict=True)))


def ours(operator: str, output: tuple[int, ...], tensors: dict[str, NDArray[Any]], **fields: Any) -> Callable[[], Any]:
    described = {name: {"DataType": "FLOAT32", "Sizes": each.shape} for name, each in tensors.items()}
    desc = OperatorDesc(
        type=operator, desc=fields | described | {"OutputTensor": {"DataType": "FLOAT32", "Sizes": output}}
    )
    return lambda: evaluate(desc, tensors)


def convolution(x: NDArray[Any], w: NDArray[Any], step: int, pad: int, groups: int = 1) -> tuple[Any, ...]:
    out = [(n + 2 * pad - k) // step + 1 for n, k in zip(x.shape[2:], w.shape[2:], strict=True)]
    fields = {"Mode": "CROSS_CORRELATION", "Direction": "FORWARD", "GroupCount": groups}
    pairs = {"Strides": step, "Dilations": 1, "StartPadding": pad, "EndPadding": pad, "OutputPadding": 0}
    lists = {name: [value, value] for name, value in pairs.items()}
    tensors = {"InputTensor": x, "FilterTensor": w}
    return (
        f"CONVOLUTION {x.shape} {w.shape}",
        ours("CONVOLUTION", (x.shape[0], w.shape[0], *out), tensors, **fields, **lists),
        theirs("Conv", [x, w], strides=[step] * 2, pads=[pad] * 4, group=groups),
    )


def unary(operator: str, onnx: str, x: NDArray[Any], **fields: Any) -> tuple[Any, ...]:
    return f"{operator} {x.shape}", ours(operator, x.shape, {"InputTensor": x}, **fields), theirs(onnx, [x])


def cases() -> list[tuple[Any, ...]]:
    a, b, x, y = drawn(1, 1, 512, 512), drawn(1, 1, 512, 512), drawn(1, 64, 112, 112), drawn(1, 64, 112, 112)
    gemm = {"TransA": "NONE", "TransB": "NONE", "Alpha": 1.0, "Beta": 0.0}
    pool = {"WindowSize": [3, 3], "Strides": [2, 2], "StartPadding": [1, 1], "EndPadding": [1, 1]}
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}
    return [
        convolution(drawn(1, 64, 56, 56), drawn(64, 64, 3, 3), 1, 1),
        convolution(drawn(1, 3, 224, 224), drawn(64, 3, 7, 7), 2, 3),
        convolution(drawn(1, 256, 14, 14), drawn(1024, 256, 1, 1), 1, 0),
        convolution(drawn(1, 96, 56, 56), drawn(96, 1, 3, 3), 1, 1, 96),
        ("GEMM 512 x 512 x 512", ours("GEMM", a.shape, {"ATensor": a, "BTensor": b}, **gemm), theirs("MatMul", [a, b])),
        unary("ACTIVATION_SOFTMAX1", "Softmax", drawn(1, 12, 384, 384), Axes=[3]),
        ("ELEMENT_WISE_ADD", ours("ELEMENT_WISE_ADD", x.shape, {"ATensor": x, "BTensor": y}), theirs("Add", [x, y])),
        (
            "MAX_POOLING 3 x 3",
            ours("MAX_POOLING", (1, 64, 56, 56), {"InputTensor": x}, **pool),
            theirs("MaxPool", [x], **window),
        ),
        unary("ACTIVATION_RELU", "Relu", drawn(4, 8)),
        unary("ACTIVATION_GELU", "Gelu", drawn(1, 384, 3072)),
    ]


def main() -> int:
    missed = 0
    for name, mine, other in cases():
        times: tuple[list[float], list[float]] = [], []
        for each in (mine, other):
            each()
        for _ in range(9):
            for taken, each in zip(times, (mine, other), strict=True):
                start = time.perf_counter()
                each()
                taken.append(time.perf_counter() - start)
        here, there = map(median, times)
        goal = PRODUCTS.get(name.split(" ")[0], OTHERS)
        missed += here > goal * there
        print(f"{name:44} {here * 1e3:9.3f} ms {there * 1e3:9.3f} ms {here / there:6.1f} of {goal}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
