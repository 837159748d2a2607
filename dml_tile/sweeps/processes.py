"""Checks files in several processes of this machine.

Each process has a thread here, which hands it batches of files and keeps its answers until their turn comes. Another
process takes the place of one that dies, and checks the files that are left, one by one; one that it dies of is lost.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from queue import Empty, Full, Queue, SimpleQueue
from threading import Event as Flag
from threading import Lock, Thread
from typing import IO, Final, cast

from dml_tile.checks.one_file import Engine, Event, FileCheck, FileEnd, lost
from dml_tile.readers.sandbox.parent import name_of_status
from dml_tile.sweeps.worker import Order, Setup

MIN_FILES: Final = 5000
"""From so many files on several processes take less time than one, by default."""

MAX_FILES_OF_A_BATCH: Final = 32
SECONDS_OF_A_BATCH: Final = 0.1
"""Batches have as many files as take about so long: a few milliseconds are lost with each, and large models should be
spread."""
_BATCHES_AHEAD: Final = 4
"""The batches for each process that may be under way before the first of them is passed on."""
_MESSAGES_AHEAD: Final = 16
"""The messages of a batch that are kept here; the others wait in the process."""
_SECONDS_BETWEEN_LOOKS: Final = 0.2

# -P: a package in the current folder must not pass for one of ours
_COMMAND: Final = (sys.executable, "-P", "-m", "dml_tile.sweeps.worker")

_Told = list[tuple[str, Event]]


def in_processes(jobs: int, command: Sequence[str] = _COMMAND) -> Engine:
    """The engine that checks files in so many processes; ``command`` starts one."""

    def engine(check: FileCheck, files: Iterable[str]) -> Iterator[tuple[str, Event]]:
        state = _State(Setup(check, jobs), command)
        threads = [Thread(target=_serve, args=(state,), daemon=True) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        try:
            yield from _in_order(state, iter(files), jobs * _BATCHES_AHEAD)
        finally:
            state.stop()
            for _ in threads:
                state.batches.put(None)
            for thread in threads:
                thread.join()

    return engine


@dataclass(slots=True)
class _Batch:
    files: list[str]
    told: Queue[_Told | None] = field(default_factory=lambda: Queue(_MESSAGES_AHEAD))
    """Pairs of a file and an event, in order; None once there are no more."""


class _State:
    """What the threads of one check share."""

    def __init__(self, setup: Setup, command: Sequence[str]) -> None:
        self.setup = setup
        self.command = command
        self.batches: SimpleQueue[_Batch | None] = SimpleQueue()
        self.is_over = Flag()
        self.seconds_lost = 0.0
        self._seconds_of_a_file = SECONDS_OF_A_BATCH
        self._running: set[_Worker] = set()
        self._lock = Lock()

    def started(self) -> _Worker:
        """A new process. Raises OSError."""
        with self._lock:
            if self.is_over.is_set():
                raise OSError("the check is over")
            worker = _Worker(self.setup, self.command)
            self._running.add(worker)
            return worker

    def ended(self, worker: _Worker) -> int:
        """The status of a process, which is ended if it is not yet."""
        with self._lock:
            self._running.discard(worker)
        return worker.end()

    def count_lost(self, seconds: float) -> None:
        with self._lock:
            self.seconds_lost += seconds

    @property
    def files_of_a_batch(self) -> int:
        return max(1, min(MAX_FILES_OF_A_BATCH, int(SECONDS_OF_A_BATCH / self._seconds_of_a_file)))

    def note_speed(self, files: int, seconds: float) -> None:
        self._seconds_of_a_file = max(seconds, 1e-6) / files

    def stop(self) -> None:
        """End all processes at once."""
        with self._lock:
            self.is_over.set()
            for worker in self._running:
                worker.kill()


def _in_order(state: _State, files: Iterator[str], ahead: int) -> Iterator[tuple[str, Event]]:
    pending: deque[_Batch] = deque()

    def hand_out() -> None:
        if names := list(islice(files, state.files_of_a_batch)):
            pending.append(_Batch(names))
            state.batches.put(pending[-1])

    for _ in range(ahead):
        hand_out()
    while pending:
        batch = pending.popleft()
        while (told := _next(batch.told)) is not None:
            yield from told
        hand_out()


def _next(told: Queue[_Told | None]) -> _Told | None:
    while True:
        with suppress(Empty):  # on Windows, Ctrl-C does not break into a wait without end
            return told.get(timeout=_SECONDS_BETWEEN_LOOKS)


def _serve(state: _State) -> None:
    """Have one process check batches until there are no more."""
    worker: _Worker | None = None
    try:
        while (batch := state.batches.get()) is not None:
            left, at_once, is_begun = deque(batch.files), len(batch.files), False
            while left and not state.is_over.is_set():
                try:
                    if worker is None or worker.has_ended:
                        worker = state.started()
                    for told in worker.told(left, at_once, state):
                        _put(state, batch, told)
                        is_begun = not isinstance(told[-1][1], FileEnd)
                except (EOFError, OSError, pickle.UnpicklingError) as error:
                    why = f"no process can be started to check it: {error}" if worker is None else _death(state, worker)
                    worker = None
                    if at_once == 1 or is_begun:
                        file, is_begun = left.popleft(), False
                        _put(state, batch, [(file, event) for event in lost(file, why)])
                    at_once = 1  # the file that the process died of is then known
            _put(state, batch, None)
    finally:
        if worker is not None:
            state.ended(worker)


def _death(state: _State, worker: _Worker) -> str:
    return f"the process that checked it ended ({name_of_status(state.ended(worker))})"


def _put(state: _State, batch: _Batch, told: _Told | None) -> None:
    """Add to what is told of a batch, as soon as there is room."""
    while not state.is_over.is_set():
        with suppress(Full):
            batch.told.put(told, timeout=_SECONDS_BETWEEN_LOOKS)
            return


class _Worker:
    """A process that checks files."""

    def __init__(self, setup: Setup, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # the command does not come from a file
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._orders = cast("IO[bytes]", self._process.stdin)
        self._answers = cast("IO[bytes]", self._process.stdout)
        self._send(setup)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def told(self, files: deque[str], count: int, state: _State) -> Iterator[_Told]:
        """Yield the events of the first so many files, each of which is taken away before its last ones.

        Raises EOFError, OSError or UnpicklingError if the process ends first.
        """
        self._send(Order(tuple(islice(files, count)), state.seconds_lost))
        left, started = len(files) - count, time.monotonic()
        while len(files) > left:
            events: list[Event] = pickle.load(self._answers)  # noqa: S301  # a process of ours
            told: _Told = []
            for event in events:
                told.append((files[0], event))
                if isinstance(event, FileEnd):
                    files.popleft()
                    state.count_lost(event.seconds_lost)
            yield told
        state.note_speed(count, time.monotonic() - started)

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> int:
        """End the process, and return its status."""
        with suppress(OSError):  # the rest of an order that it did not read
            self._orders.close()
        if self._process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_SECONDS_BETWEEN_LOOKS)
        self._process.kill()
        self._answers.close()
        return self._process.wait()

    def _send(self, order: Setup | Order) -> None:
        pickle.dump(order, self._orders, pickle.HIGHEST_PROTOCOL)
        self._orders.flush()
