"""Results as JSON, for programs; schemas/check_output.schema.json describes it, key by key."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from tempfile import SpooledTemporaryFile
from typing import Any, Final, TypeAlias

from dml_tile.back_ends.placement import Crossing, Placement
from dml_tile.checks.placements import ModelNodes, with_places
from dml_tile.checks.result import IN_BASELINE, NOT_SELECTED, CheckedFile, Result
from dml_tile.directml.targets import Target
from dml_tile.findings import Finding, Position, Severity
from dml_tile.readers.model_tile import TileNode
from dml_tile.reports.bounds import bounded_finding
from dml_tile.reports.report import Report, ReportOptions, spool, write_spooled
from dml_tile.text import encodable, printable, printable_json, short_name

Json: TypeAlias = dict[str, Any]

MAX_NODES_OF_A_MODEL: Final = 200_000
"""The most nodes of a model, counted at each target, that are listed."""

_ERROR: Final = ("source", "pointer", "message", "line", "column")
_NOTICE: Final = ("source", "rule", "severity", "message", "line", "column")
_KEYS: Final = {"errors": _ERROR, "notices": _NOTICE}
"""The keys of findings about files, by the key of their list."""
_FINDING: Final = (
    *("rule", "path", "message", "severity", "basis", "hresult", "crash", "url", "suggestion", "edits"),
    *("line", "column"),
)
_MODEL_ERROR: Final = ("target", "rule", "message", "severity", "suggestion")


def record_of(keys: Iterable[str], finding: Finding, position: Position | None = None, target: str = "") -> Json:
    """Return these keys of a finding."""
    shown = {
        "source": encodable(finding.source),
        "pointer": finding.path,
        "target": target,
        "rule": finding.rule,
        "path": finding.path,
        "message": finding.message if finding.basis else printable(finding.message),
        "severity": str(finding.severity),
        "basis": finding.basis.names,
        "hresult": None if finding.hresult is None else finding.hresult.hex,
        "crash": finding.crash,
        "url": finding.url,
        "suggestion": finding.suggestion,
        "edits": [{"path": path, "value": getattr(value, "name", value)} for path, value in finding.edits],
        "line": position.line if position else None,
        "column": position.column if position else None,
    }
    return {key: shown[key] for key in keys}


def _named(sizes: Iterable[Any] | None) -> list[Any] | None:
    return None if sizes is None else [short_name(size) if isinstance(size, str) else size for size in sizes]


def _node(node: TileNode) -> Json:
    return {
        "data_type": node.type_name and short_name(node.type_name),
        "sizes": _named(node.shape),
        "repeats": _named(node.repeats),
        "output_sizes": _named(node.output_sizes),
        "inputs": _named(node.inputs),
        "output": short_name(node.output),
    }


def result_record(result: Result, fail_on: Severity | None) -> Json:
    """Return the record of a result; ``fail_on`` is the severity from which on it fails."""
    item = result.item
    never = "never" if result.is_judged else None
    return {
        "source": encodable(item.source),
        "pointer": item.pointer,
        "operator": item.operator,
        "node": _node(item.node) if item.node else None,
        "target": result.target.name,
        "feature_level": result.target.feature_level.short,
        "verdict": result.verdict,
        "ok": result.passes(fail_on),
        "lowest_level": result.lowest_level.short if result.lowest_level else never,
        "unknown": [*map(str, item.unknown)],
        "not_looked_at": result.not_looked_at,
        "findings": [record_of(_FINDING, finding, item.position(finding.path)) for finding in result.findings],
        "via": item.via,
        "deselected": len(result.uncounted.get(NOT_SELECTED, ())),
        "times": item.times,
        "in_baseline": len(result.uncounted.get(IN_BASELINE, ())),
        "operators": result.operators,
    }


def placement_records(nodes: ModelNodes) -> Iterator[Json]:
    """Yield the records of a model's nodes, as many as there may be of one model."""
    every = ((i, each) for i, _ in enumerate(nodes.targets) for each in nodes.told_at(i))
    for i, (node, reason, described) in islice(every, MAX_NODES_OF_A_MODEL):
        is_judged = nodes.has_device[i] and reason.placement is Placement.DIRECTML
        target, judged = nodes.targets[i], nodes.judged_of(i, described) if is_judged else None
        yield {
            "source": encodable(nodes.source),
            "target": target.name,
            "node": node.pointer,
            "name": encodable(node.name),
            "domain": encodable(node.domain),
            "operator": encodable(node.operator),
            "version": node.version,
            "placement": reason.placement,
            "rule": reason.rule,
            "reason": reason.text,
            "operators": list(nodes.placed.descriptions[described].operators) if described >= 0 else [],
            "verdict": judged and (judged.verdict or "not described"),
            "via": nodes.via.name,
        }


