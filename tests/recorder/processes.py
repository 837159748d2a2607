"""Runs a function in several processes, with few of its arguments drawn in advance."""

from __future__ import annotations

import itertools
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Final, TypeVar

WAITING_FOR_EACH_PROCESS: Final = 2

Argument = TypeVar("Argument")
Result = TypeVar("Result")


def in_processes(
    function: Callable[[Argument], Result], arguments: Iterable[Argument], processes: int
) -> Iterator[Result]:
    """The function's results in the order of the arguments. Raises what the function raises."""
    remaining = iter(arguments)
    running: deque[Future[Result]] = deque()
    with ProcessPoolExecutor(processes, multiprocessing.get_context("fork")) as pool:
        try:
            for argument in itertools.islice(remaining, processes * WAITING_FOR_EACH_PROCESS):
                running.append(pool.submit(function, argument))
            while running:
                yield running.popleft().result()
                for argument in itertools.islice(remaining, 1):
                    running.append(pool.submit(function, argument))
        finally:
            pool.shutdown(cancel_futures=True)
