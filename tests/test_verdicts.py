"""Severities of findings, verdicts on tiles, and the exit status."""

from __future__ import annotations

import json
import pickle
from html import escape
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from dml_tile.back_ends import BACK_ENDS
from dml_tile.checking import require
from dml_tile.checks.judging import judged
from dml_tile.checks.result import Result
from dml_tile.checks.verdict import Verdict
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.readers.descriptors import read_document
from dml_tile.readers.item import Item, item_of
from dml_tile.readers.model_tile import DIALECTS, TileNode, tile_node
from tests.helpers.check_files import BAD, DOUBLES, TILE, WITHOUT_FIELDS, write
from tests.helpers.command_line import Call
from tests.helpers.descriptors import GOOD, row
from tests.helpers.onnx_graphs import model as onnx_model
from tests.helpers.onnx_graphs import save, typed
from tests.helpers.onnx_graphs import tile_node as onnx_tile


def result_of(part: Item | TileNode, target: str = "6_4", via: str | None = None) -> Result:
    item = part if isinstance(part, Item) else item_of(part)
    (result,) = judged("a", item, [Target.parse(target)], "both", BACK_ENDS[via] if via else None)
    return result


def node(data_type: str | None, shape: Any, repeats: Any) -> TileNode:
    arguments = [None if repeats is None else np.array(repeats)]
    return tile_node("t", DIALECTS["ONNX Tile-13"], data_type, shape, arguments)


def only(output: str) -> dict[str, Any]:
    (result,) = json.loads(output)["results"]
    return dict(result)


def test_a_result_has_the_positions_of_its_findings_and_not_the_text() -> None:
    text = f"{json.dumps(BAD)} // {'a' * 2**16}".encode()
    (item,) = read_document(text)
    assert isinstance(item, Item)
    result = result_of(item)
    position = result.item.position(result.findings[0].path)
    assert position is not None
    assert (position.line, position == item.position(result.findings[0].path)) == (1, True)
    assert result.item.position("Repeats[0]") is None
    assert len(pickle.dumps(result)) < 2**13


def test_an_error_is_raised_for_warnings_and_not_for_notes() -> None:
    with pytest.raises(DmlError, match=r"^no HRESULT, only the documentation forbids it; DirectML") as caught:
        require(row("FLOAT64", [2], [2]))
    assert caught.value.hresult is None
    require(OperatorDesc(type=0x80000001, desc=GOOD))


@pytest.mark.parametrize(
    ("part", "target", "via", "verdict"),
    [
        (Item("", GOOD), "6_4", None, Verdict.ACCEPTED),
        (Item("", row("FLOAT64", [2], [2])), "6_4", None, Verdict.UNDOCUMENTED),
        (Item("", row("INT64", [2], [2])), "4_0", None, Verdict.REFUSED),
        (Item("", row("FLOAT64", [2], [2], RepeatsCount=3)), "6_4", None, Verdict.REFUSED),
        (Item("", "DML_OPERATOR_GEMM"), "6_4", None, Verdict.NOT_CHECKED),
        (node("float32", ["N", 3], [1, 2]), "6_4", None, Verdict.ACCEPTED_SO_FAR),
        (node("float64", ["N", 3], [1, 2]), "6_4", None, Verdict.UNDOCUMENTED_SO_FAR),
        (node("int64", ["N", 3], [1, 2]), "4_0", None, Verdict.REFUSED),
        (node("float32", [2, 3], [1, -2]), "6_4", None, Verdict.REFUSED),
        (node("string", [2, 3], [1, 2]), "6_4", "ort", Verdict.ELSEWHERE),
        (node("float32", [2, 3], [1, 0]), "6_4", "ort", Verdict.ACCEPTED),
        (node("float32", ["N", 3], [1, 0]), "6_4", "ort", Verdict.ACCEPTED_SO_FAR),
        (node("float32", [2, 3], None), "6_4", "ort", Verdict.ACCEPTED_SO_FAR),
        (node("float32", [2, 3], None), "6_4", "chromium", Verdict.ACCEPTED_SO_FAR),
        (node("float32", [2] * 9, [1] * 9), "6_4", "ort", Verdict.REFUSED),
    ],
)  # fmt: skip
def test_a_tile_has_one_verdict(part: Any, target: str, via: str | None, verdict: Verdict) -> None:
    result = result_of(part, target, via)
    assert result.verdict is verdict
    assert result.ok is (verdict not in (Verdict.REFUSED, Verdict.UNDOCUMENTED, Verdict.UNDOCUMENTED_SO_FAR))


