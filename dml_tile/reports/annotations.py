"""The reports that list rows one by one: for GitHub, Azure Pipelines, GitLab, editors, and as SARIF."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, ClassVar, Final
from urllib.parse import quote

from dml_tile import __version__
from dml_tile.checks.result import CheckedFile, Result
from dml_tile.directml import pages
from dml_tile.files.paths import STANDARD_INPUT
from dml_tile.files.repository import path_within
from dml_tile.findings import OWN, Finding, Position, Rule, Severity, location_of
from dml_tile.reports.report import Report, ReportOptions
from dml_tile.reports.rows import FindingRow, open_rows, row_of, rows_of
from dml_tile.reports.wording import VerdictCounts, headline, outcome_of_rule
from dml_tile.text import printable, printable_line_start

MAX_SHOWN: Final = 10
"""The rows of one severity that GitHub and Azure Pipelines show of a step."""


class RowReport(Report):
    """Takes the rows of items, and of findings with the keys ``taken``, as they come; keeps the others."""

    taken: ClassVar[tuple[str, ...]] = ("notices", "nodes")

    def item(self, results: Sequence[Result]) -> None:
        for row in chain(rows_of(results), open_rows(results)):
            self._take(row)

    def finding(self, finding: Finding) -> None:
        if finding.key in self.taken:
            self._take(row_of(finding))
        else:
            super().finding(finding)

    @abstractmethod
    def _take(self, row: FindingRow) -> None: ...


class ConciseReport(RowReport):
    """A line for each row, with the path as it was given, as compilers print it."""

    taken = ("errors", "notices", "nodes")

    def _take(self, row: FindingRow) -> None:
        pointer, line = ("", None) if row.position else (row.pointer, row.line)
        location = printable_line_start(location_of(row.source, pointer, row.position, line))
        title = f"{printable(row.title)}: " if row.title else ""
        self._write(f"{location}: {row.severity}[{row.rule}] {title}{row.message}\n")


class GitlabReport(RowReport):
    """Code Quality, a JSON array: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format"""

    taken = ("errors", "notices", "nodes")
    _separator = "[\n"

    def _take(self, row: FindingRow) -> None:
        path = self.options.path(row.source)
        record = {
            "description": row.text,
            "check_name": row.rule,
            "fingerprint": row.fingerprint(path),
            "severity": _GITLAB_SEVERITIES[row.severity],
            "location": {"path": path, "lines": {"begin": row.position.line if row.position else 1}},
        }
        self._write_item(json.dumps(record))

    def end(self, files: Sequence[CheckedFile]) -> None:
        self._write("[]\n" if self._separator == "[\n" else "\n]\n")


_GITLAB_SEVERITIES: Final = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


class LimitedReport(RowReport):
    """Writes rows at the end, the worst first: of each severity ``MAX_SHOWN``, and the number of the others."""

    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options)
        self._kept: dict[Severity, list[FindingRow]] = {severity: [] for severity in sorted(Severity, reverse=True)}
        self._counts = Counter[Severity]()
        self._counted = VerdictCounts()

    def item(self, results: Sequence[Result]) -> None:
        self._counted.add(results)
        super().item(results)

    def end(self, files: Sequence[CheckedFile]) -> None:
        """Write the rows, those of unreadable files first."""
        self._counts[Severity.ERROR] += len(self.problems)
        self._kept[Severity.ERROR][:0] = map(row_of, self.problems[:MAX_SHOWN])
        title = headline(files, self._counted, self.problems)
        for severity, kept in self._kept.items():
            if self._counts[severity] > MAX_SHOWN:
                text = f"and {self._counts[severity] - MAX_SHOWN + 1} more {severity}s, which `dml-tile check` prints"
                cut = Finding(title, "", text, severity)
                kept[MAX_SHOWN - 1 :] = [FindingRow(cut, STANDARD_INPUT, "", None, (), (text,), ())]
            self._write("".join(map(self.line, kept)))

    @abstractmethod
    def line(self, row: FindingRow) -> str:
        """Return the line of a row, which the server shows."""

    def _location(self, row: FindingRow, *names: str) -> dict[str, str]:
        """Return the path, line and column under these names; none of standard input."""
        if row.source == STANDARD_INPUT:
            return {}
        position = row.position
        values = [self.options.path(row.source), *((position.line, position.column) if position else ())]
        return dict(zip(names, map(str, values), strict=False))

    def _take(self, row: FindingRow) -> None:
        self._counts[row.severity] += 1
        kept = self._kept[row.severity]
        if len(kept) < MAX_SHOWN:
            kept.append(row)


class AzureReport(LimitedReport):
    """A command for each error and warning that Azure Pipelines shows; notes are lines of the log."""

    def line(self, row: FindingRow) -> str:
        location = self._location(row, "sourcepath", "linenumber", "columnnumber")
        if row.severity is Severity.NOTE:
            where = f"{printable_line_start(location['sourcepath'])}: " if location else ""
            return "{}{}: {}\n".format(where, row.severity, row.text.replace("\n", "; "))
        properties = {"type": str(row.severity), **location, "code": row.rule}
        listed = "".join(f"{name}={printable(value.translate(_AZURE_PROPERTY))};" for name, value in properties.items())
        return f"##vso[task.logissue {listed}]{row.text.translate(_AZURE)}\n"


_AZURE: Final = str.maketrans({"%": "%AZP25", "\r": "%0D", "\n": "%0A"})
_AZURE_PROPERTY: Final = _AZURE | str.maketrans({";": "%3B", "]": "%5D"})

_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


class GithubReport(LimitedReport):
    """A command for each row, which GitHub shows, written at the end."""

    def line(self, row: FindingRow) -> str:
        properties = {**self._location(row, "file", "line", "col"), "title": row.rule}
        listed = ",".join(
            f"{name}={printable(value.translate(_GITHUB_PROPERTY))}" for name, value in properties.items()
        )
        return f"::{_COMMANDS[row.severity]} {listed}::{row.text.translate(_GITHUB)}\n"


_GITHUB: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_GITHUB_PROPERTY: Final = _GITHUB | str.maketrans({":": "%3A", ",": "%2C"})


Json = dict[str, Any]

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

MAX_RESULTS: Final = 25_000
"""The results of a run that GitHub's code scanning takes."""

