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
from dml_tile.directml.operators import OperatorRow, enumerations

_SOFT: Final = ("SOFTMAX", "LOG_SOFTMAX", "HARDMAX")

Fields = dict[str, Any]
"""The fields of an operator's struct, or some of them, in C names; a tensor is given by its sizes."""


@dataclass
class Draw:
    """What the descriptors of all operators are made of."""

    random: Random
    rank: int
    counts: Mapping[str, int]
    """The dimension counts of tensors by their fields."""
    sizes: list[int] = field(init=False)
    axis: int = field(init=False)
    small: int = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = self.numbers(self.rank, 1, 3)
        self.axis, self.small = self.random.randrange(self.rank), self.number(1, 3)

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def numbers(self, count: int, low: int, high: int) -> list[int]:
        return [self.number(low, high) for _ in range(count)]

    def some(self, count: int, *choices: int) -> list[int]:
        """Numbers of these, which may be named more than once to be chosen more often."""
        return self.random.choices(choices, k=count)

    def along_axis(self, size: int) -> list[int]:
        """The sizes, with another along the axis."""
        return [size if i == self.axis else other for i, other in enumerate(self.sizes)]


def _all(names: str, sizes: Sequence[int]) -> Fields:
    return {name + "Tensor": sizes for name in names.split()}


def _windows(inputs: Sequence[int], attributes: Mapping[str, Sequence[int]]) -> list[int]:
    """How many windows fit into each padded size, beginning a stride apart."""
    names = ("StartPadding", "EndPadding", "WindowSize", "Dilations", "Strides")
    each = zip(inputs, *(attributes[name] for name in names), strict=True)
    return [
        (size + start + end - (window - 1) * dilation - 1) // stride + 1
        for size, start, end, window, dilation, stride in each
    ]


def _pooling(
    draw: Draw, large: str = "Input", small: str = "Output OutputIndices", *, is_dilated: bool = True
) -> Fields:
    n = max(0, draw.rank - 2)
    outer = draw.numbers(2, 1, 3)[: draw.rank]
    dilations = draw.some(n, 1, 1, 2, 3) if is_dilated else [1] * n
    attributes = {
        "Strides": draw.numbers(n, 1, 4),
        "WindowSize": draw.numbers(n, 1, 5),
        "Dilations": dilations,
        "StartPadding": draw.some(n, 0, 0, 1, 2, 5),
        "EndPadding": draw.some(n, 0, 0, 1, 2, 5),
    }
    inputs = [
        max(draw.number(1, 9), (window - 1) * dilation + 1)
        for window, dilation in zip(attributes["WindowSize"], dilations, strict=True)
    ]
    scales = [1, *outer[1:], 1, 1] if draw.random.random() < 0.5 else [1]
    quantized = _all("InputScale InputZeroPoint OutputScale OutputZeroPoint", scales)
    outputs = outer + _windows(inputs, attributes)
    return {**_all(large, outer + inputs), **_all(small, outputs), **attributes, **quantized}


def _convolution(draw: Draw, *, is_directed: bool = True) -> Fields:
    n = max(0, draw.rank - 2)
    (groups,), batch = draw.some(1, 1, 1, 2, 3), draw.number(1, 3)
    group_filters, filter_channels = draw.numbers(2, 1, 3)
    is_backward = is_directed and draw.random.random() < 0.4
    filters, channels = groups * group_filters, groups * filter_channels
    attributes = {
        "Strides": draw.numbers(n, 1, 3),
        "WindowSize": draw.numbers(n, 1, 4),
        "Dilations": draw.some(n, 1, 1, 2, 3),
        "StartPadding": draw.some(n, 0, 0, 1, 2),
        "EndPadding": draw.some(n, 0, 0, 1, 2),
    }
    windows = attributes.pop("WindowSize")
    extents = [(window - 1) * each + 1 for window, each in zip(windows, attributes["Dilations"], strict=True)]
    small = draw.numbers(n, 1, 4)
    padding = draw.some(n, 0, 0, 0, 1) if is_backward else [0] * n
    each = zip(small, extents, *(attributes[name] for name in ("Strides", "StartPadding", "EndPadding")), strict=True)
    large = [max(1, (size - 1) * stride + extent - start - end) for size, extent, stride, start, end in each]
    padding = [more if size > more else 0 for size, more in zip(large, padding, strict=True)]
    outputs = channels if is_backward else filters
    inputs, outer = ([filters, *small], [channels, *large]) if is_backward else ([channels, *large], [filters, *small])
    scales = {
        f"Filter{kind}Tensor": ([1, outputs, 1, 1] if is_wide else [1] * 4)[: draw.counts.get(f"Filter{kind}Tensor")]
        for is_wide in [draw.random.random() < 0.5]
        for kind in ("Scale", "ZeroPoint")
    }
    return {
        "InputTensor": [batch, *inputs][: draw.rank],
        "FilterTensor": [filters, filter_channels, *windows][: draw.rank],
        "BiasTensor": [1, outputs, *[1] * n][: draw.rank],
        "OutputTensor": [batch, *outer][: draw.rank],
        **attributes,
        "OutputPadding": padding,
        "GroupCount": groups,
        "Direction": int(is_backward),
        **scales,
    }


