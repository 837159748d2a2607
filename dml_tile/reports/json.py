"""Results as JSON, for programs; schemas/check_output.schema.json describes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from dml_tile.back_ends.placement import Placement
from dml_tile.checks.placements import ModelNodes
from dml_tile.checks.result import IN_BASELINE, NOT_SELECTED, CheckedFile, Result, Verdict
from dml_tile.directml.enums import FeatureLevel
from dml_tile.findings import OWN, Finding, Position, Severity
from dml_tile.input_errors import Record
from dml_tile.reports.bounds import bounded_finding
from dml_tile.reports.report import Report, ReportOptions, spool, write_spooled
from dml_tile.text import encodable, printable, printable_json, short_name

Level = Annotated[str, Field(pattern=r"^[1-9]_[0-9]$", examples=[level.short for level in FeatureLevel][:3])]
Line = Annotated[int, Field(ge=1)] | None
_Printable = Annotated[str, BeforeValidator(printable)]
_Name = Annotated[str, AfterValidator(short_name)]

MAX_NODES_OF_A_MODEL: Final = 200_000
"""The most nodes of a model, counted at each target, that are listed."""


class EditRecord(Record):
    """A field of the descriptor, and another value for it."""

    path: str
    """The field in C names."""
    value: str | int | float | tuple[int | float, ...] | None
    """A data type's is its name."""


class FindingRecord(Record):
    """A rule that the descriptor breaks."""

    rule: str
    """The rule's stable id; `dml-tile explain` tells more."""
    path: str
    """The field in C names; empty for the whole descriptor."""
    message: str
    severity: Literal["error", "warning", "note"]
    """error: DirectML refuses it or crashes, or a specification or a back end raises; warning: only the documentation
    rules it out, or DirectML answered otherwise where it was captured; note: no refusal."""
    basis: tuple[Literal["documented", "runtime", "inferred"], ...]
    """What the finding rests on."""
    hresult: Annotated[str, Field(pattern="^0x[0-9A-F]{8}$")] | None
    """What DirectML returns; null if it does not notice, if it crashes, or if that is unknown."""
    crash: bool
    """Whether the process would die."""
    url: str
    """The page that the rule follows."""
    suggestion: str | None
    edits: tuple[EditRecord, ...]
    """The fields that the suggestion changes, if any: the descriptor with the edits of all its findings passes."""
    line: Line = None
    """Where the field begins in a file of JSON, or the object that lacks it."""
    column: Line = None
    """In that line, in code points."""


_Dimension = Annotated[int, Field(ge=0)] | _Name | None


class NodeRecord(Record):
    """A model's Tile: a size is a number, a name or, where the model has none for it, null."""

    data_type: _Name | None = Field(validation_alias="type_name")
    """DirectML's name of the type; null if it is known at run time only."""
    sizes: tuple[_Dimension, ...] | None = Field(validation_alias="shape")
    """The input's sizes; null if not even their number is known."""
    repeats: tuple[_Dimension, ...] | None
    """The repeats; null if none is known."""
    output_sizes: tuple[_Dimension, ...] | None
    """The output's sizes; null if none is known."""
    inputs: tuple[_Name, ...]
    """The ONNX names of the node's inputs; of other models none."""
    output: _Name
    """The ONNX name of the node's output; of other models empty."""


