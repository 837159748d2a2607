"""The rules of an operator that has a type together: its findings, its lowest level, and what no rule looks at."""

from __future__ import annotations

from collections.abc import Iterable

from dml_tile.descriptors.operator import OperatorDesc, OperatorFields, tile_of
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.findings import Finding, apply_rules
from dml_tile.rules import tile_findings
from dml_tile.rules.tile import OPERATOR_RULES


def findings(desc: OperatorDesc | None, target: Target) -> Iterable[Finding]:
    """Return the findings of an operator at a target."""
    if desc is not None and isinstance(desc.desc, OperatorFields):
        from dml_tile.rules.operator import other_operator_findings  # not needed for Tile

        return other_operator_findings(desc.desc, target)
    tile = tile_of(desc)
    return apply_rules(OPERATOR_RULES, desc, target) if tile is None else tile_findings.findings(tile, target)


def lowest_level(desc: OperatorDesc | None) -> FeatureLevel | None:
    """Return the lowest feature level from which on an operator passes; None if it does not at the newest."""
    if desc is not None and isinstance(desc.desc, OperatorFields):
        from dml_tile.rules.operator import lowest_level_of_operator

        return lowest_level_of_operator(desc.desc)
    if tile := tile_of(desc):
        return tile_findings.lowest_level(tile)
    return tile_findings.lowest_passing(lambda target: findings(desc, target))


def not_looked_at(desc: OperatorDesc | None) -> tuple[str, ...]:
    """Return the fields of an operator other than Tile that rules do not cover."""
    if desc is None or not isinstance(desc.desc, OperatorFields):
        return ()
    from dml_tile.rules.operator_fields import fields_without_rules

    return fields_without_rules(desc.desc)
