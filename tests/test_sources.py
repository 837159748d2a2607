"""AllowedFolders, and which file is read by what."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from dml_tile.readers.model_tile import KnownShapes, TileNode
from dml_tile.readers.sources import Sources, expanded, is_model_file
from tests.helpers.descriptors import page_tile
from tests.helpers.packages import needed

DESCRIPTOR = page_tile().model_dump_json(by_alias=True)


def files(folder: Path, **contents: str | bytes) -> list[str]:
    for name, text in contents.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return [str(Path(name).relative_to(folder)) for name in expanded(str(folder))]


def test_a_file_stands_for_itself_whatever_it_is(tmp_path: Path) -> None:
    assert list(expanded("missing.txt")) == ["missing.txt"]
    assert list(expanded("-")) == ["-"]


def test_a_folder_is_read_at_any_depth_in_the_order_of_names(tmp_path: Path) -> None:
    found = files(tmp_path, b_onnx=b"", a__c_tflite=b"", a__b_json=DESCRIPTOR, Z_ONNX=b"", lines_jsonl=DESCRIPTOR)
    assert found == ["Z.ONNX", "b.onnx", "lines.jsonl", "a/b.json", "a/c.tflite"]


def test_what_a_folder_holds_besides_is_passed_over(tmp_path: Path) -> None:
    found = files(
        tmp_path,
        readme_md="InputTensor",
        config_json='{"hidden_size": 8}',
        pom_xml="<project/>",
        weights_bin=b"",
        net_xml="<?xml version='1.0'?><net/>",
        model_json='{"resources": {"In": {"initialValues": []}}}',
        truncated_json=DESCRIPTOR[:40],
        input_pb=b"\x08\x02\x10\x01J\x08" + bytes(8),
        graph_pb=b"\n\x10\n\x01x\x12\x0bPlaceholder",
    )
    assert found == ["graph.pb", "model.json", "net.xml", "truncated.json"]


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


def test_a_saved_model_s_folder_is_one_source(tmp_path: Path) -> None:
    graph = b"\n\x10\n\x01x\x12\x0bPlaceholder"
    saved = tmp_path / "models" / "saved"
    for part in ("saved_model.pb", "fingerprint.pb", "keras_metadata.pb", "assets/a.onnx", "variables/v.json"):
        (saved / part).parent.mkdir(parents=True, exist_ok=True)
        (saved / part).write_bytes(graph + DESCRIPTOR.encode())
    assert list(expanded(str(saved))) == [str(saved / "saved_model.pb")]
    (saved / "other.onnx").write_bytes(b"")
    assert files(tmp_path, z_pb=graph) == ["z.pb", "models/saved/other.onnx", "models/saved/saved_model.pb"]


def test_a_folder_without_a_saved_model_hides_nothing(tmp_path: Path) -> None:
    assert files(tmp_path, assets__a_onnx=b"", variables__v_json=DESCRIPTOR) == ["assets/a.onnx", "variables/v.json"]


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    os.mkfifo(tmp_path / "pipe.onnx")
    (tmp_path / "folder.onnx").mkdir()
    assert files(tmp_path / "folder.onnx") == files(tmp_path) == []


def test_a_folder_that_cannot_be_opened_is_left_to_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    scandir = os.scandir

    def refusing(path: str) -> Any:
        if path.endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert files(tmp_path, a_onnx=b"", z__b_onnx=b"") == ["a.onnx", "z/b.onnx", "closed"]
    assert list(expanded(str(tmp_path / "closed"))) == [str(tmp_path / "closed")]


def test_a_file_that_cannot_be_opened_is_left_to_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(path: Path, *arguments: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "readme.md").write_text("")
    monkeypatch.setattr(Path, "open", refusing)
    assert list(expanded(str(tmp_path))) == [str(tmp_path / "a.json")]


def test_a_path_that_cannot_be_looked_at_is_left_to_its_reader(tmp_path: Path) -> None:
    too_long = str(tmp_path / ("a" * 5000))
    assert list(expanded(too_long)) == [too_long]


@pytest.mark.parametrize(("name", "expected"), [("a.onnx", True), ("a.XML", True), ("a.json", False), ("-", False)])
def test_the_name_tells_a_model(name: str, expected: bool) -> None:
    assert is_model_file(name) == expected


def test_each_kind_is_read_by_its_reader(tmp_path: Path) -> None:
    needed("openvino")
    descriptor = tmp_path / "a.json"
    descriptor.write_text(DESCRIPTOR)
    models = Path(__file__).parent / "data" / "models"
    with Sources(KnownShapes()) as sources:
        (part,) = sources.parts(str(models / "burn_tile.onnx"))
        (same,) = sources.parts(str(models / "burn_tile.ir.xml"))
        (bare,) = sources.parts(str(descriptor))
    assert isinstance(part, TileNode)
    assert isinstance(same, TileNode)
    assert (part.request.shape, part.repeats) == (same.request.shape, same.repeats)
    assert not isinstance(bare, TileNode)
