"""The matrix of ``dml-tile levels``: each cell against the support table, in each format."""

from __future__ import annotations

import re
from typing import Final

import pytest
from rich.console import Console

from dml_tile.directml.targets import WINDOWS_RELEASES, Target
from dml_tile.reports.tables import NOT_TAKEN, matrix_html, matrix_markdown, matrix_rows, matrix_table
from dml_tile.rules.check import check
from tests.helpers.command_line import invoke
from tests.helpers.descriptors import row
from tests.helpers.report_pages import parsed

RELEASES: Final = [release.name for release in WINDOWS_RELEASES]
TYPES: Final = ["FLOAT32", "FLOAT16", "UINT32", "UINT16", "UINT8", "INT32", "INT16", "INT8", "UINT64", "INT64"]
RANGES: Final = {"4": range(4, 5), "1 to 8": range(1, 9), NOT_TAKEN: range(0)}


def shown(width: int) -> list[str]:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(matrix_table(width))
    return capture.get().splitlines()


@pytest.mark.parametrize("name", RELEASES)
def test_each_cell_agrees_with_check(name: str) -> None:
    (cells,) = (line.dimensions for line in matrix_rows() if line.release == name)
    assert [data_type.name for data_type in cells] == TYPES
    for data_type, dimensions in cells.items():
        for rank in range(1, 9):
            accepted = not check(row(data_type.name, [2] * rank, [1] * rank), name, against="documentation")
            assert accepted == (rank in RANGES[dimensions])


@pytest.mark.parametrize("width", [75, 80, 120])
def test_each_data_type_has_a_column_where_there_is_room(width: int) -> None:
    lines = shown(width)
    assert all(len(line) <= width for line in lines)
    words, digits = lines[2].split(), lines[3].split()[1:]
    assert [f"{word}{digit}" for word, digit in zip(words, digits, strict=True)] == TYPES
    assert ["windows-10-22h2", "4", "4", *["-"] * 8] in [line.split() for line in lines]
    assert ["windows-11-21h2", *["1-8"] * 8, "-", "-"] in [line.split() for line in lines]


@pytest.mark.parametrize("width", [40, 74])
def test_data_types_share_columns_where_there_is_less(width: int) -> None:
    lines = shown(width)
    assert all(len(line) <= width for line in lines)
    rows = [line.split() for line in lines]
    assert ["Windows", "float", "int", "int64"] in rows
    assert ["windows-11-21h2", "1-8", "1-8", "-"] in rows


def test_the_columns_that_are_shared_are_alike() -> None:
    for line in matrix_rows():
        cells = {data_type.name: dimensions for data_type, dimensions in line.dimensions.items()}
        assert len({cells[name] for name in TYPES if name.startswith("FLOAT")}) == 1
        assert len({cells[name] for name in TYPES if name.endswith("64")}) == 1
        assert len({cells[name] for name in TYPES if "INT" in name and not name.endswith("64")}) == 1


def test_markdown_has_each_release_type_and_level() -> None:
    heading, rule, *rows = (line.strip("| ").split(" | ") for line in matrix_markdown().splitlines())
    assert heading == ["Windows", "DirectML in the box", "feature level", *TYPES]
    assert rule == ["---"] * len(heading)
    assert [cells[0] for cells in rows] == RELEASES
    assert ["windows-11-23h2", "1.8.0, inferred", "5_0", *["1 to 8"] * 10] in rows
    for cells in rows:
        assert cells[2] == Target.parse(cells[0]).feature_level.short


def test_html_holds_the_rows_of_markdown_and_needs_no_other_file() -> None:
    page = matrix_html()
    heading, _, *lines = (line.strip("| ").split(" | ") for line in matrix_markdown().splitlines())
    assert [[cell.text for cell in tr.children] for tr in parsed(page).all("tr")] == [heading, *lines]
    assert not re.search(r"<script|<link|<img|@import|url\(|\bsrc=", page)
    assert page.count('scope="row"') == len(RELEASES)


@pytest.mark.parametrize(("form", "expected"), [("markdown", matrix_markdown()), ("html", matrix_html())])
def test_the_command_prints_it(form: str, expected: str) -> None:
    result = invoke("levels", "--format", form)
    assert (result.exit_code, result.stdout) == (0, expected)
