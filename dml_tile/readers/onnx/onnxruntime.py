"""The nodes that onnxruntime folds or removes before it runs a model, as measured of its basic optimisations (1.31).

It folds a node whose inputs are all constant, and a Shape whose input has a static shape, if its inference knows the
shapes of the outputs and its CPU provider has the operator. Its inference follows single elements of a shape through
other nodes, differently by release and operator; what rests on such elements is taken to be kept, and so is a Tile in
the branch that an If does not take, unless the condition is folded. It keeps a DequantizeLinear for the providers,
unless its output is quantised again, directly or behind one node. With the last Shape of a value it removes the nodes
that computed nothing else. A node whose output nobody uses stays.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/constant_folding.cc
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from onnx import GraphProto, NodeProto, TypeProto

from dml_tile.back_ends.dialects import INT64_MAX
from dml_tile.back_ends.kernels import releases
from dml_tile.back_ends.placement import Edge, Gone, ModelNode
from dml_tile.back_ends.placer import cpu_provider_has
from dml_tile.readers.onnx.file import graphs
from dml_tile.readers.onnx.folding import is_deterministic
from dml_tile.readers.onnx.functions import OnnxOperator, place_of
from dml_tile.readers.onnx.nodes import Resolved, edge_of, type_name
from dml_tile.readers.onnx.transposes import transposed_tiles
from dml_tile.readers.onnx.values import Value

_NEVER_FOLDED: Final = {
    "DequantizeLinear": "is kept for the providers",
    "Dropout": "is removed by another rule, and only where its mask is not used",
}
"""Operators that are kept despite constant inputs, with the reason; random chains through all others are folded."""


def is_folded(
    node: NodeProto,
    operator: OnnxOperator,
    resolved: Resolved,
    inputs: Mapping[str, Value],
    types: Mapping[str, TypeProto],
) -> bool:
    """Return True if onnxruntime has the node's outputs, whose early types are ``types``, as constants."""
    if operator.type in _NEVER_FOLDED:
        return False
    is_sized = all(Value(types.get(name)).is_typed for name in node.output if name)
    if not is_sized or not is_deterministic(node, operator):
        return False
    if operator.type == "Shape" and all(Value(value.early_type).is_static for value in inputs.values()):
        return True
    if operator.type == "Constant":
        return True
    if not all(value.is_folded for value in inputs.values()):
        return False
    computed = ModelNode(
        *("", "", operator.domain, operator.type, resolved.version),
        tuple(edge_of(inputs[name]) if name in inputs else None for name in node.input),
        tuple(Edge(type_name(types.get(name))) if name else None for name in node.output),
        resolved.formals,
    )
    return any(cpu_provider_has(computed, release) for release in reversed([*releases()]))


UNUSED: Final = Gone("only the shape of its output is used, which is known; onnxruntime removes it")
_CONSTANT: Final = Gone("it is a constant")
_MEASURED: Final = Gone("its input's sizes are known; onnxruntime folds it")
_FOLDED: Final = Gone("its inputs are constants; onnxruntime folds it", is_computed=True)
_KNOWN_CONDITION: Final = Gone(
    "its condition is known; onnxruntime puts the graph that runs in its place", since=(1, 17), is_unwrapped=True
)


def why_folded(operator: OnnxOperator, inputs: Sequence[Value], outputs: Mapping[str, Value]) -> Gone | None:
    """Return why onnxruntime has a node's outputs as constants; None if it does not."""
    if (
        not operator.domain
        and operator.type == "If"
        and inputs
        and inputs[0].is_folded
        and inputs[0].constant is not None
    ):
        return _KNOWN_CONDITION
    if not outputs or not all(value.is_folded for value in outputs.values()):
        return None
    if not operator.domain and operator.type == "Constant":
        return _CONSTANT
    return _MEASURED if not operator.domain and operator.type == "Shape" else _FOLDED


def not_taken(node: NodeProto, attribute: str) -> Gone:
    """Return why a graph of an If, whose condition is known, does not run."""
    return Gone(f"the condition of If {node.name!r} is known; its {attribute} does not run", since=(1, 17))


