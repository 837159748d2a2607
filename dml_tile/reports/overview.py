"""What came of all tiles: counts of every one, and as many rows as can be shown with ease."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dml_tile.checks.result import Result
from dml_tile.checks.verdicts import Verdict
from dml_tile.reports.report import Problems
from dml_tile.reports.tile_row import VERDICTS, TileRow, tile_row, worst_verdict
from dml_tile.targets import Target


class Overview:
    """Gathers tiles one by one; memory is bounded whatever their number.

    ``counts`` are of tiles by their worst verdict, ``verdicts`` of tiles at each target, ``rules`` of tiles that break
    them. The first ``max_listed`` tiles with findings are listed, and as many without; ``left_out`` counts the others.
    """

    def __init__(self, max_listed: int) -> None:
        self.counts = Counter[str]()
        self.verdicts: dict[Target, Counter[str]] = {}
        self.rules = Counter[str]()
        self.left_out = Counter[str]()
        self._max_listed = max_listed
        self._rows: list[TileRow] = []
        self._listed_by_kind = Counter[bool]()

    def add(self, results: Sequence[Result]) -> None:
        """Count a tile by its results, one for each target, and list it unless there are too many of its kind."""
        verdict = worst_verdict(results)
        if results[0].part and verdict == Verdict.ACCEPTED:  # it is no tile, and there is nothing to tell of it
            return
        self.counts[verdict] += 1
        for result in results:
            self.verdicts.setdefault(result.target, Counter())[result.verdict_words] += 1
        self.rules.update({finding.rule for result in results for finding in result.findings})
        has_findings = any(result.findings for result in results)
        if self._listed_by_kind[has_findings] < self._max_listed:
            self._listed_by_kind[has_findings] += 1
            self._rows.append(tile_row(results))
        else:
            self.left_out[verdict] += 1

    @property
    def rows(self) -> list[TileRow]:
        """The listed tiles, the worst first."""
        return sorted(self._rows, key=lambda row: VERDICTS.index(row.verdict))

    @property
    def targets(self) -> list[str]:
        """The labels of the targets."""
        return [target.label for target in self.verdicts]

    @property
    def words(self) -> list[str]:
        """The verdicts that tiles have at some target, the worst first."""
        there = sum(self.verdicts.values(), Counter[str]())
        return [word for word in VERDICTS if there[word]]

    def headline(self, problems: Problems) -> str:
        """The outcome in one line: what could not be read, then the tiles by their worst verdict."""
        unread = len({source for source, _ in problems})
        told = [f"{unread} {'file' if unread == 1 else 'files'} not read"] if unread else []
        told += [f"{self.counts[word]} {word}" for word in VERDICTS if self.counts[word]]
        return ", ".join(told) or "no tiles"

    def left_out_words(self) -> str:
        """The number of tiles that are not listed, by verdict; empty if all are."""
        return ", ".join(f"{self.left_out[word]} {word}" for word in VERDICTS if self.left_out[word])
