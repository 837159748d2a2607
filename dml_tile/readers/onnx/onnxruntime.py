"""The nodes that onnxruntime folds or removes before it runs a model, as measured of its basic optimisations (1.31).

It folds a node whose inputs are all constant, and a Shape whose input has a static shape, if its inference knows the
shapes of the outputs and its CPU provider has the operator. Its inference follows single elements of a shape through
other nodes, differently by release and operator; what rests on such elements is taken to be kept, and so is a Tile in
the branch that an If does not take, unless the condition is folded. It keeps a DequantizeLinear for the providers,
unless its output is quantised again, directly or behind one node. With the last Shape of a value it removes the nodes
that computed nothing else. A node whose output nobody uses stays.

``drop`` has what it removes otherwise, as measured with wheels of 1.9 to 1.24:

idle      a node returns an input: the ones of ``_IDLE``
undone    a node undoes what the one before it does, or two pairs of QuantizeLinear and DequantizeLinear do one's work
equal     a node computes what an earlier one does
in a row  one Reshape or Transpose does what several do
fused     what computes a Reshape's shape from its input's sizes, which become 0 or -1

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/constant_folding.cc, and others of that folder
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np
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

_NEVER_FOLDED: Final = {"DequantizeLinear", "Dropout"}
"""Operators that are kept despite constant inputs; random chains through all others are folded."""


class Uses:
    """The uses of a graph's values: ``counts`` of them, an output of the graph and each use in a graph inside included.

    ``outputs`` are those of the graph, ``kept`` these and what graphs inside use, ``shapes`` counts the uses by Shapes;
    ``makers`` are the nodes by their outputs, as far as they are scanned.
    """

    def __init__(self, graph: GraphProto) -> None:
        inside = list(graphs(graph))[1:]
        self.makers: dict[str, Node] = {}
        self.outputs = {value.name for value in graph.output}
        self.kept = self.outputs | {value.name for inner in inside for value in inner.output}
        self.kept.update(name for inner in inside for node in inner.node for name in node.input)
        self.counts = Counter(name for node in graph.node for name in node.input)
        self.counts.update(self.kept)
        self.shapes = Counter(name for node in graph.node if node.op_type == "Shape" for name in node.input)
        self._roots: dict[str, tuple[str, Version]] = {}

    def root(self, name: str) -> tuple[str, Version]:
        """Return the value that stands for a removed node's output, and from which release on; else the value."""
        return self._roots.get(name, (name, _ANY))

    def replace(self, name: str, other: str, since: Version, *, is_equal: bool = False) -> None:
        """Let another value stand for one that a removed node returns: an equal one, or the node's input."""
        root, before = self.root(other)
        self._roots[name] = root, max(before, since)
        self.counts[root] += self.counts[name] - (not is_equal)
        if name in self.kept:
            self.kept.add(root)

    def is_used_once(self, name: str) -> bool:
        """Return True if one node of the graph computes a value, another uses it, and nothing else does."""
        return name in self.makers and self.counts[name] == 1 and name not in self.kept

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


_SINCE: Final = attrgetter("since")
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
    has_constants = node.attributes if node.kind == "Constant" else node.outputs and _has_folded(node)
    return _FOLDED_FOR.get(node.kind, _FOLDED) if has_constants else None


def _has_folded(node: Node) -> bool:
    """Return True if onnxruntime has all outputs of a node as constants."""
    return all(value.is_folded for value in node.outputs.values())


def drop(nodes: Sequence[Node], uses: Uses, *, is_subgraph: bool) -> None:
    """Note why onnxruntime drops nodes of a graph, for those that it does not fold."""
    ends = {node: _UNUSED for node in nodes if node.outputs and _has_folded(node)}
    gone = dict(_equal([node for node in nodes if node.outputs and node not in ends], uses, ends, is_subgraph))
    left = [node for node in nodes if node not in gone]
    ends |= dict(_fused_shapes(left, uses))
    gone |= dict(_in_a_row([node for node in left if node not in ends], uses)) | dict(_unneeded(left, uses, ends))
    for node, reason in (ends | gone).items():
        node.placed.gone = node.placed.gone or reason


