"""Results as JUnit's XML, which CI servers show as tests: a tile at a target is one.

It is valid by the schema of Jenkins' xUnit plugin, junit-10.xsd: https://github.com/jenkinsci/xunit-plugin
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from dml_tile.checks.file_check import SourceSummary
from dml_tile.checks.result import Result, Verdict
from dml_tile.findings import Finding
from dml_tile.reports.report import Problems, ReportOptions
from dml_tile.reports.text import result_lines
from dml_tile.reports.wording import kind_of, known_at_run_time_only
from dml_tile.text import printable


class JunitReport:
    """A suite for each source, which is written when the next begins.

    A tile that ``--fail-on`` lets pass is a passed test, and a skipped one where DirectML is not called for it.
    """

    def __init__(self, options: ReportOptions) -> None:
        self._write = options.write
        self._with_lowest_level = options.with_lowest_level
        self._fail_on = options.fail_on
        self._suite = _Suite("")
        self._write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="dml-tile check">\n')

    def add(self, results: Sequence[Result]) -> None:
        """Take the results of the next tile."""
        for result in results:
            lines = result_lines(result, with_lowest_level=self._with_lowest_level)
            text = "".join(f"{' ' * line.indent}{line.text.plain}\n" for line in lines)
            rules = ", ".join(dict.fromkeys(finding.rule for finding in result.findings))
            name = f"{result.pointer or 'tile'} at {result.target.label}"
            suite = self._suite_of(result.source)
            if not result.passes(self._fail_on):
                unknown = known_at_run_time_only(result.unknown)
                message = next((f"{kind_of(finding)}{finding}" for finding in _worst_first(result)), unknown)
                suite.add_failed(name, "failure", rules or "known-at-run-time", message, text)
            elif result.verdict in (Verdict.ELSEWHERE, Verdict.NOT_CHECKED):
                suite.add_skipped(name, result.verdict, text)
            else:
                suite.add_passed(name, text)

    def end(self, problems: Problems, sources: Sequence[SourceSummary]) -> None:
        """Write what cannot be read."""
        for source, problem in problems:
            suite = self._suite_of(source)
            suite.add_failed(
                problem.pointer or "reading", "error", "unreadable", problem.message, printable(str(problem))
            )
        self._write(f"{self._suite.xml()}</testsuites>\n")

    def _suite_of(self, source: str) -> _Suite:
        if source != self._suite.name:
            self._write(self._suite.xml())
            self._suite = _Suite(source)
        return self._suite


class _Suite:
    """The tests of one source."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._cases: list[str] = []
        self._counts = {"failure": 0, "error": 0}

    def add_passed(self, name: str, text: str) -> None:
        self._add(name, f"<system-out>{escape(text)}</system-out>")

    def add_skipped(self, name: str, message: str, text: str) -> None:
        self._add(name, f"<skipped{_attributes(message=message)}/><system-out>{escape(text)}</system-out>")

    def add_failed(self, name: str, kind: Literal["failure", "error"], what: str, message: str, text: str) -> None:
        self._counts[kind] += 1
        self._add(name, f"<{kind}{_attributes(type=what, message=message)}>{escape(text)}</{kind}>")

    def xml(self) -> str:
        """Return the suite's element, if it has tests."""
        if not self._cases:
            return ""
        failures, errors = self._counts.values()
        attributes = _attributes(name=self.name, tests=len(self._cases), failures=failures, errors=errors)
        return f"<testsuite{attributes}>\n{''.join(self._cases)}</testsuite>\n"

    def _add(self, name: str, outcome: str) -> None:
        self._cases.append(f"<testcase{_attributes(classname=self.name, name=name)}>{outcome}</testcase>\n")


def _worst_first(result: Result) -> list[Finding]:
    return sorted(result.findings, key=lambda finding: -finding.severity)


def _attributes(**values: object) -> str:
    """Return attributes of an element, with escapes for what XML cannot hold, such as control characters."""
    return "".join(f" {name}={quoteattr(printable(str(value)))}" for name, value in values.items())
