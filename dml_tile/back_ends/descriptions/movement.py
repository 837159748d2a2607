"""Operators that move, copy or fill elements."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from dml_tile.back_ends.descriptions.created import Described, Descriptions, operator, unary
from dml_tile.back_ends.descriptions.node import KernelNode, Table, table_of
from dml_tile.back_ends.descriptions.refusals import KnownAtRunTime, NotDescribed, require
from dml_tile.back_ends.descriptions.rows import name_of
from dml_tile.back_ends.descriptions.tensors import (
    MAX_DIMENSIONS,
    MIN_DIMENSIONS,
    OWN,
    Tensor,
    at_least,
    scalar,
    tensor,
    uints,
)
from dml_tile.directml.data_types import TensorDataType

_INT_MIN: Final = -(2**31)
_INT_MAX: Final = 2**31 - 1
_64_BITS: Final = {TensorDataType.INT64, TensorDataType.UINT64}


def _copy(node: KernelNode) -> Descriptions:
    """Describe Reshape and its like in a graph; by themselves they copy memory, or do nothing."""
    source = node.input()
    if node.operator != "Identity" and node.has(1):
        node.elements(1)
    return [unary("ELEMENT_WISE_IDENTITY", source, source.renamed(node.output().of))]


def _transpose(node: KernelNode) -> Descriptions:
    shape = node.shape()
    order = node.integer_list("perm", [*range(len(shape))][::-1])
    require(shape and sorted(order) == [*range(len(shape))], f"perm {order} of {len(shape)} dimensions")
    require(len(shape) <= MAX_DIMENSIONS, f"{len(shape)} dimensions; at most {MAX_DIMENSIONS} are taken")
    source = Tensor(node.type(), tuple(shape), of=node.input().of).permuted(order)
    return [unary("ELEMENT_WISE_IDENTITY", source, source._replace(strides=None, of=node.output().of))]


def _expand(node: KernelNode) -> Descriptions:
    node.elements(1)
    result = node.output()
    source = tensor(node.type(), result.sizes, node.input().sizes, of=node.input().of)
    return [unary("ELEMENT_WISE_IDENTITY", source, result)]


def _concat(node: KernelNode) -> Descriptions:
    parts = [node.input(i) for i in range(len(node.inputs)) if 0 not in node.shape(i)]
    if not parts:
        return []
    axis = node.dimension(node.attribute("axis"), parts[0])
    return [operator("JOIN", InputTensors=parts, OutputTensor=node.output(), Axis=axis)]


def _concat_from_sequence(node: KernelNode) -> Descriptions:
    raise KnownAtRunTime("the tensors of a sequence")


def _split(node: KernelNode) -> Descriptions:
    if node.has(1):
        node.elements(1)
    source = node.input()
    axis, parts = node.dimension(node.attribute("axis", 0), source), [node.output(i) for i in range(len(node.outputs))]
    return [operator("SPLIT", InputTensor=source, OutputTensors=parts, Axis=axis)]


_SLICE_INPUTS_SINCE: Final = 10
"""The opset from which on a Slice's numbers are inputs."""


def _slice(node: KernelNode) -> Descriptions:
    if node.release < (1, 12):
        raise NotDescribed("how older releases raise a Slice to four dimensions")
    shape, names = node.shape(), ("starts", "ends", "axes", "steps")
    are_inputs = node.since >= _SLICE_INPUTS_SINCE
    given = (node.integers(i) if are_inputs else node.integer_list(name) for i, name in enumerate(names, 1))
    starts, ends, axes, steps = given
    offsets, sizes, strides = [0] * len(shape), [*shape], [1] * len(shape)
    is_taken = len(starts) == len(ends) and {len(axes), len(steps)} <= {0, len(starts)}
    require(is_taken, "starts, ends, axes and steps of several lengths")
    require(axes or len(starts) <= len(shape), f"{len(starts)} starts of {len(shape)} dimensions")
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis, step = node.axis(axes[i]) if axes else i, steps[i] if steps else 1
        size = shape[axis]
        first, last = (min(max(each, _INT_MIN), _INT_MAX) for each in (start, end))
        first, last = (each + size if _INT_MIN < each < 0 else each for each in (first, last))
        if step < 0:
            first, last = last + 1, first + 1
        first, last = max(first, 0), min(last, size)
        offsets[axis], sizes[axis], strides[axis] = first, max(last - first, 0), step
    fields = {"InputWindowOffsets": offsets, "InputWindowSizes": sizes, "InputWindowStrides": strides}
    return [unary("SLICE1", node.input(align=OWN), node.output(align=OWN), **fields)]


def _crop(node: KernelNode) -> Descriptions:
    border, shape = node.integer_list("border"), node.shape()
    require(len(border) == 4 and len(shape) == 4, "a border of other than 4 numbers, or other than 4 dimensions")
    left, top, right, bottom = border
    size = node.integer_list("scale") or [shape[2] - bottom - top, shape[3] - right - left]
    require(min(*border, *size) >= 0, f"the border {border} of {shape}")
    sizes = [*shape[:2], *size]
    fields = {"Offsets": [0, 0, top, left], "Sizes": sizes, "Strides": [1, 1, 1, 1]}
    return [unary("SLICE", node.input(), node.output(0, sizes), **fields)]