def _unneeded(nodes: Sequence[Node], uses: Uses, ends: Mapping[Node, Gone]) -> Iterator[tuple[Node, Gone]]:
    """Yield the nodes that only ``ends`` use, or only such nodes, with the reason of those that go last."""
    needed = {uses.root(name)[0] for name in uses.kept}
    used: dict[str, Gone] = {}
    for node in reversed(nodes):
        gone = ends.get(node)
        if gone is None and needed.isdisjoint(node.outputs):
            gone = max((used[name] for name in node.outputs if name in used), key=_SINCE, default=None)
            if gone:
                yield node, gone
        for name, _ in map(uses.root, node.proto.input):
            if gone is None:
                needed.add(name)
            else:
                used[name] = max(used.get(name, gone), gone, key=_SINCE)


def _equal(nodes: Sequence[Node], uses: Uses, ends: dict[Node, Gone], is_subgraph: bool) -> Iterator[tuple[Node, Gone]]:
    """Yield the nodes that do what an earlier node does, with the reason; ``ends`` gets those that do nothing.

    An output of the graph is kept, unless the only use of another node's output can take its name. Equal constants are
    one in the model's own graph; in a subgraph, onnxruntime keeps them apart.
    """
    first: dict[tuple[object, ...], Node] = {}
    for node in nodes:
        if not is_subgraph and (inner := _inner_pair(node, uses)):
            ends[inner] = _INNER
            uses.replace(inner.proto.output[0], uses.makers[inner.proto.input[0]].proto.input[0], _INNER.since)
        is_output = not uses.outputs.isdisjoint(node.outputs)
        found = _passed_on(node, uses) or _undone(node, uses)
        is_named = node.kind in ("Identity", *_UNDOING)
        if found and (not is_output or (is_named and uses.is_used_once(uses.root(found[0])[0]))):
            name, ends[node] = found
            uses.replace(next(iter(node.outputs)), name, ends[node].since)
            continue
        if not is_deterministic(node) or node.kind in _KEPT_APART:
            continue
        inputs = [
            _constant_key(root, value) if not is_subgraph and value.data_type in _NUMBERS else root
            for (root, _), value in zip(map(uses.root, node.proto.input), node.inputs, strict=True)
        ]
        attributes = tuple(sorted(each.SerializeToString() for each in node.proto.attribute))
        same = first.setdefault((node.type, node.opset, *inputs, len(node.proto.output), attributes), node)
        if same is not node and not is_output:
            since = max(_sinces(node, same, uses), default=_ANY)
            yield node, Gone(f"it computes what {same.placed.pointer} does", since)
            uses.counts.subtract(uses.root(name)[0] for name in node.proto.input)
            for name, other in zip(node.proto.output, same.proto.output, strict=True):
                uses.replace(name, other, since, is_equal=True)


_KEPT_APART: Final = {"DequantizeLinear"}
"""Operators of which, from 1.12 on, each user has a node of its own."""
_ANY: Final = (1, 0)
"""Before all releases that were read."""
_NUMBERS: Final = frozenset({"float16", "float32", "float64", "int32", "int64"})
"""The types of constants that onnxruntime looks at."""
_MAX_SHARED: Final = 8
"""The most elements of constants that onnxruntime takes for one if they are equal."""


def _constant_key(name: str, value: Value) -> object:
    """Return a key that is equal for equal small constants; the name for anything else."""
    array = value.constant if value.is_folded else None
    if array is None or not 0 < array.size <= _MAX_SHARED or array.dtype.kind == "U":
        return name
    return array.dtype.str, array.shape, array.tobytes()