def sources_of_requantised(graph: GraphProto) -> Iterator[tuple[str, list[str]]]:
    """Yield the output of each QuantizeLinear of dequantised values, with the values that it is computed from.

    It is folded if these values are constant. Between the two nodes may be Transposes, which onnxruntime moves, and one
    other node, each of one input; each output is used once.
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


def unneeded_nodes(graph: GraphProto, values: Mapping[str, Value]) -> set[int]:
    """Return the positions of the nodes that only folded or removed nodes use."""
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


def removed_nodes(
    graph: GraphProto, kinds: Sequence[OnnxOperator], values: Mapping[str, Value], *, is_subgraph: bool
) -> dict[int, Gone]:
    """Return the positions of the nodes that do nothing, or what an earlier node does, with the reason.

    An output of the graph is kept, but for an Identity that gives its name to the only use of a node's output. Equal
    constants are one in the model's own graph; in a subgraph, onnxruntime keeps them apart.
    """
    kept = {value.name for value in graph.output}
    inside = _used_inside(graph)
    uses = Counter(name for node in graph.node for name in node.input)
    makers = {name for node in graph.node for name in node.output}
    aliases: dict[str, object] = {}
    first: dict[tuple[object, ...], list[int]] = {}
    found: dict[int, Gone] = {}
    for i, (node, kind) in enumerate(zip(graph.node, kinds, strict=True)):
        outputs = [name for name in node.output if name]
        if not outputs or all(values[name].is_folded for name in outputs):
            continue
        inputs = tuple(
            aliases.get(name) or (name if is_subgraph else _constant_key(name, values)) for name in node.input
        )
        is_output = not kept.isdisjoint(outputs)
        if not kind.domain and (idle := _IDLE.get(kind.type)) and idle(node, values):
            source = node.input[0]
            is_only_use = uses[source] == 1 and source in makers and not {source} & (kept | inside)
            if not is_output or (kind.type == "Identity" and is_only_use):
                found[i] = Gone(f"the {kind.type} does nothing")
                aliases[outputs[0]] = inputs[0]
                continue
        if not is_deterministic(node, kind):
            continue
        equals = first.setdefault((kind, inputs, len(node.output)), [])
        same = next((j for j in equals if _same_attributes(graph.node[j], node)), None)
        if same is None:
            equals.append(i)
        elif not is_output:
            found[i] = Gone(f"it computes what {place_of(graph.node[same]).pointer} does")
            aliases.update(zip(node.output, graph.node[same].output, strict=True))
    return found


_MAX_SHARED: Final = 8
"""The most elements of constants that onnxruntime takes for one if they are equal."""


def _constant_key(name: str, values: Mapping[str, Value]) -> object:
    """Return a key that is equal for equal small constants; the name for anything else."""
    value = values.get(name)
    array = None if value is None or not value.is_folded else value.constant
    if array is None or array.size > _MAX_SHARED or array.dtype.kind == "U":
        return name
    return array.dtype.str, array.shape, array.tobytes()


def _same_attributes(one: NodeProto, other: NodeProto) -> bool:
    return sorted(map(str, one.attribute)) == sorted(map(str, other.attribute))


def _casts_to_its_type(node: NodeProto, values: Mapping[str, Value]) -> bool:
    to = next((each.i for each in node.attribute if each.name == "to"), None)
    type_ = values[node.input[0]].type if node.input and node.input[0] in values else None
    return type_ is not None and type_.tensor_type.elem_type == to


def _expands_nothing(node: NodeProto, values: Mapping[str, Value]) -> bool:
    if len(node.input) != 2 or not all(name in values for name in node.input):
        return False
    data, shape = (values[name] for name in node.input)
    sizes = Value(data.early_type).shape
    if shape.constant is None or not shape.is_folded or sizes is None:
        return False
    wanted = shape.constant.ravel().tolist()
    return len(wanted) <= len(sizes) and all(
        size == 1 or (isinstance(have, int) and have == size)
        for have, size in zip(reversed(sizes), reversed(wanted), strict=False)
    )


def _slices_nothing(node: NodeProto, values: Mapping[str, Value]) -> bool:
    arguments = [values[name].constant if name in values else None for name in node.input[1:] if name]
    if len(arguments) < 2 or any(each is None for each in arguments) or len(arguments) + 1 < len(node.input):
        return False
    starts, ends, *others = (each.ravel().tolist() for each in arguments if each is not None)
    steps = others[1] if len(others) > 1 else []
    return not any(starts) and all(end == INT64_MAX for end in ends) and all(step == 1 for step in steps)


def _drops_nothing(node: NodeProto, values: Mapping[str, Value]) -> bool:
    mode = values.get(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    is_inference = mode is None or (mode.is_folded and mode.constant is not None and not mode.constant.any())
    return is_inference and len([name for name in node.output if name]) == 1


_IDLE: Final[dict[str, Callable[[NodeProto, Mapping[str, Value]], bool]]] = {
    "Cast": _casts_to_its_type,
    "Dropout": _drops_nothing,
    "Expand": _expands_nothing,
    "Identity": lambda node, values: True,
    "Slice": _slices_nothing,
}
"""Operators that onnxruntime removes where they do nothing."""


class Surroundings(NamedTuple):
    """The nodes around a Tile that onnxruntime removes with it: the type of quantised values, a permutation."""

    quantised: str = ""
    transposed: tuple[int, ...] = ()


NOTHING_AROUND: Final = Surroundings()


def surroundings_of_tiles(
    graph: GraphProto, kinds: Sequence[OnnxOperator], values: Mapping[str, Value]
) -> dict[int, Surroundings]:
    """Return the surroundings of Tiles, by position, that run on other values than the file says."""
    makers = {name: node for node in graph.node for name in node.output}
    users: dict[str, list[NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    kept = {value.name for value in graph.output} | _used_inside(graph)
    found = {i: Surroundings(transposed=order) for i, order in transposed_tiles(graph, kinds, values).items()}
    for i, node in enumerate(graph.node):
        if node.op_type != "Tile" or not node.input or not node.output or node.output[0] in kept:
            continue
        before, after = makers.get(node.input[0]), users.get(node.output[0], [])
        if before is None or len(after) != 1 or len(users[node.input[0]]) != 1 or node.input[0] in kept:
            continue
        around = before.op_type, after[0].op_type
        if around == ("DequantizeLinear", "QuantizeLinear") and _same_scale(before, after[0], values):
            quantised = values[before.input[0]].data_type or ""
            found[i] = found.get(i, NOTHING_AROUND)._replace(quantised=quantised)
    return found


def _same_scale(before: NodeProto, after: NodeProto, values: Mapping[str, Value]) -> bool:
    keys = ([_constant_key(name, values) for name in each.input[1:]] for each in (before, after))
    return before.input[0] in values and next(keys) == next(keys)


def _used_inside(graph: GraphProto) -> set[str]:
    """Return the names that graphs inside the nodes use."""
    inside = list(graphs(graph))[1:]
    used = (name for inner in inside for node in inner.node for name in node.input)
    return {*used, *(value.name for inner in inside for value in inner.output)}
