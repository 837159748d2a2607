"""The action, the pre-commit hook, and the CI files in the documentation's pages work for other repositories."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from dml_tile.cli import app as cli
from dml_tile.cli.config import Settings, nearest_config
from dml_tile.reports.formats import FORMATS
from tests.helpers.check_files import INT64, TILE, write
from tests.helpers.pages import blocks_of
from tests.helpers.paths import ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
README = (ROOT / "README.md").read_text().partition("## In your CI\n")[2].partition("\n## ")[0]
PAGE = (ROOT / "docs" / "ci.md").read_text()
STEPS = {step.get("name", step.get("uses")): step for step in ACTION["runs"]["steps"]}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def executable(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{script}\n")
    path.chmod(0o755)


def run_step(name: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the script of one of the action's steps as GitHub's runner does, with the step's variables."""
    step = STEPS[name]
    defaults = dict.fromkeys(step["env"], "") | {
        "FORMATS": "github",
        "RUNNER_TEMP": str(Path.cwd() / "temp"),
    }
    Path("script.sh").write_text(step["run"])
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "script.sh"],
        env=os.environ | defaults | environment, capture_output=True, check=False, text=True,
    )  # fmt: skip


def run_check(**environment: str) -> subprocess.CompletedProcess[str]:
    executable(Path("temp/dml-tile/bin/python"), f'exec {shlex.quote(sys.executable)} "$@"')
    return run_step("Check", **environment)


def test_the_action_s_scripts_have_no_expressions() -> None:
    """They get values that a pull request may choose in variables only."""
    for step in STEPS.values():
        assert "${{" not in step.get("run", "")
    assert ACTION["runs"]["using"] == "composite"
    assert set(ACTION["inputs"]) == {"paths", "targets", "format", "arguments", "extras"}
    used = re.findall(r"\$\{\{ inputs\.(\w+) \}\}", (ROOT / "action.yml").read_text())
    assert sorted(used) == sorted(ACTION["inputs"])


def test_the_action_annotates_what_it_finds() -> None:
    write("a b.json", INT64)
    done = run_check(PATHS="a b.json\n", TARGETS="windows-11-21h2\n6_4")
    assert (done.returncode, done.stderr) == (1, "")
    assert [line.split("::")[1] for line in done.stdout.splitlines()] == [
        "error file=a b.json,line=3,col=15,title=DML-TILE-DataType-level",
        "error file=a b.json,line=9,col=15,title=DML-TILE-DataType-level",
    ]


