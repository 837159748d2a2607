"""The nodes that onnxruntime removes and does not fold, as measured with wheels of 1.9 to 1.24.

idle      a node returns an input
inner     two pairs of QuantizeLinear and DequantizeLinear become one
equal     a node computes the same as an earlier one
fused     nodes that compute a Reshape's shape from its input's sizes, which become 0 or -1
unneeded  only nodes use it that are folded or removed; a node whose output nobody uses stays

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Final

import numpy as np
from onnx import GraphProto

from dml_tile.back_ends.dialects import INT64_MAX
from dml_tile.back_ends.kernels import Version
from dml_tile.back_ends.placement import Gone
from dml_tile.readers.onnx.file import ANY, graphs
from dml_tile.readers.onnx.folding import is_deterministic
from dml_tile.readers.onnx.nodes import Node
from dml_tile.readers.onnx.values import Value


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
        self._roots: dict[str, str] = {}
        self._since: dict[str, Version] = {}

    def root(self, name: str) -> str:
        """Return the value that stands for a removed node's output; any other value stands for itself."""
        return self._roots.get(name, name)

    def since(self, name: str) -> Version:
        """Return the release from which on the root stands for a value."""
        return self._since.get(name, ANY)

    def replace(self, name: str, other: str, since: Version, *, is_equal: bool = False) -> None:
        """Let another value stand for one that a removed node returns: an equal one, or the node's input."""
        root = self._roots[name] = self.root(other)
        self._since[name] = max(self.since(other), since)
        self.counts[root] += self.counts[name] - (not is_equal)
        if name in self.kept:
            self.kept.add(root)

    def forget(self, node: Node) -> None:
        """Take back a removed node's uses."""
        names = [self.root(name) for name in node.proto.input]
        self.counts.subtract(names)
        if node.type == "Shape":
            self.shapes.subtract(names)

    def is_used_once(self, name: str) -> bool:
        """Return True if one node of the graph computes a value, another uses it, and nothing else does."""
        return name in self.makers and self.counts[name] == 1 and name not in self.kept

    def only_maker(self, node: Node) -> Node | None:
        """Return the node that computes the first input, if nothing else uses that; no removed node is between them."""
        name = self.root(next(iter(node.proto.input), ""))
        return self.makers.get(name) if self.counts[name] == 1 else None


_SINCE: Final = attrgetter("since")
_UNUSED: Final = Gone("only the shape of its output is used, which is known; onnxruntime removes it")


def drop(nodes: Sequence[Node], uses: Uses, *, is_subgraph: bool) -> None:
    """Note why onnxruntime drops nodes of a graph, for those that it does not fold."""
    ends = {node: _UNUSED for node in nodes if node.outputs and node.is_folded}
    ends |= dict(_unneeded(nodes, uses, ends))
    for node in ends:
        uses.forget(node)
    used = [node for node in nodes if node not in ends and any(map(uses.counts.get, node.outputs))]
    gone = dict(_equal(used, uses, ends, is_subgraph))
    left = [node for node in nodes if node not in gone]
    ends |= dict(_fused_shapes(left, uses))
    gone |= dict(_unneeded(left, uses, ends))
    for node, reason in (ends | gone).items():
        node.placed.gone = node.placed.gone or reason


