"""Places a model's nodes at a target, in the order of ONNX Runtime.

place()          the errors of a model and the placement of each node: load, functions, level 1, subgraphs, DirectML,
                 CPU, casts of float16
placed_model()   the same at several targets, for reports

The shapes of values never matter; the sources are those of ``dml_tile.back_ends.kernels``, and
onnxruntime/core/framework/fallback_cpu_capability.cc and DmlExecutionProvider/src/ExecutionProvider.cpp there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Final, NamedTuple

from dml_tile.back_ends.crossings import RESULTS_ON_CPU, crossings
from dml_tile.back_ends.deployment import Deployment
from dml_tile.back_ends.described_node import NodePlace
from dml_tile.back_ends.kernels import Kernel, Version, limits_at
from dml_tile.back_ends.known import known_departures
from dml_tile.back_ends.model_descriptions import KernelOf, ModelDescriptions
from dml_tile.back_ends.opsets import opset_advice
from dml_tile.back_ends.placement import (
    Crossing,
    Edge,
    LoadedModel,
    ModelNode,
    OpsetAdvice,
    PlacedModel,
    Placement,
    Reason,
)
from dml_tile.back_ends.possible_fusions import possible_fusion
from dml_tile.back_ends.queries import QUERIES
from dml_tile.back_ends.release_tables import (
    UNKNOWN_TYPE,
    Answer,
    NodeTables,
    all_nodes,
    cpu_provider_has,
    why_not_loaded,
)
from dml_tile.directml.targets import Target


def placed_model(models: Sequence[LoadedModel], deployments: Sequence[Deployment], kernel_of: KernelOf) -> PlacedModel:
    """Return the placements of a model's nodes, a target each, of which each has the model as its release loads it."""
    reasons: dict[Reason, int] = {}
    errors: list[tuple[int, ...]] = []
    columns: list[dict[NodePlace, tuple[int, int]]] = []
    known: list[list[tuple[NodePlace, int]]] = []
    values: dict[Crossing, int] = {}
    crossed: list[tuple[int, ...]] = []
    opsets: list[OpsetAdvice | None] = []
    pairs = [*zip(models, deployments, strict=True)]
    placements = [place(model, deployment) for model, deployment in pairs]
    descriptions = ModelDescriptions(kernel_of)
    numbers_of = descriptions.numbers_of(
        [(each.nodes, at.release) for each, at in zip(placements, deployments, strict=True)]
    )
    for (model, deployment), placed_nodes, described in zip(pairs, placements, numbers_of, strict=True):
        of_model, found, of_values = placed_nodes
        release = deployment.release
        errors.append(tuple(reasons.setdefault(reason, len(reasons)) for reason in of_model))
        opsets.append(opset_advice(model, found, deployment, lambda *exported: place(*exported).nodes))
        crossed.append(tuple(values.setdefault(each, len(values)) for each in of_values))
        named = [(node.place, node, reason) for node, reason in found]
        on_directml = [each for each in named if each[2].placement is Placement.DIRECTML]
        columns.append(
            {node: (reasons.setdefault(reason, len(reasons)), described.get(n, -1)) for node, n, reason in named}
        )
        departures = ((node, each) for node, whole, _ in on_directml for each in _known(whole, release))
        known.append([(node, reasons.setdefault(each, len(reasons))) for node, each in departures])
    nodes = tuple(_merged(columns))
    absent = (-1, -1)
    placed, of_nodes = (
        tuple(tuple(column.get(node, absent)[each] for node in nodes) for column in columns) for each in (0, 1)
    )
    numbers = {node: i for i, node in enumerate(nodes)}
    notes = tuple(tuple((numbers[node], reason) for node, reason in each) for each in known)
    described_so = (descriptions.distinct, of_nodes)
    by_target = (tuple(crossed), tuple(opsets))
    return PlacedModel(nodes, tuple(reasons), tuple(errors), placed, *described_so, notes, tuple(values), *by_target)


