"""Operators as ``dml_tile.back_ends.placement`` takes them: versions, types of values, and functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import repeat
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

import onnx
from onnx import AttributeProto, FunctionProto, TensorProto, TypeProto, defs, helper

from dml_tile.back_ends.kernels import formals_of, limits_at, queried_attributes
from dml_tile.back_ends.known import looked_at
from dml_tile.back_ends.placement import NAMELESS, Edge, Facts, Formals, Placement, Reason
from dml_tile.directml.targets import NEWEST_READ
from dml_tile.readers.onnx.nodes import Node, place, schema_of
from dml_tile.readers.onnx.values import Value, without_shape
from dml_tile.text import plural

ONNX_DOMAINS: Final = frozenset({"", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training"})
"""The domains of onnx's operators that ONNX Runtime knows."""

_NEWEST_OPSETS: Final = {"": defs.onnx_opset_version(), "ai.onnx.ml": defs.onnx_ml_opset_version()}
"""The newest opsets that the installed onnx knows, if not 1."""

_TYPE_NAMES: Final = {number: name.lower() for name, number in TensorProto.DataType.items() if number}
_TENSORS: Final = {f"tensor({name})": number for number, name in _TYPE_NAMES.items()}

_Types: TypeAlias = tuple[str | None, ...]
_AttributeTypes: TypeAlias = tuple[tuple[str, int], ...]

_ONLY_TYPES: Final = {
    "com.microsoft.DynamicTimeWarping": TensorProto.INT32,
    "com.microsoft.GridSample": TensorProto.FLOAT,
    "com.microsoft.MatMulInteger16": TensorProto.INT32,
}
"""The type of outputs whose variable no input has, where all kernels of the providers give one alone."""

_ZERO_POINTS: Final = {
    "com.microsoft.QGemm": (8, TensorProto.FLOAT),
    "com.microsoft.QuantizeLinear": (2, TensorProto.UINT8),
}
"""The number of the zero point that has the output's type, and the output's type without one, as onnxruntime infers."""


def type_name(type_: TypeProto | None) -> str | None:
    """Return ONNX's name of a value's type, such as ``float`` or ``seq(int64)``; None if it is unknown."""
    kind = None if type_ is None else type_.WhichOneof("value")
    if type_ is None or kind is None:
        return None
    if kind == "tensor_type":
        return _TYPE_NAMES.get(type_.tensor_type.elem_type)
    if kind == "sparse_tensor_type":
        return f"sparse({_TYPE_NAMES.get(type_.sparse_tensor_type.elem_type)})"
    if kind == "map_type":
        key = _TYPE_NAMES.get(type_.map_type.key_type)
        return f"map({key},{type_name(type_.map_type.value_type)})"
    word, inner = ("seq", type_.sequence_type) if kind == "sequence_type" else ("optional", type_.optional_type)
    name = type_name(inner.elem_type)
    return name and f"{word}({name})"


def edge_of(value: Value, name: str) -> Edge:
    """Return what placing takes of a value with a name."""
    elements = value.count if value.is_folded else None
    return Edge(type_name(value.type), elements, is_initialiser=value.is_folded, name=place(name))


_MAX_ELEMENTS: Final = 64
"""The most elements of a constant that conditions on nodes look at: those of roi, for 8 dimensions, are 16."""


def facts_of(node: Node) -> tuple[list[Facts | None], list[Facts | None]]:
    """Return the sizes and constants of a node's inputs and outputs, None where one is left out."""
    inputs = zip(node.proto.input, node.inputs, strict=True)
    outputs = ((name, node.outputs.get(name)) for name in node.proto.output)
    return [_facts(value) if name else None for name, value in inputs], [
        _facts(value) if name and value else None for name, value in outputs
    ]