def test_a_tile_that_onnxruntime_keeps_from_directml_does_not_raise_the_lowest_level_of_its_model(check: Call) -> None:
    strings = onnx_tile("s", "r", "z", name="letters")
    inputs = [typed("x", [2, 3]), typed("s", [2, 3], TensorProto.STRING)]
    save("a.onnx", onnx_tile(name="widen"), strings, inputs=inputs)
    last = check("a.onnx", "--via", "ort").stdout.splitlines()[-2]
    assert last.split() == ["│", "a.onnx", "│", "1", "│", "0", "│", "5_0", "│", "windows-11-22h2", "│"]


@pytest.mark.parametrize(
    ("value", "fails_from"),
    [(TILE, None), (BAD, "error"), (DOUBLES, "warning"), (WITHOUT_FIELDS, "note")],
    ids=["accepted", "refused", "undocumented", "not-checked"],
)
def test_the_exit_status_and_ok_follow_fail_on(check: Call, value: Any, fails_from: str | None) -> None:
    write("a.json", value)
    words = ["error", "warning", "note"]
    for fail_on in (*words, "never", None):
        fails = fails_from is not None and (fail_on or "warning") in words[words.index(fails_from) :]
        result = check("a.json", *(["--fail-on", fail_on] if fail_on else []), "--format", "json")
        assert result.exit_code == int(fails)
        assert only(result.stdout)["ok"] is not fails


def test_what_is_known_at_run_time_only_counts_as_a_note(check: Call) -> None:
    save("a.onnx", inputs=[typed("x", ["N", 3])])
    assert [check("a.onnx", "--fail-on", fail_on).exit_code for fail_on in ("note", "warning")] == [1, 0]


def test_a_request_that_is_lowered_stands_before_its_steps_on_the_page(check: Call) -> None:
    save("c.onnx", inputs=[typed("x", [2, 3], TensorProto.COMPLEX64)])
    page = check("c.onnx", "--format", "html").stdout
    assert page.count(escape("complex64 {2,3} x {1,2} -> {2,6}")) == 3
    assert escape("UINT64 {2,3} x {1,2} -> {2,6}") in page
    assert "Request(" not in page


def test_in_junit_a_warning_below_fail_on_is_no_failure(check: Call) -> None:
    printed = check(write("a.json", DOUBLES), "--format", "junit", "--fail-on", "error").stdout
    assert not [*ElementTree.fromstring(printed).iter("failure")]


def test_ignoring_a_finding_never_makes_accepted_of_what_was_not_checked(check: Call) -> None:
    write("a.json", WITHOUT_FIELDS)
    result = only(check("a.json", "--ignore", "DML-OPERATOR", "--format", "json").stdout)
    assert (result["verdict"], result["findings"], result["deselected"]) == ("not checked", [], 1)


def test_a_run_that_checked_no_tile_says_so(check: Call) -> None:
    result = check(write("a.json", WITHOUT_FIELDS))
    assert (result.exit_code, result.stderr) == (0, "dml-tile: check: no operator was checked\n")
    assert check("a.json", "--require-operators").exit_code == 2
    assert check(write("b.json", TILE), "--require-operators").exit_code == 0


