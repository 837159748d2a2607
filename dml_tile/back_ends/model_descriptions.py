"""The descriptions of a model's nodes on DirectML, and the edges between them that CompileGraph may refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dml_tile.back_ends.described_node import DescribedNode, DescriptionOutcome, NodePlace
from dml_tile.back_ends.descriptions import KernelNode, described_operators
from dml_tile.back_ends.descriptions.node import Input
from dml_tile.back_ends.graphs import (
    computed_by,
    graph_desc,
    in_graph,
    member_of,
    numbered,
    of_session,
    places_computed,
    without_constants,
)
from dml_tile.back_ends.kernels import Version
from dml_tile.back_ends.partitions import Joining, NodeStep, partitions, sure_edges
from dml_tile.back_ends.placement import ModelNode, Placement, Reason

MAX_DESCRIBED_BYTES: Final = 2**22
"""The bytes of the distinct descriptors that are described of a model's nodes; further nodes are not described."""

_TOO_MANY: Final = f"the descriptors of its model have more than {MAX_DESCRIBED_BYTES} bytes"

KernelOf: TypeAlias = Callable[[ModelNode], Callable[[Version], KernelNode] | None]
"""Returns what makes a node a kernel's, of the model with all sizes that are given."""

NodePlacements: TypeAlias = Sequence[tuple[ModelNode, Reason]]


_ALIKE: Final = ((1, 21), (1, 24))
"""The first and the last of the releases that create the same operators of a node, in the same graphs."""


def described_alike(release: Version) -> Version:
    """Return the newest release that creates of each node what this one does."""
    return _ALIKE[1] if _ALIKE[0] <= release <= _ALIKE[1] else release


class _At(NamedTuple):
    """What decides a node's description besides the node: the release, whether its model may have graphs, and the
    places of the inputs that are computed as the model runs, though they may be folded.
    """

    release: Version
    has_graphs: bool
    computed: tuple[int, ...] = ()


class _Ends(NamedTuple):
    """The bytes that a node's operators read and write of values, by the place of each in its inputs and outputs."""

    reads: tuple[tuple[int, int], ...]
    writes: tuple[tuple[int, int], ...]


_Numbered: TypeAlias = tuple[int, _Ends | None]
"""The number of a node's description, and the ends of edges of one that is part of a graph."""


