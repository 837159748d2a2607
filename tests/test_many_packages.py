"""A repository of 40 packages: what each file of them is, and what one run says of it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Final

import pytest

from dml_tile.readers.file_kinds import LFS_POINTER
from dml_tile.reports.wording import VERDICTS
from tests.helpers.check_files import BAD, TILE, captured, model
from tests.helpers.command_line import Call
from tests.helpers.paths import EXAMPLES

PACKAGES: Final = 40
GRAPH: Final = {"InputCount": 1, "OutputCount": 1, "Nodes": [{"Operator": BAD}], "InputEdges": [], "OutputEdges": []}
OTHERS: Final = "".join(json.dumps(captured(None) | {"operator": {"Type": "GEMM"}}) + "\n" for _ in range(1200))
SITE: Final = "https://json-schema.org/draft/2020-12/schema"
MODEL: Final = (EXAMPLES / "models/two_tiles.onnx").read_bytes()
POINTER: Final = LFS_POINTER + b"v1\noid sha256:4d7a\nsize 12345\n"

REFUSED, ACCEPTED, NOT_READ, NOT_JSON = "refused", "accepted", "not read", "not read: unreadable JSON"
NO_KEYS, NO_GRAPH = "passed over: without a tile's keys", "passed over: without a TensorFlow graph"

KINDS: Final[dict[str, tuple[str, Any, str]]] = {
    # what a file is: its name, its content, and the first words of what is said of it
    "a descriptor": ("tile.json", TILE, ACCEPTED),
    "a refused one": ("bad.json", BAD, REFUSED),
    "a list": ("list.json", [TILE, BAD], REFUSED),
    "lines": ("lines.ndjson", f"{json.dumps(TILE)}\n{json.dumps(BAD)}\n", REFUSED),
    "a descriptor with the schema of JSON Schema": ("with_schema.json", {"$schema": SITE} | BAD, REFUSED),
    "a descriptor behind a long comment": ("comment.json", f"/*{' ' * 156_000}*/{json.dumps(BAD)}", REFUSED),
    "a DxDispatch model": ("dispatch.json", model(t=BAD), REFUSED),
    "a graph": ("graph.json", GRAPH, REFUSED),
    "a capture whose tile comes late": ("late.jsonl", OTHERS + json.dumps(captured(BAD)), REFUSED),
    "an ONNX model": ("two.onnx", MODEL, ACCEPTED),
    "half a model": ("half.onnx", MODEL[: len(MODEL) // 2], NOT_READ),
    **{f"a pointer called {end}": (f"lfs{end}", POINTER, f"{NOT_READ}: is a pointer of Git LFS")
       for end in (".json", ".jsonl", ".ndjson", ".onnx", ".xml", ".pb", ".tflite", ".pdmodel")},
    "UTF-16, as PowerShell writes": ("utf16.json", json.dumps(BAD).encode("utf-16"), NOT_JSON),
    "a missing colon": ("colon.json", json.dumps(BAD).replace("Tensor\":", "Tensor\""), NOT_JSON),
    "a missing bracket": ("bracket.json", json.dumps(BAD)[:-1], NOT_JSON),
    "a cut line": ("cut.jsonl", json.dumps(captured(BAD))[:-20], NOT_JSON),
    "a misspelled one": ("keys.json", TILE | {"OutputTensr": 1}, f"{NOT_READ}: OutputTensr is unknown"),
    "a JSON Schema": ("tile.schema.json", {"$schema": SITE, "properties": BAD}, "passed over: holding a JSON Schema"),
    "another project's JSON": ("package.json", {"name": "x", "nodes": []}, NO_KEYS),
    "a report about tiles": ("report.json", {"path": "InputTensor"}, NO_KEYS),
    "an empty capture": ("empty.jsonl", "", NO_KEYS),
    "another project's XML": ("pom.xml", "<project/>", "passed over: without a network"),
    "an input of an ONNX test": ("input_0.pb", b"\x08\x02\x10\x01J\x08" + bytes(8), NO_GRAPH),
    "an empty model": ("nothing.json", model(), "passed over: without descriptors"),
    "an excluded file": ("tile.tmp.json", BAD, "passed over: excluded"),
    "a file of an excluded folder": ("old/tile.json", BAD, "not entered: excluded"),
    "a generated file": ("tile.generated.json", BAD, "passed over: ignored by .gitignore"),
    "a file of a built folder": ("build/tile.json", BAD, "not entered: ignored by .gitignore"),
    "a file of a dependency": ("node_modules/x/tile.json", BAD, "not entered: called node_modules"),
    "a file of a hidden folder": (".cache/tile.json", BAD, "not entered: hidden"),
}  # fmt: skip


@pytest.fixture
def files() -> dict[str, str]:
    """Files of 40 packages, each with what is expected to be said of it."""
    chance = random.Random(39)
    expected = {}
    Path(".git").mkdir()
    Path(".gitignore").write_text("build/\n*.generated.json\n")
    Path("pyproject.toml").write_text('[tool.dml-tile]\npaths = ["packages"]\nexclude = ["old", "*.tmp.json"]\n')
    for i in range(PACKAGES):
        kinds = chance.sample(sorted(KINDS), 8) if i else KINDS
        for kind in kinds:
            name, content, said = KINDS[kind]
            folder = "/".join(chance.choices(["src", "models", "test data"], k=chance.randint(0, 3)))
            path = Path("packages", f"p{i:02}", folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = content if isinstance(content, bytes | str) else json.dumps(content)
            path.write_bytes(text.encode() if isinstance(text, str) else text)
            expected[path.as_posix()] = said
        Path(f"packages/p{i:02}/pyproject.toml").write_text("[project]\nname = 'x'\n")
    return expected


def said_of(file: str, output: Any) -> str:
    """What a run's JSON says of a file, or of the folder above it that was not entered; the worst of its verdicts."""
    if errors := [one["message"] for one in output["errors"] if one["source"] == file]:
        return f"{NOT_READ}: {errors[0]}"
    verdicts: list[str] = [one["verdict"] for one in output["results"] if one["source"] == file]
    if verdicts:
        return min(verdicts, key=VERDICTS.index)
    for one in output["sources"]:
        if one["passed_over"] and one["source"] == file:
            return f"passed over: {one['passed_over']}"
        if one["source"].endswith("/") and file.startswith(one["source"]):
            return f"not entered: {one['passed_over']}"
    return ""


def test_no_file_of_forty_packages_is_left_without_a_word(check: Call, files: dict[str, str]) -> None:
    result = check("--format", "json", "--format", "text:all.txt")
    output = json.loads(result.stdout)
    assert result.exit_code == 2
    said = {file: said_of(file, output) for file in files}
    assert {file: words[: len(files[file])] for file, words in said.items()} == files
    passed = sum(words.startswith("passed over") for words in files.values())
    assert f"\n{passed} files passed over: " in Path("all.txt").read_text()


@pytest.mark.parametrize("options", [["--strict-files"], ["--strict-files", "--format", "concise"]])
def test_strict_files_leaves_only_what_is_excluded(check: Call, files: dict[str, str], options: list[str]) -> None:
    stderr = check(*options).stderr
    for file, words in files.items():
        is_left_out = words.endswith(("excluded", "ignored by .gitignore"))
        if words.startswith("passed over"):
            assert (f"dml-tile: {file}: would be passed over" in stderr) != is_left_out
