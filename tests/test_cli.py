"""The command line, as a person or a program would use it."""

from __future__ import annotations

import json
import os
import pty
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import EXAMPLES
from typer.testing import CliRunner, Result

from dml_tile import cli
from dml_tile.rules import RULES

FLAT = {"DataType": "FLOAT32", "Sizes": [2]}
TILE = {"InputTensor": FLAT, "OutputTensor": FLAT, "Repeats": [1]}
BAD = TILE | {"Repeats": [2]}

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Calls the command line in a folder of its own; an exception but the exit itself is an error."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(cli.app, list(arguments), input=stdin, catch_exceptions=False)

    return call


def write(name: str, value: Any) -> str:
    Path(name).write_text(value if isinstance(value, str) else json.dumps(value))
    return name


def test_an_accepted_descriptor_exits_0_and_tells_its_lowest_level(invoke: Invoke) -> None:
    result = invoke("check", write("good.json", TILE))
    assert result.exit_code == 0
    assert result.stdout == "good.json: accepted at 6_4; lowest level 3_1, in the box from windows-11-21h2\n"


def test_findings_exit_1_and_are_told_all_at_once(invoke: Invoke) -> None:
    result = invoke("check", write("bad.json", BAD | {"RepeatsCount": 2}))
    assert result.exit_code == 1
    assert result.stdout.startswith(
        "bad.json: refused at 6_4; no feature level passes both documentation and runtime\n"
    )
    assert (
        "error[DML-TILE-OutputTensor-Sizes] E_INVALIDARG 0x80070057\n    OutputTensor.Sizes[0]: 2 was" in result.stdout
    )
    assert "error[DML-TILE-RepeatsCount]" in result.stdout
    assert "try: set it to 4" in result.stdout


def test_each_target_has_its_verdict(invoke: Invoke) -> None:
    result = invoke("check", write("a.json", TILE), "--target", "windows-10-22h2", "-t", "DirectML-1.6.0")
    assert result.exit_code == 1
    assert "a.json: refused at windows-10-22h2 (2_0); lowest level 3_1" in result.stdout
    assert "note: shares the servicing base of windows-10-2004: the DirectML version is inferred" in result.stdout
    assert "a.json: accepted at directml-1.6.0 (4_0)" in result.stdout
    assert result.stdout.endswith("1 accepted, 1 refused\n")


@pytest.mark.parametrize(("against", "status"), [("documentation", 0), ("runtime", 1), ("both", 1)])
def test_the_contract_can_be_chosen(invoke: Invoke, against: str, status: int) -> None:
    aligned = TILE | {"InputTensor": FLAT | {"GuaranteedBaseOffsetAlignment": 4}}
    assert invoke("check", write("a.json", aligned), "--against", against).exit_code == status


def test_what_only_the_documentation_refuses_is_said_to_be_accepted(invoke: Invoke) -> None:
    doubles = {tensor: FLAT | {"DataType": "FLOAT64"} for tensor in ("InputTensor", "OutputTensor")}
    result = invoke("check", write("a.json", TILE | doubles))
    assert "error[DML-TILE-DataType] documented only: DirectML does not notice" in result.stdout


def test_a_crash_is_called_one(invoke: Invoke) -> None:
    result = invoke("check", write("a.json", TILE | {"Repeats": None, "RepeatsCount": 1}))
    assert "crash[DML-TILE-Repeats-null] no HRESULT, the process dies" in result.stdout
    assert result.exit_code == 1


def test_standard_input_may_hold_json_lines(invoke: Invoke) -> None:
    result = invoke("check", "-", stdin=f"{json.dumps(TILE)}\n{json.dumps(BAD)}\n")
    assert result.exit_code == 1
    assert "-#/0: accepted at 6_4" in result.stdout
    assert "-#/1: refused at 6_4" in result.stdout


def test_another_operator_is_named_and_the_rest_checked(invoke: Invoke) -> None:
    dispatchables = {
        "gemm": {"type": "DML_OPERATOR_GEMM"},
        "tile": {"type": "TILE", "desc": TILE | {"RepeatsCount": 1}},
    }
    result = invoke("check", write("m.json", {"resources": {}, "dispatchables": dispatchables, "commands": []}))
    assert result.exit_code == 1
    assert "m.json#/dispatchables/gemm: not checked\n" in result.stdout
    assert "DML_OPERATOR_GEMM is not a tile; only tiles are checked" in result.stdout
    assert "m.json#/dispatchables/tile: accepted" in result.stdout


