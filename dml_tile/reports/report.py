"""The interface of reports, what they are made from, and what several formats need.

A report takes the results tile by tile, and at the end the problems and the models.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol, TypeAlias

from dml_tile.checks.result import Result
from dml_tile.checks.source_summary import SourceSummary
from dml_tile.checks.verdicts import Verdict
from dml_tile.errors import Problem
from dml_tile.findings import Against, Finding, Severity
from dml_tile.reports.wording import inference_of, known_at_run_time_only
from dml_tile.text import printable

if TYPE_CHECKING:  # only text has one
    from rich.console import Console

Problems: TypeAlias = Sequence[tuple[str, Problem]]
"""The reasons why parts of sources cannot be read, each with the name of its source."""

Write: TypeAlias = Callable[[str], object]
"""Writes a part of a report."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The output of a report, and the contract that was checked.

    ``open_console`` gives a console on the same output, for a terminal's colours and width. ``fail_on`` is the severity
    from which on a tile fails, None if none does; ``is_quiet`` leaves out what does not fail.
    """

    write: Write
    open_console: Callable[[], Console]
    against: Against = "both"
    with_statistics: bool = False
    fail_on: Severity | None = Severity.WARNING
    is_quiet: bool = False

    @property
    def with_lowest_level(self) -> bool:
        """True if the lowest level of each tile is reported: it takes both the documentation and the runtime."""
        return self.against == "both"


class Report(Protocol):
    """Writes results in one format, as they come."""

    def add(self, results: Sequence[Result]) -> None:
        """Take the results of the next tile, one for each target."""

    def end(self, problems: Problems, sources: Sequence[SourceSummary]) -> None:
        """Write what is known when all is checked."""


@dataclass(frozen=True, slots=True)
class GroupedFinding:
    """A finding of a tile, and the targets at which it is one."""

    finding: Finding
    result: Result
    targets: tuple[str, ...]

    def text(self) -> str:
        """The text of an annotation: the field and its error, the tile, the targets, and the suggestion."""
        finding = self.finding
        path = f"{finding.path}: " if finding.path else ""
        lines = [f"{path}{finding.message}", *_places(self.result, self.targets)]
        if finding.suggestion:
            lines.append(f"try: {finding.suggestion}")
        return "\n".join(map(printable, lines))


@dataclass(frozen=True, slots=True)
class RunTimeNote:
    """An annotation for a tile with fields known at run time only: its result, and the targets with that verdict."""

    result: Result
    targets: tuple[str, ...]

    def text(self) -> str:
        """The text of an annotation: the verdict, the fields, the tile, and the targets."""
        result = self.result
        fields = f"{result.verdict_words}; {known_at_run_time_only(result.unknown)}"
        return "\n".join(map(printable, (fields, *_places(result, self.targets))))


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


def grouped_findings(results: Sequence[Result]) -> Iterator[GroupedFinding]:
    """The findings of a tile, each once, whatever the number of its targets."""
    targets: dict[tuple[str, str, str, Severity], list[str]] = {}
    first: dict[tuple[str, str, str, Severity], tuple[Finding, Result]] = {}
    for result in results:
        for finding in result.findings:
            key = (finding.rule, finding.path, finding.message, finding.severity)
            first.setdefault(key, (finding, result))
            targets.setdefault(key, []).append(result.target.label)
    for key, (finding, result) in first.items():
        yield GroupedFinding(finding, result, tuple(targets[key]))


def from_here(source: str) -> PurePath:
    """A file as it is reached from the current folder; if it is not in it, from the root."""
    path = PurePath(_without_device_prefix(source))
    if not path.is_absolute() and ".." not in path.parts:
        return path
    here = os.getcwd()  # noqa: PTH109  # which a test takes from another system
    whole = PurePath(os.path.normpath(PurePath(here, path)))
    return whole.relative_to(here) if whole.is_relative_to(here) else whole


def _without_device_prefix(name: str) -> str:
    r"""A name without the ``\\?\`` that lifts Windows' limit on a path's length, and that no URI can have."""
    if os.name != "nt" or not name.startswith("\\\\?\\"):
        return name
    rest = name[4:]
    return f"\\\\{rest[4:]}" if rest[:4].upper() == "UNC\\" else rest


def in_text(name: str) -> str:
    """A file's name, which may be any bytes, as text."""
    return name.encode(errors="backslashreplace").decode()
