"""Findings in the Static Analysis Results Interchange Format, SARIF 2.1.0, which GitHub's code scanning takes.

Pages: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html;
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import quote

from dml_tile.checks.catalogue import RULES
from dml_tile.checks.file_check import SourceSummary
from dml_tile.checks.result import Result
from dml_tile.directml.pages import TILE_PAGE
from dml_tile.errors import Position
from dml_tile.files.urls import Url
from dml_tile.findings import Severity
from dml_tile.reports.grouped import GroupedFinding, RunTimeNote, grouped_findings, run_time_notes
from dml_tile.reports.report import Problems, ReportOptions, relative_path
from dml_tile.reports.wording import outcome_of_rule
from dml_tile.text import printable, printable_json

Json = dict[str, Any]

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

_HASH_LENGTH: Final = 16
"""The hexadecimal digits of a fingerprint."""

_BEGINNING: Final = Position(1, 1, 1, 1)
"""The region of a source without lines, such as a model: readers of SARIF require one."""

_RUN_TIME: Final = "known-at-run-time"
"""The id of results on fields that are known at run time only; no rule of the catalogue has it."""


class SarifReport:
    """A log of one run: a result for each tile, rule and field, the rules, and notifications of what cannot be read.

    Code scanning tells runs apart by ``automationDetails.id``, so that it names the targets.
    """

    def __init__(self, options: ReportOptions) -> None:
        self._options = options
        self._rules: dict[str, int] = {}
        self._separator = "\n"
        self._write(f'{{"$schema": "{_SCHEMA}", "version": "2.1.0", "runs": [{{"results": [')

    def add(self, results: Sequence[Result]) -> None:
        """Write the findings of the next tile."""
        for group in grouped_findings(results):
            self._write_one(self._finding(group))
        for note in run_time_notes(results):
            self._write_one(self._note(note))

    def end(self, problems: Problems, sources: Sequence[SourceSummary]) -> None:
        """Write the rules, and what cannot be read."""
        invocation: Json = {"executionSuccessful": not problems}
        if problems:
            invocation["toolExecutionNotifications"] = [
                {
                    "level": "error",
                    "message": {"text": printable(problem.message)},
                    "locations": _locations(source, problem.pointer, problem.position),
                }
                for source, problem in problems
            ]
        rules = [_RUN_TIME_RULE if rule_id == _RUN_TIME else _rule(rule_id) for rule_id in self._rules]
        driver = {
            "name": "dml-tile",
            "fullName": f"dml-tile {version('dml-tile')}",
            "version": version("dml-tile"),
            "informationUri": TILE_PAGE,
            "rules": rules,
        }
        rest = {
            "automationDetails": {"id": f"dml-tile/{','.join(self._options.invocation.targets)}/"},
            "columnKind": "unicodeCodePoints",
            "invocations": [invocation],
            "tool": {"driver": driver},
        }
        self._write(f"\n], {json.dumps(rest)[1:]}]}}\n")

    def _write_one(self, result: Json) -> None:
        self._write(f"{self._separator}{json.dumps(result)}")
        self._separator = ",\n"

    def _write(self, text: str) -> None:
        self._options.write(printable_json(text))

    def _finding(self, group: GroupedFinding) -> Json:
        finding = group.finding
        return self._result(group.result, finding.rule, group.paths, str(finding.severity), group.text())

    def _note(self, note: RunTimeNote) -> Json:
        return self._result(note.result, _RUN_TIME, (), str(Severity.NOTE), note.text())

    def _result(self, result: Result, rule: str, paths: Sequence[str], level: str, text: str) -> Json:
        source, pointer = result.source, result.pointer
        identity = "\n".join((rule, _uri(source), pointer, *paths))
        return {
            "ruleId": rule,
            "ruleIndex": self._rules.setdefault(rule, len(self._rules)),
            "level": level,
            "message": {"text": text},
            "locations": _locations(source, pointer, result.position(paths[0] if paths else "")),
            # of the tile and the field: code scanning's own would be of a line, and move with it
            "partialFingerprints": {
                "primaryLocationLineHash": f"{hashlib.sha256(identity.encode()).hexdigest()[:_HASH_LENGTH]}:1"
            },
        }


def _locations(source: str, pointer: str, position: Position | None) -> list[Json]:
    location: Json = {}
    if source != "-":
        region = _region(position or _BEGINNING)
        location["physicalLocation"] = {"artifactLocation": {"uri": _uri(source)}, "region": region}
    if pointer:
        location["logicalLocations"] = [{"fullyQualifiedName": printable(pointer)}]
    return [location] if location else []


def _region(position: Position) -> Json:
    return {
        "startLine": position.line,
        "startColumn": position.column,
        "endLine": position.end_line,
        "endColumn": position.end_column,
    }


def _uri(source: str) -> str:
    """Return a reference relative to the current folder, or the URI of what is not in it."""
    if isinstance(source, Url):
        return quote(source, safe="/:@!$&'()*+,;=?%~")
    path = relative_path(source)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix(), errors="surrogateescape")


_RUN_TIME_RULE: Final[Json] = {
    "id": _RUN_TIME,
    "name": "KnownAtRunTime",
    "shortDescription": {"text": "The tile is known before it runs."},
    "fullDescription": {"text": "The tile is known before it runs; what is not cannot be checked."},
    "defaultConfiguration": {"level": str(Severity.NOTE)},
}


def _capitalized_words(rule_id: str) -> list[str]:
    return [word.capitalize() if word.isupper() else word for word in rule_id.split("-")]


def _rule(rule_id: str) -> Json:
    rule = RULES[rule_id]
    basis = ", ".join(rule.basis.names)
    returned = outcome_of_rule(rule)
    says = {"text": rule.says}
    return {
        "id": rule.id,
        "name": "".join(f"{word[0].upper()}{word[1:]}" for word in _capitalized_words(rule.id)),
        "shortDescription": says,
        "fullDescription": says,
        "help": {
            "text": f"{rule.says}\nBasis: {basis}. DirectML: {returned}.\nPage: {rule.url}",
            "markdown": f"{rule.says}\n\n- Basis: {basis}\n- DirectML: {returned}\n- [The page]({rule.url})\n"
            f"- `dml-tile explain {rule.id}` tells the same.",
        },
        "helpUri": rule.url,
        "defaultConfiguration": {"level": str(rule.usual_severity)},
        "properties": {"tags": list(rule.basis.names)},
    }
