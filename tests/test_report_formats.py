"""The formats that CI reads: each valid by its schema, with every finding where it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import onnx
import pytest
import xmlschema
from jsonschema import Draft4Validator

from dml_tile.checks.catalogue import RULES
from dml_tile.directml.pages import TILE_PAGE
from dml_tile.reports.annotations import MAX_SHOWN
from tests.helpers.check_files import BAD, INT64, TILE, model, write
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import constant, tile_node, typed
from tests.helpers.onnx_graphs import model as onnx_model
from tests.helpers.paths import ROOT

DATA = ROOT / "tests" / "data"
SARIF = Draft4Validator(json.loads((DATA / "sarif-2.1.0-rtm.5.json").read_text()))
JUNIT = xmlschema.XMLSchema(DATA / "junit-10.xsd")
FLOAT64 = {"DataType": "FLOAT64", "Sizes": [2]}
LEVEL_RULE = "DML-TILE-DataType-level"


def sarif(check: Call, *arguments: str) -> Any:
    log = json.loads(check(*arguments, "--format", "sarif").stdout)
    SARIF.validate(log)
    (run,) = log["runs"]
    return run


def junit(check: Call, *arguments: str) -> ElementTree.Element:
    text = check(*arguments, "--format", "junit").stdout
    JUNIT.validate(text)
    return ElementTree.fromstring(text)


def places(run: Any) -> list[tuple[str, int]]:
    physical = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    return [(one["artifactLocation"]["uri"], one["region"]["startLine"]) for one in physical]


BAD_MESSAGE = (
    "OutputTensor.Sizes[0]: 2 was provided, but 4 = InputTensor.Sizes[0] 2 * Repeats[0] 2 was expected%0A"
    "at 6_4%0AFLOAT32 {2} x {2} -> {2}%0Atry: set it to 4"
)
NO_FILE = "No such file or directory"


# Annotations of GitHub and Azure Pipelines


@pytest.mark.parametrize(
    ("form", "unreadable", "refused"),
    [
        ("github", "::error file=missing.json,title=unreadable::", "::error file=a.json,line=11,col=4,title={}::"),
        (
            "azure",
            "##vso[task.logissue type=error;sourcepath=missing.json;code=unreadable;]",
            "##vso[task.logissue type=error;sourcepath=a.json;linenumber=11;columnnumber=4;code={};]",
        ),
    ],
)
def test_an_annotation_names_rule_file_line_and_column(check: Call, form: str, unreadable: str, refused: str) -> None:
    result = check(write("a.json", BAD), "missing.json", "--format", form)
    assert result.exit_code == 2
    lines = f"{unreadable}{NO_FILE}", refused.format("DML-TILE-OutputTensor-Sizes") + BAD_MESSAGE
    assert tuple(result.stdout.splitlines()) == lines
    assert check(write("fine.json", TILE), "--format", form).stdout == ""


def test_a_field_of_both_tensors_at_several_targets_is_one_annotation(check: Call) -> None:
    targets = "-t", "directml-1.5.0", "-t", "windows-11-21h2"
    (line,) = check(write("a.json", INT64), "--format", "github", *targets).stdout.splitlines()
    assert line.startswith(f"::error file=a.json,line=3,col=15,title={LEVEL_RULE}::InputTensor.DataType, OutputTensor.")
    assert "directml-1.5.0 has 3_1%0AINT64 needs DML_FEATURE_LEVEL_4_1; windows-11-21h2 has 4_0%0A" in line
    assert "at directml-1.5.0 (3_1), windows-11-21h2 (4_0)%0A" in line
    (result,) = sarif(check, "a.json", *targets)["results"]
    assert "at directml-1.5.0 (3_1), windows-11-21h2 (4_0)" in result["message"]["text"]


@pytest.mark.parametrize("form", ["github", "azure"])
def test_as_many_annotations_as_are_shown_are_written_and_the_others_counted(check: Call, form: str) -> None:
    assert len(check(write("ten.json", [BAD] * MAX_SHOWN), "--format", form).stdout.splitlines()) == MAX_SHOWN
    lines = check(write("a.json", [BAD] * (MAX_SHOWN + 3)), "--format", form).stdout.splitlines()
    assert len(lines) == MAX_SHOWN
    assert lines[-2].count("/8 at 6_4") == 1
    assert lines[-1].endswith("and 4 more errors, which `dml-tile check` prints")


def test_unreadable_files_come_before_the_limit(check: Call) -> None:
    write("a.json", [BAD] * 20)
    lines = check("a.json", "missing.json", "--format", "github").stdout.splitlines()
    assert lines[0] == f"::error file=missing.json,title=unreadable::{NO_FILE}"
    assert len(lines) == MAX_SHOWN
    assert "and 12 more errors" in lines[-1]


def test_each_severity_has_a_limit_of_its_own_and_errors_come_first(check: Call) -> None:
    undocumented = write("b.json", [TILE | {"InputTensor": FLOAT64, "OutputTensor": FLOAT64}] * 20)
    lines = check(undocumented, write("a.json", BAD), "--format", "github").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["::error", *["::warning"] * MAX_SHOWN]
    assert "and 11 more warnings" in lines[-1]


def test_issues_of_azure_are_escaped_and_notes_are_plain_lines(check: Call) -> None:
    name = "a;b]c%d\n.json"
    write(name, model(**{"x%\ny": BAD}))
    write("##vso[task.complete].json", {"Type": "DML_OPERATOR_GATHER", "Desc": {}})
    refused, note = check(name, "##vso[task.complete].json", "--format", "azure").stdout.splitlines()
    properties, _, message = refused.removeprefix("##vso[task.logissue ").partition("]")
    assert properties.startswith("type=error;sourcepath=a%3Bb%5Dc%AZP25d%0A.json;linenumber=")
    assert "%0A/dispatchables/x%AZP25\\ny at 6_4" in message
    assert note.startswith("./#\\x23vso[task.complete].json: note: ")


def test_annotations_are_escaped(check: Call) -> None:
    name = "a,b:c%d\n.json"
    (line,) = check(write(name, model(**{"x%\ny": BAD})), "--format", "github").stdout.splitlines()
    properties, message = re.fullmatch(r"::error (.*?)::(.*)", line).groups()  # type: ignore[union-attr]
    assert properties.startswith("file=a%2Cb%3Ac%25d%0A.json,line=")
    assert "%0A/dispatchables/x%25\\ny at 6_4" in message


def test_a_file_is_named_from_the_current_folder_on(check: Call, tmp_path: Path) -> None:
    write("in/a.json", BAD)
    for name in ("in/a.json", "./in/a.json", str(tmp_path / "in" / "a.json"), "in/../in/a.json"):
        assert check(name, "--format", "github").stdout.startswith("::error file=in/a.json,line=11,")


def test_a_model_has_no_line(check: Call) -> None:
    onnx.save(onnx_model(constant("r", [1, 2]), tile_node(name="widen"), inputs=[typed("x", [2, 3], 7)]), "a.onnx")
    (first,) = check("a.onnx", "--format", "github", "-t", "windows-11-21h2").stdout.splitlines()
    fields = "InputTensor.DataType, OutputTensor.DataType"
    assert first.startswith(f"::error file=a.onnx,title={LEVEL_RULE}::{fields}: INT64 needs")
    assert "%0Awiden at windows-11-21h2 (4_0)%0A" in first
    (result,) = sarif(check, "a.onnx", "-t", "windows-11-21h2")["results"]
    (location,) = result["locations"]
    region = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1}
    assert location["physicalLocation"] == {"artifactLocation": {"uri": "a.onnx"}, "region": region}
    assert location["logicalLocations"] == [{"fullyQualifiedName": "widen"}]


def test_standard_input_has_findings_without_a_file(check: Call) -> None:
    text = json.dumps(BAD)
    assert check("-", "--format", "github", stdin=text).stdout.startswith("::error title=DML-TILE-OutputTensor-Sizes::")
    log = json.loads(check("-", "--format", "sarif", stdin=text).stdout)
    SARIF.validate(log)
    assert log["runs"][0]["results"][0]["locations"] == []


# SARIF


def test_a_log_has_each_rule_once_with_its_help(check: Call) -> None:
    run = sarif(check, write("a.json", [BAD, BAD | {"RepeatsCount": 7}]))
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["informationUri"]) == ("dml-tile", TILE_PAGE)
    assert driver["fullName"] == f"dml-tile {driver['version']}"
    assert run["automationDetails"] == {"id": "dml-tile/6_4/"}
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
    assert result["message"]["text"].splitlines()[1:] == [
        "/dispatchables/t at 6_4",
        "FLOAT32 {2} x {2} -> {2}",
        "try: set it to 4",
    ]


def test_a_file_elsewhere_has_a_whole_uri(check: Call, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("else where") / "a.json"
    write(str(other), BAD)
    assert places(sarif(check, str(other))) == [(other.as_uri(), 11)]


def test_a_fingerprint_stays_when_lines_move_and_differs_by_field(check: Call) -> None:
    options = ("-t", "windows-11-21h2")
    tile = INT64 | {"RepeatsCount": 7}
    before = sarif(check, write("a.json", tile), *options)
    after = sarif(check, write("a.json", "\n\n" + json.dumps(tile)), *options)
    prints = [[result["partialFingerprints"] for result in run["results"]] for run in (before, after)]
    assert prints[0] == prints[1]
    assert prints[0][0] != prints[0][1]
    assert all(re.fullmatch("[0-9a-f]{16}:1", one["primaryLocationLineHash"]) for one in prints[0])
    assert places(before) != places(after)


def test_lines_are_real_in_json_lines_and_lists(check: Call) -> None:
    lines = "\n".join(json.dumps(desc) for desc in (TILE, BAD, TILE, BAD))
    write("a.jsonl", lines)
    write("b.json", lines)
    write("c.json", [TILE, BAD])
    assert places(sarif(check, "a.jsonl", "b.json", "c.json")) == [
        *(("a.jsonl", 2), ("a.jsonl", 4), ("b.json", 2), ("b.json", 4), ("c.json", 29)),
    ]


def test_unreadable_parts_are_notifications_and_annotations(check: Call) -> None:
    run = sarif(check, write("a.json", [TILE, {"InputTensor": 1}]), "missing.json")
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    broken, missing = invocation["toolExecutionNotifications"]
    assert broken["locations"][0]["physicalLocation"]["region"]["startLine"] == 19
    assert broken["locations"][0]["logicalLocations"] == [{"fullyQualifiedName": "/1"}]
    assert missing["message"]["text"] == NO_FILE
    unreadable, _ = check("a.json", "missing.json", "--format", "github").stdout.splitlines()
    assert unreadable.startswith("::error file=a.json,line=19,col=2,title=unreadable::/1: ")


def test_the_findings_in_json_have_lines(check: Call) -> None:
    for arguments, line, column in (([write("a.json", BAD)], 11, 4), (["-"], 1, 106)):
        (result,) = json.loads(check(*arguments, "--format", "json", stdin=json.dumps(BAD)).stdout)["results"]
        assert [(one["line"], one["column"]) for one in result["findings"]] == [(line, column)]


# JUnit


def test_a_tile_at_a_target_is_a_test(check: Call) -> None:
    write("a.json", [TILE, BAD])
    write("b.json", INT64)
    root = junit(check, "a.json", "b.json", "-t", "windows-11-21h2", "-t", "6_4")
    counts = [[suite.get(key) for key in ("name", "tests", "failures", "errors")] for suite in root]
    assert counts == [["a.json", "4", "2", "0"], ["b.json", "2", "1", "0"]]
    cases = [(case.get("classname"), case.get("name"), case.find("failure") is None) for case in root.iter("testcase")]
    assert cases == [
        ("a.json", "/0 at windows-11-21h2 (4_0)", True),
        ("a.json", "/0 at 6_4", True),
        ("a.json", "/1 at windows-11-21h2 (4_0)", False),
        ("a.json", "/1 at 6_4", False),
        ("b.json", "tile at windows-11-21h2 (4_0)", False),
        ("b.json", "tile at 6_4", True),
    ]
    (*_, failure) = root.iter("failure")
    assert failure.get("type") == LEVEL_RULE
    assert "INT64 needs DML_FEATURE_LEVEL_4_1" in str(failure.get("message"))
    assert f"error[{LEVEL_RULE}] E_INVALIDARG 0x80070057" in str(failure.text)


def test_an_unreadable_part_is_an_error_of_its_source(check: Call) -> None:
    root = junit(check, write("a.json", [TILE, {"InputTensor": 1}]), "missing.json")
    errors = {
        (suite.get("name"), case.get("name")) for suite in root for case in suite if case.find("error") is not None
    }
    assert errors == {("a.json", "/1"), ("missing.json", "reading")}


def test_names_are_safe_in_xml(check: Call) -> None:
    name = "a<&\">'\x01\ufffe]]>"
    root = junit(check, write(f"{name}.json", model(**{name: BAD})))
    (case,) = root.iter("testcase")
    assert case.get("classname") == "a<&\">'\\x01\\ufffe]]>.json"
    assert case.get("name") == "/dispatchables/a<&\">'\\x01\\ufffe]]> at 6_4"


@pytest.mark.parametrize(("name", "text"), [("empty.jsonl", ""), ("fine.json", TILE)], ids=["nothing", "no finding"])
def test_a_report_without_findings_is_valid(check: Call, name: str, text: Any) -> None:
    run = sarif(check, write(name, text))
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])
    assert run["invocations"] == [{"executionSuccessful": True}]
    assert not list(junit(check, name).iter("failure"))
