"""Captured lines, as `check` reads them: what an application described, and what it got."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dml_tile.emit.cpp import get_include
from tests.helpers.check_files import captured
from tests.helpers.command_line import Call, errors_of
from tests.helpers.paths import ROOT

DATA = ROOT / "tests" / "data"


def tile(data_type: int = 1, size: int = 4) -> dict[str, Any]:
    """{2} tiled twice, as C structs."""
    tensors = {}
    for name, width in (("InputTensor", 2), ("OutputTensor", 4)):
        desc = {"DataType": data_type, "Flags": 0, "DimensionCount": 1, "Sizes": [width], "Strides": None,
                "TotalTensorSizeInBytes": width * size, "GuaranteedBaseOffsetAlignment": 0}  # fmt: skip
        tensors[name] = {"Type": 1, "Desc": desc}
    return tensors | {"RepeatsCount": 1, "Repeats": [2]}


TILE, INT64, DOUBLES = tile(), tile(11, 8), tile(9, 8)
WRONG = TILE | {"Repeats": [3]}


def line(tile: Any, hresult: str | None = "0x00000000", level: str | None = "0x00006200", **changes: Any) -> str:
    return json.dumps(captured(tile, hresult, level) | changes) + "\n"


@pytest.mark.parametrize(
    ("captured", "message"),
    [
        (line(TILE, "0x00000001"), ""),  # S_FALSE: without an out-pointer
        (line(WRONG), "CreateOperator returned S_OK 0x00000000 at feature level 6_2; the emulator gives E_INVALIDARG"),
        (line(WRONG, "0x80004005"), "returned E_FAIL 0x80004005 at feature level 6_2; the emulator gives E_INVALIDARG"),
        # what says nothing about a descriptor: E_OUTOFMEMORY, DXGI_ERROR_DEVICE_REMOVED, _HUNG, E_NOINTERFACE
        *((line(TILE, code), "") for code in ("0x8007000E", "0x887A0005", "0x887A0006", "0x80004002")),
        (line(WRONG, None), ""),
        (line(TILE | {"Repeats": None}), "returned S_OK 0x00000000 at feature level 6_2; the emulator gives a crash"),
        (line(WRONG, "0x80070057"), ""),
        (line(TILE), ""),
        (line(WRONG, level=None), ""),
        (line(WRONG, level="0x00009900"), ""),
        # whether the adapter has double precision is not captured
        (line(DOUBLES), ""),
        (line(DOUBLES, "0x80070057"), ""),
    ],
)
def test_an_answer_that_the_emulator_does_not_give_is_reported(check: Call, captured: str, message: str) -> None:
    printed = " ".join(check("-", stdin=captured).stdout.split())
    assert ("note[DML-CAPTURE-HRESULT]" in printed) == bool(message)
    assert message in printed


@pytest.mark.parametrize(
    ("captured", "message"),
    [
        (line(TILE, "0x80070057"), "returned E_INVALIDARG 0x80070057 at feature level 6_2, and no rule says why"),
        (line(TILE, "0x80004005"), "returned E_FAIL 0x80004005 at feature level 6_2, and no rule says why"),
        (line(None, "0x80070057", None, operator={"Type": 67}), "returned E_INVALIDARG 0x80070057, and no rule says w"),
        (line(None, "0x80070057", operator={"Type": 67}), "the fields of the operator, which were not captured"),
        (line(None, operator={"Type": 67}), ""),
        (line(WRONG, "0x80070057"), ""),
        (line(INT64, "0x80070057", None), ""),
        *((line(TILE, code), "") for code in ("0x00000000", "0x8007000E", "0x887A0005", "0x887A0006", "0x80004002")),
    ],
)
def test_a_refusal_that_no_rule_explains_fails(check: Call, captured: str, message: str) -> None:
    result = check("-", "-t", "4_1,6_4", stdin=captured)
    assert (result.stdout.count("warning[DML-CAPTURE-unexplained]") == 2) == bool(message)
    assert result.stdout.count("; fails: DirectML refused it where it was captured") == 2 * bool(message)
    assert message in result.stdout
    assert not message or result.exit_code == 1


MARK = '"null_device":true,'
AT_4_0 = "0x00004000"


@pytest.mark.parametrize(
    ("captured", "target", "verdict", "severities"),
    [
        (line(INT64, level=AT_4_0), "4_0", "undocumented", ["warning", "warning", "warning"]),
        (line(INT64, level=AT_4_0), "3_1", "refused", ["note", "error", "error"]),
        (line(INT64, level=AT_4_0, null_device=True), "4_0", "refused", ["error", "error"]),
        (line(INT64, "0x80070057", AT_4_0), "4_0", "refused", ["error", "error"]),
        (line(INT64, None, AT_4_0), "4_0", "refused", ["error", "error"]),
        (line(WRONG), "6_2", "refused", ["note", "error"]),  # as was measured there
        (line(TILE, level=AT_4_0), "4_0", "accepted", []),
    ],
)
def test_what_a_device_of_the_target_s_level_took_is_refused_by_measured_rules_alone(
    check: Call, captured: str, target: str, verdict: str, severities: list[str]
) -> None:
    result = check("-", "-t", target, "--format", "json", stdin=captured)
    (found,) = json.loads(result.stdout)["results"]
    assert (found["verdict"], [finding["severity"] for finding in found["findings"]]) == (verdict, severities)
    assert result.exit_code == bool(severities)
    asked = [finding["suggestion"] for finding in found["findings"] if finding["rule"] == "DML-CAPTURE-HRESULT"]
    assert all(suggestion.startswith("please report it") for suggestion in asked)
    printed = check("-", "-t", target, stdin=captured).stdout
    assert ("warning[DML-CAPTURE-HRESULT] DirectML took it where it was captured" in printed) == (
        verdict == "undocumented"
    )


def test_what_the_null_device_returned_is_no_answer(check: Call) -> None:
    text = (DATA / "null_device_false_report.jsonl").read_text()
    of_null, of_real = (check("-", "-t", "6_2", stdin=each).stdout for each in (text, text.replace(MARK, "")))
    assert re.findall(r"\[DML-[^\]]+\]", of_null) == ["[DML-OPERATOR-Sizes]"]
    assert "note[DML-CAPTURE-HRESULT]" in of_real


def test_the_graph_of_directmlx_s_clip_grad_lacks_an_edge_to_the_gradient(check: Call) -> None:
    printed = check("-", "-t", "6_2", stdin=(DATA / "dmlx_clip_grad.jsonl").read_text()).stdout
    assert "Nodes[0]: no edge leads to input 1 of ELEMENT_WISE_CLIP_GRAD, InputGradientTensor, but 1" in printed
    assert "DML-CAPTURE" not in printed


def test_a_call_that_never_returned_fails_and_keeps_its_verdict(check: Call) -> None:
    text = (DATA / "call_never_returned.jsonl").read_text()
    result = check("-", "-t", "6_2", stdin=text)
    assert result.stdout.startswith("-:1:139#/operator: accepted at 6_2; fails: DirectML did not return where it was")
    assert "warning[DML-CAPTURE-open]" in result.stdout
    assert "CreateOperator has not returned: the process ended inside DirectML, or is in it still" in result.stdout
    assert result.exit_code == 1
    assert check("-", "-t", "6_2", "--fail-on", "error", stdin=text).exit_code == 0


def test_what_was_not_looked_at_counts_as_a_note_unless_it_is_ignored(check: Call) -> None:
    text = (DATA / "graph_unknown_operator.jsonl").read_text()
    options = "-", "-t", "6_2", "--fail-on", "note", "--format", "concise"
    failing, passing = (check(*options, *more, stdin=text) for more in ([], ["--ignore", "not-looked-at"]))
    assert (failing.exit_code, passing.exit_code, passing.stdout) == (1, 0, "")
    assert failing.stdout == (
        "-:1: note[not-looked-at] graph: accepted in part; not looked at: Nodes[0].Operator, which is not known\n"
    )


def test_an_unexplained_refusal_changes_no_verdict_and_passes_where_warnings_pass(check: Call) -> None:
    result = check("-", "-t", "6_2", "--fail-on", "error", stdin=line(TILE, "0x80070057"))
    assert "accepted at 6_2; DirectML refused it where it was captured; lowest level 3_1" in result.stdout
    assert result.exit_code == 0


def test_equal_lines_are_reported_once_with_their_number(check: Call) -> None:
    text = (line(TILE) + line(INT64)) * 1200 + line(INT64, "0x80070057")
    files = "--format", "json:out.json", "--format", "sarif:out.sarif"
    result = check("-", "-t", "4_0", "--format", "text", *files, stdin=text)
    assert [one for one in result.stdout.splitlines() if one.startswith("-")] == [
        ("-:1: accepted at 4_0: FLOAT32 {2} x {2} -> {4}; lowest level 3_1, in the box from windows-11-21h2; "
        "1,200 times"),
        *(f"-:{line}: refused at 4_0; lowest level 4_1, in the box from windows-11-22h2{times}"
          for line, times in ((2, "; 1,200 times"), (2401, ""))),
    ]  # fmt: skip
    assert result.stdout.endswith("3 operators: 2 refused, 1 accepted\n")
    assert [record["times"] for record in json.loads(Path("out.json").read_text())["results"]] == [1200, 1200, 1]
    assert "INT64 {2} x {2} -> {4}, 1,200 times" in Path("out.sarif").read_text()


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ("", ["-#/operator: accepted at 4_1, 6_4: INT64 {2} x {2} -> {4}"]),
        ("--quiet", []),
        ("--verbose", [f"-#/operator: accepted at {level}" for level in ("4_1", "6_4")]),
    ],
)
def test_an_accepted_line_of_a_capture_is_printed_in_one_line(check: Call, options: str, shown: list[str]) -> None:
    printed = check("-", "-t", "4_1,6_4", *options.split(), stdin=line(INT64)).stdout
    assert [one.partition(";")[0] for one in printed.splitlines() if one.startswith("-")] == shown
    assert ("\n  INT64 {2} x {2} -> {4}\n" in printed) == (options == "--verbose")


def test_other_operators_are_counted_and_not_checked(check: Call) -> None:
    other = line(None, None, operator={"Type": 67})
    result = check("-", stdin=line(TILE) + other + other + line(None, operator=None))
    assert "the fields of DML_OPERATOR_GATHER are not given" in result.stdout
    assert "3 operators: 1 refused, 1 not checked, 1 accepted" in result.stdout


@pytest.mark.parametrize(
    ("captured", "message"),
    [
        (line(TILE, "80070057"), "hresult is '80070057'"),
        (line(TILE, "0x8007_0057"), "hresult is '0x8007_0057'"),
        (line(TILE, "0x\u0668"), "hresult is '0x\u0668'"),
        (line(TILE, "0x000000001"), "hresult is '0x000000001'"),
        (line(TILE, level="high"), "feature_level"),
        (line(TILE, "0xnone"), "hresult is '0xnone'"),
        (line(TILE, operator=7), "operator is 7; an object was expected"),
        (line(TILE, dml_tile_capture=2), "dml_tile_capture is 2"),
        (line(TILE | {"Repeats": [-1]}), "Repeats[0] is -1"),
        (line(TILE, more=1), "more is unknown"),
        (line(TILE, labl="x"), "labl is unknown (did you mean label?)"),
    ],
)
def test_a_line_that_is_no_capture_is_reported(check: Call, captured: str, message: str) -> None:
    assert message in errors_of(check, "-", stdin=captured)


def test_the_folders_of_the_headers_and_of_their_cmake_package_are_printed(call: Call) -> None:
    assert call("include-dir").stdout == f"{get_include()}\n"
    assert {path.name for path in Path(get_include(), "dml_tile").iterdir()} == {
        "capture.h", "capturing_device.h", "null_device.h", "operator_fields.h",
    }  # fmt: skip
    folder = Path(call("cmake-dir").stdout.strip())
    assert (folder / "dml_tileConfig.cmake").is_file()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f'set(PACKAGE_VERSION "{version}")' in (folder / "dml_tileConfigVersion.cmake").read_text()
