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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from onnx import GraphProto, TypeProto

from dml_tile.back_ends.dialects import INT64_MAX
from dml_tile.back_ends.kernels import Version, releases
from dml_tile.back_ends.placement import Edge, Gone, ModelNode
from dml_tile.back_ends.placer import cpu_provider_has
from dml_tile.readers.onnx.file import graphs
from dml_tile.readers.onnx.folding import is_deterministic
from dml_tile.readers.onnx.nodes import Node
from dml_tile.readers.onnx.operators import Resolved, type_name
from dml_tile.readers.onnx.values import Value

_NEVER_FOLDED: Final = {
    "DequantizeLinear": "is kept for the providers",
    "Dropout": "is removed by another rule, and only where its mask is not used",
}
"""Operators that are kept despite constant inputs, with the reason; random chains through all others are folded."""


class Uses:
    """The uses of a graph's values: ``counts`` of them, an output of the graph and each use in a graph inside included.

    ``outputs`` are those of the graph, ``kept`` these and what graphs inside use; ``makers`` are the nodes by their
    outputs, as far as they are scanned.
    """

    def __init__(self, graph: GraphProto) -> None:
        inside = list(graphs(graph))[1:]
        self.makers: dict[str, Node] = {}
        self.outputs = {value.name for value in graph.output}
        self.kept = self.outputs | {value.name for inner in inside for value in inner.output}
        self.kept.update(name for inner in inside for node in inner.node for name in node.input)
        self.counts = Counter(name for node in graph.node for name in node.input)
        self.counts.update(self.kept)

    def only_maker(self, node: Node) -> Node | None:
        """Return the node that computes the first input, if nothing else uses that."""
        name = next(iter(node.proto.input), "")
        return self.makers.get(name) if self.counts[name] == 1 else None


def _folded_from(node: Node, uses: Uses) -> Collection[Value]:
    """Return the values that have to be constant so that onnxruntime folds a node: its inputs.

    For a QuantizeLinear of dequantised values it is what these are computed from. Between the two nodes may be
    Transposes, which onnxruntime moves, and one other node, each of one input; each output is used once.
    """
    before, left = node if node.type == "QuantizeLinear" else None, 1
    while before and (before := uses.only_maker(before)):
        if before.type == "DequantizeLinear":
            return [*before.given.values(), *[*node.given.values()][1:]]
        left -= before.type != "Transpose"
        if left < 0 or len(before.proto.input) != 1 or len(before.proto.output) != 1:
            break
    return node.given.values()


def is_folded(node: Node, operator: Resolved, types: Mapping[str, TypeProto], uses: Uses) -> bool:
    """Return True if onnxruntime has the node's outputs, whose early types are ``types``, as constants."""
    is_sized = all(Value(types.get(name)).is_typed for name in node.proto.output if name)
    if node.type in _NEVER_FOLDED or not is_sized or not is_deterministic(node):
        return False
    sources = _folded_from(node, uses)
    if node.type == "Constant" or (node.type == "Shape" and all(Value(each.early_type).is_static for each in sources)):
        return True
    if not all(value.is_folded for value in sources):
        return False
    computed = ModelNode(
        *("", "", node.domain, node.type, operator.version),
        tuple(value.edge if value.is_folded else None for value in node.inputs),
        tuple(Edge(type_name(types.get(name))) if name else None for name in node.proto.output),
        operator.formals,
    )
    return any(cpu_provider_has(computed, release) for release in reversed([*releases()]))


_UNUSED: Final = Gone("only the shape of its output is used, which is known; onnxruntime removes it")
_FOLDED: Final = Gone("its inputs are constants; onnxruntime folds it", is_computed=True)
_FOLDED_FOR: Final = {
    "Constant": Gone("it is a constant"),
    "Shape": Gone("its input's sizes are known; onnxruntime folds it"),
}
_KNOWN_CONDITION: Final = Gone(
    "its condition is known; onnxruntime puts the graph that runs in its place", since=(1, 17), is_unwrapped=True
)


