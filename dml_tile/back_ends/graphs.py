"""The DML_GRAPH_DESC that ONNX Runtime's DirectML provider compiles of nodes that it takes.

Source: microsoft/onnxruntime, onnxruntime/core/providers/dml/DmlExecutionProvider/src/GraphDescBuilder.cpp, read at the
tags of 1.9 to 1.22
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

from dml_tile.back_ends.descriptions import WITHOUT_OPERATORS, Described, KernelNode
from dml_tile.back_ends.descriptions.node import Input
from dml_tile.back_ends.descriptions.tensors import SMALL_CONSTANT_BYTES, Tensor
from dml_tile.back_ends.kernels import Version, directml_kernels
from dml_tile.back_ends.placement import ModelNode, Placement, Reason
from dml_tile.directml.operator_table import tables_of
from dml_tile.directml.operators import operator_named

_EVER: Final = (1000, 0)
_NEVER_IN_A_GRAPH: Final[dict[str, Version]] = {
    **dict.fromkeys((*WITHOUT_OPERATORS, "ConcatFromSequence", "GRU", "LSTM", "NonZero", "RNN", "STFT"), _EVER),
    **dict.fromkeys(("ConstantOfShape", "ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"), (1, 9)),
}
"""Operators whose kernels are never part of a graph, with the last release in which they are not."""

_IN_A_GRAPH_OF_TWO: Final = frozenset({"Sum", "Min", "Max", "Mean", "DmlFusedSum", "FusedSum"})
"""Operators that are part of a graph with two inputs alone."""

_COMPILED_ALONE: Final = frozenset({("TopK", "ELEMENT_WISE_LOGICAL_XOR")})
"""Operators of DirectML's that a kernel compiles for itself, in a graph too."""

_CONSTANT_NODES_SINCE: Final = (1, 17)


def of_session(node: ModelNode, kernel_of: Callable[[Version], KernelNode], release: Version) -> KernelNode:
    """Return a node's kernel, of the model with all given sizes, as a session has it, which knows no given sizes.

    They make more values known, but initialisers alone are DirectML's to own, and other nodes are made at the run.
    """
    kernel = kernel_of(release)
    inputs = [
        each._replace(is_own=False) if each and each.is_constant and not (edge and edge.is_initialiser) else each
        for each, edge in zip(kernel.inputs, node.inputs, strict=True)
    ]
    is_static = node.kernel in (None, kernel_of) or knows_sizes(node.kernel(release))
    return kernel._replace(inputs=inputs, is_static=is_static)


def places_computed(node: ModelNode, computed: Set[Hashable]) -> tuple[int, ...]:
    """Return the places of a node's inputs that are among the values ``computed`` as the model runs."""
    return tuple(i for i, edge in enumerate(node.inputs) if edge in computed) if computed else ()


def without_constants(kernel: KernelNode, places: Collection[int]) -> KernelNode:
    """Return a kernel whose inputs at these places are no constants."""
    if not places:
        return kernel
    inputs = [Input(*each[:3]) if each and i in places else each for i, each in enumerate(kernel.inputs)]
    return kernel._replace(inputs=inputs)


def computed_by(placed: Iterable[tuple[ModelNode, Reason]]) -> frozenset[Hashable]:
    """Return the values that may be folded, but are computed as the model runs, since their nodes are kept."""
    kept = (node for node, reason in placed if reason.placement is not Placement.GONE)
    return frozenset(edge for node in kept for edge in node.outputs if edge and edge.is_initialiser)


def knows_sizes(kernel: KernelNode) -> bool:
    """Return True if all sizes of a node's values are known."""
    return all(each.shape is not None for each in (*kernel.inputs, *kernel.outputs) if each)


def in_graph(node: KernelNode, has_graphs: bool) -> KernelNode:
    """Return a node as one that is part of a DML_GRAPH_DESC, if it may be; ``has_graphs`` says so of its graph."""
    return node._replace(is_in_graph=has_graphs and joins_graphs(node))


def numbered(node: KernelNode) -> KernelNode:
    """Return a node whose values have their places as names, which no value inside a kernel has."""
    inputs = [each and Input(f"input {i}", *each[1:]) for i, each in enumerate(node.inputs)]
    outputs = [each and Input(f"output {i}", *each[1:]) for i, each in enumerate(node.outputs)]
    return node._replace(inputs=inputs, outputs=outputs)


