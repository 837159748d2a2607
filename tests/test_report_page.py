"""The report page and the Markdown summary: their sections, and names from files, which stay text."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import repeat
from pathlib import Path

import pytest

from dml_tile.checks.catalogue import RULES
from dml_tile.checks.result import IN_BASELINE, NOT_SELECTED, CheckedFile, Result
from dml_tile.cli.app import main
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.findings import Against, Finding, unreadable
from dml_tile.readers.item import Item, item_of
from dml_tile.readers.model_tile import DIALECTS, TileNode
from dml_tile.reports import markdown
from dml_tile.reports.overview import OverviewRow
from dml_tile.reports.page import MAX_ON_A_PAGE
from dml_tile.reports.templates import hash_source
from tests.helpers.check_files import BAD, TILE, write
from tests.helpers.command_line import Call
from tests.helpers.descriptors import row
from tests.helpers.report_pages import (
    LONG,
    MIDDLE,
    NEW,
    OLD,
    SHORT,
    WRONG,
    checked,
    details,
    page,
    parsed,
    report_of,
    rows,
    section,
    text_of,
    texts,
)
from tests.helpers.rule_cases import quantize

DYNAMIC = item_of(TileNode("widen", DIALECTS["ONNX Tile-13"], "float32", ("batch", 3, 2, 2), (1, 1, 1, 2)))


def test_a_tile_has_a_row_with_a_verdict_for_each_target() -> None:
    html = page([checked(LONG, OLD, MIDDLE, NEW)])
    tile = "a.json#/long INT64 {1,2,3,4} x {1,1,2,1} -> {1,2,6,4}"
    assert texts(section(html, "operators"), ".//thead//th") == [
        *("Operator", "windows-10-2004 (2_0)", "windows-11-21h2 (4_0)", "6_4", "Lowest level", "Oldest Windows")
    ]
    assert rows(html, "operators") == [[tile, "✕ refused", "✕ refused", "✓ accepted", "4_1", "windows-11-22h2"]]


def test_the_refused_come_first() -> None:
    html = page([checked(SHORT), checked(DYNAMIC, source="a.onnx"), checked(WRONG), checked(SHORT, source="b.json")])
    assert [row[1:] for row in rows(html, "operators")] == [
        ["✕ refused", "none", "none"],
        ["◐ accepted so far", "", ""],
        *[["✓ accepted", "1_0", "windows-10-1903"]] * 2,
    ]


def test_the_lowest_level_of_an_operator_that_is_checked_in_part_is_a_bound() -> None:
    part = checked(Item("/quantize", quantize()))
    cells = ["◑ accepted in part", "at least 6_3", "none"]
    assert rows(page([part]), "operators")[0][1:] == cells
    assert f"| {' | '.join(cells)} |" in report_of("markdown", [part])


def test_an_operator_that_is_no_tile_is_not_checked() -> None:
    html = page([checked(Item("/gather", "DML_OPERATOR_GATHER"))])
    assert rows(html, "operators") == [["a.json#/gather", "– not checked", "", ""]]
    assert "the fields of DML_OPERATOR_GATHER are not given" in details(html)[0]
    assert '<b class="is-note">note</b>' in html


def test_a_row_leads_to_its_finding_with_rule_message_and_page() -> None:
    html = page([checked(SHORT), checked(WRONG)])
    links = [link.attrib["href"] for link in section(html, "operators").iter("a")]
    (tile,) = section(html, "findings").iter("details")
    assert links == [f"#{tile.attrib['id']}"]
    assert "/wrong" in texts(tile, "summary")[0]
    rule = RULES["DML-TILE-RepeatsCount"]
    (text,) = details(html)
    assert "DML-TILE-RepeatsCount E_INVALIDARG 0x80070057" in text
    assert "RepeatsCount: 3 was provided, but InputTensor.DimensionCount = 4 was expected" in text
    assert f"documented, runtime: {rule.says}" in text
    assert rule.url in [link.attrib["href"] for link in section(html, "findings").iter("a")]
    assert "At " not in text
    assert "Lowering" not in text


def test_a_finding_of_both_tensors_at_several_targets_stands_once_with_its_targets() -> None:
    (text,) = details(page([checked(LONG, OLD, MIDDLE, NEW)]))
    assert text.count("DML-TILE-DataType-level") == 1
    assert "InputTensor.DataType, OutputTensor.DataType: INT64 needs DML_FEATURE_LEVEL_4_1" in text
    assert "At windows-10-2004 (2_0), windows-11-21h2 (4_0)" in text
    assert text.count("DML_FEATURE_LEVEL_4_1; windows-10-2004 has 2_0") == 1
    assert text.count("DML_FEATURE_LEVEL_4_1; windows-11-21h2 has 4_0") == 1
    assert "At all targets" in details(page([checked(WRONG, MIDDLE, NEW)]))[0]


def test_the_lowering_stands_below_its_tile_once_with_its_commands() -> None:
    (text,) = details(page([checked(LONG, Target.parse("1_0"), OLD, MIDDLE)]))
    assert "Lowering for 1_0, windows-10-2004 (2_0)" in text
    assert "Lowering for windows-11-21h2 (4_0)" in text
    assert text.count("Step 1") == 2
    assert text.count("dml-tile lower a.json") == 3
    (text,) = details(page([checked(LONG, OLD)]))
    assert "Before INT64 {1,2,3,4} x {1,1,2,1} -> {1,2,6,4} input → output" in text
    assert re.search(r"Step 1 FLOAT32 \{.*\} input → output", text)
    assert "cost: 1 tile, 576 bytes read and written" in text
    assert "note: INT64 travels as FLOAT32" in text
    assert text.endswith("dml-tile lower a.json --target windows-10-2004 --pointer /long")
    assert "Try: lower it, or ship DirectML 1.7.0 or later with the application" in text
    (text,) = details(page([checked(LONG, OLD, source="n" * 1000)]))
    assert "Step 1" in text
    assert "dml-tile lower" not in text


def test_equal_results_are_equal_bytes_whenever_and_of_however_old_files(check: Call) -> None:
    write("bad.json", BAD)
    pages = []
    for modified in (0, 10**9):
        os.utime("bad.json", (modified, modified))
        pages.append(check("bad.json", "--format", "html").stdout)
    assert pages[0] == pages[1]
    assert not re.search(
        r"\b\d{4}-\d{2}-\d{2}|\b\d{1,2}:\d{2}\b", re.sub(r"<style>.*?</style>", "", pages[0], flags=re.DOTALL)
    )


def test_fields_that_are_known_at_run_time_only_are_named() -> None:
    (tile,) = section(page([checked(DYNAMIC, source="a.onnx")]), "findings").iter("details")
    assert texts(tile, ".//p") == [
        "FLOAT32 {batch,3,2,2} x {1,1,1,2} -> {batch,3,2,4}",
        "Known at run time only: InputTensor.Sizes[0] (batch)",
    ]


def test_the_back_end_and_findings_that_do_not_count_are_noted() -> None:
    (result,) = checked(SHORT)
    known = checked(WRONG)[0].findings
    uncounted = {NOT_SELECTED: known * 2, IN_BASELINE: known}
    html = page([[replace(result, item=replace(result.item, via="ort"), uncounted=uncounted)]])
    (tile,) = section(html, "findings").iter("details")
    assert texts(tile, ".//p")[1:] == ["Note: via ort", "Note: 2 findings not selected; 1 finding in the baseline"]


def test_tiles_are_counted_once_by_their_worst_verdict_and_at_each_target() -> None:
    html = page([checked(LONG, OLD, NEW), checked(SHORT, OLD, NEW), checked(WRONG, OLD, NEW)])
    assert rows(html, "targets") == [["windows-10-2004 (2_0)", "2", "1"], ["6_4", "1", "2"]]
    assert texts(section(html, "targets"), ".//thead//th") == ["Target", "Refused", "Accepted"]
    assert texts(parsed(html), ".//header//li") == ["2 ✕ refused", "1 ✓ accepted"]
    assert texts(parsed(html), ".//title") == ["Operators on DirectML: 3 operators: 2 refused, 1 accepted"]
    assert texts(parsed(html), ".//nav//a")[0] == "Operators (3)"


def test_the_note_of_a_target_stands_once() -> None:
    inferred = replace(OLD, note="it is inferred")
    assert page([checked(LONG, inferred), checked(SHORT, inferred)]).count("it is inferred") == 1


def test_rules_are_counted_by_the_tiles_that_break_them() -> None:
    html = page([checked(LONG, OLD, MIDDLE), checked(LONG, OLD, MIDDLE), checked(WRONG)])
    assert [row[:3] for row in rows(html, "rules-broken")] == [
        [rule, count, RULES[rule].says]
        for rule, count in (("DML-TILE-DataType-level", "2"), ("DML-TILE-RepeatsCount", "1"))
    ]


def test_models_are_summed_up() -> None:
    models = [
        CheckedFile("a.onnx", is_model=True, operators=2, unknown=1, lowest_level=FeatureLevel.DML_FEATURE_LEVEL_4_1),
        CheckedFile("b.onnx", is_model=True, operators=1, lowest_level=None),
        CheckedFile("c.onnx", is_model=True, is_whole=False),
    ]
    assert rows(page([checked(SHORT)], (), models), "models") == [
        ["a.onnx", "2", "1", "at least 4_1", "at least windows-11-22h2"],
        ["b.onnx", "1", "0", "none", "none"],
        ["c.onnx", "0", "0", "not all read", ""],
    ]


def test_parts_that_cannot_be_read_are_listed() -> None:
    html = page(
        [], [("a.json", unreadable("/1", "is 3; an object was expected")), ("b.onnx", unreadable("", "is truncated"))]
    )
    assert texts(section(html, "not-read"), ".//li") == [
        "a.json#/1: is 3; an object was expected",
        "b.onnx: is truncated",
    ]
    assert texts(parsed(html), ".//title") == ["Operators on DirectML: 2 files not read"]
    assert texts(parsed(html), ".//header//li") == ["2 ⚠ files not read"]
    assert [one.attrib["id"] for one in parsed(html).iter("section")] == ["not-read"]


def test_a_field_has_its_line_where_the_source_is_json(check: Call) -> None:
    write("a.json", BAD)
    Path("b.json").write_text('[\n{"InputTensor": 3}]')
    check("a.json", "b.json", "--format", "html:report.html", "--format", "markdown:summary.md")
    assert "was expected (line 11)" in Path("summary.md").read_text("utf-8")
    html = Path("report.html").read_text("utf-8")
    assert "but 4 = InputTensor.Sizes[0] 2 * Repeats[0] 2 was expected (line 11)" in details(html)[0]
    assert "b.json:2:1#/0: InputTensor is 3" in text_of(section(html, "not-read"))


def test_a_page_of_a_command_names_its_version_and_its_command(check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a b.json", TILE)
    arguments = ["check", "a b.json", "--format", "html:report.html"]
    monkeypatch.setattr(sys, "argv", ["dml-tile", *arguments])
    for name in ("PYTHONSAFEPATH", "OPENBLAS_NUM_THREADS"):  # which main sets
        monkeypatch.setenv(name, "")
    with pytest.raises(SystemExit):
        main()
    (footer,) = parsed(Path("report.html").read_text("utf-8")).iter("footer")
    assert texts(footer, ".//p")[0] == f"dml-tile {version('dml-tile')}"  # no time: equal results are equal bytes
    assert texts(footer, ".//pre") == ["dml-tile check 'a b.json' --format html:report.html"]


@pytest.mark.parametrize(
    ("against", "end"),
    [
        ("both", "measured to do."),
        ("runtime", "pass the documentation too."),
        ("documentation", "pass the runtime too."),
    ],
)
def test_a_page_without_tiles_names_its_contract_all_the_same(against: Against, end: str) -> None:
    document = parsed(page([], against=against))
    assert texts(document, ".//header//p")[0].endswith(end)
    assert texts(document, ".//title") == ["Operators on DirectML: no operators"]
    assert document.find(".//section") is None


def test_a_page_asks_for_nothing_else() -> None:
    html = page([checked(LONG, OLD), checked(WRONG)])
    document = parsed(html)
    assert not any("src" in element.attrib or element.tag in ("link", "iframe", "img") for element in document.iter())
    assert all(link.attrib["href"].startswith(("#", "https://")) for link in document.iter("a"))
    (policy,) = (meta.attrib["content"] for meta in document.iter("meta") if "http-equiv" in meta.attrib)
    (style,), (script,) = re.findall("<style>(.*)</style>", html, re.S), re.findall("<script>(.*)</script>", html, re.S)
    assert policy.startswith(f"default-src 'none'; style-src {hash_source(style)}; script-src {hash_source(script)};")
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.long
def test_so_many_results_are_counted_and_the_first_listed() -> None:
    accepted, refused = checked(SHORT), checked(LONG, MIDDLE)
    html = page([*repeat(accepted, MAX_ON_A_PAGE + 3), *repeat(refused, MAX_ON_A_PAGE + 4), accepted])
    assert len(rows(html, "operators")) == 2 * MAX_ON_A_PAGE
    assert rows(html, "targets") == [
        ["6_4", "0", str(MAX_ON_A_PAGE + 4)],
        ["windows-11-21h2 (4_0)", str(MAX_ON_A_PAGE + 4), "0"],
    ]
    assert rows(html, "rules-broken")[0][1] == str(MAX_ON_A_PAGE + 4)
    assert "Counted above but not listed: 4 refused, 4 accepted." in text_of(section(html, "operators"))
    assert "not listed" not in page([accepted])
    assert len(html) < 10 * 2**20


def test_a_row_of_a_page_keeps_no_text_that_is_not_shown() -> None:
    made = OverviewRow(checked(Item("", row("INT64", [2, 3], [1, 1], RepeatsCount=3)), OLD), "refused", "-")
    assert len(made.findings) > 1
    assert not any(finding.operator or finding.identity for finding in made.findings)


def test_models_and_problems_are_bounded_too() -> None:
    many = MAX_ON_A_PAGE + 1
    html = page([], [("a.json", unreadable("", "is bad"))] * many, [CheckedFile("a.onnx", is_model=True)] * many)
    assert len(rows(html, "models")) == len([*section(html, "not-read").iter("li")]) == MAX_ON_A_PAGE
    assert text_of(section(html, "models")).endswith("and 1 more model")
    assert text_of(section(html, "not-read")).endswith("and 1 more problem")


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_a_name_in_the_syntax_of_templates_stays_text(form: str) -> None:
    name = "{{ 7 * 7 }}{% raw %}{# no #}"
    assert name in report_of(form, [checked(SHORT, source=name)])


# Markdown


def summary(*tiles: Sequence[Result], problems: Sequence[tuple[str, Finding]] = ()) -> str:
    return report_of("markdown", tiles, problems)


def test_markdown_counts_tiles_and_unread_files_and_has_a_row_for_each_tile_the_refused_first() -> None:
    text = summary(checked(SHORT, OLD, NEW), checked(LONG, OLD, NEW), problems=[("b.json", unreadable("/1", "is bad"))])
    heading, _, problem, *lines = text.splitlines()
    assert heading == "## Operators on DirectML: 1 file not read; 2 operators: 1 refused, 1 accepted"
    assert problem == "- `b.json#/1` cannot be read: is bad"
    assert summary() == "## Operators on DirectML: no operators\n"
    assert [line for line in lines if line.startswith("|")] == [
        "| Operator | windows-10-2004 (2_0) | 6_4 | Lowest level | Oldest Windows |",
        "| --- | --- | --- | --- | --- |",
        "| `a.json#/long` `TILE` | ✕ refused | ✓ accepted | 4_1 | windows-11-22h2 |",
        "| `a.json#/short` `TILE` | ✓ accepted | ✓ accepted | 1_0 | windows-10-1903 |",
    ]


def test_a_finding_stands_in_markdown_once_with_its_targets_and_lowering() -> None:
    text = summary(checked(LONG, OLD, MIDDLE, NEW))
    assert len(re.findall(r"^- error \[DML-TILE-DataType-level\]\(https://", text, re.MULTILINE)) == 1
    assert " at windows-10-2004 (2_0), windows-11-21h2 (4_0): InputTensor.DataType, OutputTensor.DataType: " in text
    assert "  - try: lower it, or ship DirectML 1.7.0 or later with the application\n" in text
    assert "\n    dml-tile lower a.json --target windows-10-2004 --pointer /long\n" in text


def test_notes_stand_in_markdown_below_a_tile_that_has_some() -> None:
    (result,) = checked(SHORT)
    known = checked(LONG, MIDDLE)[0].findings
    assert "###" not in summary([result])
    assert "- note: 2 findings in the baseline\n" in summary([replace(result, uncounted={IN_BASELINE: known})])


def test_a_long_list_in_markdown_is_cut_and_counted() -> None:
    many = markdown.MAX_IN_A_COMMENT + 2
    text = summary(
        *[checked(WRONG)] * many, *[checked(SHORT)] * many, problems=[("a", unreadable("", "is bad"))] * many
    )
    assert text.count("| ✕ refused") == text.count("| ✓ accepted") == markdown.MAX_IN_A_COMMENT
    assert "Not listed: 2 refused, 2 accepted.\n" in text
    assert "- and 2 more that cannot be read\n" in text
