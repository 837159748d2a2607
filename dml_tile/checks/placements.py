"""The placements of a model's nodes by ONNX Runtime, as reports take them: by target, and by kind of departure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple

from dml_tile.back_ends.back_end import BackEnd
from dml_tile.back_ends.deployment import NO_GRAPHS, Deployment
from dml_tile.back_ends.described_node import DescriptionOutcome, NodePlace
from dml_tile.back_ends.kernels import version_text
from dml_tile.back_ends.placement import NAMELESS, Crossing, OpsetAdvice, PlacedModel, Placement, Reason
from dml_tile.checks.described import AT_RUN_TIME, Judged, judge
from dml_tile.checks.verdict import Verdict
from dml_tile.directml.enums import HRESULT
from dml_tile.directml.targets import Target, provider_release
from dml_tile.findings import GONE, OWN, Against, Finding, Severity, Try, own_finding
from dml_tile.readers.item import Item

_OF_SHAPES: Final = Reason(Placement.CPU, "ORT-CPU-preferred", "nodes compute shapes on the CPU, as they should")
_OPEN: Final = Reason(Placement.DIRECTML, AT_RUN_TIME, "nodes have fields that are known at run time only")
_OF_ONE: Final = {
    _OF_SHAPES.why: "node computes shapes on the CPU, as it should",
    _OPEN.why: "node has fields that are known at run time only",
}
_TOGETHER: Final = {reason.rule: reason for reason in (_OF_SHAPES, _OPEN)}
"""The reasons, by their rules, that are told once for all nodes, whatever their operators: nobody has to mend them."""


def reason_kind(rule: str, message: str) -> str:
    """Return what identifies a reason: its words, those of DirectML's rules without sizes, which differ by layer."""
    return message if rule in OWN else _SIZES.sub("…", message)


_SIZES: Final = re.compile(r"\{[^{}]*\}|[0-9]+")
"""Numbers in a message, and arrays of them."""


def with_places(departure: Finding, targets: Sequence[str]) -> Finding:
    """Return a departure whose message has the operator, the number of nodes, the first of them, and these targets."""
    via = f" via {departure.via}" if departure.via else ""
    where = [f"at {', '.join(targets)}{via}"] if targets else []
    operator, text = departure.operator, departure.about
    if departure.rule not in OWN:
        text = f"{operator}: {departure.message}"
    name = f" {departure.name!r}" if departure.name else ""
    is_refused = departure.placement == Placement.DIRECTML and departure.severity is Severity.ERROR
    if is_refused and departure.count == 1:
        text, name = f"{operator}{name}{text.removeprefix(operator)}", ""
    nodes = f"node {departure.path}{name}"
    if departure.count and departure.about in _OF_ONE:
        words = _OF_ONE[departure.about] if departure.count == 1 else departure.about
        text = f"{departure.count:,} {words}"
    elif departure.count:
        where[:0] = [nodes] if departure.count == 1 else [f"{departure.count:,} nodes", f"first {nodes}"]
    return replace(departure, message=f"{text} ({', '.join(where)})" if where else text)


def targets_to_tell(departure: Finding, targets: Sequence[Target]) -> Sequence[str]:
    """Return the targets of a departure, or none if it is a note at all of these targets."""
    is_everywhere = departure.severity is Severity.NOTE and len(departure.targets) == len(targets)
    return () if is_everywhere else departure.targets


def is_tile(node: NodePlace) -> bool:
    """Return True for ONNX's Tile, which has results of its own."""
    return (node.domain, node.operator) == ("", "Tile")


def operator_name(node: NodePlace) -> str:
    """Return a node's operator with its domain and version: ``Conv-22``, ``com.microsoft.Gelu-1``."""
    domain = f"{node.domain}." if node.domain else ""
    return f"{domain}{node.operator or NAMELESS}{f'-{node.version}' if node.version else ''}"


