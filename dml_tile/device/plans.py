"""The plans of compiled operators and graphs: what their binding takes, and their execution, node by node.

Pages: https://learn.microsoft.com/en-us/windows/win32/api/directml/ (nf-directml-idmldevice1-compilegraph,
ns-directml-dml_binding_properties)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, chain
from math import prod
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias, TypeVar

from dml_tile.bindings.memory import Bytes, byte_view
from dml_tile.bindings.slots import INITIALIZER_INPUT, TENSOR, Slot, SlotKind
from dml_tile.descriptors.graph import GraphDesc, InputGraphEdge, IntermediateGraphEdge, is_constant
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields, tile_of
from dml_tile.descriptors.tile import BufferTensorDesc, TensorDesc, TileOperatorDesc, described
from dml_tile.directml.enums import DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT, DML_PERSISTENT_BUFFER_ALIGNMENT, OWNED_BY_DML
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.execution.executor import mover_of_tile
from dml_tile.execution.mover import Mover
from dml_tile.geometry.layout import round_up_4
from dml_tile.rules.descriptor import why_never_executed
from dml_tile.rules.graph import bytes_of, graph_view, order_of_nodes, output_of, sizes_of
from dml_tile.rules.operator_view import tensors_of

DESCRIPTORS_OF_A_COPY: Final = 2
"""For a copy's input, and for its output."""

MAX_SLOTS: Final = 2**16
"""The most inputs, and the most outputs, of a compiled graph: each takes memory, used or not."""


@dataclass(frozen=True, slots=True)
class BindingProperties:
    """DML_BINDING_PROPERTIES; the sizes are in bytes."""

    required_descriptor_count: int
    temporary_resource_size: int
    persistent_resource_size: int


Regions: TypeAlias = Mapping[str, Bytes]
"""The memory of the slots that a dispatch reads and writes, by their names."""
Execution: TypeAlias = Callable[[Regions], object]
"""Reads inputs and the persistent resource, and writes outputs and the temporary resource."""


@dataclass(frozen=True)
class CompiledPlan:
    """The properties of a compiled operator that follow from its descriptor and the target."""

    kernel: Execution | None
    """None if an output is undefined, as the runtime's in 32-bit arithmetic."""
    properties: BindingProperties
    input_slots: tuple[Slot, ...]
    output_slots: tuple[Slot, ...]
    initial_slots: tuple[Slot, ...]
    """The inputs at initialisation."""
    persistent_offsets: tuple[int, ...]
    """The offsets in the persistent resource of inputs that are OWNED_BY_DML."""
    aliases: frozenset[tuple[str, str]] = frozenset()
    """The pairs of an output's slot and an input's that may be one range of memory."""


class _SlotOffset(NamedTuple):
    """A tensor's location: the name of its slot, and its offset there."""

    slot: str
    offset: int = 0

    def part(self, tensor: BufferTensorDesc) -> tuple[str, slice]:
        """Return the slot, and the part of its region that the tensor takes."""
        return self.slot, slice(self.offset, self.offset + tensor.total_tensor_size_in_bytes)


