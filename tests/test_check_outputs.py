"""Several formats at once, each with its file, whole or not at all; the summary."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from rich.console import Console

from dml_tile.checks.result import CheckedFile
from dml_tile.directml.enums import FeatureLevel
from dml_tile.reports.report import ReportOptions
from dml_tile.reports.text import TextReport
from tests.helpers.check_files import BAD, write
from tests.helpers.command_line import Call, bash
from tests.helpers.onnx_graphs import constant, node, tile_node
from tests.helpers.onnx_graphs import model as onnx_model

FULL = b"dml-tile: standard output: No space left on device\n"


def files() -> set[str]:
    return {str(path) for path in Path().rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("options", "form", "file"),
    [
        ("--format json:out.json", "json", "out.json"),
        ("--format json:a:b.json", "json", "a:b.json"),
        ("--format text:out.txt", "text", "out.txt"),  # which no colour gets into
    ],
)
def test_a_format_has_a_file(check: Call, monkeypatch: pytest.MonkeyPatch, options: str, form: str, file: str) -> None:
    printed = check(write("a.json", BAD), "--format", form).stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = check("a.json", *options.split())
    assert (result.exit_code, result.stdout) == (1, "")
    assert Path(file).read_text() == printed
    assert files() == {"a.json", file}


def test_a_report_beside_checked_files_is_not_checked_the_next_time(check: Call) -> None:
    write("in/a.json", BAD | {"InputTensor": None})
    statuses = [check("in", "--format", "json:in/report.json").exit_code for _ in range(2)]
    assert statuses == [1, 1]


@pytest.mark.posix
@pytest.mark.parametrize(
    ("form", "name", "reason"),
    [
        ("sarif", "missing/x", "No such file or directory"),
        ("sarif", "folder", "Is a directory"),
        ("sarif", "a.json/x", "Not a directory"),
        *((form, "/dev/full", "No space left on device") for form in ("text", "json", "github", "sarif", "junit")),
    ],
)
def test_an_unwritable_file_is_named_and_no_other_is_left(check: Call, form: str, name: str, reason: str) -> None:
    write("a.json", [BAD] * 200)
    write("old.json", "old")
    Path("folder").mkdir()
    result = check("a.json", "--format=json:old.json", f"--format={form}:{name}", "--format=jsonl:new.jsonl")
    assert (result.exit_code, result.stderr) == (2, f"dml-tile: {name}: {reason}\n")
    assert files() == {"a.json", "old.json"}
    assert Path("old.json").read_text() == "old"
    assert Path("/dev/full").is_char_device()


@pytest.mark.posix
@pytest.mark.parametrize(
    ("lines", "command", "status", "errors"),
    [
        (100, "--format json:out.json --format text | head -n 1", 1, b""),
        *((1, f"--format json:out.json --format {form} > /dev/full", 2, FULL) for form in ("github", "sarif")),
        (1, "--format json:/dev/stdout > out.json", 1, b""),
    ],
)
def test_the_other_formats_are_whole_or_absent_whatever_becomes_of_standard_output(
    tmp_path: Path, lines: int, command: str, status: int, errors: bytes
) -> None:
    (tmp_path / "many.jsonl").write_text(f"{json.dumps(BAD)}\n" * lines)
    done = bash(f"dml-tile check many.jsonl {command}; exit ${{PIPESTATUS[0]}}", tmp_path)
    assert (done.returncode, done.stderr) == (status, errors)
    assert (tmp_path / "out.json").exists() == (status == 1)
    if status == 1:
        assert len(json.loads((tmp_path / "out.json").read_text())["results"]) == lines


# The summary that ends the text: it comes last, and fits the terminal; and --quiet, which leaves it out

HEIGHT, WIDTH = 30, 80
LEVEL = FeatureLevel.DML_FEATURE_LEVEL_3_1
LONG = "exports/2025/encoder/with_attention_and_position_embeddings_of_all_layers_"


def source(name: str, *, tiles: int = 1, unknown: int = 0, failing: int = 0, is_whole: bool = True) -> CheckedFile:
    level = None if failing else LEVEL
    made = CheckedFile(name, is_model=True, lowest_level=level, is_whole=is_whole)
    return replace(made, operators=tiles, unknown=unknown, failing=failing)


def summary(sources: Sequence[CheckedFile], *, is_terminal: bool = True, height: int = HEIGHT) -> list[str]:
    """Return the lines of the summary of a check, on a terminal or in a file."""
    output = io.StringIO()
    output.isatty = lambda: is_terminal  # type: ignore[method-assign]
    console = Console(file=output, force_terminal=is_terminal, width=WIDTH, height=height, no_color=True)
    TextReport(ReportOptions(output.write, lambda: console)).end(sources)
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", output.getvalue()).splitlines()]


def rows(lines: Sequence[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if line.startswith("│")]


def save(name: str, repeats: Sequence[int] | None) -> str:
    """Save a model of one tile, or, without repeats, of none."""
    tile = [constant("r", repeats), tile_node(name="t")] if repeats else [node("Relu", ["x"], ["y"])]
    onnx.save(onnx_model(*tile), name)
    return name


# The number of models that are shown


@pytest.mark.parametrize(
    ("is_terminal", "height", "count", "shown"),
    [(True, HEIGHT, 40, 20), (True, HEIGHT, 21, 21), (True, 1, 9, 5), (True, 15, 9, 5), (False, HEIGHT, 200, 200)],
)
def test_a_terminal_shows_models_as_far_as_they_fit(is_terminal: bool, height: int, count: int, shown: int) -> None:
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


def test_models_without_tiles_are_one_line() -> None:
    tiled, bare = source("tiled.onnx"), [source(f"bare{number}.onnx", tiles=0) for number in range(3)]
    lines = summary([tiled, *bare])
    assert [row[0] for row in rows(lines)] == ["tiled.onnx"]
    assert " ".join(lines).endswith("3 models have no tiles: bare0.onnx, bare1.onnx, bare2.onnx")
    assert summary([tiled, bare[0]])[-1] == "1 model has no tiles: bare0.onnx"
    assert "have no tiles" not in "".join(summary([tiled]))
    assert not rows(summary(bare))
    many = summary([source(f"bare{number}.onnx", tiles=0) for number in range(12)])
    assert " ".join(many).endswith(" bare9.onnx and 2 more")


# Long names


def test_a_long_name_loses_its_middle_and_stays_on_its_line() -> None:
    lines = summary([source(f"{LONG}{number}.onnx", unknown=1) for number in range(3)])
    names = [row[0] for row in rows(lines)]
    assert [name.endswith(f"_{number}.onnx") for number, name in enumerate(names)] == [True] * 3
    assert all(name.startswith("exports/2025") and "…" in name for name in names)
    assert {len(line) for line in lines if line.startswith("│")} == {WIDTH}


# On the command line


def test_the_summary_comes_last(check: Call) -> None:
    result = check(save("bad.onnx", (1, 0)), save("good.onnx", (1, 2)), save("none.onnx", None))
    lines = result.stdout.splitlines()
    totals = lines.index("1 with nothing to check; 2 operators: 1 refused, 1 accepted")
    assert max(number for number, line in enumerate(lines) if "onnx#t" in line) < totals
    assert [row[0] for row in rows(lines[totals:])] == ["bad.onnx", "good.onnx"]
    assert lines[-1] == (
        "1 model has no tiles: none.onnx; `dml-tile check --via ort` says which provider takes 1 other node"
    )
    printed = check("none.onnx", "--via", "chromium").stdout
    assert printed == "1 model has no tiles: none.onnx; docs/webnn.md says how to check another operator than tile\n"


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
def test_quiet_prints_failures_alone(check: Call, arguments: list[str], status: int, stdout: str, stderr: str) -> None:
    save("good.onnx", (1, 2))
    save("bad.onnx", (1, 0))
    Path("broken.onnx").write_bytes(b"no model")
    result = check("-q", *arguments)
    assert result.exit_code == status
    for printed, beginning in ((result.stdout, stdout), (result.stderr, stderr)):
        assert printed.startswith(beginning)
        assert bool(printed) == bool(beginning)
    assert not any(word in result.stdout for word in ("good.onnx", "accepted at", "1 refused", "┃"))
