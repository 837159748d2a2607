"""Suppressions of findings in one file: its comments, and patterns of files in pyproject.toml."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from dml_tile.checks.catalogue import beginnings
from dml_tile.checks.files import Exclusion
from dml_tile.json_text import IgnoreComment, SourceText
from dml_tile.readers.json_descriptor import JsonDescriptor
from dml_tile.readers.model_tile import TileNode

_Source = TypeVar("_Source")


class Suppression(NamedTuple):
    """A rule, or the first words of several, that a comment, or a pattern by its number, suppresses."""

    rule: str
    by: IgnoreComment | int


class FileIgnores:
    """Patterns of files, and the rules whose findings do not count in matching files."""

    def __init__(self, files: Exclusion | None = None, rules: Sequence[Sequence[str]] = ()) -> None:
        self.files = files or Exclusion()
        self.rules = tuple(map(tuple, map(dict.fromkeys, rules)))
        self.by_rule = _by_rule((rule, number) for number, each in enumerate(self.rules) for rule in each)
        """The numbers of the patterns that ignore each rule, or the first words of several."""


class Suppressions:
    """The suppressions of one file: its comments, and the ``patterns`` that match it. ``met`` suppressed something."""

    def __init__(self, matching: frozenset[int], by_rule: dict[str, list[int]]) -> None:
        self.patterns = matching
        self.met: set[Suppression] = set()
        self.malformed: list[IgnoreComment] = []
        self._comments: dict[tuple[str, IgnoreComment], None] = {}
        self._by_rule = by_rule
        self._text: SourceText | None = None
        self._of_comments: dict[tuple[int, ...], dict[str, list[IgnoreComment]]] = {}
        """The comments that suppress each rule, for each set of comments on a part of the text."""
        self._known: dict[tuple[tuple[int, ...], str], bool] = {}

    @property
    def unmet(self) -> list[tuple[str, IgnoreComment]]:
        """The rules in comments that suppressed nothing, in the order of the text."""
        return [each for each in self._comments if Suppression(*each) not in self.met]

    def on(self, part: JsonDescriptor | TileNode) -> tuple[IgnoreComment, ...]:
        """Return the comments that hold for a part of the file."""
        text = part.text if isinstance(part, JsonDescriptor) else None
        if text is None or not text.comments:
            return ()
        if text is not self._text:
            self._text = text
            self._of_comments.clear()
            self._known.clear()
            self.malformed += [comment for comment in text.comments if not comment.rules]
            self._comments.update(dict.fromkeys((rule, one) for one in text.comments for rule in one.rules))
        return text.comments_on(part.pointer)

    def suppress(self, rule_id: str, on: Sequence[IgnoreComment]) -> bool:
        """Return True if a pattern or a comment suppresses findings of a rule, and remember which."""
        key = tuple(map(id, on))
        if (key, rule_id) not in self._known:
            if key not in self._of_comments:
                self._of_comments[key] = _by_rule((rule, one) for one in on for rule in dict.fromkeys(one.rules))
            of_comments = self._of_comments[key]
            met: set[Suppression] = set()
            for rule in beginnings(rule_id):
                met.update(Suppression(rule, comment) for comment in of_comments.get(rule, ()))
                met.update(Suppression(rule, one) for one in self._by_rule.get(rule, ()) if one in self.patterns)
            self.met |= met
            self._known[key, rule_id] = bool(met)
        return self._known[key, rule_id]


def _by_rule(pairs: Iterable[tuple[str, _Source]]) -> dict[str, list[_Source]]:
    by_rule: dict[str, list[_Source]] = {}
    for rule, source in pairs:
        by_rule.setdefault(rule, []).append(source)
    return by_rule
