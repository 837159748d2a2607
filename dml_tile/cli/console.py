"""The exit status of commands, and what they print on consoles: complaints, tables, progress."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Final, cast

import typer

from dml_tile.cli.output_files import Output, printed_output
from dml_tile.errors import ConfigError, OutputError, Problem

if TYPE_CHECKING:  # importing rich takes longer than many commands
    from rich.console import Console

    from dml_tile.execution.executor import BoundTile

CLEAN, FINDINGS, UNREADABLE = 0, 1, 2
"""The exit status of a command."""

_WIDTH_WITHOUT_A_TERMINAL: Final = 120
_MIN_BYTES_FOR_PROGRESS: Final = 2**28


class ExitStatus:
    """The exit status of a command, by what it has met so far; ``problems`` are those of its sources."""

    def __init__(self) -> None:
        self.code = CLEAN
        self.problems: list[tuple[str, Problem]] = []

    def complain(self, source: str, problem: Problem) -> None:
        """Print on standard error what cannot be read, or be done with it."""
        complain(source, [problem])
        self.problems.append((source, problem))
        self.code = UNREADABLE

    def count_findings(self) -> None:
        """Take into account that a tile has findings."""
        self.code = max(self.code, FINDINGS)


def complain(source: str, problems: Sequence[Problem]) -> None:
    """Print on standard error why a source, or parts of it, cannot be read."""
    from dml_tile.text import printable

    for problem in problems:
        where = f"{source}#{problem.pointer}" if problem.pointer else source
        print_stderr(f"dml-tile: {printable(where)}: {printable(problem.message)}")


def print_stderr(line: str) -> None:
    """Print a line on standard error; where that is closed or full, the exit status has to do."""
    with suppress(OSError):
        typer.echo(line, err=True)


@contextmanager
def exit_on_file_errors() -> Iterator[None]:
    """Complain, and exit with ``UNREADABLE``, if a pyproject.toml cannot be read or an output cannot be written."""
    try:
        yield
    except (ConfigError, OutputError) as error:
        complain(error.file, [Problem("", str(error))])
        raise typer.Exit(UNREADABLE) from None


def console_of(*, stderr: bool = False, file: Output | None = None, is_terminal: bool | None = None) -> Console:
    """Return a rich console that prints text as it is: no markup, no emoji codes, no highlighting.

    It writes to ``file``, else to standard error or standard output. ``is_terminal`` overrides what the stream says.
    """
    from rich.console import Console

    console = Console(
        stderr=stderr,
        file=cast("IO[str]", file or printed_output()) if file or not stderr else None,
        force_terminal=is_terminal,
        highlight=False,
        markup=False,
        emoji=False,
    )
    if not console.is_terminal:
        console.width = _WIDTH_WITHOUT_A_TERMINAL
    return console


def run_tile(name: str, tile: BoundTile, *, explain_plan: bool) -> None:
    """Run a tile; a large one has a progress bar on a terminal. ``explain_plan`` prints its plan on stderr first."""
    if explain_plan:
        from dml_tile.text import printable_line_start

        print_stderr(f"{printable_line_start(name)}: {tile.plan}")
    if tile.plan.size < _MIN_BYTES_FOR_PROGRESS or not sys.stderr.isatty():
        tile.run()
        return
    from rich.progress import Progress

    with Progress(console=console_of(stderr=True), transient=True) as shown:
        task = shown.add_task("tiling", total=tile.plan.size)
        tile.run(progress=lambda done, of: shown.update(task, completed=done))
