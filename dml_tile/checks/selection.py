"""The selection of rules whose findings count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from dml_tile.text import nearest


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
    if not names:
        return ()
    from dml_tile.checks.catalogue import RULES, SELECTABLE

    known = {beginning for rule_id in (*RULES, *SELECTABLE) for beginning in beginnings(rule_id)}
    for words in names:
        if words in known:
            continue
        by_letters = {each.casefold(): each for each in sorted(known)}
        near = [by_letters[match] for match in nearest(words.casefold(), by_letters, count=3)]
        hint = f"did you mean {', '.join(near)}?" if near else "`dml-tile explain` lists all rules"
        raise ValueError(f"no rule is named {words!r}; {hint}")
    return names
