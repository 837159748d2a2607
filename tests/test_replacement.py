"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
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

    def chmod(file: Path, mode: int) -> None:
        first.append(file.stat().st_mode)
        os.chmod(file, mode)  # noqa: PTH101  # the path's method is replaced

    monkeypatch.setattr(Path, "chmod", chmod)
    write(path, b"3")
    assert stat.S_IMODE(path.stat().st_mode) == after
    assert [mode & 0o077 for mode in first] == [0], "nobody else may open it before"


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
