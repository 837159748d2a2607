"""Rows of the page and of Markdown in short, safe texts: operators at all targets, and departures of models' nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar, Final, NamedTuple

from dml_tile.back_ends.placement import Placement
from dml_tile.checks.described import VERDICTS
from dml_tile.checks.placements import PLACED, ModelNodes
from dml_tile.checks.result import Result, lowest_level_at_all
from dml_tile.checks.sessions import JUDGED, session_at
from dml_tile.checks.verdict import Verdict
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.findings import PASSED_OVER, Finding, Severity, Try, location_of
from dml_tile.lowering.steps import Lowering
from dml_tile.reports import wording
from dml_tile.reports.bounds import MAX_CLIPPED, clipped, clipped_tries
from dml_tile.reports.report import Report, ReportOptions
from dml_tile.reports.rows import FindingRow, rows_of

SIGNS: Final = dict(zip(wording.VERDICTS, "✕!!–→◑◐✓", strict=True))
"""A character for each verdict, beside the word."""

_MAX_FINDINGS: Final = 10


def located(finding: Finding) -> str:
    """Return the part of a source that a finding is about, cut short."""
    return clipped(finding.location)


class RowLowering(NamedTuple):
    """A lowering, its costs in words, the targets that take it, and a command for each.

    ``tiles`` are the original and the steps: each a name, the tile, and the buffers that it reads and writes.
    """

    tiles: tuple[tuple[str, str, str, str], ...]
    costs: tuple[str, ...]
    targets: list[str]
    commands: list[str]


class OverviewRow:
    """An operator, with its verdict at each target and the worst of them.

    A line of JSON has its number in ``source``, and no pointer. ``operator``, ``level`` and ``windows`` are empty for
    unchecked ones. ``facts`` are its fields that are known at run time only or not looked at, ``rules`` those of all
    findings, of which the first are listed.
    """

    def __init__(self, results: Sequence[Result], verdict: str, source: str) -> None:
        first, findings = results[0], rows_of(results)
        line = first.item.line
        self.source = clipped(source if line is None else location_of(source, "", line=line))
        self.pointer = clipped(first.item.pointer) if line is None else ""
        self.title = clipped(first.item.title)
        self.operator = clipped(first.item.operator) if first.is_checked else ""
        self.verdict = verdict
        self.verdicts: dict[str, str] = {result.target.label: result.verdict for result in results}
        self.lowest = lowest_level_at_all(results)
        is_least = wording.has_a_least_level(first)
        self.level, self.windows = wording.run_from_level(self.lowest, is_least) if first.is_judged else ("", "")
        facts = {
            "known at run time only": clipped("; ".join(map(str, first.item.unknown))),
            "not looked at": clipped(", ".join(first.not_looked_at)),
        }
        self.facts = {what: fields for what, fields in facts.items() if fields}
        via = f"via {first.item.via}" if first.item.via else ""
        remarks = (clipped(wording.remarks(result)) for result in results)
        self.notes = [*filter(None, dict.fromkeys([via, *remarks]))]
        self.rules = [*dict.fromkeys(group.rule for group in findings)]
        self.findings = [_short(group, len(results)) for group in findings[:_MAX_FINDINGS]]
        self.findings_left_out = len(findings[_MAX_FINDINGS:])
        self.lowerings = _lowerings(results)

    @property
    def has_details(self) -> bool:
        """True if there is more to say of it than its verdicts."""
        return bool(self.findings or self.facts or self.notes)

    @property
    def name(self) -> str:
        """The source, and the operator's location in it."""
        return location_of(self.source, self.pointer)


def _short(group: FindingRow, target_count: int) -> FindingRow:
    """Return the finding with short texts; without other findings, or targets if they are all."""
    without_commands = (tuple(Try(each.text) for each in tries) for tries in group.tries)  # the lowerings have them
    return replace(
        group,
        operator=(),
        identity=(),
        targets=group.targets if len(group.targets) < target_count else (),
        messages=tuple(map(clipped, group.messages)),
        tries=tuple(dict.fromkeys(map(clipped_tries, without_commands))),
    )


def _lowerings(results: Sequence[Result]) -> list[RowLowering]:
    rows: dict[tuple[object, ...], RowLowering] = {}
    for result in results:
        if result.command and (lowering := _lowering_of(result)):
            tiles = [("Before", clipped(str(lowering.original)), "input", "output")]
            for i, step in enumerate(lowering.steps, start=1):
                buffers = wording.buffer_name(step.reads), wording.buffer_name(step.writes)
                tiles.append((f"Step {i}", clipped(str(step.desc)), *buffers))
            costs = (wording.cost_of(lowering), *(f"note: {note}" for note in lowering.notes))
            row = rows.setdefault((*tiles, costs), RowLowering(tuple(tiles), costs, [], []))
            row.targets.append(result.target.label)
            if 0 < len(result.command) <= MAX_CLIPPED:  # cut short, it would be another
                row.commands.append(result.command)
    return [*rows.values()]


def _lowering_of(result: Result) -> Lowering | None:
    from dml_tile.checks.lowerings import lowering_of  # of refused tiles only

    with suppress(DmlError):
        return lowering_of(result.item, result.target)
    return None


class PlacedCell(NamedTuple):
    """Whether a model loads at a target, in words, and the numbers of its nodes by placement, as ``PLACED`` has it.

    The ``outcome`` is empty if that is not known; without a device there are no numbers. ``judged`` are the numbers of
    nodes on DirectML by the verdicts on their operators, in words.
    """

    outcome: str
    counts: dict[Placement, int]
    judged: dict[str, int]


