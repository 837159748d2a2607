"""All rules by their ids, and the selection of those whose findings count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from dml_tile.back_ends.back_end import BACK_END_RULES
from dml_tile.dialects.directml import DIALECT_RULES, SPECIFICATION_RULES
from dml_tile.dxdispatch.rules import DXDISPATCH_RULES
from dml_tile.findings import Rule
from dml_tile.lowering.steps import LOWERING_RULES
from dml_tile.rules import binding, device, dispatch, graph
from dml_tile.rules.capture import CAPTURE_RULES
from dml_tile.rules.check import DESCRIPTOR_RULES
from dml_tile.text import did_you_mean, nearest

_RULES: Final[tuple[tuple[Rule[Any], ...], ...]] = (
    DESCRIPTOR_RULES,
    (*SPECIFICATION_RULES.values(), *DIALECT_RULES, *BACK_END_RULES),
    (*DXDISPATCH_RULES, *CAPTURE_RULES, *LOWERING_RULES),
    (*binding.BINDING_COUNT_RULES, *binding.SLOT_RULES, *binding.BIND_POINT_RULES),
    (*binding.RANGE_RULES, *binding.OVERLAP_RULES),
    (*device.CREATION_RULES, *device.FEATURE_RULES, *device.REQUESTED_LEVEL_RULES, *device.REMOVAL_RULES),
    (*device.COMPILATION_RULES, *device.COMPILATION_FLAG_RULES, *device.INITIALIZER_RULES),
    (*graph.GRAPH_CALL_RULES, *graph.GRAPH_RULES, *graph.CONNECTION_RULES),
    (*dispatch.TABLE_RULES, *dispatch.TABLE_USE_RULES, *dispatch.DISPATCH_RULES),
    (*dispatch.EXECUTION_RULES, *dispatch.INITIALIZATION_RULES, *dispatch.PERSISTENCE_RULES),
)

RULES: Final[dict[str, Rule[Any]]] = {rule.id: rule for rules in _RULES for rule in rules}
"""Every rule, by its id."""


def rule_named(rule_id: str) -> Rule[Any]:
    """Return the rule with this id. Raises ValueError, with the nearest ids, for any other."""
    if rule_id not in RULES:
        hint = did_you_mean(rule_id, RULES, "`dml-tile explain` lists all rules", count=3, cutoff=0.4)
        raise ValueError(f"there is no rule {rule_id!r}; {hint}")
    return RULES[rule_id]


@dataclass(frozen=True, slots=True)
class Selection:
    """The rules that are selected, all where none is named, and those that are ignored.

    Each is an id, or the first words of several, such as ``DML-BUFFER``. The longer name wins where a
    rule is both; ``ignore`` wins where they are equal.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def takes(self, rule_id: str) -> bool:
        """Return True if findings of the rule count."""
        selected = _words_that_name(rule_id, self.select) if self.select else 0
        return selected > _words_that_name(rule_id, self.ignore)


def _words_that_name(rule_id: str, choices: Iterable[str]) -> int:
    """Return the number of words of the longest choice that matches the rule's id; -1 if none does."""
    return max((choice.count("-") + 1 for choice in choices if is_named(rule_id, choice)), default=-1)


def is_named(rule_id: str, choice: str) -> bool:
    """Return True if a choice is the rule's id, or its first words."""
    return f"{rule_id}-".startswith(f"{choice}-")


def known_rules(names: Iterable[str]) -> tuple[str, ...]:
    """Return ids, or the first words of ids, of rules. Raises ValueError, with the nearest, for an unknown one."""
    names = tuple(names)
    for words in names:
        if any(is_named(rule_id, words) for rule_id in RULES):
            continue
        beginnings = {
            known.casefold(): known for rule_id in RULES for known in accumulate(rule_id.split("-"), "{}-{}".format)
        }
        near = [beginnings[match] for match in nearest(words.casefold(), beginnings, count=3)]
        hint = f"did you mean {', '.join(near)}?" if near else "`dml-tile explain` lists all rules"
        raise ValueError(f"no rule is named {words!r}; {hint}")
    return names
