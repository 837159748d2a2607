"""The outputs of a command: standard output, and files that are written whole or not at all."""

from __future__ import annotations

import codecs
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Final, TextIO

from dml_tile.errors import OutputError
from dml_tile.files.replacement import replacement
from dml_tile.text import printable

READER_HAS_GONE: Final = (errno.EPIPE, errno.EINVAL) if os.name == "nt" else (errno.EPIPE,)
"""The errors of writing to a pipe that nobody reads any more."""


class Output:
    """A text stream. It outlives the reader of a pipe: once that has gone, what is written is dropped.

    ``name`` is a file's. Raises OutputError where that file cannot be written, OSError where standard output cannot.
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
        """Write what is buffered."""
        try:
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    def __getattr__(self, name: str) -> Any:  # rich asks whether it is a terminal
        return getattr(self._stream, name)

    def _fail(self, error: OSError) -> None:
        if self._name:
            raise OutputError(self._name, error.strerror or str(error)) from None
        if error.errno not in READER_HAS_GONE:
            raise error
        drop_output()  # as in `dml-tile check many.jsonl | head`: the exit status still counts all of it


def printed_output() -> Output:
    """Standard output, for text in the terminal's encoding."""
    return Output(sys.stdout)


def utf8_output() -> Output:
    """Standard output, for formats that are UTF-8 whatever the terminal's encoding is."""
    return Output(_utf8(sys.stdout.buffer))


def print_text(text: str) -> None:
    """Write text, with the line ends it has, to standard output."""
    output = printed_output()
    output.write(text)
    if text.endswith("\n"):
        output.flush()


def print_bytes(text: str) -> None:
    """Write text in UTF-8 to standard output, lone surrogates as the bytes that they stand for.

    A terminal gets escapes for what would move its cursor.
    """
    if sys.stdout.isatty():
        print_text("".join(f"{printable(line.rstrip(chr(10)))}{chr(10) * line.endswith(chr(10))}"
                           for line in text.splitlines(keepends=True)))  # fmt: skip
        return
    output = Output(codecs.getwriter("utf-8")(sys.stdout.buffer, "surrogateescape"))
    output.write(text)
    output.flush()


def drop_output(stream: TextIO | None = None) -> None:
    """Send a stream, by default standard output, nowhere, so that Python can flush its buffer when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())


def drop_errors_if_unwritable() -> None:
    """Send standard error nowhere if it cannot be written; at exit, Python would end with a status of its own."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.flush()
    except OSError:
        drop_output(sys.stderr)


@contextmanager
def replaced(name: str) -> Iterator[Output]:
    """Yield an output that replaces a file, in UTF-8, as ``replacement`` does. Raises OutputError."""
    with ExitStack() as stack:
        with _named(name):
            file = stack.enter_context(replacement(Path(name)))
        yield Output(_utf8(file), name)
        with _named(name):
            stack.close()


def _utf8(stream: IO[bytes]) -> codecs.StreamWriter:
    return codecs.getwriter("utf-8")(stream, "backslashreplace")


@contextmanager
def _named(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(name, error.strerror or str(error)) from None