def fate_of(departure: Finding) -> str:
    """Return where a departure's nodes are, and on DirectML the verdict that it gives, in words."""
    placed = PLACED[Placement(departure.placement)]
    if departure.placement == Placement.DIRECTML and departure.severity is Severity.ERROR:
        return f"{placed}, {JUDGED[Verdict.REFUSED]}"
    return f"{placed}, {JUDGED[VERDICTS[departure.rule]]}" if departure.rule in VERDICTS else placed


class PlacedModels:
    """The models whose nodes ONNX Runtime placed, and the kinds of departure of them, the worst first.

    Of the models ``max_listed`` are listed, with a cell for each target, and of each severity as many kinds;
    ``left_out`` counts the other kinds, ``known`` those that the baseline has.
    """

    def __init__(self, max_listed: int) -> None:
        self.count = self.left_out = self.known = 0
        self.targets: Sequence[Target] = ()
        self.labels: Sequence[str] = ()
        """The targets in words, with the release of ONNX Runtime that runs there."""
        self.rows: list[tuple[str, list[PlacedCell]]] = []
        self._max_listed = max_listed
        self._departures: dict[Severity, list[Finding]] = {each: [] for each in Severity}

    def add(self, source: str, nodes: ModelNodes) -> None:
        """Add a model, by the name that its row has."""
        self.count += 1
        self.targets, self.labels = nodes.targets, [nodes.label(i) for i, _ in enumerate(nodes.targets)]
        self.known += nodes.known_kinds(*(target.name for target in nodes.targets))
        if len(self.rows) < self._max_listed:
            self.rows.append((source, [*_placed_cells(nodes)]))
        for departure in nodes.counted:
            listed = self._departures[departure.severity]
            if len(listed) < self._max_listed:
                listed.append(replace(departure, source=source))
            else:
                self.left_out += 1

    @property
    def fates(self) -> list[str]:
        """The placements of the listed kinds of nodes, in words, DirectML's first."""
        there = {fate_of(departure) for departure in self.departures}
        every = (
            f"{placed}{more}" for placed in PLACED.values() for more in ("", *(f", {each}" for each in JUDGED.values()))
        )
        return [fate for fate in every if fate in there]

    @property
    def departures(self) -> list[Finding]:
        """The listed kinds."""
        return [each for severity in sorted(Severity, reverse=True) for each in self._departures[severity]]


def _placed_cells(nodes: ModelNodes) -> Iterator[PlacedCell]:
    for i, (numbers, verdicts) in enumerate(zip(nodes.counts, nodes.verdicts, strict=True)):
        counts = {placement: count for placement in PLACED if (count := numbers[placement])}
        judged = {words: count for verdict, words in JUDGED.items() if (count := verdicts[verdict])}
        yield PlacedCell(session_at(nodes, i), counts if nodes.has_device[i] else {}, judged)


class OverviewReport(Report):
    """Gathers operators, to write all at the end, with paths from the root on; memory is bounded whatever their number.

    ``verdicts`` count operators at each target, ``rules`` those that break them. The first ``max_listed`` operators
    with findings are listed, and as many without; ``left_out`` counts the others.
    """

    max_listed: ClassVar[int]

    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options)
        self.counted = wording.VerdictCounts()
        self.verdicts: dict[Target, Counter[str]] = {}
        self.rules = Counter[str]()
        self.left_out = Counter[str]()
        self.placed = PlacedModels(self.max_listed)
        self._rows: list[OverviewRow] = []
        self._listed_by_kind = Counter[bool]()

    def item(self, results: Sequence[Result]) -> None:
        """Count an operator by its results, one for each target, and list it unless there are too many of its kind."""
        verdict = self.counted.add(results)
        if not verdict:
            return
        for result in results:
            at_target = self.verdicts.setdefault(result.target, Counter())
            if result.is_counted and not result.item.part_kind:
                at_target[result.verdict] += 1
        self.rules.update({finding.rule for result in results for finding in result.findings})
        has_findings = any(result.findings for result in results)
        if self._listed_by_kind[has_findings] < self.max_listed:
            self._listed_by_kind[has_findings] += 1
            self._rows.append(OverviewRow(results, verdict, self.options.path(results[0].item.source)))
        else:
            self.left_out[verdict] += 1

    def nodes(self, nodes: ModelNodes) -> None:
        """Count a model whose nodes were placed, and list it unless there are too many."""
        self.placed.add(clipped(self.options.path(nodes.source)), nodes)

    def finding(self, finding: Finding) -> None:
        """Keep a finding about a file, with its path from the root on; skipped files are only counted."""
        is_counted = finding.rule == PASSED_OVER
        super().finding(finding if is_counted else replace(finding, source=self.options.path(finding.source)))

    @property
    def rows(self) -> list[OverviewRow]:
        """The listed operators, the worst first."""
        return sorted(self._rows, key=lambda row: wording.VERDICTS.index(row.verdict))

    @property
    def targets(self) -> list[str]:
        """The labels of the targets."""
        return [target.label for target in self.verdicts]

    @property
    def words(self) -> list[str]:
        """The verdicts that operators have at some target, the worst first."""
        there = sum(self.verdicts.values(), Counter[str]())
        return [word for word in wording.VERDICTS if there[word]]
