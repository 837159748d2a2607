r"""Paths as Windows has them: drives, backslashes, and the prefix ``\\?\``."""

from __future__ import annotations

import ntpath
from pathlib import PureWindowsPath
from types import SimpleNamespace

import pytest

from dml_tile.checks import files as files_module
from dml_tile.checks.files import Exclusion
from dml_tile.files import repository
from dml_tile.files.repository import path_within
from dml_tile.reports import annotations as annotations_module

HERE = r"C:\Users\me\project"


@pytest.fixture(autouse=True)
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    system = SimpleNamespace(name="nt", path=ntpath, getcwd=lambda: HERE)
    for module in (files_module, repository, annotations_module):
        monkeypatch.setattr(module, "os", system, raising=False)
        monkeypatch.setattr(module, "PurePath", PureWindowsPath)
    monkeypatch.setattr(ntpath, "abspath", lambda path: ntpath.normpath(ntpath.join(HERE, path)))


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
