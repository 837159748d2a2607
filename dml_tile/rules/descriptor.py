"""Checks whether DirectML would accept a descriptor at a target, and why not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import FeatureLevel, OperatorType
from dml_tile.directml.targets import Target
from dml_tile.findings import BASES, MASK, SIZES, Against, Finding, Rule, Severity, Violation, apply_rules, bases_of
from dml_tile.rules import DescriptorRules, rules_of, tile_findings
from dml_tile.rules.tensor import BUFFER_RULES, TENSOR_RULES, output_elements_are_apart, total_is_large_enough
from dml_tile.rules.tile import (
    INPUT_OUTPUT_RULES,
    OPERATOR_RULES,
    REPEATS_RULES,
    TILE_BUFFER_RULES,
    operator_is_checked,
    output_sizes_are_the_products,
)
from dml_tile.rules.tile_findings import blocks_creation

if TYPE_CHECKING:
    from dml_tile.descriptors.graph import Descriptor

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
) | {SIZES}
"""The rules that hold for execution even if the runtime, which wraps at 32 bits, accepts the descriptor."""


def findings_of(desc: Descriptor | None, target: Target, against: Against = "both") -> tuple[Finding, ...]:
    """Return all findings of a descriptor at a target, in the order of ``dml_tile.check``; raises as it does.

    The known departures of what DirectML takes come last.
    """
    found = _findings_by_rules(desc, target, against)
    is_tile = isinstance(desc, TileOperatorDesc) or getattr(desc, "type", None) == OperatorType.TILE
    if desc is None or is_tile or any(each.severity is Severity.ERROR for each in found):
        return found
    from dml_tile.rules.known import known_departures  # a tile has none

    return (*found, *known_departures(desc, target))


def _findings_by_rules(desc: Descriptor | None, target: Target, against: Against) -> tuple[Finding, ...]:
    bases = bases_of(against)
    module, subject = _rules_of(desc)
    found = tuple(module.findings(subject, target))
    if bases != BASES["both"]:
        found = tuple(finding for finding in found if finding.basis & bases)
    if desc is None or not any(each.edits for finding in found for each in finding.tries):
        return found
    from dml_tile.rules.edits import offered

    def check(edited: Any) -> Iterator[Finding]:
        return (finding for finding in module.findings(_rules_of(edited)[1], target) if finding.basis & bases)

    return offered(desc, found, check)


def findings_of_null_graph(target: Target, against: Against = "both") -> tuple[Finding, ...]:
    """Return the findings of CompileGraph for a null DML_GRAPH_DESC."""
    from dml_tile.rules.graph import GRAPH_CALL_RULES

    found = apply_rules(GRAPH_CALL_RULES, None, target)
    return tuple(finding for finding in found if finding.basis & bases_of(against))


def created_anyway(finding: Finding) -> bool:
    """Return True for a finding that CompileOperator has, and CreateOperator does not."""
    return finding.rule == MASK


def refusals_of(desc: Descriptor | None, target: Target, against: Against = "both") -> tuple[Finding, ...]:
    """Return the findings of a descriptor that prevent creating it at a target; raises as ``dml_tile.check`` does."""
    return tuple(filter(blocks_creation, _findings_by_rules(desc, target, against)))


def why_never_executed(desc: Descriptor, target: Target) -> tuple[Finding, ...]:
    """Return the findings that prevent execution even if the runtime accepts the descriptor."""
    documented = _findings_by_rules(desc, target, "documentation")
    return tuple(finding for finding in documented if finding.rule in RULES_OF_EXECUTION)


def lowest_level(desc: Descriptor | None) -> FeatureLevel | None:
    """Return the lowest feature level from which on the descriptor passes, against both; None if it does not at 6_4."""
    module, subject = _rules_of(desc)
    return module.lowest_level(subject)


def not_looked_at(desc: Descriptor | None) -> tuple[str, ...]:
    """Return what rules do not cover: fields of an operator other than Tile, or those and edges of a graph."""
    module, subject = _rules_of(desc)
    return module.not_looked_at(subject)


def not_checked(operator: str) -> Finding:
    """Return the finding for an operator of which only the C name is known."""
    message = f"the fields of {operator} are not given, or not read; it is not checked"
    return operator_is_checked.finding(Violation("Type", message))


def not_executed(kind: str, what: str) -> Finding:
    """Return the finding for a shader or a model, in a DxDispatch model that is run; ``what`` says which."""
    message = f"{what or f'{kind} is no operator of DirectML'}: run executes DirectML's operators"
    return operator_is_checked.finding(Violation("Type", message))


def not_a_tile(operator: str) -> Finding:
    """Return the finding for another operator than Tile, where one is lowered."""
    message = f"{operator} is not Tile; only Tile can be lowered"
    return operator_is_checked.finding(Violation("Type", message))


def _rules_of(desc: Descriptor | None) -> tuple[DescriptorRules, Any]:
    """Return the rules of a descriptor, and what they take."""
    if isinstance(desc, TileOperatorDesc):
        return tile_findings, desc
    from dml_tile.descriptors.operator import OperatorDesc  # most tiles are bare

    if desc is None or isinstance(desc, OperatorDesc):
        return rules_of(desc)
    from dml_tile.rules import graph_findings

    return graph_findings, desc
