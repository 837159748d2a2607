"""The results of a check as one HTML page that requests no other file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dml_tile import __version__
from dml_tile.checks.catalogue import NAMED
from dml_tile.checks.result import CheckedFile
from dml_tile.findings import OWN
from dml_tile.reports.overview import OverviewReport
from dml_tile.reports.templates import html_page

MAX_ON_A_PAGE: Final = 1_000
"""The limit for listed operators with findings, for those without, for models and for problems."""


class PageReport(OverviewReport):
    """One self-contained HTML page, written at the end; the same results of the same command make the same page."""

    max_listed = MAX_ON_A_PAGE

    def end(self, files: Sequence[CheckedFile]) -> None:
        placed, rows = self.placed, self.rows
        models = [each for each in files if each.is_model and (each.operators or not each.placed)]
        page = html_page(
            "page",
            report=self,
            rows=rows,
            files=files,
            rules_of_operators=sorted({rule for row in rows for rule in row.rules}),
            placed=placed,
            rules_of_departures=sorted({finding.rule for finding in placed.departures}),
            models=models,
            sections={
                "Not read": len(self.problems),
                "Notices": len(self.notices),
                "Nodes": placed.count,
                "Departures from DirectML": len(placed.departures) + placed.left_out,
                "Operators": self.counted.operators.total() or len(rows),
                "Findings": sum(row.has_details for row in rows),
                "Targets": len(self.verdicts),
                "Models": len(models),
                "Rules broken": len(self.rules),
            },
            MAX_ON_A_PAGE=MAX_ON_A_PAGE,
            RULES={**NAMED, **OWN},
            version=__version__,
        )
        for piece in page:
            self._write(piece)
