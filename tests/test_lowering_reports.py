"""A lowering as a table, a DxDispatch model and source text."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from dml_tile.checks.lowerings import LoweringResult, lower_part
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.dialects import onnx
from dml_tile.directml.targets import Target
from dml_tile.emit.lowering import lowering_model, lowering_source
from dml_tile.lowering.lower import lower, lower_request
from dml_tile.readers.descriptors import JsonDescriptor
from dml_tile.reports.lowering import cost_lines, lowering_table, print_lowered
from tests.helpers.compilers import (
    COMPILERS,
    REAL_HEADERS,
    STANDARDS,
    WARNINGS,
    compiled,
    needs_compiler,
    real_headers,
    stand_in_headers,
)
from tests.helpers.descriptors import row, strided

LONG = row("INT64", [1, 2, 3, 4, 5], [1, 1, 2, 1, 2])
EIGHT = row("INT16", [2] * 8, [2] * 8)


def shown(table: Any) -> list[list[str]]:
    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        console.print(table)
    lines = capture.get().splitlines()
    return [
        [cell.strip() for cell in line.strip("│┃").replace("┃", "│").split("│")] for line in lines if "─" not in line
    ]


def fields_of(tensor: str, table: Any) -> dict[str, list[str]]:
    """Return the rows of a tensor's fields."""
    rows = shown(table)
    first = [row[0] for row in rows].index(tensor) + 1
    last = next(i for i, row in enumerate(rows) if i > first and row[0] in ("OutputTensor", "reads"))
    return {row[0]: row[1:] for row in rows[first:last]}


def test_a_field_has_a_row_where_a_tile_has_an_unusual_value() -> None:
    desc = row(
        "INT64", [3], [2], InputTensor__Flags=1, InputTensor__Strides=[2], InputTensor__TotalTensorSizeInBytes=40,
        OutputTensor__GuaranteedBaseOffsetAlignment=4,
    )  # fmt: skip
    table = lowering_table(lower(desc, "3_1"))
    assert fields_of("InputTensor", table) == {
        "Flags": ["OWNED_BY_DML", "OWNED_BY_DML"],
        "Sizes": ["{3}", "{3, 2}"],
        "Strides": ["{2}", "{4, 1}"],
        "TotalTensorSizeInBytes": ["40", "40"],
    }
    assert fields_of("OutputTensor", table)["GuaranteedBaseOffsetAlignment"] == ["4", "0"]


def test_each_step_has_its_column_and_a_request_stands_before_them() -> None:
    rows = shown(lowering_table(lower(EIGHT, "2_1")))
    assert ["reads", "input", "input", "scratch1", "scratch2"] in rows
    assert ["writes", "output", "scratch1", "scratch2", "output"] in rows
    table = lowering_table(lower_request(onnx.tile_13("complex64", [3], [2]), "4_1"))
    assert ["DataType", "complex64", "UINT64"] in shown(table)
    assert fields_of("InputTensor", table) == {"Sizes": ["{3}", "{3}"], "TotalTensorSizeInBytes": ["", "24"]}


def test_the_cost_names_scratch_memory_only_where_there_is_some() -> None:
    lines = [line.text.plain for line in cost_lines(lower(EIGHT, "2_0"))]
    assert lines == [
        "cost: 3 tiles, 150016 bytes read and written, 1.14 times the direct tile's; 9216 bytes of scratch memory",
        "note: INT16 travels as FLOAT16: its bits arrive only where nothing normalises NaNs or denormals",
    ]
    (line,) = cost_lines(lower(LONG, "4_1"))
    assert line.text.plain == "cost: 1 tile, 4800 bytes read and written, 1.00 times the direct tile's"


def test_the_model_prints_padding_and_the_steps_type(run: Callable[..., str]) -> None:
    desc = strided("INT16", [2, 1], [3, 1], [1, 2], [4, 1])
    assert run(lowering_model(lower(desc, "1_0")), target="1_0") == "Resource 'output': 0, 0, 0, 0, 3, 3\n"
    model = lowering_model(lower_request(onnx.tile_13("complex64", [2], [2]), "4_1"))
    assert run(model, target="4_1") == "Resource 'output': 0, 1, 0, 1\n"


def lowered_tiles(**tiles: TileOperatorDesc) -> list[LoweringResult]:
    return [
        lower_part("tiles.json", JsonDescriptor(f"/{name}", tile), Target.parse("2_1")) for name, tile in tiles.items()
    ]


