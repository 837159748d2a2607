"""`dml-tile load`: a function of a library is called in a child process, and what it describes is checked."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from dml_tile.errors import InputError
from dml_tile.readers.sandbox.library import library_descs
from dml_tile.readers.sandbox.library_child import answers
from tests.helpers.command_line import Call
from tests.helpers.compilers import COMPILERS, compiled, needs_compiler, stand_in_headers

pytestmark = needs_compiler

SOURCE: Final = """\
#include <DirectML.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const UINT sizes[] = {1, 3}, tiled[] = {2, 3}, repeats[] = {2, 1};
static const DML_BUFFER_TENSOR_DESC buffers[] = {
    {DML_TENSOR_DATA_TYPE_FLOAT16, DML_TENSOR_FLAG_NONE, 2, sizes, nullptr, 6, 0},
    {DML_TENSOR_DATA_TYPE_FLOAT16, DML_TENSOR_FLAG_NONE, 2, tiled, nullptr, 12, 0},
};
static const DML_TENSOR_DESC input = {DML_TENSOR_TYPE_BUFFER, &buffers[0]};
static const DML_TENSOR_DESC output = {DML_TENSOR_TYPE_BUFFER, &buffers[1]};
static const DML_TILE_OPERATOR_DESC tile = {&input, &output, 2, repeats};
static const DML_OPERATOR_DESC desc = {DML_OPERATOR_TILE, &tile};

extern "C" const DML_OPERATOR_DESC* describe() { puts("noise"); return &desc; }
extern "C" const DML_OPERATOR_DESC* nothing() { return nullptr; }
extern "C" const DML_OPERATOR_DESC* dies() { abort(); }
extern "C" const DML_OPERATOR_DESC* wild() { return reinterpret_cast<const DML_OPERATOR_DESC*>(8); }
extern "C" const DML_OPERATOR_DESC* hangs() { for (volatile int i = 0;; i = i + 1) { } }
extern "C" const DML_OPERATOR_DESC* leaves() { exit(0); }
extern "C" const DML_OPERATOR_DESC* hungry()
{
    volatile char* memory = static_cast<char*>(malloc(1u << 30));
    return memory == nullptr ? nullptr : &desc;
}
extern "C" UINT fill(DML_OPERATOR_DESC* descs, UINT capacity)
{
    const DML_OPERATOR_DESC other = {static_cast<DML_OPERATOR_TYPE>(67), nullptr};
    for (UINT i = 0; i < capacity && i < 3; ++i) { descs[i] = i == 1 ? other : desc; }
    return capacity < 3 ? capacity : 3;
}
extern "C" UINT overfull(DML_OPERATOR_DESC*, UINT capacity) { return capacity + 1; }
"""


@pytest.fixture(scope="module", name="library")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "source.cpp").write_text(SOURCE)
    compiled(COMPILERS[0], *stand_in_headers(), "-shared", "-fPIC", folder / "source.cpp", "-o", folder / "library.so")
    return folder / "library.so"


def test_what_a_function_returns_is_checked(call: Call, library: Path) -> None:
    result = call("load", str(library), "describe", "--target", "windows-11-24h2")
    assert f"{library}: refused at windows-11-24h2" in result.stdout
    assert "error[DML-BUFFER-TotalTensorSizeInBytes-minimum]" in result.stdout
    assert "noise" not in result.stdout
    assert result.exit_code == 1


def test_what_a_function_fills_an_array_with_is_checked(call: Call, library: Path) -> None:
    result = call("load", str(library), "fill", "--fills", "8")
    assert f"{library}#/0: refused" in result.stdout
    assert f"{library}#/1: not checked" in result.stdout
    assert "0 accepted, 2 refused, 1 not checked" in result.stdout
    assert call("load", str(library), "fill", "--fills", "1", "--fail-on", "never").exit_code == 0


def test_a_null_pointer_is_a_null_descriptor(call: Call, library: Path) -> None:
    assert "error[DML-OPERATOR-null]" in call("load", str(library), "nothing").stdout


def test_the_child_answers_with_an_operator_each_and_their_number(library: Path, tmp_path: Path) -> None:
    described, end = answers(str(library), "describe", 0)
    assert described["operator"]["Type"] == "DML_OPERATOR_TILE"
    assert end == {"count": 1}
    assert list(answers(str(library), "nothing", 0)) == [{"operator": None}, {"count": 1}]
    *filled, end = answers(str(library), "fill", 8)
    assert (len(filled), end) == (3, {"count": 3})
    (refused,) = answers(str(library), "overfull", 4)
    assert refused == {"error": "overfull returned 5; it was given room for 4 descriptors"}
    (refused,) = answers(str(library), "absent", 0)
    assert refused == {"error": "has no function 'absent'"}
    (tmp_path / "text.so").write_text("no library")
    (refused,) = answers(str(tmp_path / "text.so"), "describe", 0)
    assert refused["error"].startswith("cannot be loaded: ")


@pytest.mark.parametrize(
    ("symbol", "options", "told"),
    [
        ("dies", (), "crashed in dies (SIGABRT)"),
        ("wild", (), "crashed in wild (SIGSEGV)"),
        ("leaves", (), "crashed in leaves"),
        ("absent", (), "has no function 'absent'"),
        ("overfull", ("--fills", "4"), "overfull returned 5; it was given room for 4 descriptors"),
    ],
)
def test_a_function_that_gives_nothing_is_told(
    call: Call, library: Path, symbol: str, options: tuple[str, ...], told: str
) -> None:
    result = call("load", str(library), symbol, *options)
    assert told in result.stderr
    assert result.exit_code == 2


def test_what_is_no_library_is_told(call: Call, tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    assert "cannot be loaded" in call("load", "text.so", "describe").stderr
    assert "is no file" in call("load", "missing.so", "describe").stderr


def test_a_function_has_only_so_long(library: Path) -> None:
    with pytest.raises(InputError, match=r"took longer than 0\.5 s"):
        library_descs(library, "hangs", seconds=0.5)


def test_a_function_has_only_so_much_memory(library: Path) -> None:
    (part,) = library_descs(library, "hungry", memory=2**29)
    assert part.desc is None
    (part,) = library_descs(library, "hungry")
    assert part.desc is not None


def test_check_runs_no_library(call: Call, library: Path) -> None:
    assert "refused" not in call("check", str(library)).stdout
