"""Executing descriptors on buffers, at once or compiled: what is written, and what is refused before anything is."""

from __future__ import annotations

import json
import math
import mmap
from array import array
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from dml_tile import Device
from dml_tile.bindings.memory import POISON, Padding
from dml_tile.checking import check, require
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.errors import DmlError
from dml_tile.execution.executor import compile_tile, execute
from dml_tile.lowering.lower import lower
from dml_tile.simulation.calls import record_calls
from dml_tile.simulation.target import simulate
from dml_tile.testing import assert_accepts, assert_rejects
from tests.helpers.descriptors import GOOD, changed, row

DOCS = json.loads((Path(__file__).parent / "data" / "ms_docs_dml_tile.json").read_text())["cases"][0]


def test_the_reference_page_s_example() -> None:
    source = np.array(DOCS["input"], np.float32)
    output = bytearray(216)
    execute(GOOD, source, output, "1_0")
    values = np.frombuffer(output, np.float32)
    assert values.tolist()[: len(DOCS["expect"]["output_prefix"])] == DOCS["expect"]["output_prefix"]
    assert (values.reshape(DOCS["expect"]["shape"]) == np.tile(source.reshape(1, 1, 2, 3), (1, 1, 3, 3))).all()


def test_arrays_that_go_on_behind_their_counts_are_read_up_to_them() -> None:
    longer = changed(
        GOOD, InputTensor__Sizes=[1, 1, 2, 3, 7], OutputTensor__Strides=[54, 54, 9, 1, 0, 0], Repeats=[1, 1, 3, 3, 5]
    )
    source, output = np.arange(6, dtype=np.float32), bytearray(216)
    execute(longer, source, output)
    expected = np.tile(source.reshape(2, 3), (3, 3))
    assert np.frombuffer(output, np.float32).tolist() == expected.ravel().tolist()


def refused(desc: TileOperatorDesc, source: Any, output: Any, **where: Any) -> DmlError:
    before = bytes(output)
    with pytest.raises(DmlError) as caught:
        execute(desc, source, output, **where)
    assert bytes(output) == before
    return caught.value


@pytest.mark.parametrize(
    ("source", "output", "overlap"),
    [
        (slice(0, 24), slice(0, 216), True),
        (slice(4, 28), slice(0, 216), True),
        (slice(212, 236), slice(0, 216), True),
        (slice(None), slice(None), True),  # the array itself
        (slice(None), slice(0, 216), True),
        (slice(0, 216), slice(None), True),
        (slice(None), slice(4, 220), True),
        (slice(0, 24), slice(24, 240), False),
        (slice(216, None), slice(0, 240), False),  # what lies behind the tensors may overlap
        (slice(None), slice(24, None), False),
    ],
)
def test_only_tensors_that_share_memory_overlap(source: slice, output: slice, overlap: bool) -> None:
    memory = np.ones(75, np.float32).view(np.uint8)
    given, written = (memory if part == slice(None) else memory[part] for part in (source, output))
    if overlap:
        (finding,) = refused(GOOD, given, written).findings
        assert finding.rule == "DML-BINDING-overlap"
        return
    at = source.start or 0
    memory[at : at + 24] = np.arange(6, dtype=np.float32).view(np.uint8)
    execute(GOOD, given, written)
    expected = np.tile(np.arange(6).reshape(2, 3), (3, 3))
    assert written[:216].view(np.float32).reshape(6, 9).tolist() == expected.tolist()


SHAPES = [((12,), (12,)), ((20,), (17,)), ((3, 4), (3, 4)), ((4, 3), (3, 4)), ((12,), (3, 4)), ((1, 3, 4), (12,))]


