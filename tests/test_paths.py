"""Paths from strangers stay where they belong, and files are written whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from dml_tile.errors import InputError
from dml_tile.files.paths import AllowedFolders
from dml_tile.files.whole import replacement


@pytest.fixture
def folders(tmp_path: Path) -> AllowedFolders:
    """A model's folder and the current one, with links from both to a third."""
    for name in ("model", "current", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.bin").write_bytes(b"1234")
    for name in ("model", "current"):
        (tmp_path / name / "link").symlink_to(tmp_path / "outside")
        (tmp_path / name / "link.bin").symlink_to(tmp_path / "outside" / "outside.bin")
        (tmp_path / name / "loop").symlink_to(tmp_path / name / "loop")
        (tmp_path / name / "folder").mkdir()
    return AllowedFolders((tmp_path / "model", tmp_path / "current"), tmp_path / "current")


def test_a_source_is_looked_for_beside_the_model_then_in_the_current_folder(folders: AllowedFolders) -> None:
    assert folders.readable("model.bin", "/p") == folders.sources[0] / "model.bin"
    assert folders.readable("current.bin", "/p") == folders.outputs / "current.bin"
    assert folders.readable("../current/current.bin", "/p") == folders.outputs / "current.bin"


@pytest.mark.posix
@pytest.mark.parametrize(
    ("name", "message"),
    [
        *((name, "leads outside the model's folder and the current one")
          for name in ("../outside/outside.bin", "link.bin", "link/outside.bin", "{outside}/outside.bin")),
        ("missing.bin", "does not exist"),
        ("folder", "is not a regular file"),
        ("pipe", "is not a regular file"),
        ("loop", "no usable path|does not exist"),
        ("a\0b", "no usable path"),
        ("x" * 5000, "no usable path|does not exist"),
        ("a/" * 2000 + "x", "has 2001 parts; a path may have 256"),
    ],
)  # fmt: skip
def test_an_unusable_source_is_refused(folders: AllowedFolders, name: str, message: str) -> None:
    os.mkfifo(folders.sources[0] / "pipe")
    with pytest.raises(InputError, match=f"^/p: .* ({message})"):
        folders.readable(name.format(outside=folders.sources[0].parent / "outside"), "/p")


def test_a_target_is_below_the_current_folder(folders: AllowedFolders) -> None:
    assert folders.writable("new/output.npy", "/p") == folders.outputs / "new" / "output.npy"
    assert folders.writable("a/../output.npy", "/p") == folders.outputs / "output.npy"


@pytest.mark.posix
@pytest.mark.parametrize(
    ("name", "message"),
    [
        *((name, "leads outside the folder for outputs")
          for name in ("../outside/new.bin", "link/new.bin", "link.bin", "{outside}/new.bin", "..", "../x",
                       "../model/new.bin")),
        ("link/..", "leads outside the folder for outputs|is not a regular file"),
        (".", "is not a regular file"),
        ("folder", "is not a regular file"),
        ("pipe", "is not a regular file"),
        ("current.bin/output.bin", "'current.bin' is no folder"),
        ("x" * 300, "no usable path"),
        ("a\0b", "no usable path"),
        ("current.bin", "'current.bin' exists; --overwrite replaces it"),
        ("a/" * 2000 + "x", "has 2001 parts; a path may have 256"),
        ("../current/" + "a/" * 100_000, "has 100002 parts; a path may have 256"),
    ],
)  # fmt: skip
def test_an_unusable_target_is_refused_beforehand(folders: AllowedFolders, name: str, message: str) -> None:
    os.mkfifo(folders.outputs / "pipe")
    with pytest.raises(InputError, match=f"^/p: .*({message})"):
        folders.writable(name.format(outside=folders.sources[0].parent / "outside"), "/p")


HIDDEN = [".gitx/config", ".x.bin", "sub/.x.bin", ".github/workflows/x.yml", "sub/../.x.bin", "\u200c.x.bin"]
GITS = [".git/config", "\u200c.git/config", "sub/.GIT/x", "git~1/x", ".git. /x", ".git::$INDEX_ALLOCATION/x", ".git"]


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


@pytest.mark.parametrize("name", GITS)
def test_nothing_is_written_to_what_a_file_system_takes_for_git(folders: AllowedFolders, name: str) -> None:
    with pytest.raises(InputError, match=r"leads into \.git, where nothing is written"):
        replace(folders, allow_hidden=True).writable(name, "/p")
    with pytest.raises(OSError, match=r"leads into \.git, where nothing is written"):
        write(folders.outputs / name, b"1")


def test_external_data_is_not_read_from_git_but_from_annex(folders: AllowedFolders) -> None:
    model = folders.sources[0]
    readers = AllowedFolders((model,), allow_hidden=True, follow_links=True)
    for name in (".git/config", ".git/annex/objects/a/b"):
        (model / name).parent.mkdir(parents=True, exist_ok=True)
        (model / name).write_bytes(b"1")
    (model / "weights").symlink_to(".git/config")
    (model / "annexed").symlink_to(".git/annex/objects/a/b")
    for name in ("weights", ".git/config"):
        with pytest.raises(InputError, match=r"leads into \.git$"):
            readers.readable(name, "/p")
    assert readers.readable("annexed", "/p").name == "b"


def test_the_folders_themselves_may_be_hidden_or_reached_by_a_link(tmp_path: Path) -> None:
    folder = tmp_path / ".cache" / "model"
    folder.mkdir(parents=True)
    (folder / "a.bin").write_bytes(b"1")
    (tmp_path / "link").symlink_to(folder)
    for path in (folder, tmp_path / "link"):
        folders = AllowedFolders((path,), path)
        assert folders.readable("a.bin", "/p") == folder / "a.bin"
        assert folders.writable("b..bin", "/p") == folder / "b..bin"


@pytest.mark.parametrize("name", ["inner.bin", "inner/file.bin", "loose.bin"])
def test_a_link_is_not_followed_within_the_folders_either(folders: AllowedFolders, name: str) -> None:
    (folders.outputs / "folder" / "file.bin").write_bytes(b"1")
    for link, path in {"inner": "folder", "inner.bin": "folder/file.bin", "loose.bin": "folder/new.bin"}.items():
        (folders.outputs / link).symlink_to(path)
    for refused in (folders.writable, folders.readable):
        with pytest.raises(InputError, match="leads through a link, which is not followed"):
            refused(name, "/p")
    if name != "loose.bin":
        followed = replace(folders, follow_links=True)
        assert followed.readable(name, "/p") == folders.outputs / "folder" / "file.bin"


@pytest.mark.parametrize(
    ("name", "mode", "message"),
    [
        ("current.bin", 0o600, ""),
        *(("current.bin", mode, "is executable; no such file is ever written") for mode in (0o700, 0o610, 0o601)),
        ("locked.bin", 0o600, "is read-only"),
        *(
            (name, 0o600, "is read by this run, which never writes to what it reads")
            for name in ("read.bin", "same.bin")
        ),
    ],
)
def test_a_file_that_was_there_is_replaced_if_asked_for_with_exceptions(
    folders: AllowedFolders, monkeypatch: pytest.MonkeyPatch, name: str, mode: int, message: str
) -> None:
    for file in ("locked.bin", "read.bin"):
        (folders.outputs / file).write_bytes(b"1")
    (folders.outputs / "same.bin").hardlink_to(folders.outputs / "read.bin")
    (folders.outputs / name).chmod(mode)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked.bin")  # root may write anything
    overwriting = replace(folders, overwrite=True)
    overwriting.readable("read.bin", "/p")
    with pytest.raises(InputError, match=message) if message else nullcontext():
        assert overwriting.writable(name, "/p") == folders.outputs / name


def write(path: Path, contents: bytes, error: BaseException | None = None) -> None:
    with replacement(path) as file:
        file.write(contents)
        if error:
            raise error


def test_a_file_is_replaced_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "output.bin"
    write(path, b"12")
    with replacement(path) as file:
        file.write(b"345")
        assert path.read_bytes() == b"12"
    assert path.read_bytes() == b"345"
    assert [entry.name for entry in tmp_path.iterdir()] == ["output.bin"]


@pytest.fixture(params=[0, 0o022, 0o077, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path, umask: int) -> None:
    write(tmp_path / "output.bin", b"1")
    assert stat.S_IMODE((tmp_path / "output.bin").stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize(("before", "after"), [(0o600, 0o600), (0o640, 0o640), (0o755, 0o755), (0o6755, 0o755)])
def test_a_file_keeps_the_permissions_of_the_one_that_it_replaces(
    tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch, before: int, after: int
) -> None:
    path = tmp_path / "output.bin"
    path.write_bytes(b"12")
    path.chmod(before)
    first: list[int] = []

    def chmod(file: str, mode: int, dir_fd: int | None = None) -> None:
        first.append(os.stat(file, dir_fd=dir_fd).st_mode)  # of an open folder
        changes(file, mode, dir_fd=dir_fd)

    changes = os.chmod
    monkeypatch.setattr(os, "chmod", chmod)
    write(path, b"3")
    assert stat.S_IMODE(path.stat().st_mode) == after
    assert [mode & 0o077 for mode in first] == [0], "nobody else may open it before"


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12")
    (tmp_path / "link").symlink_to("file")
    write(tmp_path / "link", b"3")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"3"


@pytest.mark.posix
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write(tmp_path / "pipe", b"12")
    reader.join()
    assert received == [b"12"]


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    write(tmp_path / ("x" * 255), b"1")
    assert (tmp_path / ("x" * 255)).read_bytes() == b"1"


@pytest.mark.parametrize("error", [OSError(28, "no space"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("before", [None, b"12"])
def test_an_unfinished_file_changes_nothing(tmp_path: Path, before: bytes | None, error: BaseException) -> None:
    path = tmp_path / "output.bin"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(type(error)):
        write(path, b"3", error)
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == ([] if before is None else [before])
