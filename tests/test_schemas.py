"""The schemas are valid, current, and agree with what is read and written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from dml_tile.descriptors.tile import DATA_TYPE, TileOperatorDesc
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.targets import tile_rows
from dml_tile.emit.schemas import schemas
from dml_tile.json_text import parse_json
from tests.helpers.hostile_names import CHARACTERS
from tests.helpers.paths import EXAMPLES
from tests.helpers.strategies import invalid_tiles, tiles
from tests.test_editors import SCHEMA_FILES, SCHEMAS

FLAT = {"DataType": "FLOAT32", "Sizes": [1, 1, 2, 2]}
TILE = {"InputTensor": FLAT, "OutputTensor": FLAT, "Repeats": [1, 1, 1, 1]}


def accepts(name: str, instance: Any) -> bool:
    return bool(Draft202012Validator(SCHEMAS[name]).is_valid(instance))


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_and_says_what_it_is(name: str) -> None:
    schema = SCHEMAS[name]
    of_graphs = SCHEMAS["dml_graph_desc"]["$defs"] if name == "dml_operator_desc" else {}  # which takes seconds
    own = {key: definition for key, definition in schema.get("$defs", {}).items() if of_graphs.get(key) != definition}
    Draft202012Validator.check_schema(schema | {"$defs": own})
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"urn:dml-tile:{name}"
    assert schema["description"]


def test_the_files_are_current() -> None:
    made = {name: f"{json.dumps(schema, indent=2)}\n" for name, schema in schemas().items()}
    written = {path.name.removesuffix(".schema.json"): path.read_text("utf-8") for path in SCHEMA_FILES}
    assert written == made, "run `dml-tile schema NAME > schemas/NAME.schema.json`"


def test_the_examples_are_valid() -> None:
    for path in EXAMPLES.glob("*.json"):
        example = parse_json(path.read_bytes())
        schema = "dxdispatch_model" if "resources" in example else "dml_tile_operator_desc"
        Draft202012Validator(SCHEMAS[schema]).validate(example)


@given(tiles("6_4") | invalid_tiles("6_4"))
def test_whatever_is_written_is_valid(desc: TileOperatorDesc) -> None:
    dumped = desc.model_dump(mode="json", by_alias=True)
    assert accepts("dml_tile_operator_desc", dumped)
    assert accepts("dml_operator_desc", {"Type": "DML_OPERATOR_TILE", "Desc": dumped})


ANYTHING = (
    st.sampled_from([None, False, True, "FLOAT32", [1, 2], [-1]])
    | st.integers(-2, 2**33)
    | st.text(CHARACTERS, max_size=3)
)
FIELDS = [*FLAT, "Flags", "Strides", "DimensionCount", "TotalTensorSizeInBytes", "Type", "Foo"]


@pytest.mark.long
@given(st.sampled_from(FIELDS), ANYTHING)
def test_a_tensor_is_valid_exactly_if_it_can_be_read(field: str, value: Any) -> None:
    instance = TILE | {"InputTensor": FLAT | {field: value}}
    try:
        TileOperatorDesc.model_validate(instance)
        readable = True
    except ValidationError:
        readable = False
    assert accepts("dml_tile_operator_desc", instance) == readable


@pytest.mark.parametrize("row", tile_rows(), ids=lambda row: row.since.short)
def test_a_row_s_schema_takes_just_its_types_and_dimension_counts(row: Any) -> None:
    name = f"dml_tile_operator_desc.{row.since.short}"
    for data_type in TensorDataType:
        for rank in range(10):
            sizes = [2] * rank
            tensor = {"DataType": data_type.name, "Sizes": sizes, "DimensionCount": rank}
            instance = {"InputTensor": tensor, "OutputTensor": tensor, "Repeats": [1] * rank, "RepeatsCount": rank}
            expected = data_type in row.data_types and rank in row.dimension_counts
            assert accepts(name, instance) == expected
            for spelling in (int(data_type), DATA_TYPE.write(data_type)):
                respelled = instance | {"InputTensor": {"Type": "BUFFER", "Desc": tensor | {"DataType": spelling}}}
                assert accepts(name, respelled) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"Repeats": [1, 1, 1, 0]},
        {"Repeats": None},
        {"InputTensor": None},
        {"InputTensor": FLAT | {"Sizes": [1, 1, 0, 2]}},
        {"InputTensor": FLAT | {"Sizes": None}},
        {"InputTensor": FLAT | {"Strides": [1, 1, 1]}},
    ],
)
def test_a_row_s_schema_refuses_what_the_documentation_refuses_in_one_field(change: dict[str, Any]) -> None:
    assert accepts("dml_tile_operator_desc.1_0", TILE)
    assert accepts("dml_tile_operator_desc.1_0", TILE | {"InputTensor": FLAT | {"Strides": []}})
    assert not accepts("dml_tile_operator_desc.1_0", TILE | change)
    assert accepts("dml_tile_operator_desc", TILE | change)


@pytest.mark.parametrize(
    ("part", "value", "valid"),
    [
        ("resources", {"R": {"initialValuesDataType": "INT8", "initialValues": [1]}}, True),
        ("resources", {"R": {"initialValues": {"valueCount": 1, "value": 2, "valueStart": 1}}}, False),
        ("resources", {"R": {"initialValues": []}}, False),
        ("dispatchables", {"t": {"type": "TILE", "Desc": TILE | {"RepeatsCount": 4, "Foo": 1}}}, True),
        ("dispatchables", {"t": {"type": "TILE"} | TILE | {"RepeatsCount": 4}}, True),
        ("dispatchables", {"t": {"type": "TILE", "Desc": TILE}}, False),
        ("dispatchables", {"t": {"type": "TILE"}}, False),
        ("dispatchables", {"t": {"type": "hlsl", "sourcePath": "x"}}, True),
        ("commands", [{"type": "writeFile", "resource": "a", "targetPath": "b"}], True),
        ("commands", [{"type": "dispatch", "dispatchable": "a", "bindings": {"I": ["b"], "O": {"name": "d"}}}], True),
        ("commands", [{"type": "dispatch", "dispatchable": "a", "bindings": {"InputTensor": 7}}], False),
        ("commands", [{"type": "explode"}], False),
    ],
)  # fmt: skip
def test_the_model_s_schema(part: str, value: Any, valid: bool) -> None:
    model = {"resources": {}, "dispatchables": {}, "commands": []} | {part: value}
    assert accepts("dxdispatch_model", model) == valid
