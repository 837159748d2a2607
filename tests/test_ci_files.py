"""The action, the pre-commit hook, and the CI files in the documentation's pages work for other repositories."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from dml_tile.cli.config import Settings
from dml_tile.readers.file_kinds import KINDS
from dml_tile.reports.report import FORMATS
from docs.generator.addresses import ADDRESS, REVISION, with_addresses
from tests.helpers.check_files import INT64, TILE, write
from tests.helpers.command_line import invoke
from tests.helpers.pages import blocks_of
from tests.helpers.paths import ROOT

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("call")]

ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
PAGE = (ROOT / "docs" / "ci.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
STEPS = {step.get("name", step.get("uses")): step for step in ACTION["runs"]["steps"]}


BASH = shutil.which("bash") or "bash"


def ran_by_bash(script: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = [BASH, "--noprofile", "--norc", "-c", script]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


def executable(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{script}\n")
    path.chmod(0o755)


def run_step(name: str, **environment: str) -> subprocess.CompletedProcess[str]:
    with start_step(name, **environment) as process:
        stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def start_step(name: str, **environment: str) -> subprocess.Popen[str]:
    """Start the script of one of the action's steps as GitHub's runner does, with the step's variables."""
    step = STEPS[name]
    defaults = dict.fromkeys(step["env"], "") | {
        "FORMATS": "github",
        "FOLDER": ".",
        "REQUIRE_OPERATORS": ACTION["inputs"]["require-operators"]["default"],
        "RUNNER_TEMP": str(Path.cwd() / "temp"),
        "GITHUB_STEP_SUMMARY": str(Path.cwd() / "summary.md"),
        "GITHUB_OUTPUT": str(Path.cwd() / "outputs"),
    }
    Path("script.sh").write_text(step["run"])
    return subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "script.sh"],
        env=os.environ | defaults | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run_check(**environment: str) -> subprocess.CompletedProcess[str]:
    executable(Path("temp/dml-tile/bin/python"), f'exec {shlex.quote(sys.executable)} "$@"')
    return run_step("Check", **environment)


def outputs() -> dict[str, str]:
    return dict(line.split("=", 1) for line in Path("outputs").read_text().splitlines())


def test_the_action_s_scripts_have_no_expressions() -> None:
    """They get values that a pull request may choose in variables only."""
    for step in STEPS.values():
        assert "${{" not in step.get("run", "")
    assert ACTION["runs"]["using"] == "composite"
    used = re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", (ROOT / "action.yml").read_text())
    assert sorted(used) == sorted(ACTION["inputs"])


@pytest.mark.parametrize("targets", ["4_0 6_4", " 4_0,\n 6_4 \n"])
def test_the_action_takes_targets_separated_by_spaces_commas_or_lines(targets: str) -> None:
    write("a.json", INT64)
    write("summary.md", "before\n")
    done = run_check(PATHS="a.json", TARGETS=targets)
    assert (done.returncode, done.stderr) == (1, "")
    summary = Path("summary.md").read_text()
    assert summary.startswith("before\n## Operators on DirectML: 1 operator: 1 refused\n")
    assert "| Operator | 4_0 | 6_4 |" in summary


def test_the_action_works_in_a_folder_and_gives_its_log_and_its_page() -> None:
    write("in/a.json", TILE)
    done = run_check(PATHS="a.json", FOLDER="in", TARGETS="6_4", FORMATS="text\nsarif:out.sarif", REPORT="page.html")
    assert (done.returncode, done.stderr) == (0, "")
    assert outputs() == {"status": "0", "refused": "0", "sarif": "in/out.sarif"}
    assert Path("in/out.sarif").exists()
    assert "dml-tile check --format" in Path("in/page.html").read_text()


