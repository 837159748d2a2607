r"""Paths as Windows has them: drives, backslashes, and the prefix ``\\?\``."""

from __future__ import annotations

import ntpath
import os
from pathlib import PureWindowsPath
from types import SimpleNamespace

import pytest

from dml_tile.checks import files as files_module
from dml_tile.checks.files import Exclusion
from dml_tile.files import links, repository
from dml_tile.files.repository import path_within
from dml_tile.reports import annotations as annotations_module

HERE = r"C:\Users\me\project"
JUNCTIONS = {r"c:\users\me\project\build": r"\\?\D:\scratch", r"d:\mounted": r"\\?\C:\Users\me\reports"}


def target_of(path: str) -> str:
    return JUNCTIONS.get(ntpath.join(HERE, path).lower(), "")


@pytest.fixture(autouse=True)
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    system = SimpleNamespace(
        name="nt", path=ntpath, getcwd=lambda: HERE, curdir=".", pardir="..", environ={}, strerror=os.strerror
    )
    junction = 0xA0000003
    system.lstat = lambda path: SimpleNamespace(st_mode=0, st_reparse_tag=junction * bool(target_of(path)))
    system.readlink = target_of
    monkeypatch.setattr(ntpath, "lexists", lambda path: path == rf"{HERE}\.git")
    monkeypatch.setattr(ntpath, "isdir", lambda path: True)
    for module in (files_module, links, repository, annotations_module):
        monkeypatch.setattr(module, "os", system, raising=False)
        monkeypatch.setattr(module, "PurePath", PureWindowsPath)
    for name in ("abspath", "realpath"):
        monkeypatch.setattr(ntpath, name, lambda path: ntpath.normpath(ntpath.join(HERE, path)))


@pytest.mark.parametrize(
    ("source", "shown", "uri"),
    [
        (r"models\a.onnx", "models/a.onnx", "models/a.onnx"),
        (r"models/a b.onnx", "models/a b.onnx", "models/a%20b.onnx"),
        (rf"{HERE}\models\a.onnx", "models/a.onnx", "models/a.onnx"),
        (r"c:\users\ME\project\a.onnx", "a.onnx", "a.onnx"),
        (r"..\other\a.onnx", "C:/Users/me/other/a.onnx", "file:///C:/Users/me/other/a.onnx"),
        (r"D:\zoo\a.onnx", "D:/zoo/a.onnx", "file:///D:/zoo/a.onnx"),
        (rf"\\?\{HERE}\a.onnx", "a.onnx", "a.onnx"),
        (r"\\?\D:\zoo\a.onnx", "D:/zoo/a.onnx", "file:///D:/zoo/a.onnx"),
        (r"\\?\UNC\server\zoo\a.onnx", "//server/zoo/a.onnx", "file://server/zoo/a.onnx"),
        (r"\\server\zoo\a.onnx", "//server/zoo/a.onnx", "file://server/zoo/a.onnx"),
    ],
)
def test_reports_name_files_by_relative_paths_or_uris(source: str, shown: str, uri: str) -> None:
    path = path_within(HERE, source)
    assert path == shown
    assert annotations_module._artifact(path, source)["uri"] == uri


@pytest.mark.parametrize(
    ("file", "pattern", "is_left_out"),
    [
        (r"build\a.onnx", "build", True),
        (r"models\old\a.onnx", "models/old", True),
        (r"models\old\a.onnx", "models/old/", True),
        (r"models\new\a.onnx", "models/old", False),
        (r"D:\zoo\build\a.onnx", "build", True),
        (r"D:\zoo\a.onnx", "build", False),
    ],
)
def test_files_are_left_out_on_any_drive(file: str, pattern: str, is_left_out: bool) -> None:
    assert Exclusion((pattern,), ".").leaves_out(file) is is_left_out


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        *((name, False) for name in (r"\\?\C:\zoo\a.onnx", r"C:\zoo\a.onnx", "a.onnx")),
        *((name, True) for name in (r"\\?\C:\zoo\*.onnx", r"C:\zoo\a?.onnx")),
    ],
)
def test_a_prefix_makes_no_pattern(name: str, is_one: bool) -> None:
    assert files_module.is_pattern(name) is is_one


@pytest.mark.parametrize("name", [r"build\r.json", "BUILD/r.json", r"..\project\build\r.json", r"x\..\build\r.json"])
def test_a_junction_in_a_repository_is_a_link(name: str) -> None:
    with pytest.raises(OSError, match=r"(?i)build is a link to .*: name that folder"):
        links.unlinked(name)
    assert f"is a link out of {HERE}, to D:\\scratch\\r.json: name that" in links.why_not_followed(name)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        (r"D:\mounted\r.json", r"C:\Users\me\reports\r.json"),
        (r"build\..\r.json", rf"{HERE}\r.json"),  # Windows takes the part before away
        (r"\\server\share\r.json", r"\\server\share\r.json"),
    ],
)
def test_a_junction_elsewhere_is_followed(name: str, place: str) -> None:
    assert (links.unlinked(name), links.why_not_followed(name)) == (place, "")
