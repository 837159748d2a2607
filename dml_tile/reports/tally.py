"""The tiles of a run, counted once each by the worst of their verdicts over the targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from dml_tile.checks.result import Result, Verdict
from dml_tile.reports.report import Problems

VERDICTS: Final[tuple[str, ...]] = tuple(reversed(Verdict))
"""In the order in which they are shown and sorted, the worst first."""

_PASSED: Final = "passed, all findings are in the baseline; "


class Tally:
    """Counts tiles, and remembers whether all findings are in the baseline."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.has_known = self.has_new = False

    def add(self, results: Sequence[Result]) -> str:
        """Count a tile by its results, one for each target, and return its worst verdict.

        It is empty for a part of a model that is no tile, and of which there is nothing to report.
        """
        verdict = min((result.verdict for result in results), key=VERDICTS.index)
        if results[0].part and verdict == Verdict.ACCEPTED:
            return ""
        self.counts[verdict] += 1
        self.has_known |= any(result.known for result in results)
        self.has_new |= any(result.findings for result in results)
        return verdict

    def headline(self, problems: Problems) -> str:
        """Return the outcome in one line: what could not be read, then the tiles by their verdicts."""
        total = self.counts.total()
        tiles = f"{total} tile{'s' * (total != 1)}: {counted(self.counts)}" if total else ""
        passed = _PASSED if self.has_known and not (self.has_new or problems) else ""
        return passed + "; ".join(filter(None, (files_not_read(problems), tiles))) or "no tiles"


def files_not_read(problems: Problems) -> str:
    """Return the number of files of which a part could not be read, in words; empty if there are none."""
    unread = len({source for source, _ in problems})
    return f"{unread} file{'s' * (unread != 1)} not read" if unread else ""


def counted(counts: Counter[str]) -> str:
    """Return numbers of tiles by verdict, in words, the worst first."""
    return ", ".join(f"{counts[word]} {word}" for word in VERDICTS if counts[word])
