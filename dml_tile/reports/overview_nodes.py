"""The nodes of models that ONNX Runtime placed, as the page and Markdown show them, in short, safe texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from dml_tile.back_ends.placement import Placement
from dml_tile.checks.placements import Departure, ModelNodes
from dml_tile.directml.targets import Target
from dml_tile.findings import Finding
from dml_tile.reports.bounds import clipped, clipped_tries
from dml_tile.reports.wording import NO_OPERATORS
from dml_tile.text import plural

_LOADS: Final = "loads"
_NO_DEVICE: Final = "no device"


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A model: at each target, by its label, the numbers of its nodes by placement, and whether it loads, in words.

    Without a device there are no numbers.
    """

    source: str
    counts: dict[str, Counter[Placement]]
    outcomes: dict[str, str]


@dataclass(frozen=True, slots=True)
class DepartureRow:
    """A kind of departure of a model's nodes, or of the model, whose ``operator`` and ``first`` node are empty.

    ``finding`` has short texts. ``reason`` does not begin with the operator; ``targets`` are labels.
    """

    source: str
    operator: str
    first: str
    count: int
    placement: Placement
    finding: Finding
    reason: str
    targets: tuple[str, ...]


class OverviewNodes:
    """The models whose nodes were placed; ``max_listed`` are listed, and as many kinds of departure of a severity."""

    def __init__(self, max_listed: int) -> None:
        self.models: list[PlacedRow] = []
        self._departures: list[DepartureRow] = []
        self.targets: dict[str, Target] = {}
        self.count = self.left_out = self.known = 0
        """The models; the departures that are not listed, and those that the baseline has."""
        self._not_loading = 0
        self._max_listed = max_listed
        self._listed = Counter[int]()

    def add(self, nodes: ModelNodes, source: str) -> None:
        """Take the placements of a model, with its path from the root on."""
        self.targets |= {target.label: target for target in nodes.targets}
        counts = {target.label: counts for target, counts in zip(nodes.targets, nodes.counts, strict=True)}
        outcomes = {label: _outcome(nodes, i, counts[label]) for i, label in enumerate(counts)}
        self.count += 1
        self._not_loading += not {_LOADS, ""}.issuperset(outcomes.values())
        if len(self.models) < self._max_listed:
            shown = {label: Counter() if outcomes[label] == _NO_DEVICE else each for label, each in counts.items()}
            self.models.append(PlacedRow(clipped(source), shown, outcomes))
        self.known += len({(operator, rule) for operator, rule, _ in nodes.known})
        labels = {target.name: target.label for target in nodes.targets}
        for departure in nodes.counted:
            finding = departure.finding
            if self._listed[finding.severity] < self._max_listed:
                self._listed[finding.severity] += 1
                self._departures.append(_departure_row(clipped(source), departure, finding, labels))
            else:
                self.left_out += 1

    @property
    def departures(self) -> list[DepartureRow]:
        """The listed departures, the worst first."""
        return sorted(self._departures, key=lambda row: -row.finding.severity)

    @property
    def headline(self) -> str:
        """The outcome in one line; empty if no model's nodes were placed."""
        if not self.count:
            return ""
        fail = f", {self._not_loading} not loading at some target" if self._not_loading else ""
        return f"{plural(self.count, 'model')} placed{fail}"

    def headline_with(self, operators: str) -> str:
        """Return the outcome of models, then that of operators if there are some."""
        parts = [self.headline, "" if self.count and operators == NO_OPERATORS else operators]
        return "; ".join(filter(None, parts))


def _outcome(nodes: ModelNodes, target: int, counts: Counter[Placement]) -> str:
    """Return whether a model loads at a target, in words; empty if that is not known."""
    if not nodes.has_device(target):
        return _NO_DEVICE
    if not nodes.loads(target):
        return "does not load"
    return "" if counts[Placement.UNKNOWN] else _LOADS


def _departure_row(source: str, departure: Departure, finding: Finding, labels: dict[str, str]) -> DepartureRow:
    node = departure.first
    return DepartureRow(
        source=source,
        operator=clipped(departure.operator),
        first=clipped(f"{node.pointer} {node.name}".rstrip()) if node else "",
        count=departure.count,
        placement=departure.reason.placement,
        finding=replace(finding, message=clipped(finding.message), tries=clipped_tries(finding.tries)),
        reason=clipped(departure.why),
        targets=tuple(labels[name] for name in departure.targets),
    )
