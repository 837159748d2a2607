"""Type checkers accept the calls that are documented, and refuse those that are wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.helpers.paths import ROOT

api = pytest.importorskip("mypy.api")

RIGHT: Final = """\
from collections.abc import Callable
import numpy as np
from dml_tile import BufferTensorDesc, Device, Finding, OperatorDesc, Target, TargetLike, TensorDesc, TileOperatorDesc
from dml_tile import data_type_of, dtype_of, tile

buffer = BufferTensorDesc(data_type="FLOAT32", sizes=[2, 3])
typed = BufferTensorDesc(data_type=np.float32, sizes=(2, np.int64(3)), strides=[4, 1], flags=["OWNED_BY_DML"])
bare = TileOperatorDesc(input_tensor=buffer, output_tensor=TensorDesc(desc=buffer), repeats=[1, 1])
null = TileOperatorDesc(input_tensor=None, output_tensor=None, repeats=None, repeats_count=np.uint32(2))
inferred = TileOperatorDesc.from_input(data_type=np.dtype("int8"), sizes=np.array([2]), repeats=[2])
lying = TileOperatorDesc.from_array(np.zeros((2, 3)), [1, 2])
operator = OperatorDesc(type="TILE", desc=bare.replace(repeats=[2, 2]))
sizes: tuple[int, ...] | None = buffer.sizes
there_and_back: np.dtype[np.float32] = dtype_of(data_type_of(np.float32))
tile(np.zeros(3), 2)
findings: tuple[Finding, ...] = removal.findings if (removal := Device().removal) else ()


def test_falls_back(dml_simulate: Callable[[TargetLike], Target], dml_device: Device, dml_target: Target) -> None:
    older: Target = dml_simulate("2_0")
    same: Target = dml_simulate(older)
    assert dml_device.target == dml_target != same
"""

WRONG: Final = """\
from collections.abc import Callable
from dml_tile import BufferTensorDesc, Target, TargetLike, TileOperatorDesc

BufferTensorDesc(data_type="FLOAT32", sizes=[2.5])
BufferTensorDesc(data_type=1.5, sizes=[2])
BufferTensorDesc(data_type="FLOAT32", size=[2])
TileOperatorDesc(input_tensor="FLOAT32", output_tensor=None, repeats=[1])


def test_falls_back(dml_simulate: Callable[[TargetLike], Target]) -> None:
    dml_simulate(2.0)
"""


ERRORS: Final = {("wrong.py", line) for line in (4, 5, 6, 7, 11)}
"""The files and lines of all errors."""


@pytest.fixture
def programs(tmp_path: Path) -> list[str]:
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    return [str(tmp_path / name) for name in ("right.py", "wrong.py")]


@pytest.mark.long
def test_mypy_agrees(programs: list[str]) -> None:
    ours = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]  # .ci/run fills it
    out, err, _ = api.run([*ours, *programs])
    assert err == ""
    reported = [line.split(":") for line in out.splitlines() if ": error:" in line]
    assert {(Path(file).name, int(line)) for file, line, *_ in reported} == ERRORS, out


@pytest.mark.long
def test_pyright_agrees(programs: list[str], tmp_path: Path) -> None:
    pyright = shutil.which("pyright", path=Path(sys.executable).parent) or shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    command = [pyright, "--outputjson", "--pythonpath", sys.executable, *programs]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    if not ran.stdout.startswith("{"):
        pytest.skip("pyright cannot be run; it downloads what it needs when it first is")
    reported = [one for one in json.loads(ran.stdout)["generalDiagnostics"] if one["severity"] == "error"]
    assert {(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in reported} == ERRORS, reported
