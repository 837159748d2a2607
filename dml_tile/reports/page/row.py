"""One result as the page tells it: plain texts, short enough to show, and free of what no page should hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dml_tile.checks.model_summary import run_from_level
from dml_tile.checks.result import Result
from dml_tile.checks.verdicts import NOT_CHECKED, alike, outcome_of
from dml_tile.findings import Finding
from dml_tile.lowering.steps import Lowering
from dml_tile.reports.lowering import compact, place_name, summary_lines
from dml_tile.rules.catalogue import RULES
from dml_tile.text import printable, shortened

_LONGEST_TEXT: Final = 500
_FINDINGS_AT_MOST: Final = 10


@dataclass(frozen=True, slots=True)
class ToldFinding:
    """Findings that differ in their ``paths`` only."""

    rule: str
    outcome: str
    paths: str
    message: str
    basis: str
    says: str
    url: str
    suggestion: str


@dataclass(frozen=True, slots=True)
class ToldLowering:
    """The tile, its steps as (what, reads, writes), what they cost, and the command for them, unless it is too long."""

    before: str
    steps: tuple[tuple[str, str, str], ...]
    summary: tuple[str, ...]
    command: str


@dataclass(frozen=True, slots=True)
class Row:
    """A tile at a target. ``lowest_level`` and ``oldest_windows`` are empty for what was not checked."""

    source: str
    pointer: str
    target: str
    verdict: str
    lowest_level: str
    oldest_windows: str
    unknown: str
    notes: tuple[str, ...]
    rules: tuple[str, ...]
    findings: tuple[ToldFinding, ...]
    findings_left_out: int
    lowering: ToldLowering | None


def clipped(text: str) -> str:
    """A text with escapes for what cannot be seen, cut short."""
    return shortened(printable(text[: _LONGEST_TEXT + 1]), _LONGEST_TEXT)


def row_of(result: Result, verdict: str) -> Row:
    """A result as a row."""
    groups = list(alike(result.findings))
    is_checked = verdict != NOT_CHECKED
    lowest_level, oldest_windows = run_from_level(result.lowest_level, bool(result.unknown)) if is_checked else ("", "")
    return Row(
        source=clipped(result.source),
        pointer=clipped(result.pointer),
        target=f"{result.target.label} through {result.via}" if result.via else result.target.label,
        verdict=verdict,
        lowest_level=lowest_level,
        oldest_windows=oldest_windows,
        unknown=clipped(", ".join(result.unknown)),
        notes=tuple(_notes(result)),
        rules=tuple(dict.fromkeys(finding.rule for finding in result.findings)),
        findings=tuple(_told(group, result.command) for group in groups[:_FINDINGS_AT_MOST]),
        findings_left_out=len(groups[_FINDINGS_AT_MOST:]),
        lowering=_told_lowering(result.lowering, result.command) if result.lowering else None,
    )


def _notes(result: Result) -> Iterator[str]:
    if result.note:
        yield clipped(result.note)
    if result.deselected:
        yield f"{result.deselected} finding{'s' * (result.deselected > 1)} not selected"


def _told(group: list[Finding], command: str) -> ToldFinding:
    first = group[0]
    return ToldFinding(
        rule=first.rule,
        outcome=outcome_of(first),
        paths=clipped(", ".join(finding.path for finding in group if finding.path)),
        message=clipped(first.message),
        basis=", ".join(first.basis.names),
        says=RULES[first.rule].says,
        url=first.url,
        suggestion=clipped((first.suggestion or "").replace(f" ({command})", "")),  # it stands with the lowering
    )


def _told_lowering(lowering: Lowering, command: str) -> ToldLowering:
    return ToldLowering(
        before=clipped(compact(lowering.original)),
        steps=tuple(
            (clipped(compact(step.desc)), place_name(step.reads), place_name(step.writes)) for step in lowering.steps
        ),
        summary=tuple(line.text.plain for line in summary_lines(lowering)),
        command=command if len(command) <= _LONGEST_TEXT else "",  # cut short, it would be another
    )
