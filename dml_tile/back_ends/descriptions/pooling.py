"""Pooling, of windows and of regions."""

from __future__ import annotations

from typing import Any, Final

from dml_tile.back_ends.descriptions.created import Descriptions, unary
from dml_tile.back_ends.descriptions.node import KernelNode, Table, table_of
from dml_tile.back_ends.descriptions.quantised import uniform
from dml_tile.back_ends.descriptions.refusals import require
from dml_tile.back_ends.descriptions.rows import name_of
from dml_tile.back_ends.descriptions.tensors import at_least
from dml_tile.back_ends.descriptions.windows import spatial_of, whole_window, window_of
from dml_tile.directml.enums import UINT_MAX

_DILATED_SINCE: Final = (1, 17)
"""The release from which on pools other than MaxPool have dilations."""


def _pooling(node: KernelNode) -> Descriptions:
    spatial, source, result = spatial_of(node.shape()), node.input(), node.output()
    kind, is_global = node.operator.removeprefix("Global").removesuffix("Pool"), node.operator.startswith("Global")
    window = whole_window(spatial) if is_global else window_of(node, spatial)
    is_dilated = any(dilation != 1 for dilation in window.dilations)
    fields: dict[str, Any] = dict(window.fields(len(source.sizes) - 2))
    if kind == "Average":
        fields["IncludePadding"] = bool(node.attribute("count_include_pad", 0))
    if kind == "Lp":
        fields["P"] = node.attribute("p", 2)
    if kind == "Max" and not is_global and (is_dilated or node.gives(1)):
        indices = None
        if node.gives(1):
            node.require_plain_indices()
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
    spatial = spatial_of([*shape[:1], *shape[-1:], *shape[1:-1]] if is_last else shape)
    window = whole_window(spatial) if "Global" in node.operator else window_of(node, spatial)
    names = ("InputScaleTensor", "InputZeroPointTensor", "OutputScaleTensor", "OutputZeroPointTensor")
    given = {name: node.optional(i, align=at_least(rank)) for i, name in enumerate(names, 1)}
    tensors = {name: uniform(node, made and made.permuted(order), i) for i, (name, made) in enumerate(given.items(), 1)}
    fields = {**window.fields(rank - 2), "IncludePadding": bool(node.attribute("count_include_pad", 0))}
    return [unary(name_of(node), source.permuted(order), node.output().permuted(order), **tensors, **fields)]


def _max_unpool(node: KernelNode) -> Descriptions:
    node.require_plain_indices()
    if node.has(2):
        node.elements(2)
    return [unary("MAX_UNPOOLING", node.input(), node.output(), IndicesTensor=node.input(1).unsigned)]


def _max_roi_pool(node: KernelNode) -> Descriptions:
    height, width = node.attribute("pooled_shape")
    fields = {"SpatialScale": node.attribute("spatial_scale", 1.0), "PooledSize": {"Height": height, "Width": width}}
    return [unary("ROI_POOLING", node.input(), node.output(), ROITensor=node.input(1), **fields)]


def _roi_align(node: KernelNode) -> Descriptions:
    node.require_plain_indices()
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


POOLING: Final[Table] = table_of(
    {
        "MaxPool AveragePool LpPool GlobalMaxPool GlobalAveragePool GlobalLpPool": _pooling,
        "MaxUnpool": _max_unpool,
        "MaxRoiPool": _max_roi_pool,
        "RoiAlign": _roi_align,
        "com.microsoft:QLinearAveragePool QLinearGlobalAveragePool": _qlinear_average_pool,
    }
)