def _facts(value: Value) -> Facts:
    sizes = value.sizes
    known = None if sizes is None else tuple(size if isinstance(size, int) else None for size in sizes)
    count = prod(size or 0 for size in known or ())
    is_small = known is not None and None not in known and count <= _MAX_ELEMENTS
    constant = value.constant if is_small else None
    return Facts(known, None if constant is None else tuple(constant.ravel().tolist()))


class Resolved(NamedTuple):
    """The version of a node's operator, its inputs and outputs, and its fault, if any.

    ``schema`` is onnx's, if it has one; ``introduced`` is the operator's first version.
    """

    version: int = 0
    formals: Formals = Formals()
    fault: Reason | None = None
    schema: Any = None  # onnx's types lack what its schemas say of functions
    introduced: int = 1


def is_operator(domain: str, name: str) -> bool:
    """Return True if a name is that of an operator of ONNX Runtime's, or may be that of one of onnx's."""
    return domain in ONNX_DOMAINS or bool(formals_of(domain, name))


@cache
def resolved(domain: str, operator: str, opset: int | None) -> Resolved:
    """Return the operator of nodes whose domain has this opset in the model, or none."""
    named = place(domain) or "ai.onnx"
    if domain in ONNX_DOMAINS and opset is not None:
        if opset > (newest := _NEWEST_OPSETS.get(domain, 1)):
            text = f"the installed onnx {onnx.__version__} knows {named} up to opset {newest}, not {opset}"
            return Resolved(fault=Reason(Placement.UNKNOWN, "ORT-UNKNOWN-opset", text))
        schema: Any = schema_of(domain, operator, opset)
        if schema is not None and not schema.deprecated:
            inputs, outputs = (
                tuple((each.name, each.type_str) for each in given) for given in (schema.inputs, schema.outputs)
            )
            first = older = schema
            while older := first.since_version > 1 and schema_of(domain, operator, first.since_version - 1):
                first = older
            return Resolved(schema.since_version, Formals(inputs, outputs), None, schema, first.since_version)
        if schema is not None and operator == "GroupNormalization":  # deprecated, and yet loaded by its function
            text = f"the installed onnx has no function of {operator}-18, with which ONNX Runtime replaces it"
            return Resolved(schema.since_version, fault=Reason(Placement.UNKNOWN, "ORT-UNKNOWN-opset", text))
    if formals := formals_of(domain, operator):
        return Resolved(1, Formals(*formals))
    rule = "ORT-MODEL-operator"
    if opset is None:
        rule, text = "ORT-MODEL-opset-import", f"the model imports no opset of the domain {named}"
    elif domain in limits_at(NEWEST_READ).opsets:
        text = f"{named} has no operator {place(operator) or NAMELESS} at opset {opset}"
    else:
        rule = "ORT-NODE-domain"
        text = f"the domain {named} is none of ONNX Runtime's: no provider, unless the application adds it"
    return Resolved(fault=Reason(Placement.NONE, rule, text))


def operator_of(node: Node, opset: int | None, stated: Iterable[TypeProto | None]) -> Resolved:
    """Return the operator of a node whose domain has this opset in the model, and the node's fault.

    ``stated`` are the types that the file, or onnx's inference of it, gives the outputs.
    """
    found = resolved(node.domain, node.type, opset)
    if found.fault or node.kind == "Constant":  # of which ONNX Runtime looks at the first attribute alone
        return found
    values = zip(node.proto.input, node.inputs, strict=True)
    inputs = tuple((value.edge.type if value.edge else None) if name else "" for name, value in values)
    outputs = tuple(type_name(type_) if name else "" for name, type_ in zip(node.proto.output, stated, strict=True))
    attributes = tuple((each.name, each.type) for each in node.proto.attribute)
    fault = _fault(node.domain, node.type, opset, inputs, outputs, attributes)
    made = _TYPE_NAMES.get(node.attributes["to"].i) if node.kind == "Cast" and not fault else None
    if made and outputs[0] not in ("", None, made):
        text = f"its output is of {outputs[0]}, and its attribute to is {made}"
        fault = Reason(Placement.NONE, "ORT-MODEL-node", text)
    return found._replace(fault=fault) if fault else found


