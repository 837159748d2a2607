"""The summary of a file that was checked, its suppressions of findings, and the notices about it.

Comments in the file, and patterns of files in pyproject.toml, suppress findings of rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from dml_tile.checks.catalogue import MALFORMED_IGNORE, NOTICES, UNUSED_BASELINE_ENTRY, UNUSED_IGNORE, beginnings
from dml_tile.checks.files import Exclusion
from dml_tile.checks.result import Result
from dml_tile.directml.enums import FeatureLevel
from dml_tile.errors import Position
from dml_tile.findings import Severity
from dml_tile.json_text import IgnoreComment, SourceText
from dml_tile.readers.json_descriptor import JsonDescriptor
from dml_tile.readers.model_tile import ModelNames, TileNode

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


class Notice(NamedTuple):
    """A notice about a file, by the id in ``NOTICES``."""

    rule: str
    source: str
    message: str
    position: Position | None = None

    @property
    def severity(self) -> Severity:
        """The severity of all notices with this id."""
        return NOTICES[self.rule].usual_severity

    def passes(self, fail_on: Severity | None) -> bool:
        """Return True if the severity is below ``fail_on``, or if that is None."""
        return fail_on is None or self.severity < fail_on


def comment_notices(file: str, suppressions: Suppressions, *, is_whole: bool) -> Iterator[Notice]:
    """Yield notices of malformed comments, and of comments that suppress nothing in a file that ``is_whole``."""
    for comment in suppressions.malformed:
        message = f"{comment.text!r} silences nothing; dml-tile: ignore[RULE, RULE] was expected, in 200 characters"
        yield Notice(MALFORMED_IGNORE, file, message, comment.position)
    if is_whole:
        for rule, comment in suppressions.unmet:
            yield Notice(UNUSED_IGNORE, file, f"ignore[{rule}] silences nothing", comment.position)


def file_ignore_notices(
    file: str, ignores: FileIgnores, met: set[Suppression], patterns: frozenset[int], *, is_whole: bool
) -> Iterator[Notice]:
    """Yield notices of per-file-ignores in a settings file that match a file and suppress nothing.

    ``met`` suppressed something. If the whole project was checked (``is_whole``), all patterns count.
    """
    for number, (pattern, rules) in enumerate(zip(ignores.files.patterns.lines, ignores.rules, strict=True)):
        for rule in rules:
            if Suppression(rule, number) not in met and (is_whole or number in patterns):
                yield Notice(UNUSED_IGNORE, file, f"per-file-ignores: {pattern!r}: {rule} silences nothing")


def baseline_notices(file: str, missing: Iterable[object]) -> Iterator[Notice]:
    """Yield a notice of each baseline entry that was not found."""
    return (Notice(UNUSED_BASELINE_ENTRY, file, f"no longer occurs: {entry}") for entry in missing)


@dataclass(slots=True)
class SourceSummary:
    """The operators of one file; ``lowest_level`` is the lowest level at which all pass, None if there is none.

    ``unknown`` tiles are known in part only before they are run, ``failing`` tiles fail at a target; ``is_whole`` is
    False if a part of the file could not be read, ``is_empty`` True for JSON without a descriptor. ``names`` are the
    names by which a model's sizes may be given, ``contradictions`` of its declared shapes fail nothing. ``patterns``
    are the numbers of the patterns that ignore rules in the file, ``met`` the suppressions that have a finding.
    ``notices`` are about its comments.
    """

    name: str
    is_model: bool
    operators: int = 0
    unknown: int = 0
    failing: int = 0
    lowest_level: FeatureLevel | None = FeatureLevel.DML_FEATURE_LEVEL_1_0
    is_whole: bool = True
    is_empty: bool = False
    names: ModelNames = field(default=ModelNames(), compare=False)
    patterns: frozenset[int] = frozenset()
    met: set[Suppression] = field(default_factory=set)
    notices: tuple[Notice, ...] = ()
    contradictions: tuple[str, ...] = ()

    def add(self, results: Sequence[Result], fail_on: Severity | None) -> None:
        """Count an operator by its results, one for each target."""
        first = results[0]
        if not first.is_checked:
            return
        self.operators += 1
        self.unknown += bool(first.unknown)
        self.failing += not all(result.passes(fail_on) for result in results)
        if self.lowest_level is not None:
            self.lowest_level = first.lowest_level and max(self.lowest_level, first.lowest_level)
