"""Rows of reports: each is a finding about a file, or the findings of one rule on an operator, at all targets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Final

from dml_tile.checks.result import Result, alike
from dml_tile.checks.verdict import Verdict
from dml_tile.findings import Basis, Finding, Position, Severity, Try, suggestion_of
from dml_tile.reports.wording import what_is_open
from dml_tile.text import printable

_FINGERPRINT_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class FindingRow:
    """The findings of one rule on the same fields of an operator, at all targets where they hold; or one about a file.

    ``finding`` is the first of them, and ``position`` that of its field in a source of JSON. ``paths`` are the fields
    in C names; ``messages`` and ``tries`` differ only where they name a target. ``basis`` is that of all
    together. ``line`` is that of a line of JSON. ``operator`` has the operator, and its targets, in lines, ``title`` a
    captured operator's type, behind its label and name. ``identity`` is what the row is about, but for its source.
    """

    finding: Finding
    source: str
    pointer: str
    position: Position | None
    paths: tuple[str, ...]
    messages: tuple[str, ...]
    identity: tuple[str, ...]
    tries: tuple[tuple[Try, ...], ...] = ()
    targets: tuple[str, ...] = ()
    operator: tuple[str, ...] = ()
    title: str = ""
    line: int | None = None
    basis: Basis = Basis.INFERRED

    @property
    def severity(self) -> Severity:
        """The severity of its findings."""
        return self.finding.severity

    @property
    def rule(self) -> str:
        """The rule of its findings."""
        return self.finding.rule

    @property
    def suggestions(self) -> tuple[str, ...]:
        """What to try, in words."""
        return tuple(filter(None, dict.fromkeys(map(suggestion_of, self.tries))))

    @property
    def lines(self) -> tuple[str, ...]:
        """The messages, the first behind the fields that it is about."""
        first, *others = self.messages
        return f"{', '.join(self.paths)}: {first}" if self.paths else first, *others

    @property
    def message(self) -> str:
        """The fields and their faults, in one line."""
        return printable("; ".join(self.lines))

    @property
    def text(self) -> str:
        """The message and, in further lines, the operator, its targets and what to try."""
        tries = (f"try: {suggestion}" for suggestion in self.suggestions)
        return "\n".join(map(printable, (*self.lines, *self.operator, *tries)))

    def fingerprint(self, path: str) -> str:
        """Return hexadecimal digits that stay when lines move; ``path`` is the source's."""
        identity = "\n".join((self.rule, path, *self.identity))
        return hashlib.sha256(identity.encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def row_of(finding: Finding) -> FindingRow:
    """Return the row of a finding about a file."""
    key, paths, identity = finding.key, (finding.path,) if finding.path else (), identity_of(finding)
    if key == "nodes":  # the message names the first node already
        paths, identity = (), (finding.about,)
    elif key == "notices":
        identity = (finding.message,)
    messages, tries = (finding.message,), (finding.tries,)
    return FindingRow(finding, finding.source, finding.path, finding.position, paths, messages, identity, tries)


def identity_of(problem: Finding) -> tuple[str, ...]:
    """Return what identifies an unreadable part in each version: its pointer, but for a list's item, and the reason."""
    return "" if problem.path[1:2].isdigit() else problem.path, problem.about or problem.message


def rows_of(results: Sequence[Result]) -> list[FindingRow]:
    """Return the findings of an operator: one for each rule and the fields that break it, at however many targets."""
    groups: dict[tuple[str, tuple[str, ...], Severity], list[tuple[Finding, Result]]] = {}
    for result in results:
        for findings in alike(result.findings):
            paths = tuple(finding.path for finding in findings if finding.path)
            key = findings[0].rule, paths, findings[0].severity
            groups.setdefault(key, []).append((findings[0], result))
    return [_row(paths, found) for (_, paths, _), found in groups.items()]


def _row(paths: tuple[str, ...], found: Sequence[tuple[Finding, Result]]) -> FindingRow:
    (first, result), findings = found[0], [finding for finding, _ in found]
    targets = tuple(dict.fromkeys(result.target.label for _, result in found))
    severity = ("warning",) if first.severity is Severity.WARNING else ()  # it may be an error at another target
    return FindingRow(
        first,
        result.item.source,
        result.item.pointer,
        result.item.position(first.path),
        paths,
        messages=tuple(dict.fromkeys(finding.message for finding in findings)),
        identity=(result.item.identity, *paths, *severity),
        tries=tuple(dict.fromkeys(finding.tries for finding in findings)),
        targets=targets,
        operator=_operator_lines(result, targets),
        title=result.item.title if result.item.capture else "",
        line=result.item.line,
        basis=reduce(or_, (finding.basis for finding in findings)),
    )


def open_rows(results: Sequence[Result]) -> Iterator[FindingRow]:
    """Yield a note for each verdict of an operator with fields known at run time only, or not looked at.

    The targets that share the verdict share the note.
    """
    shared: dict[Verdict, list[Result]] = {}
    for result in results:
        if result.notes and (result.item.unknown or result.verdict is not Verdict.REFUSED):
            shared.setdefault(result.verdict, []).append(result)
    for alike_results in shared.values():
        first = alike_results[0]
        note = replace(first.notes[0], message=f"{first.verdict}; {what_is_open(first)}")
        row = _row((), [(note, result) for result in alike_results])
        verdict = () if first.verdict is Verdict.ACCEPTED_SO_FAR else (first.verdict.value,)
        yield replace(row, position=None, identity=(*row.identity, *verdict))


def _operator_lines(result: Result, targets: Sequence[str]) -> tuple[str, ...]:
    item = result.item
    pointer = f"{item.pointer} " if item.pointer else ""
    via = f" via {item.via}" if item.via else ""
    where = f"{pointer}at {', '.join(targets)}{via}"
    if result.verdict is Verdict.NOT_CHECKED:
        return (where,)
    return where, f"{item.operator}, {item.times:,} times" if item.times > 1 else item.operator
