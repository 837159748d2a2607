"""The target in processes that are started in a simulation, in each way that Python has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
        within = in_subprocess(), in_pool("spawn")
    return *within, in_subprocess()

def enter(target):
    simulate(target).__enter__()

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
    after += [*map(in_pool, METHODS[:2]), in_subprocess()]  # the fork server is older
print(json.dumps([seen, after]))
"""
    seen, after = seen_by(tmp_path, code)
    assert len(seen) == (5 if hasattr(os, "fork") else 2)
    assert {*seen.values()} == {"5_2+no-typed-uav-loads"}
    assert {*after} == {"6_4"}


def test_pools_and_fork_servers_that_are_older_keep_the_target_of_their_start(tmp_path: Path) -> None:
    code = """
pools = {method: ProcessPoolExecutor(1, mp_context=get_context(method)) for method in METHODS}
ask = lambda: sorted({pool.submit(level).result() for pool in pools.values()} | {in_pool(METHODS[-1])})
with simulate("4_0"):
    seen = [ask()]
    with simulate("5_0"):
        seen.append(ask())
seen.append(ask())
with simulate("4_0"):
    with ProcessPoolExecutor(1, get_context(METHODS[-1]), initializer=enter, initargs=["5_0"]) as pool:
        seen.append([pool.submit(level).result(), pool.submit(in_subprocess).result()])
for pool in pools.values():
    pool.shutdown()
print(json.dumps(seen))
"""
    old = seen_by(tmp_path, code)
    if hasattr(os, "fork"):
        assert old == [["4_0"], ["4_0"], ["4_0"], ["5_0", "5_0"]]


def test_a_grandchild_follows_both_above_it(tmp_path: Path) -> None:
    code = """
with simulate("4_0"):
    print(json.dumps([in_pool(method, nested, target) for method in METHODS for target in ("", "5_0")]))
"""
    levels = seen_by(tmp_path, code)
    assert levels == [["4_0"] * 3, ["5_0", "5_0", "4_0"]] * (len(levels) // 2)


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


def test_a_process_takes_the_variable_of_its_environment(tmp_path: Path) -> None:
    code = """
seen = [level(), in_subprocess()]
with simulate("4_0"):
    seen += [in_subprocess(), in_subprocess(env={"DML_TILE_TARGET": "5_0"}), in_subprocess(env={})]
seen += [level(), in_subprocess()]
print(json.dumps(seen))
"""
    seen = seen_by(tmp_path, code, DML_TILE_TARGET="3_1")
    assert seen == ["3_1", "3_1", "4_0", "5_0", "6_4", "3_1", "3_1"]
