"""What a check passes over: nothing that may hold tiles, wherever in a file they are and however it is broken."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from shutil import copy
from typing import Final

import pytest
from pydantic.alias_generators import to_snake

from dml_tile.directml.operators import operators
from dml_tile.readers import contents, file_kinds
from dml_tile.readers.contents import why_nothing
from dml_tile.readers.file_kinds import KINDS, LFS_POINTER, FileKind, kind_of
from tests.helpers.check_files import BAD, TILE, captured, model, write
from tests.helpers.command_line import Call
from tests.helpers.paths import ROOT

TEXT: Final = json.dumps(BAD)
POINTER: Final = LFS_POINTER + b"v1\noid sha256:4d7a\nsize 12345\n"
OTHER: Final = json.dumps({"dml_tile_capture": 1, "hresult": None, "feature_level": None, "operator": {"Type": "GEMM"}})
GRAPH: Final = {"InputCount": 1, "OutputCount": 1, "Nodes": [{"Operator": {"Type": "GEMM"}}], "InputEdges": []}
SITE: Final = "https://json-schema.org/draft/2020-12/schema"
ONNX: Final = (ROOT / "examples/models/two_tiles.onnx").read_bytes()
SCHEMA: Final = {"type": "object", "properties": {"InputTensor": {"type": "object"}}, "$schema": SITE}


def kind(name: str) -> FileKind:
    found = kind_of(name)
    assert found is not None
    return found


def reason(name: str, content: str | bytes) -> str:
    """Why a folder's file of that name is passed over."""
    return why_nothing(kind(name), BytesIO(content if isinstance(content, bytes) else content.encode()))


# What may hold tiles


