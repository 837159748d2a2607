"""An operator at all targets: its findings grouped, and its row of the page and of Markdown, in short, safe texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from dml_tile.checks.placements import ModelNodes
from dml_tile.checks.result import Result, lowest_level_at_all
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.findings import OWN, PASSED_OVER, Finding, Try, location_of
from dml_tile.reports.bounds import MAX_CLIPPED, clipped, clipped_tries
from dml_tile.reports.overview_nodes import OverviewNodes
from dml_tile.reports.report import Report, ReportOptions
from dml_tile.reports.rows import FindingRow, rows_of
from dml_tile.reports.wording import (
    VERDICTS,
    VerdictCounts,
    buffer_name,
    cost_of,
    has_a_least_level,
    remarks,
    run_from_level,
)

SIGNS: Final = dict(zip(VERDICTS, "✕!!–→◑◐✓", strict=True))
"""A character for each verdict, beside the word."""

_MAX_FINDINGS: Final = 10


@dataclass(frozen=True, slots=True)
class RowLowering:
    """The tile, its steps as (tile, reads, writes), their cost, the targets that take them, and a command for each."""

    before: str
    steps: tuple[tuple[str, str, str], ...]
    costs: tuple[str, ...]
    targets: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OverviewRow:
    """An operator, with its verdict at each target and the worst of them.

    ``operator``, ``lowest_level`` and ``oldest_windows`` are empty for what was not checked.
    """

    source: str
    pointer: str
    operator: str
    verdict: str
    verdicts: dict[str, str]
    lowest: FeatureLevel | None
    lowest_level: str
    oldest_windows: str
    unknown: str
    not_looked_at: str
    notes: tuple[str, ...]
    rules: tuple[str, ...]
    findings: tuple[FindingRow, ...]
    findings_left_out: int
    lowerings: list[RowLowering]

    @property
    def has_details(self) -> bool:
        """True if there is more to say of it than its verdicts."""
        return bool(self.findings or self.unknown or self.not_looked_at or self.notes)

    @property
    def name(self) -> str:
        """The source, and the operator's location in it."""
        return location_of(self.source, self.pointer)


def overview_row(results: Sequence[Result], verdict: str, source: str) -> OverviewRow:
    """Return the results of an operator, one for each target, the worst of its verdicts, and its path, as a row."""
    first = results[0]
    findings = rows_of(results)
    lowest = lowest_level_at_all(results)
    level, windows = run_from_level(lowest, has_a_least_level(first)) if first.is_judged else ("", "")
    return OverviewRow(
        source=clipped(source),
        pointer=clipped(first.item.pointer),
        operator=clipped(first.item.operator) if first.is_checked else "",
        verdict=verdict,
        verdicts={result.target.label: result.verdict for result in results},
        lowest=lowest,
        lowest_level=level,
        oldest_windows=windows,
        unknown=clipped("; ".join(map(str, first.item.unknown))),
        not_looked_at=clipped(", ".join(first.not_looked_at)),
        notes=tuple(dict.fromkeys(note for result in results for note in _notes(result))),
        rules=tuple(dict.fromkeys(group.rule for group in findings)),
        findings=tuple(_short(group, len(results)) for group in findings[:_MAX_FINDINGS]),
        findings_left_out=len(findings[_MAX_FINDINGS:]),
        lowerings=_row_lowerings(results),
    )


def _notes(result: Result) -> Iterator[str]:
    if result.item.via:
        yield f"via {result.item.via}"
    if remarked := remarks(result):
        yield clipped(remarked)


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


def _row_lowerings(results: Sequence[Result]) -> list[RowLowering]:
    rows: dict[tuple[object, ...], RowLowering] = {}
    for result in results:
        if lowering := result.lowering:
            steps = (
                (clipped(str(step.desc)), buffer_name(step.reads), buffer_name(step.writes)) for step in lowering.steps
            )
            costs = (cost_of(lowering), *(f"note: {note}" for note in lowering.notes))
            of_target = clipped(str(lowering.original)), tuple(steps), costs
            row = rows.setdefault(of_target, RowLowering(*of_target))
            row.targets.append(result.target.label)
            if 0 < len(result.command) <= MAX_CLIPPED:  # cut short, it would be another
                row.commands.append(result.command)
    return [*rows.values()]


class OverviewReport(Report):
    """Gathers operators, to write all at the end, with paths from the root on; memory is bounded whatever their number.

    ``verdicts`` count operators at each target, ``rules`` those that break them. The first ``max_listed`` operators
    with findings are listed, and as many without; ``left_out`` counts the others. ``placed`` are the nodes of models.
    """

    max_listed: ClassVar[int]

    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options)
        self.counted = VerdictCounts()
        self.verdicts: dict[Target, Counter[str]] = {}
        self.rules = Counter[str]()
        self.left_out = Counter[str]()
        self.placed = OverviewNodes(self.max_listed)
        self._rows: list[OverviewRow] = []
        self._listed_by_kind = Counter[bool]()

    def item(self, results: Sequence[Result]) -> None:
        """Count an operator by its results, one for each target, and list it unless there are too many of its kind."""
        verdict = self.counted.add(results)
        if not verdict:
            return
        for result in results:
            at_target = self.verdicts.setdefault(result.target, Counter())
            if not result.item.part_kind:
                at_target[result.verdict] += 1
        self.rules.update({finding.rule for result in results for finding in result.findings})
        has_findings = any(result.findings for result in results)
        if self._listed_by_kind[has_findings] < self.max_listed:
            self._listed_by_kind[has_findings] += 1
            self._rows.append(overview_row(results, verdict, self.options.path(results[0].item.source)))
        else:
            self.left_out[verdict] += 1

    def nodes(self, nodes: ModelNodes) -> None:
        """Take the placements of a model's nodes, and what keeps some from DirectML."""
        self.placed.add(nodes, self.options.path(nodes.source))

    def finding(self, source: str, finding: Finding) -> None:
        """Keep a finding about a file, with its path from the root on; what was passed over is only counted.

        Those about nodes came with the nodes.
        """
        if OWN[finding.rule].key == "nodes":
            return
        super().finding(source if finding.rule == PASSED_OVER else self.options.path(source), finding)

    @property
    def rows(self) -> list[OverviewRow]:
        """The listed operators, the worst first."""
        return sorted(self._rows, key=lambda row: VERDICTS.index(row.verdict))

    @property
    def headline(self) -> str:
        """The outcome in one line: of models whose nodes were placed, then of operators."""
        return self.placed.headline_with(self.counted.headline(self.problems))

    @property
    def targets(self) -> list[str]:
        """The labels of the targets."""
        return [target.label for target in self.verdicts]

    @property
    def words(self) -> list[str]:
        """The verdicts that operators have at some target, the worst first."""
        there = sum(self.verdicts.values(), Counter[str]())
        return [word for word in VERDICTS if there[word]]
