"""The summary that ends a check's text: it comes last, and fits the terminal; and ``--quiet``, which leaves it out."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
from rich.console import Console

from dml_tile.checks.file_check import SourceSummary
from dml_tile.directml.enums import FeatureLevel
from dml_tile.reports.report import ReportOptions
from dml_tile.reports.text import TextReport
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import constant, model, node, tile_node

HEIGHT, WIDTH = 30, 80
LEVEL = FeatureLevel.DML_FEATURE_LEVEL_3_1
LONG = "exports/2025/encoder/with_attention_and_position_embeddings_of_all_layers_"


def source(name: str, *, tiles: int = 1, unknown: int = 0, failing: int = 0, is_whole: bool = True) -> SourceSummary:
    return SourceSummary(name, True, tiles, unknown, failing, None if failing else LEVEL, is_whole)


def summary(sources: Sequence[SourceSummary], *, is_terminal: bool = True, height: int = HEIGHT) -> list[str]:
    """Return the lines of the summary of a check, on a terminal or in a file."""
    output = io.StringIO()
    console = Console(file=output, force_terminal=is_terminal, width=WIDTH, height=height, no_color=True)
    TextReport(ReportOptions(output.write, lambda: console)).end(sources)
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", output.getvalue()).splitlines()]


def rows(lines: Sequence[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if line.startswith("│")]


def headings(lines: Sequence[str]) -> list[str]:
    (line,) = (line for line in lines if line.startswith("┃"))
    return [cell.strip() for cell in line.strip("┃").split("┃")]


def save(name: str, repeats: Sequence[int] | None) -> str:
    """Save a model of one tile, or, without repeats, of none."""
    tile = [constant("r", repeats), tile_node(name="t")] if repeats else [node("Relu", ["x"], ["y"])]
    onnx.save(model(*tile), name)
    return name


# The number of models that are shown


@pytest.mark.parametrize(
    ("is_terminal", "height", "count", "shown"),
    [(True, HEIGHT, 40, 20), (True, HEIGHT, 21, 21), (True, 1, 9, 5), (True, 15, 9, 5), (False, HEIGHT, 200, 200)],
)
def test_a_terminal_shows_as_many_models_as_leave_room_for_the_rest(
    is_terminal: bool, height: int, count: int, shown: int
) -> None:
    names = [f"m{number:03}.onnx" for number in range(count)]
    lines = summary(list(map(source, names)), is_terminal=is_terminal, height=height)
    assert [row[0] for row in rows(lines)] == names[:shown]
    assert lines[-1] == f"and {count - shown} more models, of which none fail" or shown == count
    assert ("more models" in "".join(lines)) == (shown < count)


def test_models_that_fail_or_were_not_read_whole_come_first_unless_all_fit() -> None:
    sources = [source(f"m{number:02}.onnx") for number in range(40)]
    sources += [source("fails.onnx", failing=1), source("unread.onnx", tiles=0, is_whole=False)]
    lines = summary(sources)
    assert [row[0] for row in rows(lines)][:3] == ["fails.onnx", "unread.onnx", "m00.onnx"]
    assert lines[-1] == "and 22 more models, of which none fail"
    assert len(lines) < HEIGHT - 2  # the counts may have a note above them, and the prompt follows
    assert [row[0] for row in rows(summary(sources[-3:]))] == ["m39.onnx", "fails.onnx", "unread.onnx"]


@pytest.mark.parametrize(("count", "fail"), [(21, "1 fails"), (24, "4 fail")])
def test_failing_models_that_are_not_shown_are_counted(count: int, fail: str) -> None:
    sources = [source(f"m{number:02}.onnx") for number in range(9)]
    sources += [source(f"f{number:02}.onnx", failing=number % 2, is_whole=bool(number % 2)) for number in range(count)]
    lines = summary(sources)
    assert {row[0][0] for row in rows(lines)} == {"f"}
    assert lines[-1] == f"and {count - 11} more models, of which {fail} or could not be read whole"


EXPAND = "an Expand is no Tile"


def test_models_without_tiles_are_one_line() -> None:
    tiled, bare = source("tiled.onnx"), [source(f"bare{number}.onnx", tiles=0) for number in range(3)]
    lines = summary([tiled, *bare])
    assert [row[0] for row in rows(lines)] == ["tiled.onnx"]
    assert " ".join(lines).endswith(f"3 models have no tiles: bare0.onnx, bare1.onnx, bare2.onnx; {EXPAND}")
    assert summary([tiled, bare[0]])[-1] == f"1 model has no tiles: bare0.onnx; {EXPAND}"
    assert "have no tiles" not in "".join(summary([tiled]))
    assert not rows(summary(bare))
    many = summary([source(f"bare{number}.onnx", tiles=0) for number in range(12)])
    assert " ".join(many).endswith(f" bare9.onnx and 2 more; {EXPAND}")


# Long names


def test_a_long_name_loses_its_middle_and_stays_on_its_line() -> None:
    lines = summary([source(f"{LONG}{number}.onnx", unknown=1) for number in range(3)])
    names = [row[0] for row in rows(lines)]
    assert [name.endswith(f"_{number}.onnx") for number, name in enumerate(names)] == [True] * 3
    assert all(name.startswith("exports/2025") and "…" in name for name in names)
    assert {len(line) for line in lines if line.startswith("│")} == {WIDTH}
    assert headings(lines) == ["model", "tiles", "lowest level", "oldest Windows"]


# On the command line


def test_the_summary_comes_last(check: Call) -> None:
    result = check(save("bad.onnx", (1, 0)), save("good.onnx", (1, 2)), save("none.onnx", None))
    lines = result.stdout.splitlines()
    totals = lines.index("2 tiles: 1 refused, 1 accepted")
    assert max(number for number, line in enumerate(lines) if "onnx#t" in line) < totals
    assert [row[0] for row in rows(lines[totals:])] == ["bad.onnx", "good.onnx"]
    assert lines[-1] == f"1 model has no tiles: none.onnx; {EXPAND}"


@pytest.mark.parametrize(
    ("arguments", "status", "stdout", "stderr"),
    [
        (["good.onnx"], 0, "", ""),
        (["--fail-on", "never", "bad.onnx"], 0, "", ""),
        (["--fail-on", "error", "good.onnx", "bad.onnx"], 1, "bad.onnx#t: refused at 6_4", ""),
        (["broken.onnx"], 2, "", "dml-tile: broken.onnx: is not an ONNX model"),
        (["--format", "github", "good.onnx"], 0, "", ""),
        (["--format", "concise", "bad.onnx"], 1, "bad.onnx#t: error[DML-DIALECT-empty] ", ""),
    ],
)
def test_quiet_prints_failures_and_no_summary(
    check: Call, arguments: list[str], status: int, stdout: str, stderr: str
) -> None:
    save("good.onnx", (1, 2))
    save("bad.onnx", (1, 0))
    Path("broken.onnx").write_bytes(b"no model")
    result = check("-q", *arguments)
    assert result.exit_code == status
    for printed, beginning in ((result.stdout, stdout), (result.stderr, stderr)):
        assert printed.startswith(beginning)
        assert bool(printed) == bool(beginning)
    assert not any(word in result.stdout for word in ("good.onnx", "accepted at", "1 refused", "┃"))
