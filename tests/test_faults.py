"""Faults of the surroundings: signals, full disks, closed streams, few descriptors, little memory, odd settings."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO, RawIOBase
from pathlib import Path
from typing import Any

import psutil
import pytest

from dml_tile.checks.catalogue import RULES
from tests.helpers.check_files import TILE
from tests.helpers.command_line import bash
from tests.helpers.dxdispatch_models import model, write_file, zeros
from tests.helpers.forks import python
from tests.helpers.ir_models import burn_tile

pytestmark = pytest.mark.long

COMMANDS = {name: (name,) for name in ("check", "lower", "show", "run")} | {"emit": ("emit", "--lang", "json")}
"""The commands that read a file, with the options that each must have."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def started(
    *arguments: str, cwd: Path, python: Sequence[str] = (sys.executable,), **options: Any
) -> subprocess.Popen[bytes]:
    command = [*python, "-m", "dml_tile", *arguments]
    return subprocess.Popen(command, cwd=cwd, stderr=subprocess.PIPE, **{"stdout": subprocess.PIPE, **options})


@contextmanager
def reading(folder: Path, *arguments: str, pipe: str = "a.json", **options: Any) -> Iterator[tuple[Any, RawIOBase]]:
    """A command that reads a pipe, and the pipe's other end; both end with the block."""
    os.mkfifo(folder / pipe)
    process = started(*arguments, cwd=folder, **options)
    end = None
    for _ in range(600):
        with suppress(OSError):
            end = os.open(folder / pipe, os.O_WRONLY | os.O_NONBLOCK)
            break
        assert process.poll() is None, "it ended before it opened the pipe"
        time.sleep(0.1)
    assert end is not None, "it never opened the pipe"
    with FileIO(end, "wb") as writer:
        yield process, writer
        process.kill()


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        *((("check", "tile.json", "a.json", "--format", "json:out.json"), number) for number in SIGNALS),
        *(((*command, "a.json"), signal.SIGINT) for command in COMMANDS.values()),
    ],
)
def test_a_signal_ends_a_command_that_reads_and_leaves_no_part_of_a_report(
    tmp_path: Path, arguments: tuple[str, ...], number: signal.Signals
) -> None:
    (tmp_path / "tile.json").write_text(json.dumps(TILE))
    (tmp_path / "out.json").write_text("old")
    with reading(tmp_path, *arguments) as (process, writer):
        writer.write(b"{")
        time.sleep(0.5)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert b"Traceback" not in errors
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.json", "out.json", "tile.json"]
    assert (tmp_path / "out.json").read_text() == "old"


