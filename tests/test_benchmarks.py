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
def test_validation_is_measured() -> None:
    shown = run("bench_check.py", "--samples", "1")
    assert "import dml_tile / import numpy" in shown
    assert "a refused check / an accepted one" in shown


@pytest.mark.long
def test_what_tests_feel_is_measured() -> None:
    shown = run("bench_testing.py", "--count", "5", "--samples", "1")
    assert "tiles drawn a second / lists of integers" in shown
    assert "a device's whole life / numpy.tile" in shown
    assert "5 trivial tests, marked / unmarked" in shown


@pytest.mark.long
def test_the_check_of_a_folder_is_measured() -> None:
    shown = run("bench_folder.py", "--count", "20", "--samples", "1")
    assert "20 descriptors, all accepted" in shown
    assert "20 descriptors, every tenth refused" in shown
