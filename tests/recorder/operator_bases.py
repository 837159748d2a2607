"""Valid descriptors of every operator, to which faults are then added.

Attributes and sizes that a level's row does not tell are in ``BASES``: functions of what was drawn, by operator. They
leave out whatever has a default: a tensor's sizes, an axis, enumerators, and numbers. Sizes are aligned right: a
tensor of more dimensions has ones before them, of fewer none of the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.operators import Operator, enumerations

_SOFT: Final = ("SOFTMAX", "LOG_SOFTMAX", "HARDMAX")

Fields = dict[str, Any]
"""The fields of an operator's struct, or some of them, in C names; a tensor is given by its sizes."""


@dataclass
class Draw:
    """What the descriptors of all operators are made of."""

    random: Random
    rank: int
    sizes: list[int] = field(init=False)
    axis: int = field(init=False)
    small: int = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = [self.number(1, 3) for _ in range(self.rank)]
        self.axis, self.small = self.random.randrange(self.rank), self.number(1, 3)

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def numbers(self, count: int, low: int, high: int) -> list[int]:
        return [self.number(low, high) for _ in range(count)]

    def along_axis(self, size: int) -> list[int]:
        """The sizes, with another along the axis."""
        return [size if i == self.axis else other for i, other in enumerate(self.sizes)]


def _all(names: str, sizes: Sequence[int]) -> Fields:
    return {name + "Tensor": sizes for name in names.split()}


def _pooling(draw: Draw, large: str = "Input", small: str = "Output OutputIndices") -> Fields:
    n = max(0, draw.rank - 2)
    outer, inputs, windows = draw.numbers(2, 1, 2)[: draw.rank], draw.numbers(n, 3, 5), draw.numbers(n, 1, 2)
    strides, start, end = draw.numbers(n, 1, 2), *([draw.number(0, each - 1) for each in windows] for _ in range(2))
    outputs = [
        (size + before + after - window) // stride + 1
        for size, before, after, window, stride in zip(inputs, start, end, windows, strides, strict=True)
    ]
    attributes = {"Strides": strides, "WindowSize": windows, "Dilations": [1] * n}
    padding = {"StartPadding": start, "EndPadding": end}
    return {**_all(large, outer + inputs), **_all(small, outer + outputs), **attributes, **padding}


