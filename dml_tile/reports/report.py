"""The interface of reports, their options, and the names of files in them.

A report takes results and problems, file by file, and at the end the files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from dml_tile.checks.file_check import SourceSummary
from dml_tile.checks.result import Result
from dml_tile.errors import Problem
from dml_tile.files.repository import path_within
from dml_tile.findings import Against, Severity

if TYPE_CHECKING:  # only text has one
    from rich.console import Console

Problems: TypeAlias = Sequence[tuple[str, Problem]]
"""The reasons why parts of sources cannot be read, each with the name of its source."""

Write: TypeAlias = Callable[[str], object]
"""Writes a part of a report."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """The command that made a report, as its user typed it, the targets, and the time in words.

    Unknown parts are empty.
    """

    command: str = ""
    targets: tuple[str, ...] = ()
    made: str = ""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The output of a report, and the contract that was checked.

    ``open_console`` gives a console on the same output, for a terminal's colours and width. ``fail_on`` is the severity
    from which on a tile fails, None if none does; ``is_quiet`` leaves out what does not fail. ``root`` is the folder
    from which machines are given the paths of files.
    """

    write: Write
    open_console: Callable[[], Console]
    against: Against = "both"
    with_statistics: bool = False
    fail_on: Severity | None = Severity.WARNING
    is_quiet: bool = False
    invocation: Invocation = field(default_factory=Invocation)
    root: str = "."

    def path(self, source: str) -> str:
        """Return a file's path from the root on, with slashes, an absolute one if it lies elsewhere, as text."""
        return escaped_name(path_within(self.root, source))

    @property
    def with_lowest_level(self) -> bool:
        """True if the lowest level of each tile is reported: it takes both the documentation and the runtime."""
        return self.against == "both"


class Report(ABC):
    """Writes results in one format, as they come."""

    def __init__(self, options: ReportOptions) -> None:
        self._options = options
        self._write = options.write
        self._problems: list[tuple[str, Problem]] = []

    @abstractmethod
    def add(self, results: Sequence[Result]) -> None:
        """Take the results of the next tile, one for each target."""

    def add_problem(self, source: str, problem: Problem) -> None:
        """Take a part of a source that cannot be read; it comes after the source's results."""
        self._problems.append((source, problem))

    @abstractmethod
    def end(self, sources: Sequence[SourceSummary]) -> None:
        """Write the end of the report, after the last tile."""


def escaped_name(name: str) -> str:
    """Return a file's name, which may hold any bytes, with escapes for those that are not text."""
    return name.encode(errors="backslashreplace").decode()