def _unneeded(nodes: Sequence[Node], uses: Uses, ends: Mapping[Node, Gone]) -> Iterator[tuple[Node, Gone]]:
    """Yield the nodes that only ``ends`` use, or only such nodes, with the reason of those that go last."""
    if not ends:
        return
    needed = {uses.root(name) for name in uses.kept}
    used: dict[str, Gone] = {}
    for node in reversed(nodes):
        gone = ends.get(node)
        if gone is None and needed.isdisjoint(node.outputs):
            gone = max((used[name] for name in node.outputs if name in used), key=_SINCE, default=None)
            if gone:
                yield node, gone._replace(kept=())
        for name in map(uses.root, node.proto.input):
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
        found = _idle(node, uses)
        if found and (not is_output or (node.kind == "Identity" and uses.is_used_once(uses.root(found[0])))):
            name, ends[node] = found
            uses.replace(next(iter(node.outputs)), name, ends[node].since)
            continue
        if not is_deterministic(node) or node.kind in _KEPT_APART:
            continue
        inputs = [
            _constant_key(root, value) if value.is_folded and not is_subgraph and value.data_type in _NUMBERS else root
            for root, value in zip(map(uses.root, node.proto.input), node.inputs, strict=True)
        ]
        attributes = tuple(sorted(each.SerializeToString() for each in node.proto.attribute))
        same = first.setdefault((node.type, node.opset, *inputs, len(node.proto.output), attributes), node)
        if same is not node and not is_output:
            since = max(_sinces(node, same, uses), default=ANY)
            yield node, Gone(f"it computes what {same.placed.place.pointer} does", since, kept=same.placed.outputs)
            uses.forget(node)
            for name, other in zip(node.proto.output, same.proto.output, strict=True):
                uses.replace(name, other, since, is_equal=True)


_NUMBERS: Final = frozenset({"float16", "float32", "float64", "int32", "int64"})
"""The types of constants that onnxruntime looks at."""
_KEPT_APART: Final = {"DequantizeLinear"}
"""Operators of which, from 1.12 on, each user has a node of its own."""
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
        if name != other:
            yield max(uses.since(name), uses.since(other))
        if uses.root(name) != uses.root(other):
            is_single = value.constant is not None and value.constant.shape in ((), (1,))
            yield (1, 14) if is_single else (1, 15)


def _idle(node: Node, uses: Uses) -> tuple[str, Gone] | None:
    """Return the input that a node does nothing to, and the reason why it is gone.

    It is the node's only input, or the only one that a node of the graph computes.
    """
    rules = _IDLE.get(node.kind, ())
    names = [uses.root(name) for name in node.proto.input] if rules else []
    made = [i for i, name in enumerate(names) if name in uses.makers and not node.inputs[i].is_folded]
    i = made[0] if len(made) == 1 else 0
    if len(made) == 1 or (not made and len(names) == 1):
        for does_nothing, since in rules:
            if does_nothing(node, i, uses):
                return node.proto.input[i], Gone(f"the {node.type} does nothing", since, kept=(node.inputs[i].edge,))
    return None


def _is_cast_to_its_type(node: Node, i: int, uses: Uses) -> bool:
    type_ = node.inputs[i].type
    return type_ is not None and type_.tensor_type.elem_type == node.attributes["to"].i


def _is_cast_for_shapes(node: Node, i: int, uses: Uses) -> bool:
    (name,) = node.outputs
    return 13 <= node.placed.place.version < 21 and uses.counts[name] == uses.shapes[name] > 0


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
    if node.placed.place.version < 10:
        arguments = [np.array(node.attributes[name].ints) for name in ("starts", "ends")]
    if len(arguments) < 2 or any(each is None for each in arguments):
        return False
    starts, ends, *others = (each.ravel().tolist() for each in arguments if each is not None)
    steps = others[1] if len(others) > 1 else []  # without axes, onnxruntime does not look at steps
    return not any(starts) and all(end == INT64_MAX for end in ends) and all(step == 1 for step in steps)


def _drops_for_inference(node: Node, i: int, uses: Uses) -> bool:
    """Return True for a Dropout without a used mask, which onnxruntime takes to drop nothing."""
    return (
        i == 0 and node.placed.place.version < 22 and not any(map(uses.counts.get, filter(None, node.proto.output[1:])))
    )


def _is_neutral(number: int, operands: Collection[int], node: Node, i: int, uses: Uses) -> bool:
    """Return True if the other of two inputs is a number that returns this one, of as many dimensions or more."""
    if i not in operands or len(node.inputs) != len("AB"):
        return False
    other = node.inputs[1 - i].constant if node.inputs[1 - i].is_folded else None
    if other is None or other.size != 1 or other.item() != number or other.dtype.name not in _NUMBERS:
        return False
    shape = Value(node.inputs[i].early_type).shape
    return shape is not None and other.ndim <= len(shape)


