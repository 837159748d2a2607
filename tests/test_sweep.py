"""Sweeps of many files: the same results in the same order, whichever executor checks them, also where it fails."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from io import BytesIO, TextIOWrapper
from threading import Event
from typing import Any, Final

import pytest

from dml_tile import CheckedFile, Target, sweep
from dml_tile.checks import sweep as sweep_module
from dml_tile.checks.file_check import FileCheck, SourceSummary, checked_here
from dml_tile.checks.sweep import FILES_OF_A_CHUNK, Workers
from dml_tile.errors import Problem
from dml_tile.readers.sandbox import parent
from tests.helpers.check_files import BAD, TILE, write
from tests.helpers.command_line import Call
from tests.helpers.model_process import ModelProcess

TARGETS: Final = ["2_0", "6_4"]
CHECK: Final = FileCheck((Target.parse("2_0"), Target.parse("6_4")), "both")


class Immediate(Executor):
    """Runs what is submitted at once; ``fails`` may raise for its files, either then or as its result."""

    def __init__(self, fails: Callable[[list[str]], None] = lambda files: None, *, at_submission: bool = False) -> None:
        self.fails = fails
        self.at_submission = at_submission
        self.chunks: list[list[str]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.chunks.append(args[1])
        try:
            self.fails(args[1])
            future.set_result(fn(*args))
        except Exception as error:
            if self.at_submission:
                raise
            future.set_exception(error)
        return future


def test_threads_find_what_this_thread_finds(zoo: list[str]) -> None:
    alone = list(sweep(zoo, TARGETS))
    with ThreadPoolExecutor(3) as executor:
        assert list(sweep(zoo, TARGETS, executor=executor)) == alone
    assert [checked.source for checked in alone] == zoo
    assert [result.target.name for result in alone[0].results] == TARGETS
    assert alone[-2] == CheckedFile("missing.json", problems=(Problem("", "No such file or directory"),))


def test_names_that_stand_for_no_file_and_arguments_that_mean_nothing(call: Call) -> None:
    assert list(sweep(["*.onnx"])) == [CheckedFile("*.onnx", problems=(Problem("", "no file matches the pattern"),))]
    for argument, value, message in (
        ("via", "orr", "there is no back end 'orr'"),
        ("against", "neither", "against"),
        ("targets", ["no"], "no"),
    ):
        with pytest.raises(ValueError, match=message):
            sweep([], **{argument: value})  # type: ignore[arg-type]


class KilledError(Exception):
    """As Dask's KilledWorker."""

    allowed_failures = 3


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KilledError(), "the workers that checked it died (4 of them)"),
        (MemoryError("none is left"), "its worker failed: MemoryError: none is left"),
    ],
)
def test_a_file_that_ends_workers_is_lost_alone(zoo: list[str], error: Exception, message: str) -> None:
    def fails(files: list[str]) -> None:
        if "deadly.json" in files:
            raise error

    executor = Immediate(fails)
    files = [*zoo[:20], write("deadly.json", TILE), *zoo[20:]]
    found = list(Workers(executor).events(CHECK, files))
    assert [pair for pair in found if pair[0] != "deadly.json"] == list(checked_here(CHECK, zoo))
    assert [event for file, event in found if file == "deadly.json"] == [
        Problem("", message),
        SourceSummary("deadly.json", is_model=False, is_whole=False),
    ]
    alone = [files for files in executor.chunks if len(files) == 1 and files != ["many.jsonl"]]
    assert len(alone) == FILES_OF_A_CHUNK  # of its chunk only


@pytest.mark.parametrize("error", [BrokenExecutor("a worker died"), CancelledError("the cluster left")])
@pytest.mark.parametrize("at_submission", [True, False])
def test_an_executor_that_is_broken_ends_the_sweep_in_one_error(
    zoo: list[str], error: Exception, at_submission: bool
) -> None:
    broken = zoo[FILES_OF_A_CHUNK]

    def fails(files: list[str]) -> None:
        if broken in files:
            raise error

    executor = Immediate(fails, at_submission=at_submission)
    found: list[CheckedFile] = []
    with pytest.raises(BrokenExecutor, match=str(error)) as raised:
        found.extend(sweep(zoo, TARGETS, executor=executor))
    assert (broken in str(raised.value)) == at_submission
    assert found == list(sweep(zoo, TARGETS))[: 0 if at_submission else FILES_OF_A_CHUNK]


def test_a_bounded_number_of_chunks_is_sent_ahead_and_cancelled_if_nobody_asks_for_them(zoo: list[str]) -> None:
    executor, futures = Immediate(), list[Future[Any]]()

    def submit(*arguments: Any) -> Future[Any]:
        futures.append(Future() if futures else Immediate().submit(*arguments))
        return futures[-1]

    executor.submit = submit  # type: ignore[method-assign]
    events = Workers(executor, chunks_sent=3).events(CHECK, zoo * 10)
    next(events)
    del events
    assert [future.cancelled() for future in futures] == [False, True, True]


def test_what_workers_cannot_read_is_checked_in_its_turn(zoo: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(json.dumps(BAD).encode())))
    monkeypatch.setattr(sweep_module, "MAX_BYTES_OF_DESCRIPTORS", 2000)
    large = write("large.jsonl", f"{json.dumps(TILE)}\n" * 20)
    model = write("large.onnx", "no model" * 500)
    executor = Immediate()
    files = [zoo[0], zoo[1], "-", zoo[2], "memory://a.json", "missing.json", model, large, os.devnull]
    events = Workers(executor).events(CHECK, files)
    assert [file for file, event in events if isinstance(event, SourceSummary)] == files
    assert executor.chunks == [zoo[:2], [zoo[2], "memory://a.json", "missing.json", model]]


def test_a_worker_ends_what_reads_models_once_it_idles(zoo: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "SECONDS_IDLE", 0.05)
    is_ended = Event()
    monkeypatch.setattr(ModelProcess, "kill", lambda self: is_ended.set())
    models = [name for name in zoo if name.endswith("onnx")]
    with ThreadPoolExecutor(1) as executor:
        for _ in range(2):
            expected = list(sweep(models))
            is_ended.clear()
            assert list(sweep(models, executor=executor)) == expected
            assert is_ended.wait(60)


def test_lines_are_results_then_what_is_unread(call: Call) -> None:
    write("a.json", BAD)
    lines = [json.loads(line) for line in call("check", "a.json", "b.json", "--format", "jsonl").stdout.splitlines()]
    whole = json.loads(call("check", "a.json", "b.json", "--format", "json").stdout)
    assert lines == [*whole["results"], *whole["errors"]]
