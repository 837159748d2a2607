"""A check as text: its results, how many there are of each kind, and a table of the models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from dml_tile.checks.model_summary import ModelSummary
from dml_tile.checks.result import Result
from dml_tile.checks.statistics import Statistics
from dml_tile.checks.verdicts import ACCEPTED, NOT_READ, REFUSED, verdict_word
from dml_tile.reports.lines import Line, print_counts, print_lines, result_lines
from dml_tile.reports.report import Problems, ReportOptions
from dml_tile.reports.wording import run_from
from dml_tile.targets import Target
from dml_tile.text import printable

_FIXABLE: Final = ("InputTensor.Sizes", "InputTensor.DimensionCount")
_HOW_TO_FIX: Final = "--dim NAME=SIZE and --input-shape INPUT=1,3,224,224 fix sizes that are known at run time only"


class TextReport:
    """Prints each result as it comes; a descriptor has one for each target."""

    def __init__(self, options: ReportOptions) -> None:
        self._console = options.open_console()
        self._with_lowest_level = options.with_lowest_level
        self._statistics = Statistics() if options.with_statistics else None
        self._counts = Counter[str]()
        self._targets: dict[str, Target] = {}
        self._lacks_sizes = False

    def add(self, results: Sequence[Result]) -> None:
        """Print the results of the next tile."""
        if self._statistics:
            self._statistics.add(results)
        for result in results:
            self._counts[verdict_word(result.findings, result.unknown)] += 1
            self._targets[result.target.name] = result.target
            self._lacks_sizes |= any(field.startswith(_FIXABLE) for field in result.unknown)
            lines = result_lines(result, with_lowest_level=self._with_lowest_level, with_target_note=False)
            print_lines(self._console, lines)

    def end(self, problems: Problems, models: Sequence[ModelSummary]) -> None:
        """Print the counts, what is to be known of the targets, and the models if there are any."""
        if problems:
            self._counts[NOT_READ] = len(problems)
        print_counts(self._console, self._counts, ACCEPTED, REFUSED)
        notes = [f"{name}: {target.note}" for name, target in self._targets.items() if target.note]
        notes += [_HOW_TO_FIX] * self._lacks_sizes
        print_lines(self._console, (Line(0, Text(f"note: {note}", "dim")) for note in notes))
        if models:
            self._console.print(_model_table(models))
        if self._statistics:
            counts = self._statistics.most_common()
            width = max((len(str(count)) for count in counts.values()), default=0)
            lines = (Line(0, Text(f"{count:>{width}} {rule}")) for rule, count in counts.items())
            print_lines(self._console, lines)


def _model_table(summaries: Iterable[ModelSummary]) -> Table:
    """The models, one a row."""
    table = Table("model", "tiles", "dynamic", "lowest level", "oldest Windows")
    model, *counts = table.columns[:3]
    model.overflow = "fold"
    for column in counts:
        column.justify = "right"
    for summary in summaries:
        table.add_row(printable(summary.source), str(summary.tiles), str(summary.unknown), *run_from(summary))
    return table
