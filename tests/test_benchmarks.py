"""The benchmarks run, and tell what they say they do; no time is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

BENCHMARKS = ROOT / "benchmarks"


def run(script: str, *arguments: str) -> str:
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_tiling_is_measured_against_what_is_installed(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    shown = run("bench_tile.py", "--only", "200 bytes", "--samples", "1", "--seconds", "0", "--json", str(path))
    assert "geometric mean" in shown
    assert "numpy.tile: worst" in shown
    figures = json.loads(path.read_text())
    (row,) = figures["rows"]
    assert (row["shape"], row["bytes"]) == ("200 bytes", 200)
    assert {"bound", "tile", "execute", "numpy.tile", "np.copyto"} <= set(row["seconds"])
    assert all(seconds > 0 for seconds in row["seconds"].values())
    assert set(figures) == {"date", "machine", "versions", "rows"}


@pytest.mark.long
def test_a_missed_goal_exits_1(tmp_path: Path) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(BENCHMARKS)!r})
import bench_tile
bench_tile.EXAMPLE_GOALS["bound"] = 1e9
bench_tile.main(["200 bytes"], goals=True, samples=1, seconds=0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, text=True, timeout=300)
    assert "1000000000.00" in done.stdout
    assert "not reached" in done.stdout
    assert done.returncode != 0


def test_random_shapes_are_the_same_for_a_seed_and_within_their_bounds() -> None:
    code = f"""
import sys
sys.path.insert(0, {str(BENCHMARKS)!r})
from shapes import LAYOUTS, MAX_BYTES, MIN_BYTES, random_shapes
shapes = random_shapes(300, 5)
assert shapes == random_shapes(300, 5) != random_shapes(300, 6)
assert all(MIN_BYTES <= shape.written <= MAX_BYTES for shape in shapes)
assert {{shape.size for shape in shapes}} == {{1, 2, 4, 8}}
assert {{len(shape.sizes) for shape in shapes}} == set(range(1, 9))
assert {{shape.name.split(", ")[-1] for shape in shapes}} == set(LAYOUTS)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "rows"),
    [
        ("bench_check.py", ["import dml_tile / import numpy", "a refused check / an accepted one"]),
        ("bench_testing.py --count 5", ["tiles drawn a second / lists of integers", "5 trivial tests, marked / unmar"]),
        ("bench_folder.py --count 20", ["20 descriptors, all accepted", "20 descriptors, every tenth refused"]),
    ],
)
def test_checks_and_what_tests_feel_are_measured(command: str, rows: list[str]) -> None:
    shown = run(*command.split(), "--samples", "1")
    assert all(row in shown for row in rows), shown
