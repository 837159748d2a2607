"""All rules and notices by their ids, and the selection of rules whose findings count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from dml_tile.back_ends.back_end import BACK_END_RULES
from dml_tile.dialects.directml import DIALECT_RULES, SPECIFICATION_RULES
from dml_tile.directml import pages
from dml_tile.dxdispatch.rules import DXDISPATCH_RULES
from dml_tile.findings import Basis, Rule, Severity
from dml_tile.lowering.steps import LOWERING_RULES
from dml_tile.rules import binding, device, dispatch, graph
from dml_tile.rules.capture import CAPTURE_RULES
from dml_tile.rules.check import DESCRIPTOR_RULES
from dml_tile.rules.operator import OPERATOR_LEVEL_RULES
from dml_tile.rules.operator_fields import OPERATOR_FIELD_RULES
from dml_tile.text import did_you_mean, nearest

_RULES: Final[tuple[tuple[Rule[Any], ...], ...]] = (
    DESCRIPTOR_RULES,
    (*OPERATOR_LEVEL_RULES, *OPERATOR_FIELD_RULES),
    (*SPECIFICATION_RULES.values(), *DIALECT_RULES, *BACK_END_RULES),
    (*DXDISPATCH_RULES, *CAPTURE_RULES, *LOWERING_RULES),
    (*binding.BINDING_COUNT_RULES, *binding.SLOT_RULES, *binding.SLOT_STATE_RULES),
    (*binding.RANGE_RULES, *binding.OVERLAP_RULES),
    (*device.CREATION_RULES, *device.FEATURE_RULES, *device.REQUESTED_LEVEL_RULES),
    (*device.FAULT_RULES, *device.REMOVAL_RULES),
    (*device.COMPILATION_RULES, *device.COMPILATION_FLAG_RULES, *device.INITIALIZER_RULES),
    (*graph.GRAPH_CALL_RULES, *graph.GRAPH_RULES, *graph.CONNECTION_RULES),
    (*dispatch.TABLE_RULES, *dispatch.TABLE_USE_RULES, *dispatch.DISPATCH_RULES),
    (*dispatch.EXECUTION_RULES, *dispatch.INITIALIZATION_RULES, *dispatch.PERSISTENCE_RULES),
)

RULES: Final[dict[str, Rule[Any]]] = {rule.id: rule for rules in _RULES for rule in rules}
"""Every rule, by its id."""


RUN_TIME: Final = "known-at-run-time"
MALFORMED_IGNORE: Final = "malformed-ignore"
UNUSED_IGNORE: Final = "unused-ignore"
UNUSED_BASELINE_ENTRY: Final = "unused-baseline-entry"


def _notice(rule_id: str, says: str, severity: Severity = Severity.NOTE) -> Rule[Any]:
    return Rule(rule_id, says, Basis.INFERRED, pages.TILE, lambda subject, target: (), hresult=None, severity=severity)


NOTICES: Final[dict[str, Rule[Any]]] = {
    rule.id: rule
    for rule in (
        _notice(
            RUN_TIME, "The tile is known before it runs; --dim and --input-shape fix sizes that a model leaves open."
        ),
        _notice(MALFORMED_IGNORE, "A comment `dml-tile:` reads ignore[RULE, RULE].", Severity.WARNING),
        _notice(UNUSED_IGNORE, "A rule that a comment or per-file-ignores silences has a finding there at a target."),
        _notice(UNUSED_BASELINE_ENTRY, "An entry of the baseline occurs, where its file and target are checked."),
    )
}
"""The notices, by id: they are no rules of DirectML's."""


def rule_named(rule_id: str) -> Rule[Any]:
    """Return the rule with this id, or the notice. Raises ValueError, with the nearest ids, for any other."""
    rules = RULES | NOTICES
    if rule_id not in rules:
        hint = did_you_mean(rule_id, rules, "`dml-tile explain` lists all rules", count=3, cutoff=0.4)
        raise ValueError(f"there is no rule {rule_id!r}; {hint}")
    return rules[rule_id]


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected rules (all, if none is named), and the ignored rules.

    Each name is an id, or the first words of several, such as ``DML-BUFFER``. The longer name wins if a rule is both;
    ``ignore`` wins if they are equal.
    """

    select: frozenset[str] = frozenset()
    ignore: frozenset[str] = frozenset()

    def takes(self, rule_id: str) -> bool:
        """Return True if findings of the rule count."""
        selected = _words_that_name(rule_id, self.select) if self.select else 0
        return selected > _words_that_name(rule_id, self.ignore)


def _words_that_name(rule_id: str, choices: frozenset[str]) -> int:
    """Return the number of words of the longest choice that matches the rule's id; -1 if none does."""
    return max((words for words, beginning in enumerate(beginnings(rule_id), 1) if beginning in choices), default=-1)


def beginnings(rule_id: str) -> Iterator[str]:
    """Yield the names of a rule: its first word, its first two words, and so on, at last its id."""
    return accumulate(rule_id.split("-"), "{}-{}".format)


def known_rules(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names, ids or first words of ids. Raises ValueError, with the nearest, for an unknown name."""
    names = tuple(names)
    known = {beginning for rule_id in (*RULES, *NOTICES) for beginning in beginnings(rule_id)} if names else ()
    for words in names:
        if words in known:
            continue
        by_letters = {each.casefold(): each for each in sorted(known)}
        near = [by_letters[match] for match in nearest(words.casefold(), by_letters, count=3)]
        hint = f"did you mean {', '.join(near)}?" if near else "`dml-tile explain` lists all rules"
        raise ValueError(f"no rule is named {words!r}; {hint}")
    return names
