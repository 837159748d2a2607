"""The values that cross between DirectML's memory and the CPU's, by the placements of a model's nodes alone.

Sources in microsoft/onnxruntime: onnxruntime/core/optimizer/transformer_memcpy.cc, which adds a node for each copy;
core/framework/utils.cc, which copies inputs, outputs and what a graph inside a node reads from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from dml_tile.back_ends.kernels import Kernel
from dml_tile.back_ends.placement import Crossing, Edge, ModelNode, Placement, Reason

RESULTS_ON_CPU: Final = {("", "Shape"), ("", "Size"), ("", "SequenceLength")}
"""Operators whose results DirectML's kernels leave in the CPU's memory."""


def crossings(
    nodes: Iterable[tuple[ModelNode, Reason]],
    kernel_of: Callable[[ModelNode], Kernel | None],
    read: Callable[[Edge | None], Edge | None],
) -> Iterator[Crossing]:
    """Yield each value that is made in one memory and read in the other, once, in the order in which they are read.

    Counted are values that nodes make, also where a graph inside a node reads them, and inputs of a graph that nodes
    read in both memories. Not counted are the copies of inputs, outputs and loop-carried values that the caller's run,
    or the node around a graph, makes where they are needed; initialisers, of which each provider has its own; and what
    DirectML's kernels declare to be in the CPU's memory. ``kernel_of`` returns DirectML's kernel of a node there,
    ``read`` the value that is read in place of one whose node is gone.
    """
    made: dict[Edge, Placement] = {}
    memories: dict[Edge, set[Placement]] = {}
    for node, reason in nodes:
        if reason.placement not in (Placement.DIRECTML, Placement.CPU):
            continue
        kernel = kernel_of(node) if reason.placement is Placement.DIRECTML else None
        for i, edge in enumerate(map(read, node.inputs)):
            if edge:
                is_there = kernel and i not in kernel.cpu_inputs
                memories.setdefault(edge, set()).add(Placement.DIRECTML if is_there else Placement.CPU)
        is_there = kernel and (node.place.domain, node.place.operator) not in RESULTS_ON_CPU
        made |= dict.fromkeys(filter(None, node.outputs), Placement.DIRECTML if is_there else Placement.CPU)
    for edge, where in memories.items():
        is_on_both = len(where) > 1 and edge.is_input
        home = made.get(edge, Placement.CPU if is_on_both else None)
        yield from (Crossing(edge.name, memory) for memory in where if home and memory is not home)
