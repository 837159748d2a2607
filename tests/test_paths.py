"""Paths from strangers stay where they belong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dml_tile.errors import InputError
from dml_tile.files.paths import AllowedFolders


@pytest.fixture
def folders(tmp_path: Path) -> AllowedFolders:
    for name in ("model", "current", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.bin").write_bytes(b"1234")
    return AllowedFolders(tmp_path / "model", tmp_path / "current")


def test_a_source_is_looked_for_beside_the_model_then_in_the_current_folder(folders: AllowedFolders) -> None:
    assert folders.readable("model.bin", "/p") == folders.model / "model.bin"
    assert folders.readable("current.bin", "/p") == folders.current / "current.bin"
    assert folders.readable("../current/current.bin", "/p") == folders.current / "current.bin"


@pytest.mark.parametrize("name", ["../outside/outside.bin", "link.bin", "link/outside.bin", "{outside}/outside.bin"])
def test_a_source_outside_is_refused(folders: AllowedFolders, name: str) -> None:
    outside = folders.model.parent / "outside"
    (folders.model / "link.bin").symlink_to(outside / "outside.bin")
    (folders.model / "link").symlink_to(outside)
    with pytest.raises(InputError, match=r"/p: .* leads outside the model's folder and the current one"):
        folders.readable(name.format(outside=outside), "/p")


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
        folders.readable(name, "/p")


def test_a_target_is_below_the_current_folder(folders: AllowedFolders) -> None:
    assert folders.writable("new/output.npy", "/p") == folders.current / "new" / "output.npy"
    assert folders.writable("../model/output.npy", "/p") == folders.model / "output.npy"


@pytest.mark.parametrize("name", ["../outside/new.bin", "link/new.bin", "link.bin", "{outside}/new.bin", "..", "../x"])
def test_a_target_outside_is_refused(folders: AllowedFolders, name: str) -> None:
    outside = folders.model.parent / "outside"
    (folders.current / "link").symlink_to(outside)
    (folders.current / "link.bin").symlink_to(outside / "outside.bin")
    with pytest.raises(InputError, match="leads outside"):
        folders.writable(name.format(outside=outside), "/p")


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
        folders.writable(name, "/p")


def test_what_must_not_be_written_is_refused_beforehand(
    folders: AllowedFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "current.bin")  # root may write anything
    with pytest.raises(InputError, match="is read-only"):
        folders.writable("current.bin", "/p")


def test_a_folder_is_no_target(folders: AllowedFolders) -> None:
    with pytest.raises(InputError, match="is not a regular file"):
        folders.writable(".", "/p")
