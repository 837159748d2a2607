"""Asks questions in forked processes, so that a crash is an answer.

A worker answers as many questions as it lives to; where it dies, its death is the answer to the question at hand, and
another goes on with the next.
"""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

SECONDS_FOR_ONE: Final = 60
QUESTIONS_OF_A_WORKER: Final = 5000
"""The stand-in lets go of nothing, so a worker is not to live forever."""

Question = TypeVar("Question")


class Crash(NamedTuple):
    """A question that ended a worker: the signal, as in ``SIGSEGV``, or ``TIMEOUT``, and the last note on it."""

    signal: str
    note: Any = None


_notes: Final[list[int]] = []
"""In a worker: the pipe that it writes to."""


def note(value: Any) -> None:
    """Tell, in a worker, a JSON value about the question at hand, in case that it crashes; each replaces the last."""
    if _notes:
        os.write(_notes[-1], json.dumps({"note": value}).encode() + b"\n")


def ask_each(
    questions: Sequence[Question],
    answer: Callable[[Question], Any],
    seconds: float = SECONDS_FOR_ONE,
    of_a_worker: int = QUESTIONS_OF_A_WORKER,
) -> Iterator[Any | Crash]:
    """The answer to each question, in order: what ``answer`` returns for it in a worker, or a Crash.

    Answers are JSON values; an exception in a worker is raised here as RuntimeError.
    """
    done = 0
    while done < len(questions):
        for answered in _worker(questions[done : done + of_a_worker], answer, seconds):
            done += 1
            yield answered


def _worker(questions: Sequence[Question], answer: Callable[[Question], Any], seconds: float) -> Iterator[Any | Crash]:
    """The answers of one worker; the last is a Crash if it died."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        _answer(questions, answer, writing)
    os.close(writing)
    answered, timed_out, last_note = 0, False, None
    buffered = b""
    try:
        while True:
            ready, _, _ = select.select([reading], [], [], seconds)
            if not ready:
                timed_out = True
                os.kill(process, signal.SIGKILL)
                break
            read = os.read(reading, 1 << 16)
            if not read:
                break
            *lines, buffered = (buffered + read).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if "error" in message:
                    raise RuntimeError(message["error"])
                last_note = message.get("note")
                if "answer" in message:
                    answered += 1
                    yield message["answer"]
    finally:
        os.close(reading)
        _, status = os.waitpid(process, 0)
    if answered == len(questions):
        return
    if not os.WIFSIGNALED(status):
        raise RuntimeError(f"a worker ended with exit status {os.WEXITSTATUS(status)}")
    yield Crash("TIMEOUT" if timed_out else signal.Signals(os.WTERMSIG(status)).name, last_note)


def _answer(questions: Sequence[Question], answer: Callable[[Question], Any], writing: int) -> None:
    """Answer in a worker, which ends with it: what it runs must not return into a copy of the caller."""
    _notes.append(writing)
    try:
        faulthandler.disable()  # a crash is told by its signal
        for question in questions:
            os.write(writing, json.dumps({"answer": answer(question)}).encode() + b"\n")
    except Exception as error:
        with suppress(BrokenPipeError):
            os.write(writing, json.dumps({"error": f"{type(error).__name__}: {error}"}).encode() + b"\n")
    finally:
        os._exit(0)