def _matrices(draw: Draw, *, is_transposable: bool = False) -> Fields:
    rows, inner, columns = draw.numbers(3, 1, 4)
    batch = draw.sizes[:-2]
    of_rows, of_columns = ([size, 1] if draw.random.random() < 0.5 else [1] for size in (rows, columns))
    transposed_a, transposed_b = draw.some(2, 0, 0, 1) if is_transposable else (0, 0)
    return {
        "ATensor": [*batch, *([inner, rows] if transposed_a else [rows, inner])],
        "BTensor": [*batch, *([columns, inner] if transposed_b else [inner, columns])],
        **_all("C Bias Output", [*batch, rows, columns]),
        **_all("AScale AZeroPoint OutputScale OutputZeroPoint", of_rows if draw.rank > 1 else [1]),
        **_all("BScale BZeroPoint", of_columns[:1]),
        "TransA": transposed_a,
        "TransB": transposed_b,
    }


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


def _regions(draw: Draw, image: str = "Input", of_regions: str = "Output", coordinates: int = 4) -> Fields:
    (batch, channels, regions), output = draw.numbers(3, 1, 3), draw.numbers(2, 1, 3)
    least = draw.number(1, 4)
    return {
        **_all("ROI OutputROIGradient", [regions, coordinates]),
        "BatchIndicesTensor": [regions],
        **_all(image, [batch, channels, *draw.numbers(2, 1, 5)]),
        **_all(of_regions, [regions, channels, *output]),
        "ReductionFunction": draw.random.choice((2, 7)),
        "PooledSize": {"Width": output[1], "Height": output[0]},
        **{f"SpatialScale{axis}": draw.random.choice((1.0, 0.5, 2.0, 0.0)) for axis in ("", "X", "Y")},
        "MinimumSamplesPerOutput": least,
        "MaximumSamplesPerOutput": least + draw.number(0, 3),
    }


def _statistics(draw: Draw) -> Fields:
    alike = "Input InputGradient OutputGradient FusedAdd Output"
    others = "Mean Variance Scale Bias OutputMean OutputVariance OutputScaleGradient OutputBiasGradient"
    axes = draw.random.sample(range(draw.rank), draw.number(1, draw.rank))
    return {
        **_all(alike, draw.sizes),
        **_all(others, [draw.random.choice((1, size)) for size in draw.sizes]),
        "Axes": axes,
    }


def _coordinates(draw: Draw, output: str) -> Fields:
    """Tuples of coordinates; what they point at has what is left of the input's sizes."""
    while True:
        input_rank, indices_rank = draw.number(1, draw.rank), draw.number(1, draw.rank)
        batches = draw.random.choice((0, 0, 0, 1, 2)) if output == "Output" else 0
        if batches < min(input_rank, indices_rank):
            length = draw.number(1, input_rank - batches)
            if indices_rank - 1 + input_rank - batches - length <= draw.rank:
                break
    inputs = draw.numbers(input_rank, 1, 4)
    tuples = inputs[:batches] + draw.numbers(indices_rank - 1 - batches, 1, 4)
    whole = [1] * (draw.rank - input_rank) + inputs
    gathered = tuples + inputs[batches + length :]
    return {
        "InputTensor": whole,
        "IndicesTensor": [*tuples, length],
        **(_all("Output", whole) if output != "Output" else {}),
        f"{output}Tensor": gathered,
        "InputDimensionCount": input_rank,
        "IndicesDimensionCount": indices_rank,
        "BatchDimensionCount": batches,
    }


