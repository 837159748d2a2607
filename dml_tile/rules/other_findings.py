"""The rules of graphs and of operators with a type together: findings, lowest levels, and what no rule looks at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from types import NoneType

from dml_tile.descriptors.graph import UNKNOWN_OPERATOR, CapturedGraph, GraphDesc
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields, tile_of
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.errors import require_instance
from dml_tile.findings import BASES, Basis, Finding, apply_rules
from dml_tile.rules.graph import (
    CONNECTION_RULES,
    GRAPH_CALL_RULES,
    GRAPH_RULES,
    GraphView,
    edges_without_rules,
    entries_of,
    graph_view,
)
from dml_tile.rules.tile import OPERATOR_RULES
from dml_tile.rules.tile_findings import DISTINCT_LEVELS, TARGETS, findings_of_tile, lowest_level_of_tile, passes


def findings_of_other(desc: OperatorDesc | GraphDesc | None, target: Target) -> Iterable[Finding]:
    """Return the findings of a descriptor at a target, also of a tile under its type. Raises TypeError."""
    if isinstance(desc, GraphDesc):
        return _graph_findings(graph_view(desc), target)
    require_instance(desc, TileOperatorDesc, OperatorDesc, NoneType)
    if isinstance(desc, OperatorDesc) and isinstance(desc.desc, OperatorFields):
        from dml_tile.rules.operator import other_operator_findings  # not needed for Tile

        return other_operator_findings(desc.desc, target)
    tile = tile_of(desc)
    return apply_rules(OPERATOR_RULES, desc, target) if tile is None else findings_of_tile(tile, target)


def lowest_level_of_other(desc: OperatorDesc | GraphDesc | None) -> FeatureLevel | None:
    """Return the lowest feature level from which on a descriptor passes; None if it does not at the newest."""
    if isinstance(desc, GraphDesc):
        view = graph_view(desc)
        passing = takewhile(lambda level: passes(_graph_findings(view, TARGETS[level])), reversed(FeatureLevel))
        return min(passing, default=None)  # a higher level may refuse an operator that a lower level takes
    if isinstance(desc, OperatorDesc) and isinstance(desc.desc, OperatorFields):
        from dml_tile.rules.operator import lowest_level_of_operator

        return lowest_level_of_operator(desc.desc)
    if isinstance(tile := tile_of(desc), TileOperatorDesc):
        return lowest_level_of_tile(tile)
    return next((level for level in DISTINCT_LEVELS if passes(findings_of_other(desc, TARGETS[level]))), None)


def uncovered_by_rules(desc: OperatorDesc | GraphDesc | None) -> tuple[str, ...]:
    """Return what rules do not cover: fields of an operator other than Tile, or those and edges of a graph."""
    if isinstance(desc, GraphDesc):
        nodes = [(i, node.operator) for i, node in enumerate(entries_of(desc, "nodes")) if node is not None]
        if isinstance(desc, CapturedGraph):
            fields = [*_operators_elsewhere([(i, operator) for i, operator in nodes if operator is not None])]
        else:
            fields = [f"Nodes[{i}].Operator.{field}" for i, operator in nodes for field in uncovered_by_rules(operator)]
        has_others = any(not tile_of(operator) for _, operator in nodes)
        return (*fields, *(edges_without_rules(graph_view(desc)) if has_others else ()))
    if isinstance(desc, OperatorDesc) and isinstance(desc.desc, OperatorFields):
        from dml_tile.rules.operator_fields import fields_without_rules

        return fields_without_rules(desc.desc)
    return ()


def _operators_elsewhere(nodes: Sequence[tuple[int, OperatorDesc]]) -> Iterator[str]:
    """Yield where the operators of a captured graph's nodes are described, if anywhere."""
    unknown = [i for i, operator in nodes if operator is UNKNOWN_OPERATOR]
    if len(unknown) < len(nodes):
        yield "the operators of its nodes, which have lines of their own"
    if unknown:
        more = f" and {len(unknown) - 1} more, which are" if len(unknown) > 1 else ", which is"
        yield f"Nodes[{unknown[0]}].Operator{more} not known"


def _graph_findings(view: GraphView, target: Target) -> Iterator[Finding]:
    graph = view.graph
    yield from apply_rules(GRAPH_CALL_RULES, graph, target)
    refused = set()
    for i, (node, operator) in enumerate(zip(entries_of(graph, "nodes"), view.operators, strict=True)):
        if operator is None:
            continue
        if not isinstance(graph, CapturedGraph) or target not in operator.refused:
            found = tuple(findings_of_other(node.operator, target))
            operator.refused[target] = any(finding.basis & BASES["runtime"] for finding in found)
            for finding in found if not isinstance(graph, CapturedGraph) else ():
                yield replace(finding, path=f"Nodes[{i}].Operator.{finding.path}".rstrip("."))
        if operator.refused[target]:
            refused.add(i)
    of_graph = apply_rules((*GRAPH_RULES, *CONNECTION_RULES), view._replace(refused=refused), target)
    if target.level.tiles_are_measured:
        yield from of_graph
    else:
        yield from (replace(each, basis=each.basis & ~Basis.RUNTIME | Basis.INFERRED) for each in of_graph)
