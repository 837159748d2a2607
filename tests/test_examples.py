"""The examples, of which a library is tested at each of its targets and a C++ project by CTest, and the benchmarks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.helpers.compilers import (
    COMPILERS,
    DIRECTMLX,
    WARNINGS,
    compiled,
    link_directx_headers,
    needs_compiler,
    needs_directmlx,
    needs_real_headers,
    real_headers,
)
from tests.helpers.pages import blocks_of
from tests.helpers.paths import EXAMPLES, ROOT
from tests.helpers.plugin_runs import OTHERS, without

pytestmark = pytest.mark.long

OF_FEWER_TARGETS: Final = {
    "test_labels_need_a_higher_level": 2,
    "test_labels_stay_on_the_gpu": 2,
    "test_labels_are_pairs": 1,
    "test_sessions_fall_back_on_windows_11_21h2": 2,
    "test_softmax_is_directml_s": 1,
}
"""How often the tests of docs/testing.md and docs/testing-reference.md run that do not run at all three targets."""

CHOICES = ("DML_TILE_TARGET", "PYTEST_ADDOPTS")


def pytest_in_a_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in CHOICES}
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *without(*OTHERS), *arguments]
    return subprocess.run(command, cwd=ROOT, env=clean | environment, capture_output=True, check=False, text=True)


@pytest.mark.parametrize(
    ("environment", "outcome"), [({}, "5 passed in"), ({"DML_TILE_TARGET": "6_4"}, "1 passed, 1 deselected in")]
)
def test_the_fallback_passes_at_its_targets_or_the_variables(environment: dict[str, str], outcome: str) -> None:
    done = pytest_in_a_process(str(EXAMPLES / "fallback"), **environment)
    assert done.returncode == 0
    assert f"= {outcome}" in done.stdout


def test_the_tests_of_the_pages_on_testing_pass(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    pages = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("testing.md", "testing-reference.md")]
    files = {block.file: block.text for page in pages for block in blocks_of(page) if block.file}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    done = pytest_in_a_process(str(tmp_path / "suite"), "-W", "error")
    assert done.returncode == 0, done.stdout
    passed = Counter(re.findall(r"::(\w+)(?:\[\S+\])? PASSED", done.stdout))
    names = re.findall(r"def (test_\w+)", "".join(files.values()))
    assert passed == dict.fromkeys(names, 3) | OF_FEWER_TARGETS


# C++

CMAKE: Final = shutil.which("cmake")
CTEST: Final = shutil.which("ctest")


COMMAND: Final = shutil.which("dml-tile", path=str(Path(sys.executable).parent))


def ran(*command: str | Path, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


@needs_compiler
@pytest.mark.skipif(not (CMAKE and CTEST), reason="needs cmake")
def test_the_cpp_project_builds_and_a_wrong_descriptor_fails_with_its_reason(tmp_path: Path) -> None:
    assert CMAKE
    assert CTEST
    link_directx_headers(tmp_path)
    include, build = tmp_path / "DirectX-Headers" / "include", tmp_path / "build"
    options = (f"-DDIRECTML_INCLUDE_DIR={include / 'directx'}", f"-DDML_TILE={COMMAND}")
    for step in (("-S", EXAMPLES / "cpp", "-B", build, *options), ("--build", build)):
        made = ran(CMAKE, *step)
        assert made.returncode == 0, made.stdout + made.stderr
    for _ in range(2):  # the second run begins anew
        tested = ran(CTEST, "--test-dir", build, "--output-on-failure")
        assert re.search(r"100% tests passed.* out of 5", tested.stdout), tested.stdout + tested.stderr
    assert [len((build / name).read_text().splitlines()) for name in ("tiles.jsonl", "odd.jsonl")] == [2, 1]
    log = (build / "Testing" / "Temporary" / "LastTest.log").read_text()
    assert log.count("the value is too small. 6 was provided, but at least 8 was expected") == 2  # targets


SEARCHED: Final = ("SYSTEM_ENVIRONMENT", "CMAKE_SYSTEM")
"""The parts of what CMake searches for a command, as its variables name them."""

CPP_PAGE: Final = list(blocks_of((ROOT / "docs" / "cpp.md").read_text(encoding="utf-8")))


@needs_compiler
@pytest.mark.skipif(not CMAKE, reason="needs cmake")
def test_the_page_s_cmake_finds_the_headers_or_fails_with_a_message(tmp_path: Path) -> None:
    assert CMAKE
    (lines,) = (block.text for block in CPP_PAGE if block.text.startswith("find_program("))
    begun = "cmake_minimum_required(VERSION 3.19)", "project(page CXX)", "add_executable(application application.cpp)"
    nowhere = (f"if(NOWHERE)\nset(CMAKE_FIND_USE_{path}_PATH OFF)\nendif()" for path in SEARCHED)
    (tmp_path / "CMakeLists.txt").write_text("\n".join([*begun, *nowhere, lines]))
    (tmp_path / "application.cpp").touch()
    found = ran(CMAKE, "-S", tmp_path, "-B", tmp_path / "build", f"-DDML_TILE={COMMAND}")
    assert found.returncode == 0, found.stderr
    missing = ran(CMAKE, "-S", tmp_path, "-B", tmp_path / "missing", "-DNOWHERE=ON")
    assert missing.returncode != 0
    assert "Could not find DML_TILE using the following names: dml-tile" in missing.stderr
    failing = ran(CMAKE, "-S", tmp_path, "-B", tmp_path / "failing", "-DDML_TILE=/bin/false")
    assert failing.returncode != 0
    assert "execute_process failed command indexes" in failing.stderr


@needs_real_headers
@pytest.mark.parametrize("name", ["anywhere.cpp", "application.cpp", "test_application.cpp", "uuids.h"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_page_s_cpp_compiles(tmp_path: Path, compiler: str, name: str) -> None:
    (text,) = (block.text for block in CPP_PAGE if block.file == name)
    (tmp_path / "it.cpp").write_text(text)
    compiled(compiler, "-std=c++11", *WARNINGS, *real_headers(), "-fsyntax-only", tmp_path / "it.cpp")


@needs_directmlx
def test_the_page_s_command_compiles_its_graph_and_checks_it_without_windows(tmp_path: Path) -> None:
    (command,) = (block.text for block in CPP_PAGE if block.text.startswith("git clone "))
    for block in CPP_PAGE:
        if block.file:
            (tmp_path / block.file).write_text(block.text)
    link_directx_headers(tmp_path)
    (tmp_path / "DirectML").mkdir()
    (tmp_path / "DirectML" / "Libraries").symlink_to(DIRECTMLX)
    assert COMMAND
    environment = os.environ | {"PATH": f"{Path(COMMAND).parent}{os.pathsep}{os.environ['PATH']}"}
    compiles = command[command.index("clang++ ") :]
    done = subprocess.run(
        ["bash", "-ec", compiles], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.endswith("4 operators: 3 refused, 1 accepted\n")


# The benchmarks run, and tell what they say they do; no time is asserted

BENCHMARKS: Final = ROOT / "benchmarks"


def measured(script: str, *arguments: str) -> str:
    done = ran(sys.executable, BENCHMARKS / script, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_tiling_is_measured_against_what_is_installed(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    shown = measured("bench_tile.py", "--only", "200 bytes", "--samples", "1", "--seconds", "0", "--json", str(path))
    assert "geometric mean" in shown
    assert "numpy.tile: worst" in shown
    figures = json.loads(path.read_text())
    (row,) = figures["rows"]
    assert (row["shape"], row["bytes"]) == ("200 bytes", 200)
    assert {"bound", "tile", "execute", "numpy.tile", "np.copyto"} <= set(row["seconds"])
    assert all(seconds > 0 for seconds in row["seconds"].values())
    assert set(figures) == {"date", "machine", "versions", "rows"}


def test_a_missed_goal_exits_1() -> None:
    code = """
