"""The JSON Schemas (2020-12) of inputs and outputs, made from the models; ``schemas/`` holds them as files.

Page: https://json-schema.org/draft/2020-12
"""

from __future__ import annotations

import ast
import copy
import inspect
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from dml_tile import reports
from dml_tile.descriptors.graph import ARRAYS, GraphDesc
from dml_tile.descriptors.operator import KINDS, OperatorDesc, or_null, ref, spelling
from dml_tile.descriptors.structs import c_names
from dml_tile.descriptors.tile import DATA_TYPE, OPERATOR_TYPE, BufferTensorDesc, TensorDesc, TileOperatorDesc
from dml_tile.directml import pages
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import OperatorType, TensorFlags, TensorType
from dml_tile.directml.operators import OperatorRow, operator_named, operator_names, operators
from dml_tile.directml.targets import TileSupport, tile_rows
from dml_tile.dxdispatch.model import Model
from dml_tile.dxdispatch.rules import TILE_NAMES

Schema = dict[str, Any]

_C_NAMES: Final = c_names(TileOperatorDesc, TensorDesc, BufferTensorDesc, GraphDesc)
_C_NAMES.update(c_names(*(each.struct for each in ARRAYS.values())))


def _said_of(data_type: TensorDataType) -> str:
    since = next((row.since.short for row in tile_rows() if data_type in row.data_types), None)
    return f"Tile takes it from DML_FEATURE_LEVEL_{since} on." if since else "It is in no documented row of Tile."


_ENUMERATORS: Final = {data_type.name: _said_of(data_type) for data_type in TensorDataType} | {
    TensorFlags.NONE.name: "DirectML owns nothing of the tensor.",
    TensorFlags.OWNED_BY_DML.name: "DirectML takes the tensor's contents when the operator is initialised.",
    TensorType.INVALID.name: "DirectML refuses it.",
    TensorType.BUFFER.name: "The tensor lies in a buffer.",
}
"""Descriptions of enumerators, by their short names."""

_SCHEMA_KEY: Final = {"type": "string", "description": "The JSON Schema that an editor checks this file by."}
_OF_OUTPUTS: Final = Path(reports.__file__)
"""The module beside which the schemas of outputs are files."""
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, Schema]:
    """Every schema, by its name; the file is ``NAME.schema.json``."""
    tile = "dml_tile_operator_desc"
    made = {tile: _with_flat_tensors(TileOperatorDesc)}
    made |= {f"{tile}.{row.since.short}": narrowed_tile_schema(row) for row in tile_rows()}
    made |= {
        "dml_operator_desc": operator_schema(),
        "dml_graph_desc": graph_schema(),
        "dxdispatch_model": model_schema(),
    }
    written = {
        name: {"$schema": _DIALECT, "$id": f"urn:dml-tile:{name}", **_for_editors(schema)}
        for name, schema in made.items()
    }
    outputs = {name: _OF_OUTPUTS.with_name(f"{name}.schema.json") for name in ("device_output", "check_output")}
    return written | {name: json.loads(file.read_text("utf-8")) for name, file in outputs.items()}


def graph_schema() -> Schema:
    """Return the schema of DML_GRAPH_DESC, with the types of nodes and edges beside their fields.

    A node's operator is any, or without ``Type`` a tile.
    """
    schema = _with_flat_tensors(GraphDesc)
    operator = operator_schema()
    schema["$defs"] |= {**operator.pop("$defs"), "TypedOperatorDesc": operator}
    typed = {"if": {"type": "object", "required": ["Type"]}, "then": ref("TypedOperatorDesc")}
    _narrow(schema["$defs"]["OperatorGraphNodeDesc"], Operator=typed | {"else": or_null(ref("TileOperatorDesc"))})
    return schema


def narrowed_tile_schema(row: TileSupport) -> Schema:
    """Return the schema of a tile narrowed to the data types and dimension counts of one documented row."""
    schema = _generated(TileOperatorDesc)
    buffer = schema["$defs"]["BufferTensorDesc"]["properties"]
    types = sorted(row.data_types)
    names = [data_type.name for data_type in types]
    buffer["DataType"] |= DATA_TYPE.json_schema(names, {"enum": [int(data_type) for data_type in types]})
    counts = {"minimum": row.dimension_counts[0], "maximum": row.dimension_counts[-1]}
    array = {"type": "array", "minItems": counts["minimum"], "maxItems": counts["maximum"]}
    buffer["DimensionCount"] |= counts
    buffer["Strides"]["anyOf"][0] |= array
    buffer["Strides"]["anyOf"].append({"type": "array", "maxItems": 0})  # read as null
    schema["properties"]["RepeatsCount"] |= counts
    positive, tensor = array | {"items": ref("Positive")}, ref("TensorDesc")
    _narrow(schema, InputTensor=tensor, OutputTensor=tensor, Repeats=positive)
    _narrow(schema["$defs"]["TensorDesc"], Desc=ref("BufferTensorDesc"))
    _narrow(schema["$defs"]["BufferTensorDesc"], Sizes=positive)
    schema["$defs"]["Positive"] = {"type": "integer", "minimum": 1, "maximum": 2**32 - 1}
    _allow_flat_tensors(schema["$defs"])
    since = f"DML_FEATURE_LEVEL_{row.since.short}"
    schema["description"] = f"DML_TILE_OPERATOR_DESC as documented since {since}; see {pages.TILE}"
    return schema


