"""The table of report formats."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from dml_tile.reports.formats import FORMATS, Format
from dml_tile.reports.report import ReportOptions
from tests.helpers.command_line import Call
from tests.helpers.paths import EXAMPLES
from tests.helpers.report_pages import WRONG, checked


@pytest.mark.parametrize("row", FORMATS.values(), ids=FORMATS)
def test_each_format_writes_a_report(row: Format) -> None:
    output = io.StringIO()
    report = row.report(ReportOptions(output.write, lambda: Console(file=output)))
    report.add(checked(WRONG))
    report.end([], [])
    assert "DML-TILE-Repeats" in output.getvalue()


@pytest.mark.parametrize("row", FORMATS.values(), ids=FORMATS)
def test_statistics_are_for_formats_that_have_them(check: Call, row: Format) -> None:
    result = check(str(EXAMPLES / "tile.json"), "--format", row.name, "--statistics")
    assert result.exit_code == (0 if row.has_statistics else 2)