_IDLE: Final[Mapping[str, Sequence[tuple[Callable[[Node, int, Uses], bool], Version]]]] = {
    "Add": [(partial(_is_neutral, 0, (0, 1)), ANY)],
    "Cast": [(_is_cast_to_its_type, ANY), (_is_cast_for_shapes, (1, 16))],
    "Div": [(partial(_is_neutral, 1, (0,)), (1, 14))],
    "Dropout": [(_drops_for_inference, ANY)],
    "Expand": [(_expands_nothing, ANY)],
    "Identity": [(lambda node, i, uses: True, ANY)],
    "Mul": [(partial(_is_neutral, 1, (0, 1)), (1, 14))],
    "Slice": [(_slices_nothing, ANY)],
    "Sub": [(partial(_is_neutral, 0, (0,)), (1, 14))],
}
"""Operators that onnxruntime removes where a rule says that they return an input, by its number, from a release on."""


def _scale(node: Node) -> list[object]:
    """Return a key of the scale and the zero point, which is 0 if there is none."""
    keys = [_constant_key(*each) for each in zip(node.proto.input[1:], node.inputs[1:], strict=True)]
    return keys if len(keys) > 1 else [*keys, ("|u1", (), bytes(1))]


def _have_one_scale(one: Node, other: Node) -> bool:
    return _scale(one) == _scale(other)


_INNER: Final = Gone("it is between a QuantizeLinear and a DequantizeLinear; onnxruntime makes two pairs one", (1, 14))


def _inner_pair(node: Node, uses: Uses) -> Node | None:
    """Return the QuantizeLinear before the last of four nodes, of which onnxruntime makes one pair."""
    chain = [node]
    for kind in ("DequantizeLinear", "QuantizeLinear", "DequantizeLinear"):
        name = next(iter(chain[-1].proto.input), "")
        if chain[-1].kind != kind or name not in uses.makers or uses.counts[name] != 1:
            return None
        chain.append(uses.makers[name])
    arguments = [value for each in chain for value in each.inputs[1:]]
    is_one = (
        chain[-1].kind == "QuantizeLinear"
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
        keeps_zeros = node.kind == "Reshape" and node.placed.place.version < 19 and not node.attributes["allowzero"].i
        if not keeps_zeros or len(node.inputs) < 2 or node.inputs[1].is_folded:
            continue
        data, shape = (uses.root(name) for name in node.proto.input[:2])
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
            yield concat, _FUSED._replace(since=ANY if is_old else (1, 14))


_FUSED: Final = Gone("it computes a Reshape's shape, which onnxruntime writes as a constant with 0 and -1")


def _is_size(axis: int, name: str, data: str, uses: Uses) -> bool:
    """Return True if a value is a vector of one size of another: an Unsqueeze of a Gather of its Shape."""
    for kind, argument in (("Unsqueeze", 0), ("Gather", axis), ("Shape", None)):
        maker = uses.makers.get(uses.root(name))
        if maker is None or maker.kind != kind or not maker.proto.input:
            return False
        given = maker.inputs[1].constant if len(maker.inputs) > 1 else maker.attributes["axes"].ints
        if maker.proto.attribute if argument is None else np.array(given).ravel().tolist() != [argument]:
            return False
        name = maker.proto.input[0]
    return uses.root(name) == data


def note_quantised_tiles(nodes: Iterable[Node], uses: Uses) -> None:
    """Note the quantised type of the Tiles between a DequantizeLinear and a QuantizeLinear of one scale."""
    for node in nodes:
        tile = uses.only_maker(node) if node.type == "QuantizeLinear" else None
        before = uses.only_maker(tile) if tile and tile.type == "Tile" else None
        if tile and before and before.inputs and before.type == "DequantizeLinear" and _scale(before) == _scale(node):
            tile.quantised = before.inputs[0].data_type or ""
