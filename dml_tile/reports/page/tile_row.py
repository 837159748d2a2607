"""One result as the page tells it: plain texts, short enough to show, and free of what no page should hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dml_tile.checks.result import Result
from dml_tile.checks.verdicts import Verdict, alike
from dml_tile.findings import Finding
from dml_tile.lowering.steps import Lowering
from dml_tile.reports.wording import (
    cost_of,
    inference_of,
    kind_of,
    not_selected,
    outcome_of,
    place_name,
    run_from_level,
    target_of,
)
from dml_tile.rules.catalogue import RULES
from dml_tile.text import printable, shortened

_MAX_TEXT: Final = 500
_MAX_FINDINGS: Final = 10


@dataclass(frozen=True, slots=True)
class PageFinding:
    """Findings that differ in their ``paths`` only."""

    rule: str
    kind: str
    outcome: str
    paths: str
    message: str
    basis: str
    says: str
    url: str
    suggestion: str


@dataclass(frozen=True, slots=True)
class PageLowering:
    """The tile, its steps as (what, reads, writes), what they cost, and the command for them, unless it is too long."""

    before: str
    steps: tuple[tuple[str, str, str], ...]
    costs: tuple[str, ...]
    command: str


@dataclass(frozen=True, slots=True)
class TileRow:
    """A tile at a target.

    ``tile`` is empty for another operator, ``lowest_level`` and ``oldest_windows`` for what was not checked.
    """

    source: str
    pointer: str
    tile: str
    target: str
    verdict: str
    lowest_level: str
    oldest_windows: str
    unknown: str
    notes: tuple[str, ...]
    rules: tuple[str, ...]
    findings: tuple[PageFinding, ...]
    findings_left_out: int
    lowering: PageLowering | None


def clipped(text: str) -> str:
    """A text with escapes for what cannot be seen, cut short."""
    return shortened(printable(text[: _MAX_TEXT + 1]), _MAX_TEXT)


def tile_row(result: Result) -> TileRow:
    """A result as a row."""
    groups = list(alike(result.findings))
    is_judged = result.lowest_level or result.verdict not in (Verdict.ELSEWHERE, Verdict.NOT_CHECKED)
    is_judged = is_judged and not result.part
    lowest_level, oldest_windows = run_from_level(result.lowest_level, bool(result.unknown)) if is_judged else ("", "")
    return TileRow(
        source=clipped(result.source),
        pointer=clipped(result.pointer),
        tile=clipped(result.tile) if result.is_a_tile else "",
        target=target_of(result),
        verdict=result.verdict_words,
        lowest_level=lowest_level,
        oldest_windows=oldest_windows,
        unknown=clipped(", ".join(result.unknown)),
        notes=tuple(_notes(result)),
        rules=tuple(dict.fromkeys(finding.rule for finding in result.findings)),
        findings=tuple(_page_finding(group, result.command) for group in groups[:_MAX_FINDINGS]),
        findings_left_out=len(groups[_MAX_FINDINGS:]),
        lowering=_page_lowering(result.lowering, result.command) if result.lowering else None,
    )


def _notes(result: Result) -> Iterator[str]:
    yield from map(clipped, filter(None, (result.note, inference_of(result))))
    if result.deselected:
        yield not_selected(result)


def _page_finding(group: list[Finding], command: str) -> PageFinding:
    first = group[0]
    return PageFinding(
        rule=first.rule,
        kind=kind_of(first),
        outcome=outcome_of(first),
        paths=clipped(", ".join(finding.path for finding in group if finding.path)),
        message=clipped(first.message),
        basis=", ".join(first.basis.names),
        says=RULES[first.rule].says,
        url=first.url,
        suggestion=clipped((first.suggestion or "").replace(f" ({command})", "")),  # it stands with the lowering
    )


def _page_lowering(lowering: Lowering, command: str) -> PageLowering:
    return PageLowering(
        before=clipped(str(lowering.original)),
        steps=tuple(
            (clipped(str(step.desc)), place_name(step.reads), place_name(step.writes)) for step in lowering.steps
        ),
        costs=(cost_of(lowering), *(f"note: {note}" for note in lowering.notes)),
        command=command if len(command) <= _MAX_TEXT else "",  # cut short, it would be another
    )
