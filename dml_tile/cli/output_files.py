"""The outputs of a command: standard output, and files that are written whole or not at all."""

from __future__ import annotations

import codecs
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from dml_tile.errors import OutputError


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
        if not isinstance(error, BrokenPipeError):
            raise error
        drop_output()  # as in `dml-tile check many.jsonl | head`: the exit status still counts all of it


def printed_output() -> Output:
    """Standard output, for text in the terminal's encoding."""
    return Output(sys.stdout)


def utf8_output() -> Output:
    """Standard output, for formats that are UTF-8 whatever the terminal's encoding is."""
    return Output(codecs.getwriter("utf-8")(sys.stdout.buffer, "backslashreplace"))


def print_text(text: str) -> None:
    """Write text, with the line ends it has, to standard output."""
    output = printed_output()
    output.write(text)
    if text.endswith("\n"):
        output.flush()


def drop_output() -> None:
    """Send standard output nowhere, so that Python can flush what it has buffered when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def replaced(name: str) -> Iterator[Output]:
    """A new UTF-8 file that replaces the one of this name, and takes over its permissions, when the block ends.

    Until then it is a file beside it; if the block raises, it is removed and the old one stays. Anything other than a
    regular file, such as a pipe, is written to directly. Raises OutputError.
    """
    path = Path(name)
    with _named(name):
        old = path.stat().st_mode if path.exists() else None
    is_replaced = old is None or stat.S_ISREG(old)
    if is_replaced:
        path = Path(os.path.realpath(name))
    written = path.with_name(f".dml-tile-{secrets.token_hex(8)}") if is_replaced else path
    stream: IO[str] | None = None
    try:
        with _named(name):
            mode = "x" if is_replaced else "w"
            stream = written.open(mode, encoding="utf-8", errors="backslashreplace", newline="\n")
            if is_replaced and old is not None:
                written.chmod(stat.S_IMODE(old))
        yield Output(stream, name)
        with _named(name):
            stream.close()
            if is_replaced:
                written.replace(path)
    finally:
        with suppress(OSError):
            if stream is not None:
                stream.close()
        if is_replaced:
            with suppress(OSError):  # it has been moved into place, or was never made
                written.unlink()


@contextmanager
def _named(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(name, error.strerror or str(error)) from None
