"""The Markdown summary: its heading, its table and its findings; names from files stay text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dml_tile.checks.result import Result
from dml_tile.errors import Problem
from dml_tile.readers.descriptors import JsonDescriptor
from dml_tile.reports.markdown import MAX_LISTED
from tests.helpers.check_files import BAD, TILE, write
from tests.helpers.command_line import Call
from tests.helpers.report_pages import HOSTILE, LONG, MIDDLE, NEW, OLD, SHORT, WRONG, checked, report_of


def summary(*tiles: Sequence[Result], problems: Sequence[tuple[str, Problem]] = ()) -> str:
    return report_of("markdown", tiles, problems)


def test_the_heading_counts_tiles_and_what_cannot_be_read() -> None:
    text = summary(checked(LONG, OLD, NEW), checked(SHORT, OLD, NEW), problems=[("b.json", Problem("/1", "is bad"))])
    heading, _, problem, *_ = text.splitlines()
    assert heading == "## Tiles on DirectML: 1 file not read, 1 refused, 1 accepted"
    assert problem == r"- **b.json\#/1** cannot be read: is bad"
    assert summary() == "## Tiles on DirectML: no tiles\n"


def test_the_table_has_a_row_for_each_tile_the_refused_first() -> None:
    lines = summary(checked(SHORT, OLD, NEW), checked(LONG, OLD, NEW)).splitlines()
    assert [line for line in lines if line.startswith("|")] == [
        "| Tile | windows-10-2004 (2_0) | 6_4 | Lowest level | Oldest Windows |",
        "| --- | --- | --- | --- | --- |",
        "| a.json\\#/long | ✕ refused | ✓ accepted | 4_1 | windows-11-22h2 |",
        "| a.json\\#/short | ✓ accepted | ✓ accepted | 1_0 | windows-10-1903 |",
    ]


def test_a_finding_stands_once_with_its_targets_and_lowering() -> None:
    text = summary(checked(LONG, OLD, MIDDLE, NEW))
    assert len(re.findall(r"^- error \[DML-TILE-DataType-level\]\(https://", text, re.MULTILINE)) == 1
    assert " at windows-10-2004 (2_0), windows-11-21h2 (4_0): InputTensor.DataType, OutputTensor.DataType: " in text
    assert "  - try: lower it, or ship DirectML 1.7.0 or later with the application\n" in text
    assert "\n    dml-tile lower a.json --target windows-10-2004 --pointer /long\n" in text


def test_notes_stand_below_a_tile_that_has_some() -> None:
    (result,) = checked(SHORT)
    assert "###" not in summary([result])
    assert "- note: 2 findings in the baseline\n" in summary([replace(result, known=checked(LONG, MIDDLE)[0].findings)])


def test_names_are_text_whatever_is_in_them() -> None:
    name = f"{HOSTILE}|`*_[x](https://example.org)"
    text = summary(checked(JsonDescriptor(name, WRONG.desc), source=name), problems=[(name, Problem(name, name))])
    without_escapes = re.sub(r"\\[^\n]", "", text)
    assert "<" not in without_escapes
    assert "`" not in without_escapes
    assert not re.search(r"https://(?!learn\.microsoft\.com)", without_escapes)
    assert {line.count("|") for line in without_escapes.splitlines() if line.startswith("|")} == {5}


def test_a_long_list_is_cut_and_counted() -> None:
    many = MAX_LISTED + 2
    text = summary(*[checked(WRONG)] * many, *[checked(SHORT)] * many, problems=[("a", Problem("", "is bad"))] * many)
    assert text.count("| ✕ refused") == text.count("| ✓ accepted") == MAX_LISTED
    assert "Not listed: 2 refused, 2 accepted.\n" in text
    assert "- and 2 more that cannot be read\n" in text


def test_the_command_line_writes_it(check: Call) -> None:
    write("a.json", [TILE, BAD])
    result = check("a.json", "--format", "text", "--format", "markdown:summary.md")
    assert result.exit_code == 1
    assert "(line 29)" in Path("summary.md").read_text("utf-8")
