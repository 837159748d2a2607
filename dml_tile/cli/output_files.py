"""Where a command's output goes: standard output, or files that are written whole or not at all."""

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

from dml_tile.cli.console import forget_output
from dml_tile.errors import OutputError


class Output:
    """A stream of text. A reader of standard output may leave; of a file, ``name`` is told where it cannot be written.

    Raises OutputError for a file, OSError for standard output.
    """

    def __init__(self, stream: Any, name: str = "") -> None:
        self._stream = stream
        self._name = name

    def write(self, text: str) -> int:
        """Write a part."""
        try:
            self._stream.write(text)
        except OSError as error:
            self._fail(error)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered, while it can still be told that it fails."""
        try:
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    def __getattr__(self, name: str) -> Any:  # what rich asks of a terminal
        return getattr(self._stream, name)

    def _fail(self, error: OSError) -> None:
        if self._name:
            raise OutputError(self._name, error.strerror or str(error)) from None
        if not isinstance(error, BrokenPipeError):
            raise error
        forget_output()  # nobody reads on, as in `dml-tile check many.jsonl | head`; the rest goes nowhere


def printed_output() -> Output:
    """Standard output, for text in the terminal's encoding."""
    return Output(sys.stdout)


def utf8_output() -> Output:
    """Standard output, for formats that are UTF-8 whatever the terminal speaks."""
    return Output(codecs.getwriter("utf-8")(sys.stdout.buffer, "backslashreplace"))


@contextmanager
def replaced(name: str) -> Iterator[Output]:
    """A file, in UTF-8, that takes the place of the one so named when the block ends.

    Until then it stands beside it; if the block raises, it is removed and the other stays. It has the other's
    permissions. What is no regular file, a pipe for example, is written to as it is. Raises OutputError.
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
            with suppress(OSError):  # it is in place, or was never there
                written.unlink()


@contextmanager
def _named(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(name, error.strerror or str(error)) from None