LOST: Final[dict[str, tuple[str, str | bytes, int, str]]] = {
    # a file's name and content, the exit status, and what is said of it
    "a capture whose first tile comes late": ("a.jsonl", f"{OTHER}\n" * 2000 + json.dumps(captured(BAD)), 1, "refused"),
    "a capture of other operators": ("a.jsonl", OTHER, 0, "DML_OPERATOR_GEMM"),
    "a capture that is cut": ("a.jsonl", json.dumps(captured(BAD))[:-20], 2, "unreadable JSON"),
    "lines": ("a.ndjson", f"{json.dumps(TILE)}\n{TEXT}\n", 1, ":2: refused"),
    "a list": ("a.json", json.dumps([TILE, BAD]), 1, "#/1: refused"),
    "a misspelled key": ("a.json", json.dumps(TILE | {"OutputTensr": 1}), 2, "OutputTensr is unknown"),
    "a DxDispatch model": ("a.json", json.dumps(model(t=BAD)), 1, "#/dispatchables/t: refused"),
    "a graph": ("a.json", json.dumps(GRAPH | {"Nodes": [{"Operator": BAD}], "OutputEdges": []}), 1, "refused"),
    "an ONNX model": ("a.onnx", ONNX, 0, "a.onnx#number: accepted so far"),
    "half of one": ("a.onnx", ONNX[: len(ONNX) // 2], 2, "a.onnx: is not an ONNX model"),
    "UTF-16 with its mark": ("a.json", TEXT.encode("utf-16"), 2, "the text is UTF-16; UTF-8 was expected"),
    "UTF-16 without one": ("a.json", TEXT.encode("utf-16-be"), 2, "the text is UTF-16; UTF-8 was expected"),
    "lines in UTF-16": ("a.jsonl", f"{TEXT}\n{TEXT}".encode("utf-16"), 2, "a.jsonl: unreadable JSON: the text is UTF"),
    "lines in UTF-32": ("a.jsonl", TEXT.encode("utf-32"), 2, "a.jsonl: unreadable JSON: the text is UTF-32"),
    "UTF-8 with a mark": ("a.json", b"\xef\xbb\xbf" + TEXT.encode(), 1, "refused"),
    "a missing colon": ("a.json", TEXT.replace("Tensor\":", "Tensor\""), 2, "unreadable JSON: expected `:`"),
    "a missing bracket": ("a.json", TEXT.replace("}", "", 1), 2, "unreadable JSON"),
    "single quotes": ("a.json", str(BAD), 2, "unreadable JSON: key must be a string"),
    "a long comment": ("a.json", f"/*{'*' * 160_000}*/{TEXT}", 1, "refused"),
    "a schema of JSON": ("a.json", json.dumps({"$schema": SITE} | BAD), 1, "refused"),
    "an output without an input": ("a.json", '{"OutputTensor": {}}', 2, "InputTensor is missing"),
    "a graph without tiles": ("a.json", json.dumps(GRAPH), 2, "a.json: "),
    "resources": ("a.json", json.dumps({"resources": {"In": {"initialValues": []}}}), 2, "dispatchables is missing"),
    "another operator": ("a.json", '{"Type": "DML_OPERATOR_GEMM", "Desc": {}}', 2, "BTensor is missing"),
    **{f"a pointer called {end}": (f"a{end}", POINTER, 2, f"a{end}: is a pointer of Git LFS; run git lfs pull")
       for kind in KINDS if kind.reader for end in kind.suffixes},
}  # fmt: skip


@pytest.mark.parametrize("how", ["a folder", "paths", "the hook"])
@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
def test_what_may_hold_tiles_is_read(check: Call, lost: tuple[str, str | bytes, int, str], how: str) -> None:
    name, content, status, message = lost
    Path("in").mkdir()
    Path("in", name).write_bytes(content if isinstance(content, bytes) else content.encode())
    write("in/good.json", TILE)
    write("pyproject.toml", '[tool.dml-tile]\npaths = ["in"]\n')
    arguments = {"a folder": ["in"], "paths": [], "the hook": ["--skip-others", f"in/{name}", "in/good.json"]}[how]
    result = check(*arguments)
    assert result.exit_code == status, result.stdout + result.stderr
    assert message in result.stdout + result.stderr


@pytest.mark.parametrize("blanks", [0, 700, 100_000])
@pytest.mark.parametrize("before", [2**16 - 20, 2**16 - 3, 2**16 + 2**18 - 9, 2**16 + 2**19])
@pytest.mark.parametrize(
    ("end", "is_key"), [(":", True), ("{", True), ("", True), (",", False), ("]", False), ("}", False)]
)
def test_a_key_is_found_wherever_a_part_of_the_file_ends(before: int, blanks: int, end: str, is_key: int) -> None:
    text = f'{"x" * before}"OutputTensor"{" " * blanks}{end}{"y" * (9 if end else 0)}'
    is_cut = blanks > contents._OVERLAP and not is_key  # read where it need not be
    assert is_cut or (reason("a.json", text) == "") == is_key


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.json", "", "without a tile's keys"),
        ("a.jsonl", "{}\n" * 100_000, "without a tile's keys"),
        ("a.json", '{"path": "InputTensor", "message": "InputTensor.Sizes", "x": "\\"InputTensor\\": 1"}', "without a"),
        ("a.json", '{"required": ["InputTensor", "OutputTensor"]}', "without a tile's keys"),
        ("a.json", '{"tile": "DML_OPERATOR_GEMM", "InputTensors": 1, "dispatchable": 2}', "without a tile's keys"),
        ("a.json", '{"name": "x", "nodes": []}', "without a tile's keys"),
        ("a.json", json.dumps(SCHEMA), "holding a JSON Schema"),
        ("a.json", json.dumps(SCHEMA | {"description": " " * 10**6}), "holding a JSON Schema"),
        ("a.json", json.dumps(SCHEMA)[:-1], ""),
        ("a.json", json.dumps(SCHEMA | TILE), ""),
        ("a.json", json.dumps(SCHEMA | {"$schema": "mine.json"}), ""),
        ("a.json", json.dumps(SCHEMA | {"$schema": "http://json-schema.org/draft-07/schema#"}), "holding a JSON"),
        ("a.json", json.dumps({"$schema": SITE, "tiles": [BAD]}), ""),
        ("a.json", '{"nodes": [], "input_edges": []}', ""),
        ("a.jsonl", json.dumps(SCHEMA), ""),
        ("a.xml", "<project><net.version>1</net.version><network/></project>", "without a network"),
        ("a.xml", f"<!--{' ' * 2**17}--><net name='x'/>", ""),
        ("a.xml", "<?xml version='1.0' encoding='UTF-16'?><net/>".encode("utf-16"), ""),
        ("a.pb", b"\x08\x02\x10\x01J\x08" + bytes(2**17), "without a TensorFlow graph"),
        ("a.pb", bytes(2**17) + b"Placeholder", ""),
    ],
)  # fmt: skip
def test_what_holds_no_tile_is_passed_over_with_the_reason(name: str, content: str | bytes, expected: str) -> None:
    assert reason(name, content).startswith(expected)
    assert bool(reason(name, content)) == bool(expected)


def test_a_schema_of_many_megabytes_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MAX_DOCUMENT_BYTES", 100)
    assert reason("a.json", json.dumps(SCHEMA | {"description": " " * 10**5})) == ""