def _known(node: ModelNode, release: Version) -> Iterator[Reason]:
    """Yield the known departures of a node on DirectML, and what it may be fused into."""
    for rule, text, advice in known_departures(node, release):
        yield Reason(Placement.DIRECTML, rule, text, advice)
    for text in filter(None, (possible_fusion(made, release) for made in node.may_become)):
        yield Reason(Placement.DIRECTML, "ORT-OPERATOR-may-fuse", text)


def _merged(columns: Iterable[Iterable[NodePlace]]) -> Iterator[NodePlace]:
    """Yield the nodes of several targets once each, those of each target in its order."""
    after: dict[NodePlace | None, list[NodePlace]] = {None: []}
    for column in columns:
        before = None
        for node in column:
            if node not in after:
                after[before].append(node)
                after[node] = []
            before = node
    left = after[None]
    while left:
        yield (node := left.pop())
        left += after[node]


class PlacedNodes(NamedTuple):
    """The model's errors, the placement of each node, in the order of the file, and the values that cross."""

    errors: list[Reason]
    nodes: list[tuple[ModelNode, Reason]]
    crossings: list[Crossing]


def place(model: LoadedModel, deployment: Deployment) -> PlacedNodes:
    """Return what placing finds of a model.

    Where a model is not loaded because of its IR version or its opsets, none of its nodes is placed.
    """
    target, release, difference = deployment
    refused = list(why_not_loaded(model, release))
    if refused:
        return PlacedNodes(refused, [(node, refused[0]) for node in all_nodes(model.nodes)], [])
    of_model = []
    for domain in model.unimported:
        named, opset = domain or "ai.onnx", limits_at(release).opsets[domain]
        text = f"the model imports no opset of {named}: onnxruntime takes its newest, {opset}"
        advice = f"import opset {opset} of {named}"
        of_model.append(Reason(Placement.NONE, "ORT-MODEL-implied-opset", text, advice))
    if difference:
        of_model.append(Reason(Placement.UNKNOWN, "ORT-UNKNOWN-release", f"onnxruntime {difference}"))
    of_model += (fault for since, fault in model.faults if since <= release)
    placer = _Placer(release, target)
    placed = list(placer.placed(model.nodes))
    return PlacedNodes(of_model, placed, list(placer.crossings(placed)))


_NOT_OPTIMISED: Final = {"model": ((1, 12), (1, 16)), "onnx": ((1, 12), (10**6, 0))}
"""The first and last release that leaves the nodes of a function's body as they are, by the kind of function.

Measured with wheels of 1.9 to 1.24: before, functions are replaced when the model is loaded.
"""
_UNSORTED_SINCE: Final = (1, 17)
"""The first release that refuses a node replaced by several, directly in the graph of one that was replaced before it.

Measured with wheels of 1.15 to 1.24: HardSwish and SequenceMap in the body of a SequenceMap; deeper ones load.
"""
MAX_SMALL_ELEMENTS: Final = 100
"""The most elements of an initialiser that a node on the CPU may read."""
_STAYS_ON_DIRECTML: Final = ("float16", "bfloat16", "float8", "float4")


