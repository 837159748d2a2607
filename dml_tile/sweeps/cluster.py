"""Checks files on a Dask cluster. Its workers must have dml_tile, and reach the files by the same names.

Each thread of a worker has a process of its own that checks files, so that a file that ends it does not end the worker:
Dask has the task of a worker that dies done by the others, until none is left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final
from uuid import uuid4

from distributed import Client, Future, KilledWorker, Worker, WorkerPlugin, get_worker

from dml_tile.checks.one_file import Engine, Event, FileCheck, lost
from dml_tile.sweeps.pipes import pipes_here
from dml_tile.sweeps.process import COMMAND, Process, TimeLost, Told
from dml_tile.sweeps.worker import Setup

FILES_OF_A_BATCH: Final = 16
_BATCHES_AHEAD: Final = 4
"""The batches for each thread of the cluster that may be under way before the first of them is passed on."""


def on_cluster(client: Client, command: Sequence[str] = COMMAND) -> Engine:
    """The engine that checks files on a client's cluster; ``command`` starts a process that checks them.

    A batch whose worker dies is checked by another one. Where several die of it, its files are checked one by one, and
    the one that they die of is lost.
    """

    def engine(check: FileCheck, files: Iterable[str]) -> Iterator[tuple[str, Event]]:
        sweep = _Sweep(client)
        client.register_plugin(_Processes(check, command), name=sweep.processes)
        try:
            yield from sweep.told(iter(files))
        finally:
            sweep.stop()
            client.unregister_worker_plugin(sweep.processes)

    return pipes_here(engine)


class _Processes(WorkerPlugin):  # type: ignore[misc]  # distributed has no types
    """Keeps the processes of a worker that check files, one for each thread that needs one."""

    def __init__(self, check: FileCheck, command: Sequence[str]) -> None:
        self.check = check
        self.command = command
        self._all: list[Process] = []
        self._idle: deque[Process] = deque()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Processes, (self.check, self.command)

    def teardown(self, worker: Worker) -> None:
        for process in self._all:
            process.stop()
            process.__exit__()

    def told(self, files: Sequence[str]) -> Told:
        """The files with their events."""
        try:
            process = self._idle.pop()
        except IndexError:
            process = Process(Setup(self.check, jobs=1), self.command, TimeLost())
            self._all.append(process)
        try:
            return [*chain.from_iterable(process.told(files))]
        finally:
            self._idle.append(process)


def _told_of(processes: str, files: Sequence[str]) -> Told:
    """Check files on a worker, by the processes that it keeps."""
    told: Told = get_worker().plugins[processes].told(files)
    return told


class _Sweep:
    def __init__(self, client: Client) -> None:
        self.processes = f"dml_tile-{uuid4()}"
        self._client = client
        self._pending: deque[tuple[list[str], Future]] = deque()

    def told(self, files: Iterator[str]) -> Iterator[tuple[str, Event]]:
        """Yield the events of the files, in order."""
        ahead = max(1, sum(self._client.nthreads().values())) * _BATCHES_AHEAD
        for _ in range(ahead):
            self._hand_out(files)
        while self._pending:
            yield from self._result(*self._pending.popleft())
            self._hand_out(files)

    def stop(self) -> None:
        """Cancel what nobody waits for any more."""
        self._client.cancel([future for _, future in self._pending])

    def _hand_out(self, files: Iterator[str]) -> None:
        if batch := list(islice(files, FILES_OF_A_BATCH)):
            self._pending.append((batch, self._submit(batch)))

    def _submit(self, batch: list[str]) -> Future:
        return self._client.submit(_told_of, self.processes, batch, pure=False)

    def _result(self, batch: list[str], future: Future) -> Told:
        try:
            told: Told = future.result()
        except KilledWorker as error:
            if len(batch) == 1:
                why = f"the workers that checked it died ({error.allowed_failures + 1} of them)"
                return [(batch[0], event) for event in lost(batch[0], why)]
            return [pair for file in batch for pair in self._result([file], self._submit([file]))]
        return told
