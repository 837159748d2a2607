"""The summary of a file that was checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dml_tile.checks.notices import Notice
from dml_tile.checks.result import Result
from dml_tile.checks.suppressions import Suppression
from dml_tile.directml.enums import FeatureLevel
from dml_tile.findings import Severity
from dml_tile.readers.model_tile import ModelNames


@dataclass(slots=True)
class SourceSummary:
    """The tiles of one file; ``lowest_level`` is the lowest at which all pass, None if one passes at none.

    ``unknown`` is how many are known in part only before they are run, ``failing`` how many fail at a target;
    ``is_whole`` is False if a part of the file could not be read, ``is_empty`` True for JSON without a descriptor.
    ``names`` are those by which the sizes of a model may be given, ``contradictions`` of its declared shapes fail
    nothing. ``patterns`` are the numbers of those that ignore rules in the file; silences that are ``met`` silenced
    something. ``notices`` are about its comments.
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
        """Count a tile by its results, one for each target."""
        first = results[0]
        if not first.is_checked:
            return
        self.operators += 1
        self.unknown += bool(first.unknown)
        self.failing += not all(result.passes(fail_on) for result in results)
        if self.lowest_level is not None:
            self.lowest_level = first.lowest_level and max(self.lowest_level, first.lowest_level)
