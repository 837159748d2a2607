"""The command line, as a person or a program would use it."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest

from dml_tile.checks import files
from dml_tile.checks.catalogue import RULES
from dml_tile.cli.config import Settings
from dml_tile.directml.enums import HRESULT
from dml_tile.directml.targets import WINDOWS_RELEASES
from dml_tile.findings import Severity
from dml_tile.readers.file_kinds import KINDS
from dml_tile.reports.report import FORMATS
from tests.helpers.check_files import ALIGNED, BAD, TILE, write
from tests.helpers.command_line import COMMAND, Call, invoke, invoke_bare
from tests.helpers.paths import EXAMPLES, ROOT
from tests.test_editors import SCHEMAS

MODEL = str(EXAMPLES / "models" / "two_tiles.onnx")
CRASHING = TILE | {"Repeats": None, "RepeatsCount": 1}
INFERRED = "note: windows-10-22h2: shares the servicing base of windows-10-2004: the DirectML version is inferred\n"
PASSES = "accepted at 6_4; lowest level 3_1, in the box from windows-11-21h2"
NO_LEVEL = "refused at 6_4; no feature level passes both documentation and runtime\n"


@pytest.mark.parametrize(
    ("value", "options", "status", "parts"),
    [
        (TILE, "", 0, [f"^a.json: {PASSES}\n  FLOAT32 {{2}} x {{1}} -> {{2}}\n$"]),
        (BAD | {"RepeatsCount": 2}, "", 1, [f"^a.json:11:4: {NO_LEVEL}", "error[DML-TILE-RepeatsCount]"]),
        ([TILE, TILE], "--target windows-10-22h2", 1, [f"{INFERRED}2 operators: 2 refused\n$"]),
        ([TILE, 7], "", 2, ["1 file not read; 1 operator: 1 accepted\n$"]),
        ([7, None], "", 2, ["1 file not read; 1 operator: 1 refused\n$"]),
        ([7], "", 2, ["^$"]),
        (ALIGNED, "--against documentation", 0, ["^a.json: accepted at 6_4\n  FLOAT32 {2} x {1} -> {2}\n$"]),
        (ALIGNED, "--against runtime", 1, ["E_INVALIDARG 0x80070057, runtime only\n"]),
        (CRASHING, "", 1, ["crash[DML-TILE-Repeats-null] no HRESULT, the process dies"]),
        ("", "", 2, ["^$"]),
        ("[]", "", 2, ["^$"]),
    ],
)  # fmt: skip
def test_check_prints_verdict_and_findings(call: Call, value: Any, options: str, status: int, parts: list[str]) -> None:
    """``^`` and ``$`` stand for the ends of the output."""
    result = call("check", write("a.json", value), *options.split())
    assert result.exit_code == status
    assert result.stdout.count("note:") == ("windows-10-22h2" in options)
    for part in parts:
        assert part in f"^{result.stdout}$"


def test_json_tells_a_crash_which_has_no_hresult(call: Call) -> None:
    (result,) = json.loads(call("check", write("a.json", CRASHING), "--format", "json").stdout)["results"]
    assert [(finding["crash"], finding["hresult"]) for finding in result["findings"]] == [(True, None)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "a.json", "--target", "windows-12"], "is no known target"),
        (["check", "a.json", "--against", "docs"], "docs"),
        (["check"], "FILE"),
        (["explode"], "explode"),
        (["explain", "DML-TILE-Repeats-zer"], "DML-TILE-Repeats-zero"),
        (["explain", "xyz"], "lists all rules"),
        (["explain", "80004004"], "0x80004004 is no result of DirectML's; these are: E_INVALIDARG 0x80070057"),
        (["schema", "xyz"], "expected one of dml_tile_operator_desc"),
        (["run"], "MODEL"),
        (["run", "a.json"], "dml-tile: a.json: an object was provided, but a DxDispatch model (with resources,"),
        (["run", "a.json", "--target", "vista"], "is no known target"),
        (["run", "a.json", "--target", ""], "is no known target"),
        (["run", "a.json", "-t", "2_0", "-t", "6_4"], "a model is run at one target"),
        (["lower", "a.json", "-t", "2_0,4_0"], "tiles are lowered for one target"),
        (["check", "a.json", "--format", "text", "--format", "json"], "text and json would both be printed"),
        (["check", "a.json", "--format", "xml"], f"'xml' is not one of {', '.join(FORMATS)}"),
        (["check", "a.json", "--format", "sarif:"], "'sarif:' is not one of"),
        (["check", "a.json", "--format", "json:x", "--format", "sarif:x"], "several formats have the same file"),
        (["check", "a.json", "--format", "json:x", "--format", "html:./x"], "several formats have the same file"),
        (["check", "a.json", "--format", "text:./a.json"], "a report would take the place of a.json"),
        (["check", "a.json", "--format", "json:b", "--write-baseline", "b"], "a report would take the place of b"),
        (["check", "a.json", "--baseline", "a", "--write-baseline", "b"], "--write-baseline"),
        (["check", "a.json", "--select", "DML-BUFER"], "did you mean DML-BUFFER"),
        (["check", "a.json", "--ignore", "DML-BUFER"], "did you mean DML-BUFFER"),
        (["check", "--files-from", "missing.txt"], "missing.txt: No such file or directory"),
        (["check", "--files-from", "."], ".: Is a directory"),
        (["check", "--files-from", "long.txt"], "long.txt: larger than 30 bytes"),
        (["check", "-", "--files-from", "-"], "cannot also be a list"),
        (["check", "--files-from", "short.txt", "--format", "json:short.txt"], "take the place of short.txt"),
        (["check", "a.json", "--stdin-filename", "b.json"], "no file is -"),
        (["check", "-", "--stdin-filename", ""], "names no file"),
        (["check", "-", "--stdin-filename", "a.onnx"], "models are read from files"),
        (["check", "-", "--stdin-filename", "a.json", "--format", "json:a.json"], "take the place of a.json"),
        *((["check", MODEL, "--dim", value], "--dim") for value in (
            "batch", "batch=x", "=3", "batch=1,2", "batch=", "batch=-1", "batch=9999999999999999999",
        )),
        *((["check", MODEL, "--input-shape", value], "--input-shape") for value in ("x", "x=1,,2", "x=1,??")),
        (["check", MODEL, "--dim", "n=2", "--dim", "m=1", "--dim", "n=3"], "'n' is given as 2 and as 3"),
        (["check", MODEL, "--input-shape", "x=1,2", "--input-shape", "x=1"], "'x' is given as 1,2 and as 1"),
        (["check", MODEL, "--via", "ortt"], "--via"),
    ],
)  # fmt: skip
def test_wrong_usage_exits_2_tells_what_was_expected_and_writes_nothing(
    call: Call, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.setattr(files, "MAX_LIST_BYTES", 30)
    written = {write("a.json", TILE), write("short.txt", "a" * 30), write("long.txt", "a" * 31)}
    result = call(*arguments, stdin="")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert {str(path) for path in Path().rglob("*")} == written


def writing(*paths: str) -> dict[str, Any]:
    """A model that writes a byte to each path."""
    resource = {"initialValuesDataType": "UINT8", "initialValues": [1]}
    commands = [{"type": "writeFile", "resource": "R", "targetPath": path} for path in paths]
    return {"resources": {"R": resource}, "dispatchables": {}, "commands": commands}


@pytest.mark.parametrize(
    ("path", "options", "message", "but_with"),
    [
        ("taken/out.bin", "", "taken", None),
        ("../x.bin", "--output-dir new", "'../x.bin' leads outside the folder for outputs", None),
        ("x.bin", "--output-dir m.json", "m.json", "--output-dir new"),
        ("taken", "", "m.json#/commands/0/targetPath: 'taken' exists; --overwrite replaces it\n", "--overwrite"),
        (".github/workflows/x.yml", "--overwrite", "(--allow-hidden allows that)", "--allow-hidden"),
        ("m.json", "--overwrite", "'m.json' is read by this run", None),
    ],
)  # fmt: skip
def test_run_writes_only_what_it_may(call: Call, path: str, options: str, message: str, but_with: str | None) -> None:
    write("taken", "a file, so no folder")
    model = write("m.json", writing(path))
    before = {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()}
    refused = call("run", model, *options.split())
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert message in refused.stderr
    assert {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()} == before
    if but_with:
        assert call("run", model, *but_with.split()).exit_code == 0


def test_run_writes_below_the_folder_for_outputs_all_files_or_none(call: Call) -> None:
    Path("in").mkdir()
    assert call("run", write("in/m.json", writing("sub/x.bin")), "--output-dir", "new").exit_code == 0
    assert [str(path) for path in Path().rglob("*.bin")] == ["new/sub/x.bin"]
    model = write("m.json", writing("new.bin", write("old.txt", "mine")))
    assert call("run", model).exit_code == 2
    assert (Path("old.txt").read_text(), Path("new.bin").exists()) == ("mine", False)
    assert call("run", model, "--overwrite").exit_code == 0
    assert Path("old.txt").read_bytes() == b"\1\0\0\0"


def test_levels_shows_what_accepts_which_tile_then_packages_and_levels(call: Call) -> None:
    result = call("levels")
    assert result.exit_code == 0
    shown = " ".join(result.stdout.replace("│", " ").split())
    assert "4_1 1 to 8 FLOAT32 FLOAT16 UINT32 UINT16 UINT8 INT32 INT16 INT8 UINT64 INT64" in shown
    assert "windows-11-21h2 4_0 1 to 8 float int 1.6.0" in shown
    assert "windows-10-22h2 2_0 4 float 1.1.0 inferred" in shown
    assert "directml-1.15 6_4 1 to 8 float int int64" in shown
    assert "6_4 0x6400 1.15.x" in shown
    assert "onnxruntime-node 1.17.0 none - onnxruntime-node 1.17.3 1.13.1 6_2" in shown
    assert "onnxruntime-genai-winml 0.15.0 to 0.18.0 1.15.4 6_4" in shown
    assert shown.index("What accepts which tile") < shown.index("The DirectML in packages")
    assert shown.count("windows-11-21h2") == 1
    assert {release.name for release in WINDOWS_RELEASES} <= {*shown.split()}, "no name is cut off at 80 columns"


@pytest.mark.parametrize("words", ["", "DML-TILE-Repeats", "DML-BUFFER", "DML-TILE-DataType"])
def test_explain_takes_the_first_words_of_rules_and_prints_what_each_says(call: Call, words: str) -> None:
    named = [words] if words in RULES else [rule for rule in RULES if rule.startswith(words and f"{words}-")]
    printed = call("explain", *words.split()).stdout
    assert [line for line in printed.splitlines() if not line.startswith(" ")] == named
    for rule in map(RULES.__getitem__, named):
        one = call("explain", rule.id).stdout
        assert one in printed
        basis = f"  basis: {', '.join(rule.basis.names)}"
        assert all(text in one for text in (rule.says, basis, rule.url))
        assert rule.severity is not Severity.NOTE or basis in one.splitlines(), "it has no result"
    assert "ORT-CPU-preferred\n  At least one input must be" in call("explain", "ORT").stdout


@pytest.mark.parametrize("code", [code for code in HRESULT if code], ids=lambda code: code.name)
def test_explain_says_what_returns_a_result_and_what_to_do_next(call: Call, code: HRESULT) -> None:
    printed = call("explain", code.name).stdout
    signed = str(code - 2**32)
    lines_with_it = (
        f"{code.hex[2:]} The parameter is incorrect",
        f"hr = {code.hex} (see 12345678)",
        f"error {code.name}.",
    )
    spellings = code.hex, code.hex.lower(), code.hex[2:], code.name.lower(), signed, str(int(code)), *lines_with_it
    for spelling in spellings:
        assert call("explain", spelling).stdout == printed
    first, *lines, page = printed.splitlines()
    assert first == str(code)
    assert [line.split(":")[0] for line in lines[:2]] == ["  returned by", "  next"]
    families = {rule.id.split("-")[1] for rule in RULES.values() if rule.hresult is code}
    assert {*re.findall(r"DML-([A-Z0-9]+) \(", "".join(lines[2:]))} == families
    assert page.startswith(("  https://learn.microsoft.com/", "  https://github.com/microsoft/onnxruntime/"))


def test_schema_prints_a_schema_or_all_names(call: Call) -> None:
    assert {*call("schema").stdout.split()} == SCHEMAS.keys()
    assert json.loads(call("schema", "check_output").stdout) == SCHEMAS["check_output"]


def test_the_version_is_shown(call: Call) -> None:
    assert call("--version").stdout == f"dml-tile {version('dml-tile')}\n"


# The words that a shell offers when Tab is pressed, asked for as bash does

NAMES: Final = "check cmake-dir device emit explain include-dir levels lower run schema show"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("dml-tile ", NAMES.split()),
        ("dml-tile check --ag", ["--against"]),
        ("dml-tile lower examples/tile.json --no-f", ["--no-float-carriers"]),
        ("dml-tile check --against ", ["documentation", "runtime", "both"]),
        ("dml-tile emit --lang ", ["cpp", "json", "python"]),
        ("dml-tile check -t 4", ["4_0", "4_1"]),
        ("dml-tile lower a.json --target windows-10-21", ["windows-10-21h1", "windows-10-21h2"]),
        ("dml-tile explain DML-OPERATOR-Type", ["DML-OPERATOR-Type", "DML-OPERATOR-Type-unsupported"]),
        ("dml-tile explain E_I", ["E_INVALIDARG"]),
        ("dml-tile check --via ort-1.1", [f"ort-1.{minor}" for minor in range(10, 20)]),
        ("dml-tile check --via c", ["chromium"]),
        ("dml-tile check --ignore DML-OPERATOR-n", ["DML-OPERATOR-null", "DML-OPERATOR-not-a-tile"]),
        ("dml-tile zzz", []),
        ("dml-tile check examples/ti", []),  # files are completed by the shell itself
    ],
)
def test_a_word_is_completed(words: str, expected: list[str]) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    result = invoke(prog_name="dml-tile", env={"_DML_TILE_COMPLETE": "complete_bash"} | asked)
    assert sorted(result.stdout.split()) == sorted(expected)


# Help

COMMANDS = list(COMMAND.commands)
WIDTH = 80


def help_of(*arguments: str) -> str:
    return invoke(*arguments, "--help", env={"COLUMNS": str(WIDTH)}).stdout


@pytest.mark.parametrize("arguments", [[], *([name] for name in COMMANDS)], ids=lambda names: " ".join(names) or "all")
def test_help_fits_80_columns_and_tells_exit_statuses(arguments: list[str]) -> None:
    text = help_of(*arguments)
    statuses = "Exit status: 0 clean, 1 findings, 2 wrong usage, or a file that cannot be read or written."
    assert not arguments or statuses in " ".join(text.split())
    assert text.startswith("Usage: ")
    assert all(len(line) <= WIDTH for line in text.splitlines())
    assert "…" not in text
    assert "..." not in text.replace("[FILE]...", "").replace("[ARGS]...", "")


def test_the_help_of_a_check_names_each_kind_that_is_read_and_the_whole_values_of_options() -> None:
    words = help_of("check").split()
    assert {"documentation,", "runtime", "onnxruntime-directml-1.16.3;", "never:"} <= {*words}
    assert all(f"{kind.name} ({', '.join(kind.suffixes)})" in " ".join(words) for kind in KINDS if kind.reader)


def test_each_option_is_on_a_page() -> None:
    pages = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md") if path.name != "api.md")
    settings = {key.alias or name for name, key in Settings.model_fields.items() if f"`{key.alias or name}`" in pages}
    for command in COMMAND.commands.values():
        for name in (name for each in command.params for name in each.opts if name.startswith("--")):
            assert name.removeprefix("--") in settings or re.search(rf"{name}(?![-\w])", pages), name


# Without a target


NOTICE: Final = (
    "dml-tile: checked at 6_4, which no Windows has in the box; name your users' oldest Windows, as in --target "
)


def test_a_check_without_a_target_says_once_which_it_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiles = [str(EXAMPLES / name) for name in ("tile.json", "strided.json")]
    monkeypatch.chdir(tmp_path)
    assert invoke_bare("check", *tiles).stderr.startswith(NOTICE)
    assert invoke_bare("check", *tiles).stderr.count("\n") == 1
    assert NOTICE not in invoke_bare("check", *tiles, "--quiet").stderr
    for nothing in ("[]", "{"):
        assert NOTICE not in invoke_bare("check", "-", stdin=nothing).stderr
