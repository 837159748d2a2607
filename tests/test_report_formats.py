"""The formats that CI reads: each valid by its schema, with every finding where it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema import Draft4Validator

from dml_tile.files.links import SERVERS_VARIABLES
from dml_tile.reports import annotations as annotations_module
from dml_tile.reports.annotations import MAX_SHOWN
from tests.helpers import golden
from tests.helpers.check_files import BAD, DOUBLES, TILE, WITHOUT_FIELDS, model, write
from tests.helpers.command_line import Call
from tests.helpers.outputs import require_junit
from tests.helpers.paths import ROOT

SARIF = Draft4Validator(json.loads((ROOT / "tests" / "data" / "sarif-2.1.0-rtm.5.json").read_text()))


def sarif(check: Call, *arguments: str, **options: Any) -> Any:
    log = json.loads(check(*arguments, "--format", "sarif", **options).stdout)
    SARIF.validate(log)
    (run,) = log["runs"]
    return run


def junit(check: Call, *arguments: str) -> ElementTree.Element:
    text = check(*arguments, "--format", "junit").stdout
    require_junit(text)
    return ElementTree.fromstring(text)


def places(run: Any) -> list[tuple[str, int]]:
    physical = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    return [(one["artifactLocation"]["uri"], one["region"]["startLine"]) for one in physical]


@pytest.mark.usefixtures("call")  # which reads models in this process
def test_each_kind_of_result_is_told_in_each_format() -> None:
    """``python -m tests.helpers.golden`` writes the files anew."""
    for name, text in golden.outputs().items():
        assert text == (golden.FOLDER / name).read_text("utf-8"), name


# Annotations of GitHub and Azure Pipelines, and lines for editors


def test_of_each_severity_as_many_are_written_as_are_shown_and_the_others_counted(check: Call) -> None:
    files = write("b.json", [DOUBLES] * 20), write("a.json", [BAD] * MAX_SHOWN)
    lines = check(*files, "--format", "github").stdout.splitlines()
    kinds = [line.partition(" ")[0] for line in lines]
    assert kinds == ["::error"] * MAX_SHOWN + ["::warning"] * MAX_SHOWN
    assert "/9 at 6_4" in lines[MAX_SHOWN - 1]
    assert lines[-1].endswith("and 11 more warnings, which `dml-tile check` prints")


def test_a_note_s_line_is_no_command_to_azure(check: Call) -> None:
    note = check(write("##vso[task.complete].json", WITHOUT_FIELDS), "--format", "azure").stdout
    assert note.startswith("./#\\x23vso[task.complete].json: note: ")


def test_standard_input_has_findings_without_a_file(check: Call) -> None:
    text = json.dumps(BAD)
    assert check("-", "--format", "github", stdin=text).stdout.startswith("::error title=DML-TILE-OutputTensor-Sizes::")
    assert places(sarif(check, "-", stdin=text)) == [("stdin", 1)]


# Paths


@pytest.mark.parametrize(
    ("marks", "variables", "folder", "argument", "options", "path"),
    [
        ([], {}, ".", "in/pkg/a.json", "", "in/pkg/a.json"),
        ([], {}, "in", "./pkg/../pkg/a.json", "", "pkg/a.json"),
        ([".git"], {}, "in/pkg", "a.json", "", "in/pkg/a.json"),
        (["in/.git", ".git"], {}, "in/pkg", "a.json", "", "pkg/a.json"),
        ([], dict.fromkeys(SERVERS_VARIABLES, "."), "in/pkg", "a.json", "", "in/pkg/a.json"),
        (["in/.git"], {"GITHUB_WORKSPACE": "."}, ".", "in/pkg/a.json", "", "pkg/a.json"),  # the repository wins
        ([], {"GITHUB_WORKSPACE": "elsewhere", "CI_PROJECT_DIR": "in"}, "in/pkg", "a.json", "", "pkg/a.json"),
        ([".git"], {}, "in/pkg", "a.json", "--root ..", "pkg/a.json"),
    ],
)
def test_files_are_named_from_the_repository_s_root_on(
    check: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marks: list[str], variables: dict[str, str],
    folder: str, argument: str, options: str, path: str,
) -> None:  # fmt: skip
    write("in/pkg/a.json", BAD)
    for mark in marks:
        Path(mark).mkdir()
    for name in SERVERS_VARIABLES:
        monkeypatch.setenv(name, str(tmp_path / variables[name]) if name in variables else "")
    monkeypatch.chdir(folder)
    for name in (argument, str(Path.cwd() / argument)):
        run = sarif(check, name, *options.split())
        assert places(run) == [(path, 11)]
        assert run["originalUriBaseIds"]["SRCROOT"]["uri"] + path == (tmp_path / "in/pkg/a.json").as_uri()
    assert check(argument).stdout.startswith(f"{argument}:11:4: refused")


def test_a_file_elsewhere_has_a_whole_uri_and_colons_are_quoted(
    check: Call, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("else where") / "a.json"
    write(str(other), BAD)
    assert places(sarif(check, str(other), "--root", ".")) == [(other.as_uri(), 11)]
    assert check(str(other), "--root", "missing").exit_code == 2
    assert places(sarif(check, write("https:x.json", BAD))) == [("https%3Ax.json", 11)]


# SARIF


def fingerprints(check: Call, *arguments: str) -> list[str]:
    """Return those of SARIF's results; GitLab has the same."""
    results = sarif(check, *arguments)["results"]
    assert all(result["partialFingerprints"].keys() == {"dmlTileFinding/v1"} for result in results)
    found = [result["partialFingerprints"]["dmlTileFinding/v1"] for result in results]
    gitlab = json.loads(check(*arguments, "--format", "gitlab").stdout)
    assert [record["fingerprint"] for record in gitlab] == found
    assert all(re.fullmatch("[0-9a-f]{16}", one) for one in found)
    return found


