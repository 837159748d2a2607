"""Sweeps of many files: the same results and bytes in the same order, whichever executor, or process, checks them."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from io import BytesIO, TextIOWrapper
from multiprocessing.context import SpawnProcess
from pathlib import Path
from threading import Event
from typing import Any, Final

import psutil
import pytest

from dml_tile import CheckedFile, Target, sweep
from dml_tile.checks import sweep as sweep_module
from dml_tile.checks.baseline import Baseline, Entry, baseline_text, new_entries
from dml_tile.checks.questions import Questions, checked_here
from dml_tile.checks.result import IN_BASELINE
from dml_tile.checks.sweep import FILES_OF_A_CHUNK, Workers, processes
from dml_tile.cli.jobs import MIN_FILES, chosen_workers
from dml_tile.execution.mover import processor_count
from dml_tile.findings import unreadable
from dml_tile.readers.sandbox import parent
from tests.helpers import deadly
from tests.helpers.check_files import BAD, TILE, write
from tests.helpers.command_line import Call, errors_of
from tests.helpers.model_process import ModelProcess
from tests.helpers.outputs import outputs_of_check

TARGETS: Final = ["2_0", "6_4"]
CHECK: Final = Questions((Target.parse("2_0"), Target.parse("6_4")), "both")


class Immediate(Executor):
    """Runs what is submitted at once; ``fails`` may raise for its files, either then or as its result."""

    def __init__(self, fails: Callable[[list[str]], None] = lambda files: None, *, at_submission: bool = False) -> None:
        self.fails = fails
        self.at_submission = at_submission
        self.chunks: list[list[str]] = []
        self.bytes_sent: list[int] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.chunks.append(args[1])
        self.bytes_sent.append(len(pickle.dumps(args)))
        try:
            self.fails(args[1])
            future.set_result(fn(*args))
        except Exception as error:
            if self.at_submission:
                raise
            future.set_exception(error)
        return future


def unread(source: str, message: str) -> CheckedFile:
    return CheckedFile(source, findings=(unreadable("", message),), is_whole=False)


def test_threads_find_what_this_thread_finds(zoo: list[str]) -> None:
    alone = list(sweep(zoo, TARGETS))
    with ThreadPoolExecutor(3) as executor:
        assert list(sweep(zoo, TARGETS, executor=executor)) == alone
    assert [checked.source for checked in alone] == zoo
    assert [result.target.name for result in alone[0].results] == TARGETS
    assert alone[-2] == CheckedFile(
        "missing.json", findings=(unreadable("", "No such file or directory"),), is_whole=False
    )


def test_names_that_stand_for_no_file_and_arguments_that_mean_nothing(call: Call) -> None:
    assert list(sweep(["*.onnx"])) == [unread("*.onnx", "no file matches the pattern")]
    for argument, value, message in (
        ("via", "orr", "there is no back end 'orr'"),
        ("against", "neither", "against"),
        ("targets", ["no"], "no"),
    ):
        with pytest.raises(ValueError, match=message):
            sweep([], **{argument: value})  # type: ignore[arg-type]


class Stored:
    """A file that a store's client opens; it pickles, as fsspec's OpenFile does."""

    def __init__(self, path: str, content: bytes | None) -> None:
        self.path, self.content = path, content

    def open(self) -> BytesIO:
        if self.content is None:
            raise PermissionError("s3://key:hush@zoo")
        return BytesIO(self.content)


def test_stored_files_are_read_as_local_ones_and_come_after_them(zoo: list[str]) -> None:
    alone = list(sweep(zoo, TARGETS))
    stored = [Stored(name, Path(name).read_bytes()) for name in zoo if Path(name).exists()]
    swept = list(sweep([stored[0], *zoo, *stored[1:]], TARGETS))
    assert swept == [*alone, *(checked for checked in alone if Path(checked.source).exists())]
    assert not any("Stored" in str(pickle.dumps(checked)) for checked in swept)
    executor = Immediate()
    assert list(sweep(stored, TARGETS, executor=executor)) == swept[len(zoo) :]
    assert len(executor.chunks) > 1


def test_a_stored_file_that_cannot_be_read_is_a_problem_without_its_credentials(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dml_tile.readers.sources.MAX_STORED_BYTES", 99)
    files = [Stored("a.json", None), Stored("b.onnx", b" " * 100)]
    assert list(sweep(files)) == [
        unread("a.json", "cannot be read: PermissionError"),
        replace(unread("b.onnx", "has more than 99 bytes"), is_model=True),
    ]


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
        unreadable("", message),
        CheckedFile("deadly.json", is_model=False, is_whole=False),
    ]
    alone = [files for files in executor.chunks if len(files) == 1 and files != ["many.jsonl"]]
    assert len(alone) == FILES_OF_A_CHUNK  # of its chunk only


@pytest.mark.parametrize("error", [BrokenExecutor("a worker died"), CancelledError("the cluster left")])
@pytest.mark.parametrize("at_submission", [True, False])
def test_a_broken_executor_ends_the_sweep_in_one_error(zoo: list[str], error: Exception, at_submission: bool) -> None:
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
    assert [file for file, event in events if isinstance(event, CheckedFile)] == files
    assert executor.chunks == [zoo[:2], [zoo[2], "memory://a.json", "missing.json", model]]


def test_workers_get_of_a_baseline_what_it_has_about_their_files(zoo: list[str]) -> None:
    results = [event for _, event in checked_here(CHECK, zoo[:20]) if isinstance(event, tuple)]
    entries = set[Entry]().union(*(new_entries(each, "known.json") for each in results))
    others = (Entry(source=f"{i}", operator="", target="6_4", rule="r", field="") for i in range(10_000))
    check = CHECK._replace(baseline=Baseline(write("known.json", baseline_text(entries.union(others)))))
    executor = Immediate()
    found = list(Workers(executor).events(check, zoo))
    assert found == list(checked_here(check, zoo))
    assert any(IN_BASELINE in result.uncounted for _, event in found if isinstance(event, tuple) for result in event)
    assert max(executor.bytes_sent) < 10_000


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


# Processes of --jobs


def test_two_processes_write_the_bytes_of_one(zoo: list[str], call: Call) -> None:
    arguments = [*zoo, "-t", "windows-11-21h2,6_4", "--dim", "nowhere=1", "--jobs"]
    assert outputs_of_check(call, *arguments, "2") == outputs_of_check(call, *arguments, "1")


def test_a_process_that_dies_costs_the_file_that_it_dies_of_each_time(
    zoo: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_module, "begin", deadly.begin)
    once, *lost = (write(f"dies{which}.json", TILE) for which in (" once", "", " too"))
    with processes(2) as workers:
        found = list(workers.events(CHECK, [*zoo[:3], lost[0], *zoo[3:25], lost[1], *zoo[25:]]))
        assert list(workers.events(CHECK, [once, *zoo[:9]])) == list(checked_here(CHECK, [once, *zoo[:9]]))
    assert Path(f"{once}.died").exists()
    assert [pair for pair in found if pair[0] not in lost] == list(checked_here(CHECK, zoo))
    for file in lost:
        problem, summary = (event for name, event in found if name == file)
        assert problem == unreadable("", "the process that checked it ended")
        assert isinstance(summary, CheckedFile)
        assert not summary.is_whole


@pytest.mark.long
def test_a_process_that_begins_as_its_pool_breaks_is_ended(zoo: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    begun = SpawnProcess.start

    def begin_late(process: SpawnProcess) -> None:
        for other in multiprocessing.active_children():
            other.join(1)
        begun(process)

    monkeypatch.setattr(SpawnProcess, "start", begin_late)
    monkeypatch.setattr(sweep_module, "begin", deadly.begin)
    with processes(2) as workers:
        list(workers.events(CHECK, [write("dies.json", TILE), *zoo]))
    assert not multiprocessing.active_children()


def test_processes_that_cannot_start_are_one_error(zoo: list[str], call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(process: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(SpawnProcess, "start", refuse)
    assert errors_of(call, "check", *zoo[:3], "--jobs", "2") == (
        "dml-tile: check: 000.json and the files after it cannot be checked: "
        "[Errno 11] Resource temporarily unavailable\n"
    )


def test_one_process_checks_until_more_pay() -> None:
    for jobs, files, count in ((None, MIN_FILES - 1, 1), (None, MIN_FILES, processor_count()), (1, MIN_FILES, 1)):
        with chosen_workers(jobs, None, files) as workers:
            assert (workers is None) == (count == 1)
    with chosen_workers(2, None, 1) as workers:
        assert workers is not None


@pytest.mark.posix
def test_an_error_ends_the_processes(zoo: list[str]) -> None:
    many = write("many.jsonl", f"{json.dumps(TILE)}\n" * 10_000)
    started = time.monotonic()

    def interrupt_a_check() -> None:
        with processes(2) as workers:
            next(workers.events(CHECK, [zoo[0], *[many] * 30]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt_a_check()
    assert time.monotonic() - started < 20
    assert not multiprocessing.active_children()


@pytest.fixture
def command(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A check that takes long, as the first of a group of processes."""
    files = [str(tmp_path / f"{i}.jsonl") for i in range(40)]
    for file in files:
        Path(file).write_text(f"{json.dumps(TILE)}\n" * 10_000)
    arguments = [sys.executable, "-m", "dml_tile", "check", "--format", "json", "--jobs", "2", *files]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path, start_new_session=True
    ) as process:
        yield process
        process.kill()


