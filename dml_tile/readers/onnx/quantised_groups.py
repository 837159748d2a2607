"""The nodes around which values are dequantised and quantised again, of which onnxruntime makes others on DirectML.

A group that is surely fused is one node of quantised values: at level 2, behind the placement.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/qdq_transformer/selectors_actions/
qdq_selector_action_transformer.cc, as far as its selectors have DirectML: read at the tags of 1.16 to 1.22 and the
branches of 1.23 and 1.24
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from dml_tile.back_ends.descriptions.node import KernelNode
from dml_tile.back_ends.kernels import Version
from dml_tile.readers.onnx.fusions import MICROSOFT, fusion_of
from dml_tile.readers.onnx.matches import EVER, Graph, Match, before_gemm, early_shape
from dml_tile.readers.onnx.nodes import Node
from dml_tile.readers.onnx.values import Value

_RELEASES: Final = {
    **dict.fromkeys(("Add", "ArgMax", "Concat", "Conv", "Gather", "MaxPool", "Reshape", "Split"), ((1, 17), EVER)),
    **dict.fromkeys(("Squeeze", "Transpose", "Unsqueeze"), ((1, 17), EVER)),
    "Resize": ((1, 17), (1, 20)),
    "MatMul": ((1, 18), EVER),
    **dict.fromkeys(("Expand", "Flatten", "GatherElements", "ReduceMax", "ReduceMin"), ((1, 20), EVER)),
    **dict.fromkeys(("Slice", "Tile"), ((1, 20), EVER)),
    **dict.fromkeys(("AveragePool", "GlobalAveragePool", "Sigmoid"), ((1, 21), EVER)),
    **dict.fromkeys(("LeakyRelu", "Softmax"), ((1, 21), (1, 23))),
}
"""The first and last release with such a group, by the operator in it."""
_WITHOUT_RESULT: Final = {"ArgMax", "MatMul"}
"""Operators whose result need not be quantised."""


_MOVING: Final = frozenset(
    (
        *("Expand", "Flatten", "Gather", "GatherElements", "MaxPool", "ReduceMax", "ReduceMin", "Reshape", "Resize"),
        *("Slice", "Squeeze", "Transpose", "Unsqueeze"),
    )
)
"""Operators that are computed of the quantised values, if these are quantised alike before and after; Tile, which is
one of them, is noted as such.
"""
_ORDERING: Final = frozenset({"MaxPool", "ReduceMax", "ReduceMin"})
"""Moving operators that take positive scales alone."""
_BLOCKS_SINCE: Final = (1, 20)
"""The release from which on a product by constants of 4 bits is one node."""
_LEAST_BLOCK: Final = 16
_MAX_POOL: Final = 12
"""The version of MaxPool of which there are groups."""


class _Group(NamedTuple):
    """A node with the nodes that dequantise its inputs, in their order, and those that quantise its results."""

    node: Node
    before: Sequence[Node]
    after: Sequence[Node]

    @property
    def inputs(self) -> list[tuple[Node, int]]:
        """The quantised inputs, each with its scale and zero point."""
        return [(node, i) for node in self.before for i in range(3)]

    @property
    def results(self) -> list[tuple[Node, int]]:
        """The scales and zero points of the results."""
        return [(node, i) for node in self.after for i in (1, 2)]

    @property
    def others(self) -> list[tuple[Node, int]]:
        """The other inputs, behind the first."""
        return [(self.node, i) for i in range(1, len(self.node.inputs))]


def note_quantised_groups(graph: Graph) -> None:
    """Note what onnxruntime makes of quantised groups, or that it may make something else of their nodes."""
    surely = dict[Node, tuple[str, Match]]()
    for node in graph.nodes:
        since, to = _RELEASES.get(node.kind, (EVER, EVER))
        makers = [graph.maker(node, i) for i in range(len(node.inputs))] if since != EVER else []
        before = [maker for maker in makers if maker and maker.type == "DequantizeLinear"]
        if not before:
            continue
        after = [user for name in node.outputs for user in graph.users_of(name)]
        between = after if len(after) == 1 and after[0].kind in ("Clip", "Relu") else []
        ends = [user for user in (graph.users(between[0]) if between else after) if user.type == "QuantizeLinear"]
        if ends or node.kind in _WITHOUT_RESULT:
            group = _Group(node, before, ends)
            made = None if between else _blocks(graph, group)
            if made is None and not between and _is_complete(graph, group):
                made = _match(group)
            if made:
                since, to = max(since, made[1].since), min(to, before_gemm(graph, node))
                surely[node] = made[0], made[1]._replace(since=since, to=to, base=node)
            # what dequantises for a group that is surely fused stays as it is for others
            for each in (*(() if node in surely else before), node, *between, *ends):
                if kernel := each.placed.kernel:
                    each.placed.kernel = partial(_grouped, kernel, since, to)
    _note_fusions(graph, surely)


def _note_fusions(graph: Graph, surely: Mapping[Node, tuple[str, Match]]) -> None:
    """Note the groups, and with the newest that uses a DequantizeLinear, that it is gone if all that use it are."""
    dropped = defaultdict[Node, list[Node]](list)
    for maker in dict.fromkeys(node for _, match in surely.values() for node, _ in match.inputs):
        users = [user for name in maker.outputs for user in graph.users_of(name)]
        is_result = any(map(graph.is_result, maker.outputs))
        if maker.type == "DequantizeLinear" and not is_result and all(user in surely for user in users):
            dropped[max(users, key=lambda user: surely[user][1].since)].append(maker)
    for node, (domain, match) in surely.items():
        if match.since <= match.to:
            last = match.parts[-1].placed
            last.fusions += (fusion_of(match._replace(dropped=dropped[node]), domain, 2, graph.opset),)


def _is_complete(graph: Graph, group: _Group) -> bool:
    """Return True if nothing else uses the results, and all quantisation is of onnx's own, with zero points."""
    node, before, after = group
    around = (*before, *after)
    is_plain = all(
        not each.domain
        and len(each.proto.input) == len(("x", "scale", "zero point"))
        and all(each.proto.input)
        and "block_size" not in each.attributes
        and _is_float(each)
        for each in around
    )
    if not is_plain or (not after and node.kind in _WITHOUT_RESULT):
        return is_plain
    return len(after) == len(node.outputs) and all(
        len(graph.users_of(name)) == 1 and not graph.is_result(name) for name in node.outputs
    )


