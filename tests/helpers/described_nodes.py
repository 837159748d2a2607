"""Nodes as DirectML's kernels see them: those of onnx's node tests, and random variations of them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
from onnx import ModelProto
from onnx.backend.test.case.node import collect_testcases

from dml_tile.back_ends.deployment import deployed
from dml_tile.back_ends.described_node import DescribedNode
from dml_tile.back_ends.descriptions import OpenDescription, ProviderRefusal, describe
from dml_tile.back_ends.descriptions.node import Input, KernelNode
from dml_tile.back_ends.kernels import releases
from dml_tile.directml.targets import Target
from dml_tile.errors import InputError
from dml_tile.readers.model_names import KnownShapes
from dml_tile.readers.onnx.described import read_descriptions
from dml_tile.readers.onnx.nodes import default_opset
from tests.helpers.described_execution import kernel_of
from tests.helpers.kernel_nodes import kernel_node, operator_descs
from tests.helpers.played_lives import Life

TYPES = ("float32", "float16", "int8", "uint8", "int32", "int64", "uint32")


@cache
def written_nodes() -> list[tuple[str, str]]:
    """The nodes of tests/data/described_nodes.txt, each with the operators that it becomes."""
    path = Path(__file__).parents[1] / "data" / "described_nodes.txt"
    lines = path.read_text("utf-8").splitlines()
    pairs = (line.partition(" =>") for line in lines if not line.startswith("#"))
    return [(text, expected) for text, _, expected in pairs]


class NodeTest(NamedTuple):
    """One of onnx's node tests: its model, and the inputs and outputs of its runs."""

    model: ModelProto
    runs: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float


@cache
def node_tests() -> Mapping[str, NodeTest]:
    """onnx's node tests, by their names."""
    with warnings.catch_warnings(action="ignore"):
        cases = collect_testcases()
    return {
        case.name.removeprefix("test_"): NodeTest(case.model, case.data_sets, case.rtol, case.atol)
        for case in cases
        if case.model is not None and case.data_sets is not None
    }


def described_nodes() -> Iterator[KernelNode]:
    """Yield the written nodes, and the lone nodes of onnx's node tests, of whose inputs all are known."""
    for text, _ in written_nodes():
        yield kernel_node(text)
    for test in node_tests().values():
        graph, opset = test.model.graph, default_opset(test.model.opset_import) or 1
        for sides in test.runs if len(graph.node) == 1 else ():
            pairs = zip((graph.input, graph.output), sides, strict=True)
            values, results = ({v.name: a for v, a in zip(*pair, strict=False)} for pair in pairs)
            if all(isinstance(each, np.ndarray | np.generic) for each in (*values.values(), *results.values())):
                inputs, outputs = ({name: np.asarray(array) for name, array in s.items()} for s in (values, results))
                yield kernel_of(graph.node[0], inputs, {*inputs}, outputs, opset)


def varied(node: KernelNode, rng: Random) -> KernelNode:
    """A node with other sizes, types, integers and numbers of dimensions, and of another release."""
    given = [each for each in (*node.inputs, *node.outputs) if each]
    sizes = {size: rng.choice((1, 2, 3, size, size, size + 1)) for each in given for size in each.shape or ()}
    types = {each.type: each.type if rng.random() < 0.8 else rng.choice(TYPES) for each in given}
    lead = [2] * rng.choice((0, 0, 0, 0, 1, 2))
    is_left_out = [rng.random() < 0.05 for _ in node.inputs]
    inputs = [
        (each and not out and _varied(each, sizes, types, lead)) or None
        for each, out in zip(node.inputs, is_left_out, strict=True)
    ]
    outputs = [each and _varied(each, sizes, types, lead) for each in node.outputs]
    attributes = {name: _shifted(value, rng) for name, value in node.attributes.items()}
    release = rng.choice([*releases()])
    return node._replace(inputs=inputs, outputs=outputs, attributes=attributes, release=release)


def _varied(
    value: Input, sizes: Mapping[int, int], types: Mapping[str | None, str | None], lead: Sequence[int]
) -> Input:
    if value.shape is None:
        return value
    return value._replace(type=types[value.type], shape=(*lead, *(sizes[size] for size in value.shape)))


def _shifted(value: Any, rng: Random) -> Any:
    if isinstance(value, list):
        return [_shifted(each, rng) for each in value]
    return value + rng.choice((-1, 1)) if isinstance(value, int) and rng.random() < 0.1 else value


def distinct_descs(nodes: Iterable[KernelNode]) -> list[dict[str, Any]]:
    """The distinct descriptors of the operators that the provider creates of nodes."""
    found: dict[str, None] = {}
    for node in nodes:
        with suppress(ProviderRefusal, OpenDescription):
            found |= dict.fromkeys(desc.model_dump_json(by_alias=True) for desc in operator_descs(describe(node)))
    return [*map(json.loads, found)]


def static_partitions() -> Iterator[dict[str, Any]]:
    """Yield the graphs that the provider compiles of onnx's node tests: those of several nodes are models.

    They are those of 1.16, which has no nodes of type CONSTANT: the library for Linux compiles none.
    """
    deployment = deployed(Target.parse("windows-11-24h2"), "1.16")
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        for test in node_tests().values():
            path.write_bytes(test.model.SerializeToString())
            with suppress(InputError):
                parts = read_descriptions(path, KnownShapes(), deployment, as_graphs=True)
                yield from (part.graph for part in parts if isinstance(part, DescribedNode) and part.graph)


_EDGES: Final = {
    "InputEdges": ("GraphInputIndex", "ToNodeIndex", "ToNodeInputIndex"),
    "OutputEdges": ("FromNodeIndex", "FromNodeOutputIndex", "GraphOutputIndex"),
    "IntermediateEdges": ("FromNodeIndex", "FromNodeOutputIndex", "ToNodeIndex", "ToNodeInputIndex"),
}


def compiling(graph: dict[str, Any]) -> Life:
    """The life that compiles a graph."""
    edges = {array: [[edge[name] for name in names] for edge in graph[array]] for array, names in _EDGES.items()}
    drawn = {**graph, **edges, "Nodes": [[1, node["Operator"]] for node in graph["Nodes"]]}
    return {"asks": False, "calls": [["CompileGraph", "d0", json.loads(json.dumps(drawn)), 0]]}
