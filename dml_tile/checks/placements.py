"""The placements of a model's nodes by ONNX Runtime, as reports take them: by target, and by kind of departure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Final

from dml_tile.back_ends.onnxruntime import ORT
from dml_tile.back_ends.placement import NamedNode, PlacedModel, Placement, Reason
from dml_tile.directml.targets import Target
from dml_tile.findings import OWN, Finding, Severity, Try
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
    def why(self) -> str:
        """The reason, without the operator."""
        return self.reason.text[len(self.reason.subject) :].lstrip(": ")

    @property
    def text(self) -> str:
        """The reason, behind the operator."""
        subject, text = self.reason.subject, self.reason.text
        if self.first is None:
            return text
        return f"{self.operator}{text[len(subject) :] if subject else f': {text}'}"

    def message(self, targets: Sequence[str]) -> str:
        """Return the reason with the number of nodes and the first of them, and these targets."""
        where = [f"at {', '.join(targets)}"] if targets else []
        if self.first:
            name = f" {self.first.name!r}" if self.first.name else ""
            nodes = f"node {self.first.pointer}{name}"
            where[:0] = [nodes] if self.count == 1 else [f"{self.count:,} nodes", f"first {nodes}"]
        return f"{self.text} ({', '.join(where)})" if where else self.text

    @property
    def finding(self) -> Finding:
        """The finding about all of these nodes, or about the model."""
        path = self.first.pointer if self.first else ""
        severity = OWN[self.reason.rule].severity
        message = self.message(self.targets)
        tries = (Try(self.reason.suggestion),) if self.reason.suggestion else ()
        return Finding(self.reason.rule, path, message, severity, tries=tries, about=self.text)


def operator_name(node: NamedNode) -> str:
    """Return a node's operator with its domain and version: ``Conv-22``, ``com.microsoft.Gelu-1``."""
    domain = f"{node.domain}." if node.domain else ""
    return f"{domain}{node.operator}{f'-{node.version}' if node.version else ''}"


