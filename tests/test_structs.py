"""Copies of descriptors are checked, and their repr reads back."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from pydantic import ValidationError

from dml_tile import check
from dml_tile.descriptors.tile import BufferTensorDesc, OperatorDesc, TensorDesc, TileOperatorDesc
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import TensorFlags
from tests.helpers.tile_fields import TILE_FIELDS

FLOATS = BufferTensorDesc(data_type="FLOAT32", sizes=[2, 3])
TILE = TileOperatorDesc.from_input(data_type="INT8", sizes=[2, 3], repeats=[1, 2])


def output_of(desc: TileOperatorDesc) -> BufferTensorDesc:
    assert desc.output_tensor is not None
    assert desc.output_tensor.desc is not None
    return desc.output_tensor.desc


PADDED = TileOperatorDesc.from_input(data_type="INT8", sizes=[2, 3], repeats=[1, 2], output_strides=[8, 1])


@pytest.mark.parametrize(
    ("desc", "changes", "text"),
    [
        (FLOATS, {"sizes": (4, np.int64(5))}, "FLOAT32 {4,5}"),
        (FLOATS, {"Sizes": [4, 5]}, "FLOAT32 {4,5}"),
        (TILE, {"repeats": [2, 2]}, "INT8 {2,3} x {2,2} -> {4,6}"),
        (TILE, {"input_tensor": FLOATS}, "FLOAT32 {2,3} x {1,2} -> {2,6}"),
        (TILE.replace(InputTensor=FLOATS), {"Repeats": [3, 1]}, "FLOAT32 {2,3} x {3,1} -> {6,3}"),
        (PADDED, {"repeats": [2, 2]}, "INT8 {2,3} x {2,2} -> {4,6} strides {8,1}"),
        (TILE.replace(output_tensor=FLOATS), {"repeats": [5, 5]}, "INT8 {2,3} x {5,5} -> FLOAT32 {2,3}"),
    ],
)
def test_a_copy_takes_names_of_python_and_of_c_and_an_inferred_output_follows(
    desc: Any, changes: dict[str, Any], text: str
) -> None:
    assert str(desc.replace(**changes)) == text


ODD = BufferTensorDesc(data_type="FLOAT32", sizes=[2, 3], dimension_count=1, total_tensor_size_in_bytes=40)


@pytest.mark.parametrize(
    ("desc", "changes", "fields"),
    [
        (FLOATS, {"sizes": [4, 5, 6]}, {"dimension_count": 3, "total_tensor_size_in_bytes": 480}),
        (FLOATS, {"data_type": np.float16}, {"total_tensor_size_in_bytes": 12}),
        (TILE, {"repeats": [1, 2, 3]}, {"repeats_count": 3}),
        (ODD, {"sizes": [4, 5, 6]}, {"dimension_count": 1, "total_tensor_size_in_bytes": 40}),
        (TILE.replace(repeats_count=7), {"repeats": [1, 2, 3]}, {"repeats_count": 7}),
    ],
)
def test_inferred_fields_are_inferred_anew_and_others_stay(
    desc: Any, changes: dict[str, Any], fields: dict[str, int]
) -> None:
    changed = desc.replace(**changes)
    assert {name: getattr(changed, name) for name in fields} == fields


def test_an_output_keeps_the_fields_that_are_not_inferred() -> None:
    assert TILE.input_tensor is not None
    odd = TensorDesc(type=7, desc=output_of(TILE).replace(flags=1, guaranteed_base_offset_alignment=32))
    changed = TILE.replace(output_tensor=odd).replace(repeats=[2, 2])
    assert changed.output_tensor is not None
    assert changed.output_tensor.type == 7
    assert output_of(changed) == output_of(TILE.replace(repeats=[2, 2])).replace(
        flags=1, guaranteed_base_offset_alignment=32
    )


def spelled_out(desc: TileOperatorDesc) -> TileOperatorDesc:
    """Return an equal descriptor, of which each field was given."""
    return TileOperatorDesc.model_validate(desc.model_dump())


@given(TILE_FIELDS, TILE_FIELDS)
def test_equal_descriptors_copy_equally(fields: dict[str, Any], others: dict[str, Any]) -> None:
    desc = TileOperatorDesc.model_validate(fields)
    same = spelled_out(desc)
    assert (same, repr(same), hash(same)) == (desc, repr(desc), hash(desc))
    other = TileOperatorDesc.model_validate(others)
    for name in ("input_tensor", "output_tensor", "repeats"):
        changes = {name: getattr(other, name)}
        assert copied(desc, changes) == copied(same, changes)
        assert desc.model_copy(update=changes) == same.model_copy(update=changes)


def copied(desc: TileOperatorDesc, changes: dict[str, Any]) -> TileOperatorDesc | str:
    try:
        return desc.replace(**changes)
    except ValidationError as error:
        return str(error)


@given(TILE_FIELDS, TILE_FIELDS)
def test_model_copy_changes_the_named_fields_alone(fields: dict[str, Any], others: dict[str, Any]) -> None:
    desc, other = TileOperatorDesc.model_validate(fields), TileOperatorDesc.model_validate(others)
    for name in TileOperatorDesc.model_fields:
        expected = {**dict(desc), name: getattr(other, name)}
        assert dict(desc.model_copy(update={name: getattr(other, name)})) == expected
    assert FLOATS.model_copy(update={"sizes": (4, 5, 6)}).total_tensor_size_in_bytes == 24
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
def test_the_names_and_values_of_a_copy_are_checked(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        FLOATS.replace(**changes)
    with pytest.raises(error, match=message):
        FLOATS.model_copy(update=changes)


@pytest.mark.parametrize("copy_of", [FLOATS.replace, lambda **changes: FLOATS.model_copy(update=changes)])
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
        (FLOATS, "BufferTensorDesc(data_type='FLOAT32', sizes=(2, 3))"),
        (FLOATS.replace(data_type=99, flags=[1, 4]), "BufferTensorDesc(data_type=99, flags=5, sizes=(2, 3))"),
        (FLOATS.replace(flags=0, dimension_count=2), "BufferTensorDesc(data_type='FLOAT32', sizes=(2, 3))"),
        (TensorDesc(type=7, desc=None), "TensorDesc(type=7, desc=None)"),
        (TILE, "TileOperatorDesc.from_input(data_type='INT8', sizes=(2, 3), repeats=(1, 2))"),
        (
            TileOperatorDesc.from_input(data_type=1, sizes=[2], repeats=[3], strides=[4], flags=1, output_strides=[5]),
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


@given(TILE_FIELDS)
def test_any_repr_reads_back(fields: dict[str, Any]) -> None:
    desc = TileOperatorDesc.model_validate(fields)
    assert eval(repr(desc)) == desc
    assert desc.replace() == desc
