"""The nodes that onnxruntime folds or removes before it runs a model, as measured of its basic optimisations (1.31).

It folds a node whose inputs are all constant, and a Shape or Size whose input has a static shape, if its inference
knows the shapes of the outputs and its CPU provider has the operator. It keeps a DequantizeLinear for the providers,
unless its output is quantised again, as it is or by way of one node. With the last Shape of a value it removes
the nodes that computed nothing else. A node whose output nobody uses stays.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/constant_folding.cc
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import chdir
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto, helper, numpy_helper

from dml_tile.readers.model_tile import ONNXRUNTIME
from dml_tile.readers.onnx.file import graphs
from dml_tile.readers.onnx.folding import may_fold
from dml_tile.readers.onnx.functions import MICROSOFT, OnnxOperator
from dml_tile.readers.onnx.values import Value, dimensions

_UNSUPPORTED: Final = frozenset({"bfloat16", "complex64", "complex128", "float16", None})
"""Data types that its CPU provider, which folds, has no kernels for, or few; None is an unknown one."""


def is_folded(
    node: NodeProto, operator: OnnxOperator, inputs: Mapping[str, Value], types: Mapping[str, TypeProto]
) -> bool:
    """Return True if onnxruntime has the node's outputs, of the inferred types, as constants."""
    if operator.type == "DequantizeLinear":
        return False
    if not may_fold(node, operator) or not all(Value(types.get(name)).is_typed for name in node.output if name):
        return False
    if operator.type in ("Shape", "Size"):
        return all(value.is_static for value in inputs.values())
    is_supported = all(value.data_type not in _UNSUPPORTED for value in inputs.values())
    return (
        is_supported
        and (operator.type, operator.since) != ("Tile", 1)
        and all(value.is_folded for value in inputs.values())
    )


def requantised(graph: GraphProto) -> Iterator[tuple[str, list[str]]]:
    """Yield the output of each QuantizeLinear of what was dequantised, with what it is computed from.

    It is folded if these values are constant. Between the two may be Transposes, which onnxruntime exchanges with them,
    and one other node, each of one input; what each gives is used once.
    """
    makers = {name: node for node in graph.node for name in node.output}
    uses = Counter(name for node in graph.node for name in node.input)
    uses.update({*(value.name for value in graph.output), *_used_inside(graph)})
    for node in graph.node:
        before, left = node if node.op_type == "QuantizeLinear" and node.input and node.output else None, 1
        while before and uses[before.input[0]] == 1 and (before := makers.get(before.input[0])):
            if before.op_type == "DequantizeLinear":
                yield node.output[0], [*before.input, *node.input[1:]]
                break
            left -= before.op_type != "Transpose"
            if left < 0 or len(before.input) != 1 or len(before.output) != 1:
                break


def removed(graph: GraphProto, values: Mapping[str, Value]) -> set[int]:
    """Return the positions of the nodes that are used by nodes alone that onnxruntime folds or removes."""
    needed = {value.name for value in graph.output} | _used_inside(graph)
    used: set[str] = set()
    found = set()
    for i, node in reversed(list(enumerate(graph.node))):
        outputs = set(filter(None, node.output))
        is_gone = all(values[name].is_folded for name in outputs)
        if not is_gone and outputs & used and not outputs & needed:
            found.add(i)
            is_gone = True
        used.update(node.input)
        if not is_gone:
            needed.update(node.input)
    return found


def _used_inside(graph: GraphProto) -> set[str]:
    """Return the names that the graphs inside the nodes use."""
    inside = list(graphs(graph))[1:]
    used = (name for inner in inside for node in inner.node for name in node.input)
    return {*used, *(value.name for inner in inside for value in inner.output)}


Inference: TypeAlias = Callable[[NodeProto, OnnxOperator, Mapping[str, Value]], Mapping[str, TypeProto]]
"""Returns the types of a node's outputs that it knows; the values are those of the node's inputs."""

_PLAIN: Final = {*map(AttributeProto.AttributeType.Value, ("FLOAT", "FLOATS", "INT", "INTS", "STRING", "STRINGS"))}
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

    def inferred(node: NodeProto, operator: OnnxOperator, values: Mapping[str, Value]) -> Mapping[str, TypeProto]:
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


def _is_asked(node: NodeProto, operator: OnnxOperator, values: Mapping[str, Value]) -> bool:
    ranks = [len(value.shape or ()) for value in values.values()]
    return (
        operator.domain == MICROSOFT
        and operator.type not in _MISTAKEN
        and not (operator.type == "MultiHeadAttention" and _SPLIT_INTO_HEADS in ranks)
        and all(attribute.type in _PLAIN for attribute in node.attribute)
        and all(value.data_type is not None for value in values.values())
    )


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
