"""Findings as workflow commands of GitHub Actions, which shows them as annotations of files.

Page: https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dml_tile.checks.result import Result
from dml_tile.checks.source_summary import SourceSummary
from dml_tile.findings import Severity
from dml_tile.reports.annotations import Annotation, Annotations
from dml_tile.reports.report import Problems, ReportOptions, shown_from_here
from dml_tile.text import printable

_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


class GithubReport:
    """A command for each annotation that GitHub shows, written at the end."""

    def __init__(self, options: ReportOptions) -> None:
        self._write = options.write
        self._annotations = Annotations()

    def add(self, results: Sequence[Result]) -> None:
        """Take the results of the next tile."""
        self._annotations.add(results)

    def end(self, problems: Problems, sources: Sequence[SourceSummary]) -> None:
        """Write the commands."""
        for annotation in self._annotations.with_problems(problems):
            self._write(_command(annotation))


def _command(annotation: Annotation) -> str:
    properties: dict[str, object] = {}
    if annotation.source != "-":
        properties["file"] = shown_from_here(annotation.source)
        if position := annotation.position:
            properties |= {"line": position.line, "col": position.column}
    properties["title"] = annotation.title
    listed = ",".join(f"{name}={_in_a_property(str(value))}" for name, value in properties.items())
    return f"::{_COMMANDS[annotation.severity]} {listed}::{_escaped(annotation.text)}\n"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _in_a_property(text: str) -> str:
    return printable(_escaped(text).replace(":", "%3A").replace(",", "%2C"))
