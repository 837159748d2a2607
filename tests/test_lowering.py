"""Tiles, and the tiles of older targets that write the same bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
import pytest
from rich.console import Console

from dml_tile.back_ends.dialects import NUMPY_TILE, ONNX_TILE_13, OPENVINO_TILE_1, Dialect, Request
from dml_tile.checking import check
from dml_tile.checks.lowerings import lower_item
from dml_tile.checks.result import Result
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc, described
from dml_tile.directml.targets import Target
from dml_tile.emit.source import CodeName, lowering_model, lowering_source
from dml_tile.errors import DmlError
from dml_tile.lowering.lower import lower, run_lowering
from dml_tile.lowering.steps import LOWERING_RULES
from dml_tile.readers.item import Item
from dml_tile.reports.lowering import lowering_table
from dml_tile.simulation.target import simulate
from tests.helpers.compilers import COMPILERS, EACH_HEADERS, STANDARDS, WARNINGS, compiled, needs_compiler
from tests.helpers.descriptors import GOOD, OPERATOR, at, page_tile, row, strided
from tests.helpers.rule_cases import LOWERING_CASES
from tests.helpers.strided_tiles import assert_same_bytes

EIGHT: Final = [2] * 8


BITS: Final = (
    "its bits arrive only where nothing normalises NaNs or denormals; small integers are denormals as floats, and "
    "would arrive as 0"
)

LOWERED: Final[dict[str, tuple[TileOperatorDesc, Any, list[str]]]] = {
    # what is repaired: the tile, the target, and the steps
    "nothing is to be repaired":
        (row("INT64", [2, 3], [1, 2]), "4_1", ["INT64 {2,3} x {1,2} -> {2,6}"]),

    # 1. axes
    "a dimension count of 4 is reached with leading ones":
        (row("FLOAT32", [2, 3], [3, 3]), "1_0", ["FLOAT32 {1,1,2,3} x {1,1,3,3} -> {1,1,6,9}"]),
    "dimensions that are not repeated are merged into the next outer one":
        (row("FLOAT32", [2, 3, 4, 5, 6], [2, 1, 3, 1, 1]), "2_0", ["FLOAT32 {1,1,6,120} x {1,1,2,3} -> {1,1,12,360}"]),

    # 2. the data type
    "32 bits travel as FLOAT32":
        (row("INT32", [1, 1, 2, 3], [1, 1, 3, 3]), "1_0", ["FLOAT32 {1,1,2,3} x {1,1,3,3} -> {1,1,6,9}"]),
    "FLOAT64 travels as UINT64":
        (row("FLOAT64", [2, 3], [1, 2]), "6_4", ["UINT64 {2,3} x {1,2} -> {2,6}"]),
    "64 bits travel as two halves":
        (row("INT64", [2, 3], [1, 2]), "windows-11-21h2", ["UINT32 {2,6} x {1,2} -> {2,12}"]),
    "halves that do not follow one another have a dimension of their own":
        (strided("INT64", [3], [2], [2], None), "3_1", ["UINT32 {3,2} strides {4,1} x {2,1} -> {6,2}"]),
    "the stride of a single element does not count":
        (strided("INT64", [1, 2], [2**32 - 1, 2], [1, 2], None), "3_1",
         ["UINT32 {1,2,2} strides {0,4,1} x {1,2,1} -> {1,4,2}"]),
    "four bytes travel as one FLOAT32":
        (row("UINT8", [2, 3, 8], [2, 2, 1]), "1_0", ["FLOAT32 {1,1,2,6} x {1,1,2,2} -> {1,1,4,12}"]),
    "an odd size may hide in an even run":
        (row("UINT8", [3, 2, 5], [1, 2, 1]), "1_0", ["FLOAT16 {1,1,3,5} x {1,1,1,2} -> {1,1,3,10}"]),
    "several values travel as one, where an adapter takes no bytes":
        (row("INT8", [2, 4], [2, 1]), at("5_2", typed_uav_loads=False), ["UINT64 {1} x {2} -> {2}"]),
    "several values travel as one, where this saves a dimension, and so a step":
        (strided("UINT8", [2, 2, 2, 2, 4], [128, 64, 32, 16, 1], [2, 2, 2, 2, 1], None), "2_1",
         ["UINT32 {2,2,2,2} strides {32,16,8,4} x {2,2,2,2} -> {4,4,4,4}"]),

    # 3. several tiles
    "8 repeats take three steps":
        (row("FLOAT32", EIGHT, [2] * 8), "1_0",
         ["FLOAT32 {1,1,128,2} x {1,1,1,2} -> {1,1,128,4}", "FLOAT32 {16,2,2,8} x {1,2,2,2} -> {16,4,4,16}",
          "FLOAT32 {2,2,2,512} x {2,2,2,2} -> {4,4,4,1024}"]),

    # 4. strides
    "strides are kept":
        (strided("INT32", [2, 3], [4, 1], [2, 2], [8, 1]), "1_0",
         ["FLOAT32 {1,1,2,3} strides {0,0,4,1} x {1,1,2,2} -> {1,1,4,6} strides {0,0,8,1}"]),
    "a broadcast is a repeat":
        (strided("FLOAT32", [2, 3, 2, 2, 2], [8, 0, 4, 2, 1], [1] * 5, None), "1_0",
         ["FLOAT32 {1,1,2,8} x {1,1,1,3} -> {1,1,2,24}"]),
    "one step packs, one repeats and one spreads":
        (strided("FLOAT32", [2] * 5, [99, 44, 20, 10, 1], [1, 1, 1, 2, 1], [99, 49, 24, 6, 1]), "1_0",
         ["FLOAT32 {2,2,4,2} strides {99,44,10,1} x {1,1,1,1} -> {2,2,4,2}",
          "FLOAT32 {1,1,8,4} x {1,1,1,2} -> {1,1,8,8}",
          "FLOAT32 {2,2,8,2} x {1,1,1,1} -> {2,2,8,2} strides {99,49,6,1}"]),
}  # fmt: skip


@pytest.mark.parametrize(("desc", "target", "steps"), LOWERED.values(), ids=LOWERED)
def test_a_tile_is_lowered_to_steps_that_write_its_bytes(desc: TileOperatorDesc, target: Any, steps: list[str]) -> None:
    lowering = lower(desc, target)
    assert [str(step.desc) for step in lowering.steps] == steps
    assert_same_bytes(desc, lowering, np.random.default_rng(5))


def test_a_tile_that_passes_is_not_changed() -> None:
    for desc in (GOOD, OPERATOR):
        lowering = lower(desc, "1_0")
        assert lowering.is_original
        assert (lowering.scratch_sizes, lowering.notes, lowering.cost) == ((), (), 1.0)
        assert (lowering.steps[0].reads, lowering.steps[0].writes) == ("input", "output")
    assert not lower(row("INT32", [1, 1, 2, 3], [1, 1, 3, 3]), "1_0").is_original


def test_an_operator_is_lowered_as_its_tile_at_the_simulated_target() -> None:
    desc = row("INT64", [2], [2])
    with simulate("windows-10-2004"):
        assert lower(OperatorDesc(type=70, desc=desc)) == lower(desc)
        assert str(lower(desc).steps[0].desc) == "FLOAT32 {1,1,1,4} x {1,1,1,2} -> {1,1,1,8}"


NOTES: Final = {
    "32 bits travel as FLOAT32": [f"INT32 travels as FLOAT32: {BITS}"],
    "8 repeats take three steps": [],
    "one step packs, one repeats and one spreads": [
        "step 1 repeats nothing: it packs the input",
        "step 3 repeats nothing: it spreads the output",
    ],
}


@pytest.mark.parametrize(("name", "notes"), NOTES.items(), ids=NOTES)
def test_a_lowering_notes_what_its_user_must_know(name: str, notes: list[str]) -> None:
    desc, target, _ = LOWERED[name]
    assert list(lower(desc, target).notes) == notes


def test_an_alignment_below_16_becomes_0_and_is_noted() -> None:
    lowering = lower(page_tile(InputTensor__GuaranteedBaseOffsetAlignment=4), "6_4")
    assert lowering.steps[0].desc == GOOD
    assert lowering.notes == ("InputTensor.GuaranteedBaseOffsetAlignment becomes 0: 4 was provided",)


def test_no_float_stands_for_other_bits_where_that_is_not_allowed() -> None:
    def without(data_type: str, level: str) -> str:
        steps = lower(row(data_type, [2, 2], [2, 2]), level, allow_float_reinterpretation=False).steps
        return str(steps[0].desc)

    assert without("FLOAT32", "1_0") == "FLOAT32 {1,1,2,2} x {1,1,2,2} -> {1,1,4,4}"
    assert without("FLOAT64", "2_1") == "UINT32 {1,1,2,4} x {1,1,2,2} -> {1,1,4,8}"
    with pytest.raises(DmlError, match="takes floats only, which may not carry FLOAT64 here"):
        without("FLOAT64", "1_0")


@pytest.mark.parametrize(
    ("dialect", "data_type", "stake"),
    [
        (ONNX_TILE_13, "int64", "; small integers are denormals as floats, and would arrive as 0"),
        (ONNX_TILE_13, "bool", "; bools and small integers may be denormals as floats, and would arrive as 0"),
        (ONNX_TILE_13, "bfloat16", "; values below 2^-119 are denormals as FLOAT16, and those above 2^121 NaNs"),
        (OPENVINO_TILE_1, "bf16", "; values below 2^-119 are denormals as FLOAT16, and those above 2^121 NaNs"),
        (ONNX_TILE_13, "float64", ""),
    ],
)
def test_a_note_says_which_values_are_no_ordinary_floats(dialect: Dialect, data_type: str, stake: str) -> None:
    (note,) = lower(dialect.request(data_type, [2, 4], np.array([2, 2])), "2_0").notes
    assert note.endswith(f"its bits arrive only where nothing normalises NaNs or denormals{stake}")


def test_the_first_input_and_the_last_output_keep_flags_sizes_and_alignments() -> None:
    desc = row(
        "INT64", [2] * 5, [2] * 5, InputTensor__Flags=1, InputTensor__GuaranteedBaseOffsetAlignment=64,
        InputTensor__TotalTensorSizeInBytes=999, OutputTensor__GuaranteedBaseOffsetAlignment=32,
        OutputTensor__TotalTensorSizeInBytes=8200,
    )  # fmt: skip
    first, last = lower(desc, "2_0").steps
    buffers = [
        (buffer.flags, buffer.total_tensor_size_in_bytes, buffer.guaranteed_base_offset_alignment)
        for buffer in (*described(first.desc), *described(last.desc))
    ]
    assert buffers == [(1, 999, 64), (0, 512, 0), (0, 512, 0), (0, 8200, 32)]


def test_two_scratch_buffers_are_enough() -> None:
    lowering = lower(ONNX_TILE_13.request("bool", [2] * 12, [2] * 12), "1_0")
    places = [(step.reads, step.writes) for step in lowering.steps]
    assert places == [("input", 0), (0, 1), (1, 0), (0, "output")]
    written = [described(step.desc)[1].total_tensor_size_in_bytes for step in lowering.steps]
    assert lowering.scratch_sizes == (max(written[0], written[2]), written[1])


def test_nothing_is_written_before_the_buffers_are_known_to_be_good() -> None:
    output = np.zeros(4096, np.uint8)
    with pytest.raises(DmlError, match="DML-BINDING-SizeInBytes"):
        run_lowering(lower(row("FLOAT32", [2] * 5, [2] * 5), "1_0"), np.ones(128, np.uint8), output[:-1])
    assert not output.any()


# What cannot be lowered

BROKEN: Final = [
    (None, "6_4", {"DML-OPERATOR-null"}),
    (OperatorDesc(type=0x80000001, desc=None), "6_4", {"DML-OPERATOR-Desc-null"}),
    (page_tile(OutputTensor=None), "6_4", {"DML-TENSOR-null"}),
    (row("UINT4", [4], [1]), "6_4", {"DML-TILE-DataType"}),
    (row("INT64", [4], [2], OutputTensor__Sizes=[9], OutputTensor__TotalTensorSizeInBytes=72), "1_0",
     {"DML-TILE-OutputTensor-Sizes"}),
    (row("INT64", [4], [2], InputTensor__GuaranteedBaseOffsetAlignment=48), "1_0",
     {"DML-BUFFER-GuaranteedBaseOffsetAlignment"}),
    (row("INT64", [4], [2], InputTensor__Flags=3), "1_0", {"DML-BUFFER-Flags"}),
    (row("FLOAT32", [1] * 9, [1] * 9), "6_4", {"DML-BUFFER-DimensionCount"}),
    (ONNX_TILE_13.request("string", [2], [2]), "1_0", {"DML-DIALECT-data-type"}),
    (OPENVINO_TILE_1.request("u1", [2], [2]), "1_0", {"DML-DIALECT-data-type"}),
    (OPENVINO_TILE_1.request("i4", [2], [2]), "1_0", {"DML-TILE-DataType"}),
    (ONNX_TILE_13.request("float32", [0], [2]), "1_0", {"DML-DIALECT-empty"}),
    (ONNX_TILE_13.request("complex64", [2], [2**31]), "1_0", {"DML-LOWER-limits"}),
    (ONNX_TILE_13.request("bool", [3], [2]), "1_0", {"DML-LOWER-elements"}),
]  # fmt: skip


@pytest.mark.parametrize(("desc", "target", "rules"), BROKEN)
def test_a_tile_that_breaks_other_rules_is_reported_with_them(desc: Any, target: str, rules: set[str]) -> None:
    with pytest.raises(DmlError) as error:
        lower(desc, target)
    assert {finding.rule for finding in error.value.findings} == rules
    assert isinstance(desc, Request) or set(error.value.findings) <= set(check(desc, target))


@pytest.mark.parametrize(("rule", "refused", "accepted", "target", "path"), LOWERING_CASES)
def test_a_rule_refuses_and_accepts(
    rule: str, refused: TileOperatorDesc, accepted: TileOperatorDesc, target: str, path: str
) -> None:
    allow_floats = rule != "DML-LOWER-DataType"
    with pytest.raises(DmlError) as error:
        lower(refused, target, allow_float_reinterpretation=allow_floats)
    assert {finding.rule for finding in error.value.findings} == {rule}
    assert path in [finding.path for finding in error.value.findings]
    assert error.value.hresult is None
    lower(accepted, target, allow_float_reinterpretation=allow_floats)


def test_each_rule_of_lowering_has_its_cases() -> None:
    assert {case[0] for case in LOWERING_CASES} == {rule.id for rule in LOWERING_RULES}


# Requests

REQUESTS: Final = {
    "bool": (ONNX_TILE_13.request("bool", [2, 4], [2, 1]), "6_4", ["UINT8 {2,4} x {2,1} -> {4,4}"]),
    "bool without bytes": (
        ONNX_TILE_13.request("bool", [2, 4], [2, 1]), "1_0", ["FLOAT32 {1,1,1,2} x {1,1,1,2} -> {1,1,1,4}"]),
    "bfloat16": (OPENVINO_TILE_1.request("bf16", [3], [2]), "1_0", ["FLOAT16 {1,1,1,3} x {1,1,1,2} -> {1,1,1,6}"]),
    "complex64": (ONNX_TILE_13.request("complex64", [3], [2]), "4_1", ["UINT64 {3} x {2} -> {6}"]),
    "complex128": (ONNX_TILE_13.request("complex128", [3], [2]), "4_1", ["UINT64 {6} x {2} -> {12}"]),
    "a scalar": (NUMPY_TILE.request("float32", [], []), "3_1", ["FLOAT32 {1} x {1} -> {1}"]),
    "more than 8 dimensions": (
        ONNX_TILE_13.request("int8", [2] * 9, [1] * 8 + [2]), "3_1",
        ["INT8 {256,2} x {1,2} -> {256,4}"]),
    "more than 8 repeats": (
        ONNX_TILE_13.request("int8", [2] * 9, [2] * 9), "3_1",
        ["INT8 {256,2} x {1,2} -> {256,4}", "INT8 {2,2,2,2,2,2,2,8} x {2,2,2,2,2,2,2,2} -> {4,4,4,4,4,4,4,16}"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("request_", "target", "steps"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_is_lowered(request_: Any, target: str, steps: list[str]) -> None:
    lowering = lower(request_, target)
    assert [str(step.desc) for step in lowering.steps] == steps
    size = lowering.original_bytes_read
    values = np.random.default_rng(5).integers(0, 256, size, np.uint8)
    dtype = np.dtype((np.void, size // math.prod(request_.shape)))
    expected = np.tile(values.view(dtype).reshape(request_.shape), request_.repeats)
    written = np.zeros(described(lowering.steps[-1].desc)[1].total_tensor_size_in_bytes, np.uint8)
    run_lowering(lowering, np.resize(values, size + 3), written)
    assert written[: expected.nbytes].tobytes() == expected.tobytes()


def test_a_request_that_a_descriptor_can_hold_is_lowered_as_that() -> None:
    request = ONNX_TILE_13.request("int64", [2, 1, 3], [1, 2, 2])
    for target in ("1_0", "3_1", "4_1"):
        desc = row("INT64", [2, 1, 3], [1, 2, 2])
        assert lower(request, target).steps == lower(desc, target).steps


# A lowering as a table, a DxDispatch model and source text

LONG = row("INT64", [1, 2, 3, 4, 5], [1, 1, 2, 1, 2])
LONGEST = row("INT16", [2] * 8, [2] * 8)


def shown(table: Any) -> list[list[str]]:
    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        console.print(table)
    lines = capture.get().splitlines()
    return [
        [cell.strip() for cell in line.strip("│┃").replace("┃", "│").split("│")] for line in lines if "─" not in line
    ]


def test_a_field_has_a_row_where_a_tile_has_an_unusual_value() -> None:
    desc = row(
        "INT64", [3], [2], InputTensor__Flags=1, InputTensor__Strides=[2], InputTensor__TotalTensorSizeInBytes=40,
        OutputTensor__GuaranteedBaseOffsetAlignment=4,
    )  # fmt: skip
    assert shown(lowering_table(lower(desc, "3_1")))[5:14] == [
        ["InputTensor", "", ""],
        ["Flags", "OWNED_BY_DML", "OWNED_BY_DML"],
        ["Sizes", "{3}", "{3, 2}"],
        ["Strides", "{2}", "{4, 1}"],
        ["TotalTensorSizeInBytes", "40", "40"],
        ["OutputTensor", "", ""],
        ["Sizes", "{6}", "{6, 2}"],
        ["TotalTensorSizeInBytes", "48", "48"],
        ["GuaranteedBaseOffsetAlignment", "4", "0"],
    ]


def test_each_step_has_its_column_and_a_request_stands_before_them() -> None:
    rows = shown(lowering_table(lower(LONGEST, "2_1")))
    assert ["reads", "input", "input", "scratch1", "scratch2"] in rows
    assert ["writes", "output", "scratch1", "scratch2", "output"] in rows
    rows = shown(lowering_table(lower(ONNX_TILE_13.request("complex64", [3], [2]), "4_1")))
    assert rows[3] == ["DataType", "complex64", "UINT64"]
    assert rows[6:8] == [["Sizes", "{3}", "{3}"], ["TotalTensorSizeInBytes", "", "24"]]


def test_the_model_prints_padding_and_the_steps_type(run: Callable[..., str]) -> None:
    desc = strided("INT16", [2, 1], [3, 1], [1, 2], [4, 1])
    assert run(lowering_model(lower(desc, "1_0")), target="2_1") == "Resource 'output': 0, 0, 0, 0, 3, 3\n"
    model = lowering_model(lower(ONNX_TILE_13.request("complex64", [2], [2]), "4_1"))
    assert run(model, target="4_1") == "Resource 'output': 0, 1, 0, 1\n"


def lowered_tiles(**tiles: TileOperatorDesc) -> list[Result]:
    return [lower_item("tiles.json", Item(f"/{name}", tile), Target.parse("2_1")) for name, tile in tiles.items()]


def test_cpp_builds_each_step_and_says_which_buffers_it_reads_and_writes() -> None:
    text = "".join(lowering_source("cpp", lowered_tiles(eight=LONGEST, short=row("INT64", [3], [2]))))
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


@needs_compiler
@pytest.mark.parametrize("headers", EACH_HEADERS)
@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_cpp_compiles_without_a_warning(tmp_path: Path, compiler: str, standard: str, headers: list[str]) -> None:
    tiles = lowered_tiles(eight=LONGEST, long=LONG, owned=row("FLOAT32", [2, 3], [2, 2], InputTensor__Flags=1))
    (tmp_path / "tiles.h").write_text("".join(lowering_source("cpp", tiles)))
    (tmp_path / "use.cpp").write_text('#include "tiles.h"\n')
    compiled(compiler, f"-std={standard}", *WARNINGS, *headers, "-fsyntax-only", tmp_path / "use.cpp")


@pytest.mark.parametrize(("first", "prefix"), [("", ""), ("my", "my_")])
@pytest.mark.parametrize("language", get_args(CodeName))
def test_steps_are_named_after_their_tile(language: CodeName, first: str, prefix: str) -> None:
    described = {"/0/operator": LONGEST, "/1/operator": LONGEST, "/operator_step1": LONG, "/2/operator": None}
    tiles = [lower_item("a.jsonl", Item(*part), Target.parse("2_1")) for part in described.items()]
    expected = [f"{prefix}{name}_step{i}" for name in ("operator", "operator_2") for i in (1, 2, 3)]
    text = "".join(lowering_source(language, tiles, first))
    assert re.findall(r"(\w+)_desc = ", text) == [*expected, f"{prefix}operator_step1_step1"]
    text = "".join(lowering_source(language, tiles[:1], first))
    assert re.findall(r"(\w+)_desc = ", text) == [f"{first or 'operator'}_step{i}" for i in (1, 2, 3)]


def test_python_builds_each_step() -> None:
    names: dict[str, Any] = {}
    exec("".join(lowering_source("python", lowered_tiles(eight=LONGEST, long=LONG))), names)
    for name, tile in ("eight", LONGEST), ("long", LONG):
        steps = [step.desc for step in lower(tile, "2_1").steps]
        assert [names[f"{name}_step{i}_desc"] for i, _ in enumerate(steps, start=1)] == steps


def test_a_note_stands_once_in_the_code() -> None:
    tile = lower_item("tiles.json", Item(""), Target.parse("2_0"))
    assert "".join(lowering_source("cpp", [tile])) == "#include <DirectML.h>\n"
    tile = lower_item("tiles.json", Item("", LONGEST), Target.parse("2_0"))
    text = "".join(lowering_source("cpp", [tile]))
    note = f"INT16 travels as FLOAT16: {BITS}"
    assert f"9216 bytes of scratch memory; {note}:\n// scratch1 has 1024 bytes:\n" in text
    assert text.count("travels") == 1
