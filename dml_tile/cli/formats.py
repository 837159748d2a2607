"""The formats of ``check``, and outputs: standard output, and files that are written whole or not at all."""

from __future__ import annotations

import codecs
import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TextIO

import typer

from dml_tile.errors import OutputError
from dml_tile.files.links import unlinked
from dml_tile.files.paths import MAX_PARTS, part_count
from dml_tile.files.whole import replacement
from dml_tile.reports.lines import PlainConsole, rich_console
from dml_tile.reports.report import FORMATS, Format
from dml_tile.text import printable

if TYPE_CHECKING:
    from dml_tile.reports.lines import AnyConsole
    from dml_tile.reports.report import Report, ReportOptions

READER_HAS_GONE: Final = (errno.EPIPE, errno.EINVAL) if os.name == "nt" else (errno.EPIPE,)
"""The errors of writing to a pipe that nobody reads any more."""


class OutputStream:
    """A text stream. It outlives the reader of a pipe: once that has gone, all output is dropped.

    ``name`` is a file's; without it, the stream is standard output. Raises OutputError where it cannot be written.
    """

    def __init__(self, stream: Any, name: str = "") -> None:
        self._stream = stream
        self._name = name

    def write(self, text: str) -> int:
        """Write text, which may be buffered."""
        try:
            self._stream.write(text)
        except OSError as error:
            self._fail(error)
        return len(text)

    def flush(self) -> None:
        """Write the buffered text."""
        try:
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    def __getattr__(self, name: str) -> Any:  # rich asks whether it is a terminal
        return getattr(self._stream, name)

    def _fail(self, error: OSError) -> None:
        if not self._name:
            drop_output()
            if error.errno in READER_HAS_GONE:
                return  # as in `dml-tile check many.jsonl | head`: the exit status still counts all of it
        raise OutputError(self._name or "standard output", error.strerror or str(error)) from None


def print_text(text: str) -> None:
    """Write text, with the line ends it has, to standard output."""
    output = OutputStream(sys.stdout)
    output.write(text)
    if text.endswith("\n"):
        output.flush()


def print_bytes(text: str) -> None:
    """Write text in UTF-8 to standard output, lone surrogates as the bytes that they stand for."""
    if sys.stdout.isatty():  # which gets escapes for what would move its cursor
        print_text("\n".join(map(printable, text.split("\n"))))
        return
    output = OutputStream(codecs.getwriter("utf-8")(sys.stdout.buffer, "surrogateescape"))
    output.write(text)
    output.flush()


def drop_output(stream: TextIO | None = None) -> None:
    """Send a stream, by default standard output, nowhere, so that Python can flush its buffer when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())


def drop_errors_if_unwritable() -> None:
    """Send standard error nowhere if it cannot be written; at exit, Python would end with a status of its own."""
    try:
        sys.stderr.flush()
    except OSError:
        drop_output(sys.stderr)


@contextmanager
def replaced(name: str) -> Iterator[OutputStream]:
    """Yield an output that replaces a file, in UTF-8, as ``replacement`` does. Raises OutputError."""
    try:
        with replacement(Path(name)) as file:
            yield OutputStream(_utf8(file), name)
    except OSError as error:
        raise OutputError(name, error.strerror or str(error)) from None


def require_writable(name: str | None) -> None:
    """Raise OutputError if a file or folder, if any, is not written for a link or ``.git`` in its name."""
    if name is None:
        return
    try:
        unlinked(name)
    except OSError as error:
        raise OutputError(name, error.strerror or str(error)) from None


def _utf8(stream: IO[bytes]) -> codecs.StreamWriter:
    return codecs.getwriter("utf-8")(stream, "backslashreplace")


def wanted_formats(values: Sequence[str] | None) -> list[Format]:
    """Return the formats that values of ``--format`` ask for, the first of all without one. Raises BadParameter."""
    wanted = list[Format]()
    for value in values or [*FORMATS][:1]:
        name, colon, file = value.partition(":")
        if name not in FORMATS or (colon and not file):
            raise typer.BadParameter(
                f"{value!r} is not one of {', '.join(FORMATS)}, nor one with a file, such as sarif:report.sarif",
                param_hint="--format",
            )
        wanted.append(FORMATS[name]._replace(file=file))
    printed = [one for one in wanted if not one.file]
    if len(printed) > 1:
        names = " and ".join(one.name for one in printed)
        raise typer.BadParameter(f"{names} would both be printed; give one a file, FORMAT:FILE", param_hint="--format")
    files = [_real_path(one.file) for one in wanted if one.file]
    if len(set(files)) < len(files):
        raise typer.BadParameter("several formats have the same file", param_hint="--format")
    return wanted


def shows_passed_over(wanted: Sequence[Format]) -> bool:
    """Return True if the printed format lists skipped files; if none is printed, if a file's does."""
    return any(one.has_passed_over for one in [one for one in wanted if not one.file] or wanted)


def require_other_files(wanted: Sequence[Format], names: Sequence[str]) -> None:
    """Raise BadParameter if a report would be written over one of these files."""
    files = {_real_path(one.file) for one in wanted if one.file}
    for name in names:
        if _real_path(name) in files:
            raise typer.BadParameter(f"a report would take the place of {name}", param_hint="--format")


def _real_path(name: str) -> str:
    """Return the path without links; the name itself if it is of no file, or the current folder was removed."""
    try:
        return os.path.realpath(name) if part_count(name) <= MAX_PARTS else name
    except OSError:
        return name


_ASKED_BY_RICH: Final = frozenset(("FORCE_COLOR", "JPY_PARENT_PID", "TTY_COMPATIBLE", "TTY_INTERACTIVE"))
"""The variables by which rich may mistake another stream for a terminal, or a terminal for another stream."""


def console_of(output: OutputStream | TextIO | None = None, *, is_file: bool = False) -> AnyConsole:
    """Return a console on an output, by default standard output. Only what may be a terminal gets rich's."""
    output = output or OutputStream(sys.stdout)
    may_be_a_terminal = output.isatty() or not _ASKED_BY_RICH.isdisjoint(os.environ)
    return rich_console(output) if may_be_a_terminal and not is_file else PlainConsole(output)


@contextmanager
def reports_in(wanted: Sequence[Format], options: Callable[..., ReportOptions]) -> Iterator[list[Report]]:
    """Yield the reports in the wanted formats; their files exist once the block ends. Raises OutputError."""
    with ExitStack() as files:
        outputs = [
            files.enter_context(replaced(one.file))
            if one.file
            else OutputStream(sys.stdout)
            if one.is_for_terminals
            else OutputStream(_utf8(sys.stdout.buffer))
            for one in wanted
        ]
        yield [
            one.report(options(output.write, partial(console_of, output, is_file=bool(one.file))))
            for one, output in zip(wanted, outputs, strict=True)
        ]
        for output in outputs:
            output.flush()
