"""The target in child processes: started before or after a simulation, in each way that Python has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dml_tile.simulation import process
from dml_tile.simulation.process import FILES_VARIABLE
from tests.helpers.plugin_runs import run

pytestmark = pytest.mark.long

PREPARED = """
import json, os, subprocess, sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context, set_forkserver_preload
from dml_tile import current_target, simulate
from dml_tile.errors import TargetError

METHODS = [method for method in ("fork", "spawn", "forkserver") if hasattr(os, "fork") or method == "spawn"]

def level():
    return current_target().name

def nested(target):
    with simulate(target) if target else nullcontext():
        return in_subprocess(), in_pool("spawn")

def in_pool(method, function=level, *arguments):
    with ProcessPoolExecutor(1, mp_context=get_context(method)) as pool:
        return pool.submit(function, *arguments).result()

def in_subprocess(**options):
    code = "import dml_tile; print(dml_tile.current_target().name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, **options)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]

def in_fork():
    read, write = os.pipe()
    if not os.fork():
        os.write(write, level().encode())
        os._exit(0)
    os.wait()
    return os.read(read, 99).decode()

if __name__ == "__main__":
"""


def seen_by(tmp_path: Path, code: str, **environment: str) -> Any:
    """Return what a program that ends in these lines prints."""
    program = tmp_path / "program.py"
    program.write_text(PREPARED + "\n".join(f"    {line}" for line in code.strip().splitlines()))
    env = {name: value for name, value in os.environ.items() if not name.startswith("DML_TILE_")} | environment
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_processes_that_start_in_a_simulation_follow_it_unless_it_is_a_context_s(tmp_path: Path) -> None:
    code = """
seen = {}
with simulate("5_2+no-typed-uav-loads"):
    seen |= {method: in_pool(method) for method in METHODS}
    seen["subprocess"] = in_subprocess()
    if "fork" in METHODS:
        seen["os.fork"] = in_fork()
after = [in_pool("spawn"), in_subprocess()]
with simulate("4_0", scope="context"):
    after += [*map(in_pool, METHODS), in_subprocess()]
print(json.dumps([seen, after]))
"""
    seen, after = seen_by(tmp_path, code)
    assert len(seen) == (5 if hasattr(os, "fork") else 2)
    assert {*seen.values()} == {"5_2+no-typed-uav-loads"}
    assert {*after} == {"6_4"}


def test_pools_and_fork_servers_that_are_older_follow_each_change(tmp_path: Path) -> None:
    code = """
simulate("6_4")  # from here on, child processes can follow
pools = {method: ProcessPoolExecutor(1, mp_context=get_context(method)) for method in METHODS}
ask = lambda: sorted({pool.submit(level).result() for pool in pools.values()} | {in_pool(METHODS[-1])})
seen = [ask()]
with simulate("4_0"):
    seen.append(ask())
    with simulate("windows-10-2004"):
        seen.append(ask())
    seen.append(ask())
seen.append(ask())
for pool in pools.values():
    pool.shutdown()
print(json.dumps(seen))
"""
    assert seen_by(tmp_path, code) == [["6_4"], ["4_0"], ["windows-10-2004"], ["4_0"], ["6_4"]]


def test_a_grandchild_follows_both_above_it(tmp_path: Path) -> None:
    code = """
with simulate("4_0"):
    print(json.dumps([in_pool(method, nested, target) for method in METHODS for target in ("", "5_0")]))
"""
    levels = seen_by(tmp_path, code)
    assert levels == [["4_0", "4_0"], ["5_0", "5_0"]] * (len(levels) // 2)


@pytest.mark.posix
def test_a_child_that_forks_out_of_a_block_leaves_it(tmp_path: Path) -> None:
    """It uses os.fork."""
    code = """
read, write = os.pipe()
with simulate("4_0", scope="context"), simulate("5_0"):
    child = os.fork()
    if not child:
        before = level()
    else:
        os.wait()
if not child:
    os.write(write, json.dumps([before, level()]).encode())
    os._exit(0)
print(os.read(read, 99).decode())
"""
    assert seen_by(tmp_path, code) == ["5_0", "5_0"]  # its parent is still in the block


def test_the_variable_counts_where_no_process_above_simulates(tmp_path: Path) -> None:
    code = """
seen = [level(), in_subprocess()]
with simulate("4_0"):
    seen += [in_subprocess(), in_subprocess(env={"DML_TILE_TARGET": "5_0"}), in_subprocess(env={})]
    os.environ["DML_TILE_TARGET"] = "2_0"
seen += [level(), in_subprocess()]
print(json.dumps(seen))
"""
    seen = seen_by(tmp_path, code, DML_TILE_TARGET="3_1")
    assert seen == ["3_1", "3_1", "4_0", "5_0", "6_4", "2_0", "2_0"]


def test_a_level_that_cannot_be_read_is_an_error_also_of_commands(tmp_path: Path) -> None:
    code = f"""
seen = [in_subprocess(env=os.environ | {{"{FILES_VARIABLE}": path}}) for path in ("missing", __file__)]
try:
    level()
except TargetError as error:
    seen.append(str(error))
command = [sys.executable, "-m", "dml_tile", "check", "-"]
done = subprocess.run(command, input="{{}}", capture_output=True, text=True)
print(json.dumps([*seen, " ".join(done.stderr.split()), done.returncode]))
"""
    *seen, told, status = seen_by(tmp_path, code, **{FILES_VARIABLE: str(tmp_path / "gone")})
    assert len(seen) == 3
    assert all("the target of the process that started this one cannot be read: " in line for line in seen)
    assert "the target of the process that started this one cannot be" in told
    assert ("Traceback" in told, status) == (False, 2)


def test_the_file_is_made_once_and_goes_with_its_process(tmp_path: Path) -> None:
    code = f"""
