"""What a check of models comes to, model by model: how many tiles, and where all of them run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dml_tile.checks.result import Result
from dml_tile.enums import FeatureLevel
from dml_tile.targets import oldest_windows
from dml_tile.text import printable

if TYPE_CHECKING:  # only a table needs it
    from rich.table import Table

NOWHERE: Final = "none"


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


def summary_table(summaries: Iterable[ModelSummary]) -> Table:
    """The models, one a row."""
    from rich.table import Table

    table = Table("model", "tiles", "dynamic", "lowest level", "oldest Windows")
    model, *counts = table.columns[:3]
    model.overflow = "fold"
    for column in counts:
        column.justify = "right"
    for summary in summaries:
        table.add_row(printable(summary.source), str(summary.tiles), str(summary.unknown), *run_from(summary))
    return table


def run_from(summary: ModelSummary) -> tuple[str, str]:
    """The lowest level at which all of a model's tiles pass, and the oldest Windows release that has it, in words."""
    if not summary.is_whole:
        return "not all read", ""
    return run_from_level(summary.lowest_level, bool(summary.unknown)) if summary.tiles else ("", "")


def run_from_level(lowest: FeatureLevel | None, is_known_in_part: bool) -> tuple[str, str]:
    """A lowest level, None if there is none, and the oldest Windows release that has it, in words."""
    if lowest is None:
        return NOWHERE, NOWHERE
    at_least = "at least " if is_known_in_part else ""
    release = oldest_windows(lowest)
    return f"{at_least}{lowest.short}", f"{at_least}{release}" if release else NOWHERE
