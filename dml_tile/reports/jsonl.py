"""Results as JSON lines, which dataframes and logs read: one result a line, as it comes; at the end, what is unread."""

from __future__ import annotations

from collections.abc import Sequence

from dml_tile.checks.result import Result
from dml_tile.checks.source_summary import SourceSummary
from dml_tile.reports.json import ErrorRecord, ResultRecord, error_record, result_record
from dml_tile.reports.report import Problems, ReportOptions
from dml_tile.text import printable_json


class JsonLinesReport:
    """Writes a ResultRecord a line, then an ErrorRecord for each part that cannot be read, which has no verdict."""

    def __init__(self, options: ReportOptions) -> None:
        self._write = options.write
        self._fail_on = options.fail_on

    def add(self, results: Sequence[Result]) -> None:
        """Write the results of the next tile."""
        for result in results:
            self._write_one(result_record(result, self._fail_on))

    def end(self, problems: Problems, sources: Sequence[SourceSummary]) -> None:
        """Write what cannot be read."""
        for source, problem in problems:
            self._write_one(error_record(source, problem))

    def _write_one(self, record: ResultRecord | ErrorRecord) -> None:
        self._write(f"{printable_json(record.model_dump_json())}\n")
