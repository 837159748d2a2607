"""Checks whether DirectML would accept a descriptor at a target, and why not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby, takewhile
from operator import mul
from types import NoneType
from typing import Any, Final

from dml_tile.descriptors.graph import UNKNOWN_OPERATOR, CapturedGraph, Descriptor, GraphDesc
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields, tile_of
from dml_tile.descriptors.tile import OPERATOR_TYPE, BufferTensorDesc, TileOperatorDesc
from dml_tile.directml.enums import (
    OWNED_BY_DML,
    FeatureLevel,
    TensorFlags,
)
from dml_tile.directml.operators import operator_named
from dml_tile.directml.targets import Target, tile_support
from dml_tile.errors import require_instance
from dml_tile.findings import BASES, Against, Basis, Finding, Rule, Severity, Violation, apply_rules, bases_of
from dml_tile.rules.graph import (
    CONNECTION_RULES,
    GRAPH_CALL_RULES,
    GRAPH_RULES,
    GraphView,
    edges_without_rules,
    entries_of,
    graph_view,
)
from dml_tile.rules.tensor import (
    BUFFER_RULES,
    TENSOR_RULES,
    Operand,
    ordinary_buffer,
    output_elements_are_apart,
    total_is_large_enough,
    view_of,
)
from dml_tile.rules.tile import (
    INPUT_OUTPUT_RULES,
    MAX_TEXELS,
    OPERATOR_RULES,
    REPEATS_RULES,
    TILE_BUFFER_RULES,
    TileView,
    operator_is_checked,
    output_sizes_are_the_products,
)

DESCRIPTOR_RULES: Final[tuple[Rule[Any], ...]] = (
    *TENSOR_RULES,
    *BUFFER_RULES,
    *TILE_BUFFER_RULES,
    *INPUT_OUTPUT_RULES,
    *REPEATS_RULES,
    *OPERATOR_RULES,
)
"""The rules of tiles, in the order of a tensor's findings."""


RULES_OF_EXECUTION: Final = frozenset(
    rule.id for rule in (output_elements_are_apart, total_is_large_enough, output_sizes_are_the_products)
)
"""The rules that hold for execution even if the runtime, which wraps at 32 bits, accepts the descriptor."""


def findings_of(desc: Descriptor | None, target: Target, against: Against = "both") -> tuple[Finding, ...]:
    """Return all findings of a descriptor at a target, in the order of ``dml_tile.check``; raises as it does."""
    bases = bases_of(against)
    found = _findings(desc, target)
    return tuple(found if bases == BASES["both"] else (finding for finding in found if finding.basis & bases))


def findings_of_null_graph(target: Target, against: Against = "both") -> tuple[Finding, ...]:
    """Return the findings of CompileGraph for a null DML_GRAPH_DESC."""
    found = apply_rules(GRAPH_CALL_RULES, None, target)
    return tuple(finding for finding in found if finding.basis & bases_of(against))


def refusals_of(desc: Descriptor | None, target: Target, against: Against = "both") -> tuple[Finding, ...]:
    """Return the findings of a descriptor that prevent creating it at a target; raises as ``dml_tile.check`` does."""
    return tuple(filter(blocks_creation, findings_of(desc, target, against)))


def why_never_executed(desc: TileOperatorDesc, target: Target) -> tuple[Finding, ...]:
    """Return the findings that prevent execution even if the runtime accepts the descriptor."""
    documented = findings_of(desc, target, "documentation")
    return tuple(finding for finding in documented if finding.rule in RULES_OF_EXECUTION)


def lowest_level(desc: Descriptor | None) -> FeatureLevel | None:
    """Return the lowest feature level from which on the descriptor passes, against both; None if it does not at 6_4."""
    if isinstance(desc, OperatorDesc) and isinstance(desc.desc, OperatorFields):
        from dml_tile.rules.operator import lowest_level_of_operator

        return lowest_level_of_operator(desc.desc)
    if not isinstance(desc, GraphDesc):
        tile = tile_of(desc)
        is_ordinary = isinstance(tile, TileOperatorDesc) and is_ordinary_tile(tile, _NEWEST)
        if tile and is_ordinary and (source := view_of(Operand("", tile.input_tensor))):
            return _lowest_level_of(source.desc.data_type, source.desc.dimension_count)
        return next((level for level in DISTINCT_LEVELS if _passes(_findings(desc, _TARGETS[level]))), None)
    view = graph_view(desc)
    passing = takewhile(lambda level: _passes(_graph_findings(view, _TARGETS[level])), reversed(FeatureLevel))
    return min(passing, default=None)  # a higher level may refuse an operator that a lower level takes


def _passes(findings: Iterable[Finding]) -> bool:
    return not any(map(blocks_creation, findings))


def not_checked(operator: str) -> Finding:
    """Return the finding for an operator of which only the C name is known."""
    return operator_is_checked.finding(
        Violation("Type", f"the fields of {operator} are not given, or not read; it is not checked")
    )


def not_executed(operator: str) -> Finding:
    """Return the finding for another operator than Tile, or a shader or a model, in a DxDispatch model that is run."""
    what = "is checked, not executed" if operator_named(operator) else "is not executed"
    name = operator.removeprefix(OPERATOR_TYPE.prefix)
    return operator_is_checked.finding(
        Violation("Type", f"{name} {what}: run executes Tile operators (DxDispatch executes the others)")
    )


