"""The processes of ``dml-tile check --jobs``."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from threading import Thread
from typing import Any, Final

from dml_tile.checks.sweep import Workers
from dml_tile.readers.sandbox.parent import name_of_status

_CHUNKS_FOR_EACH: Final = 4


@contextmanager
def processes(jobs: int) -> Iterator[Workers]:
    """Yield so many processes of this machine, which end with the block; at once if an error ends it."""
    workers = _Processes(jobs)
    try:
        yield workers
    except BaseException:
        workers.stop()
        raise
    finally:
        workers.executor.shutdown()


class _Processes(Workers):
    """Processes of this machine. Where one dies, others take the place of all."""

    def __init__(self, jobs: int) -> None:
        self._context = _Context()
        super().__init__(_pool(jobs, self._context), chunks_sent=jobs * _CHUNKS_FOR_EACH, shared_by=jobs)

    def submit(self, setup: bytes, files: list[str]) -> Future[bytes]:
        """Have a process check files."""
        try:
            return super().submit(setup, files)
        except BrokenProcessPool:
            self._context.processes.clear()
            self.executor = _pool(self.shared_by, self._context)
            return super().submit(setup, files)

    def cause(self, error: Exception) -> str:
        """Return how the process ended that checked a file."""
        if not isinstance(error, BrokenProcessPool):
            return super().cause(error)
        self.executor.shutdown()  # once one has died, the executor terminates the others
        codes = [process.exitcode for process in self._context.processes]
        code = next((code for code in codes if code not in (None, -signal.SIGTERM)), -signal.SIGTERM)
        return f"the process that checked it ended ({name_of_status(code)})"

    def stop(self) -> None:
        """End all processes at once. Cancels nothing: a broken pool of Python 3.11 cannot clear that up."""
        for process in self._context.processes:
            if process.is_alive():
                process.kill()


class _Context(SpawnContext):
    """Starts processes and remembers them: before Python 3.14, an executor cannot end those that are busy."""

    def __init__(self) -> None:
        self.processes: list[SpawnProcess] = []

    def Process(self, **options: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802  # it replaces a class
        self.processes.append(SpawnProcess(**options))
        return self.processes[-1]


def _pool(jobs: int, context: SpawnContext) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, context, begin)


def begin() -> None:
    """Leave Ctrl-C to the command, and end this process should the command be killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if command := parent_process():
        command.join()
    os._exit(1)