WIDE = BAD | {"Repeats": [3]}


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        (json.dumps(BAD | {"RepeatsCount": 7}), "\n\n" + json.dumps(BAD | {"RepeatsCount": 7}), [0, 1, 2]),
        (json.dumps([BAD, WIDE]), json.dumps([TILE, WIDE, BAD]), [1, 0]),
        (json.dumps([BAD, BAD]), json.dumps([TILE, BAD, WIDE, BAD]), [0, None, 1]),
        (json.dumps(model(t=BAD)), json.dumps(model(s=WIDE, t=BAD)), [None, 0]),
    ],
    ids=["lines", "items", "equal items", "a name"],
)
def test_a_fingerprint_stays_when_others_move(check: Call, before: str, after: str, kept: list[int | None]) -> None:
    first = fingerprints(check, write("a.json", before))
    assert len(set(first)) == len(first)
    second = fingerprints(check, write("a.json", after))
    assert [first.index(one) if one in first else None for one in second] == kept


def test_what_differs_by_target_has_fingerprints_of_its_own(check: Call) -> None:
    names = (write("doubles.json", DOUBLES), str(ROOT / "examples" / "models" / "two_tiles.onnx"))
    found = fingerprints(check, *names, "-t", "2_0", "-t", "6_2", "--no-ignore")
    assert len(set(found)) == len(found)
    assert {*fingerprints(check, *names, "-t", "2_0", "--no-ignore")} < {*found}


def test_a_log_has_as_many_results_as_code_scanning_takes(check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotations_module, "MAX_RESULTS", 3)
    run = sarif(check, write("many.json", [BAD] * 5))
    assert len(run["results"]) == 3
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"] == "2 results are left out: code scanning takes 3"


@pytest.mark.parametrize(("name", "text"), [("empty.jsonl", ""), ("fine.json", TILE)], ids=["nothing", "no finding"])
def test_a_report_without_findings_is_valid(check: Call, name: str, text: Any) -> None:
    run = sarif(check, "--skip-others", write(name, text))
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])
    assert run["invocations"] == [{"executionSuccessful": True}]
    assert not list(junit(check, name).iter("failure"))


def test_a_format_without_clean_operators_changes_nothing_beside_it(check: Call) -> None:
    file = write("tiles.json", [TILE, BAD])
    for form in ("concise", "github", "azure", "gitlab", "sarif"):
        check(file, "--format", "jsonl:alone.jsonl")
        check(file, "--format", form, "--format", "jsonl:beside.jsonl")
        alone, beside = (Path(name).read_text(encoding="utf-8") for name in ("alone.jsonl", "beside.jsonl"))
        assert alone == beside
        assert '"lowest_level":' in alone


def test_text_says_a_note_of_several_targets_once(check: Call) -> None:
    depthwise = str(ROOT / "tests/data/conv_depthwise.json")
    arguments = "-t", "windows-11-22h2,windows-11-23h2,directml-1.8.1"
    printed = check(depthwise, *arguments).stdout
    assert printed.count("note[DML-KNOWN-grouped-convolution] no refusal at windows-11-22h2, windows-11-23h2\n") == 1
    assert printed.count("CONVOLUTION with GroupCount 4: DirectML 1.8.0 may compute it wrongly") == 1
    assert printed.count("CONVOLUTION with GroupCount 4: DirectML 1.8.1 may compute it wrongly") == 1
    shared = check(depthwise, "-t", "windows-11-22h2,windows-11-23h2").stdout
    assert shared.count("  note[DML-KNOWN-grouped-convolution] no refusal\n") == 1
    assert shared.index("accepted at windows-11-23h2") < shared.index("note[DML-KNOWN")
