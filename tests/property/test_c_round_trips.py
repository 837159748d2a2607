"""Random descriptors, faulty ones too: what is written for C, as Python or as JSON reads back."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dml_tile.descriptors.tile import BufferTensorDesc, OperatorDesc, TensorDesc, TileOperatorDesc
from dml_tile.directml.enums import OperatorType, TensorType
from dml_tile.emit.source import json_text, source_text
from dml_tile.readers.c_structs import (
    read_operator_desc,
    read_tile_operator_desc,
    write_operator_desc,
    write_tile_operator_desc,
)
from dml_tile.readers.descriptors import JsonDescriptor, read_document
from dml_tile.rules.check import check
from tests.helpers.tile_fields import TILE_FIELDS, UINTS

TILES = TILE_FIELDS.map(TileOperatorDesc.model_validate)
OPERATORS = st.fixed_dictionaries({"Type": st.just(70) | UINTS, "Desc": st.none() | TILES}).map(
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


@given(TILES)
def test_a_tile_written_for_c_reads_back_as_c_keeps_it(desc: TileOperatorDesc) -> None:
    read = read_tile_operator_desc(write_tile_operator_desc(desc))
    assert read == kept_tile(desc)
    assert read_tile_operator_desc(write_tile_operator_desc(read)) == read
    assert read_operator_desc(write_operator_desc(desc)) == OperatorDesc(type=OperatorType.TILE, desc=read)
    check(read)


@given(OPERATORS)
def test_an_operator_written_for_c_reads_back_as_c_keeps_it(operator: OperatorDesc) -> None:
    tile = operator.desc if operator.type == OperatorType.TILE else None
    read = read_operator_desc(write_operator_desc(operator))
    assert read == OperatorDesc(type=operator.type, desc=tile and kept_tile(tile))


@given(TILES | OPERATORS)
def test_python_source_builds_an_equal_descriptor(desc: TileOperatorDesc | OperatorDesc) -> None:
    names: dict[str, Any] = {}
    exec("".join(source_text("python", "-", [JsonDescriptor("", desc)])), names)
    assert names["tile_desc"] == desc


@given(TILES)
def test_json_reads_back_equal(desc: TileOperatorDesc) -> None:
    assert list(read_document(json_text([desc]).encode())) == [JsonDescriptor("", desc)]