class ResultRecord(Record):
    """One descriptor at one target."""

    source: str
    """The file; - is standard input."""
    pointer: str
    """The JSON pointer of the descriptor in its source, or a model's node."""
    operator: str = Field(examples=["INT64 {2,3,4} x {1,2,1} -> {2,6,4}"])
    """The operator in one line; of a tile, with ? for what is known at run time only."""
    node: NodeRecord | None = None
    """The tile of a model, field by field; else null."""
    target: str
    feature_level: Level
    verdict: Verdict
    """undocumented: DirectML takes it, only its documentation rules it out; so far: what is known at run time only may
    still change it; in part: fields of another operator than Tile were not looked at; elsewhere: it is a shader or a
    model; not checked: its fields are not given, or are DirectML's own."""
    ok: bool
    """Whether the operator, or the graph without its operators, passes --fail-on: the exit status is 1 if one does
    not."""
    lowest_level: Level | Literal["never"] | None
    """The lowest feature level at which the descriptor passes, or never; where fields are unknown, it may be higher.
    Null for what is not judged, such as a command."""
    unknown: tuple[str, ...] = ()
    """The fields of a model's tile that are known at run time only, and were not checked."""
    not_looked_at: tuple[str, ...] = ()
    """The fields of another operator than Tile that no rule is about."""
    findings: tuple[FindingRecord, ...]
    via: str = ""
    """The back end that a model's tile goes through, if one was asked for."""
    deselected: int = Field(default=0, ge=0)
    """How many findings there are of rules that are not selected."""
    times: int = Field(default=1, ge=1)
    """The number of equal lines of a capture that this one stands for."""
    in_baseline: int = Field(default=0, ge=0)
    """How many findings there are that the baseline has."""
    operators: dict[Verdict, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """The verdicts on a captured graph's operators, each with their number. The graph's is no better than the worst."""


class ErrorRecord(Record):
    """A source, or a part of one, that cannot be read and so has no result."""

    source: str
    """The file; - is standard input."""
    pointer: str
    """The JSON pointer of the unreadable part; empty for the whole."""
    message: str
    line: Line = None
    """Where the part begins, or where the file is no JSON."""
    column: Line = None
    """In that line, in code points."""


class NoticeRecord(Record):
    """A notice about per-file-ignores, the baseline or --via."""

    source: str
    """The file; - is standard input."""
    rule: str = Field(json_schema_extra={"enum": [own.id for own in OWN.values() if own.key == "notices"]})
    severity: Literal["note"]
    message: _Printable
    line: None = None
    """Null, since a notice is about a whole file."""
    column: None = None
    """Null too."""


class PlacementRecord(Record):
    """A node of a model at one target, and the provider of ONNX Runtime that takes it."""

    source: str
    """The file."""
    target: str
    node: str = Field(examples=["3", "3/then_branch/0", "5/FUNCTION/0"])
    """The node's place: its number; in a graph inside a node, or in a function's body, behind that."""
    name: str
    """The node's name in the file; empty if it has none."""
    domain: str
    """The operator's domain; empty for onnx's own."""
    operator: str
    """Empty if it has no name."""
    version: Annotated[int, Field(ge=0)]
    """The opset that introduced this version of the operator; 0 if that is not known."""
    placement: Placement
    """directml, cpu; none: no provider takes it; unknown: the type of a value or the release is not known; gone: ONNX
    Runtime folds or drops it before any provider sees it. Where ONNX Runtime creates no device, it is what it would
    be with one."""
    rule: str
    """The id of the reason, as `dml-tile explain` tells more of; empty without one."""
    reason: str
    """Why DirectML does not take it; empty if it does."""


class ModelErrorRecord(Record):
    """What keeps a model from loading, or from DirectML, at a target; or a warning about its imports."""

    target: str
    rule: str
    message: _Printable
    severity: Literal["error", "warning"]
    suggestion: str | None


class SourceRecord(Record):
    """A file that was checked or passed over, or a folder that was not entered."""

    source: str
    """The file; - is standard input."""
    operators: Annotated[int, Field(ge=0)]
    """How many operators of it were checked."""
    contradictions: tuple[str, ...] = ()
    """What is wrong with the shapes that an ONNX model declares; at most ten."""
    nodes: Annotated[int, Field(ge=0)] = 0
    """How many nodes of a model ONNX Runtime placed; with graphs inside nodes, and functions."""
    nodes_left_out: Annotated[int, Field(ge=0)] = Field(
        default=0, description=f"How many entries of `nodes` are left out; a model has at most {MAX_NODES_OF_A_MODEL}."
    )
    errors: tuple[ModelErrorRecord, ...] = ()
    """What keeps the model from loading, or from DirectML as a whole, by target."""
    passed_over: str = ""
    """Why nothing of the file was checked; of a folder, whose name ends with a slash, why it was not entered. Empty for
    what was checked."""


_KINDS: Final[dict[str, type[Record]]] = {"errors": ErrorRecord, "notices": NoticeRecord}
"""The records of findings about files, by their keys."""

_OF_PLACED: Final = {"nodes", "nodes_left_out", "errors"}
"""The fields of a source whose nodes were placed."""


class CheckOutput(Record):
    """The output of `dml-tile check --format json`."""

    version: Literal[1]
    results: tuple[ResultRecord, ...]
    nodes: tuple[PlacementRecord, ...] = ()
    """The nodes of models, target by target; there only if --via ort places them."""
    sources: tuple[SourceRecord, ...]
    """The files, in the order in which they were checked; then what was passed over."""
    errors: tuple[ErrorRecord, ...] = ()
    """There only if something cannot be read."""
    notices: tuple[NoticeRecord, ...] = ()
    """There only if per-file-ignores or the baseline has one."""


class JsonReport(Report):
    """Writes CheckOutput, one result a line, so that a million of them need no memory."""

    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options)
        self._nodes: SpooledTemporaryFile[str] | None = None
        self._of_source: dict[str, dict[str, Any]] = {}
        self._write_json('{"version": 1, "results": [')

    def item(self, results: Sequence[Result]) -> None:
        for result in results:
            self._write_item(result_record(result, self.options.fail_on).model_dump_json())

    def nodes(self, nodes: ModelNodes) -> None:
        self._nodes = self._nodes or spool()  # until all results are written
        for record in placement_records(nodes):
            self._nodes.write(printable_json(f"{',' * bool(self._nodes.tell())}\n{record.model_dump_json()}"))
        self._of_source[nodes.source] = _of_nodes(nodes)

    def end(self, files: Sequence[CheckedFile]) -> None:
        self._write_json("\n]")
        if self._nodes:
            self._write_json(', "nodes": [')
            write_spooled(self._nodes, self._write)
            self._write_json("\n]")
        self._write_list("sources", self._sources(files))
        for key, kind in _KINDS.items():
            if found := self.found[key]:
                self._write_list(key, (record_of(kind, finding, source, finding.position) for source, finding in found))
        self._write_json("}\n")

    def _sources(self, files: Sequence[CheckedFile]) -> Iterator[SourceRecord]:
        passed_over = {source for source, _ in self.passed_over}
        contradictions: dict[str, list[str]] = {}
        for source, finding in self.found["contradictions"]:
            contradictions.setdefault(source, []).append(finding.message)
        for each in files:
            if each.source not in passed_over:
                yield SourceRecord(
                    source=encodable(each.source),
                    operators=each.operators,
                    contradictions=tuple(contradictions.get(each.source, ())),
                    **self._of_source.get(each.source, {}),
                )
        for source, finding in self.passed_over:
            yield SourceRecord(source=encodable(source), operators=0, passed_over=finding.message)

    def _write_list(self, name: str, records: Iterable[Record]) -> None:
        self._write_json(f', "{name}": [')
        self._separator = "\n"
        for record in records:
            is_placed = not isinstance(record, SourceRecord) or record.nodes
            self._write_item(record.model_dump_json(exclude=None if is_placed else _OF_PLACED))
        self._write_json("\n]")


