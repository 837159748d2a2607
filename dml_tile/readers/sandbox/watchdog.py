"""Kills child processes that take too long."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from threading import TIMEOUT_MAX, Condition, Thread
from typing import Self


@dataclass(slots=True)
class Deadline:
    """The time, of ``time.monotonic``, at which a process is killed; ``has_passed`` tells that it was."""

    process: subprocess.Popen[bytes]
    at: float
    has_passed: bool = False


class Watchdog:
    """Kills processes at their deadlines, of which there is one at a time.

    Its thread starts with the first deadline and ends with the block. One thread serves all deadlines: to start and
    join one for each file takes longer than many a file's check.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._thread: Thread | None = None
        self._deadline: Deadline | None = None
        self._next_look = inf
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    @contextmanager
    def deadline(self, process: subprocess.Popen[bytes], seconds: float) -> Iterator[Deadline]:
        """Kill the process if the block takes longer."""
        deadline = Deadline(process, time.monotonic() + seconds)
        with self._changed:
            self._deadline = deadline
            if self._thread is None:
                self._thread = Thread(target=self._watch, daemon=True)
                self._thread.start()
            elif deadline.at < self._next_look:
                self._changed.notify()
        try:
            yield deadline
        finally:
            with self._changed:
                self._deadline = None

    def _watch(self) -> None:
        with self._changed:
            while not self._is_over:
                now = time.monotonic()
                if self._deadline and self._deadline.at <= now:
                    self._deadline.has_passed = True
                    self._deadline.process.kill()
                    self._deadline = None
                self._next_look = self._deadline.at if self._deadline else inf
                self._changed.wait(min(self._next_look - now, TIMEOUT_MAX))
