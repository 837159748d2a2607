"""Checks in several processes: the same bytes in the same order, whatever becomes of a process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Final

import pytest

from dml_tile.checks.one_file import Event, FileCheck, FileEnd, in_this_process
from dml_tile.cli.check_files import MIN_FILES, engine_for, engine_of
from dml_tile.directml.targets import Target
from dml_tile.errors import Problem
from dml_tile.execution.processors import processor_count
from dml_tile.sweeps.pipes import pipes_here
from dml_tile.sweeps.processes import in_processes
from tests.helpers.check_files import BAD, INT64, TILE, write
from tests.helpers.command_line import Call, bash
from tests.helpers.paths import EXAMPLES

pytestmark = pytest.mark.long

CHECK: Final = FileCheck((Target.parse("2_0"), Target.parse("6_4")), "both")

DEADLY: Final = """
import os
from dml_tile.checks.one_file import FileCheck
from dml_tile.sweeps import worker
events = FileCheck.events
def deadly(check, file, sources):
    for event in events(check, file, sources):
        yield event
        if "dies" in file:
            os._exit(7)
FileCheck.events = deadly
worker.main()
"""


@pytest.fixture
def zoo(call: Call) -> list[str]:
    """Files of all kinds, of which some cannot be read."""
    names = [write(f"{i:03}.json", (TILE, BAD, INT64, {"InputTensor": 1})[i % 4]) for i in range(30)]
    for i in range(4):
        names.append(f"m{i}.onnx")
        shutil.copy(EXAMPLES / "models" / "two_tiles.onnx", names[-1])
    names.append(write("broken.onnx", "no model"))
    names.append("missing.json")
    names.append(write("many.jsonl", "\n".join('{"InputTensor": null}' if i % 9 else "{" for i in range(2000))))
    return names


@pytest.mark.parametrize("form", ["json", "text", "sarif", "junit", "github", "html"])
def test_two_processes_write_the_bytes_of_one(form: str, zoo: list[str], call: Call) -> None:
    arguments = ["check", *zoo, "-t", "windows-11-21h2,6_4", "--format", form, "--dim", "nowhere=1"]
    alone, together = call(*arguments, "--jobs", "1"), call(*arguments, "--jobs", "2")
    assert together.stdout == alone.stdout
    assert together.stderr == alone.stderr
    assert together.exit_code == alone.exit_code == 2


def test_more_processes_than_files_do_no_harm(zoo: list[str]) -> None:
    assert list(in_processes(5)(CHECK, zoo[:1])) == list(in_this_process(CHECK, zoo[:1]))
    assert list(in_processes(2)(CHECK, [])) == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_process_that_dies_costs_its_file(jobs: int, zoo: list[str]) -> None:
    files = [*zoo[:3], write("dies.json", TILE), *zoo[3:12], write("dies too.json", TILE), *zoo[12:]]
    others = [pair for pair in in_this_process(CHECK, files) if "dies" not in pair[0]]
    told = list(in_processes(jobs, (sys.executable, "-c", DEADLY))(CHECK, files))
    assert [pair for pair in told if "dies" not in pair[0]] == others
    of_the_dead = [(file, event) for file, event in told if "dies" in file]
    for file in ("dies.json", "dies too.json"):
        problem, end = (event for name, event in of_the_dead if name == file)
        assert problem == Problem("", "the process that checked it ended (status 0x7)")
        assert isinstance(end, FileEnd)
        assert not end.summary.is_whole


ONCE: Final = """
import os
from dml_tile.checks.one_file import FileCheck
from dml_tile.sweeps import worker
events = FileCheck.events
def deadly_once(check, file, sources):
    if "011" in file:
        try:
            os.close(os.open("died", os.O_CREAT | os.O_EXCL))
            os._exit(7)
        except FileExistsError:
            pass
    yield from events(check, file, sources)
FileCheck.events = deadly_once
worker.main()
"""


def test_a_process_that_dies_once_costs_nothing(zoo: list[str]) -> None:
    told = list(in_processes(1, (sys.executable, "-c", ONCE))(CHECK, zoo))
    assert Path("died").exists()
    assert told == list(in_this_process(CHECK, zoo))


WITHIN: Final = """
import os
from dml_tile.checks.one_file import FileCheck
from dml_tile.sweeps import worker
events = FileCheck.events
def deadly(check, file, sources):
    for i, event in enumerate(events(check, file, sources)):
        yield event
        if "dies" in file and i == 400:
            os._exit(7)