def workers_of(command: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return the processes that a command has started to check files, once there are two."""
    for _ in range(600):
        assert command.poll() is None
        with suppress(psutil.NoSuchProcess):
            children = psutil.Process(command.pid).children()
            if len(workers := [child for child in children if "spawn_main" in " ".join(child.cmdline())]) == 2:
                return workers
        time.sleep(0.05)
    raise AssertionError("it has not started two")


def is_alive(worker: psutil.Process) -> bool:
    try:
        return bool(worker.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.long
@pytest.mark.posix
@pytest.mark.parametrize(
    ("send", "number", "seconds"),
    [
        *((send, number, 0) for send in ("kill", "killpg") for number in (signal.SIGINT, signal.SIGTERM)),
        ("kill", 9, 10),  # SIGKILL, which Windows has not: the command cannot wait for them
    ],
)
def test_a_signal_ends_all_processes(send: str, number: int, seconds: float, command: subprocess.Popen[bytes]) -> None:
    workers = workers_of(command)
    getattr(os, send)(command.pid, number)
    command.communicate(timeout=60)
    assert command.returncode in (1, 130, -number)
    _, left = psutil.wait_procs(workers, timeout=seconds)
    assert not any(is_alive(worker) for worker in left)


@pytest.mark.long
def test_processes_import_nothing_from_the_current_folder(zoo: list[str], tmp_path: Path) -> None:
    for module in ("multiprocessing", "dml_tile", "signal"):
        write(f"{module}.py", "raise SystemExit('imported from the current folder')")
    program = "from dml_tile.cli.app import main; main()"
    arguments = [sys.executable, "-P", "-c", program, "check", "000.json", "-t", "6_4", "--jobs", "2"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"000.json: accepted")
