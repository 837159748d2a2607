"""The page as a report: one of what ``check`` writes in a single pass."""

from __future__ import annotations

from collections.abc import Sequence

from dml_tile.checks.model_summary import ModelSummary
from dml_tile.checks.result import Result
from dml_tile.findings import Against
from dml_tile.reports.page.document import document
from dml_tile.reports.page.model import PageModel
from dml_tile.reports.report import Problems, Write


class PageReport:
    """One self-contained HTML page, which is written when all is known; ``against`` is what results were held to."""

    def __init__(self, write: Write, against: Against) -> None:
        self._write = write
        self._contents = PageModel(against)

    def add(self, results: Sequence[Result]) -> None:
        """Take the results of the next tile."""
        for result in results:
            self._contents.add(result)

    def end(self, problems: Problems, models: Sequence[ModelSummary]) -> None:
        """Write the page."""
        for piece in document(self._contents, problems, models):
            self._write(piece)