def test_the_json_output(invoke: Invoke) -> None:
    result = invoke("check", write("a.json", [TILE, BAD]), "--format", "json", "--target", "windows-11-21h2")
    assert result.exit_code == 1
    output = json.loads(result.stdout)
    assert output["version"] == 1
    good, bad = output["results"]
    assert good == {
        "source": "a.json",
        "pointer": "/0",
        "target": "windows-11-21h2",
        "feature_level": "4_0",
        "ok": True,
        "lowest_level": "3_1",
        "findings": [],
    }
    assert not bad["ok"]
    assert bad["lowest_level"] is None
    (finding,) = bad["findings"]
    assert finding.pop("message").startswith("2 was provided")
    assert finding == {
        "rule": "DML-TILE-OutputTensor-Sizes",
        "path": "OutputTensor.Sizes[0]",
        "basis": ["documented", "runtime"],
        "hresult": "0x80070057",
        "crash": False,
        "url": RULES["DML-TILE-OutputTensor-Sizes"].url,
        "suggestion": "set it to 4",
    }


def test_a_crash_in_json_has_no_hresult(invoke: Invoke) -> None:
    result = invoke("check", write("a.json", TILE | {"Repeats": None, "RepeatsCount": 1}), "--format", "json")
    (finding,) = json.loads(result.stdout)["results"][0]["findings"]
    assert (finding["crash"], finding["hresult"]) == (True, None)


def test_one_unreadable_file_does_not_keep_the_others_from_being_checked(invoke: Invoke) -> None:
    files = [write("a.json", "{"), "missing.json", write("good.json", TILE), ".", write("bad.json", BAD)]
    result = invoke("check", *files)
    assert result.exit_code == 2
    assert "good.json: accepted" in result.stdout
    assert "bad.json: refused" in result.stdout
    assert "dml-tile: a.json: not JSON: EOF while parsing an object at line 1 column 1" in result.stderr
    assert "dml-tile: missing.json: No such file or directory" in result.stderr
    assert "dml-tile: .: Is a directory" in result.stderr


def test_an_unreadable_field_is_told_by_name_value_and_expectation(invoke: Invoke) -> None:
    result = invoke("check", write("a.json", TILE | {"Repeats": [2, -1]}))
    assert result.exit_code == 2
    assert result.stderr == "dml-tile: a.json: Repeats[1] is -1; at least 0 was expected\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "a.json", "--target", "windows-12"], "is no known target"),
        (["check", "a.json", "--against", "docs"], "docs"),
        (["check", "a.json", "--format", "xml"], "xml"),
        (["check"], "FILE"),
        (["explode"], "explode"),
        (["explain", "DML-TILE-Repeats-zer"], "DML-TILE-Repeats-zero"),
        (["explain", "xyz"], "lists all rules"),
        (["schema", "xyz"], "expected one of dml_tile_operator_desc"),
        (["run"], "MODEL"),
        (["run", "a.json", "--target", "vista"], "is no known target"),
        (["run", "a.json", "--target", ""], "is no known target"),
    ],
)
def test_wrong_usage_exits_2_and_tells_what_was_expected(invoke: Invoke, arguments: list[str], message: str) -> None:
    write("a.json", TILE)
    result = invoke(*arguments)
    assert result.exit_code == 2
    shown = " ".join(result.stderr.replace("│", " ").split())
    assert message in shown


def test_run_prints_what_the_model_says(invoke: Invoke) -> None:
    result = invoke("run", str(EXAMPLES / "strided.json"))
    assert result.exit_code == 0
    assert result.stdout.startswith("Resource 'Out': 1, 2, 3, 1, 2, 3, 99, 99, 4, 5, 6,")
    assert invoke("run", "-", stdin=(EXAMPLES / "strided.json").read_bytes()).stdout == result.stdout


def test_run_refuses_what_the_target_refuses(invoke: Invoke) -> None:
    result = invoke("run", str(EXAMPLES / "int64.json"), "--target", "windows-11-21h2")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "int64.json#/dispatchables/tile: refused at windows-11-21h2 (4_0)" in result.stderr
    assert "INT64 needs DML_FEATURE_LEVEL_4_1" in result.stderr


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ("[", "not JSON: EOF"),
        ("[]", "the description is an array of 0; an object was expected"),
        (
            json.dumps({"resources": {}, "dispatchables": {}, "commands": [{"type": "print"}]}),
            "#/commands/0: commands[0].resource is",
        ),
    ],
)
def test_run_refuses_what_is_no_model(invoke: Invoke, contents: str, message: str) -> None:
    result = invoke("run", write("m.json", contents))
    assert result.exit_code == 2
    assert result.stderr.startswith("dml-tile: m.json")
    assert message in result.stderr


