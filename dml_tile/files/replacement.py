"""Writes a file whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal


@contextmanager
def replacement(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file, written beside the one at ``path``, which it replaces when the block ends.

    It takes over the permissions of that file. If the block raises, the old file stays and the new one is removed; only
    a process that is killed leaves it behind. Links are followed. Anything but a regular file, such as a pipe, is
    written to directly. Raises OSError.
    """
    old = path.stat().st_mode if path.exists() else None
    if old is not None and not stat.S_ISREG(old):
        with _opened(path, "wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    beside = path.with_name(f".dml-tile-{os.urandom(8).hex()}")
    try:
        with _opened(beside, "xb") as file:
            if old is not None:
                beside.chmod(stat.S_IMODE(old))
            yield file
        beside.replace(path)
    finally:
        with suppress(OSError):  # it has been renamed
            beside.unlink()


@contextmanager
def _opened(path: Path, mode: Literal["wb", "xb"]) -> Iterator[BinaryIO]:
    """Yield an opened file, and close it."""
    file = path.open(mode)
    try:
        yield file
        file.close()
    finally:
        with suppress(OSError):  # flushing may fail again; the first error counts
            file.close()
