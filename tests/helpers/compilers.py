"""C++ compilers of this machine, and the folders of the headers for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from dml_tile.descriptors.operator import KINDS
from dml_tile.directml.operators import Field, enumerations, operators
from dml_tile.emit.cpp import get_include

CPP_TESTS: Final = Path(__file__).parent.parent / "cpp"
STAND_IN: Final = Path(__file__).parent.parent / "data" / "DirectML_stand_in.h"
COMPILERS: Final = tuple(name for name in ("g++", "clang++") if shutil.which(name))
STANDARDS: Final = ("c++11", "c++14", "c++17", "c++20", "c++2b")
WARNINGS: Final = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
HEADER_WARNINGS: Final = (*WARNINGS, "-Wconversion", "-Wshadow")

REAL_HEADERS: Final = os.environ.get("DML_TILE_TESTS_DIRECTX_HEADERS", "")
"""The folder `include` of microsoft/DirectX-Headers; where it is not given, a stand-in takes DirectML.h's place."""

DIRECTMLX: Final = os.environ.get("DML_TILE_TESTS_DIRECTMLX", "")
"""The folder `Libraries` of microsoft/DirectML, which has DirectMLX.h; tests with it take the real headers too."""

needs_compiler: Final = pytest.mark.skipif(not COMPILERS, reason="needs g++ or clang++")
needs_real_headers: Final = pytest.mark.skipif(not REAL_HEADERS, reason="needs DML_TILE_TESTS_DIRECTX_HEADERS")


needs_directmlx: Final = pytest.mark.skipif(
    not (REAL_HEADERS and DIRECTMLX and "clang++" in COMPILERS),
    reason="needs DML_TILE_TESTS_DIRECTX_HEADERS, DML_TILE_TESTS_DIRECTMLX and clang++",
)


def stand_in_headers() -> list[str]:
    """Return the options for the capture header and the stand-in for DirectML.h."""
    return [f"-I{CPP_TESTS}", f"-I{get_include()}"]


def write_operators_header(folder: Path) -> None:
    """Write a DirectML.h of all operators, by the package's table, behind the stand-in for Tile's."""
    lines = [f'#include "{STAND_IN}"', "typedef int32_t INT, BOOL;", "typedef float FLOAT;"]
    lines += ["struct DML_SCALE_BIAS { FLOAT Scale, Bias; };", "struct DML_SIZE_2D { UINT Width, Height; };"]
    lines += ["union DML_SCALAR_UNION { uint8_t Bytes[8]; UINT64 UInt64; };"]
    for enumeration in enumerations().values():
        if enumeration.name != "TENSOR_DATA_TYPE":
            values = ", ".join(f"{enumeration.prefix}{name}" for name in enumeration.names)
            lines.append(f"enum DML_{enumeration.name} {{ {values} }};")
    for operator in operators().values():
        if operator.name != "TILE":
            lines.append(f"#define {operator.c_name} static_cast<DML_OPERATOR_TYPE>({operator.value})")
            fields = " ".join(f"{_c_type(field)} {field.name};" for field in operator.fields)
            lines.append(f"struct {operator.struct} {{ {fields} }};")
    (folder / "DirectML.h").write_text("\n".join(lines) + "\n")


def _c_type(field: Field) -> str:
    c_type = KINDS[field.kind].c_type if field.kind in KINDS else f"DML_{field.enumeration}"
    return f"const {c_type}" if c_type.endswith("*") else c_type


def real_headers() -> list[str]:
    """Return the options for the capture header and the real DirectML.h, on Linux."""
    include = Path(REAL_HEADERS)
    folders = (include, include / "directx", include / "wsl" / "stubs")
    return [
        *(word for folder in folders for word in ("-isystem", str(folder))),
        *("-include", "wsl/winadapter.h", f"-I{get_include()}"),
    ]


def link_directx_headers(folder: Path) -> None:
    """Make a folder ``DirectX-Headers``, as a clone of it would be, with the real headers or the stand-in."""
    include = folder / "DirectX-Headers" / "include"
    include.parent.mkdir()
    if REAL_HEADERS:
        include.symlink_to(REAL_HEADERS)
        return
    for name, text in (("wsl/winadapter.h", ""), ("directx/DirectML.h", f'#include "{CPP_TESTS / "DirectML.h"}"\n')):
        (include / name).parent.mkdir(parents=True)
        (include / name).write_text(text)


EACH_HEADERS: Final = [
    pytest.param(stand_in_headers(), id="stand-in"),
    pytest.param(real_headers(), id="real", marks=needs_real_headers),
]
"""The options for the stand-in, and for the real headers where they are."""


def compiled(compiler: str, *options: str | Path) -> None:
    """Run a compiler, which must not complain."""
    ran = subprocess.run([compiler, *options], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert not ran.stderr


def require_sanitizers(compiler: str, sanitizers: str) -> None:
    """Skip the test where a compiler's sanitizers are not installed."""
    if complaint := _complaint(compiler, sanitizers):
        pytest.skip(f"{compiler} lacks {sanitizers}: {complaint}")


@cache
def _complaint(compiler: str, sanitizers: str) -> str:
    with TemporaryDirectory() as folder:
        command = [compiler, *sanitizers.split(), "-x", "c++", "-", "-o", f"{folder}/empty"]
        built = subprocess.run(command, input="int main() {}\n", capture_output=True, text=True, check=False)
    return built.stderr[-200:] if built.returncode else ""