import bench_tile
bench_tile.EXAMPLE_GOALS["bound"] = 1e9
bench_tile.main(["200 bytes"], goals=True, samples=1, seconds=0)
"""
    done = ran(sys.executable, "-c", code, folder=BENCHMARKS)
    assert "1000000000.00" in done.stdout
    assert "not reached" in done.stdout
    assert done.returncode != 0


def test_random_shapes_are_the_same_for_a_seed_and_within_their_bounds() -> None:
    code = """
from shapes import LARGEST, LAYOUTS, MIN_BYTES, random_shapes
shapes = random_shapes(300, 5)
assert shapes == random_shapes(300, 5) != random_shapes(300, 6)
assert all(MIN_BYTES <= shape.written <= LARGEST for shape in shapes)
assert {shape.size for shape in shapes} == {1, 2, 4, 8}
assert {len(shape.sizes) for shape in shapes} == set(range(1, 9))
assert {shape.name.split(", ")[-1] for shape in shapes} == set(LAYOUTS)
"""
    done = ran(sys.executable, "-c", code, folder=BENCHMARKS)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "rows"),
    [
        ("bench_check.py", ["import dml_tile / import numpy", "a refused check / an accepted one"]),
        *(
            pytest.param(*each, marks=pytest.mark.exhaustive)
            for each in (
                ("bench_testing.py --count 5", ["tiles drawn a second / lists", "5 trivial tests, marked / unmar"]),
                ("bench_folder.py --count 20 --megabytes 1", ["20 descriptors, all accepted", "every tenth refused"]),
                ("bench_models.py --nodes 20", ["nodes", "20"]),
            )
        ),
    ],
)
def test_checks_and_what_tests_feel_are_measured(command: str, rows: list[str]) -> None:
    shown = measured(*command.split(), "--samples", "1")
    assert all(row in shown for row in rows), shown
