"""Checks in several processes: the same bytes in the same order, whatever becomes of a process."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Final

import pytest

from dml_tile import Target, sweep
from dml_tile.checks import sweep as sweep_module
from dml_tile.checks.file_check import FileCheck, SourceSummary, checked_here
from dml_tile.checks.sweep import processes
from dml_tile.cli.jobs import MIN_FILES, chosen_workers
from dml_tile.errors import Problem
from dml_tile.execution.mover import processor_count
from tests.helpers import deadly
from tests.helpers.check_files import BAD, TILE, write
from tests.helpers.command_line import Call, bash
from tests.helpers.outputs import without_times

OTHER_FORMS: Final = ("text", "sarif", "junit", "github", "html")
CHECK: Final = FileCheck((Target.parse("2_0"), Target.parse("6_4")), "both")


@pytest.mark.parametrize("form", ["json", *(pytest.param(form, marks=pytest.mark.long) for form in OTHER_FORMS)])
def test_two_processes_write_the_bytes_of_one(form: str, zoo: list[str], call: Call) -> None:
    arguments = ["check", *zoo, "-t", "windows-11-21h2,6_4", "--format", form, "--dim", "nowhere=1"]
    alone, together = call(*arguments, "--jobs", "1"), call(*arguments, "--jobs", "2")
    assert without_times(together.stdout) == without_times(alone.stdout)
    assert together.stderr == alone.stderr
    assert together.exit_code == alone.exit_code == 2


@pytest.mark.long
def test_more_processes_than_files_do_no_harm(zoo: list[str]) -> None:
    with processes(5) as workers:
        assert list(workers.events(CHECK, zoo[:1])) == list(checked_here(CHECK, zoo[:1]))
        assert list(workers.events(CHECK, [])) == []


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.long), 2])
@pytest.mark.parametrize(
    "lost", [pytest.param(("dies once.json",), marks=pytest.mark.long), ("dies.json", "dies too.json")]
)
def test_a_process_that_dies_costs_the_file_that_it_dies_of_each_time(
    jobs: int, lost: tuple[str, ...], zoo: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_module, "begin", deadly.begin)
    files = [*zoo[:3], write(lost[0], TILE), *zoo[3:25], write(lost[-1], BAD), *zoo[25:]]
    with processes(jobs) as workers:
        found = list(workers.events(CHECK, files))
    if "once" in lost[0]:
        assert Path(f"{lost[0]}.died").exists()
        lost = ()
    assert [pair for pair in found if pair[0] not in lost] == [
        pair for pair in checked_here(CHECK, files) if pair[0] not in lost
    ]
    for file in lost:
        problem, summary = (event for name, event in found if name == file)
        assert problem == Problem("", "the process that checked it ended")
        assert isinstance(summary, SourceSummary)
        assert not summary.is_whole


@pytest.mark.long
def test_a_callers_pool_that_breaks_ends_the_sweep_in_one_error(zoo: list[str]) -> None:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, spawn, deadly.install) as executor:
        assert list(sweep(zoo, executor=executor)) == list(sweep(zoo))
        swept = sweep([*zoo, write("dies.json", TILE), *zoo], executor=executor)
        with pytest.raises(BrokenExecutor, match="and the files after it cannot be checked"):
            list(swept)


def test_processes_that_cannot_be_started_are_one_error(
    zoo: list[str], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(process: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(SpawnProcess, "start", refuse)
    result = call("check", *zoo[:3], "--jobs", "2")
    assert result.exit_code == 2
    assert result.stderr == (
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


@pytest.mark.long
@pytest.mark.posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("send", ["kill", "killpg"])
def test_a_signal_ends_all_processes(number: signal.Signals, send: str, command: subprocess.Popen[bytes]) -> None:
    workers = _workers(command)
    getattr(os, send)(command.pid, number)
    command.communicate(timeout=60)
    assert command.returncode in (1, 130, -number)
    assert not [worker for worker in workers if _is_running(worker)]


@pytest.mark.long
@pytest.mark.posix
def test_processes_end_with_a_command_that_is_killed(command: subprocess.Popen[bytes]) -> None:
    workers = _workers(command)
    command.kill()
    command.communicate(timeout=60)
    for _ in range(100):
        if not [worker for worker in workers if _is_running(worker)]:
            return
        time.sleep(0.1)
    raise AssertionError("they live on")


def _workers(command: subprocess.Popen[bytes]) -> list[str]:
    """The processes that a command has started to check files, once there are two."""
    for _ in range(600):
        assert command.poll() is None
        statuses = Path("/proc").glob("[0-9]*/status")
        workers = [status.parent.name for status in statuses if _has_parent(status, command.pid)]
        running = [worker for worker in workers if _is_running(worker)]
        if len(running) == 2:
            return running
        time.sleep(0.05)
    raise AssertionError("it has not started two")


def _has_parent(status: Path, process: int) -> bool:
    try:
        return f"PPid:\t{process}\n" in status.read_text()
    except OSError:
        return False


def _is_running(process: str) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.long
def test_what_only_the_command_can_read_is_checked_by_itself(zoo: list[str], tmp_path: Path) -> None:
    write("a.json", TILE)
    piped = json.dumps(BAD).encode()
    for jobs in ("", "--jobs 2"):
        ran = bash(f"dml-tile check a.json - <(cat a.json) {jobs} --format jsonl", tmp_path, piped)
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
        assert [(one["source"].rstrip("0123456789"), one["verdict"]) for one in lines if "verdict" in one] == [
            ("a.json", "accepted"), ("-", "refused"), ("/dev/fd/", "accepted"),
        ]  # fmt: skip


@pytest.mark.long
def test_processes_import_nothing_from_the_current_folder(zoo: list[str], tmp_path: Path) -> None:
    for module in ("multiprocessing", "dml_tile", "signal"):
        write(f"{module}.py", "raise SystemExit('imported from the current folder')")
    program = "from dml_tile.cli.app import main; main()"
    arguments = [sys.executable, "-P", "-c", program, "check", "000.json", "--jobs", "2"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"000.json: accepted")
