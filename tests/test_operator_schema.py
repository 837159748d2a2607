"""The schema of DML_OPERATOR_DESC has a definition for each operator, and agrees with what is read."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from dml_tile.descriptors.graph import GraphDesc
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.operators import operators
from tests.recorder.operator_draws import valid
from tests.test_editors import SCHEMAS, completions, diagnostics, needs_the_service
from tests.test_operator_desc import EXAMPLES, descriptors

NAME = "dml_operator_desc"
SCHEMA = SCHEMAS[NAME]
VALIDATOR = Draft202012Validator(SCHEMA)
FLOAT = {"DataType": "FLOAT32", "Sizes": [1, 2]}
TENSORS: dict[str, Any] = {"InputTensor": FLOAT, "OutputTensor": FLOAT}
WINDOWS = ("WindowSizes", "Strides", "Dilations", "StartPadding", "EndPadding")
FOLD: dict[str, Any] = TENSORS | {"DimensionCount": 2} | {name: [1, 1] for name in WINDOWS}
QUANTIZE: dict[str, Any] = TENSORS | {
    "QuantizationType": 1,
    "QuantizationTensorCount": 1,
    "QuantizationTensors": [FLOAT],
}
NEWER = {"FOLD": FOLD, "UNFOLD": FOLD, "QUANTIZE": QUANTIZE, "DEQUANTIZE": QUANTIZE}
BASES: dict[str, dict[str, Any]] = NEWER | {
    operator.name: valid(operator, FeatureLevel.DML_FEATURE_LEVEL_6_4, Random(operator.name))
    for operator in operators().values()
    if operator.name not in NEWER
}
GATHER, ADD1, CLIP1 = (EXAMPLES[name] for name in ("GATHER", "ELEMENT_WISE_ADD1", "ELEMENT_WISE_CLIP1"))


def agreed(
    desc: object, validator: Draft202012Validator = VALIDATOR, struct: type[OperatorDesc | GraphDesc] = OperatorDesc
) -> bool:
    """Whether a descriptor is valid, which is asserted to be whether it can be read."""
    document = json.loads(json.dumps(desc))
    try:
        struct.model_validate_json(json.dumps(desc))
        is_readable = True
    except ValidationError:
        is_readable = False
    assert validator.is_valid(document) == is_readable
    return is_readable


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (i % 16 > 0)) for i, name in enumerate(BASES)]
)
def test_each_operator_has_a_definition_of_its_fields(name: str) -> None:
    base, struct = BASES[name], f"DML_{name}_OPERATOR_DESC"
    fields = {"$ref": f"#/$defs/{struct}", "unevaluatedProperties": False}
    alone = VALIDATOR.evolve(schema={"properties": {"Desc": fields}})
    assert SCHEMA["$defs"][struct]["properties"].keys() == base.keys()
    assert agreed({"Type": name, "Desc": base})
    assert not agreed({"Type": name, "Desc": base | {"Foo": 1}}, alone)
    for field in base:
        assert not agreed({"Type": name, "Desc": base | {field: {"Foo": 1}}}, alone)
        assert not agreed({"Type": name, "Desc": base | {field: "foo"}}, alone)
        agreed({"Type": name, "Desc": base | {field: None}}, alone)
        if not field.endswith(("Tensor", "Tensors")):
            agreed({"Type": name, "Desc": {key: value for key, value in base.items() if key != field}}, alone)


@pytest.mark.parametrize(
    ("desc", "is_valid"),
    [
        ({"Type": "SCATTER_ELEMENTS", "Desc": BASES["SCATTER"]}, True),
        ({"Type": "DML_OPERATOR_GATHER", "Desc": GATHER}, True),
        ({"Type": 67, **GATHER}, True),
        ({"Type": 67, **GATHER, "Foo": 1}, False),
        ({"Type": "GATHER", "Desc": {"Axis": 1, "IndexDimensions": 1}}, False),
        ({"Type": "GATHR", "Desc": GATHER}, False),
        ({"Type": "TILE", "Desc": GATHER}, False),
        ({"Type": "GATHER", "Desc": BASES["TILE"]}, False),
        ({"Type": "INVALID", "Desc": None}, True),
        ({"Type": 1000, "Desc": BASES["TILE"]}, True),
        ({"Type": 1000, "Desc": GATHER}, False),
        ({"Type": -1, "Desc": None}, False),
        ({"Desc": BASES["TILE"]}, False),
        ({"Type": "GATHER", "Desc": GATHER, "Axis": 1}, False),
        ({"Type": "GATHER", "Desc": []}, False),
        ({"Type": "ELEMENT_WISE_ADD1", **ADD1}, True),
        ({"Type": "ELEMENT_WISE_ADD1", **ADD1, "FusedActivation": {"Type": "ACTIVATION_ELU", "Foo": 1}}, False),
        ({"Type": "ELEMENT_WISE_ADD1", **ADD1, "FusedActivation": {"Type": "ELU", "Alpha": 1}}, False),
        ({"Type": "ELEMENT_WISE_ADD1", **ADD1, "FusedActivation": {"Type": 35, "Desc": {"Alpha": "NaN"}}}, True),
        ({"Type": "ELEMENT_WISE_CLIP1", **CLIP1, "Min": "0x00000000000000ff"}, True),
        ({"Type": "ELEMENT_WISE_CLIP1", **CLIP1, "Min": "0xff"}, False),
        ({"Type": "ELEMENT_WISE_CLIP1", **CLIP1, "ScaleBias": {"Scale": 1}}, False),
        ({"Type": "ELEMENT_WISE_CLIP1", **CLIP1, "MinMaxDataType": "DML_TENSOR_DATA_TYPE_INT8"}, True),
    ],
)
def test_the_fields_are_those_of_the_type_s_operator(desc: dict[str, Any], is_valid: bool) -> None:
    assert agreed(desc) == is_valid


@pytest.mark.long
@given(descriptors())
def test_whatever_is_written_is_valid(desc: OperatorDesc) -> None:
    assert VALIDATOR.is_valid(desc.model_dump(mode="json", by_alias=True))


def test_a_graph_s_nodes_may_be_any_operator() -> None:
    validator = Draft202012Validator(SCHEMAS["dml_graph_desc"])
    gather, tile = {"Type": "GATHER", **GATHER}, BASES["TILE"]
    good = (gather, {"Type": "GATHER", "Desc": GATHER}, tile, {"Type": "TILE", "Desc": tile}, None)
    for operator in (*good, gather | {"Foo": 1}, {"Type": "GATHER"}, GATHER, {"Type": "TILE", **GATHER}):
        graph = {"InputCount": 0, "OutputCount": 0, "Nodes": [{"Operator": operator}]}
        assert agreed(graph, validator, GraphDesc) == (operator in good)


def test_the_schema_is_small() -> None:
    assert len(json.dumps(SCHEMA, indent=2)) < 400_000


@needs_the_service
def test_an_editor_offers_the_fields_of_the_type_s_operator() -> None:
    fields = ["InputTensor", "IndicesTensor", "OutputTensor", "Axis", "IndexDimensions"]
    assert completions('{"Type": "GATHER", "Desc": {¦}}', NAME) == fields
    assert {*completions('{"Type": "GATHER", ¦}', NAME)} == {"$schema", "Desc", *fields}
    assert {'"GATHER"', '"TILE"'} <= {*completions('{"Type": ¦}', NAME)}
    assert completions('{"Type": "PADDING", "Desc": {"PaddingMode": ¦}}', NAME)[:2] == ['"CONSTANT"', '"EDGE"']


@needs_the_service
def test_an_editor_underlines_an_unknown_field_alone() -> None:
    for desc in ({"Type": "GATHER", "Desc": GATHER | {"Axes": 1}}, {"Type": "GATHER", **GATHER, "Axes": 1}):
        assert diagnostics(json.dumps(desc), NAME) == ["Property Axes is not allowed."]
    assert diagnostics(json.dumps({"Type": "GATHER", "Desc": GATHER}), NAME) == []
