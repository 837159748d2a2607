"""Checks many files: one after the other in this process, or in chunks by the workers of an executor."""

from __future__ import annotations

import os
import pickle
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from itertools import groupby, islice
from stat import S_ISREG
from threading import Timer, local
from typing import Final, TypeAlias

from dml_tile.checks.file_check import Event, FileCheck, SourceSummary, checked_here, file_check, portable
from dml_tile.checks.files import files_named
from dml_tile.checks.result import Result
from dml_tile.directml.targets import TargetLike
from dml_tile.errors import Problem
from dml_tile.files.urls import Url, source_named
from dml_tile.findings import Against
from dml_tile.geometry.layout import MAX_ADDRESSES_OF_A_RUN, address_budget
from dml_tile.readers.sources import Sources, is_model_file

FILES_OF_A_CHUNK: Final = 8
MAX_BYTES_OF_A_SMALL_FILE: Final = 2**16
"""Larger files take long, and are sent alone."""
MAX_BYTES_OF_DESCRIPTORS: Final = 2**21
"""A larger file of descriptors is checked in this process, since a worker holds all results of a file."""
MAX_CHUNKS_SENT: Final = 256
"""The chunks that an executor has at a time; nobody can ask it how many workers it has."""
SECONDS_IDLE: Final = 5
"""Seconds that a worker waits for the next chunk before it ends the process that reads its models."""
_SECONDS_BETWEEN_LOOKS: Final = 0.2

FileEvents: TypeAlias = Iterator[tuple[str, Event]]
"""Events in their order, each with its file."""


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """The results of a file, tile by tile, one for each target; its ``problems`` are the parts that cannot be read."""

    source: str
    results: tuple[Result, ...] = ()
    problems: tuple[Problem, ...] = ()


def sweep(
    paths: Iterable[str | os.PathLike[str]],
    targets: Sequence[TargetLike] | None = None,
    *,
    executor: Executor | None = None,
    via: str | None = None,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    against: Against = "both",
) -> Iterator[CheckedFile]:
    """Yield the results of files in their order, as they come.

    ``paths`` are files, folders, patterns, and URLs: strings with ``://``, which fsspec opens (extra ``remote``). Each
    file comes once. ``targets`` None means the current target. The workers of an ``executor``, such as a
    ProcessPoolExecutor or ``Client.get_executor(pure=False)`` of Dask, check the files: they must have dml_tile, and
    reach the files by the same names. A file whose worker dies is checked again, and has a problem if it dies again.
    The other parameters are those of ``check_model``.

    Raises ValueError for an unknown target, back end or ``against``; BrokenExecutor once the executor takes no more
    files, as a ProcessPoolExecutor one of whose processes died.
    """
    chosen = [None] if targets is None else targets
    check = file_check(chosen, against, via=via, dims=dims, input_shapes=input_shapes)
    return _checked_files([source_named(path) for path in paths], check, Workers(executor) if executor else None)


def _checked_files(paths: Sequence[str], check: FileCheck, workers: Workers | None) -> Iterator[CheckedFile]:
    unread: list[CheckedFile] = []
    files = files_named(paths, lambda name, problem: unread.append(CheckedFile(name, problems=(problem,))))
    yield from unread
    results: list[Result] = []
    problems: list[Problem] = []
    for file, event in workers.events(check, files) if workers else checked_here(check, files):
        match event:
            case Problem():
                problems.append(event)
            case SourceSummary():
                yield CheckedFile(file, tuple(results), tuple(problems))
                results, problems = [], []
            case _:
                results += event


