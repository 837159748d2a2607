"""The exit status of commands, their ends by signals, and what they print on consoles: complaints, tables."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType
from typing import Final, Literal, NoReturn

import typer

from dml_tile.findings import Finding

FailOn = Literal["error", "warning", "note", "never"]

CLEAN, FINDINGS, UNREADABLE = 0, 1, 2
"""The exit status of a command."""


class ExitStatus:
    """The exit status of a command, by what it has met so far; ``problems`` are those of its sources."""

    def __init__(self, *, lets_findings_pass: bool = False) -> None:
        self.code = CLEAN
        self.problems: list[Finding] = []
        self._code_of_findings = CLEAN if lets_findings_pass else FINDINGS

    def complain(self, source: str, problem: Finding) -> None:
        """Report on standard error a file that cannot be read or used."""
        complain(source, [problem])
        self.problems.append(replace(problem, source=source))
        self.code = UNREADABLE

    def count_findings(self, *, are_failing: bool = True) -> None:
        """Take into account that a tile has findings."""
        self.code = max(self.code, self._code_of_findings * are_failing)


def complain(source: str, problems: Sequence[Finding]) -> None:
    """Print on standard error why a source, or parts of it, cannot be read."""
    from dml_tile.reports.bounds import bounded_finding
    from dml_tile.text import printable

    for problem in map(bounded_finding, problems):
        where = replace(problem, source=source).location
        print_stderr(f"dml-tile: {printable(where)}: {printable(problem.message)}")


def count_passed_over(ones: Sequence[Finding]) -> None:
    """Print on standard error how many files and folders are skipped, by reason, if any are."""
    if ones:
        from dml_tile.reports.wording import passed_over

        print_stderr(f"dml-tile: {passed_over(ones)}")


def print_stderr(line: str) -> None:
    """Print a line on standard error; where that is closed or full, the exit status has to do."""
    with suppress(OSError):
        typer.echo(line, err=True)


_ENDING: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _EndedError(BaseException):
    """A signal, whose number is the argument, asks the process to end."""


@contextmanager
def ending_by_exceptions() -> Iterator[None]:
    """Unwind the block on SIGTERM and SIGHUP, so that it removes its files and children, then end by that signal."""
    before = {number: signal.getsignal(number) for number in _ENDING}
    for number, handler in before.items():
        if handler == signal.SIG_DFL:  # what the caller ignores, as nohup does, stays ignored
            signal.signal(number, _end)
    try:
        yield
    except _EndedError as error:
        signal.signal(error.args[0], signal.SIG_DFL)
        os.kill(os.getpid(), error.args[0])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    for ending in _ENDING:
        signal.signal(ending, signal.SIG_IGN)  # nothing is to break into the clearing up
    raise _EndedError(number)