_ROOT: Final = "SRCROOT"
"""The base of all files below the root."""

_FINGERPRINT: Final = "dmlTileFinding/v1"
"""The name of the fingerprint of an operator and a field; code scanning adds its own, of a line."""

_REGION: Final = ("startLine", "startColumn", "endLine", "endColumn")
_BEGINNING: Final = Position(1, 1, 1, 1)
"""The region of a source without lines, such as a model: readers of SARIF require one."""


class SarifReport(RowReport):
    """A log of one run, SARIF 2.1.0: a result for each row, the rules, and notifications of unreadable files.

    Pages: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html;
    https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning

    Findings of the baseline are none: code scanning would open them again.
    """

    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options)
        self._rules: dict[str, int] = {}
        self._count = 0
        self._write_json(f'{{"$schema": "{_SCHEMA}", "version": "2.1.0", "runs": [{{"results": [')

    def _take(self, row: FindingRow) -> None:
        if self._count < MAX_RESULTS:
            result = {
                "ruleId": row.rule,
                "ruleIndex": self._rules.setdefault(row.rule, len(self._rules)),
                "level": str(row.severity),
                "message": {"text": row.text},
                "locations": self._locations(row),
                "partialFingerprints": {_FINGERPRINT: row.fingerprint(self.options.path(row.source))},
            }
            self._write_item(json.dumps(result))
        self._count += 1

    def end(self, files: Sequence[CheckedFile]) -> None:
        """Write the rules, the unreadable files, and contradictions of declared shapes."""
        notifications = [
            {"level": str(each.severity), "message": {"text": each.message}, "locations": self._locations(each)}
            for each in map(row_of, self.problems + self.found["contradictions"])
        ]
        if self._count > MAX_RESULTS:
            text = f"{self._count - MAX_RESULTS} results are left out: code scanning takes {MAX_RESULTS}"
            notifications.append({"level": "warning", "message": {"text": text}})
        invocation: Json = {"executionSuccessful": not self.problems}
        if notifications:
            invocation["toolExecutionNotifications"] = notifications
        driver = {
            "name": "dml-tile",
            "fullName": f"dml-tile {__version__}",
            "version": __version__,
            "informationUri": pages.TILE,
            "rules": [_rule(rule_id) for rule_id in self._rules],
        }
        root = Path(self.options.root).resolve().as_uri()
        rest = {
            "columnKind": "unicodeCodePoints",
            "invocations": [invocation],
            "originalUriBaseIds": {_ROOT: {"uri": f"{root.rstrip('/')}/"}},
            "tool": {"driver": driver},
        }
        self._write_json(f"\n], {json.dumps(rest)[1:]}]}}\n")

    def _locations(self, row: FindingRow) -> list[Json]:
        artifact = _artifact(path_within(self.options.root, row.source), row.source)
        region = dict(zip(_REGION, row.position or _BEGINNING, strict=True))
        location: Json = {"physicalLocation": {"artifactLocation": artifact, "region": region}}
        if row.pointer:
            location["logicalLocations"] = [{"fullyQualifiedName": printable(row.pointer)}]
        return [location]


def _artifact(path: str, source: str) -> Json:
    """Return the location of a source by its path: relative to the root, or the URI of a file outside of it."""
    if source == STANDARD_INPUT:
        return {"uri": "stdin"}
    if PurePath(path).is_absolute():
        return {"uri": PurePath(path).as_uri()}
    return {"uri": quote(path, errors="surrogateescape"), "uriBaseId": _ROOT}


def _rule(rule_id: str) -> Json:
    words = (word.capitalize() if word.isupper() else word for word in rule_id.split("-"))
    rule: Rule[Any] | None = OWN.get(rule_id)
    if rule is None:
        from dml_tile.checks.catalogue import NAMED  # SARIF alone describes them

        rule = NAMED[rule_id]
    says, url, facts = rule.says, rule.url, list[str]()
    properties: Json = {}
    if rule.basis:
        facts = [f"Basis: {', '.join(rule.basis.names)}"]
        facts += [f"DirectML: {returned}" for returned in [outcome_of_rule(rule)] if returned]
        properties = {"properties": {"tags": list(rule.basis.names)}}
    text = "\n".join([says, *([f"{'. '.join(facts)}."] if facts else []), f"Page: {url}"])
    markdown = "\n- ".join([f"{says}\n", *facts, f"[The page]({url})"])
    return {
        "id": rule_id,
        "name": "".join(f"{word[0].upper()}{word[1:]}" for word in words),
        "shortDescription": {"text": says},
        "fullDescription": {"text": says},
        "help": {"text": text, "markdown": markdown} if url else {"text": says},
        **({"helpUri": url} if url else {}),
        "defaultConfiguration": {"level": str(rule.usual_severity)},
        **properties,
    }
