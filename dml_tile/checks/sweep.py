"""Checks many files: in turn in this process, or in chunks by the workers of an executor."""

from __future__ import annotations

import os
import pickle
import signal
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby, islice
from multiprocessing import active_children, get_context, parent_process
from stat import S_ISREG
from threading import Thread, local
from typing import TYPE_CHECKING, Final, TypeAlias

from dml_tile.checks.files import files_named
from dml_tile.checks.questions import Event, Questions, checked_here, questions_of
from dml_tile.checks.result import CheckedFile
from dml_tile.directml.targets import TargetLike
from dml_tile.files.paths import STANDARD_INPUT
from dml_tile.findings import Against, Finding, unreadable
from dml_tile.readers.sources import OpenFile, Sources, StoredFile, is_model_file

if TYPE_CHECKING:  # most checks have none
    from dml_tile.checks.baseline import Baseline

FILES_OF_A_CHUNK: Final = 8
MAX_BYTES_OF_A_SMALL_FILE: Final = 2**16
"""Larger files take long, and are sent alone."""
MAX_BYTES_OF_DESCRIPTORS: Final = 2**21
"""A larger file of descriptors is checked in this process, since a worker holds all results of a file."""
MAX_CHUNKS_SENT: Final = 256
"""The chunks that an executor has at a time; its number of workers cannot be asked."""
CHUNKS_OF_A_PROCESS: Final = 4
_SECONDS_BETWEEN_LOOKS: Final = 0.2

FileEvents: TypeAlias = Iterator[tuple[str, Event]]
"""Events in their order, each with its file."""

_Send: TypeAlias = Callable[[list[str]], Future[bytes]]
_Sent: TypeAlias = tuple[list[str], Future[bytes] | None]
"""A chunk of files, and its future result; None if this process checks the files."""


def sweep(
    paths: Iterable[str | os.PathLike[str] | OpenFile],
    targets: Sequence[TargetLike] | None = None,
    *,
    executor: Executor | None = None,
    via: str | None = None,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int | None]] | None = None,
    against: Against = "both",
) -> Iterator[CheckedFile]:
    """Yield the results of files in their order, as they come.

    ``paths`` are files, folders and patterns, each file of which comes once; then come objects that have a ``path`` and
    ``open()``, such as fsspec's ``open_files`` returns, of at most 2 GiB each. ``targets`` None means the current
    target. The workers of an ``executor``, such as a ProcessPoolExecutor or ``Client.get_executor(pure=False)`` of
    Dask, check the files: they must have dml_tile, and reach the files by the same names. A file whose worker dies is
    checked again, and has a problem if it dies again. The other parameters are those of ``check_model``.

    Raises ValueError for an unknown target, back end or ``against``; BrokenExecutor once the executor takes no more
    files, as a ProcessPoolExecutor after the death of a process.
    """
    chosen = [None] if targets is None else targets
    check = questions_of(chosen, against, via=via, dims=dims, input_shapes=input_shapes)
    names: list[str] = []
    stored: list[StoredFile] = []
    for path in paths:
        if isinstance(path, str | os.PathLike):
            names.append(os.fspath(path))
        else:
            stored.append(StoredFile(path))
    return _checked_files(names, stored, check, Workers(executor) if executor else None)


def _checked_files(
    names: Sequence[str], stored: Sequence[StoredFile], check: Questions, workers: Workers | None
) -> Iterator[CheckedFile]:
    unread: list[CheckedFile] = []

    def complain(name: str, problem: Finding) -> None:
        unread.append(CheckedFile(name, findings=(replace(problem, source=name),), is_whole=False))

    named, *_ = files_named(names, complain, via=check.via)
    files = [*named, *stored]
    yield from unread
    events = workers.events(check, files) if workers else checked_here(check, files)
    of_file: list[Event] = []
    for _, event in events:
        of_file.append(event)
        if isinstance(event, CheckedFile):
            event.results = tuple(chain.from_iterable(each for each in of_file if isinstance(each, tuple)))
            event.findings = tuple(each for each in of_file if isinstance(each, Finding))
            yield event
            of_file.clear()