def test_an_absolute_path_of_sarif_stays_and_lines_are_trimmed(tmp_path: Path) -> None:
    write("in/a b.json", INT64)
    log = tmp_path / "out.sarif"
    arguments = "\t--fail-on=never \n--target\n4_0"
    formats = f" text\n  sarif:{log} "
    done = run_check(PATHS="  a b.json \r\n\n", FOLDER="in", FORMATS=formats, ARGUMENTS=arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("a b.json:3:15: refused at 4_0")
    assert outputs() == {"status": "0", "refused": "1", "sarif": str(log)}
    assert log.exists()


@pytest.mark.posix
def test_what_is_found_appears_while_the_action_runs(tmp_path: Path) -> None:
    executable(tmp_path / "temp/dml-tile/bin/python", "echo found; echo wrong >&2; read -r _ < fifo; exit 1")
    os.mkfifo("fifo")
    with start_step("Check", PATHS="a.json") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert (running.stdout.readline(), running.stderr.readline()) == ("found\n", "wrong\n")
        Path("fifo").write_text("go on\n")
        assert running.wait(timeout=60) == 1


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [("TARGETS", "vista", "'vista'"), ("FOLDER", "missing", "There is no folder"), ("FORMATS", "100%", "100%25")],
)
def test_the_action_says_what_is_wrong_with_an_input_in_an_annotation(variable: str, value: str, told: str) -> None:
    write("a.json", TILE)
    done = run_check(**{"PATHS": "a.json", variable: value})
    assert done.returncode == 2
    (annotation,) = (line for line in done.stdout.splitlines() if line.startswith("::error title=dml-tile::"))
    assert told in annotation
    assert {name: outputs()[name] for name in ("status", "refused")} == {"status": "2", "refused": "0"}
    for name in ("status", "refused"):
        assert re.search(r" \|\| '\d' }}$", ACTION["outputs"][name]["value"])  # where no step came so far


def test_the_action_says_that_it_cannot_be_installed_in_an_annotation() -> None:
    executable(Path("python3"), 'mkdir -p "$4/bin"; echo "exit 1" > "$4/bin/python"; chmod +x "$4/bin/python"')
    done = run_step("Install dml-tile", PYTHON=str(Path.cwd() / "python3"), PACKAGE="/the/action", EXTRAS="nonsense")
    assert done.returncode == 2
    assert done.stdout.startswith("::error title=dml-tile::It cannot be installed with the extras 'nonsense'")


@pytest.mark.parametrize(("required", "status"), [("true", 2), ("false", 0)])
def test_the_action_fails_where_nothing_was_checked_unless_told_not_to(required: str, status: int) -> None:
    write("models/a.json", TILE)
    write("pyproject.toml", '[tool.dml-tile]\npaths = ["models"]\nexclude = ["*.json"]\n')
    done = run_check(REQUIRE_OPERATORS=required)
    assert (done.returncode, "no operator was checked" in done.stderr) == (status, True)
    assert outputs()["status"] == str(status)


def test_the_action_takes_the_project_s_paths() -> None:
    write("pyproject.toml", '[tool.dml-tile]\npaths = ["a.json"]\n')
    write("a.json", TILE)
    assert run_check().returncode == 0
    assert run_check(TARGETS="vista").returncode == 2


@pytest.mark.parametrize("variable", ["PATHS", "TARGETS", "ARGUMENTS", "FORMATS", "FOLDER"])
def test_no_input_of_the_action_is_run_or_expanded(variable: str) -> None:
    write("a.json", TILE)
    done = run_check(**{"PATHS": "a.json", variable: '$(touch owned) "; `touch owned`; * ?\n; touch owned'})
    assert done.returncode == 2
    assert "dml_tile" not in done.stdout
    assert not Path("owned").exists()


def test_a_report_may_have_any_name_and_no_module_of_the_checked_folder_is_run() -> None:
    write("a.json", TILE)
    write("dml_tile/__init__.py", "raise SystemExit(7)")
    write("json.py", "raise SystemExit(7)")
    assert run_check(PATHS="a.json", REPORT="$(touch owned) *").returncode == 0
    assert Path("$(touch owned) *").exists()
    assert not Path("owned").exists()