def joins_graphs(node: KernelNode) -> bool:
    """Return True for a node that may be part of a DML_GRAPH_DESC, in a graph without bodies.

    Its session knows its sizes, none of them 0, and what its kernel reads on the CPU is an initialiser of its graph.
    """
    if not node.is_static or node.release <= _NEVER_IN_A_GRAPH.get(node.operator, (0, 0)):
        return False
    if node.operator in _IN_A_GRAPH_OF_TWO and len(node.inputs) != len("AB"):
        return False
    on_cpu = _cpu_inputs(node.domain, node.operator, node.since, node.release)
    if any(each and i in on_cpu and not (each.is_constant and each.is_own) for i, each in enumerate(node.inputs)):
        return False
    values = [each for i, each in (*enumerate(node.inputs), *enumerate(node.outputs)) if each and i not in on_cpu]
    return all(each.shape is not None and 0 not in each.shape for each in values)


@cache
def _cpu_inputs(domain: str, operator: str, since: int, release: Version) -> Sequence[int]:
    kernels = directml_kernels(release).get((domain, operator), ())
    return next((kernel.cpu_inputs for kernel in kernels if kernel.since == since), ())


class Member(NamedTuple):
    """A node of a model in a graph: its label, its operators, its values by the names that their tensors have.

    ``constants`` have the bytes of those that may be nodes of the graph.
    """

    label: str
    operators: Sequence[Described]
    values: Mapping[str, Hashable]
    constants: Mapping[str, int]

    def value(self, tensor: Tensor) -> Hashable:
        """Return the value that a tensor describes: one of the model, or one inside the node."""
        return self.values.get(tensor.of, (self.label, tensor.of))

    def ends(self, *, are_outputs: bool) -> Iterator[tuple[Any, int]]:
        """Yield the model's values that the operators read, or write, with the bytes of their tensors."""
        for described in self.operators:
            for _, tensor in tensors_of(described, are_outputs=are_outputs):
                if tensor.of in self.values:
                    yield self.values[tensor.of], tensor.bytes

    def making(self, value: Hashable) -> Member:
        """Return the node with the operator alone that makes a value."""
        makers = [each for each in self.operators if value in self._written(each)]
        return self._replace(operators=makers[-1:])

    def _written(self, described: Described) -> set[Hashable]:
        return {self.value(tensor) for _, tensor in tensors_of(described, are_outputs=True)}

    @property
    def has_constants(self) -> bool:
        """True if a constant that the operators read is a node of the graph."""
        tensors = (each for described in self.operators for _, each in tensors_of(described, are_outputs=False))
        return bool(self.constants) and any(map(self.constant_bytes, tensors))

    def constant_bytes(self, tensor: Tensor) -> int:
        """Return the bytes of a constant that is a node of the graph; 0 for another tensor."""
        is_small = tensor.bytes < SMALL_CONSTANT_BYTES
        return min(self.constants.get(tensor.of, 0), tensor.bytes) if is_small else 0


