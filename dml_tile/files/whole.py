"""Reads files that other programs may change at any time, and writes files whole or not at all."""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_SECONDS_WITHOUT_WRITER: Final = 60
_PART: Final = 2**20
_NONBLOCK: Final = getattr(os, "O_NONBLOCK", 0)
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_BINARY: Final = getattr(os, "O_BINARY", 0)


def read_into(path: Path, place: NDArray[np.uint8], offset: int = 0) -> None:
    """Fill ``place`` with the file's bytes from ``offset`` on; raise OSError or ValueError if it has changed."""
    with open_regular(path) as file:  # it may have become a pipe or a link
        file.seek(offset)
        read = file.readinto(place.data)
    if read < place.nbytes:
        raise ValueError(f"it changed while it was read: {read} of {place.nbytes} bytes are left")


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file. Raises OSError for anything else, such as a link or a pipe."""
    if path.is_symlink():  # where there is no O_NOFOLLOW
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    file = open(path, "rb", opener=lambda name, mode: os.open(name, mode | _NONBLOCK | _NOFOLLOW))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    return file


def read_at_most(file: BinaryIO, size: int) -> bytes:
    """Return ``size`` bytes of a file, or all, read in parts: Python reserves memory for all bytes of a read."""
    parts: list[bytes] = []
    while size > 0 and (part := file.read(min(size, _PART))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_whole(file: BinaryIO, limit: int) -> bytes:
    """Return all bytes of a file. Raises OSError for more than ``limit``."""
    text = read_at_most(file, limit + 1)
    if len(text) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes")
    return text


def open_without_waiting(path: Path) -> BinaryIO:
    """Open a file, or a pipe as soon as there is something to read; raise TimeoutError if that takes too long."""
    file = os.fdopen(os.open(path, os.O_RDONLY | _BINARY | _NONBLOCK), "rb")
    if _NONBLOCK and stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):  # else select takes sockets only
        ready, _, _ = select.select([file], [], [], MAX_SECONDS_WITHOUT_WRITER)
        if not ready:
            file.close()
            raise TimeoutError(errno.ETIMEDOUT, f"is a pipe that nobody wrote to for {MAX_SECONDS_WITHOUT_WRITER} s")
    if _NONBLOCK:
        os.set_blocking(file.fileno(), True)
    return file


@contextmanager
def replacement(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file, written beside the one at ``path``, which it replaces when the block ends.

    It takes over that file's permissions. If the block raises, the old file stays and the new file is removed; only a
    killed process leaves it behind. Links are followed. Anything but a regular file, such as a pipe, is written to
    directly. Raises OSError.
    """
    old = path.stat().st_mode if path.exists() else None
    if old is not None and not stat.S_ISREG(old):
        with _opened(path, "wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    beside = path.with_name(f".dml-tile-{os.urandom(8).hex()}")
    try:
        with _opened(beside, "xb", 0o666 if old is None else 0o600) as file:
            if old is not None:
                beside.chmod(old & 0o777)
            yield file
        beside.replace(path)
    finally:
        with suppress(OSError):  # it has been renamed
            beside.unlink()


@contextmanager
def _opened(path: Path, mode: Literal["wb", "xb"], permissions: int = 0o666) -> Iterator[BinaryIO]:
    """Yield an opened file, and close it. A new file has the permissions that the umask leaves."""
    file = open(path, mode, opener=lambda name, flags: os.open(name, flags, permissions))  # noqa: SIM115  # see below
    try:
        yield file
        file.close()
    finally:
        with suppress(OSError):  # flushing may fail again; the first error counts
            file.close()
