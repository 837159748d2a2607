"""The nodes that onnxruntime fuses into one that a provider's kernel computes, a pattern each.

Before a provider is asked (level 1): GELU and layer normalisation, where the opset has the operator. Behind that
(level 2), of nodes that are all on DirectML: these two, the GELUs with a bias or by tanh or sigmoid, and products of
transposed and scaled matrices.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/: graph_transformer_utils.cc, and a file for each fusion, read
at the tags of 1.14 to 1.22, the branches of 1.23 and 1.24, and main of 2026-08
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, takewhile
from math import inf, isclose, sqrt
from typing import Any, Final, NamedTuple

import numpy as np

from dml_tile.back_ends.descriptions.node import KernelNode
from dml_tile.back_ends.kernels import Version
from dml_tile.back_ends.placement import Fusion
from dml_tile.readers.onnx.nodes import Node
from dml_tile.readers.onnx.operators import resolved
from dml_tile.readers.onnx.removals import Uses
from dml_tile.readers.onnx.values import Value

_EVER: Final = (1000, 0)
_MICROSOFT: Final = "com.microsoft"


class _Row(NamedTuple):
    """Releases, first and last, that fuse a pattern at a level in models of opsets, first and last."""

    domain: str
    level: int
    since: Version
    to: Version = _EVER
    opsets: tuple[int, int] = (7, 1000)


_ROWS: Final = {
    "Gelu": (
        _Row("", 1, (1, 20), opsets=(20, 1000)),
        _Row(_MICROSOFT, 2, (1, 20), opsets=(7, 19)),
        _Row(_MICROSOFT, 2, (1, 14), (1, 19)),
    ),
    "LayerNormalization": (
        _Row("", 1, (1, 20), opsets=(17, 1000)),
        _Row("", 2, (1, 20), opsets=(7, 16)),
        _Row("", 2, (1, 14), (1, 19)),
    ),
    "BiasGelu": (_Row(_MICROSOFT, 2, (1, 14)),),
    "QuickGelu": (_Row(_MICROSOFT, 2, (1, 15)),),
    "FastGelu": (_Row(_MICROSOFT, 2, (1, 18)),),
    "FusedMatMul": (_Row(_MICROSOFT, 2, (1, 14)),),
}
_VERSIONS: Final = {"Cast": (9, 19), "MatMul": (9, 13)}
"""The versions, first and last, of operators that are fused."""


class _Match(NamedTuple):
    """Nodes that make one ``operator``: the last computes its output; ``inputs`` are nodes and numbers of theirs.

    ``dropped`` are nodes of any provider that nothing uses then, ``attributes`` those that are not defaults.
    """

    operator: str
    parts: Sequence[Node]
    inputs: Sequence[tuple[Node, int]]
    since: Version = (0, 0)
    to: Version = _EVER
    dropped: Sequence[Node] = ()
    attributes: Mapping[str, Any] = {}


class _Graph:
    """The nodes of a graph that level 1 does not remove, with their edges."""

    def __init__(self, nodes: Sequence[Node], uses: Uses, opset: int) -> None:
        self._uses, self.opset = uses, opset
        self.taken: dict[Node, _Match] = {}
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
        return [] if len(node.outputs) != 1 or name in self._uses.kept else self._users.get(name, [])

    def maker(self, node: Node, i: int = 0) -> Node | None:
        """Return the node that computes an input."""
        return self._makers.get(self.names(node)[i]) if i < len(node.proto.input) else None

    def parent(self, node: Node, kind: str) -> Node | None:
        """Return the first node of a kind that computes an input."""
        makers = (self.maker(node, i) for i in range(len(node.inputs)))
        return next((maker for maker in makers if maker and _is(maker, kind)), None)

    def chain(self, node: Node, *kinds: str) -> list[Node]:
        """Return the nodes of these kinds that follow a node, each the only user of the one before; else none."""
        found = []
        for kind in kinds:
            users = self.users(node)
            if len(users) != 1 or not _is(users[0], kind):
                return []
            found.append(node := users[0])
        return found

    def beside(self, node: Node, *numbers: float) -> int:
        """Return the input, by its number, whose other is a constant scalar of one of these numbers; -1 for none."""
        if len(node.inputs) == len("AB"):
            for i in (1, 0):
                if _number(node.inputs[i], *numbers):
                    return 1 - i
        return -1


def _is(node: Node, kind: str) -> bool:
    first, last = _VERSIONS.get(kind, (0, 1000))
    return node.kind == kind and first <= node.placed.version <= last


def _number(value: Value, *numbers: float) -> bool:
    """Return True for a constant scalar of one of these numbers, within onnxruntime's tolerance."""
    constant = value.constant if value.is_folded else None
    if constant is None or constant.shape not in ((), (1,)) or constant.dtype.kind != "f":
        return False
    wanted = (float(constant.dtype.type(number)) if constant.itemsize == 2 else number for number in numbers)
    return any(isclose(constant.item(), number, rel_tol=1e-5, abs_tol=1e-8) for number in wanted)