class _Placer:
    """Places the nodes of one model at one target."""

    def __init__(self, release: Version, target: Target) -> None:
        self._tables = NodeTables(release, target)
        self._release = self._tables.release
        self._made_by_directml: set[Edge] = set()
        self._kept: dict[Edge | None, Edge | None] = {}
        """Values that take the place of others, whose nodes are gone."""
        self._in_bodies: set[ModelNode] = set()
        """Nodes that are directly in a graph of a node of an operator's own function."""
        self._computed: set[Edge] = set()
        """Values that other releases fold, and this one computes as the model runs."""

    def placed(self, nodes: Sequence[ModelNode]) -> Iterator[tuple[ModelNode, Reason]]:
        """Yield the nodes of a graph with their placements, and those of the graphs inside them."""
        found = list(self._claimed(nodes))
        preferred = self._cpu_preferred(found) if self._tables.limits.cpu_preferred else set()
        placed: dict[ModelNode, Reason] = {}
        for node, _, reason in found:
            if node in preferred and reason.placement is Placement.DIRECTML:
                reason = Reason(Placement.CPU, "ORT-CPU-preferred", "all that it needs is in the CPU's memory")
                reason = self._tables.on_cpu(node, reason, self._tables.why_not_on_cpu(node))
            placed[node] = reason
        on_directml = {node for node, reason in placed.items() if reason.placement is Placement.DIRECTML}
        fused = self._fused(placed, 2, on_directml)
        for node, reason in placed.items():
            made = fused.get(node)
            if isinstance(made, Reason):
                reason = made
            elif made:
                node, reason = made, self._answer(made)[1]
            yield node, reason
            for graph in () if reason.placement is Placement.GONE else node.graphs:
                yield from self.placed(graph)

    def crossings(self, placed: Iterable[tuple[ModelNode, Reason]]) -> Iterator[Crossing]:
        """Yield the values that cross between DirectML and the CPU, of nodes that were all placed before."""
        return crossings(placed, lambda node: self._answer(node)[0], self._read)

    def _fused(
        self, nodes: Iterable[ModelNode], level: int, among: Set[ModelNode]
    ) -> Mapping[ModelNode, ModelNode | Reason]:
        """Return the node that a level fuses from parts ``among`` these, by the last, and why the others are gone."""
        fused: dict[ModelNode, ModelNode | Reason] = {}
        for node in nodes:
            for fusion in node.fusions:
                is_made = fusion.level == level and fusion.since <= self._release <= fusion.to
                if is_made and level > 1:  # which makes no node that another provider would have to take
                    is_made = self._answer(fusion.node)[1].placement is Placement.DIRECTML
                if is_made and among >= {*fusion.parts} and fused.keys().isdisjoint(fusion.parts):
                    at = fusion.node.place
                    text = f"it is part of {at.operator}-{at.version} at {at.pointer}; onnxruntime fuses them"
                    fused |= dict.fromkeys((*fusion.dropped, *fusion.parts), Reason(Placement.GONE, why=text))
                    fused[node] = fusion.node
        return fused

    def _claimed(
        self, nodes: Iterable[ModelNode], outer: str = ""
    ) -> Iterator[tuple[ModelNode, Kernel | None, Reason]]:
        """Yield nodes with DirectML's kernel for them, and with their placements but for what the CPU prefers.

        A node that no provider has as it is, is replaced by its body. ``outer`` says why the node that they are in is
        gone.
        """
        nodes = list(nodes)
        fused = self._fused(nodes, 1, {node for node in nodes if self._is_optimised(node)}) if not outer else {}
        for node in nodes:
            made = fused.get(node, node)
            if isinstance(made, Reason):
                yield node, None, made
                continue
            node = made
            if node.fault is None and (gone := outer or self._why_gone(node)):
                if node.gone and not outer:
                    self._kept.update(zip(node.outputs, map(self._read, node.gone.kept), strict=False))
                yield node, None, Reason(Placement.GONE, why=gone)
                is_unwrapped = not outer and node.gone is not None and node.gone.is_unwrapped
                for graph in node.graphs:
                    yield from self._claimed(graph, "" if is_unwrapped else gone)
                continue
            kernel, reason = self._answer(node)
            if kernel and kernel.query:
                reason = self._query(node, kernel.query) or reason
            if reason.placement is Placement.CPU:
                lacking = self._tables.why_not_on_cpu(node)  # it has the node cast, or not at all
                is_replaced = self._tables.is_read and lacking and lacking.placement is not Placement.UNKNOWN
                if is_replaced and node.body is not None:
                    if body := node.body():
                        yield from self._replaced(node, body)
                        continue
                    lacking = UNKNOWN_TYPE if body is None else lacking
                reason = self._tables.on_cpu(node, reason, lacking)
            if reason.placement is Placement.DIRECTML:
                self._made_by_directml.update(filter(None, node.outputs))
            yield node, kernel, reason

    def _replaced(
        self, node: ModelNode, body: Sequence[ModelNode]
    ) -> Iterator[tuple[ModelNode, Kernel | None, Reason]]:
        """Yield the nodes that replace one, as ``_claimed`` does."""
        is_several = sum(each.place.operator != "Constant" for each in body) > 1
        if node in self._in_bodies and is_several and self._release >= _UNSORTED_SINCE:
            why = (
                "has no kernel, and onnxruntime does not sort the nodes that replace it here: the session does not load"
            )
            advice = "export its parts in its place"
            yield node, None, Reason(Placement.NONE, "ORT-NODE-no-kernel", why, advice, node.place.operator, " ")
            return
        self._in_bodies.update(inner for each in body for graph in each.graphs for inner in graph)
        yield from self._claimed(body)

    def _why_gone(self, node: ModelNode) -> str:
        """Return why the release drops or folds a node; empty if it keeps it."""
        gone = node.gone
        if gone is None:
            return ""
        is_optimised = self._is_optimised(node) or node.place.operator == "Constant"
        is_computed = not gone.is_computed or (
            self._computed.isdisjoint(node.inputs) and cpu_provider_has(node, self._release)
        )
        if is_optimised and is_computed and gone.since <= self._release:
            return gone.reason
        self._computed.update(filter(None, node.outputs))
        return ""

    def _read(self, edge: Edge | None) -> Edge | None:
        """Return the value that is read in place of one whose node is gone; any other value itself."""
        return self._kept.get(edge, edge)

    def _is_optimised(self, node: ModelNode) -> bool:
        first, last = _NOT_OPTIMISED.get(node.place.function, ((0, 0), (0, 0)))
        return not first <= self._release <= last

    def _query(self, node: ModelNode, query: str) -> Reason | None:
        """Return why a support query refuses a node; None if it does not."""
        try:
            refused = QUERIES[query](node, self._release)
        except ValueError as error:
            return Reason(Placement.NONE, "ORT-NODE-query", f"{error}: the session does not load")
        return Reason(Placement.CPU, "ORT-CPU-query", f"DirectML does not take it: {refused}") if refused else None

    def _answer(self, node: ModelNode) -> Answer:
        """Return what the tables say of a node, by the nodes before it that are on DirectML."""
        made = self._made_by_directml
        is_direct = self._tables.limits.int64 == "direct"  # so that it does not matter which nodes make the inputs
        edges = () if is_direct else map(self._read, (*node.inputs, *node.implicit))
        return self._tables.answer(node, tuple(edge in made for edge in edges))

    def _cpu_preferred(self, found: Iterable[tuple[ModelNode, Kernel | None, Reason]]) -> set[ModelNode]:
        """Return the nodes that stay on the CPU, since all that they need is there: what follows from shapes."""
        there: set[Edge | None] = set()
        preferred: set[ModelNode] = set()
        for node, kernel, reason in found:
            if reason.placement is Placement.GONE:
                continue
            inputs, implicit = (list(map(self._read, edges)) for edges in (node.inputs, node.implicit))
            follows = stays_there = not there.isdisjoint((*inputs, *implicit))
            if kernel:
                if follows and all(self._is_there(i, edge, kernel, there) for i, edge in enumerate(inputs)):
                    preferred.add(node)
                stays_there = node in preferred or (node.place.domain, node.place.operator) in RESULTS_ON_CPU
            if stays_there:
                there.update(filter(None, node.outputs))
        return preferred

    def _is_there(self, i: int, edge: Edge | None, kernel: Kernel, there: Set[Edge | None]) -> bool:
        """Return True if an input is ``there``, in the CPU's memory, and not for the kernel alone."""
        if edge is None or (edge.type or "").startswith(_STAYS_ON_DIRECTML):
            return False
        is_small = edge.is_initialiser and edge.elements is not None and edge.elements <= MAX_SMALL_ELEMENTS
        is_constant = is_small and edge not in self._computed
        return is_constant or edge.is_input or (edge in there and i not in kernel.cpu_inputs)