def test_what_holds_nothing_is_not_called_unread(check: Call) -> None:
    names = write("a.json", []), write("b.json", TILE)
    assert check(*names).stdout.endswith("1 with nothing to check; 1 operator: 1 accepted\n")
    assert "a.json: error[nothing-to-check] holds nothing to check\n" in check(*names, "--format", "concise").stdout
    assert "`a.json`: holds nothing to check" in check(*names, "--format", "markdown").stdout


NOTHING: Final[dict[str, tuple[str, str]]] = {
    # the arguments, and the name of which the check complains; empty where it does not
    "a list without descriptors": ("empty.json", "empty.json"),
    "lines without descriptors": ("empty.jsonl", "empty.jsonl"),
    "a model without a Tile": ("none.onnx", "none.onnx"),
    "a model without a Tile, through Chromium": ("none.onnx --via chromium", "none.onnx"),
    "a model without a node, through ort": ("none.onnx --via ort", "none.onnx"),
    "one of two": ("b.json empty.json", "empty.json"),
    "a folder of both": ("both", "both"),
    "a pattern": ("emp*.json", "emp*.json"),
    "an empty folder": ("nothing", "nothing"),
    "a folder of models that ort does not read": ("ir --via ort", "ir"),
    "a list of files": ("--files-from list.txt", "empty.json"),
    "a folder with something": ("some", ""),
    "a model of other nodes, through ort": ("some/other.onnx --via ort", ""),
    "all of it excluded": ("empty.json none.onnx both ir --exclude=*.json --exclude=*.onnx --exclude=*.xml", ""),
    "all of a folder excluded": ("both --exclude both", ""),
    "an empty list of files": ("--files-from empty.txt", ""),
    "paths of the settings": ("", ""),
    "what is no descriptor, skipped": ("empty.json none.onnx both nothing --skip-others", ""),
    "IR that ort does not read, skipped": ("ir --via ort --skip-others", ""),
}


@pytest.mark.parametrize(("arguments", "name"), NOTHING.values(), ids=NOTHING)
def test_a_name_that_holds_nothing_to_check_is_an_error(check: Call, arguments: str, name: str) -> None:
    for folder in ("both", "some", "nothing", "ir"):
        Path(folder).mkdir()
    passing_on = onnx_model(inputs=[typed("x", [2])])
    passing_on.graph.output[0].name = "x"
    for file in ("none.onnx", "both/none.onnx", "some/none.onnx"):
        onnx.save(passing_on, file)
    onnx.save(onnx_model("y = Neg(x)"), "some/other.onnx")
    write("ir/model.xml", "<net name='x' version='11'/>")
    for file in ("empty.json", "both/empty.json", "some/empty.json"):
        write(file, [])
    for file in ("empty.jsonl", "empty.txt"):
        write(file, "")
    write("list.txt", "b.json\nempty.json\n")
    for file in ("b.json", "some/b.json"):
        write(file, TILE)
    write("pyproject.toml", '[tool.dml-tile]\npaths = ["both", "nothing", "empty.json"]\n')
    result = check(*arguments.split())
    complaints = [line.split(": ")[1] for line in result.stderr.splitlines() if "holds no" in line]
    assert complaints == [name] * bool(name)
    assert result.exit_code == 2 * bool(name), result.stderr
    if not name:
        assert check(*arguments.split(), "--require-operators").exit_code == 2 * ("some" not in arguments)


@pytest.mark.parametrize(
    ("left_out", "arguments", "status"),
    [("a.json", "", 2), ("", "", 0), ("a.json", "models/a.json", 0), ("a.json", "--skip-others models", 0)],
)
def test_the_setting_requires_operators_where_the_settings_name_the_files(
    check: Call, left_out: str, arguments: str, status: int
) -> None:
    write("models/a.json", TILE)
    exclude = f'exclude = ["{left_out}"]' if left_out else ""
    write("pyproject.toml", f'[tool.dml-tile]\npaths = ["models"]\nrequire-operators = true\n{exclude}\n')
    assert check(*arguments.split()).exit_code == status
