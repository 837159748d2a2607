"""A check as text: its results, how many there are of each kind, and a table of the models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text

from dml_tile.checks.result import Result
from dml_tile.checks.source_summary import SourceSummary
from dml_tile.checks.statistics import Statistics
from dml_tile.checks.verdicts import NOT_READ, Verdict
from dml_tile.reports.lines import Line, print_counts, print_lines, result_lines
from dml_tile.reports.report import Problems, ReportOptions
from dml_tile.reports.wording import run_from
from dml_tile.targets import Target
from dml_tile.text import printable, shortened_within

if TYPE_CHECKING:  # only some reports have tables
    from rich.table import Table

_FIXABLE: Final = ("InputTensor.Sizes", "InputTensor.DimensionCount")
_LINES_BESIDE_MODELS: Final = 10
"""The lines of a terminal that the rest of the summary takes, with the prompt."""

_MIN_MODELS: Final = 5
_MIN_NAME: Final = 12
"""Characters of a model's name that are shown however narrow the terminal is."""

_HOW_TO_FIX: Final = "--dim NAME=SIZE and --input-shape INPUT=1,3,224,224 fix sizes that are known at run time only"


class TextReport:
    """Prints each result as it comes; a descriptor has one for each target. The summary comes last."""

    def __init__(self, options: ReportOptions) -> None:
        self._console = options.open_console()
        self._with_lowest_level = options.with_lowest_level
        self._fail_on = options.fail_on
        self._is_quiet = options.is_quiet
        self._statistics = Statistics() if options.with_statistics else None
        self._counts = Counter[str]()
        self._targets: dict[str, Target] = {}
        self._lacks_sizes = False

    def add(self, results: Sequence[Result]) -> None:
        """Print the results of the next tile; the tile itself once."""
        if self._statistics:
            self._statistics.add(results)
        with_tile = True
        for result in results:
            self._counts[result.verdict_words] += not (result.part and result.verdict is Verdict.ACCEPTED)
            self._targets[result.target.name] = result.target
            self._lacks_sizes |= any(field.startswith(_FIXABLE) for field in result.unknown)
            if self._is_quiet and result.passes(self._fail_on):
                continue
            with_level = self._with_lowest_level
            print_lines(
                self._console,
                result_lines(result, with_lowest_level=with_level, with_target_note=False, with_tile=with_tile),
            )
            with_tile = False

    def end(self, problems: Problems, sources: Sequence[SourceSummary]) -> None:
        """Print what is asked for and to be known, then the summary: the counts, and the models that have tiles."""
        if self._statistics:
            counts = self._statistics.most_common()
            width = max((len(str(count)) for count in counts.values()), default=0)
            lines = (Line(0, Text(f"{count:>{width}} {rule}")) for rule, count in counts.items())
            print_lines(self._console, lines)
        if self._is_quiet:
            return
        notes = [f"{name}: {target.note}" for name, target in self._targets.items() if target.note]
        notes += [_HOW_TO_FIX] * self._lacks_sizes
        print_lines(self._console, (Line(0, Text(f"note: {note}", "dim")) for note in notes))
        if problems:
            self._counts[NOT_READ] = len(problems)
        print_counts(self._console, self._counts, Verdict.ACCEPTED, Verdict.REFUSED)
        self._print_models([source for source in sources if source.is_model])

    def _print_models(self, models: Sequence[SourceSummary]) -> None:
        with_tiles = [model for model in models if model.tiles or not model.is_whole]
        without = len(models) - len(with_tiles)
        most = len(with_tiles)
        if self._console.is_terminal:
            most = max(self._console.height - _LINES_BESIDE_MODELS, _MIN_MODELS)
        if len(with_tiles) == most + 1:  # the line that tells of one more would be as long as its row
            most += 1
        if len(with_tiles) > most:
            with_tiles.sort(key=lambda model: model.is_whole and not model.failing)
        if with_tiles:
            self._console.print(_model_table(with_tiles[:most], self._console.width))
        left_out = with_tiles[most:]
        lines = []
        if left_out:
            failing = sum(bool(model.failing) or not model.is_whole for model in left_out)
            fail = f"{failing} fail{'s' * (failing == 1)} or could not be read whole" if failing else "none fail"
            lines.append(f"and {len(left_out)} more models, of which {fail}")
        if without:
            lines.append(f"{without} {'model has' if without == 1 else 'models have'} no tiles")
        print_lines(self._console, (Line(0, Text(line)) for line in lines))


def _model_table(summaries: Iterable[SourceSummary], width: int) -> Table:
    """The models, one a row. Where the names are too long, the column of dynamic tiles goes, and then their middle."""
    headings = ("model", "tiles", "dynamic", "lowest level", "oldest Windows")
    rows = [(printable(one.name), str(one.tiles), str(one.unknown), *run_from(one)) for one in summaries]
    columns = list(zip(headings, *rows, strict=True))
    names, room = columns[0], _room_for_names(columns, width)
    if max(map(cell_len, names)) > room:
        columns = [column for column in columns if column[0] != "dynamic"]
        room = _room_for_names(columns, width)
    from rich.table import Table

    table = Table()
    for heading, *_ in columns:
        table.add_column(heading, justify="right" if heading in ("tiles", "dynamic") else "left")
    for name, *cells in list(zip(*columns, strict=True))[1:]:
        table.add_row(shortened_within(name, room), *cells)
    return table


def _room_for_names(columns: Sequence[Sequence[str]], width: int) -> int:
    borders = 3 * len(columns) + 1
    return max(width - borders - sum(max(map(cell_len, column)) for column in columns[1:]), _MIN_NAME)