def _shape(value: Value) -> tuple[int | str | None, ...] | None:
    return Value(value.early_type).shape


def _gelu(graph: _Graph, div: Node) -> Iterator[_Match]:
    """Divide by the root of 2; Erf; add 1; multiply by the input, and by 0.5 at either place."""
    links = graph.chain(div, "Erf", "Add", "Mul") if div.kind == "Div" else []
    if not links or graph.beside(div, sqrt(2), 1.4142099618911743) != 0 or graph.beside(links[1], 1) < 0:
        return
    x, mul = graph.names(div)[0], links[-1]
    half, since, to = graph.parent(mul, "Mul"), (0, 0), _EVER
    is_onnx_s = graph.opset >= _ROWS["Gelu"][0].opsets[0]
    if half and (made := graph.taken.get(half)) and made.parts[-1] is half:
        half, since = None, _ROWS[made.operator][-1].since  # no Mul then
        to = (1, 19) if is_onnx_s and made.operator != "Gelu" else _EVER
    if half:
        i = graph.beside(half, 0.5)
        if i < 0 or graph.names(half)[i] != x or len(graph.users(half)) != 1:
            return
        parts = [div, *links[:-1], half, mul]
    else:
        last = graph.chain(mul, "Mul")
        if not last or x not in graph.names(mul) or graph.beside(last[0], 0.5) < 0:
            return
        parts = [div, *links, *last]
    yield from _biased(graph, "BiasGelu", parts, div, 0, to=(1, 19) if is_onnx_s else _EVER)
    yield _Match("Gelu", parts, [(div, 0)], since, to)


def _biased(
    graph: _Graph, operator: str, parts: Sequence[Node], node: Node, i: int, to: Version = _EVER
) -> Iterator[_Match]:
    """Yield the match with the Add of a bias before a GELU, whose input is that of a node."""
    add = graph.maker(node, i)
    if add is None or add.kind != "Add" or not (users := graph.users(add)) or not set(users) <= {*parts}:
        return
    shapes = [_shape(value) for value in add.inputs]
    bias = next((i for i, shape in enumerate(shapes) if shape and len(shape) == 1), None)
    if bias is None or not all(shapes) or len({shape[-1] for shape in shapes if shape} - {None}) != 1:
        return
    product = graph.parent(add, "MatMul")
    to = min(to, _before_gemm(graph, product)) if product else to
    yield _Match(operator, [add, *parts], [(add, 1 - bias), (add, bias)], to=to)


def _microsoft_gelu(graph: _Graph, node: Node) -> Iterator[_Match]:
    """Com.microsoft's own GELUs, of which those with a bias are fused."""
    if node.kind == f"{_MICROSOFT}.Gelu":
        yield from _biased(graph, "BiasGelu", [node], node, 0)
    elif node.kind == f"{_MICROSOFT}.FastGelu" and len(node.proto.input) == 1:
        yield from _biased(graph, "FastGelu", [node], node, 0)


