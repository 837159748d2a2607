"""Operators that move a window over spatial dimensions: convolutions, pooling, and their like."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final, NamedTuple

from dml_tile.back_ends.descriptions.node import (
    SPATIAL,
    Described,
    Descriptions,
    KernelNode,
    NotDescribedError,
    Table,
    Tensor,
    at_least,
    channels,
    require,
    table_of,
    unary,
)
from dml_tile.back_ends.descriptions.quantised import uniform
from dml_tile.back_ends.descriptions.rows import name_of
from dml_tile.directml.enums import UINT_MAX

_NHWC_TO_NCHW: Final = (0, 3, 1, 2)
_SAME: Final = ("SAME_UPPER", "SAME_LOWER")


class _Window(NamedTuple):
    """The fields of a window, a value for each spatial dimension."""

    strides: list[int]
    dilations: list[int]
    size: list[int]
    start: list[int]
    end: list[int]

    def fields(self, count: int) -> dict[str, list[int]]:
        """Return the fields, raised to ``count`` spatial dimensions by ones and zeros in front."""
        more = count - len(self.size)
        names = {"Strides": 1, "Dilations": 1, "WindowSize": 1, "StartPadding": 0, "EndPadding": 0}
        return {name: [fill] * more + values for (name, fill), values in zip(names.items(), self, strict=True)}

    def of_convolution(self) -> dict[str, list[int]]:
        """Return the fields of a convolution, of two spatial dimensions at least, which has no WindowSize."""
        fields = self.fields(max(2, len(self.size)))
        del fields["WindowSize"]
        return fields


def _spatial(shape: Sequence[int]) -> list[int]:
    """Return the spatial sizes of a shape of a batch and channels."""
    require(3 <= len(shape) <= 5, f"an input of {len(shape)} dimensions; 3 to 5 are taken")
    return [*shape[2:]]


_POSITIVE_SINCE: Final = (1, 26)
_COUNTED_SINCE: Final = (1, 30)


def _window(node: KernelNode, spatial: Sequence[int], weights: Sequence[int] | None = None) -> _Window:
    count = len(spatial)
    given = node.integer_list("strides", [1] * count), node.integer_list("dilations", [1] * count)
    strides, dilations = (values[:count] for values in given)
    if node.release >= _POSITIVE_SINCE:
        require(min(strides + dilations) > 0, "strides and dilations must be positive, as of 1.26")
    kernel = node.integer_list("kernel_shape", [*(weights or ())] or [1] * count)
    if node.release >= _COUNTED_SINCE and node.attribute("kernel_shape"):
        require(len(kernel) == count, f"kernel_shape has {len(kernel)} values for {count} dimensions")
    size, mode = kernel[-count:], node.attribute("auto_pad", "NOTSET")
    if mode in _SAME:
        start, end = [], []
        for length, stride, dilation, extent in zip(spatial, strides, dilations, size, strict=True):
            covered = stride * (-(-length // stride) - 1) + 1 + (extent - 1) * dilation
            padding = max(0, covered - length)
            start.append((padding + (mode == "SAME_LOWER")) // 2)
            end.append(padding - start[-1])
    else:
        pads = (node.integer_list("pads") if mode == "NOTSET" else []) or [0] * (2 * count)
        start, end = pads[:count], pads[count : 2 * count]
    window = _Window(strides, dilations, size, start, end)
    require(all(len(values) == count for values in window), f"a window of other than {count} dimensions")
    return window


def _whole(spatial: Sequence[int]) -> _Window:
    """Return the window of a global pool."""
    count = len(spatial)
    return _Window([1] * count, [1] * count, [*spatial], [0] * count, [0] * count)


_ODD_ELEMENT_MOVED: Final = (1, 13)
"""The release from which on SAME_UPPER with an output_shape pads the end by the odd element; before, the start."""


def _fit_to_output(node: KernelNode, window: _Window, spatial: Sequence[int]) -> None:
    """Pad a ConvTranspose's window as its output_shape asks, or require that its own shape is the graph's."""
    wanted, sizes = node.integer_list("output_shape"), zip(spatial, *window, strict=True)
    if wanted:
        starts_small = (node.attribute("auto_pad") == "SAME_UPPER") == (node.release >= _ODD_ELEMENT_MOVED)
        require(len(wanted) >= len(spatial), f"output_shape has {len(wanted)} values for {len(spatial)} dimensions")
        pairs = zip(wanted[-len(spatial) :], sizes, strict=True)
        for i, (want, (length, stride, _, extent, _, _)) in enumerate(pairs):
            require(want >= length, f"an output_shape of {want}, smaller than the input's {length}")
            padding = max(0, (length - 1) * stride + extent - want)
            window.start[i] = (padding + (not starts_small)) // 2
            window.end[i] = padding - window.start[i]
        return
    more = node.integer_list("output_padding", [0] * len(spatial))
    if node.release >= _COUNTED_SINCE:
        require(len(more) == len(spatial), f"output_padding has {len(more)} values for {len(spatial)} dimensions")
    own = [
        (length - 1) * stride + (extent - 1) * dilation + 1 + extra - start - end
        for (length, stride, dilation, extent, start, end), extra in zip(sizes, more, strict=False)
    ]
    # with SAME and a stride, it is Conv's
    require(own == node.output_shape()[2:], f"its own shape {own} is not the graph's")


def _convolution(node: KernelNode, bias: int = 2) -> Descriptions:
    is_forward = node.operator == "Conv"
    spatial = _spatial(node.shape())
    window = _window(node, spatial, node.shape(1)[2:])
    if not is_forward:
        _fit_to_output(node, window, spatial)
    source, weights, result = node.input(align=SPATIAL), node.input(1, align=SPATIAL), node.output(align=SPATIAL)
    return [_convolved(node, window, (source, weights, result), node.optional(bias, align=channels(len(source.sizes))))]


def _convolved(
    node: KernelNode, window: _Window, tensors: tuple[Tensor, Tensor, Tensor], bias: Tensor | None
) -> Described:
    source, weights, result = tensors
    fields = window.of_convolution()
    direction = "BACKWARD" if "Transpose" in node.operator else "FORWARD"
    modes = {"Mode": "CROSS_CORRELATION", "Direction": direction, "GroupCount": node.attribute("group", 1)}
    padding = [0] * len(fields["Strides"])
    tensor_fields = {"FilterTensor": weights, "BiasTensor": bias, "OutputPadding": padding}
    return unary("CONVOLUTION", source, result, **tensor_fields, **modes, **fields)


def _dynamic_pads(node: KernelNode) -> Descriptions:
    """Describe ConvTransposeWithDynamicPads, whose bias is input 3."""
    pads = node.integers(2)
    require(len(pads) == 4 and min(pads) >= 0, f"the pads {pads}; four, none of them negative, are taken")
    attributes = {**node.attributes, "pads": pads, "auto_pad": "NOTSET"}
    return _convolution(node._replace(operator="ConvTranspose", attributes=attributes), bias=3)


def _nhwc_convolution(node: KernelNode) -> Descriptions:
    ranks = [len(node.shape(i)) for i in range(2)]
    require(max(ranks) <= 4, f"an input of {max(ranks)} dimensions; 4 are taken")
    if ranks != [4, 4]:
        raise NotDescribedError("an NhwcConv of three dimensions")
    spatial, kernel = (node.shape(i)[1:3] for i in range(2))
    source, weights, result = (each.permuted(_NHWC_TO_NCHW) for each in (node.input(0), node.input(1), node.output()))
    bias = node.optional(2, align=channels())
    return [_convolved(node, _window(node, spatial, kernel), (source, weights, result), bias)]


def _quantised_convolution(node: KernelNode) -> Descriptions:
    is_linear = node.operator == "QLinearConv"
    shape, weights = node.shape(), node.shape(3 if is_linear else 1)
    if is_linear:
        require(3 <= len(shape) <= 4, f"an input of {len(shape)} dimensions; 3 or 4 are taken")
    window = _window(node, _spatial(shape), weights[2:])
    fields, right = window.of_convolution(), at_least(4)
    along = channels(len(fields["Strides"]) + 2)
    if not is_linear:
        inputs = {"InputZeroPointTensor": (2, right), "FilterTensor": (1, SPATIAL), "FilterZeroPointTensor": (3, along)}
    else:
        inputs = {
            "InputScaleTensor": (1, right),
            "InputZeroPointTensor": (2, right),
            "FilterTensor": (3, SPATIAL),
            "FilterScaleTensor": (4, along),
            "FilterZeroPointTensor": (5, along),
            "BiasTensor": (8, along),
            "OutputScaleTensor": (6, right),
            "OutputZeroPointTensor": (7, right),
        }
    tensors = {name: node.optional(i, align=align) for name, (i, align) in inputs.items()}
    if is_linear:
        # it looks at inputs 7 and 8 to see if the output's scale and zero point, which are 6 and 7, are uniform
        looked_at = {"InputScaleTensor": 1, "InputZeroPointTensor": 2, "FilterScaleTensor": 4}
        looked_at |= {"FilterZeroPointTensor": 5, "OutputScaleTensor": 7, "OutputZeroPointTensor": 8}
        tensors |= {name: uniform(node, tensors[name], i) for name, i in looked_at.items()}
    group = {"GroupCount": node.attribute("group", 1)}
    return [unary(name_of(node), node.input(align=SPATIAL), node.output(align=SPATIAL), **tensors, **fields, **group)]


_DILATED_SINCE: Final = (1, 17)
"""The release from which on pools other than MaxPool have dilations."""
_INDICES_AS_THEY_ARE: Final = (1, 11)
"""The release from which on 64-bit indices are described as such; before, as strided ones of 32 bits."""


def require_plain_indices(node: KernelNode) -> None:
    """Raise NotDescribedError for a release that describes 64-bit integers as strided ones of 32 bits."""
    if node.release < _INDICES_AS_THEY_ARE:
        raise NotDescribedError("64-bit integers before onnxruntime 1.11")


def _pooling(node: KernelNode) -> Descriptions:
    spatial, source, result = _spatial(node.shape()), node.input(), node.output()
    kind, is_global = node.operator.removeprefix("Global").removesuffix("Pool"), node.operator.startswith("Global")
    window = _whole(spatial) if is_global else _window(node, spatial)
    is_dilated = any(dilation != 1 for dilation in window.dilations)
    fields: dict[str, Any] = dict(window.fields(len(source.sizes) - 2))
    if kind == "Average":
        fields["IncludePadding"] = bool(node.attribute("count_include_pad", 0))
    if kind == "Lp":
        fields["P"] = node.attribute("p", 2)
    if kind == "Max" and not is_global and (is_dilated or node.gives(1)):
        indices = None
        if node.gives(1):
            require_plain_indices(node)
            indices = node.output(1).unsigned
        return [unary("MAX_POOLING2", source, result, OutputIndicesTensor=indices, **fields)]
    if is_dilated and node.release >= _DILATED_SINCE:
        return [unary(f"{kind.upper()}_POOLING1", source, result, **fields)]
    del fields["Dilations"]
    return [unary(f"{kind.upper()}_POOLING", source, result, **fields)]


def _qlinear_average_pool(node: KernelNode) -> Descriptions:
    """Describe QLinearAveragePool and QLinearGlobalAveragePool, whose strides are always written."""
    shape, is_last, source = node.shape(), bool(node.attribute("channels_last", 0)), node.input()
    rank = len(source.sizes)
    order = [0, rank - 1, *range(1, rank - 1)] if is_last else [*range(rank)]
    spatial = _spatial([*shape[:1], *shape[-1:], *shape[1:-1]] if is_last else shape)
    window = _whole(spatial) if "Global" in node.operator else _window(node, spatial)
    names = ("InputScaleTensor", "InputZeroPointTensor", "OutputScaleTensor", "OutputZeroPointTensor")
    given = {name: node.optional(i, align=at_least(rank)) for i, name in enumerate(names, 1)}
    tensors = {name: uniform(node, made and made.permuted(order), i) for i, (name, made) in enumerate(given.items(), 1)}
    fields = {**window.fields(rank - 2), "IncludePadding": bool(node.attribute("count_include_pad", 0))}
    return [unary(name_of(node), source.permuted(order), node.output().permuted(order), **tensors, **fields)]


def _max_unpool(node: KernelNode) -> Descriptions:
    require_plain_indices(node)
    if node.has(2):
        node.elements(2)
    return [unary("MAX_UNPOOLING", node.input(), node.output(), IndicesTensor=node.input(1).unsigned)]


def _max_roi_pool(node: KernelNode) -> Descriptions:
    height, width = node.attribute("pooled_shape")
    fields = {"SpatialScale": node.attribute("spatial_scale", 1.0), "PooledSize": {"Height": height, "Width": width}}
    return [unary("ROI_POOLING", node.input(), node.output(), ROITensor=node.input(1), **fields)]


def _roi_align(node: KernelNode) -> Descriptions:
    require_plain_indices(node)
    samples, mode = node.attribute("sampling_ratio", 0), node.attribute("mode", "avg")
    coordinates = node.attribute("coordinate_transformation_mode", "half_pixel")  # for version 10 too, which has none
    require(samples >= 0, f"a sampling_ratio of {samples}")
    is_known = coordinates in ("half_pixel", "output_half_pixel") and mode in ("avg", "max")
    require(is_known, f"the mode {mode} or the coordinate_transformation_mode {coordinates}")
    scale, name = node.attribute("spatial_scale", 1.0), name_of(node)
    fields = {
        "ReductionFunction": {"avg": "AVERAGE", "max": "MAX"}[mode],
        "InterpolationMode": "LINEAR",
        "SpatialScaleX": scale,
        "SpatialScaleY": scale,
        "OutOfBoundsInputValue": 0.0,
        "MinimumSamplesPerOutput": samples or 1,
        "MaximumSamplesPerOutput": samples or UINT_MAX,
    }
    if name == "ROI_ALIGN1":
        offset = 0.5 if coordinates == "half_pixel" else 0.0
        fields |= {"InputPixelOffset": offset, "OutputPixelOffset": -0.5, "AlignRegionsToCorners": False}
    tensors = {"ROITensor": node.input(1), "BatchIndicesTensor": node.input(2).unsigned}
    return [unary(name, node.input(), node.output(), **tensors, **fields)]


def _col2im(node: KernelNode) -> Descriptions:
    """Describe Col2Im; the end's padding is not read: the start's counts twice."""
    image, block = node.integers(1), node.integers(2)
    count = len(block)
    dilations, strides = (node.integer_list(name, [1] * count) for name in ("dilations", "strides"))
    pads = node.integer_list("pads", [0] * 2 * count)
    require(len(dilations) == len(strides) == count, "dilations or strides of another count than the block's")
    require(len(pads) == 2 * count, f"{len(pads)} pads; {2 * count} are taken")
    shape = node.shape()
    own = [shape[0], shape[1] // prod(block), *image]
    require(own == node.output_shape(), f"its own shape {own} is not the graph's")
    start = {"StartPadding": pads[:count], "EndPadding": pads[:count]}
    fields = {"WindowSizes": block, "Strides": strides, "Dilations": dilations, **start}
    return [unary("FOLD", node.input(align=at_least(3)), node.output(align=at_least(3)), **fields)]


WINDOWS: Final[Table] = {
    **table_of(
        {
            "Conv ConvTranspose": _convolution,
            "QLinearConv ConvInteger": _quantised_convolution,
            "MaxPool AveragePool LpPool GlobalMaxPool GlobalAveragePool GlobalLpPool": _pooling,
            "MaxUnpool": _max_unpool,
            "MaxRoiPool": _max_roi_pool,
            "RoiAlign": _roi_align,
            "Col2Im": _col2im,
        }
    ),
    **table_of(
        {
            "ConvTransposeWithDynamicPads": _dynamic_pads,
            "NhwcConv": _nhwc_convolution,
            "QLinearAveragePool QLinearGlobalAveragePool": _qlinear_average_pool,
        },
        "com.microsoft",
    ),
}
