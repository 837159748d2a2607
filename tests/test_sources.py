"""AllowedFolders, and which file is read by what."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from dml_tile.readers.sources import expanded, is_model_file
from tests.helpers.descriptors import page_tile

DESCRIPTOR = page_tile().model_dump_json(by_alias=True)


def files(folder: Path, **contents: str | bytes) -> list[str]:
    for name, text in contents.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return [str(Path(name).relative_to(folder)) for name in expanded(str(folder))]


GRAPH = b"\n\x10\n\x01x\x12\x0bPlaceholder"


@pytest.mark.parametrize("name", ["missing.txt", "-", "a" * 5000])
def test_a_name_that_is_no_folder_stands_for_itself(name: str) -> None:
    assert list(expanded(name)) == [name]


@pytest.mark.parametrize(
    ("contents", "found"),
    [
        (
            {"b_onnx": b"", "a__c_tflite": b"", "a__b_json": DESCRIPTOR, "Z_ONNX": b"", "lines_jsonl": DESCRIPTOR},
            ["Z.ONNX", "b.onnx", "lines.jsonl", "a/b.json", "a/c.tflite"],
        ),
        ({"readme_md": "InputTensor", "weights_bin": b""}, []),
        ({"config_json": '{"hidden_size": 8}', "truncated_json": DESCRIPTOR[:40]}, ["truncated.json"]),
        (
            {
                "s_json": f'{{"$schema": "https://json-schema.org/draft/2020-12/schema", {DESCRIPTOR[1:]}',
                "s7_json": f'{{"$schema" : "http://json-schema.org/draft-07/schema#", {DESCRIPTOR[1:]}',
                "m_json": f'{{"$schema": "dml_operator_desc.schema.json", {DESCRIPTOR[1:]}',
            },
            ["m.json"],
        ),
        ({"model_json": '{"resources": {"In": {"initialValues": []}}}'}, ["model.json"]),
        ({"pom_xml": "<project/>", "net_xml": "<?xml version='1.0'?><net/>"}, ["net.xml"]),
        ({"input_pb": b"\x08\x02\x10\x01J\x08" + bytes(8), "graph_pb": GRAPH}, ["graph.pb"]),
        ({"assets__a_onnx": b"", "variables__v_json": DESCRIPTOR}, ["assets/a.onnx", "variables/v.json"]),
    ],
    ids=["at any depth, by name", "others", "JSON", "schemas", "a model", "XML", "graphs", "what is no saved model"],
)
def test_a_folder_stands_for_what_may_have_tiles(
    tmp_path: Path, contents: dict[str, str | bytes], found: list[str]
) -> None:
    assert files(tmp_path, **contents) == found


def test_hidden_folders_and_links_that_leave_are_passed_over(tmp_path: Path) -> None:
    outside = tmp_path / "outside.onnx"
    outside.write_bytes(b"")
    folder = tmp_path / "models"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "a.onnx").write_bytes(b"")
    (folder / "inside.onnx").write_bytes(b"")
    (folder / "link.onnx").symlink_to(outside)
    (folder / "again.onnx").symlink_to(folder / "inside.onnx")
    (folder / "nowhere.onnx").symlink_to(folder / "missing.onnx")
    (folder / "itself.onnx").symlink_to(folder / "itself.onnx")
    (folder / "round").symlink_to(folder)
    assert [Path(name).name for name in expanded(str(folder))] == ["again.onnx", "inside.onnx"]


IGNORED = (
    "build/b.json",
    "in/c.tmp.json",
    "in/node_modules/d.json",
    "in/env/e.json",
    "in/.hidden/f.json",
    "in/g/h.json",
)
STARS = "*a" * 60


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("", ["a.json", "in/keep.tmp.json"]),
        ("in", ["keep.tmp.json"]),
        # what is named is walked
        ("build", ["b.json"]),
        ("in/g", ["h.json"]),
        ("in/env", ["e.json"]),
        ("in/.hidden", ["f.json"]),
    ],
)
def test_what_developers_do_not_expect_is_left_out_of_folders(tmp_path: Path, name: str, found: list[str]) -> None:
    contents = dict.fromkeys((*IGNORED, "a.json", "in/keep.tmp.json", ".git/x", "in/env/pyvenv.cfg"), DESCRIPTOR)
    contents[".gitignore"] = f"build/\n*.tmp.json\n!\n{STARS}\n\n# a comment\n"
    contents["in/.gitignore"] = "!keep.tmp.json\n/g\n"
    for each, text in contents.items():
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / each).write_text(text)
    (tmp_path / f"{'a' * 250}.md").touch()  # which takes long to match with many stars
    folder = tmp_path / name
    assert [Path(each).relative_to(folder).as_posix() for each in expanded(str(folder))] == found
    everything = {Path(each).relative_to(tmp_path).as_posix() for each in expanded(str(tmp_path), ignores_none=True)}
    assert everything == {*IGNORED, "a.json", "in/keep.tmp.json"}


def test_a_saved_model_s_folder_is_one_source(tmp_path: Path) -> None:
    saved = tmp_path / "models" / "saved"
    for part in ("saved_model.pb", "fingerprint.pb", "keras_metadata.pb", "assets/a.onnx", "variables/v.json"):
        (saved / part).parent.mkdir(parents=True, exist_ok=True)
        (saved / part).write_bytes(GRAPH + DESCRIPTOR.encode())
    assert list(expanded(str(saved))) == [str(saved / "saved_model.pb")]
    (saved / "other.onnx").write_bytes(b"")
    assert files(tmp_path, z_pb=GRAPH) == ["z.pb", "models/saved/other.onnx", "models/saved/saved_model.pb"]


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    os.mkfifo(tmp_path / "pipe.onnx")
    (tmp_path / "folder.onnx").mkdir()
    assert files(tmp_path / "folder.onnx") == files(tmp_path) == []


def test_what_cannot_be_opened_is_left_to_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def refusing(path: Any, *_: object, **__: object) -> Any:
        if isinstance(path, Path) or path.endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    (tmp_path / "closed").mkdir()
    assert files(tmp_path, a_json="{}", readme_md="", z__b_onnx="") == ["z/b.onnx"]
    monkeypatch.setattr(os, "scandir", refusing)
    monkeypatch.setattr(Path, "open", refusing)
    assert files(tmp_path) == ["a.json", "z/b.onnx", "closed"]
    assert list(expanded(str(tmp_path / "closed"))) == [str(tmp_path / "closed")]


@pytest.mark.parametrize(("name", "expected"), [("a.onnx", True), ("a.XML", True), ("a.json", False), ("-", False)])
def test_the_name_tells_a_model(name: str, expected: bool) -> None:
    assert is_model_file(name) == expected
