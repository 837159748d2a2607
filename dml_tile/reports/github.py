"""Findings as workflow commands of GitHub Actions, which shows them as annotations of files.

Page: https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from typing import Final

from dml_tile.findings import Severity
from dml_tile.reports.annotations import Annotation, AnnotationReport
from dml_tile.reports.report import shown_from_here
from dml_tile.text import printable

_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


class GithubReport(AnnotationReport):
    """A command for each annotation that GitHub shows, written at the end."""

    @staticmethod
    def line(annotation: Annotation) -> str:
        """A workflow command."""
        return _command(annotation)


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
