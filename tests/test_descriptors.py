"""The mirrors of the C structs: their values, their spellings, their copies and their repr."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dml_tile.checking import check
from dml_tile.descriptors.graph import GraphDesc
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.structs import JSON_DOCUMENT
from dml_tile.descriptors.tile import BufferTensorDesc, TensorDesc, TileOperatorDesc, c_path
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import UINT64_MAX, UINT_MAX, OperatorType, TensorFlags
from tests.helpers.strategies import invalid_tiles, nearly_valid_tiles, tiles

FLOATS = {"DataType": "FLOAT32", "Sizes": [2, 3]}


def buffer(**fields: Any) -> BufferTensorDesc:
    return BufferTensorDesc.model_validate(FLOATS | fields)


def tile(**fields: Any) -> TileOperatorDesc:
    return TileOperatorDesc.model_validate(
        {"InputTensor": FLOATS, "OutputTensor": FLOATS | {"Sizes": [4, 3]}, "Repeats": [2, 1]} | fields
    )


def packed(data_type: Any, sizes: Any, repeats: Any, **options: Any) -> TileOperatorDesc:
    return TileOperatorDesc.from_input(data_type=data_type, sizes=sizes, repeats=repeats, **options)


SPELLINGS: dict[tuple[str, int], list[Any]] = {
    ("DataType", 2): [
        *("FLOAT16", "DML_TENSOR_DATA_TYPE_FLOAT16", 2, TensorDataType.FLOAT16, np.float16, np.dtype("f2")),
        *("float16", "Float16", "dml_tensor_data_type_float16"),
    ],
    ("DataType", 0): [0],
    ("DataType", 14): [14],
    ("DataType", UINT_MAX): [UINT_MAX],
    ("Flags", 0): ["NONE", []],
    ("Flags", 1): ["OWNED_BY_DML", "DML_TENSOR_FLAG_OWNED_BY_DML", ["NONE", "OWNED_BY_DML"]],
    ("Flags", 5): [["OWNED_BY_DML", 4]],
    ("Flags", 6): [6],
}


@pytest.mark.parametrize(("field", "value"), SPELLINGS)
def test_an_enumerator_is_read_in_each_spelling(field: str, value: int) -> None:
    for spelling in SPELLINGS[field, value]:
        read = buffer(**{field: spelling})
        assert (read.data_type if field == "DataType" else read.flags) == value
        assert isinstance(read.data_type, TensorDataType) == (read.data_type <= 13)


NO_ENUMERATORS: dict[tuple[str, str], list[Any]] = {
    ("DataType", "expected one of UNKNOWN, FLOAT32, .*INT4"): ["", True, 1.0, -1, UINT_MAX + 1, None, []],
    ("DataType", r"No enumerator has this name \(did you mean \w*FLOAT\w+\?\) "): [
        *("FLOAT", "DML_TENSOR_TYPE_FLOAT32", "flaot32")
    ],
    ("Flags", "a name, an integer or a list of them; expected one of NONE, OWNED_BY_DML"): [
        *("OWNED", ["NONE", "X"], 1.5, True, {}, None)
    ],
}


@pytest.mark.parametrize(("field", "message"), NO_ENUMERATORS)
def test_what_is_no_enumerator_is_an_error_that_lists_them(field: str, message: str) -> None:
    for bad in NO_ENUMERATORS[field, message]:
        with pytest.raises(ValidationError, match=message) as caught:
            buffer(**{field: bad})
        assert caught.value.errors()[0]["loc"] == (field,)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("Sizes", ([2, -1], [2, UINT_MAX + 1], [2, "3"], [2, 3.0], [2, True], [2, None])),
        ("Sizes", ([np.bool_(True)], [np.float32(2)])),
        ("Strides", ([1, -1],)),
        ("DimensionCount", (-1, UINT_MAX + 1)),
        ("TotalTensorSizeInBytes", (-1, UINT64_MAX + 1)),
        ("GuaranteedBaseOffsetAlignment", (UINT_MAX + 1,)),
        ("Stride", ([1],)),
    ],
)
def test_what_no_c_field_can_hold_is_an_error_with_its_path(field: str, values: tuple[Any, ...]) -> None:
    for value in values:
        with pytest.raises(ValidationError) as caught:
            tile(InputTensor=FLOATS | {field: value})
        assert c_path(caught.value.errors()[0]["loc"]).startswith(f"InputTensor.{field}")


ANY_TILE = tiles("6_4") | nearly_valid_tiles("6_4") | invalid_tiles("6_4")


@given(ANY_TILE)
def test_whatever_the_c_structs_hold_is_held_and_reads_back_equal(desc: TileOperatorDesc) -> None:
    dumped = desc.model_dump(mode="json", by_alias=True)
    assert TileOperatorDesc.model_validate(dumped) == desc
    assert TileOperatorDesc.model_validate_json(json.dumps(dumped)) == desc
    assert list(dumped) == ["InputTensor", "OutputTensor", "RepeatsCount", "Repeats"]
    assert hash(TileOperatorDesc.model_validate(dumped)) == hash(desc)
    assert eval(repr(desc)) == desc == desc.replace()


def test_json_has_c_names_and_leaves_unknown_values_as_they_are() -> None:
    desc = packed("INT8", [2], [3], flags="OWNED_BY_DML")
    dumped = desc.model_dump(mode="json", by_alias=True)
    assert dumped["InputTensor"]["Type"] == "DML_TENSOR_TYPE_BUFFER"
    assert dumped["InputTensor"]["Desc"]["DataType"] == "DML_TENSOR_DATA_TYPE_INT8"
    assert dumped["InputTensor"]["Desc"]["Flags"] == "DML_TENSOR_FLAG_OWNED_BY_DML"
    odd = TensorDesc.model_validate({"Type": 7, "Desc": FLOATS | {"DataType": 99, "Flags": 6}})
    rest = {"Strides": None, "TotalTensorSizeInBytes": 0, "GuaranteedBaseOffsetAlignment": 0}
    expected = {"DataType": 99, "Flags": 6, "DimensionCount": 2, "Sizes": [2, 3]} | rest
    assert odd.model_dump(mode="json", by_alias=True) == {"Type": 7, "Desc": expected}


def test_null_pointers_are_none() -> None:
    assert TensorDesc.model_validate({"NullDesc": True} | FLOATS | {"Type": 2}) == TensorDesc(type=2, desc=None)
    assert TensorDesc.model_validate({"NullDesc": False} | FLOATS).desc == buffer()
    nulls = dict.fromkeys(("input_tensor", "output_tensor", "repeats")) | {"repeats_count": 0}
    assert dict(tile(InputTensor=None, OutputTensor=None, Repeats=None)) == nulls
    assert (buffer(Sizes=None).dimension_count, buffer(Strides=[]).strides) == (0, None)


@pytest.mark.parametrize("wrong", [3, {2, 3}, {2: 1}, b"23", "23", np.array(3), None])
def test_what_is_no_sequence_is_an_error_that_says_what_was_expected(wrong: Any) -> None:
    expected = "a list or a tuple of integers, or an array of one dimension"
    for name in ("sizes", "repeats"):
        with pytest.raises(TypeError, match=f"^{name} is .*; {expected} was expected$"):
            TileOperatorDesc.from_input(**{"data_type": "INT8", "sizes": [2, 3], "repeats": [1, 1]} | {name: wrong})
    if wrong is not None:
        with pytest.raises(ValidationError, match=f"Strides\n  Input should be {expected}"):
            buffer(Strides=wrong)
        with pytest.raises(ValidationError, match="Nodes\n  Input should be a list or a tuple \\["):
            GraphDesc.model_validate({"InputCount": 1, "OutputCount": 1, "Nodes": wrong})


@pytest.mark.parametrize("two", [2.0, np.float64(2), "2", [2], None])
def test_what_equals_a_number_that_is_known_is_no_number(two: Any) -> None:
    packed("INT8", [2], [2])
    for sizes, repeats in (([2], [two]), ([two], [2])):
        with pytest.raises(ValidationError):
            packed("INT8", sizes, repeats)


def test_descriptors_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        buffer().sizes = (1,)


@pytest.mark.parametrize(
    ("desc", "line"),
    [
        (packed("INT64", [2, 3, 4], [1, 2, 1]), "INT64 {2,3,4} x {1,2,1} -> {2,6,4}"),
        (packed("INT8", [2, 3], [1, 2], strides=[4, 1], output_strides=[8, 1]),
         "INT8 {2,3} strides {4,1} x {1,2} -> {2,6} strides {8,1}"),
        (tile(OutputTensor={"DataType": "INT32", "Sizes": [4, 3]}), "FLOAT32 {2,3} x {2,1} -> INT32 {4,3}"),
        (tile(InputTensor=None, OutputTensor=None, Repeats=None), "null x null -> null"),
        (tile(InputTensor={"Type": "BUFFER", "Desc": None}), "null x {2,1} -> FLOAT32 {4,3}"),
        (tile(InputTensor={"Type": 7} | FLOATS), "tensor type 7 FLOAT32 {2,3} x {2,1} -> {4,3}"),
        (tile(InputTensor=FLOATS | {"DataType": 99}), "data type 99 {2,3} x {2,1} -> FLOAT32 {4,3}"),
        (tile(InputTensor=FLOATS | {"DimensionCount": 5}, RepeatsCount=0),
         "FLOAT32 {2,3} (DimensionCount 5) x {2,1} (RepeatsCount 0) -> {4,3}"),
        (tile(Repeats=[1] * 1000), f"FLOAT32 {{2,3}} x {{{'1,' * 16}…}} of 1000 -> {{4,3}}"),
        (OperatorDesc(type=OperatorType.TILE, desc=tile()), "FLOAT32 {2,3} x {2,1} -> {4,3}"),
        (OperatorDesc(type=OperatorType.TILE, desc=None), "null"),
        (OperatorDesc(type=12, desc=None), "DML_OPERATOR_ELEMENT_WISE_FLOOR"),
        (OperatorDesc(type=1000, desc=None), "operator 1000"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_descriptor_prints_as_one_line(desc: TileOperatorDesc | OperatorDesc, line: str) -> None:
    assert str(desc) == line


@pytest.mark.parametrize("desc", [packed("INT8", [2], [3]), TensorDesc.model_validate(FLOATS)], ids=["tile", "tensor"])
def test_pydantic_s_options_reach_it(desc: TensorDesc | TileOperatorDesc) -> None:
    dumped: Any = desc.model_dump(mode="json", by_alias=True) | {"more": 1}
    for read, data in (desc.model_validate, dumped), (desc.model_validate_json, json.dumps(dumped)):
        assert read(data, extra="ignore") == desc
        with pytest.raises(ValidationError, match="more"):
            read(data)


# Random JSON: read within pydantic's core, or respelled first, it is the same

UINTS: st.SearchStrategy[Any] = st.one_of(
    st.integers(0, 9), st.integers(-1, UINT_MAX + 1), st.sampled_from([None, 1.5, 2.0, True, "4", []])
)
ARRAYS = st.one_of(st.lists(st.integers(0, 5), max_size=4), st.lists(UINTS, max_size=3), st.none(), st.just(3))
DATA_TYPES = st.sampled_from(["FLOAT32", "DML_TENSOR_DATA_TYPE_INT8", 4, 99, "float32", "F", -1, None, ["FLOAT32"]])
FLAGS = st.sampled_from(["NONE", "DML_TENSOR_FLAG_OWNED_BY_DML", 1, 6, ["OWNED_BY_DML", 2], [], "none", None])
TYPES = st.sampled_from(["BUFFER", "DML_TENSOR_TYPE_BUFFER", 1, 7, "buffer", None])
BUFFERS = st.fixed_dictionaries(
    {"DataType": DATA_TYPES, "Sizes": ARRAYS},
    optional={
        "Flags": FLAGS,
        "DimensionCount": UINTS,
        "Strides": ARRAYS,
        "TotalTensorSizeInBytes": UINTS,
        "GuaranteedBaseOffsetAlignment": UINTS,
        "sizes": ARRAYS,
        "data_type": DATA_TYPES,
        "Unknown": st.just(1),
    },
)
DESCS = st.one_of(BUFFERS, BUFFERS, st.none(), st.just([]), st.just({}))


@st.composite
def tensors(draw: st.DrawFn) -> Any:
    """A tensor in any spelling, right or wrong."""
    match draw(st.sampled_from(["nested", "nested", "bare", "bare", "mixed", "odd"])):
        case "nested":
            return draw(
                st.fixed_dictionaries({draw(st.sampled_from(["Desc", "desc"])): DESCS}, optional={"Type": TYPES})
            )
        case "bare":
            return draw(BUFFERS) | draw(
                st.fixed_dictionaries({}, optional={"Type": TYPES, "type": TYPES, "NullDesc": st.booleans()})
            )
        case "mixed":
            return draw(BUFFERS) | {"Desc": draw(DESCS)}
        case _:
            return draw(st.sampled_from([None, 3, "x", [], {}, {"Type": 1}, {"NullDesc": True}]))


def read(reader: Callable[..., TileOperatorDesc | TensorDesc], *arguments: Any, **options: Any) -> Any:
    """The descriptor, with the fields that were given, or the errors; their texts name Python's types or JSON's."""
    try:
        desc = reader(*arguments, **options)
    except ValidationError as error:
        return [(each["loc"], each["type"]) for each in error.errors()]
    return desc, repr(desc)


@given(tensors(), tensors(), ARRAYS)
def test_a_tile_or_a_tensor_of_json_is_that_of_its_objects(source: Any, destination: Any, repeats: Any) -> None:
    tile = {"InputTensor": source, "OutputTensor": destination, "Repeats": repeats}
    for model, desc in (TileOperatorDesc, tile), (TensorDesc, source):
        expected = read(model.model_validate, desc, context=JSON_DOCUMENT)
        assert read(model.model_validate_json, json.dumps(desc)) == expected


# Copies are checked, and a repr reads back

PLAIN = BufferTensorDesc(data_type="FLOAT32", sizes=[2, 3])
TILE = packed("INT8", [2, 3], [1, 2])


def output_of(desc: TileOperatorDesc) -> BufferTensorDesc:
    assert desc.output_tensor is not None
    assert desc.output_tensor.desc is not None
    return desc.output_tensor.desc


PADDED = packed("INT8", [2, 3], [1, 2], output_strides=[8, 1])


@pytest.mark.parametrize(
    ("desc", "changes", "text"),
    [
        (PLAIN, {"sizes": (4, np.int64(5))}, "FLOAT32 {4,5}"),
        (PLAIN, {"Sizes": [4, 5]}, "FLOAT32 {4,5}"),
        (TILE, {"repeats": [2, 2]}, "INT8 {2,3} x {2,2} -> {4,6}"),
        (TILE, {"input_tensor": PLAIN}, "FLOAT32 {2,3} x {1,2} -> {2,6}"),
        (TILE.replace(InputTensor=PLAIN), {"Repeats": [3, 1]}, "FLOAT32 {2,3} x {3,1} -> {6,3}"),
        (PADDED, {"repeats": [2, 2]}, "INT8 {2,3} x {2,2} -> {4,6} strides {8,1}"),
        (TILE.replace(output_tensor=PLAIN), {"repeats": [5, 5]}, "INT8 {2,3} x {5,5} -> FLOAT32 {2,3}"),
    ],
)
def test_a_copy_takes_any_names_and_an_inferred_output_follows(desc: Any, changes: dict[str, Any], text: str) -> None:
    assert str(desc.replace(**changes)) == text


ODD = BufferTensorDesc(data_type="FLOAT32", sizes=[2, 3], dimension_count=1, total_tensor_size_in_bytes=40)


@pytest.mark.parametrize(
    ("desc", "changes", "fields"),
    [
        (PLAIN, {"sizes": [4, 5, 6]}, {"dimension_count": 3, "total_tensor_size_in_bytes": 480}),
        (PLAIN, {"data_type": np.float16}, {"total_tensor_size_in_bytes": 12}),
        (TILE, {"repeats": [1, 2, 3]}, {"repeats_count": 3}),
        (ODD, {"sizes": [4, 5, 6]}, {"dimension_count": 1, "total_tensor_size_in_bytes": 40}),
        (TILE.replace(repeats_count=7), {"repeats": [1, 2, 3]}, {"repeats_count": 7}),
    ],
)
def test_inferred_fields_follow_and_others_stay(desc: Any, changes: dict[str, Any], fields: dict[str, int]) -> None:
    changed = desc.replace(**changes)
    assert {name: getattr(changed, name) for name in fields} == fields


def test_an_output_keeps_the_fields_that_are_not_inferred() -> None:
    kept = {"flags": 1, "guaranteed_base_offset_alignment": 32}
    odd = TILE.replace(output_tensor=TensorDesc(type=7, desc=output_of(TILE).replace(**kept)))
    expected = TensorDesc(type=7, desc=output_of(TILE.replace(repeats=[2, 2])).replace(**kept))
    assert odd.replace(repeats=[2, 2]).output_tensor == expected


def spelled_out(desc: TileOperatorDesc) -> TileOperatorDesc:
    """Return an equal descriptor, of which each field was given."""
    return TileOperatorDesc.model_validate(desc.model_dump())


@given(ANY_TILE, ANY_TILE)
def test_equal_descriptors_copy_equally(desc: TileOperatorDesc, other: TileOperatorDesc) -> None:
    same = spelled_out(desc)
    assert (same, repr(same), hash(same)) == (desc, repr(desc), hash(desc))
    for name in ("input_tensor", "output_tensor", "repeats"):
        changes = {name: getattr(other, name)}
        assert copied(desc, changes) == copied(same, changes)
        assert desc.model_copy(update=changes) == same.model_copy(update=changes)


def copied(desc: TileOperatorDesc, changes: dict[str, Any]) -> TileOperatorDesc | str:
    try:
        return desc.replace(**changes)
    except ValidationError as error:
        return str(error)


@given(ANY_TILE, ANY_TILE)
def test_model_copy_changes_the_named_fields_alone(desc: TileOperatorDesc, other: TileOperatorDesc) -> None:
    for name in TileOperatorDesc.model_fields:
        expected = {**dict(desc), name: getattr(other, name)}
        assert dict(desc.model_copy(update={name: getattr(other, name)})) == expected
    assert PLAIN.model_copy(update={"sizes": (4, 5, 6)}).total_tensor_size_in_bytes == 24
    assert output_of(TILE.model_copy(update={"repeats": (9, 9)})) == output_of(TILE)


def test_an_output_stays_while_there_is_nothing_to_infer_it_from() -> None:
    broken = TILE.replace(input_tensor=None)
    assert output_of(broken) == output_of(TILE)
    assert [finding.rule for finding in check(broken)] == ["DML-TENSOR-null"]
    assert broken.replace(input_tensor=TILE.input_tensor) == TILE
    assert repr(broken).startswith("TileOperatorDesc(input_tensor=None, output_tensor=")
    assert output_of(TILE.replace(repeats=[1, 2, 3])) == output_of(TILE)


def test_an_inferred_output_beyond_a_uint_cannot_be_described() -> None:
    with pytest.raises(ValidationError, match=r"sizes\.1\n.* integer from 0 to 4294967295"):
        TILE.replace(repeats=[1, 2**31])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"size": (1,)}, TypeError, r"BufferTensorDesc has no field 'size'; did you mean sizes\?"),
        ({"DataTyp": 1}, TypeError, r"has no field 'DataTyp'; did you mean DataType\?"),
        ({"xyz": 1}, TypeError, "has no field 'xyz'; its fields are data_type, flags, "),
        ({"sizes": [1], "Sizes": [1]}, TypeError, "Sizes was provided twice, by its names in Python and in C"),
        ({"sizes": [2, -1]}, ValidationError, "Input should be an integer from 0 to 4294967295 .*input_value=-1"),
        ({"sizes": (2.0, 3)}, ValidationError, "Input should be an integer from 0 to 4294967295 .*input_value=2.0"),
        ({"total_tensor_size_in_bytes": -2}, ValidationError, "should be an integer from 0 to 18446744073709551615"),
        ({"guaranteed_base_offset_alignment": 16.0}, ValidationError, "should be an integer from 0 to 4294967295"),
        ({"data_type": "ITN64"}, ValidationError, r"has this name \(did you mean INT64\?\)"),
    ],
)
def test_names_and_values_of_a_copy_are_checked(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        PLAIN.replace(**changes)
    with pytest.raises(error, match=message):
        PLAIN.model_copy(update=changes)


@pytest.mark.parametrize("copy_of", [PLAIN.replace, lambda **changes: PLAIN.model_copy(update=changes)])
def test_enumerators_are_copied_by_their_names(copy_of: Callable[..., BufferTensorDesc]) -> None:
    named = copy_of(DataType="INT64", flags="OWNED_BY_DML")
    assert (named.data_type, named.flags) == (TensorDataType.INT64, TensorFlags.OWNED_BY_DML)
    assert {named, copy_of(data_type=11, flags=1)} == {named}
    assert check(TILE.replace(input_tensor=named.replace(total_tensor_size_in_bytes=48))) == ()


def test_python_s_own_way_to_copy_with_changes_is_checked_too() -> None:
    replace = getattr(copy, "replace", lambda desc, /, **changes: desc.__replace__(**changes))  # from Python 3.13 on
    assert replace(TILE, repeats=[2, 2]) == TILE.replace(repeats=[2, 2])
    with pytest.raises(TypeError, match="did you mean repeats"):
        replace(TILE, repeat=[2, 2])


def test_copies_and_pickles_copy_equally() -> None:
    for same in (copy.copy(TILE), copy.deepcopy(TILE), pickle.loads(pickle.dumps(TILE)), TILE.model_copy(deep=True)):
        assert same == TILE
        assert str(same.replace(repeats=[2, 2])) == "INT8 {2,3} x {2,2} -> {4,6}"


@pytest.mark.parametrize(
    ("desc", "text"),
    [
        (PLAIN, "BufferTensorDesc(data_type='FLOAT32', sizes=(2, 3))"),
        (PLAIN.replace(data_type=99, flags=[1, 4]), "BufferTensorDesc(data_type=99, flags=5, sizes=(2, 3))"),
        (PLAIN.replace(flags=0, dimension_count=2), "BufferTensorDesc(data_type='FLOAT32', sizes=(2, 3))"),
        (TensorDesc(type=7, desc=None), "TensorDesc(type=7, desc=None)"),
        (TILE, "TileOperatorDesc.from_input(data_type='INT8', sizes=(2, 3), repeats=(1, 2))"),
        (
            packed(1, [2], [3], strides=[4], flags=1, output_strides=[5]),
            (
                "TileOperatorDesc.from_input(data_type='FLOAT32', sizes=(2,), repeats=(3,), flags='OWNED_BY_DML', "
                "strides=(4,), output_strides=(5,))"
            ),
        ),
        (OperatorDesc(type="TILE", desc=None), "OperatorDesc(type='TILE', desc=None)"),
    ],
)
def test_a_repr_leaves_out_the_inferred_fields(desc: Any, text: str) -> None:
    assert repr(desc) == text
