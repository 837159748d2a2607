"""QuantizeLinear, DequantizeLinear, and com.microsoft's operators of quantised elements."""

from __future__ import annotations

from typing import Final

from dml_tile.back_ends.descriptions.created import Described, Descriptions, binary, operator, unary
from dml_tile.back_ends.descriptions.node import KernelNode, Table, table_of
from dml_tile.back_ends.descriptions.refusals import NotDescribed, require
from dml_tile.back_ends.descriptions.rows import name_of
from dml_tile.back_ends.descriptions.tensors import Tensor, at_least, scalar, tensor
from dml_tile.directml.data_types import TensorDataType

_ONE_ELEMENT_SINCE: Final = (1, 17)
"""The release from which on a constant of equal elements becomes one that is broadcast."""


def uniform(node: KernelNode, made: Tensor | None, i: int) -> Tensor | None:
    """Return the tensor of an input: of a constant with equal elements, one element that is broadcast, from 1.17 on."""
    if made is None or node.release < _ONE_ELEMENT_SINCE or not node.is_constant(i):
        return made
    values = node.elements(i)
    is_uniform = values.size > 1 and bool((values == values[0]).all())
    return made._replace(strides=(0,) * len(made.sizes), is_owned=False) if is_uniform else made


_BLOCKS_SINCE: Final = 21
"""The opset of the versions with blocks."""
_AXES_SINCE: Final = (1, 25)
"""The release from which on the versions with blocks read axis; before, scales lie along the last dimension."""
_AXIS_IF_NEEDED_SINCE: Final = (1, 12)
"""The release from which on the axis is looked at only for scales of one dimension, and is 0 where there is none."""
_SIGNED: Final = {TensorDataType.INT4, TensorDataType.INT8}


def _quantize(node: KernelNode) -> Descriptions:
    """Describe QuantizeLinear and DequantizeLinear; block_size is never read."""
    if node.release < (1, 11):
        raise NotDescribed("how older releases lay out scales")
    if node.since >= _BLOCKS_SINCE:
        return _quantize_by_blocks(node)
    require(node.has(2) or node.release >= (1, 18), "no zero point; releases before 1.18 need one")
    scale, zero = _along_axis(node, 1), _along_axis(node, 2) if node.has(2) else None
    return [unary(name_of(node), node.input(), node.output(), ScaleTensor=scale, ZeroPointTensor=zero)]


def _along_axis(node: KernelNode, i: int) -> Tensor:
    """Return the tensor of a scale or zero point of the output's shape; one of one dimension lies along axis."""
    own, shape = node.shape(i), node.output_shape()
    is_along_axis = len(own) == 1 and own != shape
    axis = node.attribute("axis", 0)
    axis += len(shape) if axis < 0 else 0
    if is_along_axis or node.release < _AXIS_IF_NEEDED_SINCE:
        require(0 <= axis < len(shape), f"axis {axis} of {len(shape)} dimensions")
    if is_along_axis:
        has_axis = "axis" in node.attributes or node.release >= _AXIS_IF_NEEDED_SINCE
        require(has_axis, "no axis, without which onnxruntime 1.11 takes single elements only")
        is_taken = own[0] == shape[axis] or (own[0] == 1 and node.release >= (1, 17))
        require(is_taken, f"{own[0]} scales or zero points along an axis of {shape[axis]}")
        own = [1] * axis + own + [1] * (len(shape) - 1 - axis)
    made = tensor(node.type(i), shape, own, of=node.input(i).of)
    return made._replace(is_owned=node.input(i).is_owned)


def _quantize_by_blocks(node: KernelNode) -> Descriptions:
    made: list[Described] = []
    parts = [_along_axis(node, i) if node.release >= _AXES_SINCE else node.input(i) for i in (1, 2) if node.has(i)]
    quantised = node.output_type() if node.operator == "QuantizeLinear" else node.type()
    if not node.has(2) and {node.type(), node.output_type()}.isdisjoint(_SIGNED):
        sizes = parts[0].sizes
        stored = TensorDataType.INT8 if quantised is TensorDataType.INT4 else TensorDataType.UINT8
        zero = Tensor(stored, (1,) * len(sizes), of="zero point")
        fill = {"ValueDataType": stored, "Value": scalar(stored, 0)}
        made.append(operator("FILL_VALUE_CONSTANT", OutputTensor=zero, **fill))
        parts.append(Tensor(quantised, sizes, (0,) * len(sizes), of=zero.of))
    kind = "SCALE_ZERO_POINT" if len(parts) == 2 else "SCALE"
    fields = {"QuantizationType": kind, "QuantizationTensors": parts}
    return [*made, unary(name_of(node), node.input(), node.output(), **fields)]