def model_schema() -> Schema:
    """Return the schema of a DxDispatch model, as it is read here: unknown keys are ignored."""
    schema = _with_flat_tensors(Model)
    definitions = schema["$defs"]
    tensor = definitions["TensorDesc"]
    for struct in (definitions["TileOperatorDesc"], tensor["then"], tensor["else"], definitions["BufferTensorDesc"]):
        struct.pop("additionalProperties", None)
    definitions["TileOperatorDesc"]["required"].append("RepeatsCount")
    dispatchable = definitions["TileDispatchable"]
    desc = dispatchable["properties"].pop("desc")
    dispatchable["required"] = ["type"]
    nested = [{"properties": {key: desc}, "required": [key]} for key in ("desc", "Desc")]
    dispatchable["anyOf"] = [*nested, ref("TileOperatorDesc")]
    kinds = {"ConstantValues": "value", "SequenceValues": "valueStart", "FileValues": "sourcePath"}
    for values, key in kinds.items():  # what tells them apart excludes the others
        definitions[values]["not"] = {"anyOf": [{"required": [other]} for other in kinds.values() if other != key]}
    definitions["OtherDispatchable"]["properties"]["type"]["not"] = {"enum": list(TILE_NAMES)}
    del schema["properties"]["commands"]["items"]["discriminator"]  # OpenAPI's, not JSON Schema's
    return schema


class _Generator(GenerateJsonSchema):
    """Describes fields by their docstrings too."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False  # the title would be the key again, in another case

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        made, model = super().model_schema(schema), schema["cls"]
        (definition,) = ast.parse(inspect.getsource(model)).body
        assert isinstance(definition, ast.ClassDef)
        for field, said in pairwise(definition.body):
            match field, said:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    made["properties"][model.model_fields[name].alias or name]["description"] = inspect.cleandoc(
                        text
                    ).replace("\n", " ")
        return made


def _generated(model: type[BaseModel]) -> Schema:
    return model.model_json_schema(by_alias=True, schema_generator=_Generator)


def _with_flat_tensors(model: type[BaseModel]) -> Schema:
    """Return the schema of all that the model's C fields can hold, in every spelling that is read."""
    schema = _generated(model)
    _allow_flat_tensors(schema["$defs"])
    return schema


def _allow_flat_tensors(definitions: dict[str, Schema]) -> None:
    """Allow a tensor's fields beside ``Type`` too, instead of under ``Desc``."""
    nested = definitions["TensorDesc"]
    flat = copy.deepcopy(definitions["BufferTensorDesc"])
    flat["properties"] |= {
        "Type": copy.deepcopy(nested["properties"]["Type"]),
        "NullDesc": {"type": "boolean", "description": "True stands for a null Desc, whatever else is given."},
    }
    description = nested.pop("description")
    offered = {"Desc": {"description": nested["properties"]["Desc"]["description"]}}
    # chosen by the key Desc, so that an editor reports missing keys of the spelling in use only
    chosen = {"properties": offered, "if": {"required": ["Desc"]}, "then": nested, "else": flat}
    definitions["TensorDesc"] = {"description": description, "type": "object", **chosen}


def _for_editors(schema: Schema) -> Schema:
    """Let ``$schema`` stand at the top of a document, and name the keys of JSON in descriptions; return the schema."""
    for struct in (schema, schema.get("then", {}), schema.get("else", {})):
        if "properties" in struct:
            struct["properties"] = {"$schema": _SCHEMA_KEY, **struct["properties"]}
    _describe(schema)
    return schema


def _describe(schema: Any) -> None:
    """Name the keys of JSON in a schema's descriptions, and describe each data type, at any depth."""
    if isinstance(schema, list):
        for item in schema:
            _describe(item)
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("title"), str):  # a class of Python's
        del schema["title"]
    for key, value in schema.items():
        if key == "description" and isinstance(value, str):
            schema[key] = _with_c_names(value)
        elif key == "properties":
            for name in ("Flags", "Type"):
                if isinstance(default := value.get(name, {}).get("default"), int):
                    (names,) = [known["enum"] for known in value[name]["anyOf"] if "enum" in known]
                    value[name]["default"] = names[default]  # the names are in the order of their values, from 0
            _describe(value)
        elif key != "enum":
            _describe(value)
    if set(schema.get("enum", [None])) <= _ENUMERATORS.keys():
        schema["enumDescriptions"] = [_ENUMERATORS[name] for name in schema["enum"]]  # as VS Code calls them


