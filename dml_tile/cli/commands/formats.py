"""The formats of ``check``, and where each is written to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from dml_tile.reports.formats import FORMATS, Format

if TYPE_CHECKING:
    from dml_tile.directml.targets import Target
    from dml_tile.findings import Against, Severity
    from dml_tile.reports.report import Invocation, Report


FormatsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        metavar="FORMAT[:FILE]",
        help=f"{', '.join(FORMATS)}; the first by default. Several may be given, all but one with a file.",
        autocompletion=lambda incomplete: [name for name in FORMATS if name.startswith(incomplete)],
    ),
]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A format, and the file it is written to; ``""`` is standard output."""

    format: Format
    file: str = ""


def wanted_formats(
    values: Sequence[str] | None, output: str | None, page: str | None, *, with_statistics: bool, is_quiet: bool
) -> list[Wanted]:
    """Return the formats asked for. ``output`` is the file of the only one, ``page`` that of another HTML report."""
    wanted = [_wanted(value) for value in values or [*FORMATS][:1]]
    if with_statistics and not any(one.format.has_statistics for one in wanted):
        raise typer.BadParameter(
            f"they are part of {' and '.join(name for name, row in FORMATS.items() if row.has_statistics)}",
            param_hint="--statistics",
        )
    if is_quiet and not any(one.format.can_be_quiet for one in wanted):
        names = " and ".join(name for name, row in FORMATS.items() if row.can_be_quiet)
        raise typer.BadParameter(f"it leaves lines out of {names} only", param_hint="--quiet")
    printed = [one for one in wanted if not one.file]
    if len(printed) > 1:
        names = " and ".join(one.format.name for one in printed)
        raise typer.BadParameter(f"{names} would both be printed; give one a file, FORMAT:FILE", param_hint="--format")
    if output is not None:
        if len(wanted) > 1 or not printed or not output:
            raise typer.BadParameter("is the file of a single --format that names none", param_hint="--output")
        wanted = [Wanted(wanted[0].format, output)]
    if page == "":
        raise typer.BadParameter("names no file", param_hint="--report")
    if page:
        wanted.append(Wanted(FORMATS["html"], page))
    files = [_real_path(one.file) for one in wanted if one.file]
    if len(set(files)) < len(files):
        raise typer.BadParameter("several formats have the same file", param_hint="--format")
    return wanted


def require_other_files(wanted: Sequence[Wanted], names: Sequence[str]) -> None:
    """Refuse to write a report over a file that is checked."""
    files = {_real_path(one.file) for one in wanted if one.file}
    for name in names:
        if _real_path(name) in files:
            raise typer.BadParameter(f"{name} is checked; a report would take its place", param_hint="--format")


def _real_path(name: str) -> str:
    """Return the path without links; the name itself where the current folder was removed."""
    try:
        return os.path.realpath(name)
    except OSError:
        return name


def invocation_of(context: typer.Context, targets: Sequence[Target]) -> Invocation:
    """Return the command that reports name; it is empty where another program calls this function."""
    from datetime import UTC, datetime

    from dml_tile.checks.lowerings import as_typed
    from dml_tile.files.urls import source_named
    from dml_tile.reports.report import Invocation

    return Invocation(
        command=as_typed(["dml-tile", *map(source_named, context.obj)]) if context.obj else "",
        targets=tuple(target.name for target in targets),
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


@contextmanager
def reports_in(
    wanted: Sequence[Wanted],
    against: Against,
    fail_on: Severity | None,
    invocation: Invocation,
    *,
    with_statistics: bool,
    is_quiet: bool,
) -> Iterator[list[Report]]:
    """Yield the reports in the wanted formats; their files exist once the block ends. Raises OutputError."""
    from dml_tile.cli.console import console_of
    from dml_tile.cli.output_files import printed_output, replaced, utf8_output
    from dml_tile.reports.report import ReportOptions

    with ExitStack() as files:
        outputs = [
            files.enter_context(replaced(one.file))
            if one.file
            else printed_output()
            if one.format.is_for_terminals
            else utf8_output()
            for one in wanted
        ]
        yield [
            one.format.report(
                ReportOptions(
                    output.write,
                    partial(console_of, file=output, is_terminal=False if one.file else None),
                    against,
                    with_statistics,
                    fail_on,
                    is_quiet,
                    invocation,
                )
            )
            for one, output in zip(wanted, outputs, strict=True)
        ]
        for output in outputs:
            output.flush()


def _wanted(value: str) -> Wanted:
    name, colon, file = value.partition(":")
    if name not in FORMATS or (colon and not file):
        raise typer.BadParameter(
            f"{value!r} is not one of {', '.join(FORMATS)}, nor one with a file, such as sarif:report.sarif",
            param_hint="--format",
        )
    return Wanted(FORMATS[name], file)
