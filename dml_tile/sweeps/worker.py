"""Checks files in a process of its own: takes orders on standard input, and writes events to standard output.

Both are pickles. The process ends when its standard input does.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dml_tile.checks.one_file import Event, FileCheck, FileEnd
from dml_tile.geometry.layout import MAX_ADDRESSES_OF_A_RUN, address_budget
from dml_tile.readers.sources import Sources
from dml_tile.sweeps.portable import portable

MAX_EVENTS_OF_A_MESSAGE: Final = 256


@dataclass(frozen=True, slots=True)
class Setup:
    """The first order: the questions to ask of each file, and how many processes share the bounds of one check."""

    check: FileCheck
    jobs: int


@dataclass(frozen=True, slots=True)
class Order:
    """Asks for files; ``seconds_lost`` is what all processes together have lost to models that cannot be read."""

    files: tuple[str, ...]
    seconds_lost: float


def main() -> None:
    """Answer orders until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)  # what a library prints is no answer
    setup = pickle.load(orders)  # noqa: S301  # the parent's own
    budget = address_budget(MAX_ADDRESSES_OF_A_RUN // setup.jobs)
    with budget, Sources(setup.check.known_shapes, shared_by=setup.jobs) as sources:
        for order in _orders(orders):
            sources.seconds_lost = order.seconds_lost
            for file in order.files:
                for message in _messages(setup.check.events(file, sources)):
                    pickle.dump(message, answers, pickle.HIGHEST_PROTOCOL)
                    answers.flush()


def _orders(stream: object) -> Iterator[Order]:
    while True:
        try:
            yield pickle.load(stream)  # type: ignore[arg-type]  # noqa: S301
        except EOFError:
            return


def _messages(events: Iterator[Event]) -> Iterator[list[Event]]:
    """The events of a file in messages, of which the last one ends with the file."""
    message: list[Event] = []
    for event in events:
        message.append(portable(event))
        if len(message) == MAX_EVENTS_OF_A_MESSAGE or isinstance(event, FileEnd):
            yield message
            message = []


if __name__ == "__main__":
    main()
