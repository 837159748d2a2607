"""Paths from strangers stay where they belong."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from dml_tile.errors import InputError
from dml_tile.files.paths import AllowedFolders


@pytest.fixture
def folders(tmp_path: Path) -> AllowedFolders:
    for name in ("model", "current", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.bin").write_bytes(b"1234")
    return AllowedFolders((tmp_path / "model", tmp_path / "current"), tmp_path / "current")


def test_a_source_is_looked_for_beside_the_model_then_in_the_current_folder(folders: AllowedFolders) -> None:
    assert folders.readable("model.bin", "/p") == folders.sources[0] / "model.bin"
    assert folders.readable("current.bin", "/p") == folders.outputs / "current.bin"
    assert folders.readable("../current/current.bin", "/p") == folders.outputs / "current.bin"


@pytest.mark.parametrize("name", ["../outside/outside.bin", "link.bin", "link/outside.bin", "{outside}/outside.bin"])
def test_a_source_outside_is_refused(folders: AllowedFolders, name: str) -> None:
    outside = folders.sources[0].parent / "outside"
    (folders.sources[0] / "link.bin").symlink_to(outside / "outside.bin")
    (folders.sources[0] / "link").symlink_to(outside)
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
    (folders.sources[0] / "folder").mkdir()
    os.mkfifo(folders.sources[0] / "pipe")
    (folders.sources[0] / "loop").symlink_to(folders.sources[0] / "loop")
    with pytest.raises(InputError, match=message):
        folders.readable(name, "/p")


def test_a_target_is_below_the_current_folder(folders: AllowedFolders) -> None:
    assert folders.writable("new/output.npy", "/p") == folders.outputs / "new" / "output.npy"
    assert folders.writable("a/../output.npy", "/p") == folders.outputs / "output.npy"


@pytest.mark.parametrize(
    "name",
    [
        "../outside/new.bin",
        "link/new.bin",
        "link.bin",
        "{outside}/new.bin",
        "..",
        "../x",
        "../model/new.bin",
        "link/..",
    ],
)
def test_a_target_outside_is_refused(folders: AllowedFolders, name: str) -> None:
    outside = folders.sources[0].parent / "outside"
    (folders.outputs / "link").symlink_to(outside)
    (folders.outputs / "link.bin").symlink_to(outside / "outside.bin")
    with pytest.raises(InputError, match=r"leads outside the folder for outputs|is not a regular file"):
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
    os.mkfifo(folders.outputs / "pipe")
    with pytest.raises(InputError, match=message):
        folders.writable(name, "/p")


def test_what_must_not_be_written_is_refused_beforehand(
    folders: AllowedFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "current.bin")  # root may write anything
    with pytest.raises(InputError, match="is read-only"):
        replace(folders, overwrite=True).writable("current.bin", "/p")


def test_a_folder_is_no_target(folders: AllowedFolders) -> None:
    with pytest.raises(InputError, match="is not a regular file"):
        folders.writable(".", "/p")


HIDDEN = [".git/config", ".x.bin", "sub/.x.bin", ".github/workflows/x.yml", "sub/../.x.bin", "\u200c.git/config"]


@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_hidden_is_neither_read_nor_written_unless_asked_for(folders: AllowedFolders, name: str) -> None:
    path = folders.outputs / os.path.normpath(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    for refused in (folders.writable, folders.readable):
        with pytest.raises(InputError, match="is hidden: a part of it begins with a dot"):
            refused(name, "/p")
    shown = replace(folders, allow_hidden=True)
    assert shown.writable(name, "/p") == path
    path.write_bytes(b"1")
    assert shown.readable(name, "/p") == path


def test_the_folders_themselves_may_be_hidden(tmp_path: Path) -> None:
    folder = tmp_path / ".cache" / "model"
    folder.mkdir(parents=True)
    (folder / "a.bin").write_bytes(b"1")
    folders = AllowedFolders((folder,), folder)
    assert folders.readable("a.bin", "/p") == folder / "a.bin"
    assert folders.writable("b..bin", "/p") == folder / "b..bin"


@pytest.mark.parametrize("name", ["link.bin", "link/file.bin", "loose.bin"])
def test_a_link_is_not_followed_within_the_folders_either(folders: AllowedFolders, name: str) -> None:
    (folders.outputs / "sub").mkdir()
    (folders.outputs / "sub" / "file.bin").write_bytes(b"1")
    (folders.outputs / "link").symlink_to("sub")
    (folders.outputs / "link.bin").symlink_to("sub/file.bin")
    (folders.outputs / "loose.bin").symlink_to("sub/new.bin")
    for refused in (folders.writable, folders.readable):
        with pytest.raises(InputError, match="leads through a link, which is not followed"):
            refused(name, "/p")
    if name != "loose.bin":
        followed = replace(folders, follow_links=True)
        assert followed.readable(name, "/p") == folders.outputs / "sub" / "file.bin"


def test_the_folder_itself_may_be_reached_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert AllowedFolders((), tmp_path / "link").writable("x.bin", "/p") == tmp_path / "real" / "x.bin"


def test_a_file_that_was_there_is_replaced_only_if_asked_for(folders: AllowedFolders) -> None:
    with pytest.raises(InputError, match=r"/p: 'current.bin' exists; --overwrite replaces it"):
        folders.writable("current.bin", "/p")
    overwriting = replace(folders, overwrite=True)
    assert overwriting.writable("current.bin", "/p") == folders.outputs / "current.bin"


@pytest.mark.parametrize("mode", [0o700, 0o610, 0o601])
def test_an_executable_file_is_never_replaced(folders: AllowedFolders, mode: int) -> None:
    (folders.outputs / "current.bin").chmod(mode)
    with pytest.raises(InputError, match="is executable; no such file is ever written"):
        replace(folders, overwrite=True).writable("current.bin", "/p")


@pytest.mark.parametrize("name", ["current.bin", "same.bin"])
def test_what_was_read_is_never_replaced_whatever_its_name(folders: AllowedFolders, name: str) -> None:
    (folders.outputs / "same.bin").hardlink_to(folders.outputs / "current.bin")
    overwriting = replace(folders, overwrite=True)
    overwriting.readable("current.bin", "/p")
    with pytest.raises(InputError, match="is read by this run, which never writes to what it reads"):
        overwriting.writable(name, "/p")