def why_folded(node: Node) -> Gone | None:
    """Return why onnxruntime has a node's outputs as constants; None if it does not."""
    if node.kind == "If" and node.inputs and node.inputs[0].is_folded and node.inputs[0].constant is not None:
        return _KNOWN_CONDITION
    return _FOLDED_FOR.get(node.kind, _FOLDED) if node.outputs and _has_folded(node) else None


def _has_folded(node: Node) -> bool:
    """Return True if onnxruntime has all outputs of a node as constants."""
    return all(value.is_folded for value in node.outputs.values())


def drop(nodes: Sequence[Node], uses: Uses, *, is_subgraph: bool) -> None:
    """Note why onnxruntime drops nodes of a graph, for those that it does not fold."""
    for node, reason in (*_unneeded(nodes, uses), *_removed(nodes, uses, is_subgraph=is_subgraph)):
        node.placed.gone = node.placed.gone or reason


def _unneeded(nodes: Sequence[Node], uses: Uses) -> Iterator[tuple[Node, Gone]]:
    """Yield the nodes that only folded or removed nodes use."""
    needed = set(uses.kept)
    used: set[str] = set()
    for node in reversed(nodes):
        is_gone = _has_folded(node)
        if not is_gone and not used.isdisjoint(node.outputs) and needed.isdisjoint(node.outputs):
            yield node, _UNUSED
            is_gone = True
        used.update(node.proto.input)
        if not is_gone:
            needed.update(node.proto.input)


def _removed(nodes: Sequence[Node], uses: Uses, *, is_subgraph: bool) -> Iterator[tuple[Node, Gone]]:
    """Yield the nodes that do nothing, or what an earlier node does, with the reason.

    An output of the graph is kept, but for an Identity that gives its name to the only use of a node's output. Equal
    constants are one in the model's own graph; in a subgraph, onnxruntime keeps them apart.
    """
    aliases: dict[str, tuple[object, Version]] = {}  # with the release from which they are aliases
    first: dict[tuple[object, ...], tuple[Node, Version]] = {}
    for node in nodes:
        if not node.outputs or _has_folded(node):
            continue
        seen = [
            aliases.get(name) or (name if is_subgraph else _constant_key(name, value), _ANY)
            for name, value in zip(node.proto.input, node.inputs, strict=True)
        ]
        inputs, since = tuple(key for key, _ in seen), max((release for _, release in seen), default=_ANY)
        is_output = not uses.outputs.isdisjoint(node.outputs)
        is_idle = bool(inputs) and node.kind in _IDLE and _IDLE[node.kind](node)
        passed_on = 0 if is_idle else _operand_of_neutral(node, uses)
        if passed_on is not None and (not is_output or (node.kind == "Identity" and uses.only_maker(node))):
            removed = _ANY if is_idle else _NEUTRAL[node.kind].since
            yield node, Gone(f"the {node.type} does nothing", removed)
            aliases[node.proto.output[0]] = inputs[passed_on], max(since, removed)
            continue
        if not is_deterministic(node):
            continue
        attributes = tuple(sorted(each.SerializeToString() for each in node.proto.attribute))
        key = (node.type, node.opset, inputs, len(node.proto.output), attributes)
        same, since_then = first.setdefault(key, (node, since))
        if same is not node and not is_output:
            since = max(since, since_then)
            yield node, Gone(f"it computes what {same.placed.pointer} does", since)
            aliases |= {name: (other, since) for name, other in zip(node.proto.output, same.proto.output, strict=True)}


_ANY: Final = (1, 0)
"""Before all releases that were read."""
_MAX_SHARED: Final = 8
"""The most elements of constants that onnxruntime takes for one if they are equal."""


def _constant_key(name: str, value: Value) -> object:
    """Return a key that is equal for equal small constants; the name for anything else."""
    array = value.constant if value.is_folded else None
    if array is None or array.size > _MAX_SHARED or array.dtype.kind == "U":
        return name
    return array.dtype.str, array.shape, array.tobytes()