def test_a_signal_that_comes_while_modules_are_imported_ends_a_command_in_silence(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)")
    process = started("levels", cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == -signal.SIGINT


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what a process does")
@pytest.mark.parametrize(("command", "number"), [*zip(["levels", "explain", "schema"], SIGNALS, strict=True)])
def test_a_signal_ends_a_command_that_writes_to_nobody(tmp_path: Path, command: str, number: signal.Signals) -> None:
    unread, full = os.pipe()
    os.set_blocking(full, False)
    with suppress(BlockingIOError):
        while True:
            os.write(full, bytes(4096))
    os.set_blocking(full, True)
    process = started(command, cwd=tmp_path, stdout=full)
    os.close(full)
    times_asleep = 0
    while times_asleep < 10:  # a second: it waits for whoever reads what it writes
        time.sleep(0.1)
        times_asleep = times_asleep + 1 if psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING else 0
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    os.close(unread)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert b"Traceback" not in errors


def test_a_hangup_that_nohup_ignores_stays_ignored(tmp_path: Path) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with reading(tmp_path, "check", "a.json", preexec_fn=ignore) as (process, writer):
        process.send_signal(signal.SIGHUP)
        writer.write(json.dumps(TILE).encode())
        writer.close()
        assert process.communicate(timeout=60)[0].startswith(b"a.json: accepted")


READS_A_MODEL = """
import subprocess, sys
from dml_tile.readers.model_names import KnownShapes
from dml_tile.readers.sandbox.child import Order
command = [sys.executable, "-m", "dml_tile.readers.sandbox.child"]
subprocess.run(command, input=Order("m.xml", "OpenVINO", KnownShapes(), 60, 2**32).line())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's kernel tells the process that its parent has ended")
def test_the_process_that_reads_a_model_ends_with_its_parent(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    with reading(tmp_path, pipe="m.xml", python=[sys.executable, "-c", READS_A_MODEL]) as (process, _):
        (child,) = psutil.Process(process.pid).children()
        process.kill()
        process.communicate(timeout=60)
        _, left = psutil.wait_procs([child], timeout=10)
        assert all(each.status() == psutil.STATUS_ZOMBIE for each in left)


@pytest.mark.parametrize("arguments", [*COMMANDS.values(), ("check", "tile.json", "--baseline")], ids=" ".join)
def test_a_pipe_that_nobody_writes_to_is_a_problem(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "tile.json").write_text(json.dumps(TILE))
    os.mkfifo(tmp_path / "a.json")
    program = (
        "import sys; from dml_tile.files import whole; whole.MAX_SECONDS_WITHOUT_WRITER = 0.2; "
        f"sys.argv = ['dml-tile', *{arguments!r}, 'a.json']; from dml_tile.cli.app import main; main()"
    )
    done = subprocess.run([*python(), "-c", program], cwd=tmp_path, capture_output=True, check=False, timeout=120)
    assert done.returncode == 2
    assert b"is a pipe that nobody wrote to for 0.2 s" in done.stderr


def limited(kind: int, count: int) -> Callable[[], None]:
    """Returns what limits a resource of the process that calls it; what passes the limit is an error and no signal."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(kind, (count, count))

    return limit


MEMORY_FAILS = """
import sys, jiter
class PanicException(BaseException):
    "As jiter's, which no module exports."
def failing(*arguments, **options):
    raise {error}
jiter.from_json = failing
from dml_tile.cli.app import main
main()
"""


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("error", ["MemoryError", "PanicException"])
def test_memory_that_runs_out_is_one_line(tmp_path: Path, command: str, error: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(TILE))
    program = [*python(), "-c", MEMORY_FAILS.format(error=error), *COMMANDS[command], "a.json"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"dml-tile: there is not enough memory\n"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, nothing bounds a process's memory so")
@pytest.mark.parametrize("kibibytes", [300_000, 500_000, 700_000, 900_000])
def test_a_document_that_takes_too_much_memory_is_one_line(tmp_path: Path, kibibytes: int) -> None:
    (tmp_path / "much.json").write_text("[" + "[[]]," * 4_000_000 + "[]]")
    done = bash(
        f"export RUST_BACKTRACE=1; ulimit -v {kibibytes}; dml-tile check much.json", tmp_path, starts_python=True
    )
    assert (done.returncode, done.stderr) == (2, b"dml-tile: there is not enough memory\n")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, nothing bounds a process's memory so")
@pytest.mark.parametrize("command", [*COMMANDS, "levels", "explain"])
def test_a_small_file_takes_little_memory(tmp_path: Path, command: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(model() if command == "run" else TILE))
    arguments = (*COMMANDS[command], "a.json") if command in COMMANDS else [command]
    done = bash(f"ulimit -v 300000; dml-tile {' '.join(arguments)}", tmp_path, starts_python=True)
    assert (done.returncode, done.stderr) == (0, b"")


def without_a_superuser_s_rights() -> None:
    """Lets permissions hold for the programs that this process is going to run, whoever runs them."""
    drop_from_bounding_set, overriding_permissions, searching_all = 24, 1, 2
    for capability in (overriding_permissions, searching_all):
        ctypes.CDLL(None).prctl(drop_from_bounding_set, capability, 0, 0, 0)


# with fewer, Python itself may not start where a package hooks into it
@pytest.mark.parametrize(("command", "count"), [*zip(COMMANDS, (8, 6, 8, 6, 8), strict=True)])
def test_few_descriptors_give_no_traceback(tmp_path: Path, command: str, count: int) -> None:
    (tmp_path / "a.json").write_text(json.dumps(TILE))
    process = started(*COMMANDS[command], "a.json", cwd=tmp_path, preexec_fn=limited(resource.RLIMIT_NOFILE, count))
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, 2)
    assert b"Traceback" not in errors


def test_few_descriptors_are_told_of_the_model(tmp_path: Path) -> None:
    burn_tile(tmp_path / "m.xml")
    done = bash("ulimit -n 8; dml-tile check m.xml", tmp_path, starts_python=True)
    assert done.returncode == 2
    assert b"standard output" not in done.stderr
    assert b"m.xml: no process can be started to read it: Too many open files" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other superusers")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("check a.json --format json:sub/out.json", b"sub/out.json: Permission denied"),
        ("check a.json --format html:sub/out.html", b"sub/out.html: Permission denied"),
        ("check bad.json --format json -t 1_0,2_0,4_0,5_0 --write-baseline base.json", b"base.json: File too large"),
        ("check bad.json --write-baseline sub/base.json", b"sub/base.json: Permission denied"),
        ("show a.json -o sub/out.svg", b"sub/out.svg: Permission denied"),
        ("run m.json --output-dir sub", b"'sub' is no folder that can be written to"),
        ("run m.json", b"r.bin: File too large"),
        ("check closed.json", b"closed.json: Permission denied"),
        ("check closed.onnx -t 6_4", b"closed.onnx: Permission denied"),
        ("check folder", b"folder: Permission denied"),
    ],
)
def test_what_may_not_be_read_or_written_leaves_nothing(tmp_path: Path, arguments: str, told: bytes) -> None:
    writing = model(resources={"R": zeros(10**6)}, dispatchables={}, commands=[write_file("R", "r.bin")])
    for name, contents in {"a.json": TILE, "m.json": writing, "closed.json": TILE, "closed.onnx": TILE}.items():
        (tmp_path / name).write_text(json.dumps(contents))
        (tmp_path / name).chmod(0 if name.startswith("closed") else 0o644)
    (tmp_path / "bad.json").write_text(json.dumps([TILE | {"Repeats": [0]}] * 9))
    (tmp_path / "base.json").write_text(known := '{"version": 1, "findings": []}')
    (tmp_path / "sub").mkdir(mode=0o555)
    (tmp_path / "folder").mkdir(mode=0)
    before = {*tmp_path.iterdir()}

    def restricted() -> None:
        limited(resource.RLIMIT_FSIZE, 1000)()
        without_a_superuser_s_rights()

    # else Python, also that of the process which reads models, would leave modules that are cut off at the limit
    uncached = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    process = started(*arguments.split(), cwd=tmp_path, env=uncached, preexec_fn=restricted)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert told in errors
    assert b"Traceback" not in errors
    assert {*tmp_path.iterdir()} == before
    assert (tmp_path / "base.json").read_text() == known
    assert not [*(tmp_path / "sub").iterdir()]


