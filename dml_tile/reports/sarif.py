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

from dml_tile.checks.model_summary import ModelSummary
from dml_tile.checks.result import Result
from dml_tile.errors import Position
from dml_tile.reports.report import GroupedFinding, Problems, ReportOptions, from_here, grouped_findings
from dml_tile.reports.wording import outcome
from dml_tile.rules.catalogue import RULES
from dml_tile.text import printable

Json = dict[str, Any]

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


class SarifReport:
    """A log of one run: a result for each finding, each rule that has one, and notifications of what cannot be read."""

    def __init__(self, options: ReportOptions) -> None:
        self._write = options.write
        self._rules: dict[str, int] = {}
        self._write(f'{{"$schema": "{_SCHEMA}", "version": "2.1.0", "runs": [{{"results": [')

    def add(self, results: Sequence[Result]) -> None:
        """Write the findings of the next tile."""
        for told in grouped_findings(results):
            separator = ",\n" if self._rules else "\n"
            self._write(f"{separator}{json.dumps(self._result(told))}")

    def end(self, problems: Problems, models: Sequence[ModelSummary]) -> None:
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
        rules = [_rule(rule_id) for rule_id in self._rules]
        driver = {"name": "dml-tile", "version": version("dml-tile"), "rules": rules}
        rest = {"columnKind": "unicodeCodePoints", "invocations": [invocation], "tool": {"driver": driver}}
        self._write(f"\n], {json.dumps(rest)[1:]}]}}\n")

    def _result(self, told: GroupedFinding) -> Json:
        source, pointer, finding = told.result.source, told.result.pointer, told.finding
        index = self._rules.setdefault(finding.rule, len(self._rules))
        identity = "\n".join((finding.rule, _uri(source), pointer, finding.path))
        return {
            "ruleId": finding.rule,
            "ruleIndex": index,
            "level": "error",
            "message": {"text": told.text()},
            "locations": _locations(source, pointer, told.result.position(finding.path)),
            "partialFingerprints": {"tileAndField/v1": hashlib.sha256(identity.encode()).hexdigest()},
        }


def _locations(source: str, pointer: str, position: Position | None) -> list[Json]:
    location: Json = {}
    if source != "-":
        location["physicalLocation"] = {"artifactLocation": {"uri": _uri(source)}}
        if position:
            location["physicalLocation"]["region"] = _region(position)
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
    """A reference relative to the current folder, or the URI of what is not in it."""
    path = from_here(source)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix(), errors="surrogateescape")


def _rule(rule_id: str) -> Json:
    rule = RULES[rule_id]
    basis = ", ".join(rule.basis.names)
    returned = outcome(rule.hresult, rule.crash)
    says = {"text": rule.says}
    return {
        "id": rule.id,
        "shortDescription": says,
        "fullDescription": says,
        "help": {
            "text": f"{rule.says}\nBasis: {basis}. DirectML: {returned}.\nPage: {rule.url}",
            "markdown": f"{rule.says}\n\n- Basis: {basis}\n- DirectML: {returned}\n- [The page]({rule.url})\n"
            f"- `dml-tile explain {rule.id}` tells the same.",
        },
        "helpUri": rule.url,
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": list(rule.basis.names)},
    }
