"""Checks files in a process of its own: takes orders on standard input, and writes events to standard output.

Both are pickles. The process ends when its standard input does.
"""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dml_tile.checks.one_file import Event, FileCheck, FileEnd
from dml_tile.geometry.layout import MAX_ADDRESSES_OF_A_RUN, address_budget
from dml_tile.readers.sources import Sources
from dml_tile.sweeps.portable import portable

MAX_EVENTS_OF_A_MESSAGE: Final = 256
SECONDS_OF_A_MESSAGE: Final = 0.1
"""The time for which files that are done may wait for those behind them."""


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
            events = (event for file in order.files for event in setup.check.events(file, sources))
            for message in _messages(events):
                pickle.dump(message, answers, pickle.HIGHEST_PROTOCOL)
                answers.flush()


def _orders(stream: object) -> Iterator[Order]:
    while True:
        try:
            yield pickle.load(stream)  # type: ignore[arg-type]  # noqa: S301
        except EOFError:
            return


def _messages(events: Iterator[Event]) -> Iterator[list[Event]]:
    """The events of several files in messages: to pickle, send and receive one for each file would cost more.

    A message that goes on with a file ends with it, or before. The process may thus have died at the file that the last
    message broke off in, or at one of which nothing was told.
    """
    message: list[Event] = []
    began, goes_on = 0.0, False
    for event in events:
        if not message:
            began = time.monotonic()
        message.append(portable(event))
        ends_file = isinstance(event, FileEnd)
        is_due = ends_file and (goes_on or time.monotonic() - began >= SECONDS_OF_A_MESSAGE)
        if is_due or len(message) == MAX_EVENTS_OF_A_MESSAGE:
            yield message
            message, goes_on = [], not ends_file
    if message:
        yield message


if __name__ == "__main__":
    main()
