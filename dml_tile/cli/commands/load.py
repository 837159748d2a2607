"""``dml-tile load``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from dml_tile.cli.commands.formats import FormatsOption, origin_of, reports_in, wanted_formats
from dml_tile.cli.commands.options import Against, AgainstOption, FailOn, TargetsOption, chosen_targets
from dml_tile.cli.console import UNREADABLE, ExitStatus, complain, exit_on_file_errors

_MAX_CAPACITY: Final = 10_000


def load(
    context: typer.Context,
    library: Annotated[Path, typer.Argument(metavar="LIBRARY", help="A shared library (.so, .dylib, .dll).")],
    symbol: Annotated[
        str,
        typer.Argument(metavar="SYMBOL", help='An extern "C" function that returns a const DML_OPERATOR_DESC*.'),
    ],
    fills: Annotated[
        int,
        typer.Option(
            min=0,
            max=_MAX_CAPACITY,
            metavar="CAPACITY",
            help="The function takes (DML_OPERATOR_DESC* descs, UINT capacity) instead, fills the array, and returns "
            "how many it filled.",
        ),
    ] = 0,
    targets: TargetsOption = None,
    against: AgainstOption = Against.BOTH,
    formats: FormatsOption = None,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            metavar="SEVERITY",
            help="error, warning, note or never: the severity of findings from which on the exit status is 1.",
        ),
    ] = FailOn.WARNING,
) -> None:
    """Call a function of a C or C++ library, and check the descriptors that it gives.

    This runs the library's code, in a child process of bounded time and memory; check never runs any.
    """
    from dml_tile.checks.result import results
    from dml_tile.checks.source_summary import SourceSummary
    from dml_tile.errors import InputError
    from dml_tile.findings import Severity
    from dml_tile.readers.sandbox.library import library_descs

    chosen = chosen_targets(targets)
    name = str(library)
    try:
        parts = library_descs(library, symbol, fills)
    except InputError as error:
        complain(name, error.problems)
        raise typer.Exit(UNREADABLE) from None
    status = ExitStatus()
    threshold = None if fail_on is FailOn.NEVER else Severity[fail_on.name]
    wanted = wanted_formats(formats, None, None, with_statistics=False, is_quiet=False)
    summary = SourceSummary(name, is_model=False)
    with (
        exit_on_file_errors(),
        reports_in(
            wanted, against.value, threshold, origin_of(context, chosen), with_statistics=False, is_quiet=False
        ) as reports,
    ):
        for part in parts:
            of_part = tuple(results(name, part, chosen, against.value))
            summary.add(of_part, threshold)
            if not all(result.passes(threshold) for result in of_part):
                status.count_findings()
            for report in reports:
                report.add(of_part)
        for report in reports:
            report.end([], [summary])
    raise typer.Exit(status.code)