def test_run_tells_which_file_cannot_be_written(invoke: Invoke) -> None:
    write("taken", "a file, so no folder")
    model = {
        "resources": {"R": {"initialValuesDataType": "UINT8", "initialValues": [1]}},
        "dispatchables": {},
        "commands": [{"type": "writeFile", "resource": "R", "targetPath": "taken/out.bin"}],
    }
    result = invoke("run", write("m.json", model))
    assert result.exit_code == 2
    assert "taken" in result.stderr
    assert "Traceback" not in result.stderr


def test_levels_shows_the_support_table_and_the_matrix(invoke: Invoke) -> None:
    result = invoke("levels")
    assert result.exit_code == 0
    shown = " ".join(result.stdout.replace("│", " ").split())
    assert "4_1 1 to 8 FLOAT32 FLOAT16 UINT32 UINT16 UINT8 INT32 INT16 INT8 UINT64 INT64" in shown
    assert "windows-11-21h2 4_0 1 to 8 float int 1.6.0" in shown
    assert "windows-10-22h2 2_0 4 float 1.1.0, inferred" in shown
    assert "directml-1.15 6_4 1 to 8 float int int64" in shown
    assert "6_4 0x6400 1.15.x" in shown


def test_explain_tells_what_each_rule_says_rests_on_and_follows(invoke: Invoke) -> None:
    every = invoke("explain").stdout
    for rule in RULES.values():
        one = invoke("explain", rule.id).stdout
        assert one in every
        assert one.splitlines()[0] == rule.id
        assert rule.says in one
        assert f"basis: {', '.join(rule.basis.names)}" in one
        assert rule.url in one


def test_schema_prints_a_schema_or_all_names(invoke: Invoke) -> None:
    names = invoke("schema").stdout.split()
    assert "check_output" in names
    for name in names:
        assert json.loads(invoke("schema", name).stdout)["$id"] == f"urn:dml-tile:{name}"


def dml_tile(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Runs the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "dml_tile.cli", *arguments], capture_output=True, check=False, **options
    )


HELP_IMPORTS_NOTHING = """
import sys
from typer.testing import CliRunner
from dml_tile.cli import app
result = CliRunner().invoke(app, ["--help"])
assert result.exit_code == 0, result.output
print(sorted({"numpy", "pydantic"} & set(sys.modules)))
"""


def test_help_imports_neither_numpy_nor_pydantic() -> None:
    done = subprocess.run([sys.executable, "-c", HELP_IMPORTS_NOTHING], capture_output=True, check=True, text=True)
    assert done.stdout == "[]\n"