FileCheck.events = deadly
worker.main()
"""


def test_what_was_told_of_a_file_before_its_process_died_is_told_once(zoo: list[str]) -> None:
    tiles = "".join(f"{json.dumps(TILE)}\n" for _ in range(600))
    files = [*zoo[:12], write("dies.jsonl", tiles), *zoo[12:]]
    told = list(in_processes(1, (sys.executable, "-c", WITHIN))(CHECK, files))
    assert [pair for pair in told if "dies" not in pair[0]] == list(in_this_process(CHECK, zoo))
    *results, problem, end = (event for file, event in told if "dies" in file)
    assert 200 < len(results) <= 400
    assert results == [event for _, event in in_this_process(CHECK, ["dies.jsonl"])][: len(results)]
    assert problem == Problem("", "the process that checked it ended (status 0x7)")
    assert isinstance(end, FileEnd)


def test_processes_that_cannot_be_started_say_so(zoo: list[str]) -> None:
    told = list(in_processes(2, ("/no/such/program",))(CHECK, zoo[:3]))
    problems = [event for _, event in told if isinstance(event, Problem)]
    assert [problem.message[:40] for problem in problems] == ["no process can be started to check it: ["] * 3


def test_processes_that_end_at_once_cost_every_file(zoo: list[str]) -> None:
    told = list(in_processes(2, (sys.executable, "-c", "raise SystemExit(3)"))(CHECK, zoo[:3]))
    problems = [event for _, event in told if isinstance(event, Problem)]
    assert problems == [Problem("", "the process that checked it ended (status 0x3)")] * 3


def test_one_process_checks_until_more_pay() -> None:
    assert engine_for(MIN_FILES - 1) is in_this_process
    assert (engine_for(MIN_FILES) is in_this_process) == (processor_count() == 1)
    assert engine_of(1) is in_this_process
    assert engine_of(2) is not in_this_process


@pytest.mark.posix
def test_a_check_that_is_left_ends_its_processes(zoo: list[str]) -> None:
    events = in_processes(2)(CHECK, [*zoo] * 50)
    next(events)
    assert len(_children(os.getpid())) == 2
    started = time.monotonic()
    del events
    assert time.monotonic() - started < 20
    assert not _children(os.getpid())


@pytest.mark.posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_processes(number: signal.Signals, tmp_path: Path) -> None:
    files = [str(tmp_path / f"{i}.jsonl") for i in range(20)]
    for file in files:
        Path(file).write_text(f"{json.dumps(TILE)}\n" * 20_000)
    command = [sys.executable, "-m", "dml_tile", "check", "--format", "json", "--jobs", "2", *files]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path, start_new_session=True
    )
    workers: list[str] = []
    while len(workers) < 2:
        assert process.poll() is None
        time.sleep(0.05)
        workers = _children(process.pid)
    os.killpg(process.pid, number)
    process.communicate(timeout=60)
    assert process.returncode in (1, 130, -number)
    assert not [worker for worker in workers if _is_running(worker)]


def _children(process: int) -> list[str]:
    """The running processes that a process has started to check files."""
    statuses = Path("/proc").glob("[0-9]*/status")
    return [
        status.parent.name for status in statuses if _has_parent(status, process) and _is_running(status.parent.name)
    ]


def _has_parent(status: Path, process: int) -> bool:
    try:
        return f"PPid:\t{process}\n" in status.read_text()
    except OSError:
        return False


def _is_running(process: str) -> bool:
    try:
        return b"sweeps.worker" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def test_what_only_the_command_can_read_is_checked_by_itself(zoo: list[str], tmp_path: Path) -> None:
    write("a.json", TILE)
    piped = json.dumps(BAD).encode()
    for jobs in ("", "--jobs 2"):
        ran = bash(f"dml-tile check a.json - <(cat a.json) {jobs} --format jsonl", tmp_path, piped)
        told = [json.loads(line) for line in ran.stdout.splitlines()]
        assert [(one["source"].rstrip("0123456789"), one["verdict"]) for one in told if "verdict" in one] == [
            ("a.json", "accepted"), ("-", "refused"), ("/dev/fd/", "accepted"),
        ]  # fmt: skip


def test_pipes_are_checked_in_their_turn(zoo: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere: list[list[str]] = []

    def engine(check: FileCheck, files: Iterable[str]) -> Iterator[tuple[str, Event]]:
        elsewhere.append(list(files))
        yield from in_this_process(check, elsewhere[-1])

    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(json.dumps(BAD).encode())))
    files = [zoo[0], zoo[1], "-", zoo[2], "memory://a.json", "missing.json", os.devnull]
    told = [file for file, event in pipes_here(engine)(CHECK, files) if isinstance(event, FileEnd)]
    assert told == files
    assert elsewhere == [zoo[:2], [zoo[2], "memory://a.json", "missing.json"]]
