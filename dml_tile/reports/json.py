"""Results as JSON, for programs; schemas/check_output.schema.json describes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from dml_tile.enums import FeatureLevel
from dml_tile.frontends.problems import Problem
from dml_tile.reports.result import Result

Level = Annotated[str, Field(pattern=r"^[1-9]_[0-9]$", examples=[level.short for level in FeatureLevel][:3])]


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


def record(result: Result) -> ResultRecord:
    """A result as it stands in the JSON output."""
    return ResultRecord(
        source=_text(result.source),
        pointer=result.pointer,
        target=result.target.name,
        feature_level=result.target.feature_level.short,
        ok=not result.findings,
        lowest_level=result.lowest_level.short if result.lowest_level else None,
        unknown=result.unknown,
        findings=tuple(
            FindingRecord.model_validate(
                {
                    "rule": finding.rule,
                    "path": finding.path,
                    "message": finding.message,
                    "basis": finding.basis.names,
                    "hresult": finding.hresult.hex if finding.hresult is not None else None,
                    "crash": finding.crash,
                    "url": finding.url,
                    "suggestion": finding.suggestion,
                }
            )
            for finding in result.findings
        ),
        via=result.via,
        note=result.note,
    )


def json_report(results: Iterable[Result], problems: Sequence[tuple[str, Problem]] = ()) -> Iterator[str]:
    """The JSON output, in parts: one result a line, so that a million of them need no memory.

    ``problems``, of sources by their names, are looked at when all results have been.
    """
    yield '{"version": 1, "results": ['
    yield from _joined(record(result) for result in results)
    yield "\n]"
    if problems:
        yield ', "errors": ['
        yield from _joined(
            ErrorRecord(source=_text(source), pointer=problem.pointer, message=problem.message)
            for source, problem in problems
        )
        yield "\n]"
    yield "}\n"


def _joined(records: Iterable[_Record]) -> Iterator[str]:
    separator = "\n"
    for one in records:
        yield separator + one.model_dump_json()
        separator = ",\n"


def _text(name: str) -> str:
    """A file's name, which may be any bytes, as text."""
    return name.encode(errors="backslashreplace").decode()