@pytest.mark.posix
@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"FORMATS": "sarif:linked"}, "linked is a link to {}/kept: name that file"),
        ({"REPORT": "folder/page.html"}, "folder is a link to {}: name that folder"),
        ({"ARGUMENTS": "--write-baseline=linked"}, "linked is a link to {}/kept: name that file"),
        ({"PATHS": "linked"}, "linked is a link out of"),
        ({"PATHS": "fol*/*"}, "folder is a link out of"),
        ({"FOLDER": "folder"}, "working-directory is a link out of the workspace, or into .git."),
        ({"FOLDER": "git"}, "working-directory is a link out of the workspace, or into .git."),
    ],
)
def test_the_action_follows_no_link_of_a_pull_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inputs: dict[str, str], told: str
) -> None:
    (tmp_path / "workspace").mkdir()
    monkeypatch.chdir("workspace")
    write("a.json", TILE)
    write("../outside/kept", json.dumps(INT64 | {"Repeats": [77777]}))
    write(".git/config", "")
    for link, target in ("linked", "../outside/kept"), ("folder", "../outside"), ("git", ".git"):
        Path(link).symlink_to(target)
    done = run_check(**{"PATHS": "a.json"} | inputs)
    assert done.returncode == 2
    assert told.format(tmp_path / "outside") in done.stdout + done.stderr
    assert "77777" not in done.stdout + done.stderr
    assert outputs()["sarif"] == ""
    assert [path.name for path in Path("../outside").iterdir()] == ["kept"]
    assert "77777" in Path("../outside/kept").read_text()


@pytest.mark.parametrize(("extras", "package"), [("onnx", "/the/action[onnx]"), ("", "/the/action")])
def test_the_action_installs_itself_beside_the_project(extras: str, package: str) -> None:
    logging = 'echo "$@" >> log; if [ "$3" = venv ]; then mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; fi'
    executable(Path("python3"), logging)
    done = run_step("Install dml-tile", PYTHON=str(Path.cwd() / "python3"), PACKAGE="/the/action", EXTRAS=extras)
    assert done.returncode == 0, done.stderr
    assert Path("log").read_text().splitlines() == [
        f"-P -m venv {Path.cwd()}/temp/dml-tile",
        f"-P -m pip install --quiet --disable-pip-version-check {package}",
    ]


@pytest.mark.exhaustive  # -P, which the test above wants, keeps them out
def test_installing_runs_no_module_of_the_checked_folder() -> None:
    for name in ("venv.py", "pip.py", "ensurepip.py"):
        write(name, "raise SystemExit(7)")
    done = run_step("Install dml-tile", PYTHON=sys.executable, PACKAGE="/no/such/package", EXTRAS="")
    assert done.returncode == 2, "pip itself ran, and found no package"
    assert "/no/such/package" in done.stderr


def test_the_hook_checks_files_and_passes_over_others() -> None:
    assert (HOOK["id"], HOOK["language"]) == ("dml-tile", "python")
    assert HOOK["require_serial"]  # one process for the files, and one summary
    command, *arguments = shlex.split(HOOK["entry"])
    arguments += HOOK["args"]
    assert arguments[-3:] == ["--format", "concise", "--"]
    assert command in PROJECT["project"]["scripts"]
    names = [write("a.json", INT64), write("package.json", "{}"), write("lines.jsonl", "")]
    assert invoke(*arguments, *names).exit_code == 0
    done = invoke(*arguments[:-1], "--target", "4_0", *arguments[-1:], *names)
    assert done.exit_code == 1
    assert re.fullmatch(r"a\.json:3:15: error\[DML-TILE-DataType-level\] .*\n", done.stdout)


OPTIONS = ("--exclude=*.json", "--baseline=b.json", "--report=r.json", "-qv.json", "--help.json")


@pytest.mark.posix
def test_the_hook_takes_each_name_for_a_file_s() -> None:
    """As pre-commit starts it: the entry, the arguments, and the names of committed files."""
    names = [*OPTIONS, "-", "--", "a b.json", "a\nb.json", "'\".json", "*.json", "[a].json", "$(touch owned).json"]
    for name in names:
        write(name, INT64)
    write("pyproject.toml", '[tool.dml-tile]\ntargets = ["4_0"]\n')
    before = sorted(Path().iterdir())
    done = invoke(*shlex.split(HOOK["entry"])[1:], *HOOK["args"], *(name for name in names if name.endswith(".json")))
    assert done.exit_code == 1
    assert done.stderr == ""
    assert done.stdout.count("DML-TILE-DataType-level") == len(names) - 2
    assert sorted(Path().iterdir()) == before


