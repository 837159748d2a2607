"""``--max-time`` ends any command with status 2; the reports of a check hold what was checked, and say what was not."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from dml_tile.cli.app import _COMMANDS
from dml_tile.emit.schemas import schemas
from tests.helpers.check_files import TILE
from tests.helpers.command_line import COMMAND
from tests.helpers.forks import python

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe without a writer keeps a command waiting")

LATE: Final = "dml-tile: the command took longer than 1 s; --max-time allows more\n"
CUT: Final = "was not checked to its end: the check took longer than 4 s (--max-time)"
"""4 s, so that the file before it is checked however slow the machine is."""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*python(), "-m", "dml_tile", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False, text=True, timeout=50)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a tile, a pipe that nobody writes to, and another tile."""
    for name in ("a.json", "c.json"):
        (tmp_path / name).write_text(json.dumps(TILE))
    os.mkfifo(tmp_path / "b.json")
    return tmp_path


def test_every_command_has_the_option() -> None:
    options = {
        name: {one for each in command.params for one in each.opts} for name, command in COMMAND.commands.items()
    }
    assert len(options) == len(_COMMANDS)
    assert all("--max-time" in of_command for of_command in options.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("lower b.json", LATE),
        pytest.param("show b.json", LATE, marks=pytest.mark.long),
        pytest.param("emit b.json --lang json", LATE, marks=pytest.mark.long),
        pytest.param(
            "run b.json",
            "dml-tile: b.json: the run took longer than 1 s; --max-time allows more\n",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_command_ends_in_time(folder: Path, arguments: str, message: str) -> None:
    done = run(folder, *arguments.split(), "--max-time", "1")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


@pytest.mark.parametrize("by_setting", [pytest.param(False, marks=pytest.mark.long), True])
def test_reports_hold_what_was_checked_in_time(folder: Path, by_setting: bool) -> None:
    if by_setting:
        (folder / "pyproject.toml").write_text("[tool.dml-tile]\nmax-time = 4\n")
    options = ["--format=json", "--format=sarif:out.sarif", "--format=junit:out.xml", "--write-baseline=known.json"]
    done = run(folder, "check", "a.json", "b.json", "c.json", *options, *(() if by_setting else ("--max-time", "4")))
    assert done.returncode == 2
    assert done.stderr.startswith(f"dml-tile: b.json: {CUT}; nor was 1 file after it\n")
    report = json.loads(done.stdout)
    jsonschema.validate(report, schemas()["check_output"])
    assert report["complete"] is False
    assert [each["source"] for each in report["results"]] == ["a.json"]
    assert [(each["source"], each["message"]) for each in report["errors"]] == [
        ("b.json", f"{CUT}; nor was 1 file after it")
    ]
    (invocation,) = json.loads((folder / "out.sarif").read_text())["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert [CUT in each["message"]["text"] for each in invocation["toolExecutionNotifications"]] == [True]
    assert CUT in (folder / "out.xml").read_text()
    assert not (folder / "known.json").exists(), "it would lack what was not checked"


def test_a_check_in_time_is_complete(folder: Path) -> None:
    report: Any = json.loads(run(folder, "check", "a.json", "--format", "json", "--max-time", "50").stdout)
    assert "complete" not in report


@pytest.mark.long
def test_the_processes_of_a_check_end_with_it(tmp_path: Path) -> None:
    for i in range(4):
        (tmp_path / f"{i}.json").write_text(json.dumps([TILE] * 10_000))
    done = run(tmp_path, "check", ".", "--jobs", "2", "--max-time", "4", "--format", "json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["complete"] is False
    assert CUT in done.stderr
