"""Annotations of files, and the reports that list them: for GitHub, Azure Pipelines, GitLab, editors, and as SARIF."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from itertools import starmap
from pathlib import Path, PurePath
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import quote

from dml_tile import __version__
from dml_tile.checks.catalogue import RULES
from dml_tile.checks.result import Result, Verdict
from dml_tile.checks.summary import SourceSummary
from dml_tile.directml import pages
from dml_tile.files.repository import path_within
from dml_tile.files.urls import STANDARD_INPUT, Url
from dml_tile.findings import OWN, RUN_TIME, Finding, Position, Severity, location_of
from dml_tile.reports.overview import GroupedFinding, grouped_findings
from dml_tile.reports.report import Report, ReportOptions
from dml_tile.reports.wording import VerdictCounts, known_at_run_time_only, outcome_of_rule
from dml_tile.text import printable, printable_line_start

_FINGERPRINT_DIGITS: Final = 16


class Annotation(NamedTuple):
    """A message about a part of a source, and the rule that it is about.

    ``text`` has the ``message`` and, in further lines, the operator, its targets and what to try. ``identity`` is what
    the message is about, but for its source.
    """

    severity: Severity
    rule: str
    source: str
    pointer: str
    position: Position | None
    message: str
    text: str
    identity: tuple[str, ...]

    def fingerprint(self, path: str) -> str:
        """Return hexadecimal digits that stay when lines move; ``path`` is the source's."""
        identity = "\n".join((self.rule, path, *self.identity))
        return hashlib.sha256(identity.encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def annotations_of(results: Sequence[Result]) -> Iterator[Annotation]:
    """Yield an annotation for each rule and field of an operator, and for what is known at run time only."""
    yield from map(_annotation, grouped_findings(results))
    yield from _run_time_notes(results)


def annotation_of_finding(source: str, finding: Finding) -> Annotation:
    """Return the annotation for a finding about a file."""
    message = text = printable(finding.text)
    identity = (finding.message,) if OWN[finding.rule].key == "notices" else identity_of(finding)
    return Annotation(finding.severity, finding.rule, source, finding.path, finding.position, message, text, identity)


def identity_of(problem: Finding) -> tuple[str, str]:
    """Return what identifies an unreadable part in each version: its pointer, but for a list's item, and the reason."""
    return "" if problem.path[1:2].isdigit() else problem.path, problem.about or problem.message


def _annotation(group: GroupedFinding) -> Annotation:
    """Return the annotation for findings: the fields and their error, the operator, the targets, and what to try."""
    finding, result = group.finding, group.result
    paths = f"{', '.join(group.paths)}: " if group.paths else ""
    first, *others = group.messages
    lines = [f"{paths}{first}", *others, *_targets_and_operator(result, group.targets)]
    lines += [f"try: {suggestion}" for suggestion in group.suggestions]
    return Annotation(
        finding.severity,
        finding.rule,
        result.source,
        result.pointer,
        group.position,
        printable("; ".join((f"{paths}{first}", *others))),
        "\n".join(map(printable, lines)),
        (result.identity, *group.paths),
    )


def _run_time_notes(results: Sequence[Result]) -> Iterator[Annotation]:
    """Yield a note for each verdict of a tile with fields known at run time only, with the targets that share it."""
    shared: dict[Verdict, list[Result]] = {}
    for result in results:
        if result.unknown and result.unknown_is == "counted":
            shared.setdefault(result.verdict, []).append(result)
    for alike_results in shared.values():
        first = alike_results[0]
        message = printable(f"{first.verdict}; {known_at_run_time_only(first.unknown)}")
        lines = _targets_and_operator(first, [result.target.label for result in alike_results])
        text = "\n".join((message, *map(printable, lines)))
        yield Annotation(Severity.NOTE, RUN_TIME, first.source, first.pointer, None, message, text, (first.identity,))


def _targets_and_operator(result: Result, targets: Sequence[str]) -> Iterator[str]:
    pointer = f"{result.pointer} " if result.pointer else ""
    through = f" through {result.via}" if result.via else ""
    yield f"{pointer}at {', '.join(targets)}{through}"
    if result.verdict is not Verdict.NOT_CHECKED:
        yield f"{result.operator}, {result.times:,} times" if result.times > 1 else result.operator


MAX_SHOWN: Final = 10
"""The annotations of one severity that GitHub and Azure Pipelines show of a step."""


class AnnotationReport(Report):
    """Takes the annotations of items, and of findings with the keys ``taken``, as they come; keeps the others."""

    taken: ClassVar[tuple[str, ...]] = ("notices",)

    def item(self, results: Sequence[Result]) -> None:
        for annotation in annotations_of(results):
            self._take(annotation)

    def finding(self, source: str, finding: Finding) -> None:
        if OWN[finding.rule].key in self.taken:
            self._take(annotation_of_finding(source, finding))
        else:
            super().finding(source, finding)

    @abstractmethod
    def _take(self, annotation: Annotation) -> None: ...


class ConciseReport(AnnotationReport):
    """A line for each annotation, with the path as it was given, as compilers print it."""

    taken = ("errors", "notices")

    def _take(self, annotation: Annotation) -> None:
        pointer = "" if annotation.position else annotation.pointer
        location = printable_line_start(location_of(annotation.source, pointer, annotation.position))
        self._write(f"{location}: {annotation.severity}[{annotation.rule}] {annotation.message}\n")


class GitlabReport(AnnotationReport):
    """Code Quality, a JSON array: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format"""

    taken = ("errors", "notices")

    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options)
        self._separator = "[\n"

    def _take(self, annotation: Annotation) -> None:
        path = self.options.path(annotation.source)
        record = {
            "description": annotation.text,
            "check_name": annotation.rule,
            "fingerprint": annotation.fingerprint(path),
            "severity": _GITLAB_SEVERITIES[annotation.severity],
            "location": {"path": path, "lines": {"begin": annotation.position.line if annotation.position else 1}},
        }
        self._write_item(json.dumps(record))

    def end(self, sources: Sequence[SourceSummary]) -> None:
        self._write("[]\n" if self._separator.startswith("[") else "\n]\n")


