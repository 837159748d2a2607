"""The summary of a file that was checked, and notices about its comments, per-file-ignores and the baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dml_tile.checks.catalogue import MALFORMED_IGNORE, NOTICES, UNUSED_BASELINE_ENTRY, UNUSED_IGNORE
from dml_tile.checks.result import Result
from dml_tile.checks.suppressions import FileIgnores, Suppression, Suppressions
from dml_tile.directml.enums import FeatureLevel
from dml_tile.errors import Position
from dml_tile.findings import Severity
from dml_tile.readers.model_tile import ModelNames


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
