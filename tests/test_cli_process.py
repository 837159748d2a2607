"""The command line in a process of its own: terminals, pipes, closed streams, and completion by a shell."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.check_files import BAD, TILE
from tests.helpers.command_line import bash
from tests.helpers.forks import python
from tests.helpers.paths import EXAMPLES, ROOT
from tests.helpers.terminals import on_a_terminal

pytestmark = pytest.mark.long

GOOD_LINE, BAD_LINE = json.dumps(TILE), json.dumps(BAD)


def dml_tile(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Runs the command line in a process of its own."""
    return subprocess.run([*python(), "-m", "dml_tile", *arguments], capture_output=True, check=False, **options)


COMMAND_LINE = """
import sys
from dml_tile.__main__ import main
sys.argv[0] = "dml-tile"
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
"""The command line, which at its end prints what it has imported."""

OTHER_COMMANDS = "dml_tile.cli.tiles dml_tile.cli.run dml_tile.cli.reference"
LARGE_LIBRARIES = "numpy rich jinja2"
MODELS_OF_ONNX = "dml_tile.back_ends.placement dml_tile.readers.sandbox.parent dml_tile.checks.placements"
ALL_RULES = "dml_tile.checks.catalogue dml_tile.rules.device dml_tile.rules.operator"
REFUSALS = "dml_tile.lowering.lower dml_tile.readers.refusals dml_tile.checks.baseline"
GRAPHS_AND_CAPTURES = "dml_tile.descriptors.graph dml_tile.rules.capture dml_tile.readers.captured_line"
OPERATORS = "dml_tile.descriptors.operator dml_tile.dxdispatch.model dml_tile.back_ends.dialects"


@pytest.mark.parametrize(
    ("arguments", "needed", "unneeded"),
    [
        ("--version", "", "typer dml_tile.cli.app"),
        ("--help", "dml_tile.cli.app", f"pydantic dml_tile.descriptors.tile {LARGE_LIBRARIES}"),
        *((f"check {file} -t {target} --format {form}", needed, f"{OTHER_COMMANDS} {LARGE_LIBRARIES} {unneeded}")
          for file, target, needed, unneeded in (
              ("good.json", "6_2", "dml_tile.descriptors.tile",
               f"tomllib {MODELS_OF_ONNX} {ALL_RULES} {REFUSALS} {GRAPHS_AND_CAPTURES} {OPERATORS}"),
              ("model.json", "6_2", "dml_tile.dxdispatch.model",
               f"{MODELS_OF_ONNX} {ALL_RULES} {REFUSALS} {GRAPHS_AND_CAPTURES}"),
              ("model.json", "windows-11-21h2", "dml_tile.lowering.lower dml_tile.back_ends.dialects",
               f"{MODELS_OF_ONNX} {GRAPHS_AND_CAPTURES}"),
              ("capture.jsonl", "6_2", "dml_tile.rules.capture", MODELS_OF_ONNX),
          ) for form in ("text", "concise")),
    ],
)  # fmt: skip
def test_a_command_imports_what_it_needs(tmp_path: Path, arguments: str, needed: str, unneeded: str) -> None:
    (tmp_path / "good.json").write_text(GOOD_LINE)
    (tmp_path / "model.json").write_bytes((EXAMPLES / "int64.json").read_bytes())
    captured = {"dml_tile_capture": 1, "hresult": "0x00000000", "operator": {"Type": "DML_OPERATOR_TILE", "Desc": TILE}}
    (tmp_path / "capture.jsonl").write_text(json.dumps(captured))
    command = [sys.executable, "-c", COMMAND_LINE, *arguments.split()]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, text=True)
    assert done.returncode == ("windows" in arguments), done.stderr
    imported = {*done.stderr.split()}
    assert imported >= {*needed.split()}
    assert not imported & {*unneeded.split()}


def test_a_terminal_gets_colours_unless_they_are_not_wanted(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(BAD))
    assert "\x1b[31mrefused" in on_a_terminal("check", str(path))
    assert "\x1b[3" not in on_a_terminal("check", str(path), NO_COLOR="1")


def test_force_color_colours_a_pipe_and_wraps_nothing(tmp_path: Path) -> None:
    for name in ("bad.json", f"{'b' * 90}.onnx"):
        (tmp_path / name).write_text(json.dumps(BAD))
    command = ("check", str(tmp_path), "--target", "windows-10-2004")
    forced = os.environ | {"TERM": "xterm-256color", "COLUMNS": "40", "LINES": "5", "FORCE_COLOR": "1"}
    plain = dml_tile(*command, env={key: value for key, value in forced.items() if key != "FORCE_COLOR"})
    coloured = dml_tile(*command, env=forced)
    assert b"\x1b" not in plain.stdout
    assert any(len(line) > 100 for line in plain.stdout.splitlines())
    assert b"\x1b[31mrefused" in coloured.stdout
    assert re.sub(rb"\x1b\[[\d;]*m", b"", coloured.stdout) == plain.stdout


@pytest.mark.parametrize(
    ("variable", "value", "is_coloured"),
    [
        ("FORCE_COLOR", "1", True),
        ("FORCE_COLOR", "", False),
        ("TTY_COMPATIBLE", "1", True),
        ("TTY_COMPATIBLE", "0", False),
        ("TTY_INTERACTIVE", "1", False),
        ("JPY_PARENT_PID", "1", False),
    ],
)
def test_variables_that_rich_knows_decide_whether_a_pipe_is_coloured(
    tmp_path: Path, variable: str, value: str, is_coloured: bool
) -> None:
    (tmp_path / "bad.json").write_text(BAD_LINE)
    environment = os.environ | {"TERM": "xterm-256color", variable: value}
    done = dml_tile("check", str(tmp_path / "bad.json"), env=environment)
    assert done.returncode == 1
    assert (b"\x1b[31mrefused" in done.stdout) == is_coloured
    assert is_coloured or b"\x1b" not in done.stdout


def test_a_terminal_gets_links_and_commands_in_one_piece(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(TILE))
    shown = on_a_terminal("check", str(tmp_path / "a.json"), "-t", "windows-10-2004", COLUMNS="50", NO_COLOR="1")
    assert f"(dml-tile lower {tmp_path / 'a.json'} --target windows-10-2004)," in shown
    assert "https://learn.microsoft.com/en-us/windows/win32/api/directml/ns-directml-dml_tile_operator_desc" in shown


def test_run_prints_rows_on_a_terminal_and_a_line_elsewhere_or_with_an_option() -> None:
    row = "  1, 2, 3, 1, 2, 3, 1, 2, 3\r\n  4, 5, 6, 4, 5, 6, 4, 5, 6\r\n"
    line = "Resource 'Out': 1, 2, 3, 1, 2, 3, 1, 2, 3, 4, 5, 6"
    file = str(EXAMPLES / "tile.json")
    assert on_a_terminal("run", file) == f"Resource 'Out':\r\n{3 * row}"
    assert on_a_terminal("run", file, "--dxdispatch-output").startswith(line)
    assert dml_tile("run", file).stdout.decode().startswith(line)


def test_a_missing_extra_is_all_that_a_terminal_shows(tmp_path: Path) -> None:
    (tmp_path / "onnx.py").write_text("raise ModuleNotFoundError(name='onnx')")
    shown = on_a_terminal("check", str(EXAMPLES / "models" / "two_tiles.onnx"), PYTHONPATH=str(tmp_path))
    message, _, rest = shown.partition("\n")
    assert "needs onnx: pip install 'onnx>=1.19'" in message
    assert not rest


def test_a_progress_bar_of_many_files_leaves_piped_output_alone(tmp_path: Path) -> None:
    for i in range(30):
        (tmp_path / f"{i}.json").write_text(json.dumps(TILE))
    assert "checking" not in on_a_terminal("check", str(tmp_path / "0.json"), str(tmp_path / "1.json"))
    with (tmp_path / "out.txt").open("wb") as output:
        assert "checking" in on_a_terminal("check", str(tmp_path), stdout=output)
    text = (tmp_path / "out.txt").read_text()
    assert "\x1b" not in text
    assert text.count(": accepted") == 30
    assert text.endswith("30 operators: 30 accepted\n")


@pytest.mark.parametrize(
    ("lines", "command", "status"),
    [
        *(([desc] * 1000, f"check --format {form} many.jsonl | head -n 2", status)
          for form in ("text", "json") for desc, status in ((GOOD_LINE, 0), (BAD_LINE, 1))),
        *(([*[GOOD_LINE] * 200, desc], f"lower -t 2_0 --format {form} many.jsonl | head -n 2", status)
          for form in ("text", "cpp") for desc, status in ((GOOD_LINE, 0), (BAD_LINE, 1))),
        ([*[GOOD_LINE] * 1000, "{"], "check many.jsonl | head -n 2", 2),
        ([GOOD_LINE] * 300, "emit --lang cpp many.jsonl | head -n 2", 0),
        *(([], f"{command} | head -c 1", 0) for command in ("explain", "levels", "schema dml_tile_operator_desc")),
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_a_reader_that_leaves_is_no_error(tmp_path: Path, lines: list[str], command: str, status: int) -> None:
    (tmp_path / "many.jsonl").write_text("".join(f"{line}\n" for line in lines))
    done = bash(f"dml-tile {command}; exit ${{PIPESTATUS[0]}}", tmp_path)
    assert done.returncode == status
    assert 0 < len(done.stdout.splitlines()) <= 2
    assert b"Traceback" not in done.stderr
    if (command.startswith("check") and lines[-1] != "{") or not status:
        assert done.stderr == b""


def write_model(folder: Path, *commands: dict[str, str], **values: Any) -> None:
    """Write a model of one resource, whose commands each name their type and what they take beside the resource."""
    resource = {"initialValuesDataType": "UINT8", "initialValues": [1]} | values
    model: dict[str, Any] = {"resources": {"R": resource}, "dispatchables": {}}
    model["commands"] = [{"resource": "R"} | command for command in commands]
    (folder / "m.json").write_text(json.dumps(model))


def test_a_model_from_standard_input_never_replaces_itself(tmp_path: Path) -> None:
    write_model(tmp_path, {"type": "writeFile", "targetPath": "m.json"})
    done = bash("dml-tile run --overwrite - < m.json", tmp_path)
    assert done.returncode == 2
    assert b"'m.json' is read by this run" in done.stderr


def test_a_reader_of_a_run_may_leave_too(tmp_path: Path) -> None:
    values = {"valueCount": 10**6, "value": 7}
    write_model(tmp_path, {"type": "print"}, {"type": "writeFile", "targetPath": "r.bin"}, initialValues=values)
    done = bash("dml-tile run m.json | head -c 20; exit ${PIPESTATUS[0]}", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"Resource 'R': 7, 7, ", b"")
    assert (tmp_path / "r.bin").stat().st_size == 10**6


FULL = b"No space left on device"
ODD_NAME = r"$'\xff\n\\'"


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        *((f"dml-tile {command} > /dev/full", 2, FULL) for command in (
            "check a.json", "levels", "explain", "schema dml_tile_operator_desc", "show a.json", "run m.json",
            "lower a.json", "lower --format json a.json",
        )),
        ("dml-tile emit --lang cpp a.json > /dev/full", 2, b"dml-tile: standard output: %b\n" % FULL),
        *((f"dml-tile {command} nofile.json 2>/dev/full", 2, b"") for command in ("check", "run", "lower", "show")),
        ("dml-tile check nofile.json 2>&-", 2, b""),
        ("dml-tile check a.json --format json:/dev/full", 2, b""),
        ("dml-tile check a.json >/dev/full 2>/dev/full", 2, b""),
        *((f"dml-tile {command} - <&-", 2, b"standard input is closed") for command in ("check", "run", "lower")),
        *((f"dml-tile {command} a.json >&-", 0, b"") for command in ("lower", "check")),
        *((f"cp a.json {ODD_NAME}; dml-tile {command} {ODD_NAME}", status, b"") for command, status in (
            ("lower -t 2_0", 0), ("lower -t 2_0 --format cpp", 0), ("emit --lang cpp", 0), ("check", 0),
            ("check --format json", 0), ("check -t 2_0 --format json", 1),
        )),
        ("PYTHONIOENCODING=ascii dml-tile lower -t 2_0 a.json", 0, b""),
        ("PYTHONIOENCODING=ascii dml-tile lower names.json", 1, b""),
        ("PYTHONIOENCODING=ascii dml-tile lower names.json --format python --pointer é", 2, b"there is no such tile"),
        ("PYTHONIOENCODING=ascii dml-tile check names.json", 1, b""),
        ("PYTHONIOENCODING=ascii dml-tile check --format json names.json", 1, b""),
    ],
)  # fmt: skip
def test_odd_streams_and_names_give_no_traceback(tmp_path: Path, command: str, status: int, message: bytes) -> None:
    (tmp_path / "a.json").write_text(json.dumps(TILE))
    dispatchables = {"☃\x1b[31m": {"type": "TILE", "desc": TILE | {"RepeatsCount": 3}}}
    write_model(tmp_path, {"type": "print"})
    (tmp_path / "names.json").write_text(json.dumps({"resources": {}, "dispatchables": dispatchables, "commands": []}))
    done = bash(command, tmp_path)
    assert done.returncode == status
    assert b"Traceback" not in done.stderr
    assert message in done.stderr
    assert b"\x1b" not in done.stdout


def test_completing_imports_neither_numpy_nor_the_descriptors() -> None:
    asked = {"_DML_TILE_COMPLETE": "complete_bash", "COMP_WORDS": "dml-tile run --against ", "COMP_CWORD": "3"}
    command = [sys.executable, "-c", COMMAND_LINE]
    done = subprocess.run(command, capture_output=True, check=True, env=os.environ | asked, text=True)
    assert not {"numpy", "dml_tile.descriptors.tile"} & {*done.stderr.split()}


def test_the_line_that_the_page_gives_makes_bash_complete(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "completion.md").read_text()
    (line,) = (line.strip() for line in page.splitlines() if line.strip().startswith("eval "))
    shell = shutil.which("bash")
    assert shell is not None
    (tmp_path / "dml-tile").write_text(f"#!{sys.executable}\n{COMMAND_LINE}")
    (tmp_path / "dml-tile").chmod(0o755)
    pressed = 'COMP_WORDS=(dml-tile ch) COMP_CWORD=1; _dml_tile_completion dml-tile; echo "${COMPREPLY[@]}"'
    command = [shell, "--norc", "-c", f"{line}\n{pressed}"]
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert subprocess.run(command, capture_output=True, check=True, env=environment, text=True).stdout == "check\n"
