"""Reads bytes of a file that another program may change or remove at any time."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def read_into(path: Path, place: NDArray[np.uint8], offset: int = 0) -> None:
    """Fill ``place`` with the file's bytes from ``offset`` on.

    Raises OSError, and ValueError if the file has become shorter than that, or anything but a regular file.
    """
    with open(path, "rb", opener=_without_waiting) as file:  # Path.open takes no opener
        file.seek(offset)
        read = file.readinto(place.data)
    if read < place.nbytes:
        raise ValueError(f"it changed while it was read: {read} of {place.nbytes} bytes are left")


def _without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting for the other end, should it have become a pipe, and without following a link."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
