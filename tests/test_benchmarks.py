"""The benchmarks run, and tell what they say they do; no time is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.helpers.paths import ROOT

BENCHMARKS = ROOT / "benchmarks"


def run(script: str, *arguments: str) -> str:
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_tiling_is_measured_against_what_is_installed(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    shown = run("bench_tile.py", "--only", "200 bytes", "--samples", "1", "--seconds", "0", "--json", str(path))
    assert "geometric mean" in shown
    assert "numpy.tile: every shape" in shown
    figures = json.loads(path.read_text())
    (row,) = figures["rows"]
    assert (row["shape"], row["bytes"]) == ("200 bytes", 200)
    assert {"numpy.tile", "np.copyto"} <= set(row["ratios"])
    assert all(ratio > 0 for ratio in row["ratios"].values())
    assert set(figures) == {"date", "machine", "versions", "rows"}


def test_validation_is_measured() -> None:
    shown = run("bench_check.py", "--count", "100", "--samples", "1")
    assert "100 descriptors, loaded and checked / one by one" in shown
    assert "import dml_tile / import numpy" in shown


def test_the_check_of_a_folder_is_measured() -> None:
    shown = run("bench_folder.py", "--count", "20", "--samples", "1")
    assert "20 descriptors, all accepted" in shown
    assert "20 descriptors, every tenth refused" in shown
