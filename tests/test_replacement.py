"""Files are written whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from dml_tile.files.whole import replacement


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


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    write(tmp_path / "output.bin", b"1")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "output.bin").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_keeps_the_permissions_of_the_one_that_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "output.bin"
    path.write_bytes(b"12")
    path.chmod(0o640)
    write(path, b"3")
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12")
    (tmp_path / "link").symlink_to("file")
    write(tmp_path / "link", b"3")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"3"


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
def test_a_file_that_is_not_finished_changes_nothing(
    tmp_path: Path, before: bytes | None, error: BaseException
) -> None:
    path = tmp_path / "output.bin"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(type(error)):
        write(path, b"3", error)
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == ([] if before is None else [before])
