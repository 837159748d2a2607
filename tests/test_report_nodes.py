"""The nodes of models on the report page and in Markdown: a model a row, then the kinds of departure, however many."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from dml_tile.back_ends.described_node import NodePlace
from dml_tile.back_ends.placement import Placement, Reason
from dml_tile.checks.placements import ModelNodes
from dml_tile.directml.targets import Target
from dml_tile.readers.sandbox.parent import ModelReader
from dml_tile.reports.markdown import MAX_IN_A_COMMENT
from dml_tile.reports.page import MAX_ON_A_PAGE
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import typed
from tests.helpers.report_pages import HOSTILE, page, placed_model, report_of, rows, section, text_of, texts
from tests.test_model_nodes import NEW, save

OLDER: Final = "onnxruntime-directml-1.18.1"
ON_DIRECTML: Final = Reason(Placement.DIRECTML)


def departing(count: int, kinds: int = 1, name: str = "") -> ModelNodes:
    """Return a model with one node on DirectML, and others of so many operators on the CPU, at two targets."""
    nodes = [(NodePlace("0", "", "", "Relu", 14), ON_DIRECTML)]
    operators = [f"Op{i}{name}" for i in range(kinds)]
    reasons = [Reason(Placement.CPU, "ORT-CPU-unregistered", f"{each}-1: no release has it") for each in operators]
    nodes += [
        (NodePlace(str(i), f"{name}{i}", "", operators[i % kinds], 1), reasons[i % kinds]) for i in range(1, count)
    ]
    return placed_model(nodes, Target.parse(OLDER), Target.parse(NEW))


@pytest.mark.parametrize("form", ["text", "sarif"])
def test_of_the_nodes_of_many_models_only_what_a_format_lists_is_kept(
    check: Call, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """It is as much for 3,000 nodes of six models as docs/limits.md has for 900,000."""
    monkeypatch.setattr(ModelReader, "parts", lambda self, path: [departing(500, 10, f"{path.name} ").placed])
    peaks = []
    for count in (1, 3, 9):  # the first imports modules
        for i in range(count):
            Path(f"{i}.onnx").touch()
        tracemalloc.start()
        check("*.onnx", "--via", "ort", "-t", f"{OLDER},{NEW}", f"--format={form}:out")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] - peaks[1] < 50 * 2**20 * 3 / 900


def test_a_model_has_a_bar_and_the_numbers_of_its_nodes_at_each_target(check: Call) -> None:
    save("a = Det(x); b = Relu(a); y = Relu(b)", inputs=[typed("x", [2, 3, 3])], opset=22)
    html = check("a.onnx", "--via", "ort", "-t", f"{OLDER},{NEW},2_0", "--format", "html").stdout
    assert texts(section(html, "nodes"), ".//thead//th") == [
        "Model",
        f"{OLDER} (6_3)",
        f"{NEW} (6_4)",
        "2_0 via ort-1.24",
    ]
    assert rows(html, "nodes") == [
        ["a.onnx", "does not load3 with no provider", "loads2 on DirectML2 accepted1 on the CPU", "no device"]
    ]
    bars = [[bar.attrib["width"] for bar in svg.iter("rect")] for svg in section(html, "nodes").iter("svg")]
    assert bars == [["3"], ["2", "1", "2"]]
    markdown = check("a.onnx", "--via", "ort", "-t", f"{NEW},2_0", "--format", "markdown").stdout
    assert "| `a.onnx` | loads: 2 on DirectML (2 accepted), 1 on the CPU | no device |" in markdown
    notes = markdown.partition("<details><summary>1 note</summary>\n\n")[2].partition("\n\n</details>\n")[0]
    assert notes.startswith("- note ORT-CPU-unregistered in `a.onnx`")
    assert 'id="notices"' not in html
    assert "1 model placed, 1 failing at some target" in html


def test_below_stand_the_kinds_of_departure_the_errors_first_and_filters(check: Call) -> None:
    save("a = Det(x); b = Relu(a); y = Relu(b)", inputs=[typed("x", [2, 3, 3])], opset=22)
    html = check("a.onnx", "--via", "ort", "-t", f"{NEW},{OLDER}", "--format", "html").stdout
    kinds = section(html, "departures-from-directml")
    error, note = rows(html, "departures-from-directml")
    assert error[0] == "the model"
    assert "error ORT-MODEL-opset opset 22: onnxruntime 1.18 loads up to 21" in error[3]
    assert "Try: export at opset 21 or below" in error[3]
    why = "note ORT-CPU-unregistered no release registers Det"
    assert note == ["Det-22", "1", "on the CPU", why, "0", f"{NEW} (6_4)"]
    chosen_by = [body.attrib for body in kinds.iter("tbody")]
    assert chosen_by[1] == {
        "data-verdicts": f"on the CPU|on the CPU at {NEW} (6_4)",
        "data-rules": "ORT-CPU-unregistered",
    }
    assert texts(kinds, ".//fieldset/label") == ["all", "on the CPU", "with no provider"]


def test_a_bar_parts_the_nodes_on_directml_by_the_verdicts_on_their_operators(check: Call) -> None:
    inputs = [typed("x", [2, 3]), typed("u", ["N", 3]), typed("v", [3, 3])]
    save("a = Softmax(x); b = Relu(x); c = Relu(u); d = Det(v); y = Sum(a, b, c, d)", inputs=inputs)
    html = check("a.onnx", "--via", "ort", "-t", f"windows-11-23h2,{NEW}", "--format", "html").stdout
    old, new = section(html, "nodes").iter("svg")
    assert [(bar.attrib["class"], bar.attrib["x"], bar.attrib["width"]) for bar in old.iter("rect")] == [
        ("directml", "0", "4"),
        ("cpu", "4", "1"),
        ("accepted-there", "0", "1"),
        ("known-at-run-time-only-there", "1", "2"),
        ("refused-there", "3", "1"),
    ]
    assert [bar.attrib["width"] for bar in new.iter("rect")] == ["4", "1", "2", "2"]
    kinds = section(html, "departures-from-directml")
    refused, *_ = kinds.iter("tbody")
    label = "windows-11-23h2 (5_0)"
    assert refused.attrib["data-verdicts"] == f"on DirectML, refused|on DirectML, refused at {label}"
    chosen_by = ["all", "on DirectML, known at run time only", "on DirectML, refused", "on the CPU"]
    assert texts(kinds, ".//fieldset/label") == chosen_by


def test_many_nodes_make_a_page_of_kinds_that_is_short() -> None:
    kinds = MAX_ON_A_PAGE + 10
    many = departing(20_000, kinds, "n" * 200)
    html = page([], nodes=[many])
    assert len(html) < 3_000_000
    assert len(rows(html, "departures-from-directml")) == MAX_ON_A_PAGE
    assert text_of(section(html, "departures-from-directml")).endswith(f"and {kinds - MAX_ON_A_PAGE} more kinds")
    text = report_of("markdown", [], nodes=[many])
    assert len(text) < 100_000
    assert text.endswith(f"\n</details>\n\nand {kinds - MAX_IN_A_COMMENT} more\n")


def test_names_of_nodes_and_models_stay_text() -> None:
    hostile = departing(2, name=f"{HOSTILE}\u202e\n|{'n' * 2000}")
    html = page([], nodes=[hostile, replace(hostile, source=HOSTILE)])
    assert len(html) < 50_000
    assert html.count("<script") == 1
    assert "<img" not in html
    assert "\u202e" not in html
    text = report_of("markdown", [], nodes=[hostile])
    assert "<script" not in text.replace("\\<", "").replace("`", "")
    assert "\u202e" not in text


def test_markdown_has_a_table_of_models_by_targets_and_what_is_new_against_the_baseline(check: Call) -> None:
    save("y = Det(x)", inputs=[typed("x", [2, 3, 3])])
    options = ["a.onnx", "--via", "ort", "-t", NEW]
    check(*options, "--write-baseline", "b.json")
    table = f"| Model | {NEW} (6_4) |\n| --- | --- |\n| `a.onnx` | loads: "
    text = check(*options, "--baseline", "b.json", "--format", "markdown").stdout
    assert f"{table}1 on the CPU |\n" in text
    assert "Nothing is new against the baseline, which has 1 kind of departure from DirectML." in text
    save("z = Det(x); y = Unique(z)", inputs=[typed("x", [2, 3, 3])])
    text = check(*options, "--baseline", "b.json", "--format", "markdown").stdout
    assert f"{table}2 on the CPU |\n" in text
    assert "new against the baseline, which has 1 kind of departure from DirectML:\n\n<details open>" in text
    assert text.count("\n- ") == 1
    assert "1 more, which are not listed" in check(*options, "--baseline", "b.json", "--format", "html").stdout
