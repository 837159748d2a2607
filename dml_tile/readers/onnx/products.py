"""The matrix products that onnxruntime fuses with the Transposes of their inputs and scales, at level 2.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/matmul_transpose_fusion.cc and matmul_scale_fusion.cc
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from math import inf
from typing import Final

from dml_tile.readers.onnx.matches import Graph, Match, before_gemm, early_shape, is_kind, is_scalar, item
from dml_tile.readers.onnx.nodes import Node
from dml_tile.readers.onnx.values import Value

_REPEATS: Final = 10
"""The number of times that onnxruntime repeats all fusions, at most."""


_MOVED_THROUGH: Final = frozenset({"Cast", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"})


class _Product:
    """A MatMul with the Transposes and scales that it takes in: ``sides`` are its inputs beyond them."""

    def __init__(self, graph: Graph, node: Node) -> None:
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
                given = [*maker.attributes["perm"].ints] or [*range(len(early_shape(maker.inputs[0]) or ()))][::-1]
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
        is_like = not is_moved or len(early_shape(other) or ()) == rank
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
            if maker and maker not in taken and (j := _scaled(maker)) >= 0 and early_shape(maker.inputs[j]):
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
        number = item(node.inputs[1 - i])
        self.alpha *= number if node.kind == "Mul" else 1 / number if number else inf


def products(graph: Graph) -> Iterator[Match]:
    """Yield the MatMuls with Transposes and scales, of nodes that are not taken."""
    found = [
        _Product(graph, node)
        for node in graph.nodes
        if is_kind(node, "MatMul") and node.inputs[0].data_type in ("float16", "float32")
    ]
    taken, before = {*graph.taken}, set[Node]()
    for _ in range(_REPEATS):
        is_grown = False
        for each in found:
            is_grown |= each.take_transposes()
        for each in found:
            is_grown |= each.take_scales(taken, before)
        if not is_grown:
            break
    passed = Counter(node for each in found for path in each.paths for node in path)
    last = {node: each for each in found for path in each.paths for node in path}
    for each in found:
        dropped: list[Node] = []
        for path in each.paths:
            unused = takewhile(lambda node: passed[node] == len(graph.users(node)), path)
            dropped += (node for node in unused if last[node] is each)
        scales = [node for node in dropped if node.kind != "Transpose"]
        to = before_gemm(graph, each.node)
        if len({*graph.names(each.node)}) == 1 and any(node.kind == "Transpose" for node in dropped):
            to = min(to, (1, 21))
        if any(each.paths) or len(each.outs) > 1:
            others = [node for node in dropped if node not in scales]
            attributes = {"alpha": each.alpha, **{name: int(turn) for name, turn in each.turns.items()}}
            yield Match("FusedMatMul", [*scales, *each.outs], each.sides, (0, 0), to, others, attributes)


def _scaled(node: Node) -> int:
    """Return the input of a Mul or Div, by its number, whose other is a constant number; -1 for none."""
    if node.kind not in ("Mul", "Div") or len(node.inputs) != len("AB"):
        return -1
    for i in (1,) if node.kind == "Div" else (0, 1):
        if is_scalar(node.inputs[i], rank=len(early_shape(node.inputs[1 - i]) or ())):
            return 1 - i
    return -1
