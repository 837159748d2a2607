"""The contents of the page: all verdicts are counted, and as many tiles are listed as a browser shows with ease."""

from __future__ import annotations

from collections import Counter
from typing import Final

from dml_tile.checks.result import Result
from dml_tile.checks.verdicts import SO_FAR, Verdict
from dml_tile.findings import Against
from dml_tile.reports.page.tile_row import TileRow, tile_row
from dml_tile.targets import Target

MAX_LISTED: Final = 1_000
"""The limit for listed results with findings, for those without, for models and for problems."""

VERDICTS: Final = (
    Verdict.REFUSED.value,
    f"{Verdict.UNDOCUMENTED} {SO_FAR}",
    Verdict.UNDOCUMENTED.value,
    Verdict.NOT_CHECKED.value,
    Verdict.ELSEWHERE.value,
    f"{Verdict.ACCEPTED} {SO_FAR}",
    Verdict.ACCEPTED.value,
)
"""In the order in which they are shown and sorted."""


class PageModel:
    """Gathers results one by one; memory is bounded whatever their number.

    ``verdicts`` are counted by target, ``rules`` once for each result that breaks them; ``left_out`` counts the
    verdicts that are not listed.
    """

    def __init__(self, against: Against) -> None:
        self.against: Against = against
        self.verdicts: dict[Target, Counter[str]] = {}
        self.rules = Counter[str]()
        self.listed: list[TileRow] = []
        self.left_out = Counter[str]()
        self._listed_by_kind = Counter[bool]()

    def add(self, result: Result) -> None:
        """Count a result, and list it unless there are too many of its kind."""
        word = result.verdict_words
        self.verdicts.setdefault(result.target, Counter())[word] += 1
        self.rules.update({finding.rule for finding in result.findings})
        has_findings = bool(result.findings)
        if self._listed_by_kind[has_findings] < MAX_LISTED:
            self._listed_by_kind[has_findings] += 1
            self.listed.append(tile_row(result))
        else:
            self.left_out[word] += 1

    @property
    def counts(self) -> Counter[str]:
        """The verdicts at all targets."""
        return sum(self.verdicts.values(), Counter[str]())

    @property
    def words(self) -> list[str]:
        """The verdicts that there are, the worst first."""
        counts = self.counts
        return [word for word in VERDICTS if counts[word]]
