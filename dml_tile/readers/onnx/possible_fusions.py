"""Nodes that onnxruntime may fuse at level 2, of which descriptions follow the parts.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/: attention_fusion.cc, embed_layer_norm_fusion.cc,
skip_layer_norm_fusion.cc, matmul_activation_fusion.cc and matmul_integer_to_float.cc
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dml_tile.readers.onnx.matches import Graph, early_shape
from dml_tile.readers.onnx.nodes import Node

_PROJECTIONS: Final = 3
"""The products of attention with one normalised value: query, key and value."""


def note_possible_fusions(graph: Graph) -> None:
    """Note at the nodes of a graph, of which fusions are noted, what onnxruntime may make of them and those around."""
    for node in graph.nodes:
        if possible := (*_products(graph, node), *_norms(graph, node)):
            node.placed.may_become = possible
            for fusion in node.placed.fusions:
                fusion.node.may_become = possible


def _products(graph: Graph, node: Node) -> Iterator[str]:
    if node.kind == "MatMul" and graph.chain(node, "Softmax"):
        yield "FusedMatMulActivation"
    if node.kind == "MatMulInteger" and graph.chain(node, "Cast", "Mul"):
        yield "MatMulIntegerToFloat"


def _norms(graph: Graph, node: Node) -> Iterator[str]:
    """Yield what a layer normalisation may become with what stands before it, or feeds attention with."""
    match = graph.taken.get(node)
    is_last = match is not None and match.operator == "LayerNormalization" and match.parts[-1] is node
    if node.kind != "LayerNormalization" and not is_last:
        return
    source, i = match.inputs[0] if match and is_last else (node, 0)
    add = graph.maker(source, i)
    if add and add.kind == "Add":
        makers = [graph.maker(add, j) for j in range(len(add.inputs))]
        if any(maker and maker.kind == "Gather" for maker in makers):
            yield "EmbedLayerNormalization"
        elif all(len(early_shape(value) or "BSH") == len("BSH") for value in add.inputs):
            yield "SkipLayerNormalization"
    users = [user for name in node.outputs for user in graph.users_of(name)]
    if sum(user.kind == "MatMul" for user in users) >= _PROJECTIONS:
        yield "Attention"
