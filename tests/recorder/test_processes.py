"""Processes give results in the order of the arguments, and draw only a few of these in advance."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.recorder.processes import WAITING_FOR_EACH_PROCESS, in_processes


def reciprocal(number: int) -> tuple[float, int]:
    return 1 / number, os.getpid()


def test_results_come_in_order_from_other_processes() -> None:
    results = list(in_processes(reciprocal, range(1, 40), 2))
    assert [result for result, _ in results] == [1 / number for number in range(1, 40)]
    assert os.getpid() not in {process for _, process in results}


def test_few_arguments_are_drawn_in_advance() -> None:
    drawn: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(1, 1000):
            drawn.append(number)
            yield number

    results = in_processes(reciprocal, numbers(), 2)
    next(results)
    assert len(drawn) <= 2 * WAITING_FOR_EACH_PROCESS + 1
    results.close()  # type: ignore[attr-defined]


def test_an_exception_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_processes(reciprocal, [1, 0, 2], 2))