def test_the_page_s_arguments_of_the_hook_end_where_names_begin() -> None:
    shown = re.findall(r"`args: \[(.*)\]`", PAGE)
    assert shown
    assert all(arguments.split(", ")[-1] == "--" for arguments in shown)


SHOWN = [block.text for block in blocks_of(PAGE) if block.language == "yaml"]


PINNED = r"[\w/-]+@[0-9a-f]{40} # v[\d.]+"


def test_the_shown_workflow_is_pinned_keeps_no_credentials_and_fetches_large_files() -> None:
    (workflow,) = (block for block in SHOWN if "jobs:" in block)
    for action in re.findall(r"uses: (.*)", workflow):
        assert re.fullmatch(PINNED, action) or action == f"{ADDRESS.removeprefix('https://github.com/')}@{REVISION}"
    checkout, *_ = yaml.safe_load(workflow)["jobs"]["directml"]["steps"]
    assert checkout["with"] == {"persist-credentials": False, "lfs": True}


def test_the_shown_workflow_uses_what_the_action_has() -> None:
    workflow = yaml.safe_load(SHOWN[0])
    steps = workflow["jobs"]["directml"]["steps"]
    (ours,) = (step for step in steps if "dml_tile" in step["uses"])
    inputs = {name: given["default"] for name, given in ACTION["inputs"].items()} | ours.get("with", {})
    assert set(inputs) == set(ACTION["inputs"])
    write("a.json", INT64)
    done = run_check(PATHS="a.json", TARGETS="4_0", FORMATS=inputs["format"])
    assert (done.returncode, done.stderr) == (1, "")
    assert (outputs()["status"], outputs()["refused"]) == ("1", "1")
    assert done.stdout.startswith("::error file=a.json")
    for upload in (step for step in steps if "upload-sarif" in step["uses"]):
        assert upload["with"]["sarif_file"] == f"${{{{ steps.{ours['id']}.outputs.sarif }}}}"
        assert Path(outputs()["sarif"]).exists()
        assert (
            upload["if"] == f"${{{{ !cancelled() && steps.{ours['id']}.outputs.sarif }}}}"
        )  # the step before has failed
        assert workflow["permissions"]["security-events"] == "write"


def test_the_hook_is_given_files_of_each_kind_that_is_read() -> None:
    suffixes = "|".join(sorted(suffix.removeprefix(".") for kind in KINDS if kind.reader for suffix in kind.suffixes))
    assert HOOK["files"] == rf"\.({suffixes})$"


def test_the_shown_configuration_of_pre_commit_takes_the_hook() -> None:
    (hooks,) = (file for text in SHOWN if "repos" in (file := yaml.safe_load(text)))
    assert [hook["id"] for hook in hooks["repos"][0]["hooks"]] == [HOOK["id"]]


@pytest.mark.posix
def test_the_shown_pipeline_of_azure_tells_what_it_finds_and_ends_with_its_status() -> None:
    (pipeline,) = (file for text in SHOWN if "pool" in (file := yaml.safe_load(text)))
    (check,) = (step for step in pipeline["steps"] if step.get("displayName") == "Check tiles")
    write("pyproject.toml", '[tool.dml-tile]\npaths = ["a.json"]\ntargets = ["4_0"]\n')
    write("a.json", INT64)
    executable(Path("agent/dml-tile/bin/dml-tile"), f'exec {shlex.quote(sys.executable)} -m dml_tile "$@"')
    done = ran_by_bash(check["bash"], os.environ | {"AGENT_TEMPDIRECTORY": str(Path.cwd() / "agent")})
    assert (done.returncode, done.stderr) == (1, "")
    issue, summary = done.stdout.splitlines()
    assert issue.startswith("##vso[task.logissue type=error;sourcepath=a.json;linenumber=3;")
    assert (
        Path(summary.removeprefix("##vso[task.uploadsummary]"))
        .read_text()
        .startswith("## Operators on DirectML: 1 operator: 1 ref")
    )
    for step in pipeline["steps"][-2:]:
        assert step["condition"] == "succeededOrFailed()"
        assert Path(step.get("publish") or step["inputs"]["testResultsFiles"]).exists()


WORKFLOWS = {path.name: path.read_text() for path in (ROOT / ".github" / "workflows").iterdir()}