def _coordinates_alone(draw: Draw) -> Fields:
    """Coordinates without batches, which GATHER_ND has no field for."""
    while (fields := _coordinates(draw, "Output"))["BatchDimensionCount"]:
        pass
    return fields


def _gathered(draw: Draw) -> Fields:
    axis = draw.axis
    count = draw.number(1, 1 + min(axis, draw.number(0, 2)))
    inputs = [1] * (count - 1) + draw.sizes[count - 1 :]
    indices = draw.numbers(count, 1, 4)
    whole = inputs[:axis] + indices + inputs[axis + 1 :]
    return {
        "InputTensor": inputs,
        "IndicesTensor": indices,
        "OutputTensor": whole[count - 1 :],
        "IndexDimensions": count,
    }


def _gathered_elements(draw: Draw, result: str) -> Fields:
    indices = draw.along_axis(draw.number(1, draw.sizes[draw.axis]))
    return {"InputTensor": draw.sizes, **_all(f"Indices {result}", indices)}


def _window(draw: Draw, large: str = "Input", small: str = "Output", *, is_reversible: bool = True) -> Fields:
    inputs = draw.numbers(draw.rank, 1, 8)
    windows = [draw.number(1, size) for size in inputs]
    strides = draw.some(draw.rank, 1, 1, 2, 3, 5, *((-1, -2, -7) if is_reversible else ()))
    sizes = [-(-window // abs(stride)) for window, stride in zip(windows, strides, strict=True)]
    offsets = [draw.number(0, size - window) for size, window in zip(inputs, windows, strict=True)]
    return {
        **_all(large, inputs),
        **_all(small, sizes),
        "InputWindowOffsets": offsets,
        "InputWindowSizes": windows,
        "InputWindowStrides": strides,
        "Offsets": offsets,
        "Sizes": sizes,
        "Strides": strides,
    }


def _scaled(draw: Draw, large: str = "Input", small: str = "Output") -> Fields:
    inputs = draw.numbers(draw.rank, 1, 6)
    scales = [draw.random.choice((1.0, 1.0, 2.0, 0.5, 1.5, 3.0, 0.25)) for _ in inputs]
    return {
        **_all(large, inputs),
        **_all(small, [max(1, math.floor(size * scale)) for size, scale in zip(inputs, scales, strict=True)]),
        "Scales": scales,
        "InputPixelOffsets": [draw.random.choice((0.5, -0.5, 0.0, 7.0)) for _ in inputs],
        "OutputPixelOffsets": [draw.random.choice((0.5, -0.5, 0.0, 0.3)) for _ in inputs],
    }


def _blocks(draw: Draw, deep: str, flat: str) -> Fields:
    (channels, height, width), block = draw.numbers(3, 1, 3), draw.number(1, 3)
    return {
        deep: [draw.small, channels * block * block, height, width],
        flat: [draw.small, channels, height * block, width * block],
        "BlockSize": block,
    }


def _padded(draw: Draw) -> Fields:
    start, end = (draw.some(draw.rank, 0, 0, 1, 2, 6) for _ in range(2))
    output = [sum(sizes) for sizes in zip(draw.sizes, start, end, strict=True)]
    return {"OutputTensor": output, "StartPadding": start, "EndPadding": end}


def _enlarged(draw: Draw) -> Fields:
    height, width = draw.numbers(2, 1, 4)
    scales = [*[1] * 6, height, width][-draw.rank :]
    output = [size * scale for size, scale in zip(draw.sizes, scales, strict=True)]
    return {"OutputTensor": output, "ScaleSize": {"Width": width, "Height": height}}


def _top(draw: Draw) -> Fields:
    k = draw.number(1, draw.sizes[draw.axis])
    return {**_all("OutputValue OutputIndex", draw.along_axis(k)), "K": k}


def _joined(draw: Draw, one: str, many: str) -> Fields:
    whole = draw.along_axis(draw.sizes[draw.axis] + draw.small)
    return {one: whole, many: [draw.sizes, draw.along_axis(draw.small)]}


_QUERIES: Final = (
    ("Query", "Key", "Value"),
    ("Query", "Key", "Value"),
    ("StackedQueryKey", "Value"),
    ("Query", "StackedKeyValue"),
    ("StackedQueryKeyValue",),
    ("Query", "PastKey", "PastValue"),
)
"""The tensors with the query, the keys and the values."""


def _attention(draw: Draw) -> Fields:
    batch, queries, keys, heads, size, past = draw.numbers(6, 1, 3)
    chosen = {*draw.random.choice(_QUERIES)}
    if {"StackedQueryKey", "StackedQueryKeyValue"} & chosen:
        keys = queries
    if "PastKey" in chosen:
        keys = 0
    elif draw.random.random() < 0.3:
        chosen |= {"PastKey", "PastValue"}
    is_tied = {"StackedKeyValue", "StackedQueryKeyValue"} & chosen and "PastValue" not in chosen
    value_size = size if is_tied else draw.number(1, 3)
    total = keys + (past if "PastKey" in chosen else 0)
    chosen |= {name for name in ("OutputPresentKey", "OutputPresentValue", "RelativePositionBias") if draw.number(0, 1)}
    if keys and draw.number(0, 1):
        chosen.add("Bias")
    mask_type = draw.number(0, 4)
    masks: Sequence[Sequence[int]] = ([], [1, batch], [2, batch], [3 * batch + 2], [batch, heads, queries, total])
    if mask_type and draw.number(0, 2):
        chosen.add("Mask")
    shapes = {
        "Query": [batch, queries, heads * size],
        "Key": [batch, keys, heads * size],
        "Value": [batch, keys, heads * value_size],
        "StackedQueryKey": [batch, queries, heads, 2, size],
        "StackedKeyValue": [batch, keys, heads, 2, size],
        "StackedQueryKeyValue": [batch, queries, heads, 3, size],
        "Bias": [2 * heads * size + heads * value_size],
        "Mask": masks[mask_type],
        "RelativePositionBias": [batch, heads, queries, total],
        "PastKey": [batch, heads, past, size],
        "PastValue": [batch, heads, past, value_size],
        "OutputPresentKey": [batch, heads, total, size],
        "OutputPresentValue": [batch, heads, total, value_size],
    }
    if "Mask" in chosen and len(masks[mask_type]) > draw.counts["MaskTensor"]:
        chosen.remove("Mask")
    tensors = {f"{name}Tensor": sizes if name in chosen else None for name, sizes in shapes.items()}
    return {**tensors, "OutputTensor": [batch, queries, heads * value_size], "HeadCount": heads, "MaskType": mask_type}


BASES: Final[Mapping[str, Callable[[Draw], Fields]]] = {
    **dict.fromkeys(("ARGMAX", "ARGMIN", "REDUCE"), lambda d: {"OutputTensor": d.along_axis(1), "Axes": [d.axis]}),
    **dict.fromkeys(
        ("AVERAGE_POOLING", "LP_POOLING", "MAX_POOLING", "MAX_POOLING1"), lambda d: _pooling(d, is_dilated=False)
    ),
    **dict.fromkeys(("AVERAGE_POOLING1", "LP_POOLING1", "MAX_POOLING2", "QUANTIZED_LINEAR_AVERAGE_POOLING"), _pooling),
    **dict.fromkeys(
        ("CONVOLUTION_INTEGER", "QUANTIZED_LINEAR_CONVOLUTION"), lambda d: _convolution(d, is_directed=False)
    ),
    **dict.fromkeys(("MATRIX_MULTIPLY_INTEGER", "MATRIX_MULTIPLY_INTEGER_TO_FLOAT"), _matrices),
    **dict.fromkeys(("BATCH_NORMALIZATION", "BATCH_NORMALIZATION_GRAD", "MEAN_VARIANCE_NORMALIZATION"), _statistics),
    **dict.fromkeys(("BATCH_NORMALIZATION_TRAINING", "BATCH_NORMALIZATION_TRAINING_GRAD"), _statistics),
    **dict.fromkeys(
        ("ELEMENT_WISE_DEQUANTIZE_LINEAR", "ELEMENT_WISE_QUANTIZE_LINEAR"), lambda d: _all("Scale ZeroPoint", d.sizes)
    ),
    "RESAMPLE": _scaled,
    "RESAMPLE_GRAD": lambda d: _scaled(d, "OutputGradient", "InputGradient"),
    **dict.fromkeys((f"ACTIVATION_{name}1" for name in _SOFT), lambda d: {"Axes": [d.axis]}),
    **dict.fromkeys((f"ACTIVATION_{name}" for name in _SOFT), lambda d: _all("Input Output", d.sizes[-2:])),
    "ACTIVATION_SOFTPLUS": lambda d: {"Steepness": 1.0},
    "ADAM_OPTIMIZER": lambda d: {"TrainingStepTensor": [1]},
    "AVERAGE_POOLING_GRAD": lambda d: _pooling(d, "OutputGradient", "InputGradient", is_dilated=False),
    "CONVOLUTION": _convolution,
    "DEPTH_TO_SPACE": lambda d: _blocks(d, "InputTensor", "OutputTensor"),
    "DIAGONAL_MATRIX": lambda d: {"Offset": d.number(-4, 4)},
    "DIAGONAL_MATRIX1": lambda d: {f"DiagonalFill{end}": d.number(-4, 4) for end in ("Begin", "End")},
    "GATHER": _gathered,
    "GATHER_ELEMENTS": lambda d: _gathered_elements(d, "Output"),
    "GATHER_ND": _coordinates_alone,
    "GATHER_ND1": lambda d: _coordinates(d, "Output"),
    "GEMM": lambda d: _matrices(d, is_transposable=True),
    "GRU": lambda d: _recurrent(d, 3, "SIGMOID", "TANH"),
    "JOIN": lambda d: _joined(d, "OutputTensor", "InputTensors"),
    "LP_NORMALIZATION": lambda d: {"P": d.number(1, 2)},
    "LSTM": lambda d: _recurrent(d, 4, "SIGMOID", "TANH", "TANH"),
    "MAX_POOLING_GRAD": lambda d: _pooling(d, "Input OutputGradient", "InputGradient"),
    "MULTIHEAD_ATTENTION": _attention,
    "NONZERO_COORDINATES": lambda d: _all("OutputCount", [1]) | _all("OutputCoordinates", [math.prod(d.sizes), d.rank]),
    "ONE_HOT": lambda d: {"IndicesTensor": d.along_axis(1), "ValuesTensor": [d.number(2, 3)]},
    "PADDING": _padded,
    "QUANTIZED_LINEAR_MATRIX_MULTIPLY": _matrices,
    "RANDOM_GENERATOR": lambda d: _all("InputState OutputState", [6]),
    "REVERSE_SUBSEQUENCES": lambda d: {"SequenceLengthsTensor": d.along_axis(1)},
    "RNN": lambda d: _recurrent(d, 1, "TANH"),
    "ROI_ALIGN": _regions,
    "ROI_ALIGN_GRAD": lambda d: _regions(d, "Input OutputGradient", "InputGradient"),
    "ROI_POOLING": lambda d: _regions(d, coordinates=5),
    "SCATTER": lambda d: _gathered_elements(d, "Updates") | _all("Output", d.sizes),
    "SCATTER_ND": lambda d: _coordinates(d, "Updates"),
    "SLICE": lambda d: _window(d, is_reversible=False),
    "SLICE1": _window,
    "SLICE_GRAD": lambda d: _window(d, "OutputGradient", "InputGradient"),
    "SPACE_TO_DEPTH": lambda d: _blocks(d, "OutputTensor", "InputTensor"),
    "SPLIT": lambda d: _joined(d, "InputTensor", "OutputTensors"),
    "TILE": lambda d: {"OutputTensor": [2 * size for size in d.sizes], "Repeats": [2] * d.rank},
    "TOP_K": _top,
    "UPSAMPLE_2D": _enlarged,
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
    operator: OperatorRow, level: FeatureLevel, random: Random, counts: Mapping[str, int], types: Mapping[str, int]
) -> Fields:
    """A valid descriptor's fields, with tensors of these dimension counts and data types.

    Totals, and the counts of arrays, are left out.
    """
    tensors = [each.name for each in operator.fields if each.is_tensor]
    primary = next((name for name in ("InputTensor", "ATensor", "OutputTensor") if name in tensors), tensors[0])
    draw = Draw(random, 4 if operator.name in FOUR else counts[primary], counts)
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
