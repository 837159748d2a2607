"""The opset of onnx's own operators at which none of a model's nodes is kept from DirectML by its version.

Kernels of DirectML take single versions of an operator, so the ways out of several nodes may exclude each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from dml_tile.back_ends.deployment import Deployment
from dml_tile.back_ends.kernels import Version, directml_kernels, limits_at
from dml_tile.back_ends.placement import LoadedModel, ModelNode, OpsetAdvice, Placement, Reason

_FIRST: Final = 7
"""The oldest opset that is looked at: the oldest of which ONNX Runtime says that it takes models."""
_VERSION: Final = "ORT-CPU-version"

PlacedAt = Callable[[LoadedModel, Deployment], Sequence[tuple[ModelNode, Reason]]]
"""Returns the placements of a model's nodes."""


def opset_advice(
    model: LoadedModel, placed: Sequence[tuple[ModelNode, Reason]], deployment: Deployment, place: PlacedAt
) -> OpsetAdvice | None:
    """Return the opset that serves all nodes which their versions keep from DirectML, and how many are there then.

    None if fewer than two kinds of nodes have a way out, if no opset serves all, has each operator and fits its
    attributes, or if no more nodes are on DirectML then. The newest is taken; the operators are the same.
    """
    kinds = {(reason.operator, reason) for _, reason in placed if reason.rule == _VERSION and reason.suggestion}
    opset = _opset_of_all(model, deployment.release) if len(kinds) > 1 else None
    if opset is None:
        return None
    exported = replace(model, nodes=_at(model.nodes, opset), opsets={**model.opsets, "": opset})
    there = [reason.placement for _, reason in place(exported, deployment)]
    now, then = (
        sum(placement is Placement.DIRECTML for placement in each)
        for each in ((reason.placement for _, reason in placed), there)
    )
    return OpsetAdvice(opset, then, len(there) - there.count(Placement.GONE)) if then > now else None


def _opset_of_all(model: LoadedModel, release: Version) -> int | None:
    """Return the newest opset that a release loads, at which it has a kernel for each node of which it has kernels."""
    kernels, nodes = directml_kernels(release), [*_each(model.nodes)]
    registered = {name: {kernel.since for kernel in each} for (domain, name), each in kernels.items() if not domain}
    operators = {node.place.operator: node.version_at for node in nodes}
    for opset in range(limits_at(release).opsets[""], _FIRST - 1, -1):
        versions = {name: version_at(opset) for name, version_at in operators.items()}
        has_kernels = all(version and version in registered.get(name, {version}) for name, version in versions.items())
        if has_kernels and all(_fits(node, versions[node.place.operator]) for node in nodes):
            return opset
    return None


def _fits(node: ModelNode, version: int) -> bool:
    return version >= node.place.version or node.fits(version)


def _each(nodes: Sequence[ModelNode]) -> Iterator[ModelNode]:
    """Yield the nodes of onnx's own operators that run, at any depth."""
    for node in nodes:
        if node.gone is None:
            if not node.place.domain:
                yield node
            for graph in node.graphs:
                yield from _each(graph)


def _at(nodes: Sequence[ModelNode], opset: int) -> list[ModelNode]:
    """Return the nodes of a graph at an opset, with the fusions that are made of operators which it has."""
    found = {node: _node_at(node, opset) for node in nodes}
    for node, made in found.items():
        made.fusions = tuple(
            fusion._replace(
                parts=tuple(found[part] for part in fusion.parts),
                dropped=tuple(found[each] for each in fusion.dropped),
            )
            for fusion in node.fusions
            if fusion.node.place.domain or fusion.node.introduced <= opset
        )
    return [*found.values()]


def _node_at(node: ModelNode, opset: int) -> ModelNode:
    version = 0 if node.place.domain else node.version_at(opset)
    place = node.place._replace(version=version or node.place.version)
    return replace(node, place=place, graphs=tuple(_at(graph, opset) for graph in node.graphs), fusions=())