_PADDING_MODES: Final = {"constant": "CONSTANT", "edge": "EDGE", "reflect": "REFLECTION", "wrap": "WRAP"}
_PAD_INPUTS_SINCE: Final = 11
"""The opset from which on a Pad's numbers are inputs."""


def _pad(node: KernelNode) -> Descriptions:
    name, shape, source, data_type = name_of(node), node.shape(), node.input(), node.type()
    are_inputs = node.since >= _PAD_INPUTS_SINCE
    pads = node.integers(1) if are_inputs else node.integer_list("pads")
    axes = [node.axis(axis) for axis in node.integers(3)] if node.has(3) else [*range(len(shape))]
    require(len(pads) == 2 * len(axes), f"{len(pads)} pads of {len(axes)} axes")
    rank = len(source.sizes)
    start, end = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        at = axis + rank - len(shape)
        start[at], end[at] = uints((pads[i], pads[i + len(axes)]))  # negative ones too
    value = node.number(2) if are_inputs and node.has(2) else 0 if are_inputs else node.attribute("value", 0.0)
    fields: dict[str, Any] = {"PaddingMode": _PADDING_MODES[node.attribute("mode", "constant")]}
    if name == "PADDING":
        fields["PaddingValue"] = float(value)
    else:
        fields |= {"PaddingValueDataType": data_type, "PaddingValue": scalar(data_type, value)}
    return [unary(name, source, node.output(), **fields, StartPadding=start, EndPadding=end)]


def _require_direct_indices(node: KernelNode) -> None:
    """Raise NotDescribed where an old release may describe 64-bit integers as strided ones of 32 bits."""
    if {node.type(i) for i in range(len(node.inputs))} & _64_BITS:
        node.require_plain_indices()


def _gather(node: KernelNode) -> Descriptions:
    """Describe Gather, GatherElements, GatherND and ScatterND, whose tensors all have the largest rank."""
    _require_direct_indices(node)
    ranks = [len(node.shape(i)) for i in range(len(node.inputs))]
    align = at_least(max(*ranks, len(node.output_shape())))
    source, result = node.input(align=align), node.output(align=align)
    fields: dict[str, Any] = {"IndicesTensor": node.input(1, align=align)}
    if node.operator in ("Gather", "GatherElements"):
        fields["Axis"] = node.dimension(node.attribute("axis", 0), source)
        if node.operator == "Gather":
            fields["IndexDimensions"] = ranks[1]
    else:
        fields |= {"InputDimensionCount": ranks[0], "IndicesDimensionCount": ranks[1]}
        if node.operator == "GatherND":
            fields["BatchDimensionCount"] = node.attribute("batch_dims", 0)
        else:
            fields["UpdatesTensor"] = node.input(2, align=align)
    return [unary(name_of(node), source, result, **fields)]


def _scatter(node: KernelNode) -> Descriptions:
    _require_direct_indices(node)
    source, result = node.input(), node.output()
    if 0 in node.shape(1):
        return [unary("ELEMENT_WISE_IDENTITY", source, result)]
    tensors = {"IndicesTensor": node.input(1), "UpdatesTensor": node.input(2)}
    return [unary("SCATTER", source, result, **tensors, Axis=node.dimension(node.attribute("axis", 0), source))]


def _tile(node: KernelNode) -> Descriptions:
    """Describe a Tile: dimensions whose output size is 1 are dropped, but for the last one if all are."""
    sizes, repeats = uints(node.shape()), uints(node.integers(1))
    require(len(sizes) == len(repeats), f"{len(repeats)} repeats of {len(sizes)} dimensions")
    require(len(sizes) <= MAX_DIMENSIONS, f"{len(sizes)} dimensions; at most {MAX_DIMENSIONS} are taken")
    rows = [(size, repeat, *uints([size * repeat])) for size, repeat in zip(sizes, repeats, strict=True)]
    kept = [row for row in rows if row[2] != 1] or rows[-1:]
    kept = [(1, 1, 1)] * (MIN_DIMENSIONS - len(kept)) + kept
    source, result = (
        Tensor(node.type(), tuple(row[i] for row in kept), of=of)
        for i, of in ((0, node.input().of), (2, node.output(0, ()).of))
    )
    return [] if 0 in result.sizes else [unary("TILE", source, result, Repeats=[row[1] for row in kept])]


def _triangle(node: KernelNode) -> Descriptions:
    k, rank, data_type = int(node.number(1)) if node.has(1) else 0, len(node.output_shape()), node.type()
    require(rank <= 4, f"{rank} dimensions; the provider's Trilu takes 4")
    begin, end = (_INT_MIN, k) if node.attribute("upper", 1) else (k + 1, _INT_MAX)
    value = {"ValueDataType": data_type, "Value": scalar(data_type, 0)}
    source, result = node.input(0, node.output_shape()), node.output()
    return [unary(name_of(node), source, result, **value, DiagonalFillBegin=begin, DiagonalFillEnd=end)]


