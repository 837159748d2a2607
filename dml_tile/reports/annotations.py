"""Annotations of files, as CI servers show them: the worst first, and no more than they show."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dml_tile.checks.file_check import SourceSummary
from dml_tile.checks.result import Result
from dml_tile.errors import Position
from dml_tile.findings import Severity
from dml_tile.reports.grouped import grouped_findings, run_time_notes
from dml_tile.reports.report import Problems, ReportOptions, shown_path
from dml_tile.text import printable, printable_line_start

MAX_SHOWN: Final = 10
"""The annotations of one severity that GitHub and Azure Pipelines show of a step."""

_NO_SOURCE: Final = "-"


class Annotation(NamedTuple):
    """A message about a place in a file; ``source`` is - where there is no file."""

    severity: Severity
    source: str
    position: Position | None
    title: str
    text: str


class AnnotationReport(ABC):
    """Writes, at the end, annotations for tiles, rules and fields, what is known at run time only, and problems.

    Of each severity the first ``MAX_SHOWN`` are kept, and the others are counted.
    """

    def __init__(self, options: ReportOptions) -> None:
        self._write = options.write
        self._kept: dict[Severity, list[Annotation]] = {severity: [] for severity in sorted(Severity, reverse=True)}
        self._counts = Counter[Severity]()

    def add(self, results: Sequence[Result]) -> None:
        """Take the results of the next tile."""
        for group in grouped_findings(results):
            finding, result = group.finding, group.result
            position = result.position(finding.path)
            self._keep(Annotation(finding.severity, result.source, position, finding.rule, group.text()))
        for note in run_time_notes(results):
            self._keep(Annotation(Severity.NOTE, note.result.source, None, "known-at-run-time", note.text()))

    def end(self, problems: Problems, sources: Sequence[SourceSummary]) -> None:
        """Write the annotations."""
        for annotation in self._shown(problems):
            self._write(self.line(annotation))

    @staticmethod
    @abstractmethod
    def line(annotation: Annotation) -> str:
        """Return the line from which the server makes an annotation."""

    def _shown(self, problems: Problems) -> Iterator[Annotation]:
        """Yield those of unreadable parts first; the last of a severity with more than are shown counts the others."""
        unreadable = [
            Annotation(Severity.ERROR, source, problem.position, "unreadable", printable(str(problem)))
            for source, problem in problems[:MAX_SHOWN]
        ]
        for severity, kept in self._kept.items():
            shown, count = kept, self._counts[severity]
            if severity is Severity.ERROR:
                shown, count = unreadable + kept, count + len(problems)
            if count <= MAX_SHOWN:
                yield from shown
                continue
            yield from shown[: MAX_SHOWN - 1]
            text = f"and {count - MAX_SHOWN + 1} more {severity}s, which `dml-tile check` prints"
            yield Annotation(severity, _NO_SOURCE, None, "dml-tile", text)

    def _keep(self, annotation: Annotation) -> None:
        self._counts[annotation.severity] += 1
        kept = self._kept[annotation.severity]
        if len(kept) < MAX_SHOWN:
            kept.append(annotation)


_TYPES: Final = {Severity.ERROR: "error", Severity.WARNING: "warning"}


class AzureReport(AnnotationReport):
    """A command for each error and warning that Azure Pipelines shows; notes are lines of the log."""

    @staticmethod
    def line(annotation: Annotation) -> str:
        """Return a logging command, or the text of a note."""
        return _azure_command(annotation) if annotation.severity in _TYPES else _log_line(annotation)


def _azure_command(annotation: Annotation) -> str:
    properties: dict[str, object] = {"type": _TYPES[annotation.severity]}
    if annotation.source != "-":
        properties["sourcepath"] = shown_path(annotation.source)
        if position := annotation.position:
            properties |= {"linenumber": position.line, "columnnumber": position.column}
    properties["code"] = annotation.title
    listed = "".join(f"{name}={_azure_property(str(value))};" for name, value in properties.items())
    return f"##vso[task.logissue {listed}]{_azure_escaped(annotation.text)}\n"


def _log_line(annotation: Annotation) -> str:
    where = "" if annotation.source == "-" else f"{printable_line_start(annotation.source)}: "
    text = annotation.text.replace("\n", "; ")
    return f"{where}{annotation.severity}: {text}\n"


def _azure_escaped(text: str) -> str:
    return text.replace("%", "%AZP25").replace("\r", "%0D").replace("\n", "%0A")


def _azure_property(text: str) -> str:
    return printable(_azure_escaped(text).replace(";", "%3B").replace("]", "%5D"))


_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


class GithubReport(AnnotationReport):
    """A command for each annotation that GitHub shows, written at the end."""

    @staticmethod
    def line(annotation: Annotation) -> str:
        """Return a workflow command."""
        return _github_command(annotation)


def _github_command(annotation: Annotation) -> str:
    properties: dict[str, object] = {}
    if annotation.source != "-":
        properties["file"] = shown_path(annotation.source)
        if position := annotation.position:
            properties |= {"line": position.line, "col": position.column}
    properties["title"] = annotation.title
    listed = ",".join(f"{name}={_github_property(str(value))}" for name, value in properties.items())
    return f"::{_COMMANDS[annotation.severity]} {listed}::{_github_escaped(annotation.text)}\n"


def _github_escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _github_property(text: str) -> str:
    return printable(_github_escaped(text).replace(":", "%3A").replace(",", "%2C"))
