"""Writes a file whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

_DESCRIPTORS: Final = Path("/proc/self/fd")


@contextmanager
def replacement(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file that replaces the one at ``path`` when the block ends.

    It takes over the permissions of that file; if the block raises, the old file stays. Where the system has files
    without a name, it has none before it is whole, so that nothing is left even if the process is killed; elsewhere it
    is written beside the old one, and removed if the block raises. Links are followed. Anything but a regular file,
    such as a pipe, is written to directly. Raises OSError.
    """
    old = path.stat().st_mode if path.exists() else None
    if old is not None and not stat.S_ISREG(old):
        written = path.open("wb")
        try:
            yield written
            written.close()
        finally:
            with suppress(OSError):  # closing may fail again; the first error counts
                written.close()
        return
    path = Path(os.path.realpath(path))
    beside = path.with_name(f".dml-tile-{os.urandom(8).hex()}")
    file = _unnamed(path.parent)
    has_name = file is None
    if file is None:
        file = beside.open("xb")
    try:
        if old is not None:
            if has_name:
                beside.chmod(stat.S_IMODE(old))
            else:
                os.fchmod(file.fileno(), stat.S_IMODE(old))
        yield file
        file.flush()
        if not has_name:
            # a directory's descriptor is what makes Python follow the link that stands for the file
            os.link(_DESCRIPTORS / str(file.fileno()), beside, src_dir_fd=file.fileno())
            has_name = True
        file.close()
        beside.replace(path)
    finally:
        with suppress(OSError):  # flushing may fail again; the first error counts
            file.close()
        if has_name:
            with suppress(OSError):  # it has been renamed
                beside.unlink()


def _unnamed(folder: Path) -> BinaryIO | None:
    """A new file in a folder without a name; None where the system or the file system has none."""
    if not hasattr(os, "O_TMPFILE") or not _DESCRIPTORS.is_dir():
        return None
    try:
        return os.fdopen(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666), "wb")
    except OSError:  # what is wrong with the folder itself, making a file with a name tells
        return None
