"""The README is true: its commands print what it shows, its tables are the data's."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from dml_tile import check
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.targets import WINDOWS_RELEASES, Target
from dml_tile.readers.descriptors import JsonDescriptor, read_document
from dml_tile.reports.tables import dimension_counts
from tests.helpers.packages import skip_without_reader
from tests.helpers.pages import blocks_of, commands_of, printed_by, run_python
from tests.helpers.paths import ROOT
from tests.helpers.plugin_runs import OTHERS, without

README = (ROOT / "README.md").read_text()
BLOCKS = list(blocks_of(README))
CONSOLES = [command for block in BLOCKS if block.language == "console" for command in commands_of(block.text)]
PYTHON = [block.text for block in BLOCKS if block.language == "python"]
TESTS = "pytest -n auto --dist worksteal"
MAX_LINES = 180
SET_UP = "python3 -m venv .venv && .venv/bin/pip install --quiet . && .venv/bin/"


def test_it_begins_with_the_two_commands() -> None:
    assert CONSOLES[0][0] == f"{SET_UP}dml-tile run examples/tile.json"
    later_pip = SET_UP.replace("venv .", "venv --upgrade-deps .").replace("--quiet . ", "-q '.[test]' ")
    assert CONSOLES[1] == (later_pip + TESTS, "")
    assert '"$bin/' + TESTS.replace("pytest", 'pytest"') in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize(
    ("command", "shown"), [console for console in CONSOLES if "dml-tile " in console[0]], ids=lambda text: text[:60]
)
def test_a_command_prints_what_is_shown(command: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_reader(command)
    monkeypatch.chdir(ROOT)
    assert printed_by(command.removeprefix(SET_UP)) == shown


@pytest.mark.parametrize("code", [code for code in PYTHON if "def test_" not in code])
def test_a_python_example_prints_what_its_comments_say(code: str) -> None:
    assert re.search(r"print\(.*  # ", code)
    run_python(code, {})


@pytest.mark.parametrize("code", [code for code in PYTHON if "def test_" in code])
def test_the_tests_in_it_pass(code: str, pytester: pytest.Pytester) -> None:
    path = pytester.makepyfile(code)
    pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:asyncio", path).assert_outcomes(
        passed=code.count("def test_")
    )


def test_the_descriptor_in_it_is_accepted_everywhere() -> None:
    (text,) = (block.text for block in BLOCKS if block.language == "json")
    (part,) = read_document(text.encode())
    assert isinstance(part, JsonDescriptor)
    assert check(part.desc, "1_0") == ()


@pytest.mark.long
def test_its_run_of_pytest_shows_the_lines_that_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    ((command, shown),) = (console for console in CONSOLES if console[0].startswith("pytest"))
    monkeypatch.delenv("DML_TILE_TARGET", raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", " ".join(without(*OTHERS)))
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], capture_output=True, check=True, cwd=ROOT, text=True
    )
    lines = [re.sub(r"\s+\[ *\d+%\]$", "", line) for line in done.stdout.splitlines()]
    assert [line for line in lines if line.startswith("dml-tile: ") or "PASSED" in line] == shown.splitlines()


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= MAX_LINES


def test_the_matrix_is_the_data_s() -> None:
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"\| windows-.*", README)]
    expected: dict[tuple[str, ...], list[str]] = {}
    for release in WINDOWS_RELEASES:
        target = Target.parse(release.name)
        support = target.tile_support
        kinds = ["float"]
        kinds += ["int"] if TensorDataType.UINT8 in support.data_types else []
        kinds += ["int64"] if TensorDataType.INT64 in support.data_types else []
        row = target.feature_level.short, dimension_counts(support), ", ".join(kinds)
        expected.setdefault(row, []).append(release.name)
    assert rows == [[", ".join(names), *row] for row, names in expected.items()]


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_an_example_script_runs(path: object) -> None:
    done = subprocess.run([sys.executable, str(path)], capture_output=True, check=True, text=True)
    assert done.stdout.splitlines() == [
        "windows-10-2004: UINT8 needs DML_FEATURE_LEVEL_2_1; windows-10-2004 has 2_0",
        "windows-11-21h2: accepted",
        "lowest level: 2_1",
        "[[0 1 2 0 1 2]",
        " [3 4 5 3 4 5]",
        " [0 1 2 0 1 2]",
        " [3 4 5 3 4 5]]",
    ]
