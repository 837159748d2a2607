"""Findings of a tile at several targets, grouped so that a report has each once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dml_tile.checks.result import Result, Verdict, alike
from dml_tile.findings import Basis, Finding, Severity
from dml_tile.reports.wording import inference_of, known_at_run_time_only
from dml_tile.text import printable


@dataclass(frozen=True, slots=True)
class GroupedFinding:
    """The findings of one rule on the same fields of a tile, at all targets where they hold.

    ``finding`` and ``result`` are the first of them. ``paths`` are the fields in C names; ``messages`` and
    ``suggestions`` differ only where they name a target. ``basis`` is that of all together.
    """

    finding: Finding
    result: Result
    paths: tuple[str, ...]
    messages: tuple[str, ...]
    suggestions: tuple[str, ...]
    targets: tuple[str, ...]
    basis: Basis

    def text(self) -> str:
        """Return the text of an annotation: the fields and their error, the tile, the targets, and what to try."""
        paths = f"{', '.join(self.paths)}: " if self.paths else ""
        first, *others = self.messages
        lines = [f"{paths}{first}", *others, *_places(self.result, self.targets)]
        lines += [f"try: {suggestion}" for suggestion in self.suggestions]
        return "\n".join(map(printable, lines))


@dataclass(frozen=True, slots=True)
class RunTimeNote:
    """An annotation for a tile with fields known at run time only: its result, and the targets with that verdict."""

    result: Result
    targets: tuple[str, ...]

    def text(self) -> str:
        """Return the text of an annotation: the verdict, the fields, the tile, and the targets."""
        result = self.result
        fields = f"{result.verdict_words}; {known_at_run_time_only(result.unknown)}"
        return "\n".join(map(printable, (fields, *_places(result, self.targets))))


def grouped_findings(results: Sequence[Result]) -> list[GroupedFinding]:
    """Return the findings of a tile: one for each rule and the fields that break it, whatever the number of its
    targets.
    """
    groups: dict[tuple[str, tuple[str, ...], Severity], list[tuple[Finding, Result]]] = {}
    for result in results:
        for findings in alike(result.findings):
            paths = tuple(finding.path for finding in findings if finding.path)
            key = findings[0].rule, paths, findings[0].severity
            groups.setdefault(key, []).append((findings[0], result))
    return [_grouped(paths, found) for (_, paths, _), found in groups.items()]


def _grouped(paths: tuple[str, ...], found: Sequence[tuple[Finding, Result]]) -> GroupedFinding:
    findings = [finding for finding, _ in found]
    basis = findings[0].basis
    for finding in findings:
        basis |= finding.basis
    return GroupedFinding(
        *found[0],
        paths=paths,
        messages=tuple(dict.fromkeys(finding.message for finding in findings)),
        suggestions=tuple(dict.fromkeys(finding.suggestion for finding in findings if finding.suggestion)),
        targets=tuple(dict.fromkeys(result.target.label for _, result in found)),
        basis=basis,
    )


def run_time_notes(results: Sequence[Result]) -> Iterator[RunTimeNote]:
    """Yield a note for each verdict of a tile with fields known at run time only, with the targets that share it."""
    targets: dict[Verdict, list[str]] = {}
    first: dict[Verdict, Result] = {}
    for result in results:
        if result.unknown:
            first.setdefault(result.verdict, result)
            targets.setdefault(result.verdict, []).append(result.target.label)
    for verdict, result in first.items():
        yield RunTimeNote(result, tuple(targets[verdict]))


def _places(result: Result, targets: Sequence[str]) -> Iterator[str]:
    pointer = f"{result.pointer} " if result.pointer else ""
    through = f" through {result.via}" if result.via else ""
    yield f"{pointer}at {', '.join(targets)}{through}"
    if result.verdict is not Verdict.NOT_CHECKED:
        yield result.tile
    if result.inferred_by:
        yield inference_of(result)
