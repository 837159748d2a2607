"""Writes a file whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacement(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file that replaces the one at ``path`` when the block ends.

    It is written beside that file and takes over its permissions; if the block raises, it is removed and the old file
    stays. Links are followed. Anything but a regular file, such as a pipe, is written to directly. Raises OSError.
    """
    old = path.stat().st_mode if path.exists() else None
    is_replaced = old is None or stat.S_ISREG(old)
    if is_replaced:
        path = Path(os.path.realpath(path))
    written = path.with_name(f".dml-tile-{secrets.token_hex(8)}") if is_replaced else path
    file = written.open("xb" if is_replaced else "wb")
    try:
        if is_replaced and old is not None:
            written.chmod(stat.S_IMODE(old))
        yield file
        file.close()
        if is_replaced:
            written.replace(path)
    finally:
        with suppress(OSError):  # flushing may fail again; the first error counts
            file.close()
        if is_replaced:
            with suppress(OSError):  # it has been renamed
                written.unlink()