def _sinces(node: Node, same: Node, uses: Uses) -> Iterator[Version]:
    """Yield the releases from which on each input of a node is that of another."""
    for name, other, value in zip(node.proto.input, same.proto.input, node.inputs, strict=True):
        (root, since), (other_root, other_since) = uses.root(name), uses.root(other)
        if name != other:
            yield max(since, other_since)
        if root != other_root:
            is_single = value.constant is not None and value.constant.shape in ((), (1,))
            yield (1, 14) if is_single else (1, 15)


def _passed_on(node: Node, uses: Uses) -> tuple[str, Gone] | None:
    """Return the input that a node does nothing to, and the reason why it is gone.

    It is the node's only input, or the only one that a node of the graph computes.
    """
    rules = _IDLE.get(node.kind, ())
    names = [uses.root(name)[0] for name in node.proto.input] if rules else []
    made = [i for i, name in enumerate(names) if name in uses.makers and not node.inputs[i].is_folded]
    i = made[0] if len(made) == 1 else 0
    if len(made) == 1 or (not made and len(names) == 1):
        for rule in rules:
            if rule.does_nothing(node, i, uses):
                return node.proto.input[i], Gone(f"the {node.type} does nothing", rule.since)
    return None


def _is_cast_to_its_type(node: Node, i: int, uses: Uses) -> bool:
    type_ = node.inputs[i].type
    return type_ is not None and type_.tensor_type.elem_type == node.attributes["to"].i


def _is_cast_for_shapes(node: Node, i: int, uses: Uses) -> bool:
    (name,) = node.outputs
    return 13 <= node.placed.version < 21 and uses.counts[name] == uses.shapes[name] > 0


def _expands_nothing(node: Node, i: int, uses: Uses) -> bool:
    data, shape = (*node.inputs, Value())[:2]
    sizes = Value(data.early_type).shape
    if shape.constant is None or not shape.is_folded or sizes is None:
        return False
    wanted = shape.constant.ravel().tolist()
    pairs = zip(reversed(sizes), reversed(wanted), strict=False)
    return 0 < len(wanted) <= len(sizes) and all(size <= 1 or size == have for have, size in pairs)


def _slices_nothing(node: Node, i: int, uses: Uses) -> bool:
    given = zip(node.proto.input, node.inputs, strict=True)
    arguments = [value.constant for name, value in given if name][1:]
    if node.placed.version < 10:
        arguments = [np.array(node.attributes[name].ints) for name in ("starts", "ends")]
    if len(arguments) < 2 or any(each is None for each in arguments):
        return False
    starts, ends, *others = (each.ravel().tolist() for each in arguments if each is not None)
    steps = others[1] if len(others) > 1 else []  # without axes, onnxruntime does not look at steps
    return not any(starts) and all(end == INT64_MAX for end in ends) and all(step == 1 for step in steps)


def _drops_for_inference(node: Node, i: int, uses: Uses) -> bool:
    """Return True for a Dropout without a used mask, which onnxruntime takes to drop nothing."""
    return i == 0 and node.placed.version < 22 and not any(map(uses.counts.get, filter(None, node.proto.output[1:])))


def _is_neutral(number: int, operands: Collection[int], node: Node, i: int, uses: Uses) -> bool:
    """Return True if the other of two inputs is a number that returns this one, of as many dimensions or more."""
    if i not in operands or len(node.inputs) != len("AB"):
        return False
    other = node.inputs[1 - i].constant if node.inputs[1 - i].is_folded else None
    shape = Value(node.inputs[i].early_type).shape
    return (
        other is not None
        and other.size == 1
        and other.item() == number
        and node.inputs[1 - i].data_type in _NUMBERS
        and shape is not None
        and other.ndim <= len(shape)
    )


class _Idle(NamedTuple):
    """A rule for nodes that return an input, given by its number, and the release from which on they are removed."""

    does_nothing: Callable[[Node, int, Uses], bool]
    since: Version = _ANY


