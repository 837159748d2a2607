"""Paths from strangers stay where they belong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dml_tile.errors import InputError
from dml_tile.readers.paths import AllowedFolders, write_whole


@pytest.fixture
def folders(tmp_path: Path) -> AllowedFolders:
    for name in ("model", "current", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.bin").write_bytes(b"1234")
    return AllowedFolders(tmp_path / "model", tmp_path / "current")


def test_a_source_is_looked_for_beside_the_model_then_in_the_current_folder(folders: AllowedFolders) -> None:
    assert folders.source("model.bin", "/p") == folders.model / "model.bin"
    assert folders.source("current.bin", "/p") == folders.current / "current.bin"
    assert folders.source("../current/current.bin", "/p") == folders.current / "current.bin"


@pytest.mark.parametrize("name", ["../outside/outside.bin", "link.bin", "link/outside.bin", "{outside}/outside.bin"])
def test_a_source_outside_is_refused(folders: AllowedFolders, name: str) -> None:
    outside = folders.model.parent / "outside"
    (folders.model / "link.bin").symlink_to(outside / "outside.bin")
    (folders.model / "link").symlink_to(outside)
    with pytest.raises(InputError, match=r"/p: .* leads outside the model's folder and the current one"):
        folders.source(name.format(outside=outside), "/p")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.bin", "does not exist"),
        ("folder", "is not a regular file"),
        ("pipe", "is not a regular file"),
        ("loop", "no usable path|does not exist"),
        ("a\0b", "no usable path"),
        ("x" * 5000, "no usable path|does not exist"),
    ],
)
def test_an_unusable_source_is_refused(folders: AllowedFolders, name: str, message: str) -> None:
    (folders.model / "folder").mkdir()
    os.mkfifo(folders.model / "pipe")
    (folders.model / "loop").symlink_to(folders.model / "loop")
    with pytest.raises(InputError, match=message):
        folders.source(name, "/p")


def test_a_target_is_below_the_current_folder(folders: AllowedFolders) -> None:
    assert folders.target("new/output.npy", "/p") == folders.current / "new" / "output.npy"
    assert folders.target("../model/output.npy", "/p") == folders.model / "output.npy"


@pytest.mark.parametrize("name", ["../outside/new.bin", "link/new.bin", "link.bin", "{outside}/new.bin", "..", "../x"])
def test_a_target_outside_is_refused(folders: AllowedFolders, name: str) -> None:
    outside = folders.model.parent / "outside"
    (folders.current / "link").symlink_to(outside)
    (folders.current / "link.bin").symlink_to(outside / "outside.bin")
    with pytest.raises(InputError, match="leads outside"):
        folders.target(name.format(outside=outside), "/p")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pipe", "is not a regular file"),
        ("current.bin/output.bin", "'current.bin' is no folder"),
        ("x" * 300, "no usable path"),
        ("a\0b", "no usable path"),
    ],
)
def test_an_unusable_target_is_refused_beforehand(folders: AllowedFolders, name: str, message: str) -> None:
    os.mkfifo(folders.current / "pipe")
    with pytest.raises(InputError, match=message):
        folders.target(name, "/p")


def test_what_must_not_be_written_is_refused_beforehand(
    folders: AllowedFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "current.bin")  # root may write anything
    with pytest.raises(InputError, match="is read-only"):
        folders.target("current.bin", "/p")


def test_a_folder_is_no_target(folders: AllowedFolders) -> None:
    with pytest.raises(InputError, match="is not a regular file"):
        folders.target(".", "/p")


def test_a_file_is_written_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "output.bin"
    write_whole(path, lambda file: file.write(b"12"))
    write_whole(path, lambda file: file.write(b"345"))
    (tmp_path / "plain").write_bytes(b"")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert path.read_bytes() == b"345"
    assert [entry.name for entry in path.parent.iterdir()] == ["output.bin"]
    path.chmod(0o640)
    write_whole(path, lambda file: file.write(b"6"))
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    write_whole(tmp_path / ("x" * 255), lambda file: file.write(b"1"))


def test_a_file_that_cannot_be_finished_is_not_there(tmp_path: Path) -> None:
    def fail(file: object) -> None:
        raise OSError(28, "no space")

    with pytest.raises(OSError, match="no space") as caught:
        write_whole(tmp_path / "output.bin", fail)
    assert caught.value.filename == str(tmp_path / "output.bin")
    assert not list(tmp_path.iterdir())
