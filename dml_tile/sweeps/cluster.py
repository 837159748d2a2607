"""Checks files on a Dask cluster. Its workers must have dml_tile, and reach the files by the same names."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final
from uuid import uuid4

from distributed import Client, Future, KilledWorker, Worker, WorkerPlugin, get_worker

from dml_tile.checks.one_file import Engine, Event, FileCheck, lost
from dml_tile.readers.sources import Sources
from dml_tile.sweeps.portable import portable

FILES_OF_A_BATCH: Final = 16
_BATCHES_AHEAD: Final = 4
"""The batches for each thread of the cluster that may be under way before the first of them is passed on."""


def on_cluster(client: Client) -> Engine:
    """The engine that checks files on a client's cluster.

    A batch whose worker dies is checked by another one. Where several die of it, its files are checked one by one, and
    the one that they die of is lost.
    """

    def engine(check: FileCheck, files: Iterable[str]) -> Iterator[tuple[str, Event]]:
        sweep = _Sweep(client)
        client.register_plugin(_Readers(check), name=sweep.readers)
        try:
            yield from sweep.told(iter(files))
        finally:
            sweep.stop()
            client.unregister_worker_plugin(sweep.readers)

    return engine


class _Readers(WorkerPlugin):  # type: ignore[misc]  # distributed has no types
    """Keeps what reads models on a worker, for each thread that needs one."""

    def __init__(self, check: FileCheck) -> None:
        self.check = check
        self._all: list[Sources] = []
        self._idle: deque[Sources] = deque()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Readers, (self.check,)

    def teardown(self, worker: Worker) -> None:
        for sources in self._all:
            sources.__exit__()

    def events(self, files: Sequence[str]) -> list[list[Event]]:
        """The events of each file."""
        try:
            sources = self._idle.pop()
        except IndexError:
            sources = Sources(self.check.known_shapes)
            self._all.append(sources)
        try:
            return [[portable(event) for event in self.check.events(file, sources)] for file in files]
        finally:
            self._idle.append(sources)


def _events_of(readers: str, files: Sequence[str]) -> list[list[Event]]:
    """Check files on a worker, by the readers that it keeps."""
    events: list[list[Event]] = get_worker().plugins[readers].events(files)
    return events


class _Sweep:
    def __init__(self, client: Client) -> None:
        self.readers = f"dml_tile-{uuid4()}"
        self._client = client
        self._pending: deque[tuple[list[str], Future]] = deque()

    def told(self, files: Iterator[str]) -> Iterator[tuple[str, Event]]:
        """Yield the events of the files, in order."""
        ahead = max(1, sum(self._client.nthreads().values())) * _BATCHES_AHEAD
        for _ in range(ahead):
            self._hand_out(files)
        while self._pending:
            batch, future = self._pending.popleft()
            for file, events in zip(batch, self._result(batch, future), strict=True):
                for event in events:
                    yield file, event
            self._hand_out(files)

    def stop(self) -> None:
        """Cancel what nobody waits for any more."""
        self._client.cancel([future for _, future in self._pending])

    def _hand_out(self, files: Iterator[str]) -> None:
        if batch := list(islice(files, FILES_OF_A_BATCH)):
            self._pending.append((batch, self._submit(batch)))

    def _submit(self, batch: list[str]) -> Future:
        return self._client.submit(_events_of, self.readers, batch, pure=False)

    def _result(self, batch: list[str], future: Future) -> list[list[Event]]:
        try:
            events: list[list[Event]] = future.result()
        except KilledWorker as error:
            if len(batch) == 1:
                return [
                    list(lost(batch[0], f"the workers that checked it died ({error.allowed_failures + 1} of them)"))
                ]
            return [events for file in batch for events in self._result([file], self._submit([file]))]
        return events