def _fast_gelu(graph: _Graph, first: Node) -> Iterator[_Match]:
    """GELU by tanh, with x * x or the third power of x."""
    if first.kind == "Mul" and (i := graph.beside(first, 0.044715)) >= 0:
        x = graph.names(first)[i]
        links = graph.chain(first, "Mul", "Add", "Mul", "Tanh", "Add", "Mul")
        root = graph.parent(links[2], "Mul") if links else None
        if root is None or x not in graph.names(links[0]) or graph.beside(links[1], 1) < 0:
            return
        if (j := graph.beside(root, 0.7978845834732056)) < 0 or graph.names(root)[j] != x:
            return
        if len(graph.users(root)) != 1:
            return
        parts = [first, *links[:3], root, *links[3:]]
    elif first.kind == "Pow" and _number(first.inputs[1], 3):
        i, x = 0, graph.names(first)[0]
        links = graph.chain(first, "Mul", "Add", "Mul", "Tanh", "Add", "Mul")
        if not links or graph.beside(links[0], 0.044714998453855515) < 0 or x not in graph.names(links[1]):
            return
        if graph.beside(links[2], 0.7978845834732056) < 0 or graph.parent(first, "Cast"):
            return
        parts = [first, *links]
    else:
        return
    add, last = parts[-2:]
    half = next((graph.maker(last, j) for j in (0, 1) if graph.maker(last, j) is not add), None)
    if half is None or half.kind != "Mul" or graph.beside(add, 1) < 0 or not graph.users(last):
        return
    if (j := graph.beside(half, 0.5)) >= 0 and graph.names(half)[j] == x and len(graph.users(half)) == 1:
        parts = [*parts[:-1], half, last]
        yield from _biased(graph, "FastGelu", parts, first, i)
        yield _Match("FastGelu", parts, [(first, i)])


def _quick_gelu(graph: _Graph, sigmoid: Node) -> Iterator[_Match]:
    """Multiply a value by the Sigmoid of its product with a number, or of itself."""
    last = graph.chain(sigmoid, "Mul") if sigmoid.kind == "Sigmoid" else []
    if not last:
        return
    scale = graph.maker(sigmoid)
    if scale and scale.kind == "Mul" and graph.users(scale) == [sigmoid] and len(scale.inputs) == len("AB"):
        i = next((1 - i for i in (0, 1) if _is_scalar(scale.inputs[i])), -1)
        if i >= 0 and graph.names(scale)[i] in graph.names(last[0]):
            alpha = _item(scale.inputs[1 - i])
            yield _Match("QuickGelu", [scale, sigmoid, *last], [(scale, i)], attributes={"alpha": alpha})
            return
    if graph.names(sigmoid)[0] in graph.names(last[0]):
        yield _Match("QuickGelu", [sigmoid, *last], [(sigmoid, 0)], attributes={"alpha": 1.0})


def _item(value: Value) -> float:
    """Return the only element of a constant."""
    constant = value.constant
    assert constant is not None
    return float(constant.item())


def _is_scalar(value: Value, *, rank: int = 1) -> bool:
    """Return True for a constant number of at most so many dimensions."""
    constant = value.constant if value.is_folded else None
    return constant is not None and constant.size == 1 and constant.ndim <= rank and constant.dtype.kind == "f"


