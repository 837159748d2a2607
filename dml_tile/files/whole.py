"""Reads files that other programs may change at any time, and writes files whole or not at all."""

# os takes folders that are open; pathlib does not.
# ruff: noqa: PTH103, PTH118

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, BinaryIO, Final, Literal

from dml_tile.files.links import unlinked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_SECONDS_WITHOUT_WRITER: Final = 60
_PART: Final = 2**20
_NONBLOCK: Final = getattr(os, "O_NONBLOCK", 0)
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_BINARY: Final = getattr(os, "O_BINARY", 0)
_OPENS_FOLDERS: Final = _NOFOLLOW and {os.open, os.mkdir, os.stat, os.rename, os.unlink, os.chmod} <= os.supports_dir_fd
_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW


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
def replacement(path: Path, *, makes_folders: bool = False) -> Iterator[BinaryIO]:
    """Yield a new file, written beside the one at ``path``, which it replaces when the block ends.

    It takes over that file's permissions. If the block raises, the old file stays and the new file is removed; only a
    killed process leaves it behind. Links that lie in a repository are refused, others followed. Anything but a regular
    file, such as a pipe, is written to directly. ``makes_folders`` makes the folders that are missing. Raises OSError.
    """
    folder, name = os.path.split(unlinked(str(path)))
    if path.exists() and not path.is_file():
        with _opened(str(path), "wb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it changed while it was opened")
            yield file
        return
    with _opened_folder(folder, makes_folders=makes_folders) as place:
        within = folder if place is None else ""
        new, beside = (os.path.join(within, each) for each in (name, f".dml-tile-{os.urandom(8).hex()}"))
        old = _mode(new, place)
        try:
            with _opened(beside, "xb", 0o600 if stat.S_ISREG(old) else 0o666, place) as file:
                if stat.S_ISREG(old):
                    os.chmod(beside, old & 0o777, dir_fd=place)
                yield file
            os.replace(beside, new, src_dir_fd=place, dst_dir_fd=place)
        finally:
            with suppress(OSError):  # it has been renamed
                os.unlink(beside, dir_fd=place)


@contextmanager
def _opened_folder(folder: str, *, makes_folders: bool) -> Iterator[int | None]:
    """Yield a folder, opened part by part from the current one or the root, by no link; None if it cannot be opened."""
    if not _OPENS_FOLDERS:
        if makes_folders:
            os.makedirs(folder, exist_ok=True)
        yield None
        return
    path = PurePath(folder)
    with suppress(OSError, ValueError):  # it is elsewhere, or the current folder was removed
        path = path.relative_to(os.path.realpath(os.curdir))
    place = os.open(path.anchor or os.curdir, _FOLDER)
    try:
        for part in path.parts[bool(path.anchor) :]:
            if makes_folders and not _mode(part, place):
                os.mkdir(part, dir_fd=place)
            below = os.open(part, _FOLDER, dir_fd=place)
            os.close(place)
            place = below
        yield place
    finally:
        os.close(place)


def _mode(name: str, folder: int | None) -> int:
    """Return the mode of the entry that a folder has by a name, and 0 if there is none."""
    with suppress(FileNotFoundError):
        return os.lstat(name, dir_fd=folder).st_mode
    return 0


@contextmanager
def _opened(
    path: str, mode: Literal["wb", "xb"], permissions: int = 0o666, folder: int | None = None
) -> Iterator[BinaryIO]:
    """Yield an opened file, and close it. A new one (``xb``) has the permissions that the umask leaves."""
    no_flags = 0 if mode == "xb" else os.O_CREAT | os.O_TRUNC

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags & ~no_flags, permissions, dir_fd=folder)

    file = open(path, mode, opener=opener)  # noqa: SIM115  # see below
    try:
        yield file
        file.close()
    finally:
        with suppress(OSError):  # flushing may fail again; the first error counts
            file.close()
