"""Reductions, ArgMax and ArgMin, CumSum and TopK."""

from __future__ import annotations

from typing import Final

from dml_tile.back_ends.descriptions.created import Described, Descriptions, binary, operator, unary
from dml_tile.back_ends.descriptions.node import KernelNode, Table, table_of
from dml_tile.back_ends.descriptions.refusals import NotDescribed
from dml_tile.back_ends.descriptions.rows import name_of
from dml_tile.back_ends.descriptions.tensors import OWN, Tensor
from dml_tile.directml.data_types import TensorDataType

_FUNCTIONS: Final = {
    "ReduceSum": "SUM",
    "ReduceMean": "AVERAGE",
    "ReduceProd": "MULTIPLY",
    "ReduceLogSum": "LOG_SUM",
    "ReduceLogSumExp": "LOG_SUM_EXP",
    "ReduceSumSquare": "SUM_SQUARE",
    "ReduceL1": "L1",
    "ReduceL2": "L2",
    "ReduceMax": "MAX",
    "ReduceMin": "MIN",
}


def _reduction(node: KernelNode) -> Descriptions:
    if node.release < (1, 11):
        raise NotDescribed("how older releases raise reductions to four dimensions")
    shape, function = node.shape(), _FUNCTIONS.get(node.operator)
    given = node.integers(1, "axes") if function else [node.attribute("axis", 0)]
    axes = [node.axis(axis) for axis in given]
    if not axes and not node.attribute("noop_with_empty_axes", 0):
        axes = [*range(len(shape))]
    kept = [1 if i in axes else size for i, size in enumerate(shape)]
    result = node.output(0, None if node.attribute("keepdims", 1) else kept, OWN)
    fields = (
        {"Function": function} if function else {"AxisDirection": int(bool(node.attribute("select_last_index", 0)))}
    )
    return [unary(name_of(node), node.input(align=OWN), result, Axes=axes, **fields)]


def _cumulative_sum(node: KernelNode) -> Descriptions:
    source, axis = node.input(), int(node.number(1)) if node.has(1) else 0
    direction = "DECREASING" if node.attribute("reverse", 0) else "INCREASING"
    fields = {"AxisDirection": direction, "HasExclusiveSum": bool(node.attribute("exclusive", 0))}
    return [unary(name_of(node), source, node.output(), Axis=node.dimension(axis, source), **fields)]


def _top_k(node: KernelNode) -> Descriptions:
    """Describe TopK; its indices are set to zero by themselves before, as words of 32 bits."""
    node.require_plain_indices()
    source, indices = node.input(), node.output(1).unsigned
    k = int(node.number(1) if node.has(1) else node.attribute("k"))
    words = Tensor(TensorDataType.UINT32, (1, 1, 1, indices.bytes // 4), of=indices.of)
    zeroed: list[Described] = [binary("LOGICAL_XOR", words, words, words)] if indices.bytes else []
    direction = "DECREASING" if node.attribute("largest", 1) else "INCREASING"
    fields = {"Axis": node.dimension(node.attribute("axis", -1), source), "K": k, "AxisDirection": direction}
    outputs = {"OutputValueTensor": node.output(0), "OutputIndexTensor": indices}
    return [*zeroed, operator(name_of(node), InputTensor=source, **outputs, **fields)]


REDUCTIONS: Final[Table] = table_of(
    {f"{' '.join(_FUNCTIONS)} ArgMax ArgMin": _reduction, "CumSum": _cumulative_sum, "TopK": _top_k}
)
