"""The exit status of commands, their ends by signals, and what they print on consoles: complaints, tables."""

from __future__ import annotations

import os
import signal
from _thread import interrupt_main
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import Parameter, Signature, signature
from threading import Timer
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn, TypeVar

import typer

from dml_tile.errors import ConfigError, OutputError, Problem, location_of

if TYPE_CHECKING:
    from dml_tile.readers.sources import PassedOver

Returned = TypeVar("Returned")

FailOn = Literal["error", "warning", "note", "never"]

MAX_SECONDS: Final = 10**6
"""The longest time that may be given."""

MaxTimeOption = Annotated[
    int | None,
    typer.Option(
        "--max-time",
        min=1,
        max=MAX_SECONDS,
        metavar="SECONDS",
        help="The longest that the command may take; it then ends with status 2, and reports say what was left.",
    ),
]

CLEAN, FINDINGS, UNREADABLE = 0, 1, 2
"""The exit status of a command."""


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

    def count_findings(self, *, are_failing: bool = True) -> None:
        """Take into account that a tile has findings."""
        self.code = max(self.code, FINDINGS * are_failing)


def complain(source: str, problems: Sequence[Problem]) -> None:
    """Print on standard error why a source, or parts of it, cannot be read."""
    from dml_tile.text import printable

    for problem in problems:
        where = location_of(source, problem.pointer, problem.position)
        print_stderr(f"dml-tile: {printable(where)}: {printable(problem.message)}")


def count_passed_over(ones: Sequence[PassedOver]) -> None:
    """Print on standard error how many files and folders are passed over, by reason, if there are any."""
    if ones:
        from dml_tile.reports.wording import passed_over

        print_stderr(f"dml-tile: {passed_over(ones)}")


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


_ENDING: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_ALARM: Final = next(getattr(signal, name) for name in ("SIGALRM", "SIGBREAK", "SIGINT") if hasattr(signal, name))


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


class _OutOfTimeError(BaseException):
    """Ends a block, whatever errors that one handles."""


class Deadline:
    """Ends the block of ``at_most``, or only the calls that it makes, so that what the block writes stays whole.

    ``has_cut`` is True if a call was ended, or not made.
    """

    def __init__(self, *, ends_block: bool = True) -> None:
        self.has_cut = False
        self._is_over = False
        self._may_break_in = ends_block

    def ring(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal of the end."""
        self._is_over = True
        if self._may_break_in:
            raise _OutOfTimeError

    def cut(self, function: Callable[..., Returned], *arguments: Any, **options: Any) -> Returned | None:
        """Return what a function returns in time, else None."""
        try:
            try:
                self._may_break_in = True
                if self._is_over:
                    raise _OutOfTimeError
                return function(*arguments, **options)
            finally:
                self._may_break_in = False
        except _OutOfTimeError:
            self.has_cut = True
            return None

    def cut_short(self, items: Iterator[Returned]) -> Iterator[Returned]:
        """Yield the items that come in time."""
        while (item := self.cut(next, items, None)) is not None:
            yield item


@contextmanager
def at_most(seconds: float | None, *, ends_block: bool = True) -> Iterator[Deadline]:
    """End the block, which the main thread runs, or the calls of its deadline, after so many seconds.

    Raises TimeoutError if it ends the block.
    """
    deadline = Deadline(ends_block=ends_block)
    if seconds is None:
        yield deadline
        return
    before = signal.signal(_ALARM, deadline.ring)
    timer = None
    try:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, seconds)
        else:  # on Windows: a block that waits for another program is not interrupted
            timer = Timer(seconds, interrupt_main, [_ALARM])
            timer.daemon = True
            timer.start()
        yield deadline
    except _OutOfTimeError:
        raise TimeoutError from None
    finally:
        if timer is None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        else:
            timer.cancel()
        signal.signal(_ALARM, before)


def with_max_time(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the option ``--max-time``."""

    @wraps(command)
    def bounded(*arguments: Any, max_time: int | None = None, **options: Any) -> None:
        try:
            with at_most(max_time):
                command(*arguments, **options)
        except TimeoutError:
            print_stderr(f"dml-tile: the command took longer than {max_time} s; --max-time allows more")
            raise typer.Exit(UNREADABLE) from None

    option = Parameter("max_time", Parameter.KEYWORD_ONLY, default=None, annotation=MaxTimeOption)
    let_typer_take(bounded, [*signature(command, eval_str=True).parameters.values(), option])
    return bounded


def let_typer_take(command: Any, parameters: Sequence[Parameter]) -> None:
    """Let typer take a function for one that has these parameters."""
    command.__signature__ = Signature(parameters)
    command.__annotations__ = {each.name: each.annotation for each in parameters}


def _end(number: int, frame: FrameType | None) -> NoReturn:
    for ending in _ENDING:
        signal.signal(ending, signal.SIG_IGN)  # nothing is to break into the clearing up
    raise _EndedError(number)
