"""Random JSON descriptors: read within pydantic's core, or respelled first, they are the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dml_tile.descriptors.spellings import JSON_DOCUMENT
from dml_tile.descriptors.tile import BufferTensorDesc, TensorDesc, TileOperatorDesc
from dml_tile.directml.enums import UINT_MAX

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


def read(reader: Callable[..., TileOperatorDesc], *arguments: Any, **options: Any) -> Any:
    """The tile, with the fields that were given, or the errors; their texts name Python's types or JSON's."""
    try:
        tile = reader(*arguments, **options)
    except ValidationError as error:
        return [(each["loc"], each["type"]) for each in error.errors()]
    return tile, repr(tile)


@given(tensors(), tensors(), ARRAYS)
def test_a_tile_of_json_is_that_of_its_objects(source: Any, destination: Any, repeats: Any) -> None:
    tile = {"InputTensor": source, "OutputTensor": destination, "Repeats": repeats}
    expected = read(TileOperatorDesc.model_validate, tile, context=JSON_DOCUMENT)
    assert read(TileOperatorDesc.model_validate_json, json.dumps(tile)) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"DataType": "FLOAT32", "Sizes": [2, 3]}',
        '{"Type": "BUFFER", "Desc": {"DataType": "FLOAT32", "Sizes": [2, 3]}}',
        '{"desc": {"data_type": 1, "Sizes": [2, 3]}}',
        '{"Type": 1, "DataType": 1, "Sizes": [2, 3], "NullDesc": false}',
    ],
)
def test_a_tensor_alone_is_read_in_each_spelling(text: str) -> None:
    expected = TensorDesc(desc=BufferTensorDesc(data_type="FLOAT32", sizes=[2, 3]))
    assert TensorDesc.model_validate_json(text) == TensorDesc.model_validate(json.loads(text)) == expected