def test_the_action_takes_several_formats_and_further_arguments() -> None:
    write("a.json", INT64)
    done = run_check(
        PATHS="a.json", FORMATS="text\nsarif:out.sarif", ARGUMENTS="--statistics\n--fail-on=never\n--target\n4_0"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("2 DML-TILE-DataType-level\n")
    assert Path("out.sarif").exists()


def test_the_action_takes_the_project_s_paths() -> None:
    write("pyproject.toml", '[tool.dml-tile]\npaths = ["a.json"]\n')
    write("a.json", TILE)
    assert run_check().returncode == 0
    assert run_check(TARGETS="vista").returncode == 2


@pytest.mark.parametrize("variable", ["PATHS", "TARGETS", "ARGUMENTS", "FORMATS"])
@pytest.mark.parametrize("hostile", ["$(touch owned)", "`touch owned`", "; touch owned", '"; touch owned; "', "* ?"])
def test_no_input_of_the_action_is_run_or_expanded(variable: str, hostile: str) -> None:
    write("a.json", TILE)
    done = run_check(**{"PATHS": "a.json"} | {variable: hostile})
    assert done.returncode == 2
    assert "dml_tile" not in done.stdout
    assert not Path("owned").exists()


def test_the_action_runs_no_module_of_the_folder_that_it_checks() -> None:
    write("a.json", TILE)
    write("dml_tile/__init__.py", "raise SystemExit(7)")
    write("json.py", "raise SystemExit(7)")
    assert run_check(PATHS="a.json").returncode == 0


@pytest.mark.parametrize(("extras", "package"), [("onnx", "/the/action[onnx]"), ("", "/the/action")])
def test_the_action_installs_itself_beside_the_project(extras: str, package: str) -> None:
    logging = 'echo "$@" >> log; if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi'
    executable(Path("python3"), logging)
    done = run_step("Install dml-tile", PYTHON=str(Path.cwd() / "python3"), PACKAGE="/the/action", EXTRAS=extras)
    assert done.returncode == 0, done.stderr
    assert Path("log").read_text().splitlines() == [
        f"-m venv {Path.cwd()}/temp/dml-tile",
        f"-m pip install --quiet --disable-pip-version-check {package}",
    ]


@pytest.mark.parametrize(
    ("name", "is_checked"),
    [("a.json", True), ("models/a.onnx", True), ("a.jsonl", True), ("a.ndjson", True), ("a.jsonc", False)],
)
def test_the_hook_is_given_what_may_have_tiles(name: str, is_checked: bool) -> None:
    assert bool(re.search(HOOK["files"], name)) == is_checked


def test_the_hook_checks_files_and_passes_over_others() -> None:
    assert (HOOK["id"], HOOK["language"]) == ("dml-tile", "python")
    assert HOOK["require_serial"]  # one process for the files, and one summary
    command, *arguments = shlex.split(HOOK["entry"])
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert command in scripts
    names = [write("a.json", INT64), write("package.json", "{}"), write("lines.jsonl", "")]
    assert CliRunner().invoke(cli.app, [*arguments, *names]).exit_code == 0
    assert CliRunner().invoke(cli.app, [*arguments, "--target", "4_0", *names]).exit_code == 1


def files_in(text: str, language: str) -> list[Any]:
    return [block.text for block in blocks_of(text) if block.language == language]


BOTH = pytest.mark.parametrize("text", [README, PAGE], ids=["README.md", "docs/ci.md"])


@BOTH
def test_a_shown_workflow_uses_what_the_action_has(text: str) -> None:
    workflow = yaml.safe_load(files_in(text, "yaml")[0])
    steps = workflow["jobs"]["directml"]["steps"]
    (ours,) = (step for step in steps if "dml_tile" in step["uses"])
    inputs = {name: given["default"] for name, given in ACTION["inputs"].items()} | ours.get("with", {})
    assert set(inputs) == set(ACTION["inputs"])
    write("a.json", INT64)
    done = run_check(PATHS="a.json", TARGETS="4_0", FORMATS=inputs["format"])
    assert done.returncode == 1
    assert done.stdout.startswith("::error file=a.json")
    for upload in (step for step in steps if "upload-sarif" in step["uses"]):
        assert Path(upload["with"]["sarif_file"]).exists()
        assert upload["if"] == "${{ !cancelled() }}"  # the step before has failed
        assert workflow["permissions"]["security-events"] == "write"


@BOTH
def test_a_shown_configuration_of_pre_commit_takes_the_hook(text: str) -> None:
    hooks = yaml.safe_load(files_in(text, "yaml")[1])
    assert [hook["id"] for hook in hooks["repos"][0]["hooks"]] == [HOOK["id"]]


@BOTH
def test_a_shown_pyproject_is_understood(text: str) -> None:
    (shown,) = files_in(text, "toml")
    write("pyproject.toml", shown)
    write("models/a.json", TILE)
    assert nearest_config().settings.targets == ("windows-10-2004", "windows-11-21h2")
    result = CliRunner().invoke(cli.app, ["check"])
    assert "models/a.json: refused at windows-10-2004 (2_0)" in result.stdout
    assert "models/a.json: accepted at windows-11-21h2 (4_0)" in result.stdout


def test_the_page_names_all_inputs_and_formats() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \|", PAGE, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([-\w]+)`", row)]
    assert set(named) >= {*ACTION["inputs"], *FORMATS}
    assert set(named) >= {field.alias or name for name, field in Settings.model_fields.items()}