_IDLE: Final[Mapping[str, Sequence[_Idle]]] = {
    "Add": [_Idle(partial(_is_neutral, 0, (0, 1)))],
    "Cast": [_Idle(_is_cast_to_its_type), _Idle(_is_cast_for_shapes, (1, 16))],
    "Div": [_Idle(partial(_is_neutral, 1, (0,)), (1, 14))],
    "Dropout": [_Idle(_drops_for_inference)],
    "Expand": [_Idle(_expands_nothing)],
    "Identity": [_Idle(lambda node, i, uses: True)],
    "Mul": [_Idle(partial(_is_neutral, 1, (0, 1)), (1, 14))],
    "Slice": [_Idle(_slices_nothing)],
    "Sub": [_Idle(partial(_is_neutral, 0, (0,)), (1, 14))],
}
"""Operators that onnxruntime removes where they do nothing."""


def _undone(node: Node, uses: Uses) -> tuple[str, Gone] | None:
    """Return the value that a node makes again, of which the node before it makes another, and why both are gone."""
    if node.kind not in _UNDOING or not node.proto.input:
        return None
    kind, undoes, since, since_as_output = _UNDOING[node.kind]
    before, output = uses.makers.get(uses.root(node.proto.input[0])[0]), next(iter(node.outputs))
    if before is None or before.kind != kind or not before.proto.input or not undoes(before, node):
        return None
    if node.kind == "QuantizeLinear" and uses.counts[output] > 1:
        return None
    since = since_as_output if output in uses.outputs else since
    return before.proto.input[0], Gone(f"a {kind} and a {node.kind} undo each other; onnxruntime removes them", since)


def _scale(node: Node) -> list[object]:
    """Return a key of the scale and the zero point."""
    return [_constant_key(*each) for each in zip(node.proto.input[1:], node.inputs[1:], strict=True)]


def _have_one_scale(one: Node, other: Node) -> bool:
    return _scale(one) == _scale(other)


def _are_inverse(one: Node, other: Node) -> bool:
    """Return True if the second of two Transposes undoes the first; both have permutations."""
    first, second = (enumerate(node.attributes["perm"].ints) for node in (one, other))
    return "perm" in one.attributes and dict(first) == {axis: i for i, axis in second}


_UNDOING: Final[Mapping[str, tuple[str, Callable[[Node, Node], bool], Version, Version]]] = {
    "QuantizeLinear": ("DequantizeLinear", _have_one_scale, (1, 17), (1, 20)),
    "Transpose": ("Transpose", _are_inverse, (1, 10), (1, 10)),
}
"""Operators that undo what another does, if both do the same but for the direction, and the release that sees it."""

_TWO_PAIRS: Final = ["DequantizeLinear", "QuantizeLinear"] * 2
_INNER: Final = Gone("it is between a QuantizeLinear and a DequantizeLinear; onnxruntime makes two pairs one", (1, 14))


def _inner_pair(node: Node, uses: Uses) -> Node | None:
    """Return the QuantizeLinear before the last of four nodes, of which onnxruntime makes one pair."""
    chain = [node]
    while chain[-1].kind in _TWO_PAIRS and len(chain) < len(_TWO_PAIRS) and (before := uses.only_maker(chain[-1])):
        chain.append(before)
    arguments = [value for each in chain for value in each.inputs[1:]]
    is_one = (
        [each.kind for each in chain] == _TWO_PAIRS
        and len(arguments) == 2 * len(chain)
        and {value.data_type for value in arguments} in ({"float32", "uint8"}, {"float32", "int8"})
        and all(value.is_folded and value.count == 1 for value in arguments)
        and _have_one_scale(*chain[:2])
        and _have_one_scale(*chain[2:])
    )
    return chain[1] if is_one else None


