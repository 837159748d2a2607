"""The page as a report of ``check``."""

from __future__ import annotations

from collections.abc import Sequence

from dml_tile.checks.result import Result
from dml_tile.checks.source_summary import SourceSummary
from dml_tile.reports.page.document import document
from dml_tile.reports.page.model import PageModel
from dml_tile.reports.report import Problems, ReportOptions


class PageReport:
    """One self-contained HTML page, written at the end."""

    def __init__(self, options: ReportOptions) -> None:
        self._write = options.write
        self._page = PageModel(options.against)

    def add(self, results: Sequence[Result]) -> None:
        """Take the results of the next tile."""
        for result in results:
            self._page.add(result)

    def end(self, problems: Problems, sources: Sequence[SourceSummary]) -> None:
        """Write the page."""
        for piece in document(self._page, problems, [source for source in sources if source.is_model]):
            self._write(piece)
