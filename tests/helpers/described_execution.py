"""Nodes of ONNX models, executed as the operators that ONNX Runtime's DirectML provider creates of them.

Each value lives in memory of its ONNX size, packed, a bool as a byte; a descriptor's tensors are views of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from dml_tile.back_ends.deployment import deployed
from dml_tile.back_ends.descriptions import (
    WITHOUT_OPERATORS,
    Described,
    KernelNode,
    KnownAtRunTime,
    NotDescribed,
    ProviderRefusal,
    describe,
)
from dml_tile.back_ends.descriptions.tensors import Tensor
from dml_tile.back_ends.placement import Placement
from dml_tile.back_ends.placer import place
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml.operator_table import tables_of
from dml_tile.directml.operators import operators
from dml_tile.directml.targets import Target
from dml_tile.execution.evaluation import executable
from dml_tile.readers.onnx.file import Tensors
from dml_tile.readers.onnx.kernels import kernel_node
from dml_tile.readers.onnx.nodes import Node, default_opset
from dml_tile.readers.onnx.tiles import prepare, scan
from dml_tile.readers.onnx.values import UNKNOWN, Value

Array = NDArray[Any]

TARGET: Final = Target.parse("onnxruntime-directml-1.24.4")
POISON: Final = 0xCD
_NEVER_EXECUTED: Final = {*WITHOUT_OPERATORS, "Constant", "NonZero"}
"""Operators whose results no described operator writes; a NonZero's are cut when it runs."""
_KINDS: Final = {kind.name: kind for kind in operators().values()}


class WrongBindingError(Exception):
    """A tensor covers other bytes than the value that it describes has, or reads what nothing wrote."""


def _bytes_of(array: Array) -> NDArray[np.uint8]:
    data = numpy_helper.from_array(array).raw_data if array.dtype.name in ("int4", "uint4") else array.tobytes()
    return np.frombuffer(data, np.uint8)


