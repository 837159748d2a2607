"""Executed operators beside onnxruntime's CPU provider, which shares no code with them: random sizes and fields."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from dml_tile import OperatorDesc, data_type_of, evaluate

ort = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.long

Array = NDArray[Any]
SEEDS: Final = range(20)
DIRECTIONS: Final = {"FORWARD": "forward", "BACKWARD": "reverse", "BIDIRECTIONAL": "bidirectional"}


def theirs(operator: str, inputs: list[Array | None], outputs: int = 1, **attributes: Any) -> list[Array]:
    from onnx import ValueInfoProto, helper

    given = {f"i{k}": each for k, each in enumerate(inputs) if each is not None}
    names = [f"i{k}" if each is not None else "" for k, each in enumerate(inputs)]
    node = helper.make_node(operator, names, [f"o{k}" for k in range(outputs)], **attributes)
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
        for name, each in given.items()
    ]
    graph = helper.make_graph([node], "g", values, [ValueInfoProto(name=f"o{k}") for k in range(outputs)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found: list[Array] = session.run(None, given)
    return found


def ours(operator: str, inputs: dict[str, Array], outputs: dict[str, Array], **fields: Any) -> list[Array]:
    """The outputs, described as those of onnxruntime."""
    tensors = {
        name: {"DataType": data_type_of(each.dtype).name, "Sizes": each.shape}
        for name, each in (inputs | outputs).items()
    }
    found = evaluate(OperatorDesc(type=operator, desc=fields | tensors), inputs, "6_4", "runtime")
    return [found[name] for name in outputs]


def close(mine: list[Array], other: list[Array]) -> None:
    for one, two in zip(mine, other, strict=True):
        np.testing.assert_allclose(one.astype(float), two.astype(float), rtol=1e-4, atol=1e-5)


class Drawn:
    """Random arrays and numbers of a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def array(self, *shape: int) -> Array:
        return self.rng.standard_normal(shape).astype(np.float32)

    def numbers(self, low: int, high: int, count: int = 2) -> list[int]:
        return [int(each) for each in self.rng.integers(low, high + 1, count)]

    def number(self, low: int, high: int) -> int:
        return self.numbers(low, high, 1)[0]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("direction", ["FORWARD", "BACKWARD"])
