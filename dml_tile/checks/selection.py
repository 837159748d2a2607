"""The selection of rules whose findings count, by their ids or by the first words of several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from dml_tile.text import nearest


@dataclass(frozen=True, slots=True)
class Selection:
    """The rules that are selected, all where none is named, and those that are ignored.

    Each is an id, or the first words of several, such as ``DML-BUFFER``. The longer name wins where a
    rule is both; ``ignore`` wins where they are equal. Raises ValueError, with the nearest, for an unknown name.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for words in (*self.select, *self.ignore):
            _require_known(words)

    def takes(self, rule_id: str) -> bool:
        """Return True if findings of the rule count."""
        selected = _words_that_name(rule_id, self.select) if self.select else 0
        return selected > _words_that_name(rule_id, self.ignore)


def _words_that_name(rule_id: str, choices: Iterable[str]) -> int:
    """Return the number of words of the longest choice that matches the rule's id; -1 if none does."""
    return max((choice.count("-") + 1 for choice in choices if f"{rule_id}-".startswith(f"{choice}-")), default=-1)


def _require_known(words: str) -> None:
    from dml_tile.checks.catalogue import RULES  # which most checks do without

    if any(f"{rule_id}-".startswith(f"{words}-") for rule_id in RULES):
        return
    beginnings = {
        known.casefold(): known for rule_id in RULES for known in accumulate(rule_id.split("-"), "{}-{}".format)
    }
    near = [beginnings[match] for match in nearest(words.casefold(), beginnings, count=3)]
    hint = f"did you mean {', '.join(near)}?" if near else "`dml-tile explain` lists all rules"
    raise ValueError(f"no rule is named {words!r}; {hint}")