def _memory(size: int) -> NDArray[np.uint8]:
    return np.full((size + 3) // 4 * 4, POISON, np.uint8)


def _held(array: Array) -> NDArray[np.uint8]:
    data = _bytes_of(array)
    memory = _memory(data.size)
    memory[: data.size] = data
    return memory


def _array(memory: NDArray[np.uint8], like: Array) -> Array:
    data = memory[: _bytes_of(like).size]
    if like.dtype.name in ("int4", "uint4"):
        kind = helper.np_dtype_to_tensor_dtype(like.dtype)
        return numpy_helper.to_array(TensorProto(data_type=kind, dims=like.shape, raw_data=data.tobytes()))
    return data.view(like.dtype).reshape(like.shape)


def _tensors(described: Described, *, are_outputs: bool) -> Iterator[tuple[str, Tensor]]:
    kind = _KINDS[described.operator]
    (_, table), *_ = tables_of(kind)
    for field in kind.tensor_fields:
        value = described.fields.get(field.name)
        if value is not None and table.is_output(field.name) == are_outputs:
            many = value if isinstance(value, list) else [value]
            yield from (
                (f"{field.name}[{i}]" if isinstance(value, list) else field.name, x) for i, x in enumerate(many)
            )


def dispatch(made: Sequence[Described], memory: dict[str, NDArray[np.uint8]], ready: set[str]) -> None:
    """Execute operators, each as soon as what it reads is ready; raises DmlError where DirectML refuses one."""
    waiting = list(made)
    while waiting:
        step = next((each for each in waiting if _is_ready(each, ready, set(memory))), None)
        if step is None:
            raise WrongBindingError(f"none of {', '.join(each.operator for each in waiting)} is ready")
        waiting.remove(step)
        views = {}
        for path, tensor in (*_tensors(step, are_outputs=False), *_tensors(step, are_outputs=True)):
            bound = memory.setdefault(tensor.of, _memory(tensor.bytes))
            is_one_element = tensor.strides is not None and not any(tensor.strides)
            if tensor.bytes != bound.size and not (tensor.bytes < bound.size and is_one_element):
                raise WrongBindingError(f"{step.operator}.{path} covers {tensor.bytes} of {bound.size} bytes")
            views[path] = bound
        executable("execute", OperatorDesc.model_validate(step.desc), TARGET, "runtime").run(
            views, {path: [bound] for path, bound in views.items()}
        )
        ready |= {tensor.of for _, tensor in _tensors(step, are_outputs=True)}


def _is_ready(step: Described, ready: set[str], there: set[str]) -> bool:
    reads, writes = ({each.of for _, each in _tensors(step, are_outputs=side)} for side in (False, True))
    return reads <= ready or (step.operator == "ELEMENT_WISE_LOGICAL_XOR" and writes <= there)  # which sets to zero


def _value(array: Array, *, is_constant: bool) -> Value:
    type_ = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
    return Value(type_, array, is_folded=is_constant, early_type=type_)


def kernel_of(
    proto: NodeProto, values: Mapping[str, Array], constants: set[str], outputs: Mapping[str, Array], opset: int
) -> KernelNode:
    """A node as a kernel sees it; its outputs are arrays of their types and sizes."""
    inputs = [_value(values[name], is_constant=name in constants) if name else UNKNOWN for name in proto.input]
    node = Node(proto, proto.domain, opset, inputs)
    node.outputs = {name: _value(array, is_constant=False) for name, array in outputs.items()}
    since = node.schema.since_version if node.schema else 1
    return kernel_node(node, since, {*values}, Tensors(Path("model.onnx")), deployed(TARGET).release)


def executed(
    proto: NodeProto, values: Mapping[str, Array], constants: set[str], outputs: Mapping[str, Array], opset: int
) -> dict[str, Array]:
    """A node's outputs as its operators write them; what a kernel reads on the CPU is known."""
    try:
        made = describe(kernel_of(proto, values, constants, outputs, opset))
    except KnownAtRunTime:
        made = describe(kernel_of(proto, values, {*values}, outputs, opset)._replace(is_in_graph=False))
    return computed(made, {name: values[name] for name in proto.input if name}, outputs)


def computed(made: Sequence[Described], inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs, of these types and sizes, that operators write. Raises WrongBindingError if they write inputs."""
    memory = {name: _held(array) for name, array in inputs.items()}
    before = {name: data.copy() for name, data in memory.items()}
    memory |= {name: _memory(_bytes_of(array).size) for name, array in outputs.items()}
    dispatch(made, memory, {*before})
    if any(not np.array_equal(memory[name], data) for name, data in before.items()):
        raise WrongBindingError("an input was written")
    return {name: _array(memory[name], array) for name, array in outputs.items()}


def placements(model: ModelProto) -> list[Placement]:
    """The placement of each node of the main graph; NONE for one that its function replaces."""
    made = ModelProto()
    made.CopyFrom(model)
    nodes = scan(made, Path("model.onnx"), prepare(made), deployed(TARGET).release).nodes
    placed = {node.place.pointer: reason.placement for node, reason in place(nodes, deployed(TARGET)).nodes}
    return [placed.get(str(i), Placement.NONE) for i in range(len(model.graph.node))]


def _alone(proto: NodeProto, values: Mapping[str, Array], model: ModelProto) -> dict[str, Array]:
    """A node's outputs by onnx's own evaluator. Raises NotDescribed for a node with graphs inside it."""
    if any(each.type == AttributeProto.GRAPH for each in proto.attribute):
        raise NotDescribed("a graph in a node")
    names = [*dict.fromkeys(filter(None, proto.input))]
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(values[n].dtype), None) for n in names]
    outputs = [helper.make_empty_tensor_value_info(name) for name in proto.output if name]
    graph = helper.make_graph([proto], "alone", infos, outputs)
    made = helper.make_model(graph, opset_imports=model.opset_import)
    results = ReferenceEvaluator(made).run(None, {name: values[name] for name in names})
    return dict(zip(filter(None, proto.output), results, strict=True))


def run(model: ModelProto, inputs: Mapping[str, Array], expected: Mapping[str, Array]) -> dict[str, Array]:
    """All values of a model; nodes that DirectML does not take are onnx's evaluator's, unless there is one node.

    Raises NotDescribed for a lone node that it does not take, or that is not described.
    """
    placed, values = placements(model), {name: np.asarray(array) for name, array in inputs.items()}
    values |= {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    constants = {each.name for each in model.graph.initializer}
    opset = default_opset(model.opset_import) or 1
    for proto, placement in zip(model.graph.node, placed, strict=True):
        is_taken = placement in (Placement.DIRECTML, Placement.GONE) and proto.op_type not in _NEVER_EXECUTED
        if not is_taken and len(model.graph.node) == 1:
            raise NotDescribed(f"the placement is {placement}")
        names = [*filter(None, proto.output)]
        outputs = {name: expected[name] for name in names if name in expected}
        outputs = outputs if len(outputs) == len(names) else _alone(proto, values, model)
        try:
            values |= executed(proto, values, constants, outputs, opset) if is_taken else outputs
        except (NotDescribed, ProviderRefusal) as error:
            if len(model.graph.node) == 1 or (type(error), placement) == (ProviderRefusal, Placement.DIRECTML):
                raise
            values |= outputs
        if proto.op_type == "Constant":
            constants.update(proto.output)
    return values