_GITLAB_SEVERITIES: Final = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


class LimitedReport(AnnotationReport):
    """Writes annotations at the end, the worst first: of each severity ``MAX_SHOWN``, and the number of the others."""

    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options)
        self._kept: dict[Severity, list[Annotation]] = {severity: [] for severity in sorted(Severity, reverse=True)}
        self._counts = Counter[Severity]()
        self._counted = VerdictCounts()

    def item(self, results: Sequence[Result]) -> None:
        self._counted.add(results)
        super().item(results)

    def end(self, sources: Sequence[SourceSummary]) -> None:
        """Write the annotations, those of what cannot be read first."""
        self._counts[Severity.ERROR] += len(self.problems)
        self._kept[Severity.ERROR][:0] = starmap(annotation_of_finding, self.problems[:MAX_SHOWN])
        for severity, kept in self._kept.items():
            for annotation in self._shown(severity, kept):
                self._write(self.line(annotation))

    @abstractmethod
    def line(self, annotation: Annotation) -> str:
        """Return the line from which the server makes an annotation."""

    def _location(self, annotation: Annotation, *names: str) -> dict[str, str]:
        """Return the path, line and column under these names; none of standard input."""
        if annotation.source == STANDARD_INPUT:
            return {}
        position = annotation.position
        values = [self.options.path(annotation.source), *((position.line, position.column) if position else ())]
        return dict(zip(names, map(str, values), strict=False))

    def _shown(self, severity: Severity, kept: Sequence[Annotation]) -> Iterator[Annotation]:
        count = self._counts[severity]
        if count <= MAX_SHOWN:
            yield from kept
            return
        yield from kept[: MAX_SHOWN - 1]
        text = f"and {count - MAX_SHOWN + 1} more {severity}s, which `dml-tile check` prints"
        yield Annotation(severity, self._counted.headline(self.problems), STANDARD_INPUT, "", None, text, text, ())

    def _take(self, annotation: Annotation) -> None:
        self._counts[annotation.severity] += 1
        kept = self._kept[annotation.severity]
        if len(kept) < MAX_SHOWN:
            kept.append(annotation)