def test_cpp_builds_each_step_and_says_which_buffers_it_reads_and_writes() -> None:
    text = "".join(lowering_source("cpp", lowered_tiles(eight=EIGHT, short=row("INT64", [3], [2]))))
    assert text.count("#include") == 1
    assert [line for line in text.splitlines() if line.startswith("//")] == [
        (
            "// tiles.json#/eight at 2_1; cost: 3 tiles, 150016 bytes read and written, 1.14 times the direct tile's; "
            "9216 bytes of scratch memory:"
        ),
        "// scratch1 has 1024 bytes:",
        "// scratch2 has 8192 bytes:",
        "// step 1 of 3 reads 512 bytes at offset 0 of input, writes 1024 bytes at offset 0 of scratch1:",
        "// step 2 of 3 reads 1024 bytes at offset 0 of scratch1, writes 8192 bytes at offset 0 of scratch2:",
        "// step 3 of 3 reads 8192 bytes at offset 0 of scratch2, writes 131072 bytes at offset 0 of output:",
        "// tiles.json#/short at 2_1; cost: 1 tile, 72 bytes read and written, 1.00 times the direct tile's:",
        "// step 1 of 1 reads 24 bytes at offset 0 of input, writes 48 bytes at offset 0 of output:",
    ]
    assert "eight_step3_operator = {DML_OPERATOR_TILE, &eight_step3_desc};" in text


def test_a_scratch_buffer_has_room_for_each_step_that_writes_it() -> None:
    lowering = lower_request(onnx.tile_13("float32", [2] * 12, [2] * 12), "2_1")
    text = "".join(lowering_source("cpp", [LoweringResult("a.onnx", "t", Target.parse("2_1"), lowering)]))
    assert "// scratch1 has 4194304 bytes:\n" in text
    written = re.findall(r"writes (\d+) bytes at offset 0 of (\w+)", text)
    assert written == [("65536", "scratch1"), ("524288", "scratch2"), ("4194304", "scratch1"), ("67108864", "output")]


@needs_compiler
@pytest.mark.parametrize("headers", [stand_in_headers(), *([real_headers()] if REAL_HEADERS else [])])
@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_cpp_compiles_without_a_warning(tmp_path: Path, compiler: str, standard: str, headers: list[str]) -> None:
    tiles = lowered_tiles(eight=EIGHT, long=LONG, owned=row("FLOAT32", [2, 3], [2, 2], InputTensor__Flags=1))
    (tmp_path / "tiles.h").write_text("".join(lowering_source("cpp", tiles)))
    (tmp_path / "use.cpp").write_text('#include "tiles.h"\n')
    compiled(compiler, f"-std={standard}", *WARNINGS, *headers, "-fsyntax-only", tmp_path / "use.cpp")


def test_python_builds_each_step() -> None:
    names: dict[str, Any] = {}
    exec("".join(lowering_source("python", lowered_tiles(eight=EIGHT, long=LONG))), names)
    for name, tile in ("eight", EIGHT), ("long", LONG):
        steps = [step.desc for step in lower(tile, "2_1").steps]
        assert [names[f"{name}_step{i}_desc"] for i, _ in enumerate(steps, start=1)] == steps


def test_a_note_stands_once_in_the_code() -> None:
    tile = lower_part("tiles.json", JsonDescriptor(""), Target.parse("2_0"))
    assert "".join(lowering_source("cpp", [tile])) == "#include <DirectML.h>\n"
    tile = lower_part("tiles.json", JsonDescriptor("", EIGHT), Target.parse("2_0"))
    text = "".join(lowering_source("cpp", [tile]))
    note = "INT16 travels as FLOAT16: its bits arrive only where nothing normalises NaNs or denormals"
    assert f"9216 bytes of scratch memory; {note}:\n// scratch1 has 1024 bytes:\n" in text
    assert text.count("travels") == 1


def test_more_than_six_steps_are_listed() -> None:
    lowering = lower(strided("FLOAT32", [4] * 5, None, [1] * 5, [6 * 6**i for i in range(4, -1, -1)]), "1_0")
    printed = io.StringIO()
    console = Console(file=printed, width=200, no_color=True)
    print_lowered(console, [LoweringResult("parts.json", "", Target.parse("1_0"), lowering)])
    lines = printed.getvalue().splitlines()
    assert len(lowering.steps) == 9
    assert lines[1] == f"  step 1, from input to output: {lowering.steps[0].desc}"
    assert lines[9] == f"  step 9, from input to output: {lowering.steps[8].desc}"
    assert lines[10].startswith("  cost: 9 tiles")
