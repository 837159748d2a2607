"""Resize and Upsample."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from dml_tile.back_ends.descriptions.created import Descriptions, unary
from dml_tile.back_ends.descriptions.node import KernelNode, Table, table_of
from dml_tile.back_ends.descriptions.refusals import NotDescribed, require
from dml_tile.back_ends.descriptions.rows import name_of
from dml_tile.back_ends.descriptions.tensors import MIN_DIMENSIONS, Tensor

_LARGE: Final = float(np.finfo(np.float32).max)

_NEAREST: Final = {
    "round_prefer_floor": ("INCREASING", 0.5),
    "round_prefer_ceil": ("DECREASING", -0.5),
    "floor": ("DECREASING", 0.0),
    "ceil": ("INCREASING", 0.0),
}
"""RoundingDirection, and what is added to InputPixelOffsets, by nearest_mode."""


class _Dimension(NamedTuple):
    """A dimension: its sizes, and its fields of the descriptor."""

    size: int
    result: int
    scale: float = 1.0
    input_offset: float = 0.5
    output_offset: float = -0.5


def _dimension(node: KernelNode, size: int, result: int, scale: float, roi: tuple[float, float]) -> _Dimension:
    """Return a dimension by the node's coordinate_transformation_mode; ``roi`` are its start and end."""
    mode = node.attribute("coordinate_transformation_mode", "half_pixel")
    match mode:
        case "half_pixel_symmetric":
            return _Dimension(size, result, scale, 0.5 - size / 2 * (1 - result / (scale * size)), -0.5)
        case "pytorch_half_pixel" if size <= 1:
            return _Dimension(size, result, _LARGE, 0.0, 0.0)
        case "align_corners":
            is_one = result <= 1 or size <= 1
            return _Dimension(size, result, _LARGE if is_one else (result - 1) / (size - 1), 0.0, 0.0)
        case "asymmetric":
            return _Dimension(size, result, scale, 0.0, 0.0)
        case "tf_half_pixel_for_nn":
            return _Dimension(size, result, scale, 0.0, -0.5)
        case "tf_crop_and_resize":
            start, end = roi
            if size <= 1:
                return _Dimension(size, result, 1.0, -0.5 * (start + end) * (size - 1), 0.0)
            length = max((end - start) * (size - 1), 1.0)
            return _Dimension(size, result, (result - 1) / length, -start * (size - 1), 0.0)
    require(mode in ("half_pixel", "pytorch_half_pixel"), f"the coordinate_transformation_mode {mode}")
    return _Dimension(size, result, scale)


def _numbers(node: KernelNode, i: int) -> list[float]:
    return [float(each) for each in node.elements(i)] if node.has(i) else []


def _given(node: KernelNode) -> tuple[list[float], list[float], list[int]]:
    """Return roi, scales and sizes, of which the node gives some, for each dimension; empty where it does not."""
    shape = node.shape()
    if node.operator == "Upsample" or node.since < 11:
        scales = _numbers(node, 1) if node.since >= 9 else [*map(float, node.attribute("scales") or ())]
        return [], scales, []
    roi, scales, wanted = _numbers(node, 1), _numbers(node, 2), [int(each) for each in _numbers(node, 3)]
    axes = [node.axis(axis) for axis in node.integer_list("axes")]
    if axes:
        require({len(scales), len(wanted)} <= {0, len(axes)}, f"other than {len(axes)} scales or sizes, as of axes")
        scales = scales and [scales[axes.index(i)] if i in axes else 1.0 for i in range(len(shape))]
        wanted = wanted and [wanted[axes.index(i)] if i in axes else size for i, size in enumerate(shape)]
    return roi, scales, wanted


def _resize(node: KernelNode) -> Descriptions:
    name, shape, rank = name_of(node), node.shape(), len(node.shape())
    if name == "RESAMPLE1":
        raise NotDescribed("how older releases round and offset")
    roi, scales, wanted = _given(node)
    require(not (scales and wanted), "scales and sizes at once")
    require(len(scales or wanted) == rank, f"{len(scales or wanted)} scales or sizes of {rank} dimensions")
    pairs = zip(shape, scales, strict=False)
    result = wanted or [int(np.floor(np.float32(size) * np.float32(scale))) for size, scale in pairs]
    require(result == node.output_shape(), f"its own shape {result} is not the graph's")
    if node.attribute("coordinate_transformation_mode") == "tf_crop_and_resize":
        require(len(roi) == 2 * rank, f"a roi of {len(roi)} values for {rank} dimensions")
    else:
        roi = [0.0] * 2 * rank
    if not scales:
        scales = [float(np.float32(a) / np.float32(max(b, 1))) for a, b in zip(wanted, shape, strict=True)]
    ends = zip(roi[:rank], roi[rank:], strict=True)
    rows = [_dimension(node, *row) for row in zip(shape, result, scales, ends, strict=True)]
    rows = [row for row in rows if (row.size, row.result) != (1, 1)] or rows[-1:]
    rows = [_Dimension(1, 1)] * (MIN_DIMENSIONS - len(rows)) + rows
    is_nearest = node.attribute("mode", "nearest") == "nearest"
    direction, shift = "DECREASING", 0.0
    if is_nearest:
        direction, shift = _NEAREST[node.attribute("nearest_mode") or "round_prefer_floor"]
    fields: dict[str, Any] = {
        "InterpolationMode": "NEAREST_NEIGHBOR" if is_nearest else "LINEAR",
        "Scales": [row.scale for row in rows],
        "InputPixelOffsets": [row.input_offset + shift for row in rows],
        "OutputPixelOffsets": [row.output_offset for row in rows],
        "RoundingDirection": direction,
    }
    if name == "RESAMPLE3":
        fields["Antialiased"] = bool(node.attribute("antialias", 0))
    source = Tensor(node.type(), tuple(row.size for row in rows), of=node.input(0).of)
    return [unary(name, source, Tensor(node.type(), tuple(row.result for row in rows), of=node.output().of), **fields)]


RESIZE: Final[Table] = table_of({"Resize Upsample": _resize})