def test_piped_output_is_plain_and_not_wrapped(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(BAD))
    done = dml_tile("check", str(path), env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "40"})
    assert done.returncode == 1
    assert b"\x1b" not in done.stdout
    assert any(len(line) > 100 for line in done.stdout.splitlines())


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What the command line writes to a terminal; its standard error is one too."""
    main, side = pty.openpty()
    try:
        clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
        process = subprocess.Popen(
            [sys.executable, "-m", "dml_tile.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=side,
            stderr=side,
            env=clean | {"TERM": "xterm-256color"} | environment,
        )
        os.close(side)
        shown = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:  # on Linux, the end
                break
            if not part:
                break
            shown += part
        process.wait(60)
    finally:
        os.close(main)
    return shown.decode()


def test_a_terminal_gets_colours_unless_they_are_not_wanted(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(BAD))
    assert "\x1b[31mrefused" in on_a_terminal("check", str(path))
    assert "\x1b[3" not in on_a_terminal("check", str(path), NO_COLOR="1")


def test_many_files_on_a_terminal_have_a_progress_bar(tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.json" for i in range(30)]
    for file in files:
        file.write_text(json.dumps(TILE))
    shown = on_a_terminal("check", *map(str, files))
    assert "checking" in shown
    assert "30 accepted, 0 refused" in shown
    assert "checking" not in on_a_terminal("check", *map(str, files[:2]))


def limited_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))


ASTRONOMIC = {"DataType": "FLOAT32", "Sizes": [2**32 - 1] * 8}


@pytest.mark.parametrize(
    ("contents", "status", "message"),
    [
        (b"[" * 10**7, 2, b"recursion limit exceeded"),
        (b'{"InputTensor":' * 10**6, 2, b"recursion limit exceeded"),
        (json.dumps(TILE).encode()[:-9], 2, b"not JSON: EOF"),
        (b"\xff\xfe\x00", 2, b"not JSON"),
        (b"", 2, b"not JSON: EOF"),
        (json.dumps(dict.fromkeys(TILE, ASTRONOMIC) | {"Repeats": [2**32 - 1] * 8}).encode(), 1, b""),
    ],
)
def test_hostile_input_takes_no_memory_and_gives_no_traceback(
    tmp_path: Path, contents: bytes, status: int, message: bytes
) -> None:
    path = tmp_path / "hostile.json"
    path.write_bytes(contents)
    for command in ("check", "run"):
        done = dml_tile(command, str(path), preexec_fn=limited_memory, cwd=tmp_path)
        assert done.returncode == (status if command == "check" else 2)
        assert b"Traceback" not in done.stderr
        assert message in done.stderr
        if status == 2:
            assert str(path).encode() in done.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["hostile.json"]


def bash(command: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Runs a shell command in which ``dml-tile`` is the command line."""
    function = f'dml-tile() {{ "{sys.executable}" -m dml_tile.cli "$@"; }}; '
    return subprocess.run(["bash", "-c", function + command], capture_output=True, check=False, cwd=folder)


@pytest.mark.parametrize(("desc", "status"), [(TILE, 0), (BAD, 1)])
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_reader_that_leaves_is_no_error(tmp_path: Path, desc: Any, status: int, form: str) -> None:
    (tmp_path / "many.jsonl").write_text(f"{json.dumps(desc)}\n" * 3000)
    done = bash(f"dml-tile check --format {form} many.jsonl | head -n 2; exit ${{PIPESTATUS[0]}}", tmp_path)
    assert (done.returncode, done.stderr) == (status, b"")
    assert b"many.jsonl" in done.stdout


def test_a_reader_of_a_run_may_leave_too(tmp_path: Path) -> None:
    resource = {"initialValuesDataType": "UINT8", "initialValues": {"valueCount": 10**6, "value": 7}}
    model = {"resources": {"R": resource}, "dispatchables": {}, "commands": [{"type": "print", "resource": "R"}]}
    (tmp_path / "m.json").write_text(json.dumps(model))
    done = bash("dml-tile run m.json | head -c 20; exit ${PIPESTATUS[0]}", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"Resource 'R': 7, 7, ", b"")


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        ("dml-tile check a.json > /dev/full", 2, b"No space left on device"),
        ("dml-tile levels > /dev/full", 2, b"No space left on device"),
        ("dml-tile check - <&-", 2, b"standard input is closed"),
        ("dml-tile run - <&-", 2, b"standard input is closed"),
        ("dml-tile check a.json >&-", 0, b""),
        ("cp a.json $'\\xff.json'; dml-tile check --format json $'\\xff.json'", 0, b""),
        ("cp a.json $'\\xff.json'; dml-tile check $'\\xff.json'", 0, b""),
        ("PYTHONIOENCODING=ascii dml-tile check names.json", 1, b""),
        ("PYTHONIOENCODING=ascii dml-tile check --format json names.json", 1, b""),
    ],
)
def test_odd_streams_and_names_give_no_traceback(tmp_path: Path, command: str, status: int, message: bytes) -> None:
    (tmp_path / "a.json").write_text(json.dumps(TILE))
    dispatchables = {"☃\x1b[31m": {"type": "TILE", "desc": TILE | {"RepeatsCount": 3}}}
    (tmp_path / "names.json").write_text(json.dumps({"resources": {}, "dispatchables": dispatchables, "commands": []}))
    done = bash(command, tmp_path)
    assert done.returncode == status
    assert b"Traceback" not in done.stderr
    assert message in done.stderr
    assert b"\x1b" not in done.stdout


def test_nothing_to_check_is_said(invoke: Invoke) -> None:
    assert invoke("check", write("empty.jsonl", "")).stdout == "0 accepted, 0 refused\n"
    assert invoke("check", write("empty.json", "[]")).exit_code == 0
