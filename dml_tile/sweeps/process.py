"""A process of its own that checks files; where it dies, another one takes its place."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from threading import Lock
from typing import IO, Final, Self, TypeAlias, cast

from dml_tile.checks.one_file import Event, FileEnd, lost
from dml_tile.readers.sandbox.parent import name_of_status
from dml_tile.sweeps.worker import Order, Setup

# -P: a package in the current folder must not pass for one of ours
COMMAND: Final = (sys.executable, "-P", "-m", "dml_tile.sweeps.worker")
"""Starts a process that checks files."""

_SECONDS_TO_END: Final = 0.2

Told: TypeAlias = list[tuple[str, Event]]
"""Files and their events, in order."""


class TimeLost:
    """The seconds that were lost to models that cannot be read, by all processes that share them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = Lock()

    def add(self, seconds: float) -> None:
        with self._lock:
            self.seconds += seconds


class Process:
    """Checks files in a process, which starts with the first order and ends with the block.

    Where it dies, another one checks the files that are left, one by one; one that it dies of is lost. ``command``
    starts a process; ``time_lost`` is shared with others.
    """

    def __init__(self, setup: Setup, command: Sequence[str], time_lost: TimeLost) -> None:
        self._setup = setup
        self._command = command
        self._time_lost = time_lost
        self._running: _Running | None = None
        self._is_over = False
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._running is not None:
            self._running.end()

    def told(self, files: Sequence[str]) -> Iterator[Told]:
        """Yield the events of files, in order, as they come."""
        left, at_once, is_begun = deque(files), len(files), False
        while left and not self._is_over:
            try:
                for told in self._answers(left, at_once):
                    yield told
                    is_begun = not isinstance(told[-1][1], FileEnd)
            except (EOFError, OSError, pickle.UnpicklingError) as error:
                if self._running is None:
                    why = f"no process can be started to check it: {error}"
                else:
                    why = f"the process that checked it ended ({name_of_status(self._status())})"
                if at_once == 1 or is_begun:
                    file, is_begun = left.popleft(), False
                    yield [(file, event) for event in lost(file, why)]
                at_once = 1  # the file that the process dies of is then known

    def stop(self) -> None:
        """End the process at once; no other one takes its place. Another thread may call this."""
        with self._lock:
            self._is_over = True
            if self._running is not None:
                self._running.kill()

    def _answers(self, files: deque[str], count: int) -> Iterator[Told]:
        """Yield the events of the first so many files, each of which is taken away before its last ones.

        Raises EOFError, OSError or UnpicklingError if the process cannot be started, or ends first.
        """
        running = self._started()
        running.send(Order(tuple(islice(files, count)), self._time_lost.seconds))
        left = len(files) - count
        while len(files) > left:
            told: Told = []
            for event in running.message():
                told.append((files[0], event))
                if isinstance(event, FileEnd):
                    files.popleft()
                    self._time_lost.add(event.seconds_lost)
            yield told

    def _started(self) -> _Running:
        if self._running is not None and self._running.has_ended:
            self._status()
        with self._lock:
            if self._is_over:
                raise OSError("the check is over")
            if self._running is not None:
                return self._running
            self._running = _Running(self._command)
        self._running.send(self._setup)
        return self._running

    def _status(self) -> int:
        """The status of the process, which ends if it has not yet."""
        with self._lock:
            running, self._running = cast("_Running", self._running), None
        return running.end()


class _Running:
    """A process that runs, until it is found to have ended."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # the command does not come from a file
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._orders = cast("IO[bytes]", self._process.stdin)
        self._answers = cast("IO[bytes]", self._process.stdout)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def send(self, order: Setup | Order) -> None:
        pickle.dump(order, self._orders, pickle.HIGHEST_PROTOCOL)
        self._orders.flush()

    def message(self) -> list[Event]:
        """The next events. Raises EOFError, OSError or UnpicklingError if the process ends first."""
        events: list[Event] = pickle.load(self._answers)  # noqa: S301  # a process of ours
        return events

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> int:
        """End the process, and return its status."""
        with suppress(OSError):  # the rest of an order that it did not read
            self._orders.close()
        if self._process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_SECONDS_TO_END)
        self._process.kill()
        self._answers.close()
        return self._process.wait()
