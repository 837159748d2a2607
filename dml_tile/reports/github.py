"""Findings as workflow commands of GitHub Actions, which shows them as annotations of files.

Page: https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dml_tile.checks.result import Result
from dml_tile.checks.source_summary import SourceSummary
from dml_tile.errors import Position
from dml_tile.findings import Severity
from dml_tile.reports.report import (
    Problems,
    ReportOptions,
    from_here,
    grouped_findings,
    in_text,
    run_time_notes,
)
from dml_tile.text import printable

_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


class GithubReport:
    """A command for each finding, for what is known at run time only, and for what cannot be read."""

    def __init__(self, options: ReportOptions) -> None:
        self._write = options.write

    def add(self, results: Sequence[Result]) -> None:
        """Write the findings of the next tile."""
        for told in grouped_findings(results):
            finding, position = told.finding, told.result.position(told.finding.path)
            self._write(_command(finding.severity, told.result.source, position, finding.rule, told.text()))
        for note in run_time_notes(results):
            self._write(_command(Severity.NOTE, note.result.source, None, "known-at-run-time", note.text()))

    def end(self, problems: Problems, sources: Sequence[SourceSummary]) -> None:
        """Write what cannot be read."""
        for source, problem in problems:
            self._write(_command(Severity.ERROR, source, problem.position, "unreadable", printable(str(problem))))


def _command(severity: Severity, source: str, position: Position | None, title: str, message: str) -> str:
    properties: dict[str, object] = {}
    if source != "-":
        properties["file"] = in_text(from_here(source).as_posix())
        if position:
            properties |= {"line": position.line, "col": position.column}
    properties["title"] = title
    listed = ",".join(f"{name}={_in_a_property(str(value))}" for name, value in properties.items())
    return f"::{_COMMANDS[severity]} {listed}::{_escaped(message)}\n"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _in_a_property(text: str) -> str:
    return printable(_escaped(text).replace(":", "%3A").replace(",", "%2C"))