def test_this_repository_s_schemas_are_not_broken(check: Call) -> None:
    result = check(str(ROOT / "schemas"))
    assert (result.exit_code, "unreadable" in result.stderr) == (2, False)
    assert "holds no models and no descriptors" in result.stderr


@pytest.mark.parametrize("command", ["show", "lower", "lower --format cpp"])
def test_show_and_lower_say_what_they_pass_over(call: Call, command: str) -> None:
    write("in/tile.json", TILE)
    write("in/package.json", {"name": "x"})
    write("in/none.json", {"resources": {}, "dispatchables": {}, "commands": []})
    write("in/.hidden/tile.json", TILE)
    counts = "2 files skipped: 1 without a tile's keys, 1 without descriptors; 1 folder skipped: 1 hidden"
    arguments = [*command.split(), "--target", "6_4"]
    assert call(*arguments, "in").stderr == f"dml-tile: {counts}\n"
    assert "dml-tile: 1 file skipped: 1 without descriptors\n" in call(*arguments, "in/none.json").stderr
    assert call(*arguments, "in/tile.json").stderr == ""


def test_lower_says_which_models_a_back_end_does_not_read(call: Call) -> None:
    Path("in").mkdir()
    for name in ("burn_tile.onnx", "tile.pb"):
        copy(ROOT / "tests/data/models" / name, "in")
    passed_over = "dml-tile: 1 file skipped: 1 a frozen TensorFlow graph, which ONNX Runtime's"
    assert passed_over in call("lower", "in", "--via", "ort").stderr
    Path("in/burn_tile.onnx").unlink()
    assert passed_over in call("lower", "in", "--via", "ort").stderr


# What is passed over is said


LINE: Final = (
    "10 files skipped: 3 without a tile's keys, 1 excluded, 1 holding a JSON Schema, 1 ignored by .gitignore, "
    "1 linked from nowhere, 1 linked from outside of the repository, 1 without a network, 1 without descriptors; "
    "6 folders skipped: 1 called node_modules, 1 excluded, 1 hidden, 1 ignored by .gitignore, 1 linked, "
    "1 with a virtual environment"
)


@pytest.fixture
def project(tmp_path: Path) -> dict[str, str]:
    """Files in a folder called in, of which some are passed over; returns those, each with the reason."""
    for folder in ("node_modules", ".hidden", "build", "env", "excluded", ".git"):
        write(f"in/{folder}/a.json", BAD)
    write("in/env/pyvenv.cfg", "")
    write("in/.gitignore", "build\ngenerated.json\n")
    write("in/good.json", TILE)
    write("in/more/package.json", {"name": "x"})
    for name, content in (("a.jsonl", ""), ("b.ndjson", "{}"), ("generated.json", BAD), ("old.json", BAD)):
        write(f"in/{name}", content)
    write("in/schema.json", SCHEMA)
    write("in/pom.xml", "<project/>")
    write("in/readme.md", TILE)
    write("in/empty.json", {"resources": {}, "dispatchables": {}, "commands": []})
    write("outside/x.json", BAD)
    for link, target in (("gone.onnx", "in/missing"), ("x.json", "outside/x.json"), ("out", "outside")):
        Path("in", link).symlink_to(tmp_path / target)
    return {
        "in/a.jsonl": "without a tile's keys",
        "in/b.ndjson": "without a tile's keys",
        "in/more/package.json": "without a tile's keys",
        "in/generated.json": "ignored by .gitignore",
        "in/gone.onnx": "linked from nowhere",
        "in/old.json": "excluded",
        "in/pom.xml": "without a network",
        "in/schema.json": "holding a JSON Schema",
        "in/x.json": "linked from outside of the repository",
        "in/.hidden/": "hidden",
        "in/build/": "ignored by .gitignore",
        "in/env/": "with a virtual environment",
        "in/excluded/": "excluded",
        "in/node_modules/": "called node_modules",
        "in/out/": "linked",
        "in/empty.json": "without descriptors",
    }


CHECK: Final = ("in", "--exclude", "old.json", "--exclude", "excluded")


def test_the_count_goes_with_what_is_printed_and_quiet_says_none(check: Call, project: dict[str, str]) -> None:
    assert LINE in check(*CHECK, "--format", "concise", "--format", "json:a.json").stderr
    assert "passed over" not in check(*CHECK, "--format", "text", "--format", "sarif:a.sarif").stderr
    assert LINE in check(*CHECK, "--format", "sarif:a.sarif").stderr
    result = check(*CHECK, "--quiet")
    assert "passed over" not in result.stdout + result.stderr
    assert LINE not in check("in/good.json").stdout


