"""All rules by their ids: those of descriptors, and of all else that findings are about."""

from __future__ import annotations

from typing import Any, Final

from dml_tile.back_ends.rules import BACK_END_RULES
from dml_tile.dialects.rules import DIALECT_RULES, SPECIFICATION_RULES
from dml_tile.dxdispatch.rules import DXDISPATCH_RULES
from dml_tile.findings import Rule
from dml_tile.lowering.rules import LOWERING_RULES
from dml_tile.rules.binding import BIND_POINT_RULES, BINDING_COUNT_RULES, BINDING_PAIR_RULES, RANGE_RULES, SLOT_RULES
from dml_tile.rules.capture import CAPTURE_RULES
from dml_tile.rules.check import DESCRIPTOR_RULES
from dml_tile.rules.device import COMPILATION_RULES, CREATION_RULES, FEATURE_RULES, INITIALIZER_RULES, REMOVAL_RULES
from dml_tile.rules.dispatch import (
    DISPATCH_RULES,
    INITIALIZATION_RULES,
    PERSISTENCE_RULES,
    TABLE_RULES,
    TABLE_USE_RULES,
)
from dml_tile.text import did_you_mean

_RULES: Final[tuple[tuple[Rule[Any], ...], ...]] = (
    DESCRIPTOR_RULES,
    (*SPECIFICATION_RULES.values(), *DIALECT_RULES, *BACK_END_RULES),
    (*DXDISPATCH_RULES, *CAPTURE_RULES, *LOWERING_RULES),
    (*BINDING_COUNT_RULES, *SLOT_RULES, *BIND_POINT_RULES, *RANGE_RULES, *BINDING_PAIR_RULES),
    (*CREATION_RULES, *FEATURE_RULES, *REMOVAL_RULES, *COMPILATION_RULES, *INITIALIZER_RULES),
    (*TABLE_RULES, *TABLE_USE_RULES, *DISPATCH_RULES, *INITIALIZATION_RULES, *PERSISTENCE_RULES),
)

RULES: Final[dict[str, Rule[Any]]] = {rule.id: rule for rules in _RULES for rule in rules}
"""Every rule, by its id."""


def rule_named(rule_id: str) -> Rule[Any]:
    """Return the rule with this id. Raises ValueError, with the nearest ids, for any other."""
    if rule_id not in RULES:
        hint = did_you_mean(rule_id, RULES, "`dml-tile explain` lists all rules", count=3, cutoff=0.4)
        raise ValueError(f"there is no rule {rule_id!r}; {hint}")
    return RULES[rule_id]