def test_workflows_are_pinned_bounded_and_keep_no_credentials() -> None:
    for text in (*WORKFLOWS.values(), (ROOT / "action.yml").read_text()):
        for action in re.findall(r"uses: (.*)", text):
            assert re.fullmatch(PINNED, action)
    for text in WORKFLOWS.values():
        workflow = yaml.safe_load(text)
        assert workflow["concurrency"]
        assert workflow["permissions"] == {"contents": "read"}
        assert all(job["timeout-minutes"] for job in workflow["jobs"].values())
        assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    (updates,) = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())["updates"]
    assert updates["package-ecosystem"] == "github-actions"


@pytest.mark.posix
@pytest.mark.parametrize(
    ("tag", "owner", "status"),
    [
        (f"v{PROJECT['project']['version']}", "someone", 0),
        (f"v{PROJECT['project']['version']}", "OWNER", 1),
        ("v99.0", "someone", 1),
    ],
)
def test_a_release_is_tested_checked_and_has_its_tag_s_version_and_an_address(
    tag: str, owner: str, status: int
) -> None:
    steps = yaml.safe_load(WORKFLOWS["release.yml"])["jobs"]["build"]["steps"]
    commands = [step.get("run", "") for step in steps]
    assert {"bash .ci/run", "python -m twine check --strict dist/*"} <= {*commands}
    (compare,) = (command for command in commands if "GITHUB_REF_NAME" in command)
    address = f"https://github.com/{owner}/dml_tile"
    write("pyproject.toml", with_addresses((ROOT / "pyproject.toml").read_text(), address, "v1"))
    assert ran_by_bash(compare, os.environ | {"GITHUB_REF_NAME": tag}).returncode == status


@pytest.mark.posix
def test_ci_installs_system_packages_where_ci_is_set_only(tmp_path: Path) -> None:
    text = (ROOT / ".ci" / "run").read_text()
    functions = text[text.index("install() {") : text.index("browser_and_compilers 3>&2 &")]
    for command in ("timeout", "id"):
        executable(tmp_path / "bin" / command, "echo 0; echo installed >> log" if command == "timeout" else "echo 0")
    (tmp_path / "bin" / "bash").symlink_to(BASH)
    for ci, installs in (("", False), ("1", True)):
        done = ran_by_bash(f"{functions}browser_and_compilers 3>&2", {"PATH": str(tmp_path / "bin"), "CI": ci})
        assert Path("log").exists() == installs
        assert ("is missing; the tests in a browser are skipped" in done.stderr) == (not installs)
        assert ("Installing Debian's chromium chromium-driver\n" in done.stderr) == installs


@pytest.mark.posix
@pytest.mark.parametrize(("versions", "runs_tests"), [("lowest", True), ("newest", False)])
def test_the_wheel_s_tests_run_with_the_lowest_versions_that_it_declares(versions: str, runs_tests: bool) -> None:
    log = Path("log").absolute()
    logging = f'echo "$PWD: $(basename "$0") $*" >>{log}\nif [ "$2" = venv ]; then mkdir -p "$3/bin"'
    copies = "".join(f'; cp "$0" "$3/bin/{name}"' for name in ("python", "uv", "dml-tile"))
    executable(Path("python3"), f"{logging}{copies}; fi")
    environment = os.environ | {"PYTHON": str(Path("python3").absolute()), "TMPDIR": str(Path.cwd())}
    subprocess.run(["bash", str(ROOT / ".ci/wheel"), versions], env=environment, check=True)
    lines = log.read_text().splitlines()
    assert (
        any(re.search(r": uv pip install .* --resolution lowest-direct .*\[test\]$", line) for line in lines)
        == runs_tests
    )
    assert (lines[-1] == f"{ROOT}: python -m pytest -n auto --dist worksteal") == runs_tests
    rows = yaml.safe_load(WORKFLOWS["tests.yml"])["jobs"]["wheel"]["strategy"]["matrix"]["include"]
    assert versions in [row["versions"] for row in rows]


def test_the_page_names_all_inputs_and_formats() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \|", PAGE, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([-\w]+)`", row)]
    assert set(named) >= {*ACTION["inputs"], *FORMATS}
    assert set(named) >= {field.alias or name for name, field in Settings.model_fields.items()}