@pytest.mark.parametrize(("given", "written"), [*SHAPES, ((5, 4), (5, 4))])
@pytest.mark.parametrize(("dtype", "is_raw"), [("u1", False), ("i2", True), ("f4", False), ("f4", True)])
def test_a_copy_writes_its_tensor(given: tuple[int, ...], written: tuple[int, ...], dtype: str, is_raw: bool) -> None:
    desc = TileOperatorDesc.from_input(data_type=np.dtype(dtype), sizes=[3, 4], repeats=[1, 1])
    source = np.arange(1, 1 + math.prod(given)).astype(dtype).reshape(given)
    output = np.zeros(written, dtype)
    execute(desc, source, output.reshape(-1).view(np.uint8) if is_raw else output)
    rest = [0] * (output.size - 12)
    assert output.reshape(-1).tolist() == [*source.reshape(-1).tolist()[:12], *rest]


def test_a_refused_buffer_can_be_closed_while_the_error_is_handled() -> None:
    mapped = mmap.mmap(-1, 4096)
    try:
        execute(GOOD, b"", mapped)
    except DmlError:
        mapped.close()
    assert mapped.closed


def test_astronomic_sizes_take_no_memory() -> None:
    huge = TileOperatorDesc.from_input(data_type="UINT8", sizes=[2**16 - 1], repeats=[2**16])
    require(huge)
    error = refused(huge, bytes(2**16), bytearray(8))
    assert [finding.rule for finding in error.findings] == ["DML-BINDING-SizeInBytes"]


WRAPPING_SIZES = changed(
    TileOperatorDesc.from_input(data_type="UINT8", sizes=[1, 3], repeats=[1, 1]),
    Repeats=[1, 1431655766],
    OutputTensor__Sizes=[1, 2],
)
WRAPPING_EXTENT = changed(
    TileOperatorDesc.from_input(data_type="UINT8", sizes=[3], repeats=[1]),
    InputTensor__Strides=[2**31],
    InputTensor__TotalTensorSizeInBytes=4,
)
OVERLAPPING = changed(
    TileOperatorDesc.from_input(data_type="UINT8", sizes=[2, 4], repeats=[1, 1]),
    OutputTensor__Strides=[6, 2],
    OutputTensor__TotalTensorSizeInBytes=16,
)


@pytest.mark.parametrize(
    ("desc", "rule"),
    [
        (WRAPPING_SIZES, "DML-TILE-OutputTensor-Sizes"),
        (WRAPPING_EXTENT, "DML-BUFFER-TotalTensorSizeInBytes-minimum"),
        (OVERLAPPING, "DML-BUFFER-Strides-overlap"),
    ],
)
def test_what_the_runtime_accepts_by_mistake_is_never_executed(desc: TileOperatorDesc, rule: str) -> None:
    assert not check(desc, "5_2", "runtime")
    error = refused(desc, bytes(64), bytearray(64), target="5_2", against="runtime")
    assert [finding.rule for finding in error.findings] == [rule]


def test_what_only_the_runtime_refuses_can_be_executed_by_the_documentation() -> None:
    aligned = changed(GOOD, InputTensor__GuaranteedBaseOffsetAlignment=4)
    refused(aligned, bytes(24), bytearray(216))
    execute(aligned, bytes(24), bytearray(216), against="documentation")


@pytest.mark.parametrize(("padding", "byte"), [("preserve", 1), ("poison", POISON)])
def test_the_bytes_between_the_elements_are_preserved_or_poisoned(padding: Padding, byte: int) -> None:
    padded = row("UINT8", [2, 2], [1, 2], OutputTensor__Strides=[6, 1], OutputTensor__TotalTensorSizeInBytes=14)
    for run in (partial(execute, padding=padding), Device(padding=padding).execute):
        output = bytearray(b"\1" * 16)
        run(padded, bytes([2, 3, 4, 5]), output)
        assert list(output) == [2, 3, 2, 3, byte, byte, 4, 5, 4, 5, byte, byte, byte, byte, 1, 1]


def test_nothing_is_poisoned_where_something_is_wrong() -> None:
    output = bytearray(215)
    with pytest.raises(DmlError):
        execute(GOOD, bytes(24), output, padding="poison")
    assert not any(output)
    with pytest.raises(ValueError, match="padding is 'zeros'; it must be one of 'preserve', 'poison'"):
        execute(GOOD, bytes(24), bytearray(216), padding="zeros")  # type: ignore[call-overload]