def result_record(result: Result, fail_on: Severity | None) -> ResultRecord:
    """Return the record of a result; ``fail_on`` is the severity from which on it fails."""
    item = result.item
    never: Literal["never"] | None = "never" if result.is_judged else None
    return ResultRecord(
        source=encodable(item.source),
        pointer=item.pointer,
        operator=item.operator,
        target=result.target.name,
        feature_level=result.target.feature_level.short,
        verdict=result.verdict,
        ok=result.passes(fail_on),
        lowest_level=result.lowest_level.short if result.lowest_level else never,
        unknown=tuple(map(str, item.unknown)),
        not_looked_at=result.not_looked_at,
        findings=tuple(
            record_of(FindingRecord, finding, item.source, item.position(finding.path)) for finding in result.findings
        ),
        via=item.via,
        node=NodeRecord.model_validate(item.node, from_attributes=True) if item.node else None,
        deselected=len(result.uncounted.get(NOT_SELECTED, ())),
        times=item.times,
        in_baseline=len(result.uncounted.get(IN_BASELINE, ())),
        operators=dict(result.operators),
    )


def placement_records(nodes: ModelNodes) -> Iterator[PlacementRecord]:
    """Yield the records of a model's nodes, as many as there may be of one model."""
    every = ((target, each) for i, target in enumerate(nodes.targets) for each in nodes.placed.at(i))
    for target, (node, reason) in islice(every, MAX_NODES_OF_A_MODEL):
        yield PlacementRecord(
            source=encodable(nodes.source),
            target=target.name,
            node=node.pointer,
            name=encodable(node.name),
            domain=encodable(node.domain),
            operator=encodable(node.operator),
            version=node.version,
            placement=reason.placement,
            rule=reason.rule,
            reason=reason.text,
        )


def _of_nodes(nodes: ModelNodes) -> dict[str, Any]:
    """Return what the record of a source says of its nodes."""
    entries = sum(number >= 0 for column in nodes.placed.placed for number in column)
    left_out = max(entries - MAX_NODES_OF_A_MODEL, 0)
    count = len({node.pointer for node in nodes.placed.nodes})  # which may have versions of their own at a target
    return {"nodes": count, "nodes_left_out": left_out, "errors": tuple(_model_errors(nodes))}


def _model_errors(nodes: ModelNodes) -> Iterator[ModelErrorRecord]:
    for each in nodes.counted:
        finding = bounded_finding(replace(each.finding, message=each.message(())))  # each record has its target
        if finding.severity is Severity.ERROR or each.first is None:
            yield from (record_of(ModelErrorRecord, finding, nodes.source, target=target) for target in each.targets)


_Kind = TypeVar("_Kind", bound=Record)


def record_of(
    kind: type[_Kind], finding: Finding, source: str, position: Position | None = None, target: str = ""
) -> _Kind:
    """Return what the records of a kind have of a finding: each of its keys is one of these."""
    shown = {
        "source": encodable(source),
        "pointer": finding.path,
        "target": target,
        "rule": finding.rule,
        "path": finding.path,
        "message": finding.message,
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
    return kind.model_validate({key: shown[key] for key in kind.model_fields})


class JsonLinesReport(Report):
    """Writes a ResultRecord a line, and an ErrorRecord for each part that cannot be read, which has no verdict.

    Of a model whose nodes were placed, a PlacementRecord each, then the ModelErrorRecords behind their ``source``.
    """

    def item(self, results: Sequence[Result]) -> None:
        for result in results:
            self._write_one(result_record(result, self.options.fail_on))

    def nodes(self, nodes: ModelNodes) -> None:
        for record in placement_records(nodes):
            self._write_one(record)
        for error in _model_errors(nodes):
            self._write_json(f"{json.dumps({'source': encodable(nodes.source), **error.model_dump()})}\n")

    def finding(self, source: str, finding: Finding) -> None:
        if kind := _KINDS.get(OWN[finding.rule].key):
            self._write_one(record_of(kind, finding, source, finding.position))

    def _write_one(self, record: Record) -> None:
        self._write_json(f"{record.model_dump_json()}\n")