def _eye_like(node: KernelNode) -> Descriptions:
    rank = len(node.output_shape())
    require(rank <= 4, f"{rank} dimensions; the provider's EyeLike takes 4")
    return [operator(name_of(node), OutputTensor=node.output(), Offset=node.attribute("k", 0), Value=1.0)]


def _depth_to_space(node: KernelNode) -> Descriptions:
    order = "DEPTH_COLUMN_ROW" if node.attribute("mode", "DCR") == "DCR" else "COLUMN_ROW_DEPTH"
    return [unary(name_of(node), node.input(), node.output(), BlockSize=node.attribute("blocksize"), Order=order)]


def _reverse_sequence(node: KernelNode) -> Descriptions:
    node.require_plain_indices()
    shape, source = node.shape(), node.input()
    batch, time = node.axis(node.attribute("batch_axis", 1)), node.axis(node.attribute("time_axis", 0))
    require(batch != time, f"{batch} as batch_axis and time_axis")
    given = node.input(1)
    lengths = tensor(given.data_type, [1 if i == time else size for i, size in enumerate(shape)], of=given.of)
    tensors = {"SequenceLengthsTensor": lengths._replace(is_owned=given.is_owned).unsigned}
    return [unary(name_of(node), source, node.output(), **tensors, Axis=node.dimension(time, source))]


_FILLS_SINCE: Final = (1, 10)
"""The release from which on a ConstantOfShape creates an operator; before, memory is filled."""


def _constant_of_shape(node: KernelNode) -> Descriptions:
    node.elements(0)
    if node.release < _FILLS_SINCE:
        return []
    result, value = node.output(), node.attribute("value")
    filled = 0 if value is None else value.reshape(-1)[0].item()
    return [_filled(result, filled)]


def _filled(result: Tensor, value: float) -> Described:
    fields = {"ValueDataType": result.data_type, "Value": scalar(result.data_type, value)}
    return operator("FILL_VALUE_CONSTANT", OutputTensor=result, **fields)


def _range(node: KernelNode) -> Descriptions:
    start, _, delta = (node.number(i) for i in range(3))
    result = node.output()
    values = {"ValueStart": scalar(result.data_type, start), "ValueDelta": scalar(result.data_type, delta)}
    return [operator(name_of(node), OutputTensor=result, ValueDataType=result.data_type, **values)]


def _one_hot(node: KernelNode) -> Descriptions:
    _require_direct_indices(node)
    node.elements(1)
    shape = node.shape()
    axis = node.axis(node.attribute("axis", -1), len(shape) + 1)
    indices = tensor(node.type(), [*shape[:axis], 1, *shape[axis:]], None, OWN, node.input().of)
    tensors = {"IndicesTensor": indices, "ValuesTensor": node.input(2), "OutputTensor": node.output(align=OWN)}
    return [operator(name_of(node), **tensors, Axis=axis)]


def _non_zero(node: KernelNode) -> Descriptions:
    """Describe a NonZero as it is created; a run adds LOGICAL_XOR, and SLICE1 of as many as there are."""
    shape = node.shape() or [1]
    count, rank = prod(shape), len(shape)
    if not count:
        return []
    coordinates = Tensor(TensorDataType.UINT32, (count, rank), (2, count * 2), of="coordinates")
    outputs = {"OutputCountTensor": Tensor(TensorDataType.UINT32, (1,), of="count")}
    return [operator(name_of(node), InputTensor=node.view(0, shape), **outputs, OutputCoordinatesTensor=coordinates)]


def _image_scaler(node: KernelNode) -> Descriptions:
    bias, shape = [*map(float, node.attribute("bias") or ())], node.shape()
    require(len(shape) == 4 and shape[1] == len(bias), "other than 4 dimensions, or than a bias for each channel")
    return [unary(name_of(node), node.input(), node.output(), Scale=node.attribute("scale", 1.0), Bias=bias)]


MOVEMENT: Final[Table] = table_of(
    {
        "Reshape Squeeze Unsqueeze Flatten Identity": _copy,
        "Transpose": _transpose,
        "Expand": _expand,
        "Concat": _concat,
        "ConcatFromSequence": _concat_from_sequence,
        "Split": _split,
        "Slice": _slice,
        "Crop": _crop,
        "Pad": _pad,
        "Gather GatherElements GatherND ScatterND": _gather,
        "Scatter ScatterElements": _scatter,
        "Tile": _tile,
        "Trilu": _triangle,
        "EyeLike": _eye_like,
        "DepthToSpace": _depth_to_space,
        "ReverseSequence": _reverse_sequence,
        "ConstantOfShape": _constant_of_shape,
        "Range": _range,
        "OneHot": _one_hot,
        "NonZero": _non_zero,
        "ImageScaler": _image_scaler,
    }
)
