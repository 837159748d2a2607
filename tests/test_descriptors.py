"""The mirrors of the C structs: their values and their spellings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from pydantic import ValidationError

from dml_tile.descriptors.tile import BufferTensorDesc, OperatorDesc, TensorDesc, TileOperatorDesc, c_path
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import UINT64_MAX, UINT_MAX, OperatorType, TensorFlags, TensorType
from dml_tile.geometry.layout import calc_buffer_tensor_size
from tests.helpers.tile_fields import TILE_FIELDS

FACTS = json.loads((Path(__file__).parent / "data" / "dxdispatch_json.facts.json").read_text())["cases"]
TENSOR_FACTS = [case for case in FACTS if case["kind"] == "tensor_desc" and "DataType" in case["expect"]]

FLOATS = {"DataType": "FLOAT32", "Sizes": [2, 3]}


def buffer(**fields: Any) -> BufferTensorDesc:
    return BufferTensorDesc.model_validate(FLOATS | fields)


def test_what_is_left_out_is_worked_out() -> None:
    desc = buffer()
    assert desc.dimension_count == 2
    assert desc.total_tensor_size_in_bytes == 24
    assert (desc.flags, desc.strides, desc.guaranteed_base_offset_alignment) == (TensorFlags.NONE, None, 0)


def test_an_explicit_0_is_kept() -> None:
    assert buffer(TotalTensorSizeInBytes=0, DimensionCount=0).total_tensor_size_in_bytes == 0
    assert buffer(DimensionCount=0).dimension_count == 0


@pytest.mark.parametrize("case", TENSOR_FACTS, ids=lambda case: case["id"])
def test_a_tensor_is_read_as_dxdispatch_reads_it(case: dict[str, Any]) -> None:
    tensor, expected = TensorDesc.model_validate(case["json"]), case["expect"]
    assert tensor.desc is not None
    assert tensor.type == TensorType[expected.get("Type", "BUFFER")]
    assert tensor.desc.data_type == TensorDataType[expected["DataType"]]
    assert tensor.desc.flags == TensorFlags[expected["Flags"]]
    assert tensor.desc.dimension_count == expected["DimensionCount"]
    assert list(tensor.desc.sizes or ()) == expected["Sizes"]
    assert (list(tensor.desc.strides) if tensor.desc.strides else None) == expected["Strides"]
    total = expected["TotalTensorSizeInBytes"]
    if total == "DMLCalcBufferTensorSize":
        total = calc_buffer_tensor_size(tensor.desc.data_type, expected["Sizes"], expected["Strides"])
    assert tensor.desc.total_tensor_size_in_bytes == total
    assert tensor.desc.guaranteed_base_offset_alignment == expected["GuaranteedBaseOffsetAlignment"]


@pytest.mark.parametrize(
    ("spelling", "value"),
    [
        ("FLOAT16", TensorDataType.FLOAT16),
        ("DML_TENSOR_DATA_TYPE_FLOAT16", TensorDataType.FLOAT16),
        (2, TensorDataType.FLOAT16),
        (TensorDataType.FLOAT16, TensorDataType.FLOAT16),
        (0, TensorDataType.UNKNOWN),
        (14, 14),
        (UINT_MAX, UINT_MAX),
    ],
)
def test_a_data_type_is_read_in_each_spelling(spelling: str | int, value: int) -> None:
    read = buffer(DataType=spelling).data_type
    assert read == value
    assert isinstance(read, TensorDataType) == (value <= 13)


@pytest.mark.parametrize("bad", ["FLOAT", "DML_TENSOR_TYPE_FLOAT32", "", True, 1.0, -1, UINT_MAX + 1, None, []])
def test_what_is_no_data_type_is_an_error_that_lists_them(bad: Any) -> None:
    with pytest.raises(ValidationError, match=r"expected one of UNKNOWN, FLOAT32, .*INT4") as caught:
        buffer(DataType=bad)
    assert caught.value.errors()[0]["loc"] == ("DataType",)


def test_a_near_spelling_is_suggested() -> None:
    with pytest.raises(
        ValidationError, match=r"No enumerator has this name \(did you mean FLOAT32\?\); expected one of"
    ):
        buffer(DataType="flaot32")


@pytest.mark.parametrize(
    ("spelling", "value"),
    [
        ("NONE", 0),
        ("DML_TENSOR_FLAG_OWNED_BY_DML", 1),
        ("OWNED_BY_DML", 1),
        ([], 0),
        (["NONE", "OWNED_BY_DML"], 1),
        (["OWNED_BY_DML", 4], 5),
        (6, 6),
    ],
)
def test_flags_are_read_in_each_spelling(spelling: Any, value: int) -> None:
    assert buffer(Flags=spelling).flags == value


@pytest.mark.parametrize("bad", ["OWNED", ["NONE", "X"], 1.5, True, {}, None])
def test_what_are_no_flags_is_an_error(bad: Any) -> None:
    with pytest.raises(
        ValidationError, match="a name, an integer or a list of them; expected one of NONE, OWNED_BY_DML"
    ):
        buffer(Flags=bad)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("Sizes", [2, -1]),
        ("Sizes", [2, UINT_MAX + 1]),
        ("Sizes", [2, "3"]),
        ("Sizes", [2, 3.0]),
        ("Sizes", [2, True]),
        ("Strides", [1, -1]),
        ("DimensionCount", -1),
        ("DimensionCount", UINT_MAX + 1),
        ("TotalTensorSizeInBytes", -1),
        ("TotalTensorSizeInBytes", UINT64_MAX + 1),
        ("GuaranteedBaseOffsetAlignment", UINT_MAX + 1),
        ("Stride", [1]),
    ],
)
def test_what_no_c_field_can_hold_is_an_error_with_its_path(field: str, value: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        TileOperatorDesc.model_validate(
            {"InputTensor": FLOATS | {field: value}, "OutputTensor": FLOATS, "Repeats": [1, 1]}
        )
    location = caught.value.errors()[0]["loc"]
    assert c_path(location).startswith(f"InputTensor.{field}")


def test_the_path_of_an_error_names_the_entry() -> None:
    assert c_path(("InputTensor", "Desc", "Sizes", 2)) == "InputTensor.Sizes[2]"
    assert c_path(("Repeats", 0)) == "Repeats[0]"
    assert c_path(()) == ""


@given(TILE_FIELDS)
def test_whatever_the_c_structs_hold_is_held_and_reads_back_equal(tile: dict[str, Any]) -> None:
    desc = TileOperatorDesc.model_validate(tile)
    dumped = desc.model_dump(mode="json", by_alias=True)
    assert TileOperatorDesc.model_validate(dumped) == desc
    assert TileOperatorDesc.model_validate_json(json.dumps(dumped)) == desc
    assert list(dumped) == ["InputTensor", "OutputTensor", "RepeatsCount", "Repeats"]
    assert hash(TileOperatorDesc.model_validate(tile)) == hash(desc)


def test_json_has_c_names_and_leaves_unknown_values_as_they_are() -> None:
    desc = TileOperatorDesc.from_input(data_type="INT8", sizes=[2], repeats=[3], flags="OWNED_BY_DML")
    dumped = desc.model_dump(mode="json", by_alias=True)
    assert dumped["InputTensor"]["Type"] == "DML_TENSOR_TYPE_BUFFER"
    assert dumped["InputTensor"]["Desc"]["DataType"] == "DML_TENSOR_DATA_TYPE_INT8"
    assert dumped["InputTensor"]["Desc"]["Flags"] == "DML_TENSOR_FLAG_OWNED_BY_DML"
    odd = TensorDesc.model_validate({"Type": 7, "Desc": FLOATS | {"DataType": 99, "Flags": 6}})
    assert odd.model_dump(mode="json", by_alias=True) == {
        "Type": 7,
        "Desc": {
            "DataType": 99,
            "Flags": 6,
            "DimensionCount": 2,
            "Sizes": [2, 3],
            "Strides": None,
            "TotalTensorSizeInBytes": 0,
            "GuaranteedBaseOffsetAlignment": 0,
        },
    }


def test_attributes_and_c_names_are_both_accepted() -> None:
    by_attribute = BufferTensorDesc(data_type=TensorDataType.FLOAT32, sizes=(2, 3))
    assert by_attribute == buffer()
    tensor = TensorDesc(desc=by_attribute)
    assert tensor == TensorDesc.model_validate(FLOATS) == TensorDesc.model_validate({"Type": "BUFFER", "Desc": FLOATS})
    both = TileOperatorDesc(input_tensor=tensor, output_tensor=tensor, repeats=(1, 1))
    assert both == TileOperatorDesc.model_validate(
        {"InputTensor": FLOATS, "OutputTensor": by_attribute, "Repeats": [1, 1]}
    )


def test_null_pointers_are_none() -> None:
    assert TensorDesc.model_validate({"NullDesc": True} | FLOATS | {"Type": 2}) == TensorDesc(type=2, desc=None)
    assert TensorDesc.model_validate({"NullDesc": False} | FLOATS).desc == buffer()
    desc = TileOperatorDesc.model_validate({"InputTensor": None, "OutputTensor": None, "Repeats": None})
    assert (desc.input_tensor, desc.output_tensor, desc.repeats, desc.repeats_count) == (None, None, None, 0)
    assert buffer(Sizes=None).dimension_count == 0


def test_empty_strides_are_null_strides() -> None:
    assert buffer(Strides=[]).strides is None


def test_the_output_is_inferred_from_the_input() -> None:
    desc = TileOperatorDesc.from_input(
        data_type=np.int64(2),
        sizes=np.array([2, 3]),
        repeats=(np.int64(2), 1),
        strides=[8, 1],
        flags=TensorFlags.OWNED_BY_DML,
        output_strides=[4, 1],
    )
    assert desc.input_tensor is not None
    assert desc.output_tensor is not None
    assert desc.input_tensor.desc == BufferTensorDesc(
        data_type=TensorDataType.FLOAT16, sizes=(2, 3), strides=(8, 1), flags=TensorFlags.OWNED_BY_DML
    )
    assert desc.output_tensor.desc == BufferTensorDesc(
        data_type=TensorDataType.FLOAT16, sizes=(4, 3), strides=(4, 1), total_tensor_size_in_bytes=32
    )
    assert (desc.repeats_count, desc.repeats) == (2, (2, 1))


def test_an_output_size_beyond_a_uint_cannot_be_described() -> None:
    with pytest.raises(ValidationError, match=r"OutputTensor\.Desc\.Sizes\.0"):
        TileOperatorDesc.from_input(data_type="UINT8", sizes=[2**31], repeats=[2])


def test_sizes_and_repeats_of_different_lengths_cannot_be_tiled() -> None:
    with pytest.raises(ValueError, match="3 sizes take as many repeats; 2 were provided"):
        TileOperatorDesc.from_input(data_type="UINT8", sizes=[1, 2, 3], repeats=[2, 2])


@pytest.mark.parametrize("wrong", [3, {2, 3}, {2: 1}, b"23", "23", np.array(3), None])
def test_what_is_no_sequence_is_an_error_that_says_what_was_expected(wrong: Any) -> None:
    expected = "a list or a tuple of integers, or an array of one dimension"
    for name in ("sizes", "repeats"):
        with pytest.raises(TypeError, match=f"^{name} is .*; {expected} was expected$"):
            TileOperatorDesc.from_input(**{"data_type": "INT8", "sizes": [2, 3], "repeats": [1, 1]} | {name: wrong})
    if wrong is not None:
        with pytest.raises(ValidationError, match=f"Strides\n  Input should be {expected}"):
            buffer(Strides=wrong)


def test_equal_descriptions_of_an_input_give_one_object() -> None:
    first, second = (TileOperatorDesc.from_input(data_type="INT8", sizes=[2, 3], repeats=(1, 2)) for _ in range(2))
    assert first is second
    assert first is not TileOperatorDesc.from_input(data_type="INT8", sizes=[2, 3], repeats=(2, 1))
    assert first != TileOperatorDesc.from_input(data_type="INT8", sizes=[2, 3], repeats=(1, 2), flags="OWNED_BY_DML")


@pytest.mark.parametrize("two", [2.0, np.float64(2), "2", [2], None])
def test_what_equals_a_number_that_is_known_is_no_number(two: Any) -> None:
    TileOperatorDesc.from_input(data_type="INT8", sizes=[2], repeats=[2])
    with pytest.raises(ValidationError):
        TileOperatorDesc.from_input(data_type="INT8", sizes=[2], repeats=[two])
    with pytest.raises(ValidationError):
        TileOperatorDesc.from_input(data_type="INT8", sizes=[two], repeats=[2])


def test_an_operator_is_read_nested_or_flat() -> None:
    tile = {"InputTensor": FLOATS, "OutputTensor": FLOATS, "Repeats": [1, 1]}
    nested = OperatorDesc.model_validate({"Type": "DML_OPERATOR_TILE", "Desc": tile})
    assert nested == OperatorDesc.model_validate({"type": "TILE", "desc": tile})
    assert nested == OperatorDesc.model_validate({"Type": 70} | tile)
    assert nested.type is OperatorType.TILE
    assert nested.model_dump(mode="json", by_alias=True)["Type"] == "DML_OPERATOR_TILE"


def test_descriptors_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        buffer().sizes = (1,)


def tile(**fields: Any) -> TileOperatorDesc:
    return TileOperatorDesc.model_validate(
        {"InputTensor": FLOATS, "OutputTensor": FLOATS | {"Sizes": [4, 3]}, "Repeats": [2, 1]} | fields
    )


@pytest.mark.parametrize(
    ("desc", "line"),
    [
        (
            TileOperatorDesc.from_input(data_type="INT64", sizes=[2, 3, 4], repeats=[1, 2, 1]),
            "INT64 {2,3,4} x {1,2,1} -> {2,6,4}",
        ),
        (
            TileOperatorDesc.from_input(
                data_type="INT8", sizes=[2, 3], repeats=[1, 2], strides=[4, 1], output_strides=[8, 1]
            ),
            "INT8 {2,3} strides {4,1} x {1,2} -> {2,6} strides {8,1}",
        ),
        (tile(OutputTensor={"DataType": "INT32", "Sizes": [4, 3]}), "FLOAT32 {2,3} x {2,1} -> INT32 {4,3}"),
        (tile(InputTensor=None, OutputTensor=None, Repeats=None), "null x null -> null"),
        (tile(InputTensor={"Type": "BUFFER", "Desc": None}), "null x {2,1} -> FLOAT32 {4,3}"),
        (tile(InputTensor={"Type": 7} | FLOATS), "tensor type 7 FLOAT32 {2,3} x {2,1} -> {4,3}"),
        (tile(InputTensor=FLOATS | {"DataType": 99}), "data type 99 {2,3} x {2,1} -> FLOAT32 {4,3}"),
        (
            tile(InputTensor=FLOATS | {"DimensionCount": 5}, RepeatsCount=0),
            "FLOAT32 {2,3} (DimensionCount 5) x {2,1} (RepeatsCount 0) -> {4,3}",
        ),
        (tile(Repeats=[1] * 1000), f"FLOAT32 {{2,3}} x {{{'1,' * 16}…}} of 1000 -> {{4,3}}"),
        (OperatorDesc(type=OperatorType.TILE, desc=tile()), "FLOAT32 {2,3} x {2,1} -> {4,3}"),
        (OperatorDesc(type=OperatorType.TILE, desc=None), "null"),
        (OperatorDesc(type=12, desc=None), "DML_OPERATOR_ELEMENT_WISE_FLOOR"),
        (OperatorDesc(type=1000, desc=None), "operator 1000"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_descriptor_prints_as_one_line(desc: TileOperatorDesc | OperatorDesc, line: str) -> None:
    assert str(desc) == line


@pytest.mark.parametrize("model", [TensorDesc, TileOperatorDesc])
def test_pydantic_s_options_reach_it(model: type[TensorDesc | TileOperatorDesc]) -> None:
    desc = TileOperatorDesc.from_input(data_type="INT8", sizes=[2], repeats=[3])
    expected = desc.input_tensor if model is TensorDesc else desc
    assert expected is not None
    dumped = expected.model_dump(mode="json", by_alias=True) | {"more": 1}
    assert model.model_validate(dumped, extra="ignore") == expected
    assert model.model_validate_json(json.dumps(dumped), extra="ignore") == expected
    with pytest.raises(ValidationError, match="more"):
        model.model_validate(dumped)
    with pytest.raises(ValidationError, match="more"):
        model.model_validate_json(json.dumps(dumped))
