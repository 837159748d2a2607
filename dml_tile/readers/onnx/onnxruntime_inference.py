"""Infers the types of outputs by onnxruntime, for the operators of its own domain, of which onnx infers nothing.

The inference is asked for one node at a time, with what is known of the node's inputs: no data but small constants.

Page: https://onnxruntime.ai/docs/reference/operators/ContribOperators.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import chdir
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

from onnx import AttributeProto, ModelProto, NodeProto, TypeProto, ValueInfoProto, helper, numpy_helper

from dml_tile.readers.model_tile import ONNXRUNTIME
from dml_tile.readers.onnx.operators import MICROSOFT, Operator
from dml_tile.readers.onnx.values import Value, dimensions

Inference: TypeAlias = Callable[[NodeProto, Operator, Mapping[str, Value]], Mapping[str, TypeProto]]
"""Returns the types of a node's outputs that it knows; the values are those of the node's inputs."""

_PLAIN: Final = {
    AttributeProto.FLOAT,
    AttributeProto.FLOATS,
    AttributeProto.INT,
    AttributeProto.INTS,
    AttributeProto.STRING,
    AttributeProto.STRINGS,
}
"""The kinds of attributes that cannot name files or hold nodes."""

_MISTAKEN: Final = {
    "DynamicTimeWarping",  # the output is of INT32, not of the input's type
    "GatherBlockQuantized",  # of packed elements, bytes are taken for elements
}
"""Operators of which the inference contradicts onnxruntime's sessions."""

_SPLIT_INTO_HEADS: Final = 4
"""The rank of keys and values of which the inference does not look at the last size, which the output has."""

_ASSUMING: Final = "Attention"
"""The last word of operators of which it assumes that a cache, their later outputs, keeps its length."""


def onnxruntime_inference() -> Inference:
    """Return the symbolic shape inference of onnxruntime's tools. Raises ImportError, with what to install.

    It writes a file into the current folder where it fails, so that folder is changed meanwhile.
    """
    try:
        from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference
    except ImportError as error:
        raise ImportError(
            f"--infer {ONNXRUNTIME} needs onnxruntime and sympy: pip install onnxruntime sympy"
        ) from error

    def inferred(node: NodeProto, operator: Operator, values: Mapping[str, Value]) -> Mapping[str, TypeProto]:
        if operator.opset is None or not _is_asked(node, operator, values):
            return {}
        try:
            with TemporaryDirectory() as folder, chdir(folder):
                model = SymbolicShapeInference.infer_shapes(_single_node_model(node, operator.opset, values))
        except MemoryError:
            raise
        except Exception:  # of any class: assertions, sympy's, what the attributes of a hostile node lead to
            return {}
        return {} if model is None else _types(node, model, values.values())

    return inferred


def _is_asked(node: NodeProto, operator: Operator, values: Mapping[str, Value]) -> bool:
    return (
        operator.domain == MICROSOFT
        and not _is_mistaken(operator, values)
        and all(attribute.type in _PLAIN for attribute in node.attribute)
        and all(value.data_type is not None for value in values.values())
    )


def _is_mistaken(operator: Operator, values: Mapping[str, Value]) -> bool:
    ranks = (len(value.shape or ()) for value in values.values())
    return operator.type in _MISTAKEN or (operator.type == "MultiHeadAttention" and _SPLIT_INTO_HEADS in ranks)


def _single_node_model(node: NodeProto, opset: int, values: Mapping[str, Value]) -> ModelProto:
    """Return a model of the node alone; its inputs are those that are not constant."""
    inputs = [ValueInfoProto(name=name, type=value.type) for name, value in values.items() if value.constant is None]
    constants = ((name, value.constant) for name, value in values.items())
    initializers = [numpy_helper.from_array(array, name) for name, array in constants if array is not None]
    outputs = [ValueInfoProto(name=name) for name in node.output if name]
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(helper.make_graph([node], "node", inputs, outputs, initializers), opset_imports=imports)


def _types(node: NodeProto, model: ModelProto, inputs: Iterable[Value]) -> dict[str, TypeProto]:
    """Return the types of the node's outputs in the model, without the names of sizes that no input has."""
    named = {size for value in inputs for size in value.shape or () if isinstance(size, str)}
    known = {value.name: value.type for value in [*model.graph.value_info, *model.graph.output]}
    outputs = node.output[:1] if node.op_type.endswith(_ASSUMING) else node.output
    types = {}
    for name in filter(None, outputs):
        type_ = known.get(name)
        shape = type_ and dimensions(type_)
        if type_ is not None and type_.tensor_type.elem_type and shape is not None:
            sizes: list[Any] = [size if isinstance(size, int) or size in named else None for size in shape]
            types[name] = helper.make_tensor_type_proto(type_.tensor_type.elem_type, sizes)
    return types