def crossing_records(nodes: ModelNodes) -> Iterator[Json]:
    """Yield the records of the values that cross between DirectML and the CPU, as many as there may be of one model."""
    for target, (value, to) in islice(_crossings(nodes), MAX_NODES_OF_A_MODEL):
        yield {"source": encodable(nodes.source), "target": target.name, "value": encodable(value), "to": to}


def _crossings(nodes: ModelNodes) -> Iterator[tuple[Target, Crossing]]:
    return ((target, each) for i, target in enumerate(nodes.targets) for each in nodes.crossings_at(i))


def _model_errors(nodes: ModelNodes) -> Iterator[Json]:
    for each in nodes.counted:
        finding = bounded_finding(with_places(each, ()))  # each record has its target
        if finding.severity is Severity.ERROR or not each.count:
            yield from (record_of(_MODEL_ERROR, finding, target=target) for target in each.targets)


def _of_nodes(nodes: ModelNodes) -> Json:
    """Return the keys of a source that are about its nodes, if it has some."""
    if not nodes.placed.nodes:
        return {}
    entries = sum(number >= 0 for column in nodes.placed.placed for number in column)
    return {
        "nodes": len({node.pointer for node in nodes.placed.nodes}),  # which may have versions of their own at a target
        "nodes_left_out": max(entries - MAX_NODES_OF_A_MODEL, 0),
        "crossings_left_out": max(sum(1 for _ in _crossings(nodes)) - MAX_NODES_OF_A_MODEL, 0),
        "opsets": [
            {"target": target.name, **advice._asdict()}
            for i, target in enumerate(nodes.targets)
            if (advice := nodes.opset_at(i))
        ],
        "errors": [*_model_errors(nodes)],
    }


def _text(record: Json) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


class JsonReport(Report):
    """Writes one document, a result a line, so that a million of them need no memory."""

    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options)
        self._spooled = defaultdict[str, SpooledTemporaryFile[str]](spool)
        """Lists that are written behind all results, by their keys."""
        self._of_source: dict[str, Json] = {}
        self._write_json('{"version": 1, "results": [')

    def item(self, results: Sequence[Result]) -> None:
        for result in results:
            self._write_item(_text(result_record(result, self.options.fail_on)))

    def nodes(self, nodes: ModelNodes) -> None:
        for key, records in ("nodes", placement_records(nodes)), ("crossings", crossing_records(nodes)):
            spooled = self._spooled[key]
            for record in records:
                spooled.write(printable_json(f"{',' * bool(spooled.tell())}\n{_text(record)}"))
        self._of_source[nodes.source] = _of_nodes(nodes)

    def end(self, files: Sequence[CheckedFile]) -> None:
        self._write_json("\n]")
        for key, spooled in self._spooled.items():
            self._write_json(f', "{key}": [')
            write_spooled(spooled, self._write)
            self._write_json("\n]")
        self._write_list("sources", self._sources(files))
        for key, keys in _KEYS.items():
            if found := self.found[key]:
                self._write_list(key, (record_of(keys, finding, finding.position) for finding in found))
        self._write_json("}\n")

    def _sources(self, files: Sequence[CheckedFile]) -> Iterator[Json]:
        passed_over = {finding.source for finding in self.passed_over}
        contradictions: dict[str, list[str]] = {}
        for finding in self.found["contradictions"]:
            contradictions.setdefault(finding.source, []).append(finding.message)
        for each in files:
            if each.source not in passed_over:
                yield {
                    "source": encodable(each.source),
                    "operators": each.operators,
                    "contradictions": contradictions.get(each.source, []),
                    **self._of_source.get(each.source, {}),
                    "passed_over": "",
                }
        for finding in self.passed_over:
            yield {
                "source": encodable(finding.source),
                "operators": 0,
                "contradictions": [],
                "passed_over": finding.message,
            }

    def _write_list(self, name: str, records: Iterable[Json]) -> None:
        self._write_json(f', "{name}": [')
        self._separator = "\n"
        for record in records:
            self._write_item(_text(record))
        self._write_json("\n]")


class JsonLinesReport(Report):
    """Writes a result a line, and an error for each part that cannot be read, which has no verdict.

    Of a model whose nodes were placed, a line for each node and each value that crosses, then one for each error of the
    model, with its ``source``.
    """

    def item(self, results: Sequence[Result]) -> None:
        for result in results:
            self._write_one(result_record(result, self.options.fail_on))

    def nodes(self, nodes: ModelNodes) -> None:
        for record in chain(placement_records(nodes), crossing_records(nodes)):
            self._write_one(record)
        for error in _model_errors(nodes):
            self._write_json(f"{json.dumps({'source': encodable(nodes.source), **error})}\n")

    def finding(self, finding: Finding) -> None:
        if keys := _KEYS.get(finding.key):
            self._write_one(record_of(keys, finding, finding.position))

    def _write_one(self, record: Json) -> None:
        self._write_json(f"{_text(record)}\n")
