"""The C++ programs of `lower --format cpp`: they compile, and call DirectML in the order that it wants."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.helpers.command_line import Call
from tests.helpers.compilers import (
    COMPILERS,
    CPP_TESTS,
    REAL_HEADERS,
    STANDARDS,
    WARNINGS,
    compiled,
    needs_compiler,
    real_headers,
)

pytestmark = needs_compiler

MAIN: Final = """
int main(int count, char**)
{
    ID3D12Device d3d12;
    IDMLDevice dml;
    dml.refuses = count > 1;
    ID3D12GraphicsCommandList list;
    ID3D12Resource input = {"input", INPUT}, output = {"output", OUTPUT};
    TileChain chain;
    if (FAILED(create_tile(chain, &d3d12, &dml))) { return 3; }
    return FAILED(chain.initialize(&list, &input)) || FAILED(chain.record(&list, &input, &output)) ? 1 : 0;
}
"""


def tile(data_type: str, sizes: list[int], repeats: list[int], **fields: Any) -> dict[str, Any]:
    products = [size * repeat for size, repeat in zip(sizes, repeats, strict=True)]
    source = {"DataType": data_type, "Sizes": sizes} | fields
    return {"InputTensor": source, "OutputTensor": {"DataType": data_type, "Sizes": products}, "Repeats": repeats}


ONE_STEP: Final = tile("INT64", [2, 3, 4], [1, 3, 2])
TWO_STEPS: Final = tile("FLOAT32", [2, 2, 2, 2, 2], [2, 2, 2, 2, 2])
OWNED: Final = tile("FLOAT32", [2, 3], [2, 2], Flags="OWNED_BY_DML")


def program_of(call: Call, desc: Any, target: str) -> str:
    result = call("lower", "-", "--target", target, "--format", "cpp", stdin=json.dumps(desc))
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_program_compiles_without_a_warning(call: Call, tmp_path: Path, compiler: str, standard: str) -> None:
    (tmp_path / "program.cpp").write_text(program_of(call, [ONE_STEP, TWO_STEPS, OWNED], "windows-10-2004"))
    headers = f"-I{CPP_TESTS / 'direct3d'}"
    compiled(compiler, f"-std={standard}", *WARNINGS, headers, "-fsyntax-only", tmp_path / "program.cpp")


@pytest.mark.skipif(not REAL_HEADERS, reason="needs DML_TILE_TESTS_DIRECTX_HEADERS")
@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_program_compiles_with_the_real_header(call: Call, tmp_path: Path, compiler: str, standard: str) -> None:
    (tmp_path / "program.cpp").write_text(program_of(call, [ONE_STEP, TWO_STEPS, OWNED], "windows-10-2004"))
    compiled(compiler, f"-std={standard}", *WARNINGS, *real_headers(), "-fsyntax-only", tmp_path / "program.cpp")


def calls_of(call: Call, folder: Path, desc: Any, target: str, *, refused: bool = False) -> list[str]:
    """What a program does, call by call."""
    sizes = {"INPUT": "24", "OUTPUT": "96"}
    main = MAIN
    for name, size in sizes.items():
        main = main.replace(name, size)
    (folder / "program.cpp").write_text(program_of(call, desc, target) + main)
    headers = f"-I{CPP_TESTS / 'direct3d'}"
    compiled(COMPILERS[0], "-std=c++11", *WARNINGS, headers, folder / "program.cpp", "-o", folder / "program")
    ran = subprocess.run(
        [folder / "program", *(["refused"] if refused else [])], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == (3 if refused else 0)
    return ran.stdout.splitlines()


INITIALIZED: Final = ["dispatch initializer", "barrier"]
DISPATCHED: Final = ["dispatch tile", "barrier"]


def test_one_step_reads_the_input_and_writes_the_output(call: Call, tmp_path: Path) -> None:
    assert calls_of(call, tmp_path, ONE_STEP, "windows-10-2004") == [
        "memory of 16 bytes",
        "heap of 5",
        "table of 3 from 0 for the initializer",
        "  inputs nothing",
        "  outputs nothing",
        "  temporary memory[16]",
        *INITIALIZED,
        "table of 2 from 3 for the tile",
        "  inputs input[24]",
        "  outputs output[96]",
        *DISPATCHED,
    ]


def test_steps_hand_on_what_they_made_in_scratch_memory(call: Call, tmp_path: Path) -> None:
    calls = calls_of(call, tmp_path, TWO_STEPS, "windows-10-2004")
    scratch = int(calls[0].split()[2])
    bound = [line.strip() for line in calls if line.startswith("  ")][3:]
    assert bound == [
        "inputs input[24]",
        f"outputs memory[{scratch}]",
        f"inputs memory[{scratch}]",
        "outputs output[96]",
    ]
    assert calls.count("dispatch tile") == 2


def test_an_owned_input_is_bound_when_it_is_initialised(call: Call, tmp_path: Path) -> None:
    bound = [line.strip() for line in calls_of(call, tmp_path, OWNED, "6_4") if line.startswith("  ")]
    assert bound == [
        *("inputs input[24]", "outputs memory[24]", "temporary memory[16]"),
        *("inputs nothing", "outputs output[96]", "persistent memory[24]"),
    ]


def test_what_directml_refuses_ends_the_program(call: Call, tmp_path: Path) -> None:
    assert calls_of(call, tmp_path, ONE_STEP, "windows-10-2004", refused=True) == []


def test_several_tiles_have_names_of_their_own(call: Call) -> None:
    text = program_of(call, [ONE_STEP, ONE_STEP], "windows-10-2004")
    assert text.count("struct TileStep") == 1
    assert "create_tile_0(" in text
    assert "create_tile_1(" in text


@pytest.mark.parametrize("language", ["cpp", "json", "python"])
def test_emit_builds_the_tiles_of_an_older_target(call: Call, language: str) -> None:
    result = call("emit", "-", "--lang", language, "--target", "windows-10-2004", stdin=json.dumps(TWO_STEPS))
    assert result.exit_code == 0
    assert "TileChain" not in result.stdout
    count = {"cpp": "const DML_OPERATOR_DESC ", "json": '"RepeatsCount"', "python": "step"}[language]
    assert result.stdout.count(count) >= 2
    if language == "json":
        checked = call("check", "-", "--target", "windows-10-2004", stdin=result.stdout)
        assert checked.exit_code == 0


def test_emit_tells_what_has_no_lowering(call: Call) -> None:
    unlowered = tile("INT8", [1] * 9, [1] * 9)
    result = call("emit", "-", "--lang", "cpp", "--target", "windows-10-2004", stdin=json.dumps(unlowered))
    assert result.exit_code == 1
    assert "error[" in result.stderr