def _casts_to_its_type(node: Node) -> bool:
    type_ = node.inputs[0].type
    return type_ is not None and type_.tensor_type.elem_type == node.attributes["to"].i


def _expands_nothing(node: Node) -> bool:
    data, shape = (*node.inputs, Value())[:2]
    sizes = Value(data.early_type).shape
    if shape.constant is None or not shape.is_folded or sizes is None:
        return False
    wanted = shape.constant.ravel().tolist()
    pairs = zip(reversed(sizes), reversed(wanted), strict=False)
    return len(wanted) <= len(sizes) and all(size in (1, have) for have, size in pairs)


def _slices_nothing(node: Node) -> bool:
    given = zip(node.proto.input, node.inputs, strict=True)
    arguments = [value.constant for name, value in given if name][1:]
    if len(arguments) < 2 or any(each is None for each in arguments):
        return False
    starts, ends, *others = (each.ravel().tolist() for each in arguments if each is not None)
    steps = others[1] if len(others) > 1 else []  # without axes, onnxruntime does not look at steps
    return not any(starts) and all(end == INT64_MAX for end in ends) and all(step == 1 for step in steps)


def _drops_nothing(node: Node) -> bool:
    mode = node.inputs[2] if any(node.proto.input[2:3]) else None
    is_inference = mode is None or (mode.is_folded and mode.constant is not None and not mode.constant.any())
    return is_inference and len(node.outputs) == 1


_IDLE: Final[dict[str, Callable[[Node], bool]]] = {
    "Cast": _casts_to_its_type,
    "Dropout": _drops_nothing,
    "Expand": _expands_nothing,
    "Identity": lambda node: True,
    "Slice": _slices_nothing,
}
"""Operators that onnxruntime removes where they do nothing."""


class _Neutral(NamedTuple):
    """The number that makes a node return its other input, as any of these inputs, and the release that removes it."""

    number: int
    inputs: tuple[int, ...]
    since: Version


_NEUTRAL: Final = {
    "Add": _Neutral(0, (0, 1), _ANY),
    "Sub": _Neutral(0, (1,), (1, 14)),
    "Mul": _Neutral(1, (0, 1), (1, 14)),
    "Div": _Neutral(1, (1,), (1, 14)),
}
_NEUTRAL_TYPES: Final = frozenset({"float16", "float32", "float64", "int32", "int64"})


def _operand_of_neutral(node: Node, uses: Uses) -> int | None:
    """Return the input that a node returns unchanged because the other is a neutral number; None if it is none.

    A node of the same graph computes that input, which has at least the number's dimensions.
    """
    neutral = _NEUTRAL.get(node.kind)
    if neutral is None or len(node.inputs) != len("AB"):
        return None
    for i in neutral.inputs:
        number = node.inputs[i].constant if node.inputs[i].is_folded else None
        if number is None or number.size != 1 or number.item() != neutral.number:
            continue
        shape = Value(node.inputs[1 - i].early_type).shape
        has_dimensions = shape is not None and number.ndim <= len(shape)
        if has_dimensions and number.dtype.name in _NEUTRAL_TYPES and node.proto.input[1 - i] in uses.makers:
            return 1 - i
    return None


def quantised_tiles(nodes: Iterable[Node], uses: Uses) -> Iterator[tuple[Node, str]]:
    """Yield the Tiles between a DequantizeLinear and a QuantizeLinear of one scale, with the quantised type."""
    for node in nodes:
        tile = uses.only_maker(node) if node.type == "QuantizeLinear" else None
        before = uses.only_maker(tile) if tile and tile.type == "Tile" else None
        if tile and before and before.inputs and before.type == "DequantizeLinear" and _scale(before) == _scale(node):
            yield tile, before.inputs[0].data_type or ""


def _scale(node: Node) -> list[object]:
    """Return a key of the scale and the zero point."""
    return [_constant_key(*each) for each in zip(node.proto.input[1:], node.inputs[1:], strict=True)]
