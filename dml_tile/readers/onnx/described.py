"""The nodes of an ONNX model that run on DirectML, and what ONNX Runtime's provider creates of each."""

from __future__ import annotations

from collections.abc import Generator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

from dml_tile.back_ends.deployment import Deployment
from dml_tile.back_ends.described_node import DescribedNode
from dml_tile.back_ends.descriptions import described_node
from dml_tile.back_ends.graphs import computed_by, in_graph, of_session, places_computed, without_constants
from dml_tile.back_ends.model_descriptions import described_graphs, may_have_graphs
from dml_tile.back_ends.placement import Placement
from dml_tile.back_ends.placer import place
from dml_tile.findings import Finding, unreadable
from dml_tile.readers.model_names import KnownShapes, ModelFacts
from dml_tile.readers.onnx.file import load
from dml_tile.readers.onnx.sizes import fix, names_in
from dml_tile.readers.onnx.tiles import prepare, scan


def read_descriptions(
    path: Path, known_shapes: KnownShapes, deployment: Deployment, *, as_graphs: bool = False
) -> Generator[DescribedNode | Finding, None, ModelFacts]:
    """Yield what a release's DirectML provider creates of each node that it takes, in the order of the file.

    With ``as_graphs``, the graphs that it compiles come instead of the nodes in them.
    Yields a Finding for what keeps the model from loading. Known shapes, the return value and errors are those of
    ``read_nodes``.
    """
    release = deployment.release
    model = load(path)
    facts = names_in(model.graph, known_shapes)
    sized = deepcopy(model)
    fix(sized.graph, known_shapes)
    models = (model, sized) if sized != model else (model,)
    scanned = [scan(each, path, prepare(each), release) for each in models]
    placed = [place(each.nodes, deployment) for each in scanned]
    yield from (unreadable("", error.text) for error in placed[0].errors if error.placement is Placement.NONE)
    kernels = {(node.place.pointer, node.place.operator): node.kernel for node, _ in placed[-1].nodes}
    nodes = placed[0].nodes
    described = (
        (node, kernels.get((node.place.pointer, node.place.operator)) or node.kernel)
        for node, reason in nodes
        if reason.placement is Placement.DIRECTML
    )
    has_graphs = may_have_graphs(nodes)
    computed = computed_by(nodes)
    kernels_seen = (
        (node, without_constants(of_session(node, kernel, release), places_computed(node, computed)))
        for node, kernel in described
        if kernel
    )
    seen = {node: in_graph(kernel, has_graphs) for node, kernel in kernels_seen}
    if as_graphs:
        results = {scanned[0].graph.values[value.name].edge for value in models[0].graph.output}
        yield from described_graphs(nodes, seen, results)
    else:
        yield from (described_node(node.place, each) for node, each in seen.items())
    return replace(facts, nodes=len(nodes))
