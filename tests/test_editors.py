"""The schemas in an editor, by VS Code's own JSON language service where it is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import onnx
import pytest

from dml_tile.json_text import parse_json
from dml_tile.readers.file_kinds import LFS_POINTER
from tests.helpers.check_files import BAD, TILE, write
from tests.helpers.check_files import FLAT as FLAT_TENSOR
from tests.helpers.command_line import Call, errors_of
from tests.helpers.onnx_graphs import constant, tile_node, typed
from tests.helpers.onnx_graphs import model as onnx_model
from tests.helpers.packages import npm_file
from tests.helpers.paths import EXAMPLES, ROOT

NODE = shutil.which("node")
SERVICE = npm_file("vscode-json-languageservice/package.json")
needs_the_service = pytest.mark.skipif(
    NODE is None or SERVICE is None,
    reason="needs node, and npm's vscode-json-languageservice in a folder that the variable NODE_PATH names",
)
TILE_SCHEMA = "dml_tile_operator_desc"
SCHEMA_FILES = sorted((ROOT / "schemas").iterdir())
SCHEMAS = {path.name.removesuffix(".schema.json"): json.loads(path.read_text("utf-8")) for path in SCHEMA_FILES}
"""What the files hold, which test_schemas.py compares with the code."""


def ask(text: str, name: str = TILE_SCHEMA) -> dict[str, Any]:
    """Return the language service's completions and hover at the cursor, ¦ in the text, and its diagnostics."""
    assert NODE
    command = [NODE, str(ROOT / "tests" / "helpers" / "ask_language_service.cjs")]
    asked = json.dumps({"schema": SCHEMAS[name], "text": text})
    done = subprocess.run(command, input=asked, capture_output=True, check=True, text=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def completions(text: str, name: str = TILE_SCHEMA) -> list[str]:
    return [label for label, _ in ask(text, name)["completions"]]


def diagnostics(text: str, name: str = TILE_SCHEMA) -> list[str]:
    return [message for _, message in ask(text, name)["diagnostics"]]


FLAT = '{"DataType": "INT64", "Sizes": [1, 1, 2, 3]}'
WHOLE = f'{{"InputTensor": {FLAT}, "OutputTensor": {FLAT}, "Repeats": [1, 1, 1, 1]}}'


@needs_the_service
def test_the_keys_of_a_tile_and_of_a_tensor_are_offered() -> None:
    assert completions("{¦}") == ["$schema", "InputTensor", "OutputTensor", "RepeatsCount", "Repeats"]
    assert {"DataType", "Sizes", "Strides", "Desc", "Type"} <= set(completions('{"InputTensor": {¦}}'))
    assert {"Type", "Desc", "InputTensor"} <= set(completions("{¦}", "dml_operator_desc"))


@needs_the_service
def test_a_wrong_value_a_missing_field_and_an_unknown_key_are_underlined_in_the_spelling_that_is_used() -> None:
    ((text, message),) = ask(WHOLE.replace('"INT64"', '"INT46"', 1))["diagnostics"]
    assert text == '"INT46"'
    assert message.startswith('Value is not accepted. Valid values: "UNKNOWN", "FLOAT32"')
    misspelt = WHOLE.replace('"Repeats"', '"RepeatCount": 4, "Repeats"')
    assert diagnostics(misspelt) == ["Property RepeatCount is not allowed."]
    assert diagnostics(WHOLE.replace(FLAT, '{"DataType": "INT64"}', 1)) == ['Missing property "Sizes".']
    nested = '{"Type": "BUFFER", "Desc": {"DataType": "INT64"}}'
    assert diagnostics(WHOLE.replace(FLAT, nested, 1)) == ['Missing property "Sizes".']
    without_repeats = f'{{"InputTensor": {FLAT}, "OutputTensor": {FLAT}}}'
    whole = f'{{"Type": "TILE", "Desc": {without_repeats}}}'
    assert diagnostics(whole, "dml_operator_desc") == ['Missing property "Repeats".']


# What the readers do about an editor's key

MODEL = parse_json((EXAMPLES / "tile.json").read_bytes())


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_schema_lets_a_document_name_its_schema_and_describes_in_plain_text(name: str) -> None:
    schema = SCHEMAS[name]
    assert "``" not in json.dumps(schema)
    structs = [schema, schema.get("then", {}), schema.get("else", {})]
    closed = [struct for struct in structs if struct.get("additionalProperties") is False]
    assert all(struct["properties"]["$schema"]["type"] == "string" for struct in closed)


@pytest.mark.parametrize(
    "document",
    [TILE, {"Type": "TILE", "Desc": TILE}, {"Type": "TILE", **TILE}, MODEL],
    ids=["tile", "nested", "beside", "model"],
)
def test_the_key_that_names_the_schema_is_ignored(check: Call, document: dict[str, Any]) -> None:
    plain = check(write("a.json", document))
    assert plain.exit_code == 0
    named = check(write("a.json", {"$schema": "tile.schema.json", **document}))
    assert (named.exit_code, named.stdout) == (0, plain.stdout)


def test_within_a_tensor_the_key_is_unknown(check: Call) -> None:
    wrong = TILE | {"InputTensor": FLAT_TENSOR | {"$schema": "x"}}
    assert "$schema is unknown" in errors_of(check, write("a.json", wrong))


# Lists of findings, by what docs/editors.md says to set


PAGE = (ROOT / "docs" / "editors.md").read_text("utf-8")
VIM = shutil.which("vim")
FOUND = [
    # what is in the output of concise: the file, line, column, severity, and the beginning of the reason
    ("in dir/a.json", 11, 4, "error", "OutputTensor.Sizes[0]: 2 was"),
    ("in dir/b#1.json", 15, 14, "warning", "OutputTensor.Strides: elements of the"),
    ("in dir/m.onnx", 0, 0, "error", "InputTensor.DataType"),
    ("in dir/m.onnx", 0, 0, "error", "InputTensor.DataType"),
    ("in dir/m.onnx", 0, 0, "note", "accepted so far"),
    ("in dir/c.json", 1, 1, "error", "unreadable JSON"),
    ("in dir/d.json", 0, 0, "error", "is a pointer of Git LFS"),
]


@pytest.fixture
def concise(check: Call) -> list[str]:
    """The lines of a run that come to what stands in ``FOUND``."""
    write("in dir/a.json", BAD)
    plain = {"DataType": "FLOAT32", "Sizes": [2, 4]}
    shared = plain | {"Strides": [6, 2], "TotalTensorSizeInBytes": 52}  # which DirectML does not notice
    write("in dir/b#1.json", {"InputTensor": plain, "OutputTensor": shared, "Repeats": [1, 1]})
    write("in dir/c.json", "{")
    Path("in dir/d.json").write_bytes(LFS_POINTER)
    nodes = [constant("r", [1, 2]), *(tile_node("x", "r", f"y{i}", name) for i, name in enumerate(["t:0", "wide one"]))]
    nodes.append(tile_node("z", "n", "w", "open"))
    inputs = [typed("x", [2, 3], 7), typed("z", [2], 1), typed("n", [1], 7)]
    onnx.save(onnx_model(*nodes, inputs=inputs), "in dir/m.onnx")
    names = dict.fromkeys(file for file, *_ in FOUND)
    return check(*names, "--format", "concise", "-t", "4_0").stdout.splitlines()


def test_vs_code_s_problem_matchers_take_each_line_once(concise: list[str]) -> None:
    (text,) = re.findall(r"`.vscode/tasks.json`:\n\n```json\n(.*?)```", PAGE, re.DOTALL)
    (task,) = json.loads(text)["tasks"]
    assert task["command"] == "dml-tile check --format concise"
    found = []
    for line in [*concise, f"C:\\{concise[0].replace('/', chr(92))}"]:
        matches = [(each["pattern"], re.search(each["pattern"]["regexp"], line)) for each in task["problemMatcher"]]
        ((pattern, match),) = [(pattern, match) for pattern, match in matches if match]
        assert match[pattern["code"]] in line.partition("[")[2]
        line_and_column = [int(match[pattern[key]]) if key in pattern else 0 for key in ("line", "column")]
        found.append((match[pattern["file"]], *line_and_column, match[pattern["severity"]], match[pattern["message"]]))
    *found, windows = found
    assert [(*each[:4], each[4][: len(of[4])]) for each, of in zip(found, FOUND, strict=True)] == FOUND
    assert windows[:4] == ("C:\\in dir\\a.json", 11, 4, "error")


@pytest.mark.skipif(VIM is None, reason="needs vim")
def test_vim_s_errorformat_takes_each_line(concise: list[str]) -> None:
    assert VIM
    (settings,) = re.findall(r"```vim\n(.*?)```", PAGE, re.DOTALL)
    asked = "map(getqflist(), '[bufname(v:val.bufnr), v:val.lnum, v:val.col, v:val.type, v:val.text]')"
    Path("lines.txt").write_text("".join(f"{line}\n" for line in concise))
    Path("list.vim").write_text(
        f"{settings}cgetfile lines.txt\ncall writefile([json_encode({asked})], 'list.json')\nqall!\n"
    )
    subprocess.run([VIM, "-N", "-u", "NONE", "-i", "NONE", "-n", "-es", "-S", "list.vim"], check=False, timeout=60)
    found = json.loads(Path("list.json").read_text())
    assert [tuple(each[:4]) for each in found] == [(*of[:3], of[3][0]) for of in FOUND]
    for (*_, text), line, (*_, reason) in zip(found, concise, FOUND, strict=True):
        assert line.endswith(text)
        assert reason in text