from unittest.mock import patch
with patch.dict(os.environ):
    with simulate("4_0"):
        path = os.environ["{FILES_VARIABLE}"]
restored = "{FILES_VARIABLE}" in os.environ
with simulate("5_0"):
    seen = [in_subprocess(), os.environ["{FILES_VARIABLE}"] == path, os.path.exists(path)]
print(json.dumps([path, restored, seen]))
"""
    path, restored, seen = seen_by(tmp_path, code)
    assert (restored, seen) == (False, ["5_0", True, True])
    assert not Path(path).exists()


def test_a_file_that_cannot_be_made_is_no_error_here_but_in_child_processes(tmp_path: Path) -> None:
    code = """
import tempfile
tempfile.tempdir = "/nowhere"
with simulate("4_0"):
    print(json.dumps([level(), in_subprocess()]))
"""
    here, there = seen_by(tmp_path, code)
    assert (here, "the target of the process that started this one cannot be read: " in there) == ("4_0", True)


def test_a_reader_never_sees_half_of_a_change(tmp_path: Path) -> None:
    code = """
TARGETS = ["windows-10-2004", "onnxruntime-directml-1.16.3", "4_0", "5_2+no-typed-uav-loads+no-native-16-bit-ops"]
ASK = "import dml_tile; print({dml_tile.current_target().name for _ in range(200_000)})"
simulate("6_4")
reader = subprocess.Popen([sys.executable, "-c", ASK], stdout=subprocess.PIPE, text=True)
while reader.poll() is None:
    for target in TARGETS:
        with simulate(target):
            pass
print(json.dumps([[*eval(reader.stdout.read())], ["6_4", *TARGETS]]))
"""
    seen, known = seen_by(tmp_path, code)
    assert {*seen} <= {*known}
    assert len(seen) > 1


@pytest.mark.posix
def test_a_forked_process_lets_its_children_follow_it(tmp_path: Path) -> None:
    """It uses os.fork."""
    code = """
from contextlib import contextmanager
simulations = [simulate("4_0"), simulate("5_0")]  # made, and published, before the fork
read, write = os.pipe()
with simulations[0]:
    if not os.fork():
        with simulations[1]:
            seen = [level(), in_subprocess(), in_pool("spawn")]
        os.write(write, json.dumps([*seen, in_subprocess()]).encode())
        os._exit(0)
    os.wait()
print(os.read(read, 99).decode())
"""
    assert seen_by(tmp_path, code) == ["5_0", "5_0", "5_0", "4_0"]


@pytest.mark.posix
def test_a_forked_test_is_followed_by_what_it_starts(pytester: pytest.Pytester) -> None:
    """It runs each test in a fork, as pytest-forked does, whose release does not run on this pytest."""
    pytester.makeconftest(
        """
        import os, pytest
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item):
            if not os.fork():
                reports = runtestprotocol(item, log=False)
                os._exit(0 if all(report.passed for report in reports) else 1)
            assert os.wait()[1] == 0, item
            return True
        """
    )
    source = """
    def test_it(dml_target):
        code = "import dml_tile; print(dml_tile.current_target().name)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.strip() == dml_target.name
    """
    assert run(pytester, source, "--dml-target=2_0,4_0").ret == pytest.ExitCode.OK


DAMAGED = {
    "garbage": lambda path: path.write_bytes(b"\xff" * 4096),
    "no target": lambda path: path.write_bytes(b"\1".ljust(256, b"\0") + b"windows-7".ljust(3840, b"\0")),
    "blanks": lambda path: path.write_bytes(b"\1".ljust(256, b"\0") + b" ".ljust(3840, b"\0")),
    "too short": lambda path: path.write_bytes(b"\1"),
    "empty": lambda path: path.write_bytes(b""),
    "a folder": lambda path: path.mkdir(),
    "a FIFO": lambda path: os.mkfifo(path),
}


@pytest.mark.posix
@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_file_without_a_target_is_an_error(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    """It makes a FIFO."""
    damage(tmp_path / "level")
    code = """
try:
    level()
except TargetError as error:
    print(json.dumps(str(error)))
"""
    assert "the process that started this one" in seen_by(tmp_path, code, **{FILES_VARIABLE: str(tmp_path / "level")})


@pytest.mark.posix
def test_a_file_that_a_killed_process_left_goes_with_the_next_run(tmp_path: Path) -> None:
    """It kills a process."""
    code = f"""
import signal, time
start = "from dml_tile import simulate; import os; simulate('4_0'); print(os.environ['{FILES_VARIABLE}'], flush=True)"
waiting = [subprocess.Popen([sys.executable, "-c", start + "; input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True) for _ in range(2)]
paths = [process.stdout.readline().strip() for process in waiting]
waiting[0].kill(), waiting[0].wait()
before = [*map(os.path.exists, paths)]
simulate("5_0")
after = [*map(os.path.exists, paths)]
waiting[1].communicate("")
print(json.dumps([before, after]))
"""
    assert seen_by(tmp_path, code, TMPDIR=str(tmp_path)) == [[True, True], [False, True]]


@pytest.mark.posix
def test_a_file_is_removed_before_its_maker_can_lock_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its maker locks it a moment after it made it, and makes another if it is gone by then."""
    import fcntl

    path, removed, unlink = tmp_path / "level", list[Path](), os.unlink

    def unlink_locked(name: str) -> None:
        with path.open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        unlink(name)
        removed.append(path)

    path.touch()
    monkeypatch.setattr(os, "unlink", unlink_locked)
    process._remove_stale(str(path))
    assert removed == [path]