def not_a_tile(operator: str) -> Finding:
    """Return the finding for another operator than Tile, where one is executed or lowered."""
    return operator_is_checked.finding(
        Violation("Type", f"{operator} is not a tile; of operators, Tile alone is executed and lowered")
    )


_TARGETS: Final = {level: Target(level) for level in FeatureLevel}
_LEVELS_CHECKED_ALIKE: Final = groupby(
    FeatureLevel, lambda at: (tile_support(at), _TARGETS[at].level.runtime.wraps_extents)
)
DISTINCT_LEVELS: Final = tuple(next(levels) for _, levels in _LEVELS_CHECKED_ALIKE)
"""The levels at which a tile can begin or cease to pass."""

_NEWEST: Final = _TARGETS[max(FeatureLevel)]


@cache
def _lowest_level_of(data_type: int, dimension_count: int) -> FeatureLevel | None:
    """Return the lowest level whose row of Tile takes a tile that breaks no rule at the newest level."""
    rows = ((level, _TARGETS[level].tile_support) for level in DISTINCT_LEVELS)
    takes = (level for level, row in rows if data_type in row.data_types and dimension_count in row.dimension_counts)
    return next(takes, None)


_NO_FLAGS: Final = int(TensorFlags.NONE)


def not_looked_at(desc: Descriptor | None) -> tuple[str, ...]:
    """Return what rules do not cover: fields of an operator other than Tile, or those and edges of a graph."""
    if isinstance(desc, GraphDesc):
        nodes = [(i, node.operator) for i, node in enumerate(entries_of(desc, "nodes")) if node is not None]
        if isinstance(desc, CapturedGraph):
            fields = [*_operators_elsewhere([(i, operator) for i, operator in nodes if operator is not None])]
        else:
            fields = [f"Nodes[{i}].Operator.{field}" for i, operator in nodes for field in not_looked_at(operator)]
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


def blocks_creation(finding: Finding) -> bool:
    """Return True if a finding prevents creating an operator or compiling a graph here."""
    return finding.severity > Severity.NOTE or finding.rule == operator_is_checked.id


def _findings(desc: Descriptor | None, target: Target) -> Iterable[Finding]:
    if not isinstance(desc, TileOperatorDesc):
        if isinstance(desc, GraphDesc):
            return _graph_findings(graph_view(desc), target)
        require_instance(desc, TileOperatorDesc, OperatorDesc, NoneType)
        if isinstance(desc, OperatorDesc) and isinstance(desc.desc, OperatorFields):
            from dml_tile.rules.operator import other_operator_findings  # not needed for Tile

            return other_operator_findings(desc.desc, target)
        tile = tile_of(desc)
        if tile is None:
            return apply_rules(OPERATOR_RULES, desc, target)
        desc = tile
    return () if is_ordinary_tile(desc, target) else _found_by_rules(desc, target)


def _graph_findings(view: GraphView, target: Target) -> Iterator[Finding]:
    graph = view.graph
    yield from apply_rules(GRAPH_CALL_RULES, graph, target)
    refused = set()
    for i, (node, operator) in enumerate(zip(entries_of(graph, "nodes"), view.operators, strict=True)):
        if operator is None:
            continue
        if not isinstance(graph, CapturedGraph) or target not in operator.refused:
            found = tuple(_findings(node.operator, target))
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


def _found_by_rules(tile: TileOperatorDesc, target: Target) -> Iterator[Finding]:
    """Yield the findings of all rules of tiles."""
    operands = Operand("InputTensor", tile.input_tensor), Operand("OutputTensor", tile.output_tensor, is_output=True)
    whole = TileView(tile, view_of(operands[0]), view_of(operands[1]))
    for operand, view in zip(operands, (whole.input, whole.output), strict=True):
        yield from apply_rules(TENSOR_RULES, operand, target)
        if view is not None:
            yield from apply_rules(BUFFER_RULES, view, target)
            yield from apply_rules(TILE_BUFFER_RULES, view, target)
    yield from apply_rules(INPUT_OUTPUT_RULES, whole, target)
    yield from apply_rules(REPEATS_RULES, whole, target)


def is_ordinary_tile(tile: TileOperatorDesc, target: Target) -> bool:
    """Return True for a common packed tile, which breaks no rule (a property test shows it)."""
    source = ordinary_buffer(tile.input_tensor, OWNED_BY_DML)
    destination = ordinary_buffer(tile.output_tensor, _NO_FLAGS)
    if source is None or destination is None:
        return False
    if source.total_tensor_size_in_bytes > MAX_TEXELS or destination.total_tensor_size_in_bytes > MAX_TEXELS:
        return False
    return _is_supported(source, target) and _fits(tile, source, destination)  # so the output is supported too


def _is_supported(buffer: BufferTensorDesc, target: Target) -> bool:
    """Return True if the target's row and adapter support a tensor of Tile."""
    support = target.tile_support
    return (
        buffer.data_type in support.data_types
        and buffer.dimension_count in support.dimension_counts
        and target.typed_uav_loads
    )


def _fits(tile: TileOperatorDesc, source: BufferTensorDesc, destination: BufferTensorDesc) -> bool:
    """Return True if each output size is the input's times the repeat of its dimension."""
    repeats = tile.repeats
    return (
        repeats is not None
        and 0 not in repeats
        and source.data_type == destination.data_type
        and source.dimension_count == destination.dimension_count == tile.repeats_count == len(repeats)
        and tuple(map(mul, source.sizes or (), repeats)) == destination.sizes
    )
