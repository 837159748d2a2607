"""Rules for DML_GRAPH_DESC: what IDMLDevice1::CompileGraph requires of nodes, edges, and the tensors at their ends."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from itertools import dropwhile, starmap
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import ref

from pydantic.alias_generators import to_pascal

from dml_tile.descriptors.graph import (
    ARRAYS,
    GraphDesc,
    InputGraphEdge,
    IntermediateGraphEdge,
    OperatorGraphNodeDesc,
    OutputGraphEdge,
    is_constant,
)
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields, tile_of
from dml_tile.descriptors.tile import BufferTensorDesc, TensorDesc
from dml_tile.directml import pages
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, HRESULT, OWNED_BY_DML, OperatorType
from dml_tile.directml.levels import CONSTANT_NODES, LEVELS
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis, Rules, Severity, Violation
from dml_tile.geometry.layout import extent, packed_strides, round_up_4
from dml_tile.rules.tile import level_needed, upgrade_advice
from dml_tile.text import abridged, plural

_COUNTS: Final = {
    "graph_input_index": "input_count",
    "graph_output_index": "output_count",
    "from_node_index": "node_count",
    "to_node_index": "node_count",
}
_INDICES: Final = {
    edge: [(name, str(field.alias), _COUNTS.get(name)) for name, field in edge.model_fields.items() if "index" in name]
    for edge in (InputGraphEdge, OutputGraphEdge, IntermediateGraphEdge)
}
"""The indices of each kind of edge: the name, the name in C, and the graph's count that bounds it, if one does."""

_NO_EDGES: Final = Counter[int]()
_IDENTITIES: Final = ("ELEMENT_WISE_IDENTITY", "ACTIVATION_IDENTITY")

NodeTensors: TypeAlias = Sequence[BufferTensorDesc | None]
"""An operator's inputs, or its outputs, in the order of its struct; None for a null pointer."""


class NodeOperator:
    """The facts of an operator that rules of graphs need, worked out once for all nodes and graphs that share it.

    ``tensors`` are its inputs and outputs, None where it is null or its fields are unknown; ``inputs`` the names of its
    inputs; ``wanted`` the indices of those that are not null; ``fields`` None for a tile; ``refused`` whether the
    runtime refuses it, by target.
    """

    __slots__ = ("fields", "inputs", "refused", "tensors", "wanted")

    def __init__(self, operator: OperatorDesc | None) -> None:
        self.fields = operator.desc if operator is not None and isinstance(operator.desc, OperatorFields) else None
        named = _tensors_of(operator)
        self.tensors: tuple[NodeTensors, NodeTensors] | None = named and ([*named[0].values()], [*named[1].values()])
        self.inputs = [*named[0]] if named else []
        self.wanted = [i for i, name in enumerate(self.inputs) if named and named[0][name] is not None]
        self.refused: dict[Target, bool] = {}

    @property
    def name(self) -> str:
        """The operator's name, without a prefix."""
        return self.fields.operator.name if self.fields else OperatorType.TILE.name

    @property
    def copies(self) -> bool:
        """True for an identity that changes nothing."""
        if self.fields is None or self.fields.operator.name not in _IDENTITIES:
            return False
        scale_bias = self.fields.get("ScaleBias")
        return scale_bias is None or scale_bias.changes_nothing


_SHARED: Final[dict[int, tuple[ref[OperatorDesc], NodeOperator]]] = {}
"""Each operator of a graph while it is alive, by its id: a capture has graphs that share operators of any size."""


def _node_operator(node: OperatorGraphNodeDesc | None) -> NodeOperator:
    if is_constant(node):
        return _CONSTANT
    operator = node.operator if node is not None else None
    if operator is None:
        return _NULL
    key = id(operator)
    if key not in _SHARED:
        _SHARED[key] = ref(operator, lambda _: _SHARED.pop(key, None)), NodeOperator(operator)
    return _SHARED[key][1]


