"""The stand-in is generated from headers; it takes a compiler to build it."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from tests.recorder.stand_in import LIBRARIES, BuildError, build, methods, why_not_buildable


def test_an_interface_that_no_header_has_is_named() -> None:
    with pytest.raises(BuildError, match="no interface IOther"):
        methods("", "IOther")


def test_missing_headers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.recorder.stand_in.INCLUDES", tmp_path)
    with pytest.raises(BuildError, match="directx-headers-dev"):
        build(tmp_path / "built")
    assert not (tmp_path / "built").exists()


@pytest.mark.skipif(why_not_buildable() is not None, reason="no headers of Direct3D 12")
class TestBuilding:
    def test_a_missing_compiler_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CXX", "no-such-compiler")
        with pytest.raises(BuildError, match="no-such-compiler is not installed"):
            build(tmp_path)

    @pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler")
    def test_what_is_built_loads_and_is_not_built_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        build(tmp_path)
        monkeypatch.setenv("CXX", "no-such-compiler")
        build(tmp_path)
        for name in LIBRARIES:
            ctypes.CDLL(str(tmp_path / name))