def test_convolutions(seed: int, direction: str) -> None:
    drawn = Drawn(seed)
    groups, batch, count = drawn.number(1, 3), drawn.number(1, 2), drawn.number(1, 3)
    channels, filters = groups * drawn.number(1, 3), drawn.number(1, 3)
    size, steps, spread = drawn.numbers(1, 3, count), drawn.numbers(1, 3, count), drawn.numbers(1, 2, count)
    start, end = drawn.numbers(0, 2, count), drawn.numbers(0, 2, count)
    x = drawn.array(batch, channels, *drawn.numbers(6, 9, count))
    is_forward = direction == "FORWARD"
    w = drawn.array(*((groups * filters, channels // groups) if is_forward else (channels, filters)), *size)
    added = 0 if is_forward else drawn.number(0, steps[0] - 1)
    bias, extra = drawn.array(groups * filters), [added, *[0] * (count - 1)]
    attributes: dict[str, Any] = {"strides": steps, "dilations": spread, "pads": start + end, "group": groups}
    if not is_forward:
        attributes["output_padding"] = extra
    try:
        (other,) = theirs("Conv" if is_forward else "ConvTranspose", [x, w, bias], **attributes)
    except Exception:
        pytest.skip("no output is left")
    fields: dict[str, Any] = {"Mode": "CROSS_CORRELATION", "Direction": direction, "GroupCount": groups}
    fields |= {"Strides": steps, "Dilations": spread, "StartPadding": start, "EndPadding": end, "OutputPadding": extra}
    inputs = {"InputTensor": x, "FilterTensor": w, "BiasTensor": bias.reshape(1, -1, *[1] * count)}
    (mine,) = ours("CONVOLUTION", inputs, {"OutputTensor": other}, **fields)
    inside = (slice(None), slice(None), slice(other.shape[2] - added))  # DirectML writes 0 where OutputPadding is
    close([mine[inside]], [other[inside]])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["AVERAGE_POOLING", "LP_POOLING", "MAX_POOLING2"])
def test_poolings(seed: int, kind: str) -> None:
    drawn = Drawn(seed)
    size, steps = drawn.numbers(2, 3), drawn.numbers(1, 3)
    start, end = drawn.numbers(0, 1), drawn.numbers(0, 1)
    x = drawn.array(2, 3, *drawn.numbers(5, 9))
    attributes: dict[str, Any] = {"kernel_shape": size, "strides": steps, "pads": start + end}
    fields: dict[str, Any] = {"WindowSize": size, "Strides": steps, "StartPadding": start, "EndPadding": end}
    if kind == "AVERAGE_POOLING":
        counted = bool(drawn.number(0, 1))
        other = theirs("AveragePool", [x], **attributes, count_include_pad=int(counted))
        close(ours(kind, {"InputTensor": x}, {"OutputTensor": other[0]}, **fields, IncludePadding=counted), other)
    elif kind == "LP_POOLING":
        other = theirs("LpPool", [x], **attributes, p=2)
        close(ours(kind, {"InputTensor": x}, {"OutputTensor": other[0]}, **fields, P=2), other)
    else:
        spread = drawn.numbers(1, 2)
        other = theirs("MaxPool", [x], 2, **attributes, dilations=spread)
        outputs = {"OutputTensor": other[0], "OutputIndicesTensor": other[1].astype(np.uint32)}
        close(ours(kind, {"InputTensor": x}, outputs, **fields, Dilations=spread), other)


@pytest.mark.parametrize("seed", SEEDS)
def test_normalisations(seed: int) -> None:
    drawn = Drawn(seed)
    x = drawn.array(2, drawn.number(2, 4), *drawn.numbers(2, 5))
    parts = [np.abs(drawn.array(x.shape[1])) for _ in range(4)]
    wide = [each.reshape(1, -1, 1, 1) for each in parts]
    other = theirs("BatchNormalization", [x, *parts], epsilon=1e-3)
    names = ("InputTensor", "ScaleTensor", "BiasTensor", "MeanTensor", "VarianceTensor")
    inputs = dict(zip(names, [x, *wide], strict=True))
    close(ours("BATCH_NORMALIZATION", inputs, {"OutputTensor": other[0]}, Spatial=True, Epsilon=1e-3), other)
    other = theirs("InstanceNormalization", [x, *parts[:2]], epsilon=1e-3)
    inputs = dict(zip(names, [x, *wide[:2]], strict=False))
    fields: dict[str, Any] = {"Axes": [2, 3], "NormalizeVariance": True, "Epsilon": 1e-3}
    close(ours("MEAN_VARIANCE_NORMALIZATION1", inputs, {"OutputTensor": other[0]}, **fields), other)
    other = theirs("LRN", [x], size=3, alpha=0.5, beta=0.75, bias=1.5)
    fields = {"CrossChannel": True, "LocalSize": 3, "Alpha": 0.5, "Beta": 0.75, "Bias": 1.5}
    close(ours("LOCAL_RESPONSE_NORMALIZATION", {"InputTensor": x}, {"OutputTensor": other[0]}, **fields), other)


@pytest.mark.parametrize("seed", SEEDS)
def test_products(seed: int) -> None:
    drawn = Drawn(seed)
    rows, inner, columns = drawn.numbers(1, 40, 3)
    is_first, is_second = (bool(drawn.number(0, 1)) for _ in range(2))
    a = drawn.array(*((inner, rows) if is_first else (rows, inner)))
    b = drawn.array(*((columns, inner) if is_second else (inner, columns)))
    addend, (alpha, beta) = drawn.array(rows, columns), drawn.array(2).tolist()
    attributes = {"transA": int(is_first), "transB": int(is_second), "alpha": alpha, "beta": beta}
    other = theirs("Gemm", [a, b, addend], **attributes)
    fields: dict[str, Any] = {"TransA": int(is_first), "TransB": int(is_second), "Alpha": alpha, "Beta": beta}
    inputs = {"ATensor": a, "BTensor": b, "CTensor": addend}
    close(ours("GEMM", inputs, {"OutputTensor": other[0]}, **fields), other)
    batches = drawn.numbers(1, 3)
    a, b = drawn.array(*batches, rows, inner), drawn.array(*batches, inner, columns)
    other = theirs("MatMul", [a, b])
    fields = {"TransA": 0, "TransB": 0, "Alpha": 1, "Beta": 0}
    close(ours("GEMM", {"ATensor": a, "BTensor": b}, {"OutputTensor": other[0]}, **fields), other)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", ["NEAREST_NEIGHBOR", "LINEAR"])
def test_resampling(seed: int, mode: str) -> None:
    drawn = Drawn(seed)
    x = drawn.array(*drawn.numbers(1, 3), *drawn.numbers(2, 7))
    scales = np.array([1, 1, *drawn.rng.choice([0.5, 0.75, 1, 1.5, 2, 3], 2)], np.float32)
    offset = drawn.rng.choice([0, 0.5])  # asymmetric, or from half a pixel
    attributes: dict[str, Any] = {"mode": "nearest" if mode == "NEAREST_NEIGHBOR" else "linear"}
    attributes |= {"coordinate_transformation_mode": "half_pixel" if offset else "asymmetric"}
    other = theirs("Resize", [x, None, scales], **attributes, nearest_mode="round_prefer_ceil")
    offsets = {"InputPixelOffsets": [offset] * 4, "OutputPixelOffsets": [-offset] * 4}
    fields: dict[str, Any] = offsets | {"InterpolationMode": mode, "Scales": scales.tolist()}
    close(ours("RESAMPLE1", {"InputTensor": x}, {"OutputTensor": other[0]}, **fields), other)


@pytest.mark.parametrize("seed", SEEDS)
def test_averages_of_regions(seed: int) -> None:
    """onnxruntime takes the maximum of weighted elements, DirectML that of samples."""
    drawn = Drawn(seed)
    x, count = drawn.array(2, 2, *drawn.numbers(4, 8)), drawn.number(1, 3)
    corners = drawn.rng.uniform(0, 3, (count, 2)).astype(np.float32)
    regions = np.concatenate([corners, corners + drawn.rng.uniform(0.5, 4, (count, 2))], 1, dtype=np.float32)
    images, (height, width), samples = drawn.rng.integers(0, 2, count), drawn.numbers(1, 3), drawn.number(1, 3)
    attributes: dict[str, Any] = {"output_height": height, "output_width": width, "sampling_ratio": samples}
    other = theirs("RoiAlign", [x, regions, images], **attributes, coordinate_transformation_mode="half_pixel")
    fields: dict[str, Any] = {"ReductionFunction": "AVERAGE", "InterpolationMode": "LINEAR", "OutOfBoundsInputValue": 0}
    fields |= {"SpatialScaleX": 1, "SpatialScaleY": 1, "InputPixelOffset": 0.5, "OutputPixelOffset": -0.5}
    fields |= dict.fromkeys(("MinimumSamplesPerOutput", "MaximumSamplesPerOutput"), samples)
    inputs = {"InputTensor": x, "ROITensor": regions, "BatchIndicesTensor": images.astype(np.uint32)}
    close(ours("ROI_ALIGN1", inputs, {"OutputTensor": other[0]}, **fields, AlignRegionsToCorners=False), other)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("seed", range(5))
def test_recurrent_networks(seed: int, kind: str, direction: str) -> None:
    drawn = Drawn(seed)
    steps, batch, size, hidden = 5, 3, 4, 2
    gates, count = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind], 2 if direction == "BIDIRECTIONAL" else 1
    x, w, r = (
        drawn.array(steps, batch, size),
        drawn.array(count, gates * hidden, size),
        drawn.array(count, gates * hidden, hidden),
    )
    bias, first = drawn.array(count, 2 * gates * hidden), drawn.array(count, batch, hidden)
    lengths = np.array([5, 2, 4], np.int32)
    activations = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}[kind] * count
    fields: dict[str, Any] = {
        "Direction": direction,
        "ActivationDescs": [{"Type": f"ACTIVATION_{each.upper()}", "Desc": {}} for each in activations],
    }
    inputs = {"InputTensor": x[None], "WeightTensor": w[None], "RecurrenceTensor": r[None]}
    inputs |= {"BiasTensor": bias[None, None], "HiddenInitTensor": first[None]}
    inputs["SequenceLengthsTensor"] = lengths.astype(np.uint32).reshape(1, 1, 1, batch)
    given: list[Array | None] = [x, w, r, bias, lengths, first]
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": DIRECTIONS[direction], "activations": activations}
    if kind == "LSTM":
        cell, peephole = drawn.array(count, batch, hidden), drawn.array(count, 3 * hidden)
        given += [cell, peephole]
        inputs |= {"CellMemInitTensor": cell[None], "PeepholeTensor": peephole[None, None]}
        fields |= {"ClipThreshold": 0.5, "UseClipThreshold": bool(seed % 2), "CoupleInputForget": False}
        attributes |= {"clip": 0.5} if seed % 2 else {}
    if kind == "GRU":
        fields["LinearBeforeReset"] = bool(seed % 2)
        attributes["linear_before_reset"] = seed % 2
    names = ["OutputSequenceTensor", "OutputSingleTensor", "OutputCellSingleTensor"][: 3 if kind == "LSTM" else 2]
    other = theirs(kind, given, len(names), **attributes)
    shaped = [other[0], *(each[None] for each in other[1:])]
    close(ours(kind, inputs, dict(zip(names, shaped, strict=True)), **fields), shaped)
