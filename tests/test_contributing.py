"""CONTRIBUTING.md is true: its new rule, put into a copy of the repository, works as it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

import numpy as np
import pytest

import dml_tile
from dml_tile import arrays
from dml_tile.execution.mover import mover_of
from tests.helpers.command_line import Call
from tests.helpers.pages import blocks_of, commands_of
from tests.helpers.paths import ROOT

GUIDE: Final = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
COPIED: Final = (
    *("dml_tile", "tests", "docs", "examples", "schemas", "pyproject.toml", "README.md", "CONTRIBUTING.md"),
    *(".mkdocs.yml", "CITATION.cff"),
)
WRITTEN_BY_THE_STEPS: Final = ("dml_tile/rules/tile.py", "tests/helpers/rule_cases.py")

_BLOCK: Final = re.compile(
    r"`(?P<file>\w+/[\w/.]+)`[^`]*(?:`(?P<above>[^`]+)`)?:\n\n```(?P<language>python|diff)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Step(NamedTuple):
    """Lines to put into a file above or below the one line that begins so."""

    file: str
    text: str
    line: str
    is_above: bool


def steps() -> Iterator[Step]:
    """The guide's blocks of Python, which tell above which line they belong, and its differences."""
    for match in _BLOCK.finditer(GUIDE):
        if match["language"] == "python":
            yield Step(match["file"], f"{match['text']}\n\n", match["above"], is_above=True)
        else:
            lines = match["text"].splitlines(keepends=True)
            (line,) = (line[1:] for line in lines if line.startswith(" "))
            text = "".join(line[1:] for line in lines if line.startswith("+"))
            yield Step(match["file"], text, line, is_above=lines[-1].startswith(" "))


COMMANDS: Final = [
    command for block in blocks_of(GUIDE) if block.language == "console" for command in commands_of(block.text)
]


def take(step: Step, root: Path) -> None:
    path = root / step.file
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    (place,) = (i for i, line in enumerate(lines) if line.startswith(step.line))
    lines.insert(place if step.is_above else place + 1, step.text)
    path.write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Runs a command in a copy of the repository in which all steps have been taken, and gives what it prints."""
    root = tmp_path_factory.mktemp("clone")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name)  # with what Python compiled, which is read again
        else:
            shutil.copy(source, root / name)
    for step in steps():
        take(step, root)
    environment = os.environ | {"PYTHONPATH": str(root)}
    environment.pop("PYTEST_ADDOPTS", None)

    def run_it(command: str) -> str:
        program, *arguments = command.split()
        module = {"python": [], "dml-tile": ["-m", "dml_tile"]}.get(program, ["-m", program])
        options = ["-p", "no:cacheprovider"] if program == "pytest" else []
        done = subprocess.run(
            [sys.executable, *module, *arguments, *options],
            capture_output=True, check=False, cwd=root, env=environment, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run_it


def test_its_steps_and_commands_are_there() -> None:
    assert len(list(steps())) == GUIDE.count("```python") + GUIDE.count("```diff") == 2
    assert {step.file for step in steps()} == set(WRITTEN_BY_THE_STEPS)
    assert {command.split()[0] for command, _ in COMMANDS} == {"dml-tile", "python", "pytest", "ruff", "mypy"}


@pytest.mark.long
def test_the_new_rule_is_explained_documented_and_tested(run: Callable[[str], str]) -> None:
    ours = [(command, shown) for command, shown in COMMANDS if command.split()[0] in ("dml-tile", "python", "pytest")]
    printed = {command: run(command) for command, _ in ours}
    assert all(printed[command] == shown for command, shown in ours if shown)
    assert "2 passed" in printed[COMMANDS[2][0]]


def test_what_the_steps_write_is_well_formed(run: Callable[[str], str]) -> None:
    pytest.importorskip("ruff")
    run(f"ruff check {' '.join(WRITTEN_BY_THE_STEPS)}")
    run(f"ruff format --check {' '.join(WRITTEN_BY_THE_STEPS)}")


def test_the_files_and_tools_that_it_names_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    mutants = " ".join([*project["cosmic-ray"]["module-path"], project["cosmic-ray"]["test-command"]])
    named = re.findall(r"`((?:dml_tile|tests|docs)/[\w/.]*)`", GUIDE)
    for name in (*named, *re.findall(r"(?:dml_tile|tests)/\S+", mutants)):
        assert (ROOT / name).exists(), name
    for rooms, text in re.findall(
        r"^\| (`\w+[/.][^|]*) \| ([^|]+) \|$", GUIDE.partition("\nTo change:\n")[0], re.MULTILINE
    ):
        for pattern in re.findall(r"`([\w*]+\.py)`", text):
            folders = [ROOT / "dml_tile" / room for room in re.findall(r"`(\w+)/`", rooms)]
            assert any(any(folder.glob(pattern)) for folder in folders), pattern
    extras = project["project"]["optional-dependencies"]
    assert {"ruff", "mypy"} <= {re.split(r"\W", requirement)[0] for requirement in extras["dev"]}
    assert "def is_ordinary_tile(" in (ROOT / "dml_tile" / "rules" / "tile_findings.py").read_text()


def walk(heading: str) -> list[tuple[str, str]]:
    """The functions that a section names, in order, each with its file."""
    section = GUIDE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `(\w+)` in `(dml_tile/[\w/]+\.py)`", section, re.MULTILINE)


def not_reached(steps: list[tuple[str, str]], call: Callable[[], object]) -> list[tuple[str, str]]:
    """Return the steps from the first one that the call does not take after those before it."""
    left = [*steps]

    def follow(frame: FrameType, event: str, _: object) -> None:
        place = Path(frame.f_code.co_filename)
        called = (frame.f_code.co_name, place.relative_to(ROOT).as_posix() if place.is_relative_to(ROOT) else "")
        if event == "call" and left and called == left[0]:
            del left[0]

    sys.setprofile(follow)
    try:
        call()
    finally:
        sys.setprofile(None)
    return left


def test_the_way_from_a_descriptor_to_its_verdict_is_true(check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (arguments,) = re.findall(r"^What `dml-tile check ([^`]*)` does", GUIDE, re.MULTILINE)
    steps = walk("From a descriptor to its verdict")
    assert len(steps) == 10
    assert not_reached(steps, lambda: check(*arguments.split())) == []


def test_the_way_from_an_array_to_its_bytes_is_true() -> None:
    (example,) = re.findall(r"^What `(tile\(.*\))` of `dml_tile` does", GUIDE, re.MULTILINE)
    mover_of.cache_clear()
    arrays._prepared.clear()
    names = {"np": np, "tile": dml_tile.tile}
    steps = walk("From an array to its bytes")
    assert len(steps) == 10
    assert not_reached(steps, lambda: eval(example, names)) == []
    assert not_reached(steps, lambda: eval(example, names)) == steps[2:]