_TAKES_ANY_ATTRIBUTE: Final = frozenset({"LayerNormalization"})
"""Operators of which ONNX Runtime 1.24.4 was seen to load a node with an unknown attribute."""
_SINGLE: Final = defs.OpSchema.FormalParameterOption.Single
_VARIADIC: Final = defs.OpSchema.FormalParameterOption.Variadic
_ANY_NUMBER: Final = 2**31 - 1


@lru_cache(2**12)
def _fault(
    domain: str, operator: str, opset: int | None, inputs: _Types, outputs: _Types, given: _AttributeTypes
) -> Reason | None:
    """Return the fault of a node of these types of inputs, outputs and ``given`` attributes.

    A type is empty if the input or output is left out, None if it is unknown.
    """
    wrong: list[str] = []
    types = queried_attributes(domain, operator)
    if schema := resolved(domain, operator, opset).schema:
        for what, values, formals, least, most in (
            ("input", inputs, schema.inputs, schema.min_input, schema.max_input),
            ("output", outputs, schema.outputs, schema.min_output, schema.max_output),
        ):
            if not least <= len(values) <= most:
                expected = {least: f"{least}", _ANY_NUMBER: f"{least} or more"}.get(most, f"{least} to {most}")
                wrong.append(f"it has {plural(len(values), what)}, not {expected}")
            pairs = zip(values, formals, strict=False)
            left_out = (each.name for value, each in pairs if value == "" and each.option == _SINGLE)
            wrong += [f"its {_named(what, name)} is left out" for name in left_out]
        wrong += _wrong_types(schema, inputs, outputs)
        types = {name: each.type.name for name, each in schema.attributes.items()}
        unknown = [name for name, _ in given if name not in types and name[:2] != "__"]
        wrong += [f"it has no attribute {place(name)}" for name in unknown if operator not in _TAKES_ANY_ATTRIBUTE]
        missing = (name for name, each in schema.attributes.items() if each.required and name not in dict(given))
        wrong += [f"its attribute {name} is missing" for name in missing]
    kinds = ((name, AttributeProto.AttributeType.Name(number)) for name, number in given)
    wrong += [f"its attribute {n} is of {kind}, not of {types[n]}" for n, kind in kinds if types.get(n, kind) != kind]
    return Reason(Placement.NONE, "ORT-MODEL-node", wrong[0]) if wrong else None


def _wrong_types(schema: Any, inputs: _Types, outputs: _Types) -> Iterator[str]:
    """Yield faults of the types of inputs, and of those that outputs are stated to have.

    The type of an output that no input shares may follow from an attribute.
    """
    bound: dict[str, str] = {}
    for what, formals, types in (("input", schema.inputs, inputs), ("output", schema.outputs, outputs)):
        for formal, type_ in zip(_repeated(formals), types, strict=False):
            is_output_by_attribute = what == "output" and len(formal.types) > 1
            if not type_ or "(" in type_:
                continue
            if f"tensor({type_})" not in formal.types and not is_output_by_attribute:
                verb = "take" if what == "input" else "make"
                yield f"its {_named(what, formal.name)} is of {type_}, which it does not {verb}"
            elif formal.is_homogeneous and bound.setdefault(formal.type_str, type_) != type_:
                yield f"its {_named(what, formal.name)} is of {type_}, and another of {bound[formal.type_str]}"


def _named(what: str, name: str) -> str:
    """Return an input or output with its name, unless that is the same word."""
    return what if name == what else f"{what} {name}"


def _repeated(formals: Iterable[Any]) -> Iterator[Any]:
    """Yield the formal of each value: the last is that of all others if it takes any number."""
    for each in formals:
        yield from repeat(each) if each.option == _VARIADIC else (each,)