def _fused_shapes(nodes: Iterable[Node], uses: Uses) -> Iterator[tuple[Node, Gone]]:
    """Yield the Concats that make a Reshape's shape, where onnxruntime writes 0 for sizes that it keeps, and one -1."""
    for node in nodes:
        if node.kind != "Reshape" or not _takes_in(node) or len(node.inputs) < 2 or node.inputs[1].is_folded:
            continue
        data, shape = (uses.root(name)[0] for name in node.proto.input[:2])
        concat = uses.makers.get(shape)
        if concat is None or concat.kind != "Concat" or not uses.is_used_once(shape):
            continue
        kept = others = position = 0
        for name, value in zip(concat.proto.input, concat.inputs, strict=True):
            constant = value.constant if value.is_folded else None
            if constant is not None:
                others += int((constant == -1).sum())
            elif _is_size(position, name, data, uses):
                kept += 1
            else:
                others += 1 if Value(value.early_type).count == 1 else 2
            position += 1 if constant is None else constant.size
        if others <= 1:
            is_old = (node.opset or 0) < 13 or kept + others <= 1
            yield concat, _FUSED._replace(since=_ANY if is_old else (1, 14))


_FUSED: Final = Gone("it computes a Reshape's shape, which onnxruntime writes as a constant with 0 and -1")


def _is_size(axis: int, name: str, data: str, uses: Uses) -> bool:
    """Return True if a value is a vector of one size of another: an Unsqueeze of a Gather of its Shape."""
    for kind, argument in (("Unsqueeze", 0), ("Gather", axis), ("Shape", None)):
        maker = uses.makers.get(uses.root(name)[0])
        if maker is None or maker.kind != kind or not maker.proto.input:
            return False
        given = maker.inputs[1].constant if len(maker.inputs) > 1 else maker.attributes["axes"].ints
        if maker.proto.attribute if argument is None else np.array(given).ravel().tolist() != [argument]:
            return False
        name = maker.proto.input[0]
    return uses.root(name)[0] == data


_IN_A_ROW: Final[Mapping[str, tuple[str, Version]]] = {
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze"), ("Reshape", (1, 21))),
    "Transpose": ("Transpose", (1, 10)),
}
"""Operators that another before them takes in, and the release from which on it does."""


def _takes_in(node: Node) -> bool:
    """Return True for a Reshape or Transpose that onnxruntime makes one with nodes behind it."""
    if node.kind == "Transpose":
        return "perm" in node.attributes
    return node.kind == "Reshape" and node.placed.version < 19 and not node.attributes["allowzero"].i


def _in_a_row(nodes: Iterable[Node], uses: Uses) -> Iterator[tuple[Node, Gone]]:
    """Yield the nodes that a Reshape or Transpose before them takes in: a Reshape only those of known output sizes."""
    taking: dict[str, str] = {}
    for node in nodes:
        kind, since = _IN_A_ROW.get(node.kind, ("", _ANY))
        if not (kind and node.proto.input and node.outputs):
            continue
        output = next(iter(node.outputs))
        is_taken = _takes_in(node) if kind == "Transpose" else Value(node.outputs[output].early_type).is_static
        if is_taken and taking.get(uses.root(node.proto.input[0])[0]) == kind:
            yield node, Gone(f"onnxruntime makes one {kind} of it and the node before it", since)
        elif not _takes_in(node):
            continue
        if uses.is_used_once(output):
            taking[output] = kind


def quantised_tiles(nodes: Iterable[Node], uses: Uses) -> Iterator[tuple[Node, str]]:
    """Yield the Tiles between a DequantizeLinear and a QuantizeLinear of one scale, with the quantised type."""
    for node in nodes:
        tile = uses.only_maker(node) if node.type == "QuantizeLinear" else None
        before = uses.only_maker(tile) if tile and tile.type == "Tile" else None
        if tile and before and before.inputs and before.type == "DequantizeLinear" and _scale(before) == _scale(node):
            yield tile, before.inputs[0].data_type or ""
