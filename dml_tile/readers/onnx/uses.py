"""The uses of a graph's values, as they are when onnxruntime has removed nodes."""

from __future__ import annotations

from collections import Counter
from typing import Final

from onnx import GraphProto

from dml_tile.back_ends.kernels import Version
from dml_tile.readers.onnx.file import graphs
from dml_tile.readers.onnx.nodes import Node

ANY: Final = (1, 0)
"""Before all releases that were read."""


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