@pytest.mark.parametrize("name", ["text", "concise", "json"])
def test_verbose_names_what_is_passed_over(check: Call, project: dict[str, str], name: str) -> None:
    lines = check(*CHECK, "--verbose", "--format", name).stderr.splitlines()
    named = [f"dml-tile: {file}: skipped, {reason}" for file, reason in project.items()]
    assert sorted(lines) == sorted([*named, f"dml-tile: {LINE}"] if name == "concise" else named)


@pytest.mark.parametrize("how", ["the option", "the setting", "a named file"])
def test_strict_files_wants_something_to_check_in_each_file(check: Call, project: dict[str, str], how: str) -> None:
    write("pyproject.toml", f"[tool.dml-tile]\nstrict-files = {'true' if how == 'the setting' else 'false'}\n")
    files = {name for name in project if not name.endswith("/")} - {"in/old.json", "in/generated.json"}
    names = ["--skip-others", "in/readme.md", *files] if how == "a named file" else CHECK
    result = check(*names, *([] if how == "the setting" else ["--strict-files"]))
    assert result.exit_code == 2
    said = {line.split(": ")[1]: line for line in result.stderr.splitlines()}
    if how == "a named file":  # a link is followed in the repository, and what leads nowhere cannot be read
        assert said.pop("in/gone.onnx").endswith("No such file or directory")
        assert "in/x.json is a link out of " in said.pop("in/x.json")
        files -= {"in/gone.onnx", "in/x.json"}
        assert "1 file skipped: 1 of another suffix\n" in result.stdout
    else:
        assert "2 files skipped: 1 excluded, 1 ignored by .gitignore; 6 folders" in result.stdout
    assert said.keys() - {"check"} >= files
    for name in files:
        assert f"would be skipped ({project[name]}), which --strict-files forbids" in said[name]


def test_what_is_named_and_passed_over_elsewhere_is_read(check: Call, project: dict[str, str]) -> None:
    result = check(*CHECK, "in/more/package.json", "in/good.json")
    assert "9 files skipped: 2 without a tile's keys" in result.stdout
    assert "in/more/package.json: an object was provided" in result.stderr


def test_all_of_a_folder_may_be_checked(check: Call, project: dict[str, str]) -> None:
    result = check("in", "--no-ignore", "--verbose")
    assert "1 folder skipped: 1 linked" in result.stdout
    assert "in/.git/a.json" in result.stdout


# One table of kinds


def test_the_page_lists_the_kinds_that_are_read() -> None:
    rows = [
        f"| {', '.join(kind.suffixes)} | {kind.name} | {kind.content.name if kind.content else ''} |".replace(
            "|  |", "| |"
        )
        for kind in KINDS
        if kind.reader
    ]
    assert "\n".join(rows) in (ROOT / "docs/check.md").read_text()


def test_a_kind_is_one_row(check: Call, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    row = kind("a.onnx")._replace(name="a model of tomorrow", suffixes=(".tmrw",), begins=b"tmrw")
    monkeypatch.setattr(file_kinds, "KINDS", (row, *KINDS))
    Path("in").mkdir()
    Path("in/a.tmrw").write_bytes(ONNX)
    write("pyproject.toml", '[tool.dml-tile]\npaths = ["in"]\n')
    for arguments in (["in"], [], ["--skip-others", "in/a.tmrw"]):  # read as a model, in a process of its own
        assert "in/a.tmrw" in check(*arguments).stdout
        assert "tiles" in check(*arguments).stdout
    assert "a model of tomorrow (.tmrw), an ONNX model (.onnx)" in check(write("a.gguf", "GGUF")).stderr
    assert "is a model of tomorrow; models are read from files: save it as" in check(write("b", "tmrw")).stderr
    assert "emit reads JSON" in call("emit", "in/a.tmrw", "--lang", "cpp").stderr


@pytest.mark.parametrize("by_alias", [True, False])
def test_a_descriptor_of_any_operator_is_looked_into(by_alias: bool) -> None:
    padding = " " * 2**17  # beyond what is searched for words one by one
    for operator in operators().values():
        fields = dict.fromkeys(operator.tensors if by_alias else map(to_snake, operator.tensors))
        text = json.dumps({"Type": operator.name, "Desc": fields})
        assert (reason("a.json", text), reason("a.json", padding + text)) == ("", ""), operator.name
