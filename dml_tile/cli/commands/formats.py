"""The formats of ``check``, and where each is written to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from dml_tile.cli.output_files import Output
    from dml_tile.findings import Against
    from dml_tile.readers.json.positions import Positions
    from dml_tile.reports.report import Report


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"
    JUNIT = "junit"
    HTML = "html"


_HAVE_STATISTICS: Final = (Format.TEXT, Format.JSON)

FormatsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        metavar="FORMAT[:FILE]",
        help=f"{', '.join(Format)}; the first by default. Several may be given, all but one with a file.",
        autocompletion=lambda incomplete: [name for name in Format if name.startswith(incomplete)],
    ),
]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A format, and the file it is written to; without one it is standard output."""

    format: Format
    file: str = ""


@dataclass(frozen=True, slots=True)
class Details:
    """What reports tell beside the results: what these are held to, and how many findings there are of each rule."""

    against: Against
    with_statistics: bool

    @property
    def with_lowest_level(self) -> bool:
        """Whether to tell the lowest level of each tile, which is by both contracts."""
        return self.against == "both"


def wanted_formats(
    values: Sequence[str] | None, output: str | None, page: str | None, *, with_statistics: bool
) -> list[Wanted]:
    """The formats that are asked for; ``output`` is the file of the one that has none, ``page`` that of an HTML one."""
    wanted = [_wanted(value) for value in values or [Format.TEXT]]
    if with_statistics and not any(one.format in _HAVE_STATISTICS for one in wanted):
        raise typer.BadParameter(f"they are told in {' and '.join(_HAVE_STATISTICS)}", param_hint="--statistics")
    printed = [one for one in wanted if not one.file]
    if len(printed) > 1:
        names = " and ".join(one.format for one in printed)
        raise typer.BadParameter(f"{names} would both be printed; give one a file, FORMAT:FILE", param_hint="--format")
    if output is not None:
        if len(wanted) > 1 or not printed or not output:
            raise typer.BadParameter("is the file of a single --format that names none", param_hint="--output")
        wanted = [Wanted(wanted[0].format, output)]
    if page == "":
        raise typer.BadParameter("names no file", param_hint="--report")
    if page:
        wanted.append(Wanted(Format.HTML, page))
    files = [os.path.realpath(one.file) for one in wanted if one.file]
    if len(set(files)) < len(files):
        raise typer.BadParameter("several formats have the same file", param_hint="--format")
    return wanted


def require_other_files(wanted: Sequence[Wanted], names: Sequence[str]) -> None:
    """Refuse to write a report over a file that is checked."""
    files = {os.path.realpath(one.file) for one in wanted if one.file}
    for name in names:
        if os.path.realpath(name) in files:
            raise typer.BadParameter(f"{name} is checked; a report would take its place", param_hint="--format")


@contextmanager
def reports_in(wanted: Sequence[Wanted], details: Details) -> Iterator[list[Report]]:
    """The reports in the formats that are wanted; their files are there when the block ends. Raises OutputError."""
    from dml_tile.cli.output_files import printed_output, replaced, utf8_output
    from dml_tile.readers.json.positions import Positions

    positions = Positions()
    with ExitStack() as files:
        outputs = [
            files.enter_context(replaced(one.file))
            if one.file
            else printed_output()
            if one.format == Format.TEXT
            else utf8_output()
            for one in wanted
        ]
        yield [_report(one, output, positions, details) for one, output in zip(wanted, outputs, strict=True)]
        for output in outputs:
            output.flush()


def _wanted(value: str) -> Wanted:
    name, colon, file = value.partition(":")
    if name not in list(Format) or (colon and not file):
        raise typer.BadParameter(
            f"{value!r} is none of {', '.join(Format)}, nor one with a file, as sarif:report.sarif",
            param_hint="--format",
        )
    return Wanted(Format(name), file)


def _report(wanted: Wanted, output: Output, positions: Positions, details: Details) -> Report:
    match wanted.format:
        case Format.TEXT:
            from dml_tile.cli.console import console_of
            from dml_tile.reports.text import TextReport

            console = console_of(file=output, is_terminal=False if wanted.file else None)
            return TextReport(
                console, with_lowest_level=details.with_lowest_level, with_statistics=details.with_statistics
            )
        case Format.JSON:
            from dml_tile.reports.json import JsonReport

            return JsonReport(output.write, positions, with_statistics=details.with_statistics)
        case Format.GITHUB:
            from dml_tile.reports.github import GithubReport

            return GithubReport(output.write, positions)
        case Format.SARIF:
            from dml_tile.reports.sarif import SarifReport

            return SarifReport(output.write, positions)
        case Format.JUNIT:
            from dml_tile.reports.junit import JunitReport

            return JunitReport(output.write, with_lowest_level=details.with_lowest_level)
        case Format.HTML:
            from dml_tile.reports.page.report import PageReport

            return PageReport(output.write, details.against)
