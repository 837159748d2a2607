"""Activations of which no row says all: Softmax and its like, GELU's with a bias, and those fused into an operator."""

from __future__ import annotations

from math import prod
from typing import Final

from dml_tile.back_ends.descriptions.created import Descriptions, binary, operator, unary
from dml_tile.back_ends.descriptions.node import KernelNode, Table, table_of
from dml_tile.back_ends.descriptions.refusals import require
from dml_tile.back_ends.descriptions.rows import name_of
from dml_tile.back_ends.descriptions.tensors import tensor


def _prelu(node: KernelNode) -> Descriptions:
    result = node.output()
    slope = node.input(1, result.sizes)
    return [unary("ACTIVATION_PARAMETERIZED_RELU", node.input(), result, SlopeTensor=slope)]


_OF_ONE_AXIS_SINCE: Final = 13
"""The opset from which on Softmax is along one axis; before, along all from it on."""


def _softmax(node: KernelNode) -> Descriptions:
    name, source, result, shape = name_of(node), node.input(), node.output(), node.shape()
    axis = node.attribute("axis", -1 if node.since >= _OF_ONE_AXIS_SINCE else 1)
    if name.endswith("1"):
        first = node.dimension(axis, source)
        axes = [first] if node.since >= _OF_ONE_AXIS_SINCE else [*range(first, len(source.sizes))]
        return [unary(name, source, result, Axes=axes)]
    split = node.axis(axis)  # the older operators reduce the last of two dimensions
    sizes = [prod(shape[:split]), prod(shape[split:])] if len(shape) > 1 else shape
    return [unary(name, *(tensor(each.data_type, sizes, of=each.of) for each in (source, result)))]


_WITHOUT_BIAS_SINCE: Final = (1, 18)


def _bias_gelu(node: KernelNode) -> Descriptions:
    is_taken = len(node.inputs) == 2 or (len(node.inputs) == 1 and node.release >= _WITHOUT_BIAS_SINCE)
    require(is_taken, f"{len(node.inputs)} inputs; 2 are taken, or 1 from 1.18 on")
    shape, result = node.shape(), node.output()
    if not node.has(1):
        return [unary("ACTIVATION_GELU", node.input(), result)]
    fused = {"Type": "ACTIVATION_GELU", "Desc": {}}
    return [binary("ADD1", node.input(0, shape), node.input(1, shape), result, FusedActivation=fused)]


def _quick_gelu(node: KernelNode) -> Descriptions:
    source, alpha = node.input(), node.attribute("alpha", 1.702)
    scaled, gate = source.renamed("scaled"), source.renamed("gate")
    made = [
        unary("ACTIVATION_SIGMOID", source if alpha == 1 else scaled, gate),
        binary("MULTIPLY", source, gate, source.renamed(node.output().of)),
    ]
    if alpha != 1:  # the third in the list, the first in the graph
        made.append(unary("ELEMENT_WISE_IDENTITY", source, scaled, ScaleBias={"Scale": alpha, "Bias": 0.0}))
    return made


def _bias_add(node: KernelNode) -> Descriptions:
    shape = node.shape()
    require(len(node.inputs) == 3, f"{len(node.inputs)} inputs; 3 are taken")
    require(len(shape) <= 4 and shape == node.shape(2), "more than 4 dimensions, or a residual of another shape")
    first, bias, residual = (node.input(i, shape) for i in range(3))
    total = first.renamed("total")
    return [binary("ADD", first, bias, total), binary("ADD", total, residual, first.renamed(node.output().of))]


def _bias_split_gelu(node: KernelNode) -> Descriptions:
    shape = node.shape()
    is_taken = len(node.inputs) == 2 and 1 <= len(shape) <= 4 and shape[-1] % 2 == 0
    require(is_taken, "other inputs than two of at most 4 dimensions, the last of an even size")
    require(node.shape(1)[-1:] == shape[-1:], "a bias of another size than the last dimension's")
    first, bias, result = node.input(0, shape), node.input(1, shape), node.output()
    total, halves = first.renamed("total"), [result.renamed(f"half {i}") for i in range(2)]
    gate = result.renamed("gate")
    return [
        binary("ADD", first, bias, total),
        operator("SPLIT", InputTensor=total, OutputTensors=halves, Axis=len(first.sizes) - 1),
        unary("ACTIVATION_GELU", halves[1], gate),
        binary("MULTIPLY", halves[0], gate, result),
    ]


ACTIVATIONS: Final[Table] = table_of(
    {
        "PRelu": _prelu,
        "Softmax LogSoftmax Hardmax": _softmax,
        "com.microsoft:BiasGelu FastGelu": _bias_gelu,
        "com.microsoft:QuickGelu": _quick_gelu,
        "com.microsoft:BiasAdd": _bias_add,
        "com.microsoft:BiasSplitGelu": _bias_split_gelu,
    }
)