@dataclass
class ModelNodes:
    """The placements of a model's nodes at the targets of a check.

    ``ignored`` departures, by operator, rule and target, do not count: a setting or the baseline lets them pass. They
    are set before the departures that count are asked for.
    """

    source: str
    targets: tuple[Target, ...]
    placed: PlacedModel
    max_cpu_nodes: int | None = None
    ignored: Set[tuple[str, str, str]] = frozenset()
    known: Set[tuple[str, str, str]] = frozenset()
    """Those of the ``ignored`` that the baseline has."""

    @cached_property
    def counts(self) -> list[Counter[Placement]]:
        """The numbers of nodes by placement, a target each."""
        return [Counter(reason.placement for _, reason in self.placed.at(i)) for i in range(len(self.targets))]

    @property
    def not_lowered(self) -> int:
        """The most nodes on DirectML at a target that are no Tiles: their operators are not checked."""
        tiles = {i for i, node in enumerate(self.placed.nodes) if not node.domain and node.operator == "Tile"}
        on_directml = [reason.placement is Placement.DIRECTML for reason in self.placed.reasons]
        return max(
            (
                self.counts[target][Placement.DIRECTML] - sum(column[i] >= 0 and on_directml[column[i]] for i in tiles)
                for target, column in enumerate(self.placed.placed)
                if self.has_device(target)
            ),
            default=0,
        )

    def has_device(self, target: int) -> bool:
        """Return True if ONNX Runtime creates a device there."""
        return ORT.creates_a_device(self.targets[target])

    def loads(self, target: int) -> bool:
        """Return True unless something keeps the model from loading."""
        rules = {self.placed.reasons[number].rule for number in {*self.placed.placed[target], -1} - {-1}}
        return not any(OWN[rule].severity is Severity.ERROR for rule in rules if rule)

    def placements(self, node: str) -> list[Placement | None]:
        """Return the placements of a node, by its place, at all targets; None where it is not there."""
        i = self._numbers[node]
        return [self.placed.reasons[column[i]].placement if column[i] >= 0 else None for column in self.placed.placed]

    def taken(self, item: Item) -> tuple[Item, Sequence[Target]]:
        """Return an item with the targets at which it has results: of a Tile, those at which DirectML is asked for it.

        There, the Tile is not folded.
        """
        if item.node is None or item.node.error:
            return item, self.targets
        placements = self.placements(item.node.place)
        on_directml = (i for i, placement in enumerate(placements) if placement is Placement.DIRECTML)
        targets = [self.targets[i] for i in on_directml if self.has_device(i)]
        return replace(item, subject=replace(item.node, folded="")) if item.node.folded and targets else item, targets

    def placed_item(self, item: Item) -> Item:
        """Return an item with the finding that keeps its Tile from DirectML at the first target, if one does."""
        node = item.node
        if node is None or node.error or not self.has_device(0):
            return item
        i = self._numbers[node.place]
        number = self.placed.placed[0][i]
        reason, is_of_model = self.placed.reasons[number], number in self.placed.errors[0]
        is_gone = reason.placement is Placement.GONE
        item = replace(item, subject=replace(node, folded=reason.text if is_gone else ""))
        if reason.placement is Placement.DIRECTML or is_gone:
            return item
        operator, named = ("", None) if is_of_model else (self._operators[i], self.placed.nodes[i])
        departure = Departure(operator, reason, 1, named, ())
        return replace(item, departure=replace(departure.finding, path="", url=OWN[reason.rule].url))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {node.pointer: i for i, node in enumerate(self.placed.nodes)}

    @cached_property
    def departures(self) -> list[Departure]:
        """What keeps the model, and nodes of it, from DirectML, of the model first."""
        found: dict[tuple[str, Reason], list[tuple[str, NamedNode | None, int]]] = {}
        for i, target in enumerate(self.targets):
            kinds: Iterable[tuple[str, Reason, NamedNode | None, int]] = self._of_model(i)
            if self.has_device(i):
                kinds = chain(kinds, self._kinds(i))
            for operator, reason, first, count in kinds:
                found.setdefault((operator, reason), []).append((target.name, first, count))
        return [
            Departure(operator, reason, max(count for *_, count in at), at[0][1], tuple(name for name, *_ in at))
            for (operator, reason), at in found.items()
        ]

    def _of_model(self, target: int) -> Iterator[tuple[str, Reason, None, int]]:
        """Yield what is to be said of the model as a whole at a target."""
        for number in self.placed.errors[target]:
            yield "", self.placed.reasons[number], None, 1
        on_cpu = self.counts[target][Placement.CPU]
        if not self.has_device(target):
            text = ORT.needs(self.targets[target])
            yield "", Reason(Placement.NONE, "ORT-MODEL-device", text, ORT.advice), None, 1
        elif self.max_cpu_nodes is not None and on_cpu > self.max_cpu_nodes:
            text = f"{on_cpu} nodes are on the CPU; max-cpu-nodes allows {self.max_cpu_nodes}"
            yield "", Reason(Placement.CPU, "ORT-MODEL-cpu-nodes", text), None, 1

    def _kinds(self, target: int) -> Iterator[tuple[str, Reason, NamedNode, int]]:
        """Yield the kinds of departure of nodes at a target, with the first node and the number of nodes."""
        of_model = set(self.placed.errors[target])
        kinds: dict[tuple[str, int], list[int]] = {}
        for i, (operator, number) in enumerate(zip(self._operators, self.placed.placed[target], strict=True)):
            if number >= 0 and self.placed.reasons[number].rule and number not in of_model:
                kinds.setdefault((operator, number), []).append(i)
        for (operator, number), at in kinds.items():
            yield operator, self.placed.reasons[number], self.placed.nodes[at[0]], len(at)

    @cached_property
    def _operators(self) -> list[str]:
        return [operator_name(node) for node in self.placed.nodes]

    @property
    def allowed(self) -> set[tuple[str, str, str]]:
        """The departures that ``max_cpu_nodes`` allows, by operator, rule and target."""
        if self.max_cpu_nodes is None:
            return set()
        pairs = zip(self.targets, self.counts, strict=True)
        within = {target.name for target, counts in pairs if counts[Placement.CPU] <= self.max_cpu_nodes}
        return {
            (each.operator, each.reason.rule, name)
            for each in self.departures
            for name in within.intersection(each.targets)
            if each.reason.placement is Placement.CPU
        }

    @cached_property
    def counted(self) -> list[Departure]:
        """The departures that count, at the targets where they do."""
        if not self.ignored:
            return self.departures
        found = []
        for each in self.departures:
            kept = tuple(name for name in each.targets if (each.operator, each.reason.rule, name) not in self.ignored)
            if kept:
                found.append(replace(each, targets=kept))
        return found


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
    counts = nodes.counts[target]
    there = [placement for placement in PLACED if counts[placement]] or [Placement.DIRECTML]
    first, *others = there
    listed = (f"{counts[placement]:,} {PLACED[placement]}" for placement in others)
    sentence = ", ".join([f"{plural(counts[first], 'node')} {PLACED[first]}", *listed])
    outcome = "it loads" if nodes.loads(target) else "it does not load"
    return sentence if counts[Placement.UNKNOWN] and nodes.loads(target) else f"{sentence}; {outcome}"