class AzureReport(LimitedReport):
    """A command for each error and warning that Azure Pipelines shows; notes are lines of the log."""

    def line(self, annotation: Annotation) -> str:
        location = self._location(annotation, "sourcepath", "linenumber", "columnnumber")
        if annotation.severity is Severity.NOTE:
            where = f"{printable_line_start(location['sourcepath'])}: " if location else ""
            return "{}{}: {}\n".format(where, annotation.severity, annotation.text.replace("\n", "; "))
        properties = {"type": str(annotation.severity), **location, "code": annotation.rule}
        listed = "".join(f"{name}={printable(value.translate(_AZURE_PROPERTY))};" for name, value in properties.items())
        return f"##vso[task.logissue {listed}]{annotation.text.translate(_AZURE)}\n"


_AZURE: Final = str.maketrans({"%": "%AZP25", "\r": "%0D", "\n": "%0A"})
_AZURE_PROPERTY: Final = _AZURE | str.maketrans({";": "%3B", "]": "%5D"})

_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


class GithubReport(LimitedReport):
    """A command for each annotation that GitHub shows, written at the end."""

    def line(self, annotation: Annotation) -> str:
        properties = {**self._location(annotation, "file", "line", "col"), "title": annotation.rule}
        listed = ",".join(
            f"{name}={printable(value.translate(_GITHUB_PROPERTY))}" for name, value in properties.items()
        )
        return f"::{_COMMANDS[annotation.severity]} {listed}::{annotation.text.translate(_GITHUB)}\n"


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


class SarifReport(AnnotationReport):
    """A log of one run, SARIF 2.1.0: a result for each annotation, the rules, and notifications of what cannot be read.

    Pages: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html;
    https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning

    Findings of the baseline are none: code scanning would open them again.
    """

    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options)
        self._rules: dict[str, int] = {}
        self._count = 0
        self._write_json(f'{{"$schema": "{_SCHEMA}", "version": "2.1.0", "runs": [{{"results": [')

    def _take(self, annotation: Annotation) -> None:
        if self._count < MAX_RESULTS:
            self._write_item(json.dumps(self._result(annotation)))
        self._count += 1

    def end(self, sources: Sequence[SourceSummary]) -> None:
        """Write the rules, what cannot be read, and what is wrong with declared shapes."""
        notifications = [
            {"level": str(each.severity), "message": {"text": each.message}, "locations": self._locations(each)}
            for each in starmap(annotation_of_finding, self.problems + self.found["contradictions"])
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
    if source == STANDARD_INPUT:
        return {"uri": "stdin"}
    if isinstance(source, Url):
        return {"uri": quote(source, safe="/:@!$&'()*+,;=?%~")}
    if PurePath(path).is_absolute():
        return {"uri": PurePath(path).as_uri()}
    return {"uri": quote(path, errors="surrogateescape"), "uriBaseId": _ROOT}


def _rule(rule_id: str) -> Json:
    words = (word.capitalize() if word.isupper() else word for word in rule_id.split("-"))
    name = "".join(f"{word[0].upper()}{word[1:]}" for word in words)
    if own := OWN.get(rule_id):
        says = {"text": own.says}
        level = {"level": str(own.severity)}
        return {
            "id": own.id,
            "name": name,
            "shortDescription": says,
            "fullDescription": says,
            "help": says,
            "defaultConfiguration": level,
        }
    rule = RULES[rule_id]
    facts = [f"Basis: {', '.join(rule.basis.names)}"]
    if returned := outcome_of_rule(rule):
        facts.append(f"DirectML: {returned}")
    says = {"text": rule.says}
    return {
        "id": rule.id,
        "name": name,
        "shortDescription": says,
        "fullDescription": says,
        "help": {
            "text": f"{rule.says}\n{'. '.join(facts)}.\nPage: {rule.url}",
            "markdown": "\n- ".join([f"{rule.says}\n", *facts, f"[The page]({rule.url})"]),
        },
        "helpUri": rule.url,
        "defaultConfiguration": {"level": str(rule.usual_severity)},
        "properties": {"tags": list(rule.basis.names)},
    }
