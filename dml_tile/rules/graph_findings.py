"""The rules of a graph and of its operators together: findings, the lowest level, and what no rule looks at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dml_tile.descriptors.graph import UNKNOWN_OPERATOR, CapturedGraph, GraphDesc
from dml_tile.descriptors.operator import OperatorDesc, tile_of
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.errors import require_instance
from dml_tile.findings import BASES, Basis, Finding, Severity, apply_rules
from dml_tile.rules import rules_of
from dml_tile.rules.graph import (
    CONNECTION_RULES,
    GRAPH_CALL_RULES,
    GRAPH_RULES,
    GraphView,
    edges_without_rules,
    entries_of,
    graph_view,
)
from dml_tile.rules.tile_findings import lowest_passing


def findings(graph: GraphDesc, target: Target) -> Iterator[Finding]:
    """Yield the findings of a graph at a target. Raises TypeError for other objects."""
    return _findings(_view_of(graph), target)


def lowest_level(graph: GraphDesc) -> FeatureLevel | None:
    """Return the lowest feature level from which on a graph passes; None if it does not at the newest."""
    view = _view_of(graph)
    return lowest_passing(lambda target: _findings(view, target), FeatureLevel)


def _view_of(graph: GraphDesc) -> GraphView:
    if not isinstance(graph, GraphDesc):
        require_instance(graph, TileOperatorDesc, OperatorDesc, GraphDesc)
    return graph_view(graph)


def not_looked_at(graph: GraphDesc) -> tuple[str, ...]:
    """Return the fields of a graph's operators, unless they have lines of their own, and the edges, that rules do not
    cover.
    """
    nodes = [(i, node.operator) for i, node in enumerate(entries_of(graph, "nodes")) if node is not None]
    if isinstance(graph, CapturedGraph):
        unknown = [i for i, operator in nodes if operator is UNKNOWN_OPERATOR]
        more = f" and {len(unknown) - 1} more, which are" if len(unknown) > 1 else ", which is"
        fields = [f"Nodes[{unknown[0]}].Operator{more} not known"] if unknown else []
    else:
        chosen = ((i, *rules_of(operator)) for i, operator in nodes)
        unseen = [(i, module.not_looked_at(subject)) for i, module, subject in chosen]
        fields = [f"Nodes[{i}].Operator.{field}" for i, names in unseen for field in names]
    has_others = any(not tile_of(operator) for _, operator in nodes)
    return (*fields, *(edges_without_rules(graph_view(graph)) if has_others else ()))


def _findings(view: GraphView, target: Target) -> Iterator[Finding]:
    graph = view.graph
    yield from apply_rules(GRAPH_CALL_RULES, graph, target)
    refused = set()
    for i, (node, operator) in enumerate(zip(entries_of(graph, "nodes"), view.operators, strict=True)):
        if node is None or node.operator is None:
            continue
        if not isinstance(graph, CapturedGraph) or target not in operator.refused:
            module, subject = rules_of(node.operator)
            found = tuple(module.findings(subject, target))
            operator.refused[target] = any(
                each.basis & BASES["runtime"] and each.severity is Severity.ERROR for each in found
            )
            for finding in found if not isinstance(graph, CapturedGraph) else ():
                yield finding.within(f"Nodes[{i}].Operator")
        if operator.refused[target]:
            refused.add(i)
    of_graph = apply_rules((*GRAPH_RULES, *CONNECTION_RULES), view._replace(refused=refused), target)
    if target.level.tiles_are_measured:
        yield from of_graph
    else:
        yield from (replace(each, basis=each.basis & ~Basis.RUNTIME | Basis.INFERRED) for each in of_graph)
