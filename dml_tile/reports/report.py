"""The interface of reports, their options, and the names of files in them.

A report takes the results tile by tile, and at the end the problems and the models.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol, TypeAlias

from dml_tile.checks.file_check import SourceSummary
from dml_tile.checks.result import Result
from dml_tile.errors import Problem
from dml_tile.files.urls import Url
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
    from which on a tile fails, None if none does; ``is_quiet`` leaves out what does not fail.
    """

    write: Write
    open_console: Callable[[], Console]
    against: Against = "both"
    with_statistics: bool = False
    fail_on: Severity | None = Severity.WARNING
    is_quiet: bool = False
    invocation: Invocation = field(default_factory=Invocation)

    @property
    def with_lowest_level(self) -> bool:
        """True if the lowest level of each tile is reported: it takes both the documentation and the runtime."""
        return self.against == "both"


class Report(Protocol):
    """Writes results in one format, as they come."""

    def add(self, results: Sequence[Result]) -> None:
        """Take the results of the next tile, one for each target."""

    def end(self, problems: Problems, sources: Sequence[SourceSummary]) -> None:
        """Write the end of the report, after the last tile."""


def shown_path(source: str) -> str:
    """Return a file's path from the current folder, with slashes, as text; a URL as it is."""
    return escaped_name(source if isinstance(source, Url) else relative_path(source).as_posix())


def relative_path(source: str) -> PurePath:
    """Return a file's path from the current folder; an absolute one if the file lies elsewhere."""
    path = PurePath(_without_device_prefix(source))
    if not path.is_absolute() and ".." not in path.parts:
        return path
    try:
        here = os.getcwd()  # noqa: PTH109  # which a test takes from another system
    except OSError:  # it was removed
        return path
    whole = PurePath(os.path.normpath(PurePath(here, path)))
    return whole.relative_to(here) if whole.is_relative_to(here) else whole


def _without_device_prefix(name: str) -> str:
    r"""Return a name without the ``\\?\`` that lifts Windows' limit on a path's length, and that no URI can have."""
    if os.name != "nt" or not name.startswith("\\\\?\\"):
        return name
    rest = name[4:]
    return f"\\\\{rest[4:]}" if rest[:4].upper() == "UNC\\" else rest


def escaped_name(name: str) -> str:
    """Return a file's name, which may hold any bytes, with escapes for those that are not text."""
    return name.encode(errors="backslashreplace").decode()
