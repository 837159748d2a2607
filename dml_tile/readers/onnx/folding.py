"""Types by onnx's inference, and small constants by its reference implementation, one node at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TypeProto, defs, helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

from dml_tile.readers.onnx.operators import Operator
from dml_tile.readers.onnx.tensors import MAX_ELEMENTS
from dml_tile.readers.onnx.values import Value, dimensions

Array = NDArray[Any]

MOVING: Final = frozenset(
    {
        *("Cast", "Concat", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose"),
        "Unsqueeze",
    }
)
"""Operators that move elements of their first input, of all for Concat: some are known where others are not."""

COMPUTING: Final = frozenset(
    {
        *("Abs", "Add", "And", "CastLike", "Ceil", "Clip", "Constant", "ConstantOfShape", "Div", "Equal", "Expand"),
        *("Floor", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or"),
        *("Pow", "Range", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "ScatterElements", "ScatterND", "Sub"),
        *("Sum", "Tile", "Where"),
    }
)
"""Operators whose inputs have to be known as a whole."""

_FOLDED: Final = MOVING | COMPUTING | {"Shape", "Size"}


def is_folded(operator: Operator) -> bool:
    """Whether constants are looked for behind the operator."""
    return not operator.domain and operator.type in _FOLDED


def inferred(node: NodeProto, operator: Operator, values: Mapping[str, Value]) -> Mapping[str, TypeProto]:
    """The types of the outputs; none where onnx has no inference, or it fails. ``values`` are those of the inputs."""
    schema = operator.schema
    types = {name: value.type for name, value in values.items() if value.type is not None}
    if schema is None or operator.opset is None or len(types) < len(values):
        return {}
    constants = ((name, value.constant) for name, value in values.items())
    try:
        data = {name: numpy_helper.from_array(array, name) for name, array in constants if array is not None}
        imports = [helper.make_opsetid("", operator.opset)]
        return shape_inference.infer_node_outputs(schema, node, types, data, opset_imports=imports)
    except Exception:  # of any class: whatever an operator's C++ throws
        return {}


def folded(
    node: NodeProto, operator: Operator, inputs: Sequence[Value], types: Mapping[str, TypeProto]
) -> Mapping[str, Value]:
    """The outputs of which elements follow from the inputs, if they are few; else none.

    ``inputs`` has an unknown value for one that is left out; ``types`` are those that were inferred for the outputs.
    """
    outputs = [name for name in node.output if name]
    if not is_folded(operator) or not all(name in types and _is_small(types[name]) for name in outputs):
        return {}
    if operator.type in ("Shape", "Size"):
        return {name: _measured(node, inputs[0], types[name]) for name in outputs}
    moved = len(inputs) if operator.type == "Concat" else int(operator.type in MOVING)
    elements, masks = {}, {}
    for i, (name, value) in enumerate(zip(node.input, inputs, strict=True)):
        if value.elements is None:
            if name:
                return {}
        elif i < moved:
            elements[name] = value.elements
            masks[name] = np.ones_like(value.elements) if value.known is None else value.known
        elif value.constant is None:
            return {}
        else:
            elements[name] = masks[name] = value.elements
    arrays = _evaluated(node, operator, elements)
    known: Mapping[str, Array | None] = dict.fromkeys(outputs)
    if any(value.known is not None for value in inputs):
        known = _evaluated(node, operator, masks)
    return {
        name: Value(types[name], array, known[name])
        for name, array in arrays.items()
        if name in known and array.shape == dimensions(types[name])
    }


def _is_small(type_: TypeProto) -> bool:
    sizes = dimensions(type_)
    return (
        sizes is not None and math.prod(size if isinstance(size, int) else math.inf for size in sizes) <= MAX_ELEMENTS
    )


def _measured(node: NodeProto, value: Value, type_: TypeProto) -> Value:
    """What Shape and Size give."""
    if value.shape is None:
        return Value(type_)
    known = np.array([isinstance(size, int) for size in value.shape], np.int64)
    sizes = [size if isinstance(size, int) else 0 for size in value.shape]
    if node.op_type == "Size":
        total = math.prod(sizes)
        return Value(type_, np.array(total)) if known.all() and total < 2**63 else Value(type_)
    bounds = {attribute.name: attribute.i for attribute in node.attribute}
    part = slice(bounds.get("start"), bounds.get("end"))
    return Value(type_, np.array(sizes, np.int64)[part], known[part])


def _evaluated(node: NodeProto, operator: Operator, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    """The outputs by name; none where the reference implementation fails, overflows, or gives no tensors."""
    plain = NodeProto()
    plain.CopyFrom(node)
    plain.domain = ""
    sources, results = (
        [helper.make_empty_tensor_value_info(name) for name in names if name] for names in (inputs, node.output)
    )
    opset = min(operator.opset or 1, defs.onnx_opset_version())
    try:
        with np.errstate(all="raise"):
            graph = helper.make_graph([plain], "one node", sources, results)
            given = ReferenceEvaluator(graph, opsets={"": opset}).run(None, dict(inputs))
    except Exception:  # of any class: its operators assume inputs that are sound
        return {}
    outputs = zip(filter(None, node.output), given, strict=True)
    return {name: np.asarray(array) for name, array in outputs if isinstance(array, np.ndarray | np.generic)}