class ModelDescriptions:
    """The distinct descriptions of a model's nodes, by number."""

    def __init__(self, kernel_of: KernelOf) -> None:
        self._kernel_of = kernel_of
        self._bytes = 0
        self._numbers: dict[tuple[object, ...], int] = {}
        self._of_signatures: dict[Hashable, dict[_At, _Numbered]] = {}
        self._found: list[DescribedNode] = []

    @property
    def distinct(self) -> tuple[DescribedNode, ...]:
        """The descriptions, without places and names."""
        return tuple(self._found)

    def numbers_of(self, placements: Sequence[tuple[NodePlacements, Version]]) -> list[dict[ModelNode, int]]:
        """Return of each release's placements the numbers of the descriptions of the nodes on DirectML.

        It is -1 for a node that has no kernel's view.
        """
        asked = [_At(described_alike(release), may_have_graphs(placed)) for placed, release in placements]
        computed = [computed_by(placed) for placed, _ in placements]
        where = dict[ModelNode, list[int]]()
        for i, (placed, _) in enumerate(placements):
            for node, reason in placed:
                if reason.placement is Placement.DIRECTML:
                    where.setdefault(node, []).append(i)
        described: list[dict[ModelNode, _Numbered]] = [{} for _ in placements]
        for node, numbers in where.items():
            ats = {i: asked[i]._replace(computed=places_computed(node, computed[i])) for i in numbers}
            found = self._described(node, dict.fromkeys(ats.values()))
            for i, at in ats.items():
                described[i][node] = found[at]
        return [
            self._with_graphs(placed, of_nodes, at, each)
            for (placed, _), of_nodes, at, each in zip(placements, described, asked, computed, strict=True)
        ]

    def _with_graphs(
        self, placed: NodePlacements, described: Mapping[ModelNode, _Numbered], at: _At, computed: Set[Hashable]
    ) -> dict[ModelNode, int]:
        """Return the numbers of descriptions, with the edges that CompileGraph may refuse."""
        numbers = {node: number for node, (number, _) in described.items()}
        if at.has_graphs:
            ends, read = {node: each for node, (_, each) in described.items()}, values_read(placed)
            for maker, node, value in _unlike_edges(placed, ends, read):
                graph = self._graph(maker, node, value, at.release, read, computed)
                numbers[node] = self._kept(replace(self._found[numbers[node]], graph=graph))
        return numbers

    def _described(self, node: ModelNode, asked: Collection[_At]) -> Mapping[_At, _Numbered]:
        """Return a node's descriptions. Those of its signature serve, unless elements of constants decide them."""
        kernel = self._kernel_of(node)
        if kernel is None:
            return dict.fromkeys(asked, (-1, None))
        seen, found = _seen(node, kernel, next(iter(asked)).release), dict[_At, _Numbered]()
        signature = _signature(seen)
        known = {} if signature is None else self._of_signatures.setdefault(signature, {})
        for at in asked:
            if at not in known:
                read = list[str]()
                of_release = without_constants(seen._replace(release=at.release), at.computed)
                found[at] = self._new(_noting_reads(in_graph(of_release, at.has_graphs), read))
                if not read:
                    known[at] = found[at]
        return known | found

    def _new(self, node: KernelNode) -> _Numbered:
        described, made = described_operators(NodePlace(""), node)
        if not node.is_in_graph or described.outcome is not DescriptionOutcome.DESCRIBED:
            return self._kept(described), None
        member = member_of("", node, made, range(len(node.inputs) + len(node.outputs)))
        if member.has_constants:
            described = replace(described, graph=graph_desc([member]))
        reads, writes = (dict.fromkeys(member.ends(are_outputs=side)) for side in (False, True))
        from_outside = tuple(each for each in reads if each[0] < len(node.inputs))
        return self._kept(described), _Ends(from_outside, tuple(writes))

    def _graph(
        self,
        maker: ModelNode,
        reader: ModelNode,
        value: Hashable,
        release: Version,
        read: Mapping[Hashable, Hashable],
        computed: Set[Hashable],
    ) -> dict[str, object]:
        """Return the graph of a node's operators behind the one that makes a value."""
        members = []
        for label, node in (("maker", maker), ("reader", reader)):
            kernel = self._kernel_of(node)
            assert kernel is not None
            seen = without_constants(_seen(node, kernel, release), places_computed(node, computed))
            seen = in_graph(seen, has_graphs=True)
            values = [read.get(each, each) for each in (*node.inputs, *node.outputs)]
            members.append(member_of(label, seen, described_operators(NodePlace(""), seen)[1], values))
        return graph_desc([members[0].making(value), members[1]])

    def _kept(self, described: DescribedNode) -> int:
        if described.outcome is DescriptionOutcome.AT_RUN_TIME:
            described = replace(described, reason="")  # it names values
        texts = json.dumps(described.descs), json.dumps(described.graph)
        operator = described.place.operator
        key = operator, described.outcome, described.is_static, described.reason, described.operators, *texts
        if (number := self._numbers.get(key)) is None:
            self._bytes += sum(map(len, (described.reason, *described.operators, *texts)))
            if self._bytes > MAX_DESCRIBED_BYTES:
                outcome = DescriptionOutcome.NOT_DESCRIBED
                described = DescribedNode(described.place, outcome, _TOO_MANY)
                key = operator, outcome, True, _TOO_MANY, (), "", ""
            number = self._numbers.setdefault(key, len(self._found))
            self._found += [described] * (number == len(self._found))
        return number


def _seen(node: ModelNode, kernel: Callable[[Version], KernelNode], release: Version) -> KernelNode:
    return numbered(of_session(node, kernel, release))


def _signature(node: KernelNode) -> Hashable:
    """Return what decides a node's description at a release but for the elements of its constants.

    None for a node with an attribute that is a tensor.
    """
    attributes = [(name, tuple(each) if isinstance(each, list) else each) for name, each in node.attributes.items()]
    if any(isinstance(each, np.ndarray) for _, each in attributes):
        return None
    values = [each and (each.type, each.shape, each.is_constant, each.is_own) for each in (*node.inputs, *node.outputs)]
    return (*node[:3], node.groups, node.is_static, len(node.inputs), tuple(values), tuple(attributes))


def _noting_reads(node: KernelNode, read: list[str]) -> KernelNode:
    """Return a node that notes the names of the constants whose elements are read."""

    def elements(value: Input) -> NDArray[Any] | None:
        read.append(value.name)
        return value.elements()

    inputs = [
        each._replace(elements=partial(elements, each)) if each and each.is_constant else each for each in node.inputs
    ]
    return node._replace(inputs=inputs)