@pytest.mark.parametrize(
    ("options", "locale"), [(["-OO"], "C"), (["-I"], "tr_TR.UTF-8"), (["-OO", "-I"], "xx_YY"), (["-X", "utf8=0"], "C")]
)
def test_the_surroundings_do_not_change_the_answer(tmp_path: Path, options: list[str], locale: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(TILE | {"Repeats": [2]}))
    surroundings = {"PATH": os.environ["PATH"], "LC_ALL": locale, "PYTHONCOERCECLOCALE": "0"}  # and no HOME
    python = [sys.executable, *options]
    process = started("check", "a.json", "-t", "6_4", cwd=tmp_path, python=python, env=surroundings)
    shown, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (1, b"")
    assert b"DML-TILE-OutputTensor-Sizes" in shown


def test_rules_say_the_same_where_python_drops_docstrings() -> None:
    code = "from dml_tile.checks.catalogue import RULES; print([(each.id, each.says) for each in RULES.values()])"
    said = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, check=True, text=True).stdout
    assert said == f"{[(each.id, each.says) for each in RULES.values()]}\n"


@pytest.mark.parametrize(
    ("command", "status", "told"),
    [
        ("check -", 0, "-: accepted at 6_4"),
        ("check - --format html", 0, "<title>"),
        ("check - --jobs 2", 0, "-: accepted at 6_4"),
        ("check {elsewhere} --format github", 1, "::error file={elsewhere},"),
        ("check a.json", 2, "dml-tile: a.json: No such file or directory"),
        ("check ../a.json --format github", 2, "::error file=../a.json,"),
        ("check .", 2, "dml-tile: .: "),
        ("check - --format json:a.json", 2, "dml-tile: a.json: No such file or directory"),
        ("check - --write-baseline a.json", 2, "dml-tile: a.json: No such file or directory"),
        ("show - --output a.svg", 2, "dml-tile: a.svg: No such file or directory"),
    ],
)
def test_a_removed_current_folder_is_no_fault_of_the_output(
    tmp_path: Path, command: str, status: int, told: str
) -> None:
    elsewhere = tmp_path / "wrong.json"
    elsewhere.write_text(json.dumps(TILE | {"Repeats": [2]}))
    (tmp_path / "gone").mkdir()
    words = f"cd gone && rmdir ../gone && dml-tile {command.format(elsewhere=elsewhere)}"
    ran = bash(words, tmp_path, json.dumps(TILE).encode(), starts_python=command == "check -")
    assert ran.returncode == status
    assert told.format(elsewhere=elsewhere) in (ran.stdout + ran.stderr).decode()
    assert b"Traceback" not in ran.stderr
    assert b"standard output" not in ran.stderr
