"""C structs in memory: their layout, what is read of them, and what is left alone."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
import sys
from collections.abc import Callable
from ctypes import POINTER, Structure, Union, addressof, byref, c_uint32, c_uint64, c_void_p, cast, pointer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile.checking import check
from dml_tile.descriptors.operator import UNKNOWN_STRUCT, OperatorDesc, tile_of
from dml_tile.descriptors.tile import BufferTensorDesc, TensorDesc, TileOperatorDesc
from dml_tile.directml.enums import UINT_MAX, TensorType
from dml_tile.directml.operators import operators
from dml_tile.readers.c_structs import (
    DML_BUFFER_TENSOR_DESC,
    DML_OPERATOR_DESC,
    DML_TENSOR_DESC,
    DML_TILE_OPERATOR_DESC,
    read_operator_desc,
    read_tile_operator_desc,
    write_operator_desc,
    write_tile_operator_desc,
)
from tests.helpers.descriptors import GOOD, OPERATOR
from tests.helpers.strategies import invalid_tiles, tiles

DATA = Path(__file__).parent / "data"
STRUCTS: list[type[Structure]] = [*(DML_BUFFER_TENSOR_DESC, DML_TENSOR_DESC, DML_TILE_OPERATOR_DESC, DML_OPERATOR_DESC)]
BILLIONS = 4_000_000_000


# The structs as somebody else would declare them, once in a union


class Tile(Structure):
    _fields_ = DML_TILE_OPERATOR_DESC._fields_


class Operator(Structure):
    _fields_ = DML_OPERATOR_DESC._fields_


class AnyOperator(Union):
    _fields_ = (("Tile", Operator), ("Room", c_uint64 * 8))


OURS = write_operator_desc(OPERATOR)


def their_operator() -> Operator:
    return Operator.from_buffer_copy(OURS)


LAYOUT = """
#include <stddef.h>
#include <stdio.h>
#include "DirectML_stand_in.h"
int main(void) {
%s
    return 0;
}
"""

COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_the_layout_is_a_c_compiler_s(tmp_path: Path) -> None:
    assert COMPILER is not None
    lines, expected = [], []
    for struct in STRUCTS:
        name = struct.__name__
        lines.append(f'    printf("{name} %zu\\n", sizeof({name}));')
        expected.append(f"{name} {ctypes.sizeof(struct)}")
        for field, *_ in struct._fields_:
            there = f"offsetof({name}, {field}), sizeof((({name}*)0)->{field})"
            lines.append(f'    printf("{name}.{field} %zu %zu\\n", {there});')
            here = getattr(struct, field)
            expected.append(f"{name}.{field} {here.offset} {here.size}")
    source, program = tmp_path / "layout.c", tmp_path / "layout"
    source.write_text(LAYOUT % "\n".join(lines))
    subprocess.run([COMPILER, "-std=c99", "-I", str(DATA), str(source), "-o", str(program)], check=True)
    assert subprocess.run([program], capture_output=True, check=True, text=True).stdout.splitlines() == expected


SOURCES: dict[str, Callable[[Any], Any]] = {
    "structure": lambda struct: struct,
    "address": addressof,
    "pointer": pointer,
    "byref": byref,
    "void pointer": lambda struct: c_void_p(addressof(struct)),
    "cast pointer": lambda struct: cast(pointer(struct), POINTER(DML_TILE_OPERATOR_DESC)),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_somebody_else_s_structs_are_read_from_whatever_points_to_them(source: Callable[[Any], Any]) -> None:
    theirs = their_operator()
    assert read_operator_desc(source(theirs)) == OPERATOR
    assert read_tile_operator_desc(source(Tile.from_address(theirs.Desc))) == GOOD


def test_a_larger_union_and_an_entry_of_an_array_are_read() -> None:
    assert read_operator_desc(AnyOperator(Tile=their_operator())) == OPERATOR
    several = (Operator * 2)(Operator(), their_operator())
    assert read_operator_desc(byref(several, ctypes.sizeof(Operator))) == OPERATOR


@pytest.mark.parametrize("null", [None, 0, c_void_p(), POINTER(Tile)()], ids=["None", "0", "void", "typed"])
def test_a_null_pointer_is_read_as_none(null: Any) -> None:
    assert read_operator_desc(null) is None
    assert read_tile_operator_desc(null) is None


@pytest.mark.parametrize(
    "source",
    [True, 1.0, "0x1000", b"0123456789abcdef", c_uint64(4096), DML_OPERATOR_DESC, OPERATOR, [1], (c_uint32 * 2)()],
)
def test_an_object_that_points_nowhere_is_a_type_error(source: Any) -> None:
    with pytest.raises(TypeError, match="the address of a DML_OPERATOR_DESC, a ctypes structure or a pointer to one"):
        read_operator_desc(source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (DML_OPERATOR_DESC(), "DML_OPERATOR_DESC gives 16 bytes, but DML_TILE_OPERATOR_DESC takes 32"),
        (pointer(Operator()), "Operator gives 16 bytes, but DML_TILE_OPERATOR_DESC takes 32"),
        (byref(pointer(Tile())), "LP_Tile gives 8 bytes, but DML_TILE_OPERATOR_DESC takes 32"),
        (byref(Tile(), 8), "Tile gives 24 bytes, but DML_TILE_OPERATOR_DESC takes 32"),
        *(
            (wrong, "is no address of a DML_TILE_OPERATOR_DESC; it must be from 0 to 0xf+e0$")
            for wrong in (-1, -(2**63), 2**64, 2**64 - 1)
        ),
    ],
)
def test_a_structure_that_is_too_small_and_what_is_no_address_are_errors(source: Any, message: str) -> None:
    with pytest.raises(ValueError if isinstance(source, int) else TypeError, match=message):
        read_tile_operator_desc(source)


def example(buffer: dict[str, Any] | None = None, tensor: dict[str, Any] | None = None, **tile: Any) -> Any:
    """Return the example with changed fields of InputTensor's description, of InputTensor, and of the tile."""
    struct = write_tile_operator_desc(GOOD)
    there = struct.InputTensor.contents
    for part, fields in ((DML_BUFFER_TENSOR_DESC.from_address(there.Desc), buffer), (there, tensor), (struct, tile)):
        for field, value in (fields or {}).items():
            setattr(part, field, value)
    return struct