def named(node: NodePlace) -> str:
    """Return a node's operator with its name: ``Softmax-13 'softmax'``."""
    return f"{operator_name(node)} {node.name!r}" if node.name else operator_name(node)


def against_of_nodes(against: Against) -> Against:
    """Return what the operators of nodes are held to: nobody can mend the descriptors that a provider makes.

    So ``both`` means the runtime alone.
    """
    return "runtime" if against == "both" else against


class PlacedSummary(NamedTuple):
    """The outcome of a model whose nodes were placed, for the summary of a run.

    It ``loads`` unless it is known not to, or not to run, at some target. ``has_counted`` and ``has_known`` tell of
    departures that count, and of others that the baseline has.
    """

    node_count: int
    loads: bool
    has_counted: bool
    has_known: bool


@dataclass
class ModelNodes:
    """The placements of a model's nodes at the targets of a check; ``counts`` are the numbers of nodes by placement.

    ``departures`` keep the model, and nodes of it, from DirectML; those of the model come first. Those that count are
    ``counted``, at the targets where they do; the baseline has the ``known`` ones, at theirs.
    """

    source: str
    targets: tuple[Target, ...]
    placed: PlacedModel
    via: BackEnd
    max_cpu_nodes: int | None = None
    against: Against = "runtime"
    known: list[Finding] = field(default_factory=list)
    deployments: list[Deployment] = field(init=False)
    """The release of ONNX Runtime that runs over each target's DirectML."""
    has_device: list[bool] = field(init=False)
    """Whether ONNX Runtime creates a device, a target each."""
    lacks_graphs: list[str] = field(init=False)
    """Why a target's DirectML compiles no graph of nodes that are created with the session; empty if it does."""
    counts: list[Counter[Placement]] = field(init=False)
    judged: list[dict[int, Judged]] = field(init=False)
    """The verdicts on the distinct descriptions at a target, by their numbers."""
    verdicts: list[Counter[Verdict | None]] = field(init=False)
    """The numbers of nodes on DirectML by the verdict on their operators, a target each; None: not described."""
    departures: list[Finding] = field(init=False)
    counted: list[Finding] = field(init=False)

    def __post_init__(self) -> None:
        """Group the reasons by operator."""
        self.deployments = [self.via.deployed(target) for target in self.targets]
        self.has_device = [at.target.feature_level >= self.via.device_level(at) for at in self.deployments]
        self.counts = [Counter(reason.placement for _, reason in self.placed.at(i)) for i in range(len(self.targets))]
        self._judge()
        self.lacks_graphs = [*map(self._why_no_graphs, range(len(self.targets)))]
        found: dict[tuple[str, Reason], dict[str, list[NodePlace]]] = {}
        firsts: dict[tuple[str, Reason], Reason] = {}
        for i, target in enumerate(self.targets):
            for operator, reason, node in self._departing(i):
                kind = operator, reason._replace(why=reason_kind(reason.rule, reason.why))
                first = firsts.setdefault(kind, reason)
                nodes = found.setdefault((operator, first), {}).setdefault(target.name, [])
                nodes += [node] if node else []
        self.departures = self.counted = [
            self._departure(reason, operator, next(iter(at.values())), max(map(len, at.values())), tuple(at))
            for (operator, reason), at in found.items()
        ]

    def _judge(self) -> None:
        """Judge each distinct description at the targets at which it occurs."""
        counts = [Counter(self._on_directml(i) if has_device else ()) for i, has_device in enumerate(self.has_device)]
        self.judged = [{} for _ in self.targets]
        for number, described in enumerate(self.placed.descriptions):
            at = [i for i, count in enumerate(counts) if number in count]
            deployments = (self.deployments[i] for i in at)
            for i, judged in zip(at, judge(described, deployments, self.against), strict=True):
                self.judged[i][number] = judged
        self.verdicts = [Counter() for _ in self.targets]
        for i, count in enumerate(counts):
            for number, nodes in count.items():
                self.verdicts[i][self.judged_of(i, number).verdict] += nodes

    def _departure(
        self,
        reason: Reason,
        operator: str,
        nodes: Sequence[NodePlace],
        count: int = 1,
        targets: tuple[str, ...] = (),
    ) -> Finding:
        """Return the finding that a reason keeps nodes of one operator from DirectML, or without nodes, the model.

        The operator is empty for a reason that is of any operator. The message is the reason alone; ``with_places``
        says more. A rule of DirectML's is one that refuses an operator of the nodes.
        """
        own = OWN.get(reason.rule)
        return Finding(
            reason.rule,
            nodes[0].pointer if nodes else "",
            reason.why,
            own.usual_severity if own else Severity.ERROR,
            tries=(Try(reason.suggestion),) if reason.suggestion else (),
            source=self.source,
            about=f"{operator}{reason.joint or ': '}{reason_kind(reason.rule, reason.why)}"
            if operator
            else reason.text,
            operator=operator,
            name=nodes[0].name if nodes else "",
            placement=reason.placement,
            count=count if nodes else 0,
            targets=targets,
            via=self.via.name if self.via.release else "",
        )

    def _departing(self, target: int) -> Iterator[tuple[str, Reason, NodePlace | None]]:
        """Yield what keeps the model from DirectML at a target, then its nodes, each with its operator."""
        of_model = [self.placed.reasons[number] for number in self.placed.errors[target]]
        yield from (("", reason, None) for reason in of_model)
        if not self.has_device[target]:
            needs = self.via.needs(self.targets[target])
            yield "", Reason(Placement.NONE, "ORT-MODEL-device", needs, self._advice(target)), None
            return
        if lacking := self.lacks_graphs[target]:
            yield "", Reason(Placement.NONE, "ORT-MODEL-interface", lacking, self._advice(target)), None
        if not self.allows_cpu_nodes(target) and self.max_cpu_nodes is not None:
            on_cpu = self.counts[target][Placement.CPU]
            text = f"{on_cpu} nodes are on the CPU; max-cpu-nodes allows {self.max_cpu_nodes}"
            yield "", Reason(Placement.CPU, "ORT-MODEL-cpu-nodes", text), None
        for node, reason, described in self.at(target):
            if reason.placement is Placement.DIRECTML:
                told = self.judged[target][described].reason if described >= 0 and not is_tile(node) else None
            else:
                told = reason if reason.rule and reason not in of_model else None
            if told:
                together = _TOGETHER.get(told.rule)
                yield "" if together else operator_name(node), together or told, node
            yield from ((operator_name(node), note, node) for note in self.judged_of(target, described).notes)
        yield from ((operator_name(node), reason, node) for node, reason in self.placed.notes_at(target))

    def _advice(self, target: int) -> str | None:
        return self.via.advice and self.via.advice(self.deployments[target])

    def at(self, target: int) -> Iterator[tuple[NodePlace, Reason, int]]:
        """Yield the nodes with their placements at a target, and the numbers of their descriptions; -1 for none."""
        columns = self.placed.nodes, self.placed.placed[target], self.placed.described[target]
        for node, reason, described in zip(*columns, strict=True):
            if reason >= 0:
                yield node, self.placed.reasons[reason], described

    def told_at(self, target: int) -> Iterator[tuple[NodePlace, Reason, int]]:
        """Yield what ``at`` yields; of a node on DirectML, with the reason that is told of it, the worst first."""
        known = dict(reversed([*self.placed.notes_at(target)]))
        for node, reason, described in self.at(target):
            told = reason
            if reason.placement is Placement.DIRECTML:
                judged = self.judged_of(target, described) if self.has_device[target] else Judged(None)
                told = judged.reason or known.get(node) or next(iter(judged.notes), reason)
            yield node, told, described

    def _on_directml(self, target: int) -> Iterator[int]:
        """Yield the number of the description of each node on DirectML at a target."""
        for _, reason, described in self.at(target):
            if reason.placement is Placement.DIRECTML:
                yield described

    def crossings_at(self, target: int) -> Iterator[Crossing]:
        """Yield the values that cross between DirectML and the CPU at a target; none without a device."""
        yield from self.placed.crossings_at(target) if self.has_device[target] else ()

    def opset_at(self, target: int) -> OpsetAdvice | None:
        """Return the advice on the opset at a target; None without a device."""
        return self.placed.opset_at(target) if self.has_device[target] else None

    def judged_of(self, target: int, described: int) -> Judged:
        """Return what a description, by its number, comes to at a target; -1 is that of a node that has none."""
        return self.judged[target][described] if described >= 0 else Judged(None)

    def known_kinds(self, *targets: str) -> int:
        """Return the number of the kinds of departure that the baseline has, at one of some targets."""
        known = (each for each in self.known if not {*targets}.isdisjoint(each.targets))
        return len({(each.operator, each.rule, each.message) for each in known})

    def allows_cpu_nodes(self, target: int) -> bool:
        """Return True if a setting allows the nodes on the CPU at a target."""
        return self.max_cpu_nodes is not None and self.counts[target][Placement.CPU] <= self.max_cpu_nodes

    def label(self, target: int) -> str:
        """Return a target in words, with the release that runs there, unless the target is a package of it."""
        named, release, _ = self.deployments[target]
        return named.label if provider_release(named.name) else f"{named.label} via ort-{version_text(release)}"

    def _why_no_graphs(self, target: int) -> str:
        if not self.has_device[target] or self.targets[target].level.has_graphs:
            return ""
        numbers = {number for number in self._on_directml(target) if number >= 0}
        described = (self.placed.descriptions[number] for number in numbers)
        if not any(each.operators and each.outcome is DescriptionOutcome.DESCRIBED for each in described):
            return ""
        return f"{NO_GRAPHS.format(self.targets[target].name)} ({HRESULT.E_NOINTERFACE})"

    def targets_of(self, item: Item) -> Sequence[Target]:
        """Return the targets at which an item has results: of a Tile, those at which DirectML is asked for it."""
        node = item.node
        if node is None or node.error:
            return self.targets
        i, targets = self._numbers[node.place], []
        for target, has_device, placed in zip(self.targets, self.has_device, self.placed.placed, strict=True):
            is_placed = has_device and placed[i] >= 0
            if is_placed and self.placed.reasons[placed[i]].placement is Placement.DIRECTML:
                targets.append(target)
        return targets

    def placed_item(self, item: Item) -> Item:
        """Return an item with the finding that keeps its Tile from DirectML at the first target, if one does."""
        node = item.node
        if node is None or node.error or not self.has_device[0]:
            return item
        i = self._numbers[node.place]
        number = self.placed.placed[0][i]
        reason, named = self.placed.reasons[number], self.placed.nodes[i]
        if reason.placement is Placement.DIRECTML:
            return item
        if reason.placement is Placement.GONE:
            finding = own_finding(GONE, reason.text)
        else:
            is_of_model = number in self.placed.errors[0]
            of_node = ("", ()) if is_of_model else (operator_name(named), [named])
            finding = with_places(self._departure(reason, *of_node), ())
        return replace(item, departure=replace(finding, path="", url=OWN[finding.rule].url))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {node.pointer: i for i, node in enumerate(self.placed.nodes) if node.operator == "Tile"}


PLACED: Final = {
    Placement.DIRECTML: "on DirectML",
    Placement.CPU: "on the CPU",
    Placement.NONE: "with no provider",
    Placement.UNKNOWN: "unknown",
    Placement.GONE: "gone before",
}
"""The placements in words, behind a number of nodes."""

MEMORIES: Final = {Placement.DIRECTML: "DirectML", Placement.CPU: "the CPU"}
"""The providers in whose memory a value is read, in words."""
