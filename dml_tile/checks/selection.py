"""The findings that count: of the selected rules, but for those that per-file-ignores silence in some files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from dml_tile.checks.files import NO_EXCLUSION, Exclusion
from dml_tile.findings import UNUSED_IGNORE, Finding, own_finding
from dml_tile.text import nearest


class Selection(NamedTuple):
    """The selected rules (all, if none is named), and the ignored rules.

    Each name is an id, or the first words of several, such as ``DML-BUFFER``. The longer name wins if a rule is both;
    ``ignore`` wins if they are equal.
    """

    select: frozenset[str] = frozenset()
    ignore: frozenset[str] = frozenset()

    def takes(self, rule_id: str) -> bool:
        """Return True if findings of the rule count."""
        if not (self.select or self.ignore):
            return True
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
    from dml_tile.checks.catalogue import NAMED

    known = {beginning for rule_id in NAMED for beginning in beginnings(rule_id)}
    for words in names:
        if words in known:
            continue
        by_letters = {each.casefold(): each for each in sorted(known)}
        near = [by_letters[match] for match in nearest(words.casefold(), by_letters, count=3)]
        hint = f"did you mean {', '.join(near)}?" if near else "`dml-tile explain` lists all rules"
        raise ValueError(f"no rule is named {words!r}; {hint}")
    return names


Suppression: TypeAlias = tuple[str, int]
"""A rule, or the first words of several, and the number of a pattern that suppresses it."""


class FileIgnores:
    """Patterns of files, and the rules whose findings do not count in matching files."""

    def __init__(self, files: Exclusion = NO_EXCLUSION, rules: Sequence[Sequence[str]] = ()) -> None:
        self.files = files
        self.rules = tuple(map(tuple, map(dict.fromkeys, rules)))
        self._known: dict[tuple[str, frozenset[int]], frozenset[Suppression]] = {}  # many findings ask the same

    def suppressions(self, rule_id: str, patterns: frozenset[int]) -> frozenset[Suppression]:
        """Return what suppresses a rule in a file that these patterns match, by their numbers; empty if nothing."""
        key = rule_id, patterns
        if key not in self._known:
            names = frozenset(beginnings(rule_id))
            self._known[key] = frozenset(
                (rule, pattern) for pattern in patterns for rule in names.intersection(self.rules[pattern])
            )
        return self._known[key]

    def notices(
        self, file: str, met: set[Suppression], patterns: frozenset[int], *, is_whole: bool
    ) -> Iterator[Finding]:
        """Yield a notice for each rule that a settings file ignores in a matching file, and that suppresses nothing.

        ``met`` suppressed something. If the whole project was checked (``is_whole``), all patterns count.
        """
        for number, (pattern, rules) in enumerate(zip(self.files.patterns.lines, self.rules, strict=True)):
            for rule in rules:
                if (rule, number) not in met and (is_whole or number in patterns):
                    message = f"per-file-ignores: {pattern!r}: {rule} silences nothing"
                    yield own_finding(UNUSED_IGNORE, message, source=file)