NOWHERE = 16  # no process has memory there


@pytest.mark.parametrize("kind", [0, 178, 1000, UINT_MAX])
def test_the_description_of_an_unknown_operator_or_kind_of_tensor_is_left_alone(kind: int) -> None:
    read = read_operator_desc(DML_OPERATOR_DESC(kind, NOWHERE))
    assert read == OperatorDesc(type=kind, desc=UNKNOWN_STRUCT)
    assert read_operator_desc(DML_OPERATOR_DESC(kind, None)) == OperatorDesc(type=kind, desc=None)
    tile = read_tile_operator_desc(example(tensor={"Type": kind or 70, "Desc": NOWHERE}))
    assert tile is not None
    assert tile.input_tensor == TensorDesc(type=kind or 70, desc=None)


AT_A_PAGE_S_END = """
import ctypes, mmap, sys
from dml_tile.readers.c_structs import *

page = mmap.PAGESIZE
memory = mmap.mmap(-1, 2 * page)
end = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + page
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(end), ctypes.c_size_t(page), 0) == 0
sizes = (ctypes.c_uint32 * 8).from_address(end - 32)
sizes[:] = [1] * 8
uints = ctypes.POINTER(ctypes.c_uint32)
array = ctypes.cast(ctypes.c_void_p(end - 32), uints)

for count in (0, 1, 7, 8, 9, 4_000_000_000, 2**32 - 1):
    buffer = DML_BUFFER_TENSOR_DESC(1, 0, count, array, array, 4, 0)
    tensor = DML_TENSOR_DESC(1, ctypes.addressof(buffer))
    tile = DML_TILE_OPERATOR_DESC(ctypes.pointer(tensor), ctypes.pointer(tensor), count, array)
    operator = DML_OPERATOR_DESC.from_address(end - 32 - 16)
    operator.Type, operator.Desc = 70, ctypes.addressof(tile)
    read = read_operator_desc(ctypes.addressof(operator))
    print(read.desc.repeats_count, len(read.desc.repeats), len(read.desc.input_tensor.desc.sizes))

sizes[:] = [0] * 8
for struct, reader in (DML_OPERATOR_DESC, read_operator_desc), (DML_TILE_OPERATOR_DESC, read_tile_operator_desc):
    print(reader(end - ctypes.sizeof(struct)) is not None)
sys.stdout.flush()
if sys.argv[1:]:
    array[8]
"""


