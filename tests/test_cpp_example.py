"""examples/cpp: a C++ project whose tests ask dml_tile in an embedded Python, built with CMake and run with CTest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from tests.helpers.compilers import CPP_TESTS, needs_compiler

EXAMPLE: Final = Path(__file__).parent.parent / "examples" / "cpp"
CMAKE: Final = shutil.which("cmake")
CTEST: Final = shutil.which("ctest")
has_libpython: Final = (
    bool(sysconfig.get_config_var("Py_ENABLE_SHARED"))
    or Path(str(sysconfig.get_config_var("LIBDIR")), str(sysconfig.get_config_var("LDLIBRARY"))).is_file()
)

pytestmark = [
    pytest.mark.long,
    needs_compiler,
    pytest.mark.skipif(not (CMAKE and CTEST and find_spec("pybind11")), reason="needs cmake and pybind11"),
    pytest.mark.skipif(not has_libpython, reason="needs libpython to embed"),
]


def ran(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_the_example_builds_and_a_wrong_descriptor_fails_with_its_reason(tmp_path: Path) -> None:
    assert CMAKE
    assert CTEST
    options = (f"-DDIRECTML_INCLUDE_DIRS={CPP_TESTS}", f"-DPython_EXECUTABLE={sys.executable}")
    for step in (("-S", EXAMPLE, "-B", tmp_path, *options), ("--build", tmp_path)):
        made = ran(CMAKE, *step)
        assert made.returncode == 0, made.stdout + made.stderr
    tested = ran(CTEST, "--test-dir", tmp_path, "--output-on-failure")
    assert "100% tests passed, 0 tests failed out of 4" in tested.stdout, tested.stdout + tested.stderr
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    failing = subprocess.run(
        [tmp_path / "test_tiles", "odd", "6_4"], capture_output=True, text=True, check=False, env=surroundings
    )
    assert failing.returncode == 1
    (reason,) = failing.stdout.splitlines()[1:]
    assert reason.startswith("[DML-BUFFER-TotalTensorSizeInBytes-minimum] InputTensor.TotalTensorSizeInBytes: ")
    assert reason.endswith("6 was provided, but at least 8 was expected")
