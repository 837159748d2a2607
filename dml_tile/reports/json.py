"""Results as JSON, for programs; schemas/check_output.schema.json describes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from dml_tile.checks.model_summary import ModelSummary
from dml_tile.checks.result import Result
from dml_tile.checks.statistics import Statistics
from dml_tile.enums import FeatureLevel
from dml_tile.findings import Finding
from dml_tile.reports.report import Problems, ReportOptions, in_text

Level = Annotated[str, Field(pattern=r"^[1-9]_[0-9]$", examples=[level.short for level in FeatureLevel][:3])]
Line = Annotated[int, Field(ge=1)] | None


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FindingRecord(_Record):
    """A rule that the descriptor breaks."""

    rule: str = Field(description="The rule's stable id; `dml-tile explain` tells more.")
    path: str = Field(description="The field in C names; empty for the whole descriptor.")
    message: str
    basis: tuple[Literal["documented", "runtime", "inferred"], ...] = Field(description="What the finding rests on.")
    hresult: Annotated[str, Field(pattern="^0x[0-9A-F]{8}$")] | None = Field(
        description="What DirectML returns where it notices; null if it crashes, or if that is unknown."
    )
    crash: bool = Field(description="Whether the process would die.")
    url: str = Field(description="The page that the rule follows.")
    suggestion: str | None
    line: Line = Field(
        default=None, description="Where the field begins in a file of JSON, or the object that lacks it."
    )
    column: Line = Field(default=None, description="In that line, in code points.")


class ResultRecord(_Record):
    """One descriptor at one target."""

    source: str = Field(description="The file; - is standard input.")
    pointer: str = Field(description="The JSON pointer of the descriptor in its source, or a model's node.")
    target: str
    feature_level: Level
    ok: bool
    lowest_level: Level | None = Field(description="The lowest feature level at which the descriptor passes, if any.")
    unknown: tuple[str, ...] = Field(
        default=(), description="The fields of a model's tile that are known at run time only, and were not checked."
    )
    findings: tuple[FindingRecord, ...]
    via: str = Field(default="", description="The back end that a model's tile goes through, if one was asked for.")
    note: str = Field(default="", description="What that back end makes of an accepted tile, if there is more to say.")
    deselected: int = Field(default=0, ge=0, description="How many findings there are of rules that are not selected.")


class ErrorRecord(_Record):
    """What cannot be read, and so has no result."""

    source: str = Field(description="The file; - is standard input.")
    pointer: str = Field(description="The JSON pointer of the unreadable part; empty for the whole.")
    message: str


class CheckOutput(_Record):
    """The output of `dml-tile check --format json`."""

    version: Literal[1]
    results: tuple[ResultRecord, ...]
    errors: tuple[ErrorRecord, ...] = Field(default=(), description="There only if something cannot be read.")
    statistics: dict[str, Annotated[int, Field(ge=1)]] | None = Field(
        default=None, description="How many findings there are of each rule; there only if asked for."
    )


class JsonReport:
    """Writes CheckOutput, one result a line, so that a million of them need no memory."""

    def __init__(self, options: ReportOptions) -> None:
        self._write = options.write
        self._statistics = Statistics() if options.with_statistics else None
        self._separator = "\n"
        self._write('{"version": 1, "results": [')

    def add(self, results: Sequence[Result]) -> None:
        """Write the results of the next tile."""
        if self._statistics:
            self._statistics.add(results)
        for result in results:
            self._write_one(self._record(result))

    def end(self, problems: Problems, models: Sequence[ModelSummary]) -> None:
        """Write what cannot be read."""
        self._write("\n]")
        if problems:
            self._write(', "errors": [')
            self._separator = "\n"
            for source, problem in problems:
                self._write_one(ErrorRecord(source=in_text(source), pointer=problem.pointer, message=problem.message))
            self._write("\n]")
        if self._statistics:
            self._write(f', "statistics": {json.dumps(self._statistics.most_common())}')
        self._write("}\n")

    def _write_one(self, record: _Record) -> None:
        self._write(f"{self._separator}{record.model_dump_json()}")
        self._separator = ",\n"

    def _record(self, result: Result) -> ResultRecord:
        return ResultRecord(
            source=in_text(result.source),
            pointer=result.pointer,
            target=result.target.name,
            feature_level=result.target.feature_level.short,
            ok=not result.findings,
            lowest_level=result.lowest_level.short if result.lowest_level else None,
            unknown=result.unknown,
            findings=tuple(self._finding(result, finding) for finding in result.findings),
            via=result.via,
            note=result.note,
            deselected=result.deselected,
        )

    def _finding(self, result: Result, finding: Finding) -> FindingRecord:
        position = result.position(finding.path)
        return FindingRecord.model_validate(
            {
                "rule": finding.rule,
                "path": finding.path,
                "message": finding.message,
                "basis": finding.basis.names,
                "hresult": finding.hresult.hex if finding.hresult is not None else None,
                "crash": finding.crash,
                "url": finding.url,
                "suggestion": finding.suggestion,
                "line": position and position.line,
                "column": position and position.column,
            }
        )