@pytest.mark.skipif(sys.platform == "win32", reason="mprotect is POSIX")
def test_nothing_is_read_past_what_a_count_allows() -> None:
    command = [sys.executable, "-c", AT_A_PAGE_S_END]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    counts = [(0, 0), (1, 1), (7, 7), (8, 8), (9, 0), (BILLIONS, 0), (UINT_MAX, 0)]
    assert done.stdout.splitlines() == [f"{count} {read} {read}" for count, read in counts] + ["True", "True"]
    beyond = subprocess.run([*command, "beyond"], capture_output=True, check=False)
    assert beyond.returncode < 0, "the memory behind was to be inaccessible"


def test_the_memory_lives_as_long_as_what_was_written() -> None:
    one = write_operator_desc(OPERATOR)
    both = (DML_OPERATOR_DESC * 2)(one, write_operator_desc(OPERATOR))  # copies, which keep the memory too
    del one
    gc.collect()
    overwritten = [bytes(size) for size in range(16, 256) for _ in range(200)]
    assert [read_operator_desc(byref(both, 16 * i)) for i in range(2)] == [OPERATOR, OPERATOR]
    del overwritten


# Random descriptors, faulty ones too


TILES = tiles("6_4") | invalid_tiles("6_4")
UNKNOWN = (st.integers(0, 9) | st.integers(0, UINT_MAX)).filter(lambda value: value not in operators())
OPERATORS = st.fixed_dictionaries({"Type": st.just(70) | UNKNOWN, "Desc": st.none() | TILES}).map(
    OperatorDesc.model_validate
)


def kept(values: tuple[int, ...] | None, count: int) -> tuple[int, ...] | None:
    """Return what C keeps of an array: as much as its count says, and no length of its own."""
    return None if values is None else (*values, *[0] * 8)[: count if count <= 8 else 0]


def kept_buffer(desc: BufferTensorDesc) -> BufferTensorDesc:
    arrays = {name: kept(getattr(desc, name), desc.dimension_count) for name in ("sizes", "strides")}
    return BufferTensorDesc.model_validate(dict(desc) | arrays)


def kept_tensor(desc: TensorDesc | None) -> TensorDesc | None:
    if desc is None or desc.desc is None or not isinstance(desc.type, TensorType):
        return desc and TensorDesc(type=desc.type, desc=None)
    return TensorDesc(type=desc.type, desc=kept_buffer(desc.desc))


def kept_tile(desc: TileOperatorDesc) -> TileOperatorDesc:
    return TileOperatorDesc(
        input_tensor=kept_tensor(desc.input_tensor),
        output_tensor=kept_tensor(desc.output_tensor),
        repeats_count=desc.repeats_count,
        repeats=kept(desc.repeats, desc.repeats_count),
    )


@given(OPERATORS)
def test_an_operator_written_for_c_reads_back_as_c_keeps_it(operator: OperatorDesc) -> None:
    tile = tile_of(operator)
    read = read_operator_desc(write_operator_desc(operator))
    unknown = UNKNOWN_STRUCT if operator.desc else None
    assert read == OperatorDesc(type=operator.type, desc=kept_tile(tile) if tile else unknown)
    assert read_operator_desc(write_operator_desc(read)) == read
    for level in ("1_0", "5_0", "6_4"):
        check(read, level)
    if tile:
        assert read_tile_operator_desc(write_tile_operator_desc(tile)) == read.desc
        assert read_operator_desc(write_operator_desc(tile)) == read