@lru_cache(maxsize=256)
def plan_of_operator(desc: OperatorDesc | TileOperatorDesc, target: Target) -> CompiledPlan:
    """Return the plan of an operator."""
    if isinstance(desc, TileOperatorDesc):
        inputs, outputs = {"InputTensor": desc.input_tensor}, {"OutputTensor": desc.output_tensor}
    else:
        assert isinstance(desc.desc, OperatorFields)
        inputs, outputs = tensors_of(desc.desc)
    initial = _slots(inputs, INITIALIZER_INPUT)
    offsets, persistent = list[int](), 0
    for slot in initial:
        if slot.size_in_bytes:
            offsets.append(-(-persistent // slot.alignment) * slot.alignment)
            persistent = offsets[-1] + slot.size_in_bytes
    if target.level.runtime.rounds_persistent_sizes:
        persistent = round_up_4(persistent)
    owned = dict(zip((slot.name for slot in initial if slot.size_in_bytes), offsets, strict=True))
    reads = {
        name: _SlotOffset("PersistentResource", owned[name]) if name in owned else _SlotOffset(name) for name in inputs
    }
    kernel = _kernel([_Node(desc, [*reads.values()], [[_SlotOffset(name)] for name in outputs])], target)
    properties = BindingProperties(len(inputs) + len(outputs), 0, persistent)
    slots = _slots(inputs, TENSOR), _slots(outputs, TENSOR), initial
    return CompiledPlan(kernel, properties, *slots, tuple(offsets), _aliases(desc, target))


def _aliases(desc: OperatorDesc | TileOperatorDesc, target: Target) -> frozenset[tuple[str, str]]:
    """Return the pairs of an output and an input of an operator that may be one range of memory; none of a tile."""
    if isinstance(desc, OperatorDesc):
        from dml_tile.execution.evaluation import prepared  # most devices execute tiles alone

        with suppress(DmlError):  # of an operator that is not executed
            return prepared(desc, target, "runtime").aliases
    return frozenset()


def _slots(tensors: Mapping[str, TensorDesc | None], kind: SlotKind) -> tuple[Slot, ...]:
    return tuple(Slot.tensor(name, tensor, kind) for name, tensor in tensors.items())


def plan_of_graph(graph: GraphDesc, target: Target) -> CompiledPlan:
    """Return the plan of a graph that breaks no rule.

    Tensors between nodes lie side by side in the temporary resource; an output that is needed in several places is
    written to each. Raises ValueError for more than ``MAX_SLOTS`` inputs or outputs.
    """
    for name, count in (("InputCount", graph.input_count), ("OutputCount", graph.output_count)):
        if count > MAX_SLOTS:
            raise ValueError(f"{name} is {count}; graphs of at most {MAX_SLOTS} inputs and outputs are compiled")
    view = graph_view(graph)
    live = view.live_nodes()
    order = [node for node in order_of_nodes(view) if node in live]
    input_edges = [edge for _, edge in view.inputs if edge.to_node_index in live]
    into_live = [edge for _, edge in view.intermediates if edge.to_node_index in live]
    edges = [edge for edge in into_live if view.produced(edge) is not None]  # no tensor describes a constant
    consumers = defaultdict[int, list[BufferTensorDesc]](list)
    for edge in input_edges:
        consumers[edge.graph_input_index].append(_described(view.consumed(edge)))
    producers = {edge.graph_output_index: edge for _, edge in view.outputs}
    written = {i: view.produced(edge) for i, edge in producers.items()}
    inputs, initial = (
        tuple(_slot(f"Inputs[{i}]", consumers.get(i, ()), kind) for i in range(graph.input_count))
        for kind in (TENSOR, INITIALIZER_INPUT)
    )
    outputs = tuple(
        _slot(f"Outputs[{i}]", [each for each in (written.get(i),) if each is not None], TENSOR)
        for i in range(graph.output_count)
    )
    kept = {i: len(consumers[i]) * _rounded(slot.size_in_bytes) for i, slot in enumerate(initial) if slot.size_in_bytes}
    owned_offsets, persistent = _side_by_side(kept)
    passed_on = {output_of(edge): _described(view.produced(edge)) for edge in edges}
    offsets, temporary = _side_by_side({key: each.total_tensor_size_in_bytes for key, each in passed_on.items()})
    sources = {_input_of(edge): _SlotOffset("TemporaryResource", offsets[output_of(edge)]) for edge in edges}
    constants = dict[str, Bytes]()
    for fed in into_live:
        if is_constant(node := (graph.nodes or ())[fed.from_node_index]) and node is not None:
            slot = f"Nodes[{fed.from_node_index}].Data"
            sources[_input_of(fed)], constants[slot] = _SlotOffset(slot), byte_view(node.data or b"")[: node.data_size]
    for edge in input_edges:
        i = edge.graph_input_index
        place = ("PersistentResource", owned_offsets[i]) if i in owned_offsets else (f"Inputs[{i}]", 0)
        sources[_input_of(edge)] = _SlotOffset(*place)
    destinations = defaultdict[tuple[int, int], list[_SlotOffset]](list)
    for i, producer in producers.items():
        destinations[output_of(producer)].append(_SlotOffset(f"Outputs[{i}]"))
    for output, offset in offsets.items():
        destinations[output].append(_SlotOffset("TemporaryResource", offset))
    nodes = [
        _Node(
            tile_of(operator) or operator,
            [sources.get((node, i)) for i in range(len(tensors[0]))],
            [destinations[node, i] for i in range(len(tensors[1]))],
        )
        for node in order
        if (operator := _operator_of(graph, node)) is not None and (tensors := view.operators[node].tensors)
    ]
    ends = [view.operators[node].tensors or ((), ()) for node in order]
    all_of_them = [tensor for slots in ends for tensor in chain(*slots) if tensor is not None]
    turned = all_of_them * any(tensor.strides is not None for tensor in all_of_them)  # one may turn all
    scratch = temporary + sum(_rounded(bytes_of(prod(sizes_of(tensor)), tensor)) for tensor in turned)
    return CompiledPlan(
        _kernel(nodes, target, constants),
        BindingProperties(len(all_of_them) + DESCRIPTORS_OF_A_COPY * len(turned), scratch, persistent),
        inputs,
        outputs,
        initial,
        tuple(owned_offsets.values()),
    )


def _described(tensor: BufferTensorDesc | None) -> BufferTensorDesc:
    """Return a tensor of a graph whose edges lead to and from tensors."""
    assert tensor is not None
    return tensor


_Key = TypeVar("_Key")


class _Node(NamedTuple):
    """An operator of a plan, where it reads each input, None for a null one, and the places of each output."""

    desc: TileOperatorDesc | OperatorDesc
    reads: Sequence[_SlotOffset | None]
    writes: Sequence[Sequence[_SlotOffset]]


def _operator_of(graph: GraphDesc, node: int) -> OperatorDesc | None:
    described = (graph.nodes or ())[node]
    return described.operator if described is not None else None


def _input_of(edge: InputGraphEdge | IntermediateGraphEdge) -> tuple[int, int]:
    return edge.to_node_index, edge.to_node_input_index


def _kernel(nodes: Sequence[_Node], target: Target, constants: Regions = MappingProxyType({})) -> Execution | None:
    """Return the function that executes the nodes in their order; None if an output is undefined.

    ``constants`` are the bytes of a graph's, by the slots that nodes read.
    """
    if any(why_never_executed(node.desc, target) for node in nodes):
        return None
    steps = [
        step
        for node in nodes
        for step in (_moves(node) if isinstance(node.desc, TileOperatorDesc) else [_execution(node, target)])
    ]

    def run(regions: Regions) -> None:
        for step in steps:
            step({**regions, **constants})

    return run


def _moves(node: _Node) -> Iterator[Execution]:
    """Yield the functions that write a tile's output to each of its places."""
    assert isinstance(node.desc, TileOperatorDesc)
    assert node.reads[0] is not None, "an edge leads to each input"
    source, output = described(node.desc)
    mover, (slot, read) = mover_of_tile(node.desc), node.reads[0].part(source)
    for place in node.writes[0]:
        yield partial(_move, mover, slot, read, *place.part(output))


def _move(mover: Mover, source: str, read: slice, output: str, written: slice, regions: Regions) -> None:
    mover.write(regions[source][read], regions[output][written])


def _execution(node: _Node, target: Target) -> Execution:
    """Return the function that executes an operator other than Tile.

    It raises DmlError for an index out of range, for too much work, and for an operator whose values no page tells.
    """
    assert isinstance(node.desc, OperatorDesc)
    assert isinstance(node.desc.desc, OperatorFields)
    inputs, outputs = tensors_of(node.desc.desc)
    ends = inputs | outputs
    reads = {path: place for path, place in zip(inputs, node.reads, strict=True) if place and ends[path] is not None}
    writes = {path: places for path, places in zip(outputs, node.writes, strict=True) if ends[path] is not None}

    from dml_tile.execution.evaluation import prepared  # most devices execute tiles alone

    def run(regions: Regions) -> None:
        operator = prepared(node.desc, target, "runtime")
        operator.run(
            {path: regions[place.slot][place.offset :] for path, place in reads.items()},
            {path: [regions[place.slot][place.offset :] for place in places] for path, places in writes.items()},
        )

    return run


def _slot(name: str, tensors: Sequence[BufferTensorDesc], kind: SlotKind) -> Slot:
    """Return the slot of an input or output of the graph; ``tensors`` are of the nodes that use it."""
    is_initial = kind.stage == "initialisation"
    bound = [tensor for tensor in tensors if bool(tensor.flags & OWNED_BY_DML) == is_initial]
    data_types = {int(tensor.data_type) for tensor in bound}
    return Slot(
        name,
        kind,
        max((tensor.total_tensor_size_in_bytes for tensor in bound), default=0),
        max([DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT, *(tensor.guaranteed_base_offset_alignment for tensor in bound)]),
        data_types.pop() if len(data_types) == 1 else None,
        unused="" if tensors else "no node uses it",
        checked_by_runtime=False,
    )


def _side_by_side(sizes: Mapping[_Key, int]) -> tuple[dict[_Key, int], int]:
    """Return the offsets of pieces of these sizes in the temporary or persistent resource, and its size."""
    *offsets, end = accumulate(map(_rounded, sizes.values()), initial=0)
    return dict(zip(sizes, offsets, strict=True)), end


def _rounded(size: int) -> int:
    """Return the next multiple of 256 bytes, at which pieces of temporary and persistent resources begin."""
    return -(-size // DML_PERSISTENT_BUFFER_ALIGNMENT) * DML_PERSISTENT_BUFFER_ALIGNMENT
