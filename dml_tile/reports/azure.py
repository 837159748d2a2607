"""Findings as logging commands of Azure Pipelines, which lists them with the run.

Page: https://learn.microsoft.com/en-us/azure/devops/pipelines/scripts/logging-commands
"""

from __future__ import annotations

from typing import Final

from dml_tile.findings import Severity
from dml_tile.reports.annotations import Annotation, AnnotationReport
from dml_tile.reports.report import shown_from_here
from dml_tile.text import at_line_start, printable

_TYPES: Final = {Severity.ERROR: "error", Severity.WARNING: "warning"}


class AzureReport(AnnotationReport):
    """A command for each error and warning that Azure Pipelines shows; notes are lines of the log."""

    @staticmethod
    def line(annotation: Annotation) -> str:
        """A logging command, or the text of a note."""
        return _command(annotation) if annotation.severity in _TYPES else _log_line(annotation)


def _command(annotation: Annotation) -> str:
    properties: dict[str, object] = {"type": _TYPES[annotation.severity]}
    if annotation.source != "-":
        properties["sourcepath"] = shown_from_here(annotation.source)
        if position := annotation.position:
            properties |= {"linenumber": position.line, "columnnumber": position.column}
    properties["code"] = annotation.title
    listed = "".join(f"{name}={_in_a_property(str(value))};" for name, value in properties.items())
    return f"##vso[task.logissue {listed}]{_escaped(annotation.text)}\n"


def _log_line(annotation: Annotation) -> str:
    where = "" if annotation.source == "-" else f"{at_line_start(annotation.source)}: "
    text = annotation.text.replace("\n", "; ")
    return f"{where}{annotation.severity}: {text}\n"


def _escaped(text: str) -> str:
    return text.replace("%", "%AZP25").replace("\r", "%0D").replace("\n", "%0A")


def _in_a_property(text: str) -> str:
    return printable(_escaped(text).replace(";", "%3B").replace("]", "%5D"))
