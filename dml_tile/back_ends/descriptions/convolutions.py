"""Convolutions, and Col2Im."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from dml_tile.back_ends.descriptions.created import Described, Descriptions, unary
from dml_tile.back_ends.descriptions.node import KernelNode, Table, table_of
from dml_tile.back_ends.descriptions.quantised import uniform
from dml_tile.back_ends.descriptions.refusals import NotDescribed, require
from dml_tile.back_ends.descriptions.rows import name_of
from dml_tile.back_ends.descriptions.tensors import SPATIAL, Tensor, at_least, channels
from dml_tile.back_ends.descriptions.windows import COUNTED_SINCE, Window, spatial_of, window_of

_NHWC_TO_NCHW: Final = (0, 3, 1, 2)

_ODD_ELEMENT_MOVED: Final = (1, 13)
"""The release from which on SAME_UPPER with an output_shape pads the end by the odd element; before, the start."""


def _fit_to_output(node: KernelNode, window: Window, spatial: Sequence[int]) -> None:
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
    if node.release >= COUNTED_SINCE:
        require(len(more) == len(spatial), f"output_padding has {len(more)} values for {len(spatial)} dimensions")
    own = [
        (length - 1) * stride + (extent - 1) * dilation + 1 + extra - start - end
        for (length, stride, dilation, extent, start, end), extra in zip(sizes, more, strict=False)
    ]
    # with SAME and a stride, it is Conv's
    require(own == node.output_shape()[2:], f"its own shape {own} is not the graph's")


def _convolution(node: KernelNode, bias: int = 2) -> Descriptions:
    is_forward = node.operator == "Conv"
    spatial = spatial_of(node.shape())
    window = window_of(node, spatial, node.shape(1)[2:])
    if not is_forward:
        _fit_to_output(node, window, spatial)
    source, weights, result = node.input(align=SPATIAL), node.input(1, align=SPATIAL), node.output(align=SPATIAL)
    return [_convolved(node, window, (source, weights, result), node.optional(bias, align=channels(len(source.sizes))))]


def _convolved(
    node: KernelNode, window: Window, tensors: tuple[Tensor, Tensor, Tensor], bias: Tensor | None
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
        raise NotDescribed("an NhwcConv of three dimensions")
    spatial, kernel = (node.shape(i)[1:3] for i in range(2))
    source, weights, result = (each.permuted(_NHWC_TO_NCHW) for each in (node.input(0), node.input(1), node.output()))
    bias = node.optional(2, align=channels())
    return [_convolved(node, window_of(node, spatial, kernel), (source, weights, result), bias)]


def _quantised_convolution(node: KernelNode) -> Descriptions:
    is_linear = node.operator == "QLinearConv"
    shape, weights = node.shape(), node.shape(3 if is_linear else 1)
    if is_linear:
        require(3 <= len(shape) <= 4, f"an input of {len(shape)} dimensions; 3 or 4 are taken")
    window = window_of(node, spatial_of(shape), weights[2:])
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


CONVOLUTIONS: Final[Table] = table_of(
    {
        "Conv ConvTranspose": _convolution,
        "QLinearConv ConvInteger": _quantised_convolution,
        "Col2Im": _col2im,
        "com.microsoft:ConvTransposeWithDynamicPads": _dynamic_pads,
        "com.microsoft:NhwcConv": _nhwc_convolution,
    }
)