def _is_float(node: Node) -> bool:
    values = node.outputs.values() if node.type == "DequantizeLinear" else node.inputs[:1]
    return all(value.data_type == "float32" for value in values)


def _match(group: _Group) -> tuple[str, Match] | None:
    """Return the domain and the match of a group that is surely fused, wherever its types are those of its kind."""
    node, before, after = group
    types = [each.inputs[0].data_type for each in before]
    if types[0] != "uint8" or any(value.data_type != "uint8" for each in after for value in each.outputs.values()):
        return None  # int8 is taken on some processors
    parts, makers = [node, *after], after or [node]
    if node.kind in ("Conv", "MatMul"):
        are_factors = len(types) == len(node.proto.input) and all(each in ("uint8", "int8") for each in types[1:2])
        if not are_factors or types[2:] not in ([], ["int32"]):
            return None
        if node.kind == "Conv":
            bias = [(before[2], 0)] if types[2:] else []
            return "", Match("QLinearConv", parts, [*group.inputs[:6], *group.results, *bias])
        if after:
            return "", Match("QLinearMatMul", parts, [*group.inputs, *group.results])
        a, b = before
        sides = [(each, i) for i in range(3) for each in (a, b)]
        return MICROSOFT, Match("MatMulIntegerToFloat", parts, sides)
    if set(types) != {"uint8"}:
        return None
    if node.kind in ("Add", "Concat"):
        if len(before) != len(node.proto.input):
            return None
        is_sum = node.kind == "Add"
        inputs = [*group.inputs, *group.results] if is_sum else [*group.results, *group.inputs]
        return MICROSOFT, Match(f"QLinear{node.type}", parts, inputs)
    if len(before) != 1 or before[0].outputs.keys() != {node.proto.input[0]}:
        return None
    if node.kind in ("AveragePool", "GlobalAveragePool", "Sigmoid"):
        return MICROSOFT, Match(f"QLinear{node.type}", parts, [*group.inputs, *group.results])
    if node.kind in ("ArgMax", "Split") or node.kind in _MOVING:
        is_alike = all(_is_alike(before[0], each, node.kind) for each in after)
        is_taken = node.kind != "MaxPool" or node.placed.place.version == _MAX_POOL
        if is_alike and is_taken and _scalar(before[0].inputs[1]) is not None:
            return "", Match(node.type, parts, [(before[0], 0), *group.others], makers=makers)
    return None


def _blocks(graph: Graph, group: _Group) -> tuple[str, Match] | None:
    """Return the domain and the match of a product by constants that are quantised in blocks."""
    node, before, after = group
    is_product = node.kind == "MatMul" and not after and [graph.maker(node, 1)] == before
    if not is_product or graph.users(before[0]) != [node] or (sizes := _sizes_in_blocks(before[0])) is None:
        return None
    (maker,), (rows, columns, size) = before, sizes
    count, has_sign = rows // size, maker.inputs[0].data_type == "int4"
    zeros = [(maker, 2)] if len(maker.inputs) > 2 else [] if has_sign else [(maker, 1)]  # made where there are none
    return MICROSOFT, Match(
        "MatMulNBits",
        [node],
        [(node, 0), (maker, 0), (maker, 1), *zeros],
        _BLOCKS_SINCE,
        attributes={"K": rows, "N": columns, "bits": 4, "block_size": size},
        packed={1: (columns, count, size // 2), 3: (columns * ((count + 1) // 2),)},
    )


def _sizes_in_blocks(maker: Node) -> tuple[int, int, int] | None:
    """Return the sizes of a matrix of 4 bits and of the blocks along its first axis; None of other values.

    The last block is a whole one, else DirectML's kernel does not take it.
    """
    weights, scales, *_ = maker.inputs
    size, axis = (int(maker.attributes[name].i) if name in maker.attributes else 1 for name in ("block_size", "axis"))
    is_taken = weights.data_type in ("int4", "uint4") and scales.data_type in ("float32", "float16")
    if not is_taken or axis or size < _LEAST_BLOCK or size & (size - 1) or not all(v.is_folded for v in maker.inputs):
        return None
    shape, *others = (early_shape(value) for value in maker.inputs)
    match shape:
        case (int(rows), int(columns)) if not rows % size and {*others} == {(rows // size, columns)}:
            return rows, columns, size
    return None


def _is_alike(before: Node, after: Node, kind: str) -> bool:
    """Return True for the same constant scale and zero point; an operator that orders values takes a positive scale."""
    scale, zero = (_scalar(value) for value in before.inputs[1:])
    is_ordered = kind not in _ORDERING or (scale is not None and scale > 0)
    return is_ordered and None not in (scale, zero) and [scale, zero] == [_scalar(each) for each in after.inputs[1:]]


def _scalar(value: Value) -> float | None:
    constant = value.constant if value.is_folded else None
    return None if constant is None or constant.shape not in ((), (1,)) else float(constant.item())


def _grouped(kernel: Callable[[Version], KernelNode], since: Version, to: Version, release: Version) -> KernelNode:
    made = kernel(release)
    return made._replace(groups=(*made.groups, (since, to)))
