"""The answers: the verdict on an operator at a target, the result that has it, and the file that was checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from dml_tile.checks.verdict import NOT_FOR_DIRECTML, Verdict
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.findings import NOT_LOOKED_AT, RUN_TIME, Finding, Position, Severity, own_finding
from dml_tile.readers.item import Item
from dml_tile.readers.model_names import ModelFacts

if TYPE_CHECKING:
    from dml_tile.checks.placements import ModelNodes, PlacedSummary
    from dml_tile.checks.selection import Suppression
    from dml_tile.lowering.steps import Lowering


def alike(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    """Group the findings that differ in their paths only, and in the fields that a way out changes."""
    groups: dict[tuple[str, str, Severity, tuple[str, ...]], list[Finding]] = {}
    for finding in findings:
        key = finding.rule, finding.message, finding.severity, tuple([each.text for each in finding.tries])
        groups.setdefault(key, []).append(finding)
    return groups.values()


NOT_SELECTED: Final = "not selected"
IN_BASELINE: Final = "in the baseline"


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on an item at a target, its findings, and the lowest level at which it passes.

    Rules do not cover the fields ``not_looked_at``; findings are about the other fields that are known, and the lowest
    level is then a lower bound. ``uncounted`` findings, by the reason why they do not count, do count for the lowest
    level, and those in a baseline for the verdict. ``lowering`` has tiles that do what a refused tile does. A captured
    graph's ``operators`` are counted by their verdicts; it is not ``is_counted`` where its verdict is one of theirs.
    """

    item: Item
    target: Target
    verdict: Verdict
    findings: tuple[Finding, ...]
    lowest_level: FeatureLevel | None
    not_looked_at: tuple[str, ...] = ()
    uncounted: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    lowering: Lowering | None = None
    operators: Mapping[Verdict, int] = field(default_factory=dict)
    is_counted: bool = True

    @property
    def command(self) -> str:
        """The command that prints the lowering, which a finding suggests; empty without one."""
        return next((each.command for finding in self.findings for each in finding.tries if each.command), "")

    @property
    def first_position(self) -> Position | None:
        """The first finding's position; None without findings, or if the source is not JSON."""
        findings = (*self.findings, *self.uncounted.get(IN_BASELINE, ()))
        return next(filter(None, (self.item.position(finding.path) for finding in findings)), None)

    @property
    def is_checked(self) -> bool:
        """True for an operator whose fields are known; False for a part of a model that is none."""
        return not self.item.part_kind and self.verdict is not Verdict.NOT_CHECKED

    @property
    def is_judged(self) -> bool:
        """True if the operator has a lowest level, or passes at none; False if DirectML is not asked."""
        return self.lowest_level is not None or not (self.item.part_kind or self.verdict in NOT_FOR_DIRECTML)

    @property
    def ok(self) -> bool:
        """True if the operator passes a build by default: it has neither errors nor warnings."""
        return self.passes(Severity.WARNING)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """The finding that fields are known at run time only, or that no rule is about them, if it counts."""
        if not (self.item.unknown or self.not_looked_at):
            return ()
        note = _KNOWN_AT_RUN_TIME if self.item.unknown else _NOT_LOOKED_AT
        return () if any(note in findings for findings in self.uncounted.values()) else (note,)

    @property
    def severity(self) -> Severity | None:
        """The worst finding's severity; fields that are unknown, or not looked at, count as a note."""
        return max((finding.severity for finding in (*self.notes, *self.findings)), default=None)

    def passes(self, fail_on: Severity | None) -> bool:
        """Return True if the severity is below ``fail_on``, or if either is None."""
        severity = self.severity
        return fail_on is None or severity is None or severity < fail_on

    def without(self, reason: str, is_left_out: Callable[[Finding], bool]) -> Result:
        """Return the result with some of its findings, and notes, moved to ``uncounted``; the verdict stays."""
        kept, left_out = list[Finding](), list[Finding]()
        for finding in self.findings:
            (left_out if is_left_out(finding) else kept).append(finding)
        left_out += filter(is_left_out, self.notes)
        if not left_out:
            return self
        return replace(self, findings=tuple(kept), uncounted={**self.uncounted, reason: tuple(left_out)})


_KNOWN_AT_RUN_TIME: Final = own_finding(RUN_TIME, "")
_NOT_LOOKED_AT: Final = own_finding(NOT_LOOKED_AT, "")


def lowest_level_at_all(results: Iterable[Result]) -> FeatureLevel | None:
    """Return the lowest level at which an operator passes as it does at each of its targets; None if there is none.

    Targets that name different releases of a back end may differ in it.
    """
    levels = [result.lowest_level for result in results]
    return None if None in levels else max(filter(None, levels))


@dataclass(slots=True)
class CheckedFile:
    """A file that was checked: the ``results`` of its operators, one for each target, and the ``findings`` about it.

    Findings are of parts that cannot be read (``unreadable``), and shapes that an ONNX model declares and its values do
    not have (``contradiction``). Through ONNX Runtime, ``nodes`` are the placements of a model's nodes, and further
    findings what keeps them from DirectML.

    Of its ``operators``, ``unknown`` are known in part only before they are run, ``failing`` have an error or a warning
    at a target, and all pass from ``lowest_level`` on, None if there is no such level. ``is_whole`` is False if a part
    could not be read, ``is_empty`` True for JSON without a descriptor and a model without a Tile.

    Where files are checked by a command, their results and findings come before them, and ``placed`` is what is kept of
    their nodes. ``facts`` are those of a model, ``patterns`` the numbers of those that ignore rules in the file,
    ``met`` the suppressions that have a finding.
    """

    source: str
    results: tuple[Result, ...] = ()
    findings: tuple[Finding, ...] = ()
    nodes: ModelNodes | None = None
    is_model: bool = False
    operators: int = 0
    unknown: int = 0
    failing: int = 0
    lowest_level: FeatureLevel | None = FeatureLevel.DML_FEATURE_LEVEL_1_0
    is_whole: bool = True
    is_empty: bool = False
    facts: ModelFacts = field(default=ModelFacts(), compare=False, repr=False)
    placed: PlacedSummary | None = field(default=None, compare=False, repr=False)
    patterns: frozenset[int] = field(default=frozenset(), compare=False, repr=False)
    met: set[Suppression] = field(default_factory=set, compare=False, repr=False)

    @property
    def is_checked(self) -> bool:
        """True if operators of the file were checked, or a model's nodes placed."""
        return bool(self.operators or (self.placed and self.placed.node_count))

    def add(self, results: Sequence[Result], fail_on: Severity | None) -> None:
        """Count an operator by its results, one for each target."""
        first = results[0]
        if not first.is_checked:
            return
        self.operators += 1
        self.unknown += bool(first.item.unknown)
        self.failing += not all(result.passes(fail_on) for result in results)
        if self.lowest_level is not None:
            lowest = lowest_level_at_all(results)
            self.lowest_level = lowest and max(self.lowest_level, lowest)