_OF_QLINEAR_ADD: Final = {
    "AScaleTensor": 1,
    "AZeroPointTensor": 2,
    "BScaleTensor": 4,
    "BZeroPointTensor": 5,
    "OutputScaleTensor": 6,
    "OutputZeroPointTensor": 7,
}


def _qlinear_add(node: KernelNode) -> Descriptions:
    shape, rank = node.output_shape(), len(node.input().sizes)
    fields = {name: uniform(node, node.optional(i, align=at_least(rank)), i) for name, i in _OF_QLINEAR_ADD.items()}
    return [binary("QUANTIZED_LINEAR_ADD", node.input(0, shape), node.input(3, shape), node.output(), **fields)]


def _qlinear_sigmoid(node: KernelNode) -> Descriptions:
    shape, data_type = node.output_shape(), TensorDataType.FLOAT32
    scale, zero, output_scale, output_zero = (_along_first_axis(node, i, shape) for i in range(1, 5))
    before, after = (tensor(data_type, shape, of=name) for name in ("dequantised", "sigmoid"))
    return [
        _dequantize(node.input(), scale, zero, before),
        unary("ACTIVATION_SIGMOID", before, after),
        _requantize(after, output_scale, output_zero, node.output()),
    ]


def _along_first_axis(node: KernelNode, i: int, shape: list[int]) -> Tensor | None:
    """Return the tensor of a scale or zero point; one of one dimension must be as long as axis 0."""
    own = node.shape(i)
    if len(own) == 1 and own != shape:
        require(own == shape[:1], f"{own[0]} scales or zero points along an axis 0 of {shape[:1]}")
        own = own + [1] * (len(shape) - 1)
    made = tensor(node.type(i), shape, own, of=node.input(i).of)
    return uniform(node, made._replace(is_owned=node.input(i).is_owned), i)


def _dequantize(source: Tensor, scale: Tensor | None, zero: Tensor | None, result: Tensor) -> Described:
    return unary("ELEMENT_WISE_DEQUANTIZE_LINEAR", source, result, ScaleTensor=scale, ZeroPointTensor=zero)


def _requantize(source: Tensor, scale: Tensor | None, zero: Tensor | None, result: Tensor) -> Described:
    return unary("ELEMENT_WISE_QUANTIZE_LINEAR", source, result, ScaleTensor=scale, ZeroPointTensor=zero)


def _qlinear_concat(node: KernelNode) -> Descriptions:
    """Describe QLinearConcat: its first two inputs are the output's scale and zero point, then three for each part."""
    count, shape, data_type = len(node.inputs), node.output_shape(), TensorDataType.FLOAT32
    require(count >= 5 and (count - 2) % 3 == 0, f"{count} inputs; two are taken, and three for each tensor")
    made, parts = [], []
    for i in range(2, count, 3):
        is_of_one_type = (node.type(i + 1), node.type(i + 2)) == (node.type(0), node.type(1))
        require(is_of_one_type, "scales or zero points of several types")
        sizes = node.shape(i)
        scale, zero = (uniform(node, node.input(j, sizes), j) for j in (i + 1, i + 2))
        parts.append(tensor(data_type, sizes, of=f"dequantised {i}"))
        made.append(_dequantize(node.input(i), scale, zero, parts[-1]))
    joined, rank = tensor(data_type, shape, of="joined"), len(node.shape(2))
    axis = node.axis(node.attribute("axis", -1), rank) + len(joined.sizes) - rank
    scale, zero = (uniform(node, node.input(i, shape), i) for i in range(2))
    join = operator("JOIN", InputTensors=parts, OutputTensor=joined, Axis=axis)
    return [*made, join, _requantize(joined, scale, zero, node.output())]


QUANTISED: Final[Table] = table_of(
    {
        "QuantizeLinear DequantizeLinear": _quantize,
        "com.microsoft:QuantizeLinear DequantizeLinear": _quantize,
        "com.microsoft:QLinearAdd": _qlinear_add,
        "com.microsoft:QLinearSigmoid": _qlinear_sigmoid,
        "com.microsoft:QLinearConcat": _qlinear_concat,
    }
)
