"""Lets a command that a signal ends leave nothing behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

_ENDING: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _EndedError(BaseException):
    """A signal asks the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def ending_by_exceptions() -> Iterator[None]:
    """Unwind the block on SIGTERM and SIGHUP, so that it removes its files and children, then end by that signal.

    A signal that the caller ignores, as nohup does, stays ignored.
    """
    before = {number: signal.getsignal(number) for number in _ENDING}
    for number, handler in before.items():
        if handler == signal.SIG_DFL:
            signal.signal(number, _end)
    try:
        yield
    except _EndedError as error:
        signal.signal(error.number, signal.SIG_DFL)
        os.kill(os.getpid(), error.number)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    for ending in _ENDING:
        signal.signal(ending, signal.SIG_IGN)  # nothing is to break into the clearing up
    raise _EndedError(number)
