"""The formats of ``dml-tile check``, one a row, the interface of reports, and their options.

A report takes items and findings, file by file, and at the end the files. A new format is one more row, and a module
beside this one with a class that follows ``Report``. Modules are imported when their format is asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from dml_tile.findings import OWN, Against, Finding, Severity
from dml_tile.text import encodable, printable_json

if TYPE_CHECKING:  # the command line needs the names of formats only
    from dml_tile.checks.placements import ModelNodes
    from dml_tile.checks.result import CheckedFile, Result
    from dml_tile.reports.lines import AnyConsole


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The output of a report, and the contract that was checked.

    ``open_console`` gives a console on the same output, for a terminal's colours and width. ``fail_on`` is the severity
    from which on an operator fails, None if none does; ``is_quiet`` leaves out what does not fail,
    ``is_verbose`` nothing. ``root`` is the folder from which machines are given the paths of files.
    """

    write: Callable[[str], object]
    open_console: Callable[[], AnyConsole]
    against: Against = "both"
    fail_on: Severity | None = Severity.WARNING
    is_quiet: bool = False
    is_verbose: bool = False
    command: str = ""
    """As its user typed it; empty where that is unknown."""
    root: str = "."
    via: str = ""
    """The back end that models go through, if any."""

    def path(self, source: str) -> str:
        """Return a file's path from the root on, with slashes, an absolute one if it lies elsewhere, as text."""
        from dml_tile.files.repository import path_within  # with pydantic

        return encodable(path_within(self.root, source))


_MAX_KEPT: Final = 2**24
"""The length of a text that is kept in memory until it is written; a longer one is in a file."""


def spool() -> SpooledTemporaryFile[str]:
    """Return a file for a part of a report that others come before."""
    return SpooledTemporaryFile(_MAX_KEPT, "w+", encoding="utf-8", newline="")


def write_spooled(file: SpooledTemporaryFile[str], write: Callable[[str], object]) -> None:
    """Write a file's end, and close it."""
    with file:
        file.seek(0)
        while text := file.read(2**16):
            write(text)


class Report(ABC):
    """Writes results in one format, as they come."""

    _separator = "\n"
    """The text before the next item of a JSON array."""

    def __init__(self, options: ReportOptions) -> None:
        self.options = options
        self._write = options.write
        self.found: dict[str, list[Finding]] = {own.key: [] for own in OWN.values()}
        """The findings about files that the report keeps, by their keys in JSON."""
        self.problems, self.notices = self.found["errors"], self.found["notices"]
        self.passed_over = self.found["passed_over"]
        """The files that the check passes over; known at the end."""

    def _write_json(self, text: str) -> None:
        self._write(printable_json(text))

    def _write_item(self, text: str) -> None:
        """Write an item of an array of JSON, on a line of its own."""
        self._write_json(f"{self._separator}{text}")
        self._separator = ",\n"

    @abstractmethod
    def item(self, results: Sequence[Result]) -> None:
        """Take the results of the next operator, one for each target."""

    def nodes(self, nodes: ModelNodes) -> None:  # noqa: B027  # most formats follow the findings about them
        """Take the placements of a model's nodes, before the findings about them."""

    def finding(self, finding: Finding) -> None:
        """Take a finding about a file, with an id of ``OWN``; it comes after the file's results.

        Those about nodes, which the nodes have already, are not kept.
        """
        if (key := finding.key) != "nodes":
            self.found[key].append(finding)

    def end(self, files: Sequence[CheckedFile]) -> None:  # noqa: B027  # most line-by-line formats have no end
        """Write the end of the report, if it has one, after the last operator."""


class Format(NamedTuple):
    """A format, the class that writes it, and the file that it is written to; ``""`` is standard output.

    ``has_passed_over`` is True if it lists skipped files, ``is_for_terminals`` if it is printed in the terminal's
    encoding; any other is UTF-8; ``locates_all`` if it has the location of each operator, also of one without findings.
    """

    name: str
    module: str
    class_name: str
    has_passed_over: bool = False
    is_for_terminals: bool = False
    locates_all: bool = False
    file: str = ""

    def report(self, options: ReportOptions) -> Report:
        """Return a report in this format."""
        return cast("Report", getattr(import_module(f"dml_tile.reports.{self.module}"), self.class_name)(options))


_ALL: Final = (
    Format("text", "text", "TextReport", has_passed_over=True, is_for_terminals=True),
    Format("concise", "annotations", "ConciseReport", is_for_terminals=True),
    Format("json", "json", "JsonReport", has_passed_over=True),
    Format("jsonl", "json", "JsonLinesReport"),
    Format("markdown", "markdown", "MarkdownReport", has_passed_over=True),
    Format("github", "annotations", "GithubReport"),
    Format("azure", "annotations", "AzureReport"),
    Format("gitlab", "annotations", "GitlabReport"),
    Format("sarif", "annotations", "SarifReport"),
    Format("junit", "junit", "JunitReport", locates_all=True),
    Format("html", "page", "PageReport", has_passed_over=True),
)

FORMATS: Final[dict[str, Format]] = {row.name: row for row in _ALL}
"""The formats by name, as ``--format`` takes them; the first is the default."""
