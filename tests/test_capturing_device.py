"""dml_tile/capturing_device.h: compiled, run before a stand-in device, and under the real DirectMLX.h."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.helpers.command_line import Call
from tests.helpers.compilers import (
    COMPILERS,
    CPP_TESTS,
    DIRECTMLX,
    HEADER_WARNINGS,
    compiled,
    needs_compiler,
    needs_directmlx,
    needs_real_headers,
    real_headers,
    require_sanitizers,
    stand_in_headers,
)

pytestmark = pytest.mark.long

SANITIZERS: Final = ("", "-fsanitize=address,undefined", "-fsanitize=thread")
UNDER_REAL_HEADERS: Final = pytest.param(True, marks=needs_real_headers, id="real headers")


@needs_compiler
@pytest.mark.parametrize("is_real", [pytest.param(False, id="stand-in"), UNDER_REAL_HEADERS])
@pytest.mark.parametrize("standard", ["c++11", "c++17"])
@pytest.mark.parametrize("sanitizers", SANITIZERS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_it_is_the_device_but_for_the_lines_it_writes(
    tmp_path: Path, compiler: str, sanitizers: str, standard: str, is_real: bool
) -> None:
    require_sanitizers(compiler, sanitizers, tmp_path)
    headers = real_headers() if is_real else stand_in_headers()
    sources = [CPP_TESTS / name for name in ("capturing_device.cpp", "uses.cpp")]
    program, folder = tmp_path / "program", tmp_path / "captured"
    options = [f"-std={standard}", *sanitizers.split(), "-g", *HEADER_WARNINGS, *headers, "-pthread"]
    compiled(compiler, *options, *sources, "-o", program)
    folder.mkdir()
    subprocess.run([program, folder], check=True, timeout=300, env={"LC_ALL": "C"})
    written = {path.name: path.read_text().splitlines() for path in folder.iterdir()}
    assert written.keys() == {"inner.jsonl", "\u00fc\u2603\U0001f9e9.jsonl", "threads.jsonl"}
    assert written.pop("threads.jsonl") == written["inner.jsonl"][:1] * 400
    inner, outer = written.values()
    assert inner == outer
    assert len(inner) == 3


@needs_compiler
def test_check_judges_what_it_wrote(tmp_path: Path, check: Call) -> None:
    compiled(COMPILERS[0], *stand_in_headers(), "-pthread", CPP_TESTS / "capturing_device.cpp", "-o", tmp_path / "run")
    (tmp_path / "captured").mkdir()
    subprocess.run([tmp_path / "run", tmp_path / "captured"], check=True, timeout=300)
    printed = check(str(tmp_path / "captured" / "inner.jsonl"), "--target", "6_2")
    assert "3 tiles: 1 refused, 1 not checked, 1 accepted" in printed.stdout
    assert "DML-CAPTURE" not in printed.stdout, "the HRESULTs are those of the emulator"


@needs_directmlx
@pytest.mark.parametrize("sanitizers", SANITIZERS)
def test_operators_that_directmlx_creates_are_captured(tmp_path: Path, check: Call, sanitizers: str) -> None:
    require_sanitizers("clang++", sanitizers, tmp_path)
    program, file = tmp_path / "program", tmp_path / "tiles.jsonl"
    options = ["-std=c++17", *sanitizers.split(), "-g", *HEADER_WARNINGS, *real_headers(), "-isystem", DIRECTMLX]
    compiled("clang++", *options, CPP_TESTS / "directmlx.cpp", "-o", program)
    subprocess.run([program, file], check=True, timeout=300)
    printed = check(str(file), "--target", "windows-10-22h2").stdout
    assert "refused at windows-10-22h2 (2_0); lowest level 4_1" in printed
    assert "INT64 {1,1,2,3} x {1,1,2,1} -> {1,1,4,3}" in printed
    assert "INT64 {1,1,4,3} x {1,1,1,3} -> {1,1,4,9}" in printed
    assert "DML_OPERATOR_ELEMENT_WISE_IDENTITY is not a tile" in printed
    assert "3 tiles: 2 refused, 1 not checked" in printed
    assert "3 tiles: 1 not checked, 2 accepted" in check(str(file), "--target", "6_2").stdout