class GraphView(NamedTuple):
    """A graph, those of its edges that have both ends, and the tensors of its nodes.

    A path stands before each edge. ``wrong_indices`` has the paths of the other edges' indices, and the faults of
    them.
    """

    graph: GraphDesc
    operators: Sequence[NodeOperator]
    """The operator of each node."""
    inputs: Sequence[tuple[str, InputGraphEdge]]
    outputs: Sequence[tuple[str, OutputGraphEdge]]
    intermediates: Sequence[tuple[str, IntermediateGraphEdge]]
    wrong_indices: Sequence[tuple[str, str]]
    refused: Container[int] = ()
    """The nodes whose operators are refused, so that their tensors are not compared."""

    def consumed(self, edge: InputGraphEdge | IntermediateGraphEdge) -> BufferTensorDesc | None:
        """Return the tensor that an edge leads to, if its node is not refused."""
        slots = self.operators[edge.to_node_index].tensors if edge.to_node_index not in self.refused else None
        return slots and slots[0][edge.to_node_input_index]

    def produced(self, edge: OutputGraphEdge | IntermediateGraphEdge) -> BufferTensorDesc | None:
        """Return the tensor that an edge leads from, if its node is not refused."""
        slots = self.operators[edge.from_node_index].tensors if edge.from_node_index not in self.refused else None
        return slots and slots[1][edge.from_node_output_index]

    def live_nodes(self) -> frozenset[int]:
        """Return the nodes that lead to an output of the graph; of two edges to one output, the last counts."""
        last = {edge.graph_output_index: edge.from_node_index for _, edge in self.outputs}
        feeding = defaultdict[int, list[int]](list)
        for _, edge in self.intermediates:
            feeding[edge.to_node_index].append(edge.from_node_index)
        live, unvisited = set[int](), list(last.values())
        while unvisited:
            node = unvisited.pop()
            if node not in live:
                live.add(node)
                unvisited += feeding[node]
        return frozenset(live)


def entries_of(graph: GraphDesc, array: str) -> Sequence[Any]:
    """Return the entries of an array that its count includes."""
    return (getattr(graph, array) or ())[: getattr(graph, ARRAYS[array].counted_by)]


def _path(array: str, i: int) -> str:
    return f"{ARRAYS[array].c_name}[{i}]"


_Named: TypeAlias = dict[str, BufferTensorDesc | None]


def _tensors_of(operator: OperatorDesc | None) -> tuple[_Named, _Named] | None:
    """Return the inputs and the outputs by their names, None where they are not known."""
    if tile := tile_of(operator):
        return {"InputTensor": _buffer(tile.input_tensor)}, {"OutputTensor": _buffer(tile.output_tensor)}
    if operator is None or not isinstance(operator.desc, OperatorFields):
        return None
    from dml_tile.rules.operator_view import tensors_of  # not needed for Tile

    inputs, outputs = tensors_of(operator.desc)
    return (
        {name: _buffer(each) for name, each in inputs.items()},
        {name: _buffer(each) for name, each in outputs.items()},
    )


def _buffer(tensor: TensorDesc | None) -> BufferTensorDesc | None:
    return tensor.desc if tensor is not None else None


_NULL: Final = NodeOperator(None)
_CONSTANT: Final = NodeOperator(None)
_CONSTANT.tensors = (), (None,)  # no input, and one output, which no tensor describes


def graph_view(graph: GraphDesc) -> GraphView:
    """Return the view of a graph, as if no node were refused."""
    operators = [*map(_node_operator, entries_of(graph, "nodes"))]
    edges: dict[str, list[tuple[str, Any]]] = {array: [] for array in ARRAYS if array != "nodes"}
    wrong: list[tuple[str, str]] = []
    for array, whole in edges.items():
        for i, edge in enumerate(entries_of(graph, array)):
            if edge is None:
                continue
            if found := [*_wrong_indices(graph, edge, operators)]:
                wrong += [(f"{_path(array, i)}.{field}", message) for field, message in found]
            elif all(getattr(edge, name, 0) < len(operators) for name in ("from_node_index", "to_node_index")):
                whole.append((_path(array, i), edge))
    inputs, outputs, intermediates = edges.values()
    return GraphView(graph, operators, inputs, outputs, intermediates, wrong)


def _wrong_indices(graph: GraphDesc, edge: Any, operators: Sequence[NodeOperator]) -> Iterator[tuple[str, str]]:
    """Yield the fields of an edge that index nothing, each with its fault."""
    for name, c_name, count in _INDICES[type(edge)]:
        value = getattr(edge, name)
        if count:
            if value >= (limit := getattr(graph, count)):
                yield c_name, f"{value} was provided, but an index below {limit} was expected"
            continue
        is_output = name == "from_node_output_index"
        node, noun = (edge.from_node_index, "output") if is_output else (edge.to_node_index, "input")
        if node < len(operators) and (ends := operators[node].tensors):
            tensors = ends[is_output]
            if value >= len(tensors):
                expected = f"an index below {len(tensors)} was expected" if tensors else f"the node has no {noun}"
                yield c_name, f"{value} was provided, but {expected}"
            elif tensors[value] is None and operators[node] is not _CONSTANT:
                yield c_name, f"{value} was provided, but this {noun} of the node is null"


