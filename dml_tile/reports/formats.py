"""The formats of ``dml-tile check``, one a row.

A new format is one more row, and a module beside this one with a class that follows ``Report`` and is made from
``ReportOptions``. Modules are imported when their format is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:  # the command line needs the names only
    from dml_tile.reports.report import Report, ReportOptions


@dataclass(frozen=True, slots=True)
class Format:
    """A format, and the class that writes it.

    ``has_statistics`` tells whether it can count the findings of each rule, ``is_for_terminals`` whether it is printed
    in the terminal's encoding; any other is UTF-8.
    """

    name: str
    module: str
    class_name: str
    has_statistics: bool = False
    is_for_terminals: bool = False

    def report(self, options: ReportOptions) -> Report:
        """Return a report in this format."""
        return cast("Report", getattr(import_module(f"dml_tile.reports.{self.module}"), self.class_name)(options))


_ALL: Final = (
    Format("text", "text", "TextReport", has_statistics=True, is_for_terminals=True),
    Format("concise", "annotations", "ConciseReport", is_for_terminals=True),
    Format("json", "json", "JsonReport", has_statistics=True),
    Format("jsonl", "json", "JsonLinesReport"),
    Format("markdown", "markdown", "MarkdownReport"),
    Format("github", "annotations", "GithubReport"),
    Format("azure", "annotations", "AzureReport"),
    Format("gitlab", "annotations", "GitlabReport"),
    Format("sarif", "sarif", "SarifReport"),
    Format("junit", "junit", "JunitReport"),
    Format("html", "page", "PageReport"),
)

FORMATS: Final[dict[str, Format]] = {row.name: row for row in _ALL}
"""The formats by name, as ``--format`` takes them; the first is the default."""
