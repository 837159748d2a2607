"""Asks questions in forked processes, so that a crash is an answer.

A worker answers as many questions as it lives to; where it dies, its death is the answer to the question at hand, and
another goes on with the next.
"""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple, TypeVar

SECONDS_FOR_ONE: Final = 60
QUESTIONS_OF_A_WORKER: Final = 5000
"""The stand-in lets go of nothing, so a worker is not to live forever."""

Question = TypeVar("Question")


class Crash(NamedTuple):
    """A question that ended a worker: the signal, as in ``SIGSEGV``, or ``TIMEOUT``, and the last note on it."""

    signal: str
    note: Any = None


_FORK: Final = get_context("fork")
_pipes: Final[list[Connection]] = []
"""In a worker: what it writes to."""


def note(value: Any) -> None:
    """Tell, in a worker, a value about the question at hand, in case that it crashes; each replaces the last."""
    if _pipes:
        _pipes[-1].send(("note", value))


def ask_each(
    questions: Sequence[Question],
    answer: Callable[[Question], Any],
    seconds: float = SECONDS_FOR_ONE,
    of_a_worker: int = QUESTIONS_OF_A_WORKER,
) -> Iterator[Any | Crash]:
    """The answer to each question, in order: what ``answer`` returns for it in a worker, or a Crash.

    An exception in a worker is raised here as RuntimeError.
    """
    done = 0
    while done < len(questions):
        for answered in _worker(questions[done : done + of_a_worker], answer, seconds):
            done += 1
            yield answered


def _worker(questions: Sequence[Question], answer: Callable[[Question], Any], seconds: float) -> Iterator[Any | Crash]:
    """The answers of one worker; the last is a Crash if it died."""
    receiving, sending = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_answer, args=(questions, answer, receiving, sending))
    process.start()
    sending.close()
    answered, timed_out, last_note = 0, False, None
    try:
        with receiving, suppress(EOFError):
            while answered < len(questions):
                if timed_out := not receiving.poll(seconds):
                    process.kill()
                    break
                match receiving.recv():
                    case ("error", message):
                        raise RuntimeError(message)
                    case ("note", last_note):
                        pass
                    case (_, given):
                        answered, last_note = answered + 1, None
                        yield given
    finally:
        process.join()
    status = process.exitcode or 0
    if answered < len(questions) and status >= 0:
        raise RuntimeError(f"a worker ended with exit status {status}")
    if answered < len(questions):
        yield Crash("TIMEOUT" if timed_out else signal.Signals(-status).name, last_note)


def _answer(
    questions: Sequence[Question], answer: Callable[[Question], Any], receiving: Connection, sending: Connection
) -> None:
    """Answer in a worker."""
    receiving.close()  # so that it ends where nobody reads its answers
    _pipes.append(sending)
    faulthandler.disable()  # a crash is told by its signal
    with suppress(BrokenPipeError):
        try:
            for question in questions:
                sending.send(("answer", answer(question)))
        except Exception as error:
            sending.send(("error", f"{type(error).__name__}: {error}"))
