"""The JSON Schema of DML_OPERATOR_DESC, with a definition for each operator; ``Type`` chooses one.

Page: https://json-schema.org/draft/2020-12
"""

from __future__ import annotations

from typing import Any, Final

from dml_tile.descriptors.operator import SCALAR_BITS, OperatorDesc, spelling
from dml_tile.descriptors.tile import OPERATOR_TYPE
from dml_tile.directml.enums import UINT_MAX, OperatorType
from dml_tile.directml.operators import Operator, operator_named, operator_names, operators

Schema = dict[str, Any]


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _array(name: str) -> Schema:
    return _or_null({"type": "array", "items": _ref(name)})


def _pair(first: str, second: str, kind: str) -> Schema:
    properties = {first: _ref(kind), second: _ref(kind)}
    return {"type": "object", "properties": properties, "required": [first, second], "additionalProperties": False}


_CLOSED: Final = {"unevaluatedProperties": False}
_UINT: Final = {"type": "integer", "minimum": 0, "maximum": UINT_MAX}
_FLOAT: Final = {"anyOf": [{"type": "number"}, {"enum": ["Infinity", "-Infinity", "NaN"]}]}
_BITS: Final = {"type": "string", "pattern": f"^{SCALAR_BITS.pattern}$(?!\\n)"}
_KINDS: Final[dict[str, tuple[str, Schema]]] = {
    "t": ("Tensor", _or_null(_ref("TensorDesc"))),
    "T": ("Tensors", _array("TensorDesc")),
    "o": ("Operator", _or_null(_ref("FusedOperatorDesc"))),
    "O": ("Operators", _array("FusedOperatorDesc")),
    "u": ("UINT", _UINT),
    "i": ("INT", {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}),
    "f": ("FLOAT", _FLOAT),
    "b": ("BOOL", {"anyOf": [{"type": "boolean"}, _ref("INT")]}),
    "U": ("UINTs", _array("UINT")),
    "I": ("INTs", _array("INT")),
    "F": ("FLOATs", _array("FLOAT")),
    "s": ("DML_SCALE_BIAS", _or_null(_pair("Scale", "Bias", "FLOAT"))),
    "z": ("DML_SIZE_2D", _pair("Width", "Height", "UINT")),
    "x": ("DML_SCALAR_UNION", {"anyOf": [*_FLOAT["anyOf"], _BITS]}),
}
"""The definition of a field's kind, by the letters of ``dml_tile.directml.operators``."""


def operator_schema(tile: Schema) -> Schema:
    """Return the schema of any operator, with its fields under ``Desc`` or beside ``Type``; ``tile`` is that of Tile's.

    A fused operator's tensors may be left out, so that only the top of a document requires them.
    """
    known = operators().values()
    enumerators = {
        each.enumeration: spelling(each) for operator in known for each in operator.fields if each.enumeration
    }
    others = [each for operator in known if operator.value != OperatorType.TILE for each in _types(operator)]
    structs = {operator.struct: _struct(operator) for operator in known}
    structs[operators()[OperatorType.TILE].struct] |= {key: tile[key] for key in ("description", "properties")}
    by_tensors: dict[tuple[str, ...], list[Schema]] = {}
    for operator in known:
        by_tensors.setdefault(tuple(_required(operator, tensors=True)), []).append(_is_type_of(operator))
    tensors = [_chosen({"anyOf": types}, {"required": [*names]}, {}) for names, types in by_tensors.items()]
    return {
        "description": OperatorDesc.__doc__,
        "type": "object",
        "properties": {},
        "allOf": [_ref("OperatorDesc"), *tensors],
        **_CLOSED,
        "$defs": {
            **tile["$defs"],
            **dict(_KINDS.values()),
            **{f"DML_{name}": each.json_schema(each.names, _UINT) for name, each in enumerators.items()},
            **structs,
            "OperatorDesc": _any_operator(),
            "OtherOperatorType": {"enum": others},
            "FusedOperatorDesc": _ref("OperatorDesc") | _CLOSED,
        },
    }


def _any_operator() -> Schema:
    """Return the schema of an operator that lets other keys stand beside its own."""
    names = operator_names()
    types = OPERATOR_TYPE.json_schema(["INVALID", *names], _UINT)
    said = [f"{named.struct}, since {named.level.name}." for named in map(operator_named, names) if named]
    types["anyOf"][0]["enumDescriptions"] = ["DirectML refuses it.", *said]
    clauses = {value: _chosen(_is_type_of(each), _ref(each.struct), _CLOSED) for value, each in operators().items()}
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


def _is_type_of(operator: Operator) -> Schema:
    """Return the schema of an operator's types; types of no operator in DirectML.h are read as Tile's."""
    return {"not": _ref("OtherOperatorType")} if operator.value == OperatorType.TILE else {"enum": _types(operator)}


def _types(operator: Operator) -> list[str | int]:
    names = [name for name in operator_names() if operator_named(name) is operator]
    return [*names, *(f"{OPERATOR_TYPE.prefix}{name}" for name in names), operator.value]


def _struct(operator: Operator) -> Schema:
    return {
        "description": f"{operator.struct}, since {operator.level.name}.",
        "type": ["object", "null"],
        "properties": {
            field.name: _ref(f"DML_{field.enumeration}" if field.kind == "e" else _KINDS[field.kind][0])
            for field in operator.fields
        },
        "required": _required(operator, tensors=False),
    }


def _required(operator: Operator, *, tensors: bool) -> list[str]:
    """Return the fields without a default, tensors or others."""
    counts = {field.counted_by for field in operator.fields}
    return [
        field.name
        for field in operator.fields
        if field.is_tensor is tensors and not field.is_optional and field.name not in counts
    ]
