"""What a command leaves behind: its exit status, and what it writes to a terminal, a pipe or a file, whoever reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:  # rich costs more than many a command
    from rich.console import Console

    from dml_tile.errors import Problem
    from dml_tile.execution.executor import BoundTile

CLEAN, FINDINGS, UNREADABLE = 0, 1, 2
"""The exit status of a command."""

_WIDTH_WITHOUT_A_TERMINAL: Final = 120
_BYTES_WORTH_A_PROGRESS_BAR: Final = 2**28


class ExitStatus:
    """The exit status that what a command has done so far amounts to."""

    def __init__(self) -> None:
        self.code = CLEAN

    def complain(self, source: str, problem: Problem) -> None:
        """Tell on standard error what cannot be read, or be done with it."""
        complain(source, [problem])
        self.code = UNREADABLE

    def count_findings(self) -> None:
        """Take into account that a tile has findings."""
        self.code = max(self.code, FINDINGS)


def complain(source: str, problems: Sequence[Problem]) -> None:
    """Tell on standard error what of a source cannot be read."""
    from dml_tile.input_errors import printable

    for problem in problems:
        where = f"{source}#{problem.pointer}" if problem.pointer else source
        typer.echo(f"dml-tile: {printable(where)}: {printable(problem.message)}", err=True)


def console_of(stderr: bool = False, file: Any = None, is_terminal: bool | None = None) -> Console:
    """A console that takes text as it is, on standard output, standard error or a stream.

    Whether that is a terminal is found out, unless it ``is_terminal`` for sure or surely not.
    """
    from rich.console import Console

    class PipeConsole(Console):
        def on_broken_pipe(self) -> None:  # rich would exit with a status of its own
            raise BrokenPipeError

    console = PipeConsole(
        stderr=stderr, file=file, force_terminal=is_terminal, highlight=False, markup=False, emoji=False
    )
    if not console.is_terminal:
        console.width = _WIDTH_WITHOUT_A_TERMINAL
    return console


def run_tile(name: str, tile: BoundTile, *, explain_plan: bool) -> None:
    """Run a tile, with a progress bar on a terminal where it takes long, and its plan on standard error if wanted."""
    if explain_plan:
        from dml_tile.input_errors import printable

        typer.echo(f"{printable(name)}: {tile.plan}", err=True)
    if tile.plan.size < _BYTES_WORTH_A_PROGRESS_BAR or not sys.stderr.isatty():
        tile.run()
        return
    from rich.progress import Progress

    with Progress(console=console_of(stderr=True), transient=True) as shown:
        task = shown.add_task("tiling", total=tile.plan.size)
        tile.run(progress=lambda done, of: shown.update(task, completed=done))


def write_while_read(text: str) -> None:
    """Write to standard output; once its reader has gone, a model's later commands are done all the same."""
    try:
        sys.stdout.write(text)
        if text.endswith("\n"):
            sys.stdout.flush()
    except BrokenPipeError:
        forget_output()


def forget_output() -> None:
    """Keep Python from complaining, at its end, of what it cannot write to a reader that has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
