"""Cuts the nodes of a graph into DML_GRAPH_DESCs, as ONNX Runtime's DirectML provider does.

partitions()   the cut in ONNX Runtime's order of the nodes
sure_edges()   the edges that lie in one DML_GRAPH_DESC whatever the order, which optimisers change

Source: microsoft/onnxruntime, onnxruntime/core/providers/dml/DmlExecutionProvider/src/GraphPartitioner.cpp, and
onnxruntime/core/graph/graph_viewer.cc, read at the tags of 1.9 to 1.22
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple


class Joining(Enum):
    """Whether a DML_GRAPH_DESC takes a node, may take it for all that is known, or never does."""

    JOINS = "joins a graph"
    MAY_JOIN = "may join a graph"
    APART = "joins no graph"


class NodeStep(NamedTuple):
    """A node, with the values that it reads and makes."""

    part: Joining
    inputs: Sequence[Hashable]
    outputs: Sequence[Hashable]


_MOST_EXITS: Final = 64
"""The most nodes that may close a partition; of one with more, no edge is sure."""


def _sources(steps: Sequence[NodeStep]) -> list[list[int]]:
    """Return the nodes that make the inputs of each node, in the order of the inputs."""
    makers = {value: i for i, step in enumerate(steps) for value in step.outputs}
    return [[makers[value] for value in step.inputs if value in makers] for step in steps]


def _order(sources: Sequence[Sequence[int]]) -> Iterator[int]:
    """Yield the nodes in ONNX Runtime's order: depth first from those whose results no other reads, the last first."""
    used = {i for each in sources for i in each}
    stack = [(i, False) for i in range(len(sources)) if i not in used]
    seen = set[int]()
    while stack:
        i, is_left = stack.pop()
        if is_left:
            yield i
        elif i not in seen:
            seen.add(i)
            stack.append((i, True))
            stack += ((source, False) for source in sorted({*sources[i]}) if source not in seen)


class _Groups:
    """Numbers in groups that are merged."""

    def __init__(self, count: int) -> None:
        self._parents = [*range(count)]

    def of(self, i: int) -> int:
        """Return the number that stands for a group."""
        while self._parents[i] != i:
            self._parents[i] = self._parents[self._parents[i]]
            i = self._parents[i]
        return i

    def merge(self, i: int, j: int) -> None:
        """Merge the group of ``j`` into that of ``i``."""
        self._parents[self.of(j)] = self.of(i)


def partitions(steps: Sequence[NodeStep]) -> list[list[int]]:
    """Return the nodes of each DML_GRAPH_DESC, in the order in which they are visited.

    A node joins the first open partition that makes one of its inputs, and merges the others into it; one that joins
    none closes all of them.
    """
    sources, groups, closed = _sources(steps), _Groups(len(steps)), set[int]()
    found: dict[int, list[int]] = {}
    for i in _order(sources):
        fed = [*dict.fromkeys(groups.of(source) for source in sources[i])]
        if steps[i].part is not Joining.JOINS:
            closed |= {*fed, i}
            continue
        first, *others = [group for group in fed if group not in closed] or [i]
        for other in others:
            found[first][:0] = found.pop(other)
            groups.merge(first, other)
        found.setdefault(first, []).append(i)
        if first != i:
            groups.merge(first, i)
    return [*found.values()]


def sure_edges(steps: Sequence[NodeStep]) -> Iterator[tuple[int, int, Hashable]]:
    """Yield the edges between nodes that are surely in one DML_GRAPH_DESC: maker, reader and value.

    Nothing closes the maker's partition before the reader if all that may close it comes behind the reader in every
    order. Nodes are in an order in which each follows what feeds it.
    """
    sources = _sources(steps)
    inside = [step.part is Joining.JOINS for step in steps]
    for i in reversed(range(len(steps))):  # a node that may join binds what it feeds to what feeds it
        if inside[i]:
            for source in sources[i]:
                inside[source] |= steps[source].part is Joining.MAY_JOIN
    groups = _Groups(len(steps))
    for i, each in enumerate(sources):
        for source in each:
            if inside[i] and inside[source]:
                groups.merge(source, i)
    exits: dict[int, set[int]] = {}
    for i, each in enumerate(sources):
        for source in each:
            if steps[i].part is not Joining.JOINS and inside[source]:
                exits.setdefault(groups.of(source), set()).add(i)
    reached = _reached(sources, inside, groups, exits)
    makers = {value: i for i, step in enumerate(steps) for value in step.outputs}
    for i, step in enumerate(steps):
        for value in step.inputs:
            maker = makers.get(value)
            if maker is None or not step.part is steps[maker].part is Joining.JOINS:
                continue
            wanted = len(exits.get(groups.of(i), ()))
            if wanted <= _MOST_EXITS and reached[i].bit_count() == wanted:
                yield maker, i, value


def _reached(
    sources: Sequence[Sequence[int]], inside: Sequence[bool], groups: _Groups, exits: dict[int, set[int]]
) -> list[int]:
    """Return the exits of its own group that each node leads to, a bit each."""
    bits = {
        (group, node): 1 << bit
        for group, nodes in exits.items()
        if len(nodes) <= _MOST_EXITS
        for bit, node in enumerate(sorted(nodes))
    }
    reached = [0] * len(sources)
    for i in reversed(range(len(sources))):
        for source in sources[i]:
            group = groups.of(source)
            own = reached[i] if inside[i] and groups.of(i) == group else 0
            reached[source] |= own | bits.get((group, i), 0)
    return reached
