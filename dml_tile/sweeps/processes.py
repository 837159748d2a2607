"""Checks files in several processes of this machine.

Each process has a thread here, which hands it batches of files and keeps its answers until their turn comes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from queue import Empty, Full, Queue, SimpleQueue
from threading import Event as Flag
from threading import Thread
from typing import Final

from dml_tile.checks.one_file import Engine, Event, FileCheck
from dml_tile.sweeps.pipes import pipes_here
from dml_tile.sweeps.process import COMMAND, Process, TimeLost, Told
from dml_tile.sweeps.worker import Setup

MAX_FILES_OF_A_BATCH: Final = 32
SECONDS_OF_A_BATCH: Final = 0.1
"""Batches have as many files as take about so long: a few milliseconds are lost with each, and large models should be
spread."""
_BATCHES_AHEAD: Final = 4
"""The batches for each process that may be under way before the first of them is passed on."""
_MESSAGES_AHEAD: Final = 16
"""The messages of a batch that are kept here; the others wait in the process."""
_SECONDS_BETWEEN_LOOKS: Final = 0.2


def in_processes(jobs: int, command: Sequence[str] = COMMAND) -> Engine:
    """The engine that checks files in so many processes; ``command`` starts one."""

    def engine(check: FileCheck, files: Iterable[str]) -> Iterator[tuple[str, Event]]:
        state, time_lost = _State(), TimeLost()
        processes = [Process(Setup(check, jobs), command, time_lost) for _ in range(jobs)]
        threads = [Thread(target=_serve, args=(state, process), daemon=True) for process in processes]
        for thread in threads:
            thread.start()
        try:
            yield from _in_order(state, iter(files), jobs * _BATCHES_AHEAD)
        finally:
            state.is_over.set()
            for process in processes:
                process.stop()
                state.batches.put(None)
            for thread in threads:
                thread.join()

    return pipes_here(engine)


@dataclass(slots=True)
class _Batch:
    files: list[str]
    told: Queue[Told | None] = field(default_factory=lambda: Queue(_MESSAGES_AHEAD))
    """Pairs of a file and an event, in order; None once there are no more."""


class _State:
    """What the threads of one check share."""

    def __init__(self) -> None:
        self.batches: SimpleQueue[_Batch | None] = SimpleQueue()
        self.is_over = Flag()
        self._seconds_of_a_file = SECONDS_OF_A_BATCH

    @property
    def files_of_a_batch(self) -> int:
        return max(1, min(MAX_FILES_OF_A_BATCH, int(SECONDS_OF_A_BATCH / self._seconds_of_a_file)))

    def note_speed(self, files: int, seconds: float) -> None:
        self._seconds_of_a_file = max(seconds, 1e-6) / files


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


def _next(told: Queue[Told | None]) -> Told | None:
    while True:
        with suppress(Empty):  # on Windows, Ctrl-C does not break into a wait without end
            return told.get(timeout=_SECONDS_BETWEEN_LOOKS)


def _serve(state: _State, process: Process) -> None:
    """Have a process check batches until there are no more."""
    with process:
        while (batch := state.batches.get()) is not None:
            started = time.monotonic()
            for told in process.told(batch.files):
                _put(state, batch, told)
            state.note_speed(len(batch.files), time.monotonic() - started)
            _put(state, batch, None)


def _put(state: _State, batch: _Batch, told: Told | None) -> None:
    """Add to what is told of a batch, as soon as there is room."""
    while not state.is_over.is_set():
        with suppress(Full):
            batch.told.put(told, timeout=_SECONDS_BETWEEN_LOOKS)
            return
