"""The graph that fusions match: the nodes that level 1 leaves, their edges, and their constants.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/utils.cc and matmul_add_fusion.cc
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isclose
from typing import Any, Final, NamedTuple

from dml_tile.back_ends.kernels import Version
from dml_tile.readers.onnx.nodes import Node
from dml_tile.readers.onnx.removals import Uses
from dml_tile.readers.onnx.values import Value

EVER: Final = (1000, 0)
_VERSIONS: Final = {"Cast": (9, 19), "MatMul": (9, 13)}
"""The versions, first and last, of operators that are fused."""


class Match(NamedTuple):
    """Nodes that make one ``operator``: the last computes its output; ``inputs`` are nodes and numbers of theirs.

    ``dropped`` are nodes of any provider that nothing uses then, ``attributes`` those that are not defaults. A ``base``
    is a node whose own attributes it keeps; ``makers`` compute its outputs, where there are several. Inputs that are
    ``packed`` are bytes of other sizes, made of the constants at their places.
    """

    operator: str
    parts: Sequence[Node]
    inputs: Sequence[tuple[Node, int]]
    since: Version = (0, 0)
    to: Version = EVER
    dropped: Sequence[Node] = ()
    attributes: Mapping[str, Any] = {}
    base: Node | None = None
    makers: Sequence[Node] = ()
    packed: Mapping[int, tuple[int, ...]] = {}


class Graph:
    """The nodes of a graph that level 1 does not remove, with their edges."""

    def __init__(self, nodes: Sequence[Node], uses: Uses, opset: int = 0) -> None:
        self._uses, self.opset = uses, opset
        self.taken: dict[Node, Match] = {}
        self.nodes = [node for node in nodes if node.placed.gone is None]
        self._makers = {name: node for node in self.nodes for name in node.outputs}
        self._users: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in self.names(node):
                self._users.setdefault(name, []).append(node)

    def names(self, node: Node) -> list[str]:
        """Return the inputs of a node, behind the nodes that level 1 removes."""
        return [self._uses.root(name) for name in node.proto.input]

    def users(self, node: Node) -> list[Node]:
        """Return the nodes that use a node's only output, once for each use; none if the graph or one in it does."""
        name = next(iter(node.outputs), "")
        return [] if len(node.outputs) != 1 or name in self._uses.kept else self.users_of(name)

    def is_result(self, name: str) -> bool:
        """Return True for an output of the graph, and a value that a graph in it uses."""
        return name in self._uses.kept

    def users_of(self, name: str) -> list[Node]:
        """Return the nodes that use a value, once for each use."""
        return self._users.get(name, [])

    def maker(self, node: Node, i: int = 0) -> Node | None:
        """Return the node that computes an input."""
        return self._makers.get(self._uses.root(node.proto.input[i])) if i < len(node.proto.input) else None

    def parent(self, node: Node, kind: str) -> Node | None:
        """Return the first node of a kind that computes an input."""
        makers = (self.maker(node, i) for i in range(len(node.inputs)))
        return next((maker for maker in makers if maker and is_kind(maker, kind)), None)

    def chain(self, node: Node, *kinds: str) -> list[Node]:
        """Return the nodes of these kinds that follow a node, each the only user of the one before; else none."""
        found = []
        for kind in kinds:
            users = self.users(node)
            if len(users) != 1 or not is_kind(users[0], kind):
                return []
            found.append(node := users[0])
        return found

    def beside(self, node: Node, *numbers: float) -> int:
        """Return the input, by its number, whose other is a constant scalar of one of these numbers; -1 for none."""
        if len(node.inputs) == len("AB"):
            for i in (1, 0):
                if is_number(node.inputs[i], *numbers):
                    return 1 - i
        return -1


def is_kind(node: Node, kind: str) -> bool:
    first, last = _VERSIONS.get(kind, (0, 1000))
    return node.kind == kind and first <= node.placed.place.version <= last


def is_number(value: Value, *numbers: float) -> bool:
    """Return True for a constant scalar of one of these numbers, within onnxruntime's tolerance."""
    constant = value.constant if value.is_folded else None
    if constant is None or constant.shape not in ((), (1,)) or constant.dtype.kind != "f":
        return False
    wanted = (float(constant.dtype.type(number)) if constant.itemsize == 2 else number for number in numbers)
    return any(isclose(constant.item(), number, rel_tol=1e-5, abs_tol=1e-8) for number in wanted)


def early_shape(value: Value) -> tuple[int | str | None, ...] | None:
    return Value(value.early_type).shape


def item(value: Value) -> float:
    """Return the only element of a constant."""
    constant = value.constant
    assert constant is not None
    return float(constant.item())


def is_scalar(value: Value, *, rank: int = 1) -> bool:
    """Return True for a constant number of at most so many dimensions."""
    constant = value.constant if value.is_folded else None
    return constant is not None and constant.size == 1 and constant.ndim <= rank and constant.dtype.kind == "f"


def before_gemm(graph: Graph, product: Node) -> Version:
    """Return the last release that does not make a MatMul and the Add behind it one Gemm."""
    add = next(iter(graph.chain(product, "Add")), None)
    if add is None or not is_kind(product, "MatMul"):
        return EVER
    left, right = (early_shape(value) for value in product.inputs)
    bias = early_shape(add.inputs[1 - (graph.maker(add, 1) is product)])
    if left is None or right is None or bias is None or len(right) != 2:
        return EVER
    if len(left) == 2:
        rows = (1, left[0]) if left[0] is not None else (1,)
        is_added = bias == right[1:] or (len(bias) == 2 and bias[0] in rows and bias[1] == right[1])
        is_added = is_added or (len(bias) == 2 and bias[0] == left[0] and bias[1] == 1)
        return (0, 0) if is_added and None not in bias else EVER
    is_known = all(isinstance(size, int) for size in (*left, *right))
    return (1, 20) if is_known and bias == right[1:] else EVER
