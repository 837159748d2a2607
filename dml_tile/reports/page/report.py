"""The page as a report of ``check``."""

from __future__ import annotations

from collections.abc import Sequence

from dml_tile.checks.result import Result
from dml_tile.checks.source_summary import SourceSummary
from dml_tile.reports.overview import Overview
from dml_tile.reports.page.document import document
from dml_tile.reports.page.tables import MAX_LISTED
from dml_tile.reports.report import Problems, ReportOptions


class PageReport:
    """One self-contained HTML page, written at the end."""

    def __init__(self, options: ReportOptions) -> None:
        self._options = options
        self._overview = Overview(MAX_LISTED)

    def add(self, results: Sequence[Result]) -> None:
        """Take the results of the next tile."""
        self._overview.add(results)

    def end(self, problems: Problems, sources: Sequence[SourceSummary]) -> None:
        """Write the page."""
        models = [source for source in sources if source.is_model]
        for piece in document(self._overview, self._options, problems, models):
            self._options.write(piece)