def test_the_target_decides_in_each_call() -> None:
    longs = TileOperatorDesc.from_input(data_type="INT64", sizes=[1] * 4, repeats=[1] * 4)
    for _ in range(2):  # the second time by what is kept
        execute(longs, bytes(8), bytearray(8), target="windows-11-22h2")
        refused(longs, bytes(8), bytearray(8), target="windows-11-21h2")
        with simulate("3_0"):
            refused(longs, bytes(8), bytearray(8))


# A tile that is checked and planned once: bound to buffers, and executed many times

INPUT = np.arange(6, dtype=np.float32)
LARGE = row("FLOAT32", [1000, 1200], [2, 4])


def test_a_tile_that_is_compiled_or_bound_reads_what_its_input_holds_then() -> None:
    source, output = INPUT.copy(), np.zeros(54, np.float32)
    compiled = compile_tile(GOOD, "windows-10-2004")
    assert compiled.target.name == "windows-10-2004"
    bound = compiled.bind(source, output)
    assert not output.any()
    for run in (bound.run, partial(compiled.execute, source, output)) * 2:
        source += 7
        run()
        np.testing.assert_array_equal(output, np.tile(source.reshape(2, 3), (3, 3)).ravel())


def test_each_step_is_recorded_under_its_name() -> None:
    with record_calls() as calls:
        compiled = compile_tile(GOOD, "windows-10-2004")
        compiled.bind(INPUT, np.zeros(54, np.float32)).run()
        compiled.execute(INPUT, np.zeros(54, np.float32))
    assert [call.name for call in calls] == ["compile_tile", "bind", "execute"]
    assert all(call.desc is GOOD and call.target is compiled.target and not call.findings for call in calls)


def test_what_a_target_refuses_is_not_compiled() -> None:
    with pytest.raises(DmlError, match="DML-TILE-DataType-level"):
        compile_tile(row("INT64", [1, 1, 2, 3], [1, 1, 1, 2]), "windows-10-2004")


FLOATS = np.zeros(60, np.float32)
TOO_SMALL = "DXGI_ERROR_DEVICE_REMOVED .*\n .*DML-BINDING-SizeInBytes.* {}Tensor: .*SizeInBytes is too small"
NO_BUFFER = "{} is of type {}; an object with the buffer protocol"
ORDER, MASK = r"use input\.astype\(input\.dtype\.newbyteorder\('='\)\)", r"input is masked, .*filled\(\)"
HOLDS = r"{0} holds {1}.*DataType is FLOAT32; pass {0}\.astype\(np\.float32\), or the bytes .*view\(np\.uint8\)"
TYPED: dict[str, Any] = {
    "float64": np.zeros(54).data,
    "int32": array("i", [0] * 54),
    "int8": np.zeros(216, np.int8),
    "bfloat16": np.zeros(108, ml_dtypes.bfloat16),
    "datetime64": np.zeros(54, "M8[s]"),
}
UNFIT: dict[str, tuple[Any, Any, type[Exception], str]] = {
    # the input, the output, and what is said
    "an input that is too small": (bytes(23), bytearray(216), DmlError, TOO_SMALL.format("Input")),
    "an input without bytes": (b"", bytearray(216), DmlError, TOO_SMALL.format("Input")),
    "an output that is too small": (INPUT, bytearray(215), DmlError, TOO_SMALL.format("Output")),
    "an output without bytes": (INPUT, bytearray(), DmlError, TOO_SMALL.format("Output")),
    "an input in the other byte order": (INPUT.astype(INPUT.dtype.newbyteorder()), bytearray(216), TypeError, ORDER),
    "a masked input, whose mask would be lost": (np.ma.array(INPUT), bytearray(216), TypeError, MASK),
    "an output that is read-only": (INPUT, np.frombuffer(bytes(216), np.float32), ValueError, "read-only"),
    "a strided input": (np.zeros((6, 2), np.float32)[:, 0], bytearray(216), ValueError, "input: .*contiguous"),
    "a strided output": (INPUT, np.zeros((54, 2), np.float32)[:, 0], ValueError, "output: .*contiguous"),
    "an input of objects": (np.zeros(6, object), np.zeros(54, np.float32), TypeError, "Python objects"),
    "an output of objects": (INPUT, np.zeros(54, object), TypeError, "Python objects"),
    "an input of text": ("text", bytearray(216), TypeError, NO_BUFFER.format("input", "str")),
    "a list as an output": (INPUT, [0.0] * 54, TypeError, NO_BUFFER.format("output", "list")),
    "an output that overlaps": (FLOATS[:6], FLOATS[5:], DmlError, "DML-BINDING-overlap"),
    **{f"an input of {name}": (TYPED[name], bytearray(216), TypeError, HOLDS.format("input", name)) for name in TYPED},
    **{f"an output of {name}": (INPUT, TYPED[name], TypeError, HOLDS.format("output", name)) for name in TYPED},
}


