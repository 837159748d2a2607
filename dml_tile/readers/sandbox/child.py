"""Reads models: takes orders on standard input and answers them on standard output.

The process ends when its standard input does, or when it runs out of memory.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from dml_tile.errors import InputError, Problem
from dml_tile.readers.sandbox.protocol import OUT_OF_MEMORY, End, Order, Part, answer_line
from dml_tile.text import shortened

try:
    import resource
except ImportError:  # on Windows, where the parent alone bounds time, and nothing bounds memory
    resource = None  # type: ignore[assignment]

_MAX_MESSAGE_LENGTH: Final = 300
_PR_SET_PDEATHSIG: Final = 1
_GRACE: Final = 10
"""Seconds past an order's bound after which the child ends by itself, should its parent have died."""


def main() -> None:
    """Answer orders until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    _end_with_parent()
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # OpenVINO would send telemetry
    orders, answers = _own_streams()
    with orders, answers:
        for line in orders:
            order = Order.read(line)
            with _bounds(order):
                for part in _answer(order):
                    answers.write(answer_line(part))
                    answers.flush()


def _end_with_parent() -> None:
    """Have Linux kill this process when its parent ends, however that ends."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Take over standard input and output; whatever libraries print is discarded."""
    streams = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    return streams


@contextmanager
def _bounds(order: Order) -> Iterator[None]:
    """Bound memory and, in case the parent dies, time; suppress core files."""
    if resource is not None:
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_DATA, order.memory)
    if hasattr(signal, "alarm"):
        signal.alarm(int(order.seconds) + _GRACE)
    try:
        yield
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    if hasattr(signal, "alarm"):
        signal.alarm(0)


def _limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _answer(order: Order) -> Iterator[Part | End]:
    dimensions = yield from _parts(order)
    yield End(dimensions)


def _parts(order: Order) -> Generator[Part, None, tuple[str, ...]]:
    """The parts of a file; returns the names of its dimensions."""
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