def attributes_of(node: Node) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that a support query, or a known departure, may look at, of a node without a fault."""
    queried = {*queried_attributes(node.domain, node.type), *looked_at(node.domain, node.type)}
    for name, attribute in node.attributes.items() if queried else ():
        if name in queried and not attribute.ref_attr_name:
            value = helper.get_attribute_value(attribute)
            yield name, value.decode(errors="replace") if isinstance(value, bytes) else value


_VALUES_SINCE: Final = {
    ("Pad", "mode", b"wrap"): 19,
    ("Resize", "coordinate_transformation_mode", b"half_pixel_symmetric"): 19,
    ("Resize", "mode", b"cubic"): 11,
    ("ScatterElements", "reduction", b"max"): 18,
    ("ScatterElements", "reduction", b"min"): 18,
    ("ScatterND", "reduction", b"max"): 18,
    ("ScatterND", "reduction", b"min"): 18,
}
"""The versions that brought values of attributes which older versions have: https://onnx.ai/onnx/operators/"""


def fits(node: Node, version: int) -> bool:
    """Return True if an older version of a node's operator has its attributes, unless they are defaults, and values."""
    schema, older = node.schema, schema_of(node.domain, node.type, version)
    if schema is None or older is None:
        return False
    for name, attribute in node.attributes.items():
        if _VALUES_SINCE.get((node.type, name, attribute.s), 0) > version:
            return False
        newer = schema.attributes.get(name)
        if name not in older.attributes and newer and attribute != newer.default_value:
            return False
    return True


def version_at(domain: str, operator: str, opset: int) -> int:
    """Return the version of an operator at an opset of its domain; 0 if that lacks it, or is newer than onnx."""
    found = resolved(domain, operator, opset)
    return 0 if found.fault else found.version


def types_by_formals(node: Node, formals: Formals) -> dict[str, TypeProto]:
    """Return the outputs' types, without sizes, as far as the operator's inputs and outputs share variables."""
    variables: dict[str, TypeProto] = {}
    for (_, variable), value in zip(formals.inputs, node.inputs, strict=False):
        if value.type is not None:
            variables.setdefault(variable, value.type)
    found = {}
    for name, (_, variable) in zip(node.proto.output, formals.outputs, strict=False):
        if variable in variables:
            found[name] = without_shape(variables[variable])
        elif node.kind in _ZERO_POINTS:
            number, default = _ZERO_POINTS[node.kind]
            if not any(node.proto.input[number:]):
                found[name] = helper.make_tensor_type_proto(default, None)
            elif type_ := node.inputs[number].type:
                found[name] = without_shape(type_)
        elif element := _TENSORS.get(variable, _ONLY_TYPES.get(node.kind)):
            found[name] = helper.make_tensor_type_proto(element, None)
    return found


def depends_on_unknown_type(schema: Any, node: Node) -> bool:
    """Return True if an operator's function depends on its inputs' types, of which one is not known."""
    return schema.has_context_dependent_function and any(
        value.type is None or value.type.WhichOneof("value") is None for value in node.given.values()
    )


def function_of(schema: Any, node: Node) -> FunctionProto | None:
    """Return the function that replaces a node, with the defaults of its attributes; None if there is none."""
    opset = node.opset or 1
    try:
        if schema.has_context_dependent_function:
            version = _version_in(schema.context_dependent_function_opset_versions, opset)
            types = [(value.type or TypeProto()).SerializeToString() for value in node.inputs]
            proto = node.proto.SerializeToString()
            text = schema.get_context_dependent_function_with_opset_version(version, proto, types)
        else:
            text = schema.get_function_with_opset_version(_version_in(schema.function_opset_versions, opset))
        function = FunctionProto.FromString(text)
    except Exception:  # of any class: the C++ that builds functions assumes sound nodes
        return None
    defaults = (attribute.default_value for attribute in schema.attributes.values())
    function.attribute_proto.extend(default for default in defaults if default.name)
    return function if text else None


def _version_in(versions: Iterable[int], opset: int) -> int:
    return max((version for version in versions if version <= opset), default=opset)