@pytest.mark.parametrize(("source", "output", "error", "message"), UNFIT.values(), ids=UNFIT)
def test_unfit_buffers_are_refused_beforehand(source: Any, output: Any, error: type[Exception], message: str) -> None:
    compiled, before = compile_tile(GOOD), repr(output)
    for call in (compiled.execute, compiled.bind, partial(execute, GOOD)):
        with pytest.raises(error, match=message):
            call(source, output)
    assert repr(output) == before


def test_a_note_prevents_no_execution() -> None:
    """A typed view that is larger than Direct3D 12 guarantees."""
    sparse = row("UINT8", [2], [2], OutputTensor__TotalTensorSizeInBytes=2**27 + 4)
    (note,) = check(sparse)
    assert note.rule == "DML-TILE-typed-view"
    assert_accepts(sparse)
    with pytest.raises(AssertionError, match="accepted at 6_4; it should be refused"):
        assert_rejects(sparse)
    assert assert_rejects(sparse, rule=note.rule) == (note,)
    assert lower(sparse, "6_4").is_original
    assert compile_tile(sparse).desc is sparse
    assert Device().create_operator(sparse).desc is sparse


def test_a_file_that_is_mapped_is_an_output(tmp_path: Path) -> None:
    output = np.memmap(tmp_path / "out.bin", np.float32, "w+", shape=(2000, 4800))
    source = np.random.default_rng(1).random((1000, 1200), np.float32)
    told: list[int] = []
    compile_tile(LARGE).bind(source, output).run(progress=lambda done, of: told.append(done))
    np.testing.assert_array_equal(output, np.tile(source, (2, 4)))
    assert told[-1] == output.nbytes


def test_a_small_tile_tells_its_progress_too() -> None:
    told: list[tuple[int, int]] = []
    compile_tile(GOOD).bind(INPUT, np.zeros(54, np.float32)).run(progress=lambda *done: told.append(done))
    assert told == [(216, 216)]


@pytest.mark.parametrize(
    ("sizes", "repeats"),
    [((1000, 1200), (2, 4)), ((30, 3), (50, 20)), ((251, 195, 3), (4, 1, 4))],
    ids=["on several threads", "by way of scratch memory", "in blocks, by way of scratch memory"],
)
def test_a_bound_tile_may_be_run_by_eight_threads_at_once(sizes: tuple[int, ...], repeats: tuple[int, ...]) -> None:
    source = np.random.default_rng(1).random(sizes, np.float32)
    expected = np.tile(source, repeats)
    output = np.zeros_like(expected)
    bound = compile_tile(row("FLOAT32", [*sizes], [*repeats])).bind(source, output)
    with ThreadPoolExecutor(8) as callers:
        list(callers.map(lambda _: bound.run(3), range(24)))
    np.testing.assert_array_equal(output, expected)
