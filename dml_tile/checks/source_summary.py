"""Summaries of checked files: how many tiles each has, and the lowest level at which all of them pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dml_tile.checks.result import Result
from dml_tile.checks.verdicts import Verdict
from dml_tile.directml.enums import FeatureLevel
from dml_tile.findings import Severity

_NOT_FOR_DIRECTML = (Verdict.ELSEWHERE, Verdict.NOT_CHECKED)


@dataclass(slots=True)
class SourceSummary:
    """The tiles of one file; ``lowest_level`` is the lowest at which all pass, None if one passes at none.

    ``unknown`` is how many are known in part only before they are run, ``failing`` how many fail at a target;
    ``is_whole`` tells whether all of the file was read. Tiles that never reach DirectML need no level.
    """

    name: str
    is_model: bool
    tiles: int = 0
    unknown: int = 0
    failing: int = 0
    lowest_level: FeatureLevel | None = FeatureLevel.DML_FEATURE_LEVEL_1_0
    is_whole: bool = True

    def add(self, results: Sequence[Result], fail_on: Severity | None) -> None:
        """Count a tile by its results, one for each target."""
        first = results[0]
        if not first.is_a_tile:
            return
        self.tiles += 1
        self.unknown += bool(first.unknown)
        self.failing += not all(result.passes(fail_on) for result in results)
        needs_no_level = first.lowest_level is None and first.verdict in _NOT_FOR_DIRECTML
        if self.lowest_level is not None and not needs_no_level:
            self.lowest_level = first.lowest_level and max(self.lowest_level, first.lowest_level)