def member_of(label: str, node: KernelNode, operators: Iterable[Described], values: Iterable[Hashable]) -> Member:
    """Return a ``numbered`` node in a graph; ``values`` are the model's, at the places of its inputs and outputs."""
    names = [each and each.name for each in (*node.inputs, *node.outputs)]
    constants = {}
    for i, each in enumerate(node.inputs if node.release >= _CONSTANT_NODES_SINCE else ()):
        if each and each.is_constant and each.is_own:
            constants[each.name] = -(-prod(node.shape(i)) * node.type(i).bits // 8)
    kept = [each for each in operators if (node.operator, each.operator) not in _COMPILED_ALONE]
    pairs = zip(names, values, strict=True)
    return Member(label, kept, {name: value for name, value in pairs if name}, constants)


def tensors_of(described: Described, *, are_outputs: bool) -> Iterator[tuple[int, Tensor]]:
    """Yield an operator's inputs, or its outputs, that are not null, each with its index."""
    index = 0
    for name in _tensor_fields(described.operator)[are_outputs]:
        value = described.fields.get(name)
        for each in value if isinstance(value, list) else [value]:
            if each is not None:
                yield index, each
            index += 1


@cache
def _tensor_fields(name: str) -> tuple[list[str], list[str]]:
    operator = operator_named(name)
    assert operator is not None
    _, table = next(tables_of(operator))
    sides: tuple[list[str], list[str]] = [], []
    for field in operator.tensor_fields:
        sides[table.is_output(field.name)].append(field.name)
    return sides


class _Step(NamedTuple):
    """An operator in a graph; of its inputs, the index, the tensor, and the step and output that make it, if any do."""

    member: Member
    described: Described
    reads: Sequence[tuple[int, Tensor, tuple[int, int] | None]]


_Makers: TypeAlias = dict[Hashable, list[tuple[int, int]]]
"""The steps that make each value, with the index of the output."""


def _steps(members: Sequence[Member]) -> tuple[list[_Step], _Makers]:
    operators = [(member, described) for member in members for described in member.operators]
    made: _Makers = {}
    for i, (member, described) in enumerate(operators):
        for index, tensor in tensors_of(described, are_outputs=True):
            made.setdefault(member.value(tensor), []).append((i, index))
    steps = []
    for i, (member, described) in enumerate(operators):
        reads = tensors_of(described, are_outputs=False)
        made_by = [(index, each, _maker(made.get(member.value(each), ()), i)) for index, each in reads]
        steps.append(_Step(member, described, made_by))
    return steps, made


def _maker(makers: Sequence[tuple[int, int]], step: int) -> tuple[int, int] | None:
    """Return the last before a step that makes a value, else the first behind it, as some kernels list operators."""
    before = [maker for maker in makers if maker[0] < step]
    return before[-1] if before else next((maker for maker in makers if maker[0] > step), None)


def _live(steps: Sequence[_Step], results: Iterable[tuple[int, int]]) -> list[int]:
    """Return the steps that lead to results."""
    live, unvisited = set[int](), [step for step, _ in results]
    while unvisited:
        if (step := unvisited.pop()) not in live:
            live.add(step)
            unvisited += (maker[0] for _, _, maker in steps[step].reads if maker)
    return sorted(live)


def graph_desc(members: Sequence[Member], kept: Container[Hashable] | None = None) -> dict[str, Any]:
    """Return the DML_GRAPH_DESC of nodes, as ``GraphDesc`` reads it.

    Its outputs are the values ``kept``, without them those that no node in it reads. Operators that lead to none of
    its outputs are left out, as the provider does from 1.14 on.
    """
    steps, made = _steps(members)
    read = {maker for step in steps for _, _, maker in step.reads}
    results = [
        makers[-1] for each, makers in made.items() if (makers[-1] not in read if kept is None else each in kept)
    ]
    live = _live(steps, results)
    numbers = {step: number for number, step in enumerate(live)}
    nodes: list[dict[str, Any]] = [
        {"Operator": steps[step].described.desc, "Name": steps[step].member.label or None} for step in live
    ]
    inputs: dict[Hashable, int] = {}
    edges: dict[str, list[dict[str, int]]] = {"InputEdges": [], "OutputEdges": [], "IntermediateEdges": []}
    for step, number in numbers.items():
        member = steps[step].member
        for index, tensor, maker in steps[step].reads:
            end = {"ToNodeIndex": number, "ToNodeInputIndex": index}
            if maker:
                start = {"FromNodeIndex": numbers[maker[0]], "FromNodeOutputIndex": maker[1]}
            elif data_size := member.constant_bytes(tensor):
                start = {"FromNodeIndex": len(nodes), "FromNodeOutputIndex": 0}
                name = f"{member.label} {tensor.of}" if member.label else None
                nodes.append({"Type": "CONSTANT", "Operator": None, "DataSize": data_size, "Name": name})
            else:
                number_of_input = inputs.setdefault(member.value(tensor), len(inputs))
                edges["InputEdges"].append({"GraphInputIndex": number_of_input, **end})
                continue
            edges["IntermediateEdges"].append(start | end)
    for i, (step, index) in enumerate(results):
        end = {"FromNodeIndex": numbers[step], "FromNodeOutputIndex": index, "GraphOutputIndex": i}
        edges["OutputEdges"].append(end)
    return {"InputCount": len(inputs), "OutputCount": len(results), "Nodes": nodes, **edges}