def may_have_graphs(placed: NodePlacements) -> bool:
    """Return True if the provider may make graphs of a model's nodes: none of them has a body."""
    return not any(node.graphs for node, _ in placed)


def values_read(placed: NodePlacements) -> dict[Hashable, Hashable]:
    """Return the values that are read in place of those of nodes that are gone."""
    read: dict[Hashable, Hashable] = {}
    for node, reason in placed:
        if node.gone and reason.placement is Placement.GONE:
            read |= {value: read.get(kept, kept) for value, kept in zip(node.outputs, node.gone.kept, strict=False)}
    return read


def steps_of(placed: NodePlacements, joining: Callable[[ModelNode], bool]) -> tuple[list[ModelNode], list[NodeStep]]:
    """Return the nodes that are not gone, and what becomes of each; ``joining`` nodes are part of graphs."""
    read, nodes, steps = values_read(placed), [], []
    for node, reason in placed:
        if reason.placement is Placement.GONE:
            continue
        is_on_directml = reason.placement is Placement.DIRECTML
        part = (
            Joining.JOINS if is_on_directml and joining(node) else Joining.MAY_JOIN if is_on_directml else Joining.APART
        )
        inputs = [read.get(value, value) for value in (*node.inputs, *node.implicit) if value]
        nodes.append(node)
        steps.append(NodeStep(part, inputs, [value for value in node.outputs if value]))
    return nodes, steps


def described_graphs(
    placed: NodePlacements, seen: Mapping[ModelNode, KernelNode], results: Set[Hashable]
) -> Iterator[DescribedNode]:
    """Yield the graphs that the provider compiles, and the nodes on DirectML that are part of none.

    ``seen`` are the nodes on DirectML as kernels see them, ``results`` the model's outputs.
    """
    described = {node: described_operators(node.place, each)[0] for node, each in seen.items()}
    is_described = {node: each.outcome is DescriptionOutcome.DESCRIBED for node, each in described.items()}
    ordered = sorted(placed, key=lambda pair: pair[0].parts > 0)  # a fused node comes behind all others
    nodes, steps = steps_of(ordered, lambda node: is_described.get(node, False) and seen[node].is_in_graph)
    found, read = partitions(steps), values_read(placed)
    numbers = {i: number for number, each in enumerate(found) for i in each}
    made = {value: numbers.get(i) for i, step in enumerate(steps) for value in step.outputs}
    kept = {read.get(value, value) for value in results}
    kept |= {value for i, step in enumerate(steps) for value in step.inputs if made.get(value) != numbers.get(i, -1)}
    for each in found:
        first, members = described[nodes[each[0]]], []
        for node in (nodes[i] for i in each):
            member = numbered(seen[node])
            operators = described_operators(NodePlace(""), member)[1]
            values = [read.get(value, value) for value in (*node.inputs, *node.outputs)]
            members.append(member_of(described[node].label, member, operators, values))
        graph = graph_desc(members, kept)
        if graph["Nodes"]:
            yield DescribedNode(first.place, first.outcome, graph=graph)
        else:
            yield from (_left_out(described[nodes[i]], "nothing reads its outputs") for i in each)
    for i, node in enumerate(nodes):
        if node in described and i not in numbers:
            alone = described[node]
            yield _left_out(alone, "its kernel is part of no graph") if alone.descs else alone


def _left_out(node: DescribedNode, reason: str) -> DescribedNode:
    return replace(node, outcome=DescriptionOutcome.NOT_DESCRIBED, reason=reason, descs=())


def _unlike_edges(
    placed: NodePlacements, ends: Mapping[ModelNode, _Ends | None], read: Mapping[Hashable, Hashable]
) -> Iterator[tuple[ModelNode, ModelNode, Hashable]]:
    """Yield the sure edges whose ends have tensors of other bytes: maker, reader and value."""
    written = dict[Hashable, int]()
    for node, each in ends.items():
        for i, size in each.writes if each else ():
            written[node.outputs[i - len(node.inputs)]] = size
    unlike = {
        (node, value)
        for node, each in ends.items()
        if each
        for i, size in each.reads
        if written.get(value := read.get(node.inputs[i], node.inputs[i]), size) != size
    }
    if not unlike:
        return
    nodes, steps = steps_of(placed, lambda node: ends.get(node) is not None)
    for maker, reader, value in sure_edges(steps):
        if (nodes[reader], value) in unlike:
            yield nodes[maker], nodes[reader], value
