"""The formats that CI reads: each valid by its schema, with every finding where it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema import Draft4Validator

from dml_tile.checks.catalogue import RULES
from dml_tile.directml import pages
from dml_tile.files.links import SERVERS_VARIABLES
from dml_tile.findings import OWN
from dml_tile.reports import annotations as annotations_module
from dml_tile.reports.annotations import MAX_SHOWN
from dml_tile.reports.report import FORMATS
from tests.helpers import golden
from tests.helpers.check_files import BAD, TILE, WITHOUT_FIELDS, model, write
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import computed, save, typed
from tests.helpers.outputs import require_junit
from tests.helpers.paths import EXAMPLES, ROOT

SARIF = Draft4Validator(json.loads((ROOT / "tests" / "data" / "sarif-2.1.0-rtm.5.json").read_text()))
FLOAT64 = {"DataType": "FLOAT64", "Sizes": [2]}
UNDOCUMENTED = TILE | {"InputTensor": FLOAT64, "OutputTensor": FLOAT64}
LEVEL_RULE = "DML-TILE-DataType-level"
SIZES_RULE = "DML-TILE-OutputTensor-Sizes"


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


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return golden.outputs()


@pytest.mark.parametrize("name", FORMATS)
def test_each_kind_of_result_is_told_in_each_format(written: dict[str, str], name: str) -> None:
    """``python -m tests.helpers.golden`` writes the files anew."""
    assert written[name] == (golden.FOLDER / name).read_text(encoding="utf-8")


BAD_MESSAGE = "OutputTensor.Sizes[0]: 2 was provided, but 4 = InputTensor.Sizes[0] 2 * Repeats[0] 2 was expected"
BAD_TEXT = f"{BAD_MESSAGE}%0Aat 6_4%0AFLOAT32 {{2}} x {{2}} -> {{2}}%0Atry: set it to 4"
NO_FILE = "No such file or directory"
NO_JSON = "unreadable JSON: expected value at line 2 column 6"


# Annotations of GitHub and Azure Pipelines, and lines for editors


ISSUE = "##vso[task.logissue type=error;sourcepath="


@pytest.mark.parametrize("form", ["github", "azure"])
def test_of_each_severity_as_many_are_written_as_are_shown_and_the_others_counted(check: Call, form: str) -> None:
    assert len(check(write("ten.json", [BAD] * MAX_SHOWN), "--format", form).stdout.splitlines()) == MAX_SHOWN
    write("b.json", [UNDOCUMENTED] * 20)
    write("a.json", [BAD] * (MAX_SHOWN + 3))
    lines = check("b.json", "a.json", "missing.json", "--format", form).stdout.splitlines()
    assert [("error" in line.split()[0] + line.split()[1]) for line in lines] == [True] * 10 + [False] * 10
    assert NO_FILE in lines[0]
    assert lines[MAX_SHOWN - 2].count("/7 at 6_4") == 1
    assert lines[MAX_SHOWN - 1].endswith("and 5 more errors, which `dml-tile check` prints")
    assert lines[-1].endswith("and 11 more warnings, which `dml-tile check` prints")
    escaped = {"github": "%3A 13 refused%2C", "azure": ": 13 refused,"}
    assert f"33 operators{escaped[form]} 20 undocumented" in lines[-1]


def test_the_same_problem_is_reported_once_with_its_places(check: Call) -> None:
    mistyped = TILE | {"OutputTensor": {"DataType": "FLOT32", "Sizes": [2]}}
    write("a.json", [mistyped, TILE, *[mistyped] * 12])
    (line,) = check("a.json", "--format", "github").stdout.splitlines()
    assert line.startswith(
        "::error file=a.json,line=2,col=2,title=unreadable::/0: OutputTensor.DataType is 'FLOT32'; no "
    )
    assert line.endswith("(did you mean FLOAT32?); also at /2, /3, /4, /5, /6, /7, /8, /9, /10, /11 and 2 more")
    (error,) = json.loads(check("a.json", "--format", "json").stdout)["errors"]
    assert (error["line"], error["column"]) == (2, 2)


@pytest.mark.parametrize(
    ("form", "name", "begins", "contains"),
    [
        ("github", "a,b:c%d\n.json", "::error file=a%2Cb%3Ac%25d%0A.json,line=", "%0A/dispatchables/x%25\\ny at 6_4"),
        (
            *("azure", "a;b]c%d\n.json"),
            "##vso[task.logissue type=error;sourcepath=a%3Bb%5Dc%AZP25d%0A.json;linenumber=",
            "%0A/dispatchables/x%AZP25\\ny at 6_4",
        ),
    ],
)
def test_annotations_are_escaped(check: Call, form: str, name: str, begins: str, contains: str) -> None:
    write("##vso[task.complete].json", WITHOUT_FIELDS)
    files = write(name, model(**{"x%\ny": BAD})), "##vso[task.complete].json"
    refused, note = check(*files, "--format", form).stdout.splitlines()
    assert refused.startswith(begins)
    assert contains in refused
    assert note.startswith("./#\\x23vso[task.complete].json: note: " if form == "azure" else "::notice file=#\\x23vso[")


def test_standard_input_has_findings_without_a_file(check: Call) -> None:
    text = json.dumps(BAD)
    assert check("-", "--format", "github", stdin=text).stdout.startswith(f"::error title={SIZES_RULE}::")
    assert places(sarif(check, "-", stdin=text)) == [("stdin", 1)]


# Paths


def paths(check: Call, *arguments: str) -> list[str]:
    """Return the path of the first finding in each format for machines; they are the same in all."""
    (location,) = json.loads(check(*arguments, "--format", "gitlab").stdout)
    (line,) = check(*arguments, "--format", "github").stdout.splitlines()
    (issue,) = check(*arguments, "--format", "azure").stdout.splitlines()
    (suite,) = junit(check, *arguments)
    found = [location["location"]["path"], *re.findall("file=([^,]*),|sourcepath=([^;]*);", f"{line}\n{issue}")]
    found += re.findall(r"^### ✕ `(.*)`$", check(*arguments, "--format", "markdown").stdout, re.M)
    (heading,) = re.findall(r"<h3>(.*?)</h3>", check(*arguments, "--format", "html").stdout)
    found.append(re.sub("<.*?>", "", heading))
    return [*map("".join, found), str(suite.get("name")), str(suite[0].get("file")), suite.attrib["file"]]


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
        assert set(paths(check, name, *options.split())) == {path}
        run = sarif(check, name, *options.split())
        assert places(run) == [(path, 11)]
        assert run["originalUriBaseIds"]["SRCROOT"]["uri"] + path == (tmp_path / "in/pkg/a.json").as_uri()
    assert check(argument).stdout.startswith(f"{argument}:11:4: refused")


def test_a_file_elsewhere_has_a_whole_uri(check: Call, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("else where") / "a.json"
    write(str(other), BAD)
    assert places(sarif(check, str(other), "--root", ".")) == [(other.as_uri(), 11)]
    assert check(str(other), "--root", "missing").exit_code == 2


# SARIF


def test_a_log_has_each_rule_once_with_its_help(check: Call) -> None:
    run = sarif(check, write("a.json", [BAD, BAD | {"RepeatsCount": 7}]))
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["informationUri"]) == ("dml-tile", pages.TILE)
    assert driver["fullName"] == f"dml-tile {driver['version']}"
    assert "automationDetails" not in run  # upload-sarif's category tells runs apart
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids)) == 3
    assert all(ids[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    assert {result["level"] for result in run["results"]} == {"error"}
    for rule in driver["rules"]:
        ours = RULES[rule["id"]]
        assert (rule["helpUri"], rule["shortDescription"]["text"]) == (ours.url, ours.says)
        assert re.fullmatch(r"Dml([A-Z]\w*)+", rule["name"])
        assert ours.says in rule["help"]["text"]
        assert f"({ours.url})" in rule["help"]["markdown"]


def test_rules_about_nodes_have_the_page_that_they_follow(check: Call, call: Call) -> None:
    model = str(EXAMPLES / "models" / "classifier.onnx")
    run = sarif(check, model, "--via", "ort", "-t", "onnxruntime-directml-1.20.1,onnxruntime-directml-1.24.4")
    rules = run["tool"]["driver"]["rules"]
    assert {"ORT-MODEL-opset", "ORT-CPU-version", "ORT-CPU-preferred"} <= {rule["id"] for rule in rules}
    for rule in rules:
        own = OWN[rule["id"]]
        assert rule["helpUri"] == own.url
        assert rule["help"] == {
            "text": f"{own.says}\nPage: {own.url}",
            "markdown": f"{own.says}\n\n- [The page]({own.url})",
        }
        assert call("explain", own.id).stdout.splitlines()[-1] == f"  {own.url}"
    without = {own.id for own in OWN.values() if not own.url.startswith("https://")}
    assert {rule for rule in without if rule.startswith("ORT-")} == {"ORT-MODEL-cpu-nodes"}  # a setting of our own


def test_a_result_has_its_region_and_the_pointer_of_its_tile(check: Call) -> None:
    write("sub dir/é%.json", model(t=BAD))
    (result,) = sarif(check, "sub dir")["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "sub%20dir/%C3%A9%25.json"
    lines = Path("sub dir/é%.json").read_text().splitlines()
    region = location["physicalLocation"]["region"]
    assert lines[region["startLine"] - 1][region["startColumn"] - 1 : region["endColumn"] - 1] == "2"
    assert "Sizes" in lines[region["startLine"] - 2]
    assert location["logicalLocations"] == [{"fullyQualifiedName": "/dispatchables/t"}]
    message = result["message"]["text"].splitlines()
    assert message[1:] == ["/dispatchables/t at 6_4", "FLOAT32 {2} x {2} -> {2}", "try: set it to 4"]


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


def test_findings_of_the_baseline_are_left_out_and_logs_bounded(check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    check(write("a.json", [BAD]), "--write-baseline", "base.json")
    write("a.json", [WIDE, BAD])
    (new,) = sarif(check, "a.json", "--baseline", "base.json")["results"]
    assert "{3}" in new["message"]["text"]
    assert "suppressions" not in new
    monkeypatch.setattr(annotations_module, "MAX_RESULTS", 3)
    run = sarif(check, write("many.json", [BAD] * 5))
    assert len(run["results"]) == 3
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"] == "2 results are left out: code scanning takes 3"


# GitLab


# JUnit


def names_and_fingerprints(check: Call, *items: Any) -> set[str]:
    """Return what servers know the tiles and problems of a list by."""
    name = write("a.json", items)
    records = json.loads(check(name, "--format", "gitlab").stdout)
    cases = junit(check, name).iter("testcase")
    return {*(case.attrib["name"] for case in cases), *(record["fingerprint"] for record in records)}


def test_no_name_of_an_item_has_its_index(check: Call) -> None:
    items = [BAD, {"InputTensor": 1}, TILE, BAD, WIDE]
    before = names_and_fingerprints(check, *items)
    assert len(before) == 5 + 4
    assert before == names_and_fingerprints(check, *reversed(items))
    assert before < names_and_fingerprints(check, TILE | {"Repeats": [3]}, *items)


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


def test_text_says_a_note_of_several_targets_once_and_sizes_that_are_not_known(check: Call) -> None:
    depthwise = str(ROOT / "tests/data/conv_depthwise.json")
    arguments = "-t", "windows-11-22h2,windows-11-23h2,directml-1.8.1"
    printed = check(depthwise, *arguments).stdout
    assert printed.count("note[DML-KNOWN-grouped-convolution] no refusal at windows-11-22h2, windows-11-23h2\n") == 1
    assert printed.count("CONVOLUTION with GroupCount 4: DirectML 1.8.0 may compute it wrongly") == 1
    assert printed.count("CONVOLUTION with GroupCount 4: DirectML 1.8.1 may compute it wrongly") == 1
    shared = check(depthwise, "-t", "windows-11-22h2,windows-11-23h2").stdout
    assert shared.count("  note[DML-KNOWN-grouped-convolution] no refusal\n") == 1
    assert shared.index("accepted at windows-11-23h2") < shared.index("note[DML-KNOWN")
    dynamic = check(save("dynamic.onnx", inputs=[typed("x", ["N", 3])]), "-t", "5_0,6_2,6_4").stdout
    assert dynamic.count("known at run time only: ") == 1


def test_a_note_at_all_targets_names_none(check: Call) -> None:
    save("det.onnx", *computed("a = Relu(x); y = Det(a)"), inputs=[typed("x", [2, 2])])
    for form in ("concise", "markdown"):
        at_all = check("det.onnx", "--via", "ort", "-t", "5_0,6_2,6_4", "--format", form).stdout
        assert "(node 2)" in at_all, form
        assert "at 5" not in at_all, form
        at_one = check("det.onnx", "--via", "ort", "-t", "2_0,6_4", "--format", form).stdout.replace("\\", "")
        assert "(node 2, at 6_4)" in at_one, form
