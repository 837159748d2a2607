"""Findings in the Static Analysis Results Interchange Format, SARIF 2.1.0, which GitHub's code scanning takes.

Pages: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html;
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple
from importlib.metadata import version
from itertools import starmap
from pathlib import Path, PurePath
from typing import Any, Final
from urllib.parse import quote

from dml_tile.checks.catalogue import NOTICES, RULES
from dml_tile.checks.summary import SourceSummary
from dml_tile.directml import pages
from dml_tile.errors import Position, Problem
from dml_tile.files.repository import path_within
from dml_tile.files.urls import Url
from dml_tile.reports.annotations import Annotation, AnnotationReport, annotation_of_problem
from dml_tile.reports.report import ReportOptions
from dml_tile.reports.wording import outcome_of_rule
from dml_tile.text import printable

Json = dict[str, Any]

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

MAX_RESULTS: Final = 25_000
"""The results of a run that GitHub's code scanning takes."""

_ROOT: Final = "SRCROOT"
"""The base of all files below the root."""

_FINGERPRINT: Final = "dmlTileFinding/v1"
"""The name of the fingerprint of an operator and a field; code scanning adds its own, of a line."""

_STANDARD_INPUT: Final = "stdin"

_REGION: Final = ("startLine", "startColumn", "endLine", "endColumn")
_BEGINNING: Final = Position(1, 1, 1, 1)
"""The region of a source without lines, such as a model: readers of SARIF require one."""


class SarifReport(AnnotationReport):
    """A log of one run: a result for each annotation, the rules, and notifications of what cannot be read.

    Findings of the baseline are none: code scanning would open them again.
    """

    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options)
        self._rules: dict[str, int] = {}
        self._count = 0
        self._write_json(f'{{"$schema": "{_SCHEMA}", "version": "2.1.0", "runs": [{{"results": [')

    def _take(self, annotation: Annotation) -> None:
        if self._count < MAX_RESULTS:
            self._write_json(",\n" if self._count else "\n")
            self._write_json(json.dumps(self._result(annotation)))
        self._count += 1

    def end(self, sources: Sequence[SourceSummary]) -> None:
        """Write the rules, what cannot be read, and what is wrong with declared shapes."""
        contradictions = [(each.name, Problem("", text)) for each in sources for text in each.contradictions]
        notifications = [
            {"level": level, "message": {"text": problem.message}, "locations": self._locations(problem)}
            for level, problems in (("error", self.problems), ("warning", contradictions))
            for problem in starmap(annotation_of_problem, problems)
        ]
        if self._count > MAX_RESULTS:
            text = f"{self._count - MAX_RESULTS} results are left out: code scanning takes {MAX_RESULTS}"
            notifications.append({"level": "warning", "message": {"text": text}})
        invocation: Json = {"executionSuccessful": not self.problems}
        if notifications:
            invocation["toolExecutionNotifications"] = notifications
        driver = {
            "name": "dml-tile",
            "fullName": f"dml-tile {version('dml-tile')}",
            "version": version("dml-tile"),
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

    def _result(self, annotation: Annotation) -> Json:
        rule, fingerprint = annotation.rule, annotation.fingerprint(self.options.path(annotation.source))
        return {
            "ruleId": rule,
            "ruleIndex": self._rules.setdefault(rule, len(self._rules)),
            "level": str(annotation.severity),
            "message": {"text": annotation.text},
            "locations": self._locations(annotation),
            "partialFingerprints": {_FINGERPRINT: fingerprint},
        }

    def _locations(self, annotation: Annotation) -> list[Json]:
        artifact = _artifact(path_within(self.options.root, annotation.source), annotation.source)
        region = dict(zip(_REGION, astuple(annotation.position or _BEGINNING), strict=True))
        location: Json = {"physicalLocation": {"artifactLocation": artifact, "region": region}}
        if annotation.pointer:
            location["logicalLocations"] = [{"fullyQualifiedName": printable(annotation.pointer)}]
        return [location]


def _artifact(path: str, source: str) -> Json:
    """Return the location of a source by its path: relative to the root, or the URI of what is not below that."""
    if source == "-":
        return {"uri": _STANDARD_INPUT}
    if isinstance(source, Url):
        return {"uri": quote(source, safe="/:@!$&'()*+,;=?%~")}
    if PurePath(path).is_absolute():
        return {"uri": PurePath(path).as_uri()}
    return {"uri": quote(path, errors="surrogateescape"), "uriBaseId": _ROOT}


_RULES: Final = RULES | NOTICES


def _rule(rule_id: str) -> Json:
    rule = _RULES[rule_id]
    basis = ", ".join(rule.basis.names)
    returned = outcome_of_rule(rule)
    says = {"text": rule.says}
    words = (word.capitalize() if word.isupper() else word for word in rule_id.split("-"))
    return {
        "id": rule.id,
        "name": "".join(f"{word[0].upper()}{word[1:]}" for word in words),
        "shortDescription": says,
        "fullDescription": says,
        "help": {
            "text": f"{rule.says}\nBasis: {basis}. DirectML: {returned}.\nPage: {rule.url}",
            "markdown": f"{rule.says}\n\n- Basis: {basis}\n- DirectML: {returned}\n- [The page]({rule.url})",
        },
        "helpUri": rule.url,
        "defaultConfiguration": {"level": str(rule.usual_severity)},
        "properties": {"tags": list(rule.basis.names)},
    }
