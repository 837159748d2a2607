"""The bounds of a child process that runs code which is not trusted: its streams, its memory and its time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from threading import TIMEOUT_MAX, Condition, Thread
from typing import BinaryIO, Final, Self

from dml_tile.errors import InputError, Problem
from dml_tile.readers.sandbox.protocol import OUT_OF_MEMORY, End, Order, Part, answer_line
from dml_tile.text import shortened

try:
    import resource
except ImportError:  # on Windows, where the parent alone bounds time, and nothing bounds memory
    resource = None  # type: ignore[assignment]

_PR_SET_PDEATHSIG: Final = 1
_GRACE: Final = 10
"""Seconds past a bound after which the child ends by itself, should its parent have died."""


def end_with_parent() -> None:
    """Have Linux kill this process when its parent ends, however that ends."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Take over standard input and output; whatever libraries print is discarded."""
    streams = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    return streams


@contextmanager
def bounds(seconds: float, memory: int) -> Iterator[None]:
    """Bound memory, in bytes, and, in case the parent dies, time; suppress core files."""
    if resource is not None:
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_DATA, memory)
    if hasattr(signal, "alarm"):
        signal.alarm(int(seconds) + _GRACE)
    try:
        yield
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    if hasattr(signal, "alarm"):
        signal.alarm(0)


def _limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


@dataclass(slots=True)
class Deadline:
    """The time, of ``time.monotonic``, at which a process is killed; ``has_passed`` is True once it was."""

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


_MAX_MESSAGE_LENGTH: Final = 300


def main() -> None:
    """Answer orders until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    end_with_parent()
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # OpenVINO would send telemetry
    orders, answers = own_streams()
    with orders, answers:
        for line in orders:
            order = Order.read(line)
            with bounds(order.seconds, order.memory):
                for part in answer(order):
                    answers.write(answer_line(part))
                    answers.flush()


def answer(order: Order) -> Iterator[Part | End]:
    """Yield the parts of a file, and the end of the answer."""
    dimensions = yield from _parts(order)
    yield End(dimensions)


def _parts(order: Order) -> Generator[Part, None, tuple[str, ...]]:
    """Yield the parts of a file; return the names of its dimensions."""
    try:
        if order.reader == "ONNX":
            from dml_tile.readers.onnx.tiles import read_nodes

            return (yield from read_nodes(Path(order.path), order.known_shapes))
        from dml_tile.readers import openvino

        yield from openvino.read_nodes(Path(order.path), order.known_shapes)
    except InputError as error:
        yield from error.problems
    except ImportError as error:
        yield Problem("", str(error))
    except MemoryError:
        raise
    except Exception as error:  # of any class: a hostile file may make a library raise anything
        yield Problem(
            "", f"{order.reader}'s reader failed: {type(error).__name__}: {shortened(str(error), _MAX_MESSAGE_LENGTH)}"
        )
    return ()


if __name__ == "__main__":
    main()
