"""The placements of a model's nodes by ONNX Runtime, as reports take them: by target, and by kind of departure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from dml_tile.back_ends import BackEnd
from dml_tile.back_ends.onnxruntime import ORT
from dml_tile.back_ends.placement import NamedNode, PlacedModel, Placement, Reason
from dml_tile.directml.targets import Target
from dml_tile.findings import OWN, Finding
from dml_tile.readers.item import Item
from dml_tile.text import plural


@dataclass(frozen=True, slots=True)
class Departure:
    """The nodes of one operator that one reason keeps from DirectML, and the targets where it does.

    Of a model as a whole, ``operator`` is empty and ``first`` is None.
    """

    operator: str
    reason: Reason
    count: int
    first: NamedNode | None
    targets: tuple[str, ...]

    @property
    def finding(self) -> Finding:
        """The finding about all of these nodes, or about the model."""
        at = f"at {', '.join(self.targets)}"
        if self.first:
            name = f" {self.first.name!r}" if self.first.name else ""
            nodes = f"node {self.first.pointer}{name}"
            at = f"{nodes}, {at}" if self.count == 1 else f"{self.count:,} nodes, first {nodes}, {at}"
        rule, text = self.reason.rule, self.reason.text
        if self.first:
            plain = f"{self.first.operator}-{self.first.version}"  # a reason names no domain
            text = f"{self.operator}{text.removeprefix(plain) if text.startswith(plain) else f': {text}'}"
        return Finding(
            rule,
            self.first.pointer if self.first else "",
            f"{text} ({at})",
            OWN[rule].severity,
            suggestion=self.reason.suggestion,
            about=text,
        )


def operator_name(node: NamedNode) -> str:
    """Return a node's operator with its domain and version: ``Conv-22``, ``com.microsoft.Gelu-1``."""
    domain = f"{node.domain}." if node.domain else ""
    return f"{domain}{node.operator}{f'-{node.version}' if node.version else ''}"


