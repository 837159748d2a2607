"""Summaries of checked models: how many tiles each has, and the lowest level at which all of them pass."""

from __future__ import annotations

from dataclasses import dataclass

from dml_tile.checks.result import Result
from dml_tile.enums import FeatureLevel


@dataclass(slots=True)
class ModelSummary:
    """The tiles of one model; ``lowest_level`` is the lowest at which all pass, None if one passes at none.

    ``unknown`` is how many are known in part only before they are run; ``is_whole`` tells whether all of the file was
    read.
    """

    source: str
    tiles: int = 0
    unknown: int = 0
    lowest_level: FeatureLevel | None = FeatureLevel.DML_FEATURE_LEVEL_1_0
    is_whole: bool = True

    def add(self, result: Result) -> None:
        """Count a tile by its result at one target."""
        self.tiles += 1
        self.unknown += bool(result.unknown)
        if self.lowest_level is not None:
            self.lowest_level = result.lowest_level and max(self.lowest_level, result.lowest_level)
