"""Results as JUnit's XML, which CI servers show as tests: a tile at a target is one.

But for ``file`` and ``line`` of a test, which GitLab and others read, it is valid by the schema of Jenkins' xUnit
plugin, junit-10.xsd: https://github.com/jenkinsci/xunit-plugin
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from tempfile import SpooledTemporaryFile
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from dml_tile.checks.file_check import SourceSummary
from dml_tile.checks.result import NOT_FOR_DIRECTML, Result
from dml_tile.errors import Position, Problem
from dml_tile.reports.grouped import RUN_TIME, UNREADABLE
from dml_tile.reports.report import Report, ReportOptions
from dml_tile.reports.text import result_lines
from dml_tile.reports.wording import kind_of, known_at_run_time_only
from dml_tile.text import printable

_MAX_KEPT: Final = 2**24
"""The length of the suites that are kept in memory until their totals are known; longer ones are in a file."""


class JunitReport(Report):
    """A suite for each source, written at the end, after the totals.

    A tile that ``--fail-on`` lets pass is a passed test, and a skipped one where DirectML is not called for it.
    """

    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options)
        self._suite = _Suite("")
        self._totals = Counter[str]()
        self._suites = SpooledTemporaryFile(_MAX_KEPT, "w+", encoding="utf-8", newline="")  # noqa: SIM115
        self._began = time.monotonic()

    def add(self, results: Sequence[Result]) -> None:
        """Take the results of the next tile."""
        for result in results:
            lines = result_lines(result, with_lowest_level=self.options.with_lowest_level)
            text = "".join(f"{' ' * line.indent}{line.text.plain}\n" for line in lines)
            name = f"{result.pointer or 'tile'} at {result.target.label}"
            kind, outcome = "", f"<system-out>{escape(text)}</system-out>"
            if not result.passes(self.options.fail_on):
                rules = ", ".join(dict.fromkeys(finding.rule for finding in result.findings))
                worst = max(result.findings, key=attrgetter("severity"), default=None)
                message = f"{kind_of(worst)}{worst}" if worst else known_at_run_time_only(result.unknown)
                kind, outcome = "failures", _element("failure", text, type=rules or RUN_TIME, message=message)
            elif result.verdict in NOT_FOR_DIRECTML:
                kind, outcome = "skipped", _element("skipped", message=result.verdict) + outcome
            self._suite_of(result.source).add(name, result.first_position, outcome, kind)

    def add_problem(self, source: str, problem: Problem) -> None:
        """Take a part of a source that cannot be read."""
        error = _element("error", printable(str(problem)), type=UNREADABLE, message=problem.message)
        self._suite_of(source).add(problem.pointer or "reading", problem.position, error, "errors")

    def end(self, sources: Sequence[SourceSummary]) -> None:
        """Write the totals and the suites."""
        self._finish_suite()
        totals = {key: self._totals[key] for key in ("tests", "failures", "errors")}
        attributes = _attributes(name="dml-tile check", **totals, time=_seconds_since(self._began))
        self._write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{attributes}>\n')
        with self._suites as suites:
            suites.seek(0)
            while text := suites.read(2**16):
                self._write(text)
        self._write("</testsuites>\n")

    def _suite_of(self, source: str) -> _Suite:
        name = self.options.path(source)
        if name != self._suite.name:
            self._finish_suite()
            self._suite = _Suite(name)
        return self._suite

    def _finish_suite(self) -> None:
        self._totals += self._suite.counts
        self._suites.write(self._suite.xml())


class _Suite:
    """The tests of one source."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts = Counter[str]()
        self._cases: list[str] = []
        self._began = time.monotonic()

    def add(self, name: str, position: Position | None, outcome: str, kind: str) -> None:
        """Add a test; ``kind`` is the total that it is counted in, if it has not passed."""
        self.counts.update(filter(None, ("tests", kind)))
        line = {"line": position.line} if position else {}
        attributes = _attributes(classname=self.name, name=name, file=self.name, **line)
        self._cases.append(f"<testcase{attributes}>{outcome}</testcase>\n")

    def xml(self) -> str:
        """Return the suite's element, if it has tests."""
        if not self._cases:
            return ""
        counts = {key: self.counts[key] for key in ("tests", "failures", "errors", "skipped")}
        attributes = _attributes(name=self.name, **counts, time=_seconds_since(self._began), file=self.name)
        return f"<testsuite{attributes}>\n{''.join(self._cases)}</testsuite>\n"


def _seconds_since(began: float) -> str:
    return f"{time.monotonic() - began:.3f}"


def _element(tag: str, text: str = "", **attributes: str) -> str:
    return f"<{tag}{_attributes(**attributes)}>{escape(text)}</{tag}>"


def _attributes(**values: object) -> str:
    """Return attributes of an element, with escapes for what XML cannot hold, such as control characters."""
    return "".join(f" {name}={quoteattr(printable(str(value)))}" for name, value in values.items())
