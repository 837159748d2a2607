"""Lets a command that a signal or its time ends leave nothing behind."""

from __future__ import annotations

import os
import signal
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from types import FrameType
from typing import Final, NoReturn

_ENDING: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_ALARM: Final = next(getattr(signal, name) for name in ("SIGALRM", "SIGBREAK", "SIGINT") if hasattr(signal, name))


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


class OutOfTimeError(BaseException):
    """The block of ``at_most`` took too long."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError in the block, which the main thread runs, once it has taken so many seconds.

    Where there is no alarm, as on Windows, a block that waits for another program is not interrupted.
    """

    def ring(number: int, frame: FrameType | None) -> NoReturn:
        raise OutOfTimeError

    before = signal.signal(_ALARM, ring)
    timer = None
    try:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, seconds)
        else:
            timer = Timer(seconds, interrupt_main, [_ALARM])
            timer.daemon = True
            timer.start()
        yield
    finally:
        if timer is None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        else:
            timer.cancel()
        signal.signal(_ALARM, before)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    for ending in _ENDING:
        signal.signal(ending, signal.SIG_IGN)  # nothing is to break into the clearing up
    raise _EndedError(number)
