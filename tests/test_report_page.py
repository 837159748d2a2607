"""The report page and the Markdown summary: their sections, and names from files, which stay text."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from dml_tile.checks.result import CheckedFile
from dml_tile.cli.app import main
from dml_tile.findings import Against, unreadable
from dml_tile.readers.item import Item
from dml_tile.reports import markdown
from dml_tile.reports import page as report_page
from dml_tile.reports.overview import OverviewRow
from dml_tile.reports.templates import hash_source
from tests.helpers.check_files import TILE, write
from tests.helpers.command_line import Call
from tests.helpers.descriptors import row
from tests.helpers.report_pages import (
    LONG,
    MIDDLE,
    OLD,
    SHORT,
    WRONG,
    checked,
    page,
    parsed,
    report_of,
    rows,
    section,
    text_of,
    texts,
)


def test_a_long_source_has_a_lowering_without_its_command() -> None:
    (text,) = texts(section(page([checked(LONG, OLD, source="n" * 1000)]), "findings"), ".//details")
    assert "Step 1" in text
    assert "dml-tile lower" not in text


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
    ("against", "end"), [("runtime", "pass the documentation too."), ("documentation", "pass the runtime too.")]
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


def test_so_many_of_each_list_are_shown_and_the_others_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_page, "MAX_ON_A_PAGE", 3)
    monkeypatch.setattr(report_page.PageReport, "max_listed", 3)
    accepted, refused = checked(SHORT), checked(LONG, MIDDLE)
    problems, models = (
        [unreadable("", "is bad", source="a.json")],
        [CheckedFile("a.onnx", is_model=True, is_whole=False)],
    )
    html = page([*[accepted] * 6, *[refused] * 7, accepted], problems * 4, models * 4)
    assert len(rows(html, "operators")) == 2 * 3
    assert rows(html, "targets") == [["6_4", "0", "7"], ["windows-11-21h2 (4_0)", "7", "0"]]
    assert rows(html, "rules-broken")[0][1] == "7"
    assert "Counted above but not listed: 4 refused, 4 accepted." in text_of(section(html, "operators"))
    assert rows(html, "models") == [["a.onnx", "0", "0", "not all read", ""]] * 3
    assert text_of(section(html, "models")).endswith("and 1 more model")
    assert len([*section(html, "not-read").iter("li")]) == 3
    assert text_of(section(html, "not-read")).endswith("and 1 more problem")
    assert "not listed" not in page([accepted])
    assert len(html) < 2**16


def test_a_row_of_a_page_keeps_no_text_that_is_not_shown() -> None:
    made = OverviewRow(checked(Item("", row("INT64", [2, 3], [1, 1], RepeatsCount=3)), OLD), "refused", "-")
    assert len(made.findings) > 1
    assert not any(finding.operator or finding.identity for finding in made.findings)


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_a_name_in_the_syntax_of_templates_stays_text(form: str) -> None:
    name = "{{ 7 * 7 }}{% raw %}{# no #}"
    assert name in report_of(form, [checked(SHORT, source=name)])


# Markdown


def test_a_long_list_in_markdown_is_cut_and_counted() -> None:
    many = markdown.MAX_IN_A_COMMENT + 2
    problems = [unreadable("", "is bad", source="a")] * many
    text = report_of("markdown", [checked(WRONG), checked(SHORT)] * many, problems)
    assert text.count("| ✕ refused") == text.count("| ✓ accepted") == markdown.MAX_IN_A_COMMENT
    assert "Not listed: 2 refused, 2 accepted.\n" in text
    assert "- and 2 more that cannot be read\n" in text
