"""A crash is an answer, and the next question is answered by another worker."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.recorder.workers import Crash, ask_each, note


def answer(question: int) -> int:
    match question:
        case 3:
            os.kill(os.getpid(), signal.SIGSEGV)
        case 5:
            time.sleep(60)
        case 7:
            raise ValueError("no seven")
        case 8:
            os._exit(3)
    return question * 2


def test_a_crash_is_an_answer_in_the_order_of_the_questions() -> None:
    crash = Crash("SIGSEGV")
    assert list(ask_each([1, 3, 2, 3, 3, 4], answer)) == [2, crash, 4, crash, crash, 8]


def test_a_crash_comes_with_the_last_note_on_its_question() -> None:
    def answer_with_notes(question: int) -> int:
        note({"begun": question})
        note({"going on": question})
        return answer(question)

    assert list(ask_each([1, 3], answer_with_notes)) == [2, Crash("SIGSEGV", {"going on": 3})]


def test_a_question_that_takes_too_long_is_ended() -> None:
    assert list(ask_each([1, 5, 2], answer, seconds=0.5)) == [2, Crash("TIMEOUT"), 4]


@pytest.mark.parametrize(("question", "why"), [(7, "ValueError: no seven"), (8, "exit status 3")])
def test_an_exception_in_a_worker_and_its_exit_are_raised(question: int, why: str) -> None:
    with pytest.raises(RuntimeError, match=why):
        list(ask_each([1, question], answer))


def test_answers_may_be_left_unread() -> None:
    answers = ask_each(list(range(3)) * 10_000, answer)
    assert next(answers) == 0
    answers.close()  # type: ignore[attr-defined]
