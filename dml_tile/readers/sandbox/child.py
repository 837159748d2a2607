"""Reads models: takes orders on standard input and answers them on standard output.

The process ends when its standard input does, or when it runs out of memory.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

from dml_tile.errors import InputError, Problem
from dml_tile.readers.sandbox.limits import bounds, end_with_parent, own_streams
from dml_tile.readers.sandbox.protocol import End, Order, Part, answer_line
from dml_tile.text import shortened

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
