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

from dml_tile.checks.result import IN_BASELINE, NOT_SELECTED, CheckedFile, Result
from dml_tile.cli.app import main
from dml_tile.directml.enums import FeatureLevel
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


def test_a_long_source_has_a_lowering_without_its_command() -> None:
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


def test_the_back_end_and_findings_that_do_not_count_are_noted() -> None:
    (result,) = checked(SHORT)
    known = checked(WRONG)[0].findings
    uncounted = {NOT_SELECTED: known * 2, IN_BASELINE: known}
    html = page([[replace(result, item=replace(result.item, via="ort"), uncounted=uncounted)]])
    (tile,) = section(html, "findings").iter("details")
    assert texts(tile, ".//p")[1:] == ["Note: via ort", "Note: 2 findings not selected; 1 finding in the baseline"]


def test_the_note_of_a_target_stands_once() -> None:
    inferred = replace(OLD, note="it is inferred")
    assert page([checked(LONG, inferred), checked(SHORT, inferred)]).count("it is inferred") == 1


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
    html = page([], [unreadable("", "is bad", source="a.json")] * many, [CheckedFile("a.onnx", is_model=True)] * many)
    assert len(rows(html, "models")) == len([*section(html, "not-read").iter("li")]) == MAX_ON_A_PAGE
    assert text_of(section(html, "models")).endswith("and 1 more model")
    assert text_of(section(html, "not-read")).endswith("and 1 more problem")


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_a_name_in_the_syntax_of_templates_stays_text(form: str) -> None:
    name = "{{ 7 * 7 }}{% raw %}{# no #}"
    assert name in report_of(form, [checked(SHORT, source=name)])


# Markdown


def summary(*tiles: Sequence[Result], problems: Sequence[Finding] = ()) -> str:
    return report_of("markdown", tiles, problems)


def test_notes_stand_in_markdown_below_a_tile_that_has_some() -> None:
    (result,) = checked(SHORT)
    known = checked(LONG, MIDDLE)[0].findings
    assert "###" not in summary([result])
    assert "- note: 2 findings in the baseline\n" in summary([replace(result, uncounted={IN_BASELINE: known})])


def test_a_long_list_in_markdown_is_cut_and_counted() -> None:
    many = markdown.MAX_IN_A_COMMENT + 2
    text = summary(
        *[checked(WRONG)] * many, *[checked(SHORT)] * many, problems=[unreadable("", "is bad", source="a")] * many
    )
    assert text.count("| ✕ refused") == text.count("| ✓ accepted") == markdown.MAX_IN_A_COMMENT
    assert "Not listed: 2 refused, 2 accepted.\n" in text
    assert "- and 2 more that cannot be read\n" in text