@dataclass(frozen=True)
class ModelNodes:
    """The placements of a model's nodes at the targets of a check.

    ``ignored`` departures, by operator, rule and target, do not count: a setting or the baseline lets them pass.
    """

    source: str
    targets: tuple[Target, ...]
    placed: PlacedModel
    ignored: frozenset[tuple[str, str, str]] = frozenset()
    known: frozenset[tuple[str, str, str]] = frozenset()
    """Those of the ``ignored`` that the baseline has."""
    max_cpu_nodes: int | None = None

    def counts(self, target: int) -> Counter[Placement]:
        """Return the numbers of nodes by placement at a target, by its number."""
        return Counter(reason.placement for _, reason in self.placed.at(target))

    def not_lowered(self, target: int) -> int:
        """Return the number of nodes that DirectML takes at a target, and that are no Tiles: none is described."""
        placed = (node for node, reason in self.placed.at(target) if reason.placement is Placement.DIRECTML)
        return sum(operator_name(node).partition("-")[0] != "Tile" for node in placed)

    def has_device(self, target: int) -> bool:
        """Return True if ONNX Runtime creates a device there."""
        return ORT.creates_a_device(self.targets[target])

    def loads(self, target: int) -> bool:
        """Return True unless something keeps the model from loading."""
        reasons = {reason for _, reason in self.placed.at(target)}
        return not any(each.placement is Placement.NONE and each.rule not in _LOADED_ANYHOW for each in reasons)

    def placements(self, node: str) -> list[Placement | None]:
        """Return the placements of a node, by its place, at all targets; None where it is not there."""
        i = self._numbers[node]
        return [self.placed.reasons[column[i]].placement if column[i] >= 0 else None for column in self.placed.placed]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {node.pointer: i for i, node in enumerate(self.placed.nodes)}

    @cached_property
    def departures(self) -> list[Departure]:
        """What keeps the model, and nodes of it, from DirectML, of the model first."""
        found: dict[tuple[str, Reason], list[tuple[str, NamedNode | None, int]]] = {}
        for i, target in enumerate(self.targets):
            for number in self.placed.errors[i]:
                found.setdefault(("", self.placed.reasons[number]), []).append((target.name, None, 1))
            if not self.has_device(i):
                reason = Reason(Placement.NONE, "ORT-MODEL-device", ORT.needs(target), ORT.advice)
                found.setdefault(("", reason), []).append((target.name, None, 1))
                continue
            on_cpu = self.counts(i)[Placement.CPU]
            if self.max_cpu_nodes is not None and on_cpu > self.max_cpu_nodes:
                text = f"{on_cpu} nodes are on the CPU; max-cpu-nodes allows {self.max_cpu_nodes}"
                reason = Reason(Placement.CPU, "ORT-MODEL-cpu-nodes", text)
                found.setdefault(("", reason), []).append((target.name, None, 1))
            for (operator, reason), (count, first) in self._kinds(i).items():
                found.setdefault((operator, reason), []).append((target.name, first, count))
        return [
            Departure(operator, reason, max(count for *_, count in at), at[0][1], tuple(name for name, *_ in at))
            for (operator, reason), at in found.items()
        ]

    def _kinds(self, target: int) -> dict[tuple[str, Reason], tuple[int, NamedNode]]:
        kinds: dict[tuple[str, Reason], tuple[int, NamedNode]] = {}
        of_model = {self.placed.reasons[number] for number in self.placed.errors[target]}
        for node, reason in self.placed.at(target):
            if reason.rule and reason not in of_model:
                count, first = kinds.get((operator_name(node), reason), (0, node))
                kinds[operator_name(node), reason] = count + 1, first
        return kinds

    @property
    def allowed(self) -> frozenset[tuple[str, str, str]]:
        """The departures that ``max_cpu_nodes`` allows, by operator, rule and target."""
        within = {
            target.name
            for i, target in enumerate(self.targets)
            if self.max_cpu_nodes is not None and self.counts(i)[Placement.CPU] <= self.max_cpu_nodes
        }
        return frozenset(
            (each.operator, each.reason.rule, name)
            for each in self.departures
            for name in within.intersection(each.targets)
            if each.reason.placement is Placement.CPU
        )

    def counted(self) -> Iterator[Departure]:
        """Yield the departures that count, at the targets where they do."""
        for each in self.departures:
            kept = tuple(name for name in each.targets if (each.operator, each.reason.rule, name) not in self.ignored)
            if kept:
                yield replace(each, targets=kept)


_LOADED_ANYHOW: Final = frozenset({"ORT-NODE-domain"})


def places_nodes(via: BackEnd | None) -> bool:
    """Return True if a check through this back end places nodes."""
    return via is not None and via.name == ORT.name


PLACED: Final = {
    Placement.DIRECTML: "on DirectML",
    Placement.CPU: "on the CPU",
    Placement.NONE: "with no provider",
    Placement.UNKNOWN: "unknown",
    Placement.GONE: "gone before",
}
"""The placements in words, behind a number of nodes."""


def summary_of(nodes: ModelNodes, target: int) -> str:
    """Return the placements at a target in one sentence."""
    if not nodes.has_device(target):
        return "no device"
    counts = nodes.counts(target)
    listed = [f"{counts[placement]:,} {word}" for placement, word in PLACED.items() if counts[placement]]
    first, *others = listed or ["0 on DirectML"]
    number, _, where = first.partition(" ")
    sentence = ", ".join([f"{plural(int(number.replace(',', '')), 'node')} {where}", *others])
    outcome = "it loads" if nodes.loads(target) else "it does not load"
    return sentence if counts[Placement.UNKNOWN] and nodes.loads(target) else f"{sentence}; {outcome}"


def targets_of(item: Item, nodes: ModelNodes | None, targets: Sequence[Target]) -> Sequence[Target]:
    """Return the targets at which an item has results: of a placed Tile, those at which DirectML is asked for it."""
    if nodes is None or item.node is None or item.node.error:
        return targets
    placements = nodes.placements(item.node.place)
    on_directml = (i for i, placement in enumerate(placements) if placement is Placement.DIRECTML)
    return [targets[i] for i in on_directml if nodes.has_device(i)]