def _with_c_names(text: str) -> str:
    """Return a docstring with C names in place of attributes, and without its line breaks."""
    named = re.sub("``(.+?)``", lambda code: _C_NAMES.get(code[1], code[1]), text)
    return re.sub(r"(?<!\n)\n(?!\n)", " ", named)


def _narrow(struct: Schema, **fields: Schema) -> None:
    """Replace the schemas of fields; their descriptions stay."""
    for name, schema in fields.items():
        struct["properties"][name] = schema | {"description": struct["properties"][name]["description"]}


_CLOSED: Final = {"unevaluatedProperties": False}


def operator_schema() -> Schema:
    """Return the schema of any operator, with its fields under ``Desc`` or beside ``Type``.

    A fused operator's tensors may be left out, so that only the top of a document requires them.
    """
    tile, known = _with_flat_tensors(TileOperatorDesc), operators().values()
    enumerators = {each.enumeration: spelling(each.enumeration) for operator in known for each in operator.enumerators}
    others = [each for operator in known if operator.value != OperatorType.TILE for each in _types(operator)]
    structs = {operator.struct: _struct(operator) for operator in known}
    structs[operators()[OperatorType.TILE].struct] |= {key: tile[key] for key in ("description", "properties")}
    by_tensors: dict[tuple[str, ...], list[Schema]] = {}
    for operator in known:
        by_tensors.setdefault(tuple(_required(operator, tensors=True)), []).append(_is_type_of(operator))
    tensors = [_chosen({"anyOf": types}, {"required": [*names]}, {}) for names, types in by_tensors.items()]
    return {
        "description": inspect.getdoc(OperatorDesc),  # Python 3.13 removes indents itself
        "type": "object",
        "properties": {},
        "allOf": [ref("OperatorDesc"), *tensors],
        **_CLOSED,
        "$defs": {
            **tile["$defs"],
            **{kind.name: kind.schema for kind in KINDS.values()},
            **{f"DML_{name}": each.json_schema(each.names, KINDS["u"].schema) for name, each in enumerators.items()},
            **structs,
            "OperatorDesc": _any_operator(),
            "OtherOperatorType": {"enum": others},
            "FusedOperatorDesc": ref("OperatorDesc") | _CLOSED,
        },
    }


def _any_operator() -> Schema:
    """Return the schema of an operator that lets other keys stand beside its own."""
    names = operator_names()
    types = OPERATOR_TYPE.json_schema(["INVALID", *names], KINDS["u"].schema)
    said = [f"{named.struct}, since {named.level.name}." for named in map(operator_named, names) if named]
    types["anyOf"][0]["enumDescriptions"] = ["DirectML refuses it.", *said]
    clauses = {value: _chosen(_is_type_of(each), ref(each.struct), _CLOSED) for value, each in operators().items()}
    del clauses[OperatorType.TILE]["if"]["required"]  # Tile's fields are offered where there is no Type yet
    return {
        "type": "object",
        "properties": {
            "Type": {**types, "description": "DML_OPERATOR_TYPE."},
            "Desc": {"description": "The operator's struct, such as DML_TILE_OPERATOR_DESC, or null."},
        },
        "required": ["Type"],
        "allOf": [*clauses.values()],
    }


def _chosen(types: Schema, desc: Schema, nested: Schema) -> Schema:
    """Return a clause that holds a Desc, or what stands beside ``Type`` where there is none, to a schema."""
    fields = {"if": {"required": ["Desc"]}, "then": {"properties": {"Desc": desc | nested}}, "else": desc}
    return {"if": {"properties": {"Type": types}, "required": ["Type"]}, "then": fields}


def _is_type_of(operator: OperatorRow) -> Schema:
    """Return the schema of an operator's types; types of no operator in DirectML.h are read as Tile's."""
    return {"not": ref("OtherOperatorType")} if operator.value == OperatorType.TILE else {"enum": _types(operator)}


def _types(operator: OperatorRow) -> list[str | int]:
    names = [name for name in operator_names() if operator_named(name) is operator]
    return [*names, *(f"{OPERATOR_TYPE.prefix}{name}" for name in names), operator.value]


def _struct(operator: OperatorRow) -> Schema:
    return {
        "description": f"{operator.struct}, since {operator.level.name}.",
        "type": ["object", "null"],
        "properties": {
            field.name: ref(f"DML_{field.enumeration}" if field.enumeration else KINDS[field.kind].name)
            for field in operator.fields
        },
        "required": _required(operator, tensors=False),
    }


def _required(operator: OperatorRow, *, tensors: bool) -> list[str]:
    """Return the fields without a default, tensors or others."""
    return [
        field.name
        for field in operator.fields
        if field.is_tensor is tensors and not field.is_optional and field.name not in operator.arrays
    ]
