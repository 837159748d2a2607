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
from tests.helpers.report_pages import HOSTILE, page, placed_model, report_of, rows, section, text_of
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
    """It is as much for 7,500 nodes of fifteen models as docs/limits.md has for 900,000."""
    monkeypatch.setattr(ModelReader, "parts", lambda self, path: [departing(500, 10, f"{path.name} ").placed])
    peaks = []
    for count in (1, 3, 18):  # the first imports modules
        for i in range(count):
            Path(f"{i}.onnx").touch()
        tracemalloc.start()
        check("*.onnx", "--via", "ort", "-t", f"{OLDER},{NEW}", f"--format={form}:out")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] - peaks[1] < 50 * 2**20 * 7.5 / 900


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


def test_markdown_says_that_nothing_is_new_against_the_baseline(check: Call) -> None:
    options = [save("y = Det(x)", inputs=[typed("x", [2, 3, 3])]), "--via", "ort", "-t", NEW]
    check(*options, "--write-baseline", "b.json")
    text = check(*options, "--baseline", "b.json", "--format", "markdown").stdout
    assert "Nothing is new against the baseline, which has 1 kind of departure from DirectML." in text
