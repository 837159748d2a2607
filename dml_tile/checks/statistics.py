"""Counts of the findings of each rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dml_tile.checks.result import Result


class Statistics:
    """Counts findings by their rules: each field that breaks one, at each target."""

    def __init__(self) -> None:
        self._counts = Counter[str]()

    def add(self, results: Iterable[Result]) -> None:
        """Count the findings of the next results."""
        self._counts.update(finding.rule for result in results for finding in result.findings)

    def most_common(self) -> dict[str, int]:
        """The counts by rule, the greatest first, of like counts by id."""
        return dict(sorted(self._counts.items(), key=lambda item: (-item[1], item[0])))
