"""The nodes around which values are dequantised and quantised again, of which onnxruntime may make others on DirectML.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/qdq_transformer/selectors_actions/
qdq_selector_action_transformer.cc, as far as its selectors have DirectML: read at the tags of 1.16 to 1.22 and the
branches of 1.23 and 1.24
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from dml_tile.back_ends.descriptions.node import KernelNode
from dml_tile.back_ends.kernels import Version
from dml_tile.readers.onnx.matches import EVER, Graph
from dml_tile.readers.onnx.nodes import Node
from dml_tile.readers.onnx.removals import Uses

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


def note_quantised_groups(nodes: Sequence[Node], uses: Uses) -> None:
    """Note at the nodes of a quantised group, for their descriptions, that onnxruntime may make others of them."""
    graph = Graph(nodes, uses)
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
            for each in (*before, node, *between, *ends):
                if kernel := each.placed.kernel:
                    each.placed.kernel = partial(_grouped, kernel, since, to)


def _grouped(kernel: Callable[[Version], KernelNode], since: Version, to: Version, release: Version) -> KernelNode:
    made = kernel(release)
    return made._replace(is_grouped=made.is_grouped or since <= release <= to)
