"""Results as JUnit's XML, which CI servers show as tests: an operator at a target is one, and a model that loads there.

But for ``file`` and ``line`` of a test, which GitLab and others read, it is valid by the schema of Jenkins' xUnit
plugin, junit-10.xsd: https://github.com/jenkinsci/xunit-plugin
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from dml_tile.checks.placements import ModelNodes
from dml_tile.checks.result import CheckedFile, Result
from dml_tile.checks.sessions import session_at, summary_of
from dml_tile.checks.verdict import NOT_FOR_DIRECTML
from dml_tile.findings import RUN_TIME, Finding, Position
from dml_tile.reports.report import Report, ReportOptions, spool, write_spooled
from dml_tile.reports.rows import identity_of, row_of
from dml_tile.reports.text import result_lines
from dml_tile.reports.wording import kind_of, what_is_open
from dml_tile.text import printable, short_name

_FIRST_LINE: Final = 1
"""The line of a source without lines, such as a model."""


class JunitReport(Report):
    """A suite for each source, written at the end, after the totals.

    An operator that ``--fail-on`` lets pass is a passed test, and a skipped one where DirectML is not called for it.
    """

    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options)
        self._open_suite("")
        self._totals = Counter[str]()
        self._suites = spool()  # until their totals are known
        self._began = time.monotonic()

    def item(self, results: Sequence[Result]) -> None:
        item, options = results[0].item, self.options
        self._enter_suite(item.source)
        content = item.numbered(self._equals)
        name = short_name(content) if content else item.pointer or "operator"
        for result in results:
            lines = result_lines(result, against=options.against, fail_on=options.fail_on)
            text = "".join(map(str, lines))
            kind, outcome = "", _element("system-out", text)
            if not result.passes(options.fail_on):
                rules = ", ".join(dict.fromkeys(finding.rule for finding in result.findings))
                worst = max(result.findings, key=attrgetter("severity"), default=None)
                message = f"{kind_of(worst)}{worst}" if worst else what_is_open(result)
                kind, outcome = "failures", _element("failure", text, type=rules or RUN_TIME, message=message)
            elif result.verdict in NOT_FOR_DIRECTML:
                kind, outcome = "skipped", _element("skipped", message=result.verdict) + outcome
            position = result.first_position or item.position("")
            self._add_case(item.source, f"{name} at {result.target.label}", position, outcome, kind)

    def nodes(self, nodes: ModelNodes) -> None:
        """Add a passed test for each target at which the model is not known to fail."""
        for i, target in enumerate(nodes.targets):
            if not session_at(nodes, i).fails:
                text = _element("system-out", "\n".join(summary_of(nodes, i)))
                via = f" via {nodes.via.name}" if nodes.via.release else ""  # no name that changes with the newest
                self._add_case(nodes.source, f"nodes at {target.label}{via}", None, text, "")

    def finding(self, finding: Finding) -> None:
        """Add an error for an unreadable file, and a test for a notice."""
        key, message = finding.key, printable(finding.message)
        if key == "errors":
            kind, outcome = "errors", _element("error", printable(finding.text), type=finding.rule, message=message)
            pointer, reason = identity_of(finding)
            name = pointer or (f"reading: {short_name(reason)}" if finding.path else "reading")
        elif key in ("notices", "nodes"):
            # counts and targets stay out of the name, by which servers follow a test
            name, text = f"{finding.rule}: {short_name(finding.about or message)}", row_of(finding).text
            kind, outcome = "", _element("system-out", text)
            if not finding.passes(self.options.fail_on):
                kind, outcome = "failures", _element("failure", text, type=finding.rule, message=message)
        else:
            return
        self._add_case(finding.source, name, finding.position, outcome, kind)

    def end(self, files: Sequence[CheckedFile]) -> None:
        self._finish_suite()
        totals = {key: self._totals[key] for key in ("tests", "failures", "errors")}
        attributes = _attributes(name="dml-tile check", **totals, time=_seconds_since(self._began))
        self._write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{attributes}>\n')
        write_spooled(self._suites, self._write)
        self._write("</testsuites>\n")

    def _add_case(self, source: str, name: str, position: Position | None, outcome: str, kind: str) -> None:
        """Add a test to the suite of its source; ``kind`` is the total that it is counted in, if it has not passed."""
        path = self._enter_suite(source)
        self._counts.update(filter(None, ("tests", kind)))
        line = position.line if position else _FIRST_LINE
        attributes = _attributes(classname=path, name=name, file=path, line=line)
        self._cases.append(f"<testcase{attributes}>{outcome}</testcase>\n")

    def _enter_suite(self, source: str) -> str:
        """Open the suite of a source, unless it is open, and return the source's path."""
        path = self.options.path(source)
        if path != self._source:
            self._finish_suite()
            self._open_suite(path)
        return path

    def _open_suite(self, source: str) -> None:
        self._source, self._suite_began = source, time.monotonic()
        self._counts, self._cases, self._equals = Counter[str](), list[str](), Counter[str]()

    def _finish_suite(self) -> None:
        if self._cases:
            counts = {key: self._counts[key] for key in ("tests", "failures", "errors", "skipped")}
            seconds = _seconds_since(self._suite_began)
            attributes = _attributes(name=self._source, **counts, time=seconds, file=self._source)
            self._suites.write(f"<testsuite{attributes}>\n{''.join(self._cases)}</testsuite>\n")
        self._totals += self._counts


def _seconds_since(began: float) -> str:
    return f"{time.monotonic() - began:.3f}"


def _element(tag: str, text: str = "", **attributes: str) -> str:
    return f"<{tag}{_attributes(**attributes)}>{escape(text)}</{tag}>"


def _attributes(**values: object) -> str:
    """Return attributes of an element, with escapes for what XML cannot hold, such as control characters."""
    return "".join(f" {name}={quoteattr(printable(str(value)))}" for name, value in values.items())
