"""Findings of a tile at several targets, grouped so that a report has each once, and the annotations for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from dml_tile.checks.result import Result, Verdict, alike
from dml_tile.errors import Position, Problem
from dml_tile.findings import Basis, Finding, Severity
from dml_tile.reports.wording import inference_of, known_at_run_time_only
from dml_tile.text import printable

UNREADABLE: Final = "unreadable"
RUN_TIME: Final = "known-at-run-time"
"""The ids of annotations that no rule of the catalogue has."""

_FINGERPRINT_DIGITS: Final = 16


class Annotation(NamedTuple):
    """A message about a part of a source, and the rule that it is about.

    ``text`` has the ``message`` and, in further lines, the tile, its targets and what to try. ``identity`` is what the
    message is about, but for its source. ``is_known`` is True if it is in the baseline.
    """

    severity: Severity
    rule: str
    source: str
    pointer: str
    position: Position | None
    message: str
    text: str
    identity: tuple[str, ...]
    is_known: bool = False

    def fingerprint(self, path: str) -> str:
        """Return hexadecimal digits that stay when lines move; ``path`` is the source's."""
        identity = "\n".join((self.rule, path, *self.identity))
        return hashlib.sha256(identity.encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def annotations_of(results: Sequence[Result], *, with_known: bool = False) -> Iterator[Annotation]:
    """Yield an annotation for each rule and field of a tile, and for what is known at run time only."""
    yield from (group.annotation() for group in grouped_findings(results))
    if with_known and any(result.known for result in results):
        known = [replace(result, findings=result.known) for result in results]
        yield from (group.annotation()._replace(is_known=True) for group in grouped_findings(known))
    yield from _run_time_notes(results)


def annotation_of_problem(source: str, problem: Problem) -> Annotation:
    """Return the annotation for a part of a source that cannot be read."""
    identity = problem.pointer, problem.message
    message = text = printable(str(problem))
    return Annotation(Severity.ERROR, UNREADABLE, source, problem.pointer, problem.position, message, text, identity)


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

    @property
    def position(self) -> Position | None:
        """The position of the first field in a source of JSON."""
        return self.result.positions.get(self.finding.path)

    def annotation(self) -> Annotation:
        """Return the annotation: the fields and their error, the tile, the targets, and what to try."""
        finding, result = self.finding, self.result
        paths = f"{', '.join(self.paths)}: " if self.paths else ""
        first, *others = self.messages
        lines = [f"{paths}{first}", *others, *_places(result, self.targets)]
        lines += [f"try: {suggestion}" for suggestion in self.suggestions]
        return Annotation(
            finding.severity,
            finding.rule,
            result.source,
            result.pointer,
            self.position,
            printable("; ".join((f"{paths}{first}", *others))),
            "\n".join(map(printable, lines)),
            (result.identity, *self.paths),
        )


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
    return GroupedFinding(
        *found[0],
        paths=paths,
        messages=tuple(dict.fromkeys(finding.message for finding in findings)),
        suggestions=tuple(dict.fromkeys(finding.suggestion for finding in findings if finding.suggestion)),
        targets=tuple(dict.fromkeys(result.target.label for _, result in found)),
        basis=reduce(or_, (finding.basis for finding in findings)),
    )


def _run_time_notes(results: Sequence[Result]) -> Iterator[Annotation]:
    """Yield a note for each verdict of a tile with fields known at run time only, with the targets that share it."""
    shared: dict[Verdict, list[Result]] = {}
    for result in results:
        if result.unknown:
            shared.setdefault(result.verdict, []).append(result)
    for alike_results in shared.values():
        first = alike_results[0]
        message = printable(f"{first.verdict}; {known_at_run_time_only(first.unknown)}")
        places = _places(first, [result.target.label for result in alike_results])
        text = "\n".join((message, *map(printable, places)))
        yield Annotation(Severity.NOTE, RUN_TIME, first.source, first.pointer, None, message, text, (first.identity,))


def _places(result: Result, targets: Sequence[str]) -> Iterator[str]:
    pointer = f"{result.pointer} " if result.pointer else ""
    through = f" through {result.via}" if result.via else ""
    yield f"{pointer}at {', '.join(targets)}{through}"
    if result.verdict is not Verdict.NOT_CHECKED:
        yield f"{result.tile}, {result.times:,} times" if result.times > 1 else result.tile
    if result.inferred_by:
        yield inference_of(result)