@dataclass
class Workers:
    """The workers of an executor, which get files in chunks, ``chunks_sent`` ahead of the awaited chunk.

    ``new`` makes another executor if one breaks; without ``new``, the end of the caller's executor is the sweep's.
    ``shared_by`` workers share the memory that reading models may take.
    """

    executor: Executor
    new: Callable[[], Executor] | None = None
    chunks_sent: int = MAX_CHUNKS_SENT
    shared_by: int = 1

    def events(self, check: Questions, files: Iterable[str]) -> FileEvents:
        """Yield the events of files, in order, each with its file; a file that ends its worker is lost alone.

        Files that no worker can read are checked here. Raises BrokenExecutor if the executor takes no more files.
        """
        setup = pickle.dumps((check._replace(baseline=None), self.shared_by, os.urandom(8)))
        send = partial(self._send, setup, check.baseline)
        chunks = _chunks(files)
        sent: deque[_Sent] = deque()
        try:
            while True:
                for chunk, is_here in islice(chunks, self.chunks_sent - len(sent)):
                    sent.append((chunk, None if is_here else send(chunk)))
                if not sent:
                    return
                chunk, future = sent[0]
                yield from self._received(send, chunk, future, sent) if future else checked_here(check, chunk)
                sent.popleft()
        finally:
            for _, future in sent:
                if future and not self.new:  # Python 3.11 cannot end a broken pool with cancelled futures
                    future.cancel()

    def _send(self, setup: bytes, baseline: Baseline | None, files: list[str]) -> Future[bytes]:
        of_files = baseline and baseline.of(files)
        for is_last in (not self.new, True):  # a pool that breaks as a process begins says so at the second attempt
            try:
                return self.executor.submit(check_chunk, setup, files, of_files)
            except Exception as error:
                if self.new and isinstance(error, BrokenExecutor):
                    break
                if is_last:
                    raise BrokenExecutor(f"{files[0]} and the files after it cannot be checked: {error}") from error
        assert self.new
        _kill_processes()
        self.executor.shutdown()
        self.executor = self.new()
        return self._send(setup, baseline, files)

    def _received(self, send: _Send, files: list[str], future: Future[bytes], sent: Iterable[_Sent]) -> FileEvents:
        try:
            return _result(future)
        except Exception:
            wait([each for _, each in sent if each])  # from now on, a failing worker has one file
            return chain.from_iterable(self._received_alone(send, file) for file in files)

    def _received_alone(self, send: _Send, file: str) -> FileEvents:
        try:
            return _result(send([file]))
        except Exception as error:
            if isinstance(error, (BrokenExecutor, CancelledError)) and not self.new:
                raise BrokenExecutor(f"the executor gave up: {error}") from error
            checked = CheckedFile(str(file), is_model=is_model_file(file), is_whole=False)
            return iter([(file, unreadable("", _cause_of_failure(error), source=str(file))), (file, checked)])


def _cause_of_failure(error: Exception) -> str:
    if isinstance(error, BrokenExecutor):
        return "the process that checked it ended"
    if failures := getattr(error, "allowed_failures", 0):  # of Dask's KilledWorker
        return f"the workers that checked it died ({failures + 1} of them)"
    return f"its worker failed: {type(error).__name__}: {error}"


def _kill_processes() -> None:
    """Kill the processes of a pool, which ends no busy one before Python 3.14, and none that began as it broke."""
    for process in active_children():
        process.kill()


@contextmanager
def processes(jobs: int) -> Iterator[Workers]:
    """Yield ``jobs`` processes of this machine, which end with the block; at once if an error ends it."""
    new = partial(ProcessPoolExecutor, jobs, get_context("spawn"), begin)
    workers = Workers(new(), new, jobs * CHUNKS_OF_A_PROCESS, jobs)
    try:
        yield workers
    except BaseException:
        _kill_processes()
        raise
    finally:
        workers.executor.shutdown()


def begin() -> None:
    """Leave Ctrl-C to the command, and end this process if the command is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if command := parent_process():
        command.join()
    os._exit(1)


def _result(future: Future[bytes]) -> FileEvents:
    while not wait([future], _SECONDS_BETWEEN_LOOKS).done:  # on Windows, Ctrl-C does not break into a wait without end
        pass
    events: list[tuple[str, Event]] = pickle.loads(zlib.decompress(future.result()))  # noqa: S301  # a worker's
    return iter(events)


def _chunks(files: Iterable[str]) -> Iterator[tuple[list[str], bool]]:
    """Yield a few files at a time, and whether this process checks them."""
    for (is_here, count), some in groupby(files, _chunking):
        while chunk := list(islice(some, count)):
            yield chunk, is_here


def _chunking(file: str) -> tuple[bool, int]:
    """Return whether this process has to check a file, and how many such files make a chunk."""
    if isinstance(file, StoredFile):
        return False, FILES_OF_A_CHUNK
    try:
        status = os.stat(file)  # noqa: PTH116  # a tenth of Path's time
    except (OSError, ValueError):
        return file == STANDARD_INPUT, FILES_OF_A_CHUNK
    is_large = status.st_size > MAX_BYTES_OF_DESCRIPTORS and not is_model_file(file)
    is_here = is_large or not S_ISREG(status.st_mode) or file.startswith(("/dev/", "/proc/"))
    return is_here, FILES_OF_A_CHUNK if status.st_size <= MAX_BYTES_OF_A_SMALL_FILE else 1


_KEPT: Final = local()
"""The state that a worker's thread keeps between chunks: the process that reads models starts slowly."""


def check_chunk(setup: bytes, files: list[str], baseline: Baseline | None) -> bytes:
    """Return the events of files, packed, since they may wait long; ``setup`` is pickled. Runs in a worker."""
    if getattr(_KEPT, "setup", b"") != setup:
        check, shared_by, _ = pickle.loads(setup)  # noqa: S301  # it was made in this module
        sources = Sources(check.known_shapes, shared_by, check.deployments)
        _KEPT.setup, _KEPT.check, _KEPT.sources = setup, check, sources
    check = _KEPT.check._replace(baseline=baseline)
    events = [(str(file), event) for file in files for event in check.events(file, _KEPT.sources)]
    return zlib.compress(pickle.dumps(events), level=1)