def _layer_norm(graph: _Graph, mean: Node) -> Iterator[_Match]:
    """Subtract the mean, divide by the root of the mean square, scale by a vector and add one, with Casts between."""
    subs = graph.users(mean) if mean.kind == "ReduceMean" else []
    x = graph.names(mean)[:1]
    if len(subs) not in (1, 2) or any(sub.kind != "Sub" or x[0] not in graph.names(sub) for sub in subs):
        return
    parts, source = [mean, *subs], mean
    leading, sub = graph.maker(mean), subs[0]
    if leading and _is(leading, "Cast") and len(graph.users(leading)) == len(subs) + 1:
        parts, source = [leading, *parts], leading
    cast = next(iter(graph.chain(sub, "Cast")), None) if len(subs) == 1 else None
    if cast and len(graph.users(cast)) == 2:
        parts.append(cast)
    else:
        cast = None
    if len(graph.users(sub)) != (2 if len(subs) == 1 and not cast else 1):
        return
    after = [*graph.users(cast or sub), *(user for each in subs[1:] for user in graph.users(each))]
    div = next((each for each in after if each.kind == "Div"), None)
    tail = div and (graph.chain(div, "Mul", "Add") or graph.chain(div, "Cast", "Mul", "Add"))
    root = div and graph.parent(div, "Sqrt")
    add = root and graph.parent(root, "Add")
    square = add and graph.parent(add, "ReduceMean")
    power = square and graph.maker(square)
    if not (div and tail and root and add and square and power) or power.kind != "Pow":
        return
    if any(len(graph.users(each)) != 1 for each in (root, add, square, power)):
        return
    parts += [div, root, add, square, power]
    other = graph.parent(power, "Cast")
    if other and other is not cast:
        if len(graph.users(other)) != 1:
            return
        parts.append(other)
    elif not other and graph.parent(power, "Sub") not in subs:
        return
    scale, bias = (next((i for i in (1, 0) if len(_shape(each.inputs[i]) or ()) == 1), None) for each in tail[-2:])
    if scale is None or bias is None:
        return
    vectors = tail[-2].inputs[scale], tail[-1].inputs[bias]
    first, second = (size if isinstance(size, int) else 0 for value in vectors for size in _shape(value) or ())
    if first != second:
        return
    is_known = all(each.is_folded or (each.edge and each.edge.is_input) for each in vectors)
    is_last = all(_is_last(each) for each in (mean, square))
    inputs = [(source, 0), (tail[-2], scale), (tail[-1], bias)]
    given = add.inputs[1]
    epsilon = _item(given) if _is_scalar(given) and given.data_type == "float32" else 1e-5
    yield _Match(
        "LayerNormalization",
        [*parts, *tail],
        inputs,
        since=(1, 14) if is_known else (1, 17),
        to=_EVER if is_last else (1, 15),
        attributes={"axis": -1, "epsilon": epsilon},
    )


def _is_last(mean: Node) -> bool:
    """Return True for a mean over the last axis alone."""
    given = mean.inputs[1].constant if len(mean.inputs) > 1 else mean.attributes["axes"].ints
    axes = np.array(given if given is not None else ()).ravel().tolist()
    rank = len(_shape(mean.inputs[0]) or ())
    return axes == [-1] or (axes == [rank - 1] and rank > 1)


_REPEATS: Final = 10
"""The number of times that onnxruntime repeats all fusions, at most."""