class Workers:
    """The workers of an executor, to which files are sent in chunks, so many ahead of the one that is waited for.

    ``shared_by`` so many workers share the memory that reading models may take.
    """

    def __init__(self, executor: Executor, chunks_sent: int = MAX_CHUNKS_SENT, shared_by: int = 1) -> None:
        self.executor = executor
        self.shared_by = shared_by
        self._chunks_sent = chunks_sent
        self._sent: deque[tuple[list[str], Future[bytes] | None]] = deque()

    def events(self, check: FileCheck, files: Iterable[str]) -> FileEvents:
        """Yield the events of files, in their order, each with its file; a file that ends its worker is lost alone.

        What no worker can read is checked here, in its turn. Raises BrokenExecutor if the executor takes no more files.
        """
        setup = pickle.dumps((check, self.shared_by, os.urandom(8)))
        chunks = _chunks(files)
        try:
            while True:
                for chunk, is_here in islice(chunks, self._chunks_sent - len(self._sent)):
                    self._sent.append((chunk, None if is_here else self._send(setup, chunk)))
                if not self._sent:
                    return
                chunk, future = self._sent[0]
                yield from self._received(setup, chunk, future) if future else checked_here(check, chunk)
                self._sent.popleft()
        finally:
            if self._sent:
                self.stop()

    def submit(self, setup: bytes, files: list[str]) -> Future[bytes]:
        """Have a worker check files."""
        return self.executor.submit(check_chunk, setup, files)

    def stop(self) -> None:
        """Cancel what was sent: nobody waits for it any more."""
        for _, future in self._sent:
            if future:
                future.cancel()

    def cause(self, error: Exception) -> str:
        """Return why a file is lost whose worker failed. Raises BrokenExecutor if the others are lost too."""
        if isinstance(error, (BrokenExecutor, CancelledError)):
            raise BrokenExecutor(f"the executor gave up: {error}") from error
        if failures := getattr(error, "allowed_failures", 0):  # of Dask's KilledWorker
            return f"the workers that checked it died ({failures + 1} of them)"
        return f"its worker failed: {type(error).__name__}: {error}"

    def _send(self, setup: bytes, files: list[str]) -> Future[bytes]:
        try:
            return self.submit(setup, files)
        except Exception as error:
            raise BrokenExecutor(f"{files[0]} and the files after it cannot be checked: {error}") from error

    def _received(self, setup: bytes, files: list[str], future: Future[bytes]) -> FileEvents:
        try:
            yield from _result(future)
        except Exception:
            wait([sent for _, sent in self._sent if sent])  # a worker that fails from now on does so of one file
            for file in files:
                yield from self._received_alone(file, self._send(setup, [file]))

    def _received_alone(self, file: str, future: Future[bytes]) -> FileEvents:
        try:
            yield from _result(future)
        except Exception as error:
            yield file, Problem("", self.cause(error))
            yield file, SourceSummary(file, is_model_file(file), is_whole=False)


def _result(future: Future[bytes]) -> list[tuple[str, Event]]:
    while not wait([future], _SECONDS_BETWEEN_LOOKS).done:  # on Windows, Ctrl-C does not break into a wait without end
        pass
    events: list[tuple[str, Event]] = pickle.loads(zlib.decompress(future.result()))  # noqa: S301  # a worker's
    return events


def _chunks(files: Iterable[str]) -> Iterator[tuple[list[str], bool]]:
    """Yield a few files at a time, and whether they are to be checked in this process."""
    for (is_here, count), some in groupby(files, _way):
        while chunk := list(islice(some, count)):
            yield chunk, is_here


def _way(file: str) -> tuple[bool, int]:
    """Return whether no other process can read a file, or should, and how many like it make a chunk."""
    if file == "-" or file.startswith(("/dev/", "/proc/")):
        return True, 1
    if isinstance(file, Url):
        return False, FILES_OF_A_CHUNK
    try:
        status = os.stat(file)  # noqa: PTH116  # a tenth of Path's time
    except (OSError, ValueError):
        return False, FILES_OF_A_CHUNK
    is_large = status.st_size > MAX_BYTES_OF_DESCRIPTORS and not is_model_file(file)
    is_small = status.st_size <= MAX_BYTES_OF_A_SMALL_FILE
    return is_large or not S_ISREG(status.st_mode), FILES_OF_A_CHUNK if is_small else 1


class _Thread(local):
    """What a thread of a worker keeps from one chunk to the next: the process that reads models starts slowly."""

    setup = b""
    check: FileCheck
    sources: Sources
    idle: Timer


_THREAD: Final = _Thread()


def check_chunk(setup: bytes, files: list[str]) -> bytes:
    """Return the events of files, packed: they may wait long for their turn. This runs in a worker.

    ``setup`` is what ``Workers`` has pickled.
    """
    if _THREAD.setup == setup:
        _THREAD.idle.cancel()
        _THREAD.idle.join()
    else:
        _THREAD.check, shared_by, _ = pickle.loads(setup)  # noqa: S301  # it was made in this module
        _THREAD.sources = Sources(_THREAD.check.known_shapes, shared_by)
        _THREAD.setup = setup
    check, sources = _THREAD.check, _THREAD.sources
    try:
        with address_budget(MAX_ADDRESSES_OF_A_RUN):
            events = [(file, portable(event)) for file in files for event in check.events(file, sources)]
    finally:
        _THREAD.idle = Timer(SECONDS_IDLE, sources.close)
        _THREAD.idle.daemon = True
        _THREAD.idle.start()
    return zlib.compress(pickle.dumps(events), level=1)