def _room(tensor: BufferTensorDesc) -> int:
    """Return the bytes of all whole elements in TotalTensorSizeInBytes, rounded up to 4."""
    whole = tensor.total_tensor_size_in_bytes * 8 // TensorDataType(tensor.data_type).bits
    return round_up_4(bytes_of(whole, tensor))


def _extent(tensor: BufferTensorDesc) -> int:
    return bytes_of(extent(sizes_of(tensor), tensor.strides), tensor)


def bytes_of(elements: int, tensor: BufferTensorDesc) -> int:
    """Return the bytes of elements of a tensor's data type."""
    return -(-elements * TensorDataType(tensor.data_type).bits // 8)


def sizes_of(tensor: BufferTensorDesc) -> tuple[int, ...]:
    """Return as many sizes of a tensor as its DimensionCount says, or as DirectML takes."""
    return _counted(tensor, "sizes") or ()


def _counted(tensor: BufferTensorDesc, field: str) -> Any:
    """Return a field; of an array, the entries that count, since many edges may lead to a tensor with a long one."""
    value = getattr(tensor, field)
    return value[: min(tensor.dimension_count, DML_TENSOR_DIMENSION_COUNT_MAX1)] if isinstance(value, tuple) else value


def _shape(tensor: BufferTensorDesc) -> tuple[tuple[int, int], ...]:
    """Return the sizes, without leading ones, and their strides, 0 where a stride decides nothing."""
    sizes = sizes_of(tensor)
    strides = packed_strides(sizes) if tensor.strides is None else tensor.strides
    pairs = [(size, stride if size > 1 else 0) for size, stride in zip(sizes, strides, strict=False)]
    return tuple(dropwhile(lambda pair: pair == (1, 0), pairs))


def edges_without_rules(view: GraphView) -> Iterator[str]:
    """Yield the edges of which DirectML may want more than the rules know.

    These connect unequal tensors at an identity, which DirectML may leave out, or lead to an operator of one input that
    reads fewer elements than are written, since DirectML may let it write its output over them.
    """
    readers = defaultdict[int, list[tuple[str, InputGraphEdge]]](list)
    for path, edge in view.inputs:
        readers[edge.graph_input_index].append((path, edge))
    for edges in readers.values():
        if len({_layout(view.consumed(edge)) for _, edge in edges}) > 1:
            yield from (path for path, edge in edges if view.operators[edge.to_node_index].copies)
    for path, between in view.intermediates:
        produced, consumed = view.produced(between), view.consumed(between)
        if produced is None or consumed is None:
            continue
        reader, writer = view.operators[between.to_node_index], view.operators[between.from_node_index]
        reads_fewer = prod(sizes_of(consumed)) < prod(sizes_of(produced))
        has_one_input = reader.fields is not None and reader.tensors and len(reader.tensors[0]) == 1
        is_at_identity = reader.copies or writer.copies
        if (reads_fewer and has_one_input) or (is_at_identity and _layout(produced) != _layout(consumed)):
            yield path


def _layout(tensor: BufferTensorDesc | None) -> object:
    return tensor and (tensor.data_type, _shape(tensor))


GRAPH_RULES: Final = Rules[GraphView](url=pages.GRAPH)
CONNECTION_RULES: Final = Rules[GraphView](url=pages.GRAPH, basis=Basis.RUNTIME)
GRAPH_CALL_RULES: Final = Rules[GraphDesc | None](url=pages.GRAPH)


@GRAPH_RULES.add("DML-GRAPH-NodeCount", basis=Basis.RUNTIME)
def graph_has_nodes(view: GraphView, target: Target) -> Iterator[Violation]:
    """A graph has at least one node."""
    if not view.graph.node_count:
        yield Violation("NodeCount", "0 was provided, but at least 1 was expected")


@GRAPH_RULES.add("DML-GRAPH-array")
def arrays_have_their_counts(view: GraphView, target: Target) -> Iterator[Violation]:
    """An array has as many entries as its count says: null has none. DirectML reads on past the end of another."""
    for name, array in ARRAYS.items():
        entries, expected = getattr(view.graph, name), getattr(view.graph, array.counted_by)
        if len(entries or ()) < expected:
            shown = "null" if entries is None else f"an array of {len(entries)}"
            yield Violation(
                array.c_name, f"{shown} was provided, but {to_pascal(array.counted_by)} promises {expected}"
            )
    for i, node in enumerate(entries_of(view.graph, "nodes")):
        if node is not None and node.data is not None and len(node.data) < (node.data_size or 0):
            were = "was" if len(node.data) == 1 else "were"
            message = f"{plural(len(node.data), 'byte')} {were} provided, but {node.data_size} were expected"
            yield Violation(f"{_path('nodes', i)}.Data", message, basis=Basis.INFERRED)


@GRAPH_RULES.add("DML-GRAPH-Desc-null")
def parts_are_described(view: GraphView, target: Target) -> Iterator[Violation]:
    """The Desc of each node and edge, and the operator or the data of each node, is not null."""
    for array in ARRAYS:
        for i, entry in enumerate(entries_of(view.graph, array)):
            if entry is None:
                yield Violation(f"{_path(array, i)}.Desc", "null was provided, but a description was expected")
            elif array == "nodes" and is_constant(entry):
                if entry.null_data:
                    message = "null was provided, but the data were expected"
                    yield Violation(f"{_path(array, i)}.Data", message, basis=Basis.INFERRED)
            elif array == "nodes" and entry.operator is None:
                yield Violation(f"{_path(array, i)}.Operator", "null was provided, but an operator was expected")


@GRAPH_RULES.add("DML-GRAPH-Type")
def types_fit(view: GraphView, target: Target) -> Iterator[Violation]:
    """A node is of type OPERATOR or, from 6_2 on, CONSTANT, an edge of the type of its array."""
    for name, array in ARRAYS.items():
        for i, entry in enumerate(entries_of(view.graph, name)):
            if entry is None or entry.type == array.type:
                continue
            path, given, expected = f"{_path(name, i)}.Type", *map(array.types.write, (entry.type, array.type))
            if name != "nodes" or not is_constant(entry):
                yield Violation(path, f"{given} was provided, but {expected} was expected")
            elif target.feature_level < CONSTANT_NODES:
                message = level_needed(str(given), CONSTANT_NODES, target)
                yield Violation(path, message, upgrade_advice(CONSTANT_NODES), ships=True)


@GRAPH_RULES.add("DML-GRAPH-Type-CONSTANT", url=pages.LEVELS, severity=Severity.NOTE)
def constants_are_compiled_on_windows(view: GraphView, target: Target) -> Iterator[Violation]:
    """A graph with a node of type CONSTANT is compiled on Windows, where ONNX Runtime makes such nodes: the build of
    DirectML for Linux that has 6_2 returns E_NOTIMPL, 0x80004001.
    """
    constants = [i for i, node in enumerate(entries_of(view.graph, "nodes")) if is_constant(node)]
    if constants and target.feature_level >= CONSTANT_NODES:
        others = f", as {plural(len(constants) - 1, 'more node')}" if len(constants) > 1 else ""
        message = (
            f"it is taken from {CONSTANT_NODES.short} on; one build for Linux returns E_NOTIMPL 0x80004001{others}"
        )
        yield Violation(f"{_path('nodes', constants[0])}.Type", message)


@GRAPH_RULES.add("DML-GRAPH-index")
def indices_are_in_range(view: GraphView, target: Target) -> Iterator[Violation]:
    """The indices of an edge are those of an input or output of the graph, of a node, and of a node's tensor."""
    return starmap(Violation, view.wrong_indices)


@CONNECTION_RULES.add("DML-GRAPH-node-input")
def node_inputs_have_one_edge(view: GraphView, target: Target) -> Iterator[Violation]:
    """Exactly one edge leads to each input of a node, from an input of the graph or from another node, and none to an
    input that is null.
    """
    edges = defaultdict[int, Counter[int]](Counter)
    for _, entering in view.inputs:
        edges[entering.to_node_index][entering.to_node_input_index] += 1
    for _, between in view.intermediates:
        edges[between.to_node_index][between.to_node_input_index] += 1
    nodes = entries_of(view.graph, "nodes")
    for node, operator in enumerate(view.operators):
        wanted, led_to = operator.wanted, edges.get(node, _NO_EDGES)
        wrong = len(wanted) - sum(number == 1 for number in led_to.values())
        if operator.tensors and wanted and wrong:
            first = next(i for i in wanted if led_to[i] != 1)
            edge = f"{plural(led_to[first], 'edge')} lead" if led_to[first] else "no edge leads"
            name = f" {abridged(nodes[node].name)!r}" if nodes[node].name else ""
            which = f"input {first} of {operator.name}{name}, {operator.inputs[first]}"
            more = f", as for each of {plural(wrong - 1, 'more input')}" if wrong > 1 else ""
            yield Violation(f"Nodes[{node}]", f"{edge} to {which}, but 1 was expected{more}")


@CONNECTION_RULES.add("DML-GRAPH-node-output")
def node_outputs_are_used(view: GraphView, target: Target) -> Iterator[Violation]:
    """An edge leads from an output of each node, to an output of the graph or to another node."""
    used = {edge.from_node_index for _, edge in view.outputs}
    used |= {edge.from_node_index for _, edge in view.intermediates}
    for node, operator in enumerate(view.operators):
        if operator.tensors and node not in used:
            yield Violation(f"Nodes[{node}]", f"no edge leads from its output{'s' * (len(operator.tensors[1]) > 1)}")


@CONNECTION_RULES.add("DML-GRAPH-cycle")
def graph_has_no_cycle(view: GraphView, target: Target) -> Iterator[Violation]:
    """The edges between nodes make no cycle."""
    unordered = set(range(len(view.operators))) - set(order_of_nodes(view))
    for path, edge in view.intermediates:
        if {edge.from_node_index, edge.to_node_index} <= unordered:
            yield Violation(path, "both nodes are in a cycle, or follow one")


def order_of_nodes(view: GraphView) -> list[int]:
    """Return the nodes in an order in which each follows what feeds it; nodes behind a cycle are left out."""
    sorter = TopologicalSorter[int](dict.fromkeys(range(len(view.operators)), ()))
    for _, edge in view.intermediates:
        sorter.add(edge.to_node_index, edge.from_node_index)
    with suppress(CycleError):  # it yields the nodes before the cycle
        sorter.prepare()
    order = list[int]()
    while ready := sorter.get_ready():
        order += ready
        sorter.done(*ready)
    return order


def output_of(edge: OutputGraphEdge | IntermediateGraphEdge) -> tuple[int, int]:
    """Return the node that an edge leads from, and the index of its output."""
    return edge.from_node_index, edge.from_node_output_index


def _ends(view: GraphView) -> Iterator[tuple[str, tuple[int, int], BufferTensorDesc, BufferTensorDesc]]:
    """Yield each intermediate edge with tensors: its path, the output that it leads from, the tensors at its ends."""
    for path, edge in view.intermediates:
        produced, consumed = view.produced(edge), view.consumed(edge)
        if produced is not None and consumed is not None:
            yield path, output_of(edge), produced, consumed


@CONNECTION_RULES.add("DML-GRAPH-DataSize", basis=Basis.INFERRED)
def constants_are_long_enough(view: GraphView, target: Target) -> Iterator[Violation]:
    """The data of a constant are at least as long as the input that it feeds reaches."""
    nodes = entries_of(view.graph, "nodes")
    for path, edge in view.intermediates:
        node, consumed = nodes[edge.from_node_index], view.consumed(edge)
        if not is_constant(node) or node.data_size is None or consumed is None:
            continue
        if node.data_size < (reached := _extent(consumed)):
            yield Violation(path, f"the input reaches {reached} bytes, but the constant has {node.data_size}")


@CONNECTION_RULES.add("DML-GRAPH-intermediate-owned")
def intermediates_are_not_owned(view: GraphView, target: Target) -> Iterator[Violation]:
    """A tensor that another node writes is not OWNED_BY_DML."""
    for path, _, _, consumed in _ends(view):
        if consumed.flags & OWNED_BY_DML:
            yield Violation(path, "the Flags of the input that it leads to say OWNED_BY_DML")


@CONNECTION_RULES.add("DML-GRAPH-TotalTensorSizeInBytes")
def totals_agree(view: GraphView, target: Target) -> Iterator[Violation]:
    """Both ends of an intermediate edge have the same TotalTensorSizeInBytes."""
    for path, _, produced, consumed in _ends(view):
        totals = produced.total_tensor_size_in_bytes, consumed.total_tensor_size_in_bytes
        if totals[0] != totals[1]:
            yield Violation(path, f"the output has a TotalTensorSizeInBytes of {totals[0]}, the input of {totals[1]}")


@CONNECTION_RULES.add("DML-GRAPH-extent")
def extents_fit(view: GraphView, target: Target) -> Iterator[Violation]:
    """What the input of an intermediate edge reaches fits into the whole elements of the output. Up to 5_0, if the
    output is none of the graph's, and all that read it have its Sizes, leading ones aside, and its Strides, their
    elements fit into as many of the output, rounded up to 4.
    """
    leading = Counter(output_of(edge) for _, edge in view.outputs)
    leading.update(output_of(edge) for _, edge in view.intermediates)
    alike = Counter(output for _, output, *ends in _ends(view) if _shape(ends[0]) == _shape(ends[1]))
    for path, output, produced, consumed in _ends(view):
        reached, room = _extent(consumed), _room(produced)
        if reached <= room and alike[output] == leading[output] and target.level.runtime.compares_elements:
            elements = prod(sizes_of(produced))
            reached, room = bytes_of(elements, consumed), bytes_of(round_up_4(elements), produced)
        if room < reached:
            yield Violation(path, f"the input reaches {reached} bytes, but the output has {room}")


@CONNECTION_RULES.add("DML-GRAPH-shared-input")
def shared_inputs_agree(view: GraphView, target: Target) -> Iterator[Violation]:
    """Nodes that share an input of the graph agree in OWNED_BY_DML, and none reaches beyond what the first has. Inputs
    that an identity reads are not compared: DirectML may leave it out.
    """
    first, live = dict[int, BufferTensorDesc](), view.live_nodes()
    copied = {edge.graph_input_index for _, edge in view.inputs if view.operators[edge.to_node_index].copies}
    for path, edge in view.inputs:
        tensor = view.consumed(edge)
        if tensor is None:
            continue
        before = first.setdefault(edge.graph_input_index, tensor)
        if (before.flags ^ tensor.flags) & OWNED_BY_DML:
            yield Violation(path, "only one of the nodes that share the input has it OWNED_BY_DML")
        elif edge.graph_input_index in copied or edge.to_node_index not in live:
            continue
        elif _extent(tensor) > (room := _room(before)):
            yield Violation(path, f"the node reaches {_extent(tensor)} bytes, but the first has {room}")


@CONNECTION_RULES.add("DML-GRAPH-edge-layout", severity=Severity.NOTE)
def ends_are_alike(view: GraphView, target: Target) -> Iterator[Violation]:
    """Both ends of an intermediate edge describe the tensor alike at an identity, and where an operator of one input
    reads fewer elements than are written. Elsewhere, DirectML takes the bytes as they are.
    """
    compared = {*edges_without_rules(view)}
    for path, _, produced, consumed in _ends(view):
        if path not in compared:
            continue
        fields = ("data_type", "sizes", "strides", "guaranteed_base_offset_alignment")
        different = [name for name in fields if _counted(produced, name) != _counted(consumed, name)]
        if names := [str(BufferTensorDesc.model_fields[name].alias) for name in different]:
            yield Violation(path, f"the output and the input that it connects differ in {', '.join(names)}")


@CONNECTION_RULES.add("DML-GRAPH-output-twice", severity=Severity.NOTE)
def outputs_have_one_edge(view: GraphView, target: Target) -> Iterator[Violation]:
    """One edge leads to an output of the graph. The documentation allows several; DirectML takes the last, and drops
    what then feeds nothing.
    """
    last = {edge.graph_output_index: path for path, edge in view.outputs}
    for path, edge in view.outputs:
        if (counting := last[edge.graph_output_index]) != path:
            yield Violation(path, f"{counting} leads to the same output, and is the one that counts")


@GRAPH_CALL_RULES.add(
    "DML-GRAPH-IDMLDevice1",
    basis=Basis.DOCUMENTED | Basis.INFERRED,
    url=pages.COMPILE_GRAPH,
    hresult=HRESULT.E_NOINTERFACE,
)
def device_has_the_interface(graph: GraphDesc | None, target: Target) -> Iterator[Violation]:
    """CompileGraph is called from feature level 2_1 on; before it, there is no IDMLDevice1. So says DirectML.h; the
    interface's page says from DirectML 1.1.0, which has 2_0, and from build 20348.
    """
    if not target.level.has_graphs:
        first = next(row.level for row in LEVELS.values() if row.has_graphs)
        yield Violation("", f"{target.name} has no IDMLDevice1, which came with {first.name}")


@GRAPH_CALL_RULES.add("DML-GRAPH-null")
def graph_is_given(graph: GraphDesc | None, target: Target) -> Iterator[Violation]:
    """The DML_GRAPH_DESC is not null."""
    if graph is None:
        yield Violation("", "null was provided, but a DML_GRAPH_DESC was expected")