_MOVED_THROUGH: Final = frozenset({"Cast", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"})


class _Product:
    """A MatMul with the Transposes and scales that it takes in: ``sides`` are its inputs beyond them."""

    def __init__(self, graph: _Graph, node: Node) -> None:
        self._graph, self.node, self.outs = graph, node, [node]
        self.sides = [(node, 0), (node, 1)]
        self.paths: tuple[list[Node], list[Node]] = [], []
        self.alpha = 1.0
        self.turns = dict.fromkeys(("transA", "transB", "transBatchA", "transBatchB"), False)

    def take_transposes(self) -> bool:
        """Take in the Transposes before either input; return False if there are none that FusedMatMul can do."""
        sides = [*self.sides]
        for i, (node, number) in enumerate(self.sides):
            maker, run, perm = self._graph.maker(node, number), list[Node](), list[int]()
            while maker and maker.kind == "Transpose" and len(run) < _REPEATS:  # level 1 makes one of several
                given = [*maker.attributes["perm"].ints] or [*range(len(_shape(maker.inputs[0]) or ()))][::-1]
                if sorted(given) != [*range(len(perm) if run else len(given))]:
                    break
                perm = [given[axis] for axis in perm] if run else given
                run.append(maker)
                maker = self._graph.maker(maker)
            other, j = self.sides[1 - i]
            if len(run) > 1 and perm == [*range(len(perm))]:
                sides[i] = (run[-1], 0)
            elif run and not self.turns["transBatch" + "AB"[i]] and self._is_taken(perm, other.inputs[j], run[-1]):
                self.paths[i].extend(run)
                self.turns["trans" + "AB"[i]] ^= perm[-1] != len(perm) - 1
                self.turns["transBatch" + "AB"[i]] = len(perm) > 2 and perm[0] == 1
                sides[i] = (run[-1], 0)
        sides, self.sides = self.sides, sides
        return sides != self.sides

    def _is_taken(self, perm: Sequence[int], other: Value, first: Node) -> bool:
        """Return True for a Transpose that FusedMatMul can do beside another matrix.

        It is of the last two axes, or the first goes behind the others, or both; or it does nothing. Level 1 may move
        another Transpose to the ``first``.
        """
        rank = len(perm)
        if rank < 2 or rank - 1 not in perm[-2:] or self._is_reached(first):
            return False
        batch = [*perm[: rank - 2]]
        is_moved = rank > 2 and batch[0] == 1
        is_like = not is_moved or len(_shape(other) or ()) == rank
        return is_like and batch == [*range(is_moved, is_moved + len(batch))]

    def _is_reached(self, node: Node) -> bool:
        """Return True if a Transpose stands before nodes through which level 1 moves it to this one."""
        for _ in range(_REPEATS):
            before = self._graph.maker(node)
            if before is None or before.kind not in _MOVED_THROUGH:
                return False
            if before.kind == "Transpose":
                return True
            node = before
        return False

    def take_scales(self, taken: set[Node], passed: set[Node]) -> bool:
        """Take in a scale of either input and of the output; return False if there are none.

        Other nodes have taken some, or products have ``passed`` them before their inputs.
        """
        before = [*self.sides, self.outs[-1]]
        for i, (node, number) in enumerate(self.sides):
            maker = self._graph.maker(node, number)
            if maker and maker not in taken and (j := _scaled(maker)) >= 0 and _shape(maker.inputs[j]):
                self.paths[i].append(maker)
                self.sides[i] = (maker, j)
                self._scale(maker, j)
                passed.add(maker)
        users = self._graph.users(self.outs[-1])
        if len(users) == 1 and not {*users} & taken and not {*users} & passed and _scaled(users[0]) >= 0:
            self.outs.append(users[0])
            self._scale(users[0], _scaled(users[0]))
            taken.add(users[0])
        return before != [*self.sides, self.outs[-1]]

    def _scale(self, node: Node, i: int) -> None:
        number = _item(node.inputs[1 - i])
        self.alpha *= number if node.kind == "Mul" else 1 / number if number else inf


def _products(graph: _Graph) -> Iterator[_Match]:
    """Yield the MatMuls with Transposes and scales, of nodes that are not taken."""
    products = [
        _Product(graph, node)
        for node in graph.nodes
        if _is(node, "MatMul") and node.inputs[0].data_type in ("float16", "float32")
    ]
    taken, before = {*graph.taken}, set[Node]()
    for _ in range(_REPEATS):
        is_grown = False
        for each in products:
            is_grown |= each.take_transposes()
        for each in products:
            is_grown |= each.take_scales(taken, before)
        if not is_grown:
            break
    passed = Counter(node for each in products for path in each.paths for node in path)
    last = {node: each for each in products for path in each.paths for node in path}
    for each in products:
        dropped: list[Node] = []
        for path in each.paths:
            unused = takewhile(lambda node: passed[node] == len(graph.users(node)), path)
            dropped += (node for node in unused if last[node] is each)
        scales = [node for node in dropped if node.kind != "Transpose"]
        to = _before_gemm(graph, each.node)
        if len({*graph.names(each.node)}) == 1 and any(node.kind == "Transpose" for node in dropped):
            to = min(to, (1, 21))
        if any(each.paths) or len(each.outs) > 1:
            others = [node for node in dropped if node not in scales]
            attributes = {"alpha": each.alpha, **{name: int(turn) for name, turn in each.turns.items()}}
            yield _Match("FusedMatMul", [*scales, *each.outs], each.sides, (0, 0), to, others, attributes)


def _scaled(node: Node) -> int:
    """Return the input of a Mul or Div, by its number, whose other is a constant number; -1 for none."""
    if node.kind not in ("Mul", "Div") or len(node.inputs) != len("AB"):
        return -1
    for i in (1,) if node.kind == "Div" else (0, 1):
        if _is_scalar(node.inputs[i], rank=len(_shape(node.inputs[1 - i]) or ())):
            return 1 - i
    return -1


def _before_gemm(graph: _Graph, product: Node) -> Version:
    """Return the last release that does not make a MatMul and the Add behind it one Gemm."""
    add = next(iter(graph.chain(product, "Add")), None)
    if add is None or not _is(product, "MatMul"):
        return _EVER
    left, right = (_shape(value) for value in product.inputs)
    bias = _shape(add.inputs[1 - (graph.maker(add, 1) is product)])
    if left is None or right is None or bias is None or len(right) != 2:
        return _EVER
    if len(left) == 2:
        rows = (1, left[0]) if left[0] is not None else (1,)
        is_added = bias == right[1:] or (len(bias) == 2 and bias[0] in rows and bias[1] == right[1])
        is_added = is_added or (len(bias) == 2 and bias[0] == left[0] and bias[1] == 1)
        return (0, 0) if is_added and None not in bias else _EVER
    is_known = all(isinstance(size, int) for size in (*left, *right))
    return (1, 20) if is_known and bias == right[1:] else _EVER


_PATTERNS: Final = (_layer_norm, _fast_gelu, _quick_gelu, _gelu, _microsoft_gelu)


def note_fusions(nodes: Sequence[Node], uses: Uses, opset: int | None) -> None:
    """Note at the last of the nodes that onnxruntime fuses into which it does, the largest fusion first."""
    if opset is None:
        return
    graph = _Graph(nodes, uses, opset)
    matches = (match for pattern in _PATTERNS for node in graph.nodes for match in pattern(graph, node))
    for match in chain(matches, _products(graph)):
        last = match.parts[-1]
        if all(graph.taken.get(part, match).parts[-1] is last for part in match.parts):
            graph.taken |= dict.fromkeys(match.parts, match)
            for row in _ROWS[match.operator]:
                since, to = max(row.since, match.since), min(row.to, match.to)
                if row.opsets[0] <= opset <= row.opsets[1] and since <= to:
                    last.placed.fusions += (_fusion(match, row, opset, since, to),)


def _fusion(match: _Match, row: _Row, opset: int, since: Version, to: Version) -> Fusion:
    operator = resolved(row.domain, match.operator, 1 if row.domain else opset)
    last = match.parts[-1].placed

    def kernel(release: Version) -> KernelNode:
        kernels = {node: node.placed.kernel for node in (*match.parts, *(node for node, _ in match.inputs))}
        seen = {node: make(release) for node, make in kernels.items() if make}
        return seen[match.parts[-1]]._replace(
            domain=row.domain,
            operator=match.operator,
            since=operator.version,
            inputs=[seen[node].inputs[i] for node, i in match.inputs],
            attributes=match.attributes,
        )

    made = replace(
        last,
        domain=row.domain,
        operator=match.operator,
        version=operator.version,
        inputs=tuple(node.placed.inputs[i] for node, i in match.inputs),
        formals=operator.formals,
        attributes={},
        body=None,
        introduced=operator.introduced,
        kernel=kernel if last.kernel else None,
        fusions=(),
        parts=len(match.parts),
    )
    gone = tuple(node.placed for node in match.dropped)
    return Fusion(made, tuple(node.placed for node in match.parts), row.level, since, to, gone)
