"""The formats that CI reads: each valid by its schema, with every finding where it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import onnx
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
from tests.helpers.check_files import BAD, INT64, TILE, WITHOUT_FIELDS, model, write
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import model as onnx_model
from tests.helpers.onnx_graphs import save, tile_node, typed
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


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("github", (
            f"::error file=missing.json,title=unreadable::{NO_FILE}",
            f"::error file=broken.json,line=2,col=6,title=unreadable::{NO_JSON}",
            f"::error file=a.json,line=11,col=4,title={SIZES_RULE}::{BAD_TEXT}",
        )),
        ("azure", (
            f"{ISSUE}missing.json;code=unreadable;]{NO_FILE}",
            f"{ISSUE}broken.json;linenumber=2;columnnumber=6;code=unreadable;]{NO_JSON}",
            f"{ISSUE}a.json;linenumber=11;columnnumber=4;code={SIZES_RULE};]{BAD_TEXT}",
        )),
        ("concise", (
            f"./a.json:11:4: error[{SIZES_RULE}] {BAD_MESSAGE}",
            f"missing.json: error[unreadable] {NO_FILE}",
            f"broken.json:2:6: error[unreadable] {NO_JSON}",
        )),
    ],
)  # fmt: skip
def test_an_annotation_names_rule_file_line_and_column(check: Call, form: str, lines: tuple[str, ...]) -> None:
    write("a.json", BAD)
    result = check("./a.json", "missing.json", write("broken.json", '{"Repeats":\n     x}'), "--format", form)
    assert result.exit_code == 2
    assert tuple(result.stdout.splitlines()) == lines
    assert f"dml-tile: broken.json:2:6: {NO_JSON}\n" in result.stderr
    assert check(write("fine.json", TILE), "--format", form).stdout == ""


def test_a_field_of_both_tensors_at_several_targets_is_one_annotation(check: Call) -> None:
    targets = "-t", "directml-1.5.0", "-t", "windows-11-21h2"
    (line,) = check(write("a.json", INT64), "--format", "github", *targets).stdout.splitlines()
    assert line.startswith(f"::error file=a.json,line=3,col=15,title={LEVEL_RULE}::InputTensor.DataType, OutputTensor.")
    assert "directml-1.5.0 has 3_1%0AINT64 needs DML_FEATURE_LEVEL_4_1; windows-11-21h2 has 4_0%0A" in line
    assert "at directml-1.5.0 (3_1), windows-11-21h2 (4_0)%0A" in line
    (result,) = sarif(check, "a.json", *targets)["results"]
    assert "at directml-1.5.0 (3_1), windows-11-21h2 (4_0)" in result["message"]["text"]
    (line,) = check("a.json", "--format", "concise", *targets).stdout.splitlines()
    assert line.endswith("directml-1.5.0 has 3_1; INT64 needs DML_FEATURE_LEVEL_4_1; windows-11-21h2 has 4_0")


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


def test_a_model_has_no_line(check: Call) -> None:
    save("a.onnx", inputs=[typed("x", [2, 3], 7)])
    (first,) = check("a.onnx", "--format", "github", "-t", "windows-11-21h2").stdout.splitlines()
    fields = "InputTensor.DataType, OutputTensor.DataType"
    assert first.startswith(f"::error file=a.onnx,title={LEVEL_RULE}::{fields}: INT64 needs")
    assert "%0Awiden at windows-11-21h2 (4_0)%0A" in first
    assert check("a.onnx", "--format", "concise", "-t", "4_0").stdout.startswith(f"a.onnx#widen: error[{LEVEL_RULE}]")
    (result,) = sarif(check, "a.onnx", "-t", "windows-11-21h2")["results"]
    (location,) = result["locations"]
    region = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1}
    artifact = {"uri": "a.onnx", "uriBaseId": "SRCROOT"}
    assert location["physicalLocation"] == {"artifactLocation": artifact, "region": region}
    assert location["logicalLocations"] == [{"fullyQualifiedName": "widen"}]


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


def test_what_is_known_at_run_time_only_has_help_too(check: Call) -> None:
    onnx.save(onnx_model(tile_node(), inputs=[typed("x", [2, 3], 1), typed("r", [2], 7)]), "a.onnx")
    run = sarif(check, "a.onnx")
    (rule,) = run["tool"]["driver"]["rules"]
    assert (rule["id"], rule["name"]) == ("known-at-run-time", "KnownAtRunTime")
    assert "--input-shape" in rule["help"]["text"]
    assert [result["level"] for result in run["results"]] == ["note"]


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


def test_unreadable_parts_are_notifications(check: Call) -> None:
    run = sarif(check, write("a.json", [TILE, {"InputTensor": 1}]), "missing.json", write("b.json", "{\n x"))
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    part, missing, broken = invocation["toolExecutionNotifications"]
    assert part["locations"][0]["physicalLocation"]["region"]["startLine"] == 19
    assert part["locations"][0]["logicalLocations"] == [{"fullyQualifiedName": "/1"}]
    assert missing["message"]["text"] == NO_FILE
    assert broken["locations"][0]["physicalLocation"]["region"]["startLine"] == 2


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


def test_code_quality_has_an_object_for_each_finding(check: Call) -> None:
    write("a.json", [TILE, BAD, UNDOCUMENTED])
    write("other.json", WITHOUT_FIELDS)
    records = json.loads(check("a.json", "other.json", "missing.json", "--format", "gitlab").stdout)
    assert [(record["check_name"], record["severity"], record["location"]) for record in records] == [
        (SIZES_RULE, "major", {"path": "a.json", "lines": {"begin": 29}}),
        ("DML-TILE-DataType", "minor", {"path": "a.json", "lines": {"begin": 38}}),
        ("DML-OPERATOR-not-a-tile", "info", {"path": "other.json", "lines": {"begin": 5}}),
        ("unreadable", "major", {"path": "missing.json", "lines": {"begin": 1}}),
    ]
    assert records[0]["description"].splitlines()[0] == BAD_MESSAGE
    assert len({record["fingerprint"] for record in records}) == 4
    assert json.loads(check(write("fine.json", TILE), "--format", "gitlab").stdout) == []


# JUnit


def test_a_tile_at_a_target_is_a_test(check: Call) -> None:
    write("a.json", [TILE, BAD, {"InputTensor": 1}, 7, 7])
    write("b.json", INT64)
    root = junit(check, "a.json", "b.json", "missing.json", "-t", "windows-11-21h2", "-t", "6_4")
    totals = [[node.get(key) for key in ("name", "tests", "failures", "errors", "skipped")] for node in (root, *root)]
    assert totals == [
        ["dml-tile check", "9", "3", "3", None],
        ["a.json", "6", "2", "2", "0"],
        ["b.json", "2", "1", "0", "0"],
        ["missing.json", "1", "0", "1", "0"],
    ]
    assert all(re.fullmatch(r"\d+\.\d{3}", node.attrib["time"]) for node in (root, *root))
    cases = [
        (case.get("file"), case.get("line"), case.get("name"), "".join(child.tag for child in case))
        for case in root.iter("testcase")
    ]
    assert all(case.get("classname") == case.get("file") for case in root.iter("testcase"))
    tile, bad = "FLOAT32 {2} x {1} -> {2} efd3103c", "FLOAT32 {2} x {2} -> {2} b5d2b7b4"
    assert [(file, line, str(name).partition(" was ")[0], tags) for file, line, name, tags in cases] == [
        ("a.json", "2", f"{tile} at windows-11-21h2 (4_0)", "system-out"),
        ("a.json", "2", f"{tile} at 6_4", "system-out"),
        ("a.json", "29", f"{bad} at windows-11-21h2 (4_0)", "failure"),
        ("a.json", "29", f"{bad} at 6_4", "failure"),
        ("a.json", "36", "reading: InputTensor is 1; an object", "error"),
        ("a.json", "39", "reading: 7", "error"),
        ("b.json", "3", "operator at windows-11-21h2 (4_0)", "failure"),
        ("b.json", "1", "operator at 6_4", "system-out"),
        ("missing.json", "1", "reading", "error"),
    ]
    (*_, failure) = root.iter("failure")
    assert failure.get("type") == LEVEL_RULE
    assert "INT64 needs DML_FEATURE_LEVEL_4_1" in str(failure.get("message"))
    assert f"error[{LEVEL_RULE}] E_INVALIDARG 0x80070057" in str(failure.text)


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
