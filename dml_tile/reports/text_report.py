"""A check as text, for people: its results, how many there are of each kind, and a table of the models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from dml_tile.reports.report import Problems
from dml_tile.reports.result import Result
from dml_tile.reports.statistics import Statistics
from dml_tile.reports.summary import ModelSummary, summary_table
from dml_tile.reports.text import Line, print_counts, print_lines, result_lines
from dml_tile.reports.words import ACCEPTED, REFUSED, verdict_word


class TextReport:
    """Prints each result as it comes; a descriptor has one for each target."""

    def __init__(self, console: Console, *, with_lowest_level: bool, with_statistics: bool) -> None:
        self._console = console
        self._with_lowest_level = with_lowest_level
        self._statistics = Statistics() if with_statistics else None
        self._counts = Counter[str]()

    def add(self, results: Sequence[Result]) -> None:
        """Print the results of the next tile."""
        if self._statistics:
            self._statistics.add(results)
        for result in results:
            self._counts[verdict_word(result.findings, result.unknown)] += 1
            print_lines(self._console, result_lines(result, with_lowest_level=self._with_lowest_level))

    def end(self, problems: Problems, models: Sequence[ModelSummary]) -> None:
        """Print the counts, and the models if there are any."""
        print_counts(self._console, self._counts, ACCEPTED, REFUSED)
        if models:
            self._console.print(summary_table(models))
        if self._statistics:
            counts = self._statistics.most_common()
            width = max((len(str(count)) for count in counts.values()), default=0)
            lines = (Line(0, Text(f"{count:>{width}} {rule}")) for rule, count in counts.items())
            print_lines(self._console, lines)