def _convolution(draw: Draw) -> Fields:
    n = max(0, draw.rank - 2)
    inputs, windows, strides, filters = draw.numbers(n, 2, 4), draw.numbers(n, 1, 2), draw.numbers(n, 1, 2), draw.small
    outputs = [(size - w) // stride + 1 for size, w, stride in zip(inputs, windows, strides, strict=True)]
    return {
        "InputTensor": [2, 2, *inputs][: draw.rank],
        "FilterTensor": [filters, 2, *windows][: draw.rank],
        "BiasTensor": [1, filters, *[1] * n][: draw.rank],
        "OutputTensor": [2, filters, *outputs][: draw.rank],
        **dict.fromkeys(("StartPadding", "EndPadding", "OutputPadding"), [0] * n),
        "Strides": strides,
        "Dilations": [1] * n,
        "Direction": 0,
    }


def _matrices(draw: Draw) -> Fields:
    rows, inner, columns = draw.numbers(3, 1, 4)
    batch = draw.sizes[:-2]
    a, b = {"ATensor": [*batch, rows, inner]}, {"BTensor": [*batch, inner, columns]}
    return {**a, **b, **_all("C Bias Output", [*batch, rows, columns]), "TransA": 0, "TransB": 0}


def _recurrent(draw: Draw, gates: int, *activations: str) -> Fields:
    (length, batch, features, hidden), direction = draw.numbers(4, 1, 3), draw.number(0, 2)
    ways = 2 if direction == 2 else 1
    return {
        "InputTensor": [1, length, batch, features],
        "WeightTensor": [1, ways, gates * hidden, features],
        "RecurrenceTensor": [1, ways, gates * hidden, hidden],
        "BiasTensor": [1, 1, ways, 2 * gates * hidden],
        "SequenceLengthsTensor": [1, 1, 1, batch],
        "PeepholeTensor": [1, 1, ways, 3 * hidden],
        "OutputSequenceTensor": [length, ways, batch, hidden],
        **_all("HiddenInit CellMemInit OutputSingle OutputCellSingle", [1, ways, batch, hidden]),
        "ActivationDescs": [{"Type": f"ACTIVATION_{name}", "Desc": {}} for name in activations * ways],
        "Direction": direction,
    }


def _regions(draw: Draw, image: str = "Input", of_regions: str = "Output") -> Fields:
    (channels, regions), output = draw.numbers(2, 1, 3), draw.numbers(2, 1, 3)
    return {
        **_all("ROI OutputROIGradient", [regions, 4]),
        "BatchIndicesTensor": [regions],
        **_all(image, [2, channels, 4, 4]),
        **_all(of_regions, [regions, channels, *output]),
        "ReductionFunction": draw.random.choice((2, 7)),
    }


def _statistics(draw: Draw) -> Fields:
    alike = "Input InputGradient OutputGradient FusedAdd Output"
    others = "Mean Variance Scale Bias OutputMean OutputVariance OutputScaleGradient OutputBiasGradient"
    return {
        **_all(alike, draw.sizes),
        **_all(others, [draw.random.choice((1, size)) for size in draw.sizes]),
        "Axes": [draw.axis],
    }


def _coordinates(draw: Draw, output: str) -> Fields:
    counts = {"InputDimensionCount": draw.rank, "IndicesDimensionCount": 1, "BatchDimensionCount": 0}
    return {"IndicesTensor": [1], **_all(output, [1, *draw.sizes[1:]]), **counts}


def _window(draw: Draw, large: str = "Input") -> Fields:
    window = {"Offsets": draw.numbers(draw.rank, 0, 1), "Sizes": draw.sizes, "Strides": [1] * draw.rank}
    return {
        **_all(large, [size + 1 for size in draw.sizes]),
        **{prefix + name: value for name, value in window.items() for prefix in ("", "InputWindow")},
    }


def _scaled(draw: Draw) -> Fields:
    pixels = {"InputPixelOffsets": [0.5] * draw.rank, "OutputPixelOffsets": [-0.5] * draw.rank}
    return {"Scales": [1.0] * draw.rank, **pixels}


def _blocks(draw: Draw, deep: str, flat: str) -> Fields:
    channels, height, width = draw.numbers(3, 1, 3)
    return {
        deep: [draw.small, channels * 4, height, width],
        flat: [draw.small, channels, height * 2, width * 2],
        "BlockSize": 2,
    }


def _padded(draw: Draw) -> Fields:
    start, end = (draw.numbers(draw.rank, 0, 2) for _ in range(2))
    output = [sum(sizes) for sizes in zip(draw.sizes, start, end, strict=True)]
    return {"OutputTensor": output, "StartPadding": start, "EndPadding": end}


def _top(draw: Draw) -> Fields:
    k = draw.number(1, draw.sizes[draw.axis])
    return {**_all("OutputValue OutputIndex", draw.along_axis(k)), "K": k}


def _joined(draw: Draw, one: str, many: str) -> Fields:
    whole = draw.along_axis(draw.sizes[draw.axis] + draw.small)
    return {one: whole, many: [draw.sizes, draw.along_axis(draw.small)]}


def _attention(draw: Draw) -> Fields:
    heads, size = draw.numbers(2, 1, 3)
    null = "StackedQueryKey StackedKeyValue StackedQueryKeyValue Bias Mask RelativePositionBias PastKey PastValue"
    alike = _all("Query Key Value Output", [draw.small, draw.number(1, 3), heads * size])
    nulls = dict.fromkeys(_all(f"{null} OutputPresentKey OutputPresentValue", []))
    return {**alike, **nulls, "HeadCount": heads, "MaskType": 0}


BASES: Final[Mapping[str, Callable[[Draw], Fields]]] = {
    **dict.fromkeys(("ARGMAX", "ARGMIN", "REDUCE"), lambda d: {"OutputTensor": d.along_axis(1), "Axes": [d.axis]}),
    **dict.fromkeys(("AVERAGE_POOLING", "LP_POOLING", "MAX_POOLING", "QUANTIZED_LINEAR_AVERAGE_POOLING"), _pooling),
    **dict.fromkeys(("CONVOLUTION", "CONVOLUTION_INTEGER", "QUANTIZED_LINEAR_CONVOLUTION"), _convolution),
    **dict.fromkeys(("GEMM", "MATRIX_MULTIPLY_INTEGER", "MATRIX_MULTIPLY_INTEGER_TO_FLOAT"), _matrices),
    **dict.fromkeys(("BATCH_NORMALIZATION", "BATCH_NORMALIZATION_GRAD", "MEAN_VARIANCE_NORMALIZATION"), _statistics),
    **dict.fromkeys(("BATCH_NORMALIZATION_TRAINING", "BATCH_NORMALIZATION_TRAINING_GRAD"), _statistics),
    **dict.fromkeys(("RESAMPLE", "RESAMPLE_GRAD"), _scaled),
    **dict.fromkeys((f"ACTIVATION_{name}1" for name in _SOFT), lambda d: {"Axes": [d.axis]}),
    **dict.fromkeys((f"ACTIVATION_{name}" for name in _SOFT), lambda d: _all("Input Output", d.sizes[-2:])),
    "ACTIVATION_SOFTPLUS": lambda d: {"Steepness": 1.0},
    "ADAM_OPTIMIZER": lambda d: {"TrainingStepTensor": [1]},
    "AVERAGE_POOLING_GRAD": lambda d: _pooling(d, "OutputGradient", "InputGradient"),
    "DEPTH_TO_SPACE": lambda d: _blocks(d, "InputTensor", "OutputTensor"),
    "GATHER": lambda d: _all("Output", d.along_axis(d.small)) | {"IndicesTensor": [d.small]},
    "GATHER_ELEMENTS": lambda d: _all("Indices Output", d.along_axis(d.small)),
    "GATHER_ND": lambda d: _coordinates(d, "Output"),
    "GRU": lambda d: _recurrent(d, 3, "SIGMOID", "TANH"),
    "JOIN": lambda d: _joined(d, "OutputTensor", "InputTensors"),
    "LP_NORMALIZATION": lambda d: {"P": d.number(1, 2)},
    "LSTM": lambda d: _recurrent(d, 4, "SIGMOID", "TANH", "TANH"),
    "MAX_POOLING_GRAD": lambda d: _pooling(d, "Input OutputGradient", "InputGradient"),
    "MULTIHEAD_ATTENTION": _attention,
    "NONZERO_COORDINATES": lambda d: _all("OutputCount", [1]) | _all("OutputCoordinates", [math.prod(d.sizes), d.rank]),
    "ONE_HOT": lambda d: {"IndicesTensor": d.along_axis(1), "ValuesTensor": [2]},
    "PADDING": _padded,
    "QUANTIZED_LINEAR_MATRIX_MULTIPLY": _matrices,
    "RANDOM_GENERATOR": lambda d: _all("InputState OutputState", [6]),
    "REVERSE_SUBSEQUENCES": lambda d: {"SequenceLengthsTensor": d.along_axis(1)},
    "RNN": lambda d: _recurrent(d, 1, "TANH"),
    "ROI_ALIGN": _regions,
    "ROI_ALIGN_GRAD": lambda d: _regions(d, "Input OutputGradient", "InputGradient"),
    "ROI_POOLING": lambda d: {
        "InputTensor": [2, d.small, 4, 4],
        "ROITensor": [3, 5],
        "OutputTensor": [3, d.small, 1, 2],
        "PooledSize": {"Width": 2, "Height": 1},
    },
    "SCATTER_ND": lambda d: _coordinates(d, "Updates"),
    "SLICE": _window,
    "SLICE_GRAD": lambda d: _window(d, "OutputGradient"),
    "SPACE_TO_DEPTH": lambda d: _blocks(d, "OutputTensor", "InputTensor"),
    "SPLIT": lambda d: _joined(d, "InputTensor", "OutputTensors"),
    "TILE": lambda d: {"OutputTensor": [2 * size for size in d.sizes], "Repeats": [2] * d.rank},
    "TOP_K": _top,
    "UPSAMPLE_2D": lambda d: {
        **_all("Output", d.sizes[:-2] + [2 * size for size in d.sizes[-2:]]),
        "ScaleSize": {"Width": 2, "Height": 2},
    },
    "VALUE_SCALE_2D": lambda d: {**_all("Input Output", [2, 3, 1, 2]), "Bias": [0.0] * 3},
}
"""By operator; a newer version, whose name ends in a digit, has the older one's unless it has its own. What the
operator has no field for is left out."""

NOT_NULL: Final = frozenset(
    {
        "ELEMENT_WISE_DEQUANTIZE_LINEAR",
        "ELEMENT_WISE_QUANTIZE_LINEAR",
        "MEAN_VARIANCE_NORMALIZATION",
        "MEAN_VARIANCE_NORMALIZATION1",
        "MULTIHEAD_ATTENTION",
        "ROI_ALIGN_GRAD",
    }
)
"""Operators that may need tensors which the header has as optional, by level or by other tensors."""

FOUR: Final = frozenset({"RNN", "LSTM", "GRU", "ROI_ALIGN", "ROI_ALIGN1", "ROI_ALIGN_GRAD", "ROI_POOLING"})
"""Operators whose sizes are those of four dimensions, whatever the first tensor has."""


def base(
    operator: Operator, level: FeatureLevel, random: Random, counts: Mapping[str, int], types: Mapping[str, int]
) -> Fields:
    """A valid descriptor's fields, with tensors of these dimension counts and data types.

    Totals, and the counts of arrays, are left out.
    """
    tensors = [each.name for each in operator.fields if each.is_tensor]
    primary = next((name for name in ("InputTensor", "ATensor", "OutputTensor") if name in tensors), tensors[0])
    draw = Draw(random, 4 if operator.name in FOUR else counts[primary])
    name = operator.name if operator.name in BASES else operator.name.rstrip("123")
    given = BASES[name](draw) if name in BASES else {}
    optional = {each.name for each in operator.fields if each.is_optional and not each.name.startswith("Output")}
    spared = optional if operator.name not in NOT_NULL else set[str]()
    made: Fields = {}
    for each in operator.fields:
        is_scalar = each.name.endswith(("ZeroPointTensor", "ScaleTensor")) and operator.name not in NOT_NULL
        value = given.get(each.name, [1] if is_scalar else draw.sizes)
        match each.kind:
            case "t" if value is None or (each.name in spared and random.random() < 0.2):
                value = None
            case "t":
                value = _tensor(types[each.name], counts[each.name], value)
            case "T":
                value = [_tensor(types[each.name], counts[each.name], sizes) for sizes in value]
            case _ if each.name in given:
                pass
            case "e" if each.enumeration == "TENSOR_DATA_TYPE":
                value = types[tensors[-1]]
            case "e":
                levels = enumerations()[each.enumeration].levels
                value = random.randrange(sum(known <= level for known in levels))
            case "u" if each.name == "Axis":
                value = draw.axis
            case "u" if each.name in operator.arrays:
                continue
            case "f" | "s":
                value = 0.5 if each.kind == "f" else None
            case kind:
                value = {"o": None}.get(kind, 1)
        made[each.name] = value
    return made


def _tensor(data_type: int, count: int, sizes: Sequence[int]) -> Fields:
    fitted = [1] * (count - len(sizes)) + list(sizes[max(0, len(sizes) - count) :])
    return {"DataType": data_type, "Flags": 0, "DimensionCount": count, "Sizes": fitted, "Strides": None}
