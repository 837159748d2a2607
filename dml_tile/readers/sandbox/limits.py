"""The bounds of a child process that runs code which is not trusted: its streams, its memory and its time."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from dml_tile.readers.sandbox.protocol import OUT_OF_MEMORY

try:
    import resource
except ImportError:  # on Windows, where the parent alone bounds time, and nothing bounds memory
    resource = None  # type: ignore[assignment]

_PR_SET_PDEATHSIG: Final = 1
_GRACE: Final = 10
"""Seconds past a bound after which the child ends by itself, should its parent have died."""


def end_with_parent() -> None:
    """Have Linux kill this process when its parent ends, however that ends."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Take over standard input and output; whatever libraries print is discarded."""
    streams = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    return streams


@contextmanager
def bounds(seconds: float, memory: int) -> Iterator[None]:
    """Bound memory, in bytes, and, in case the parent dies, time; suppress core files."""
    if resource is not None:
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_DATA, memory)
    if hasattr(signal, "alarm"):
        signal.alarm(int(seconds) + _GRACE)
    try:
        yield
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    if hasattr(signal, "alarm"):
        signal.alarm(0)


def _limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
