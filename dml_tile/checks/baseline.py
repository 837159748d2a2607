"""Baselines: the findings that a project has already, so that a check fails on new ones only."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from dml_tile.checks.catalogue import Selection
from dml_tile.checks.file_check import SourceSummary
from dml_tile.checks.result import Result
from dml_tile.errors import ConfigError
from dml_tile.files.repository import path_from
from dml_tile.files.whole import open_without_waiting
from dml_tile.findings import Finding
from dml_tile.input_errors import Record, problems_of
from dml_tile.text import encodable, printable, printable_json

MAX_BYTES: Final = 2**26
"""The size of the largest baseline that is read."""

_STANDARD_INPUT: Final = "-"
_Text = Annotated[str, Field(strict=True)]


class Entry(Record):
    """A finding that is known again, whatever its line and its message.

    ``source`` is its file, relative to the folder of the baseline; ``tile`` is the identity of its tile.
    """

    source: _Text
    tile: _Text
    target: _Text
    rule: _Text
    field: _Text

    def __str__(self) -> str:
        where = f"{self.source}#{self.tile}" if self.tile else self.source
        return printable(f"{where}: [{self.rule}] {f'{self.field} ' if self.field else ''}at {self.target}")


class Baseline:
    """The entries of a baseline's file. Raises ConfigError if it cannot be read."""

    def __init__(self, file: str) -> None:
        self._folder = str(Path(file).parent)
        self.entries = frozenset(_entries_of(file))
        self._occurring: set[Entry] = set()

    def with_known(self, result: Result) -> Result:
        """Return the result with its findings that are in the baseline as ``known`` ones; the verdict stays."""
        known = [each for each in result.findings if _entry(result, each, self._folder) in self.entries]
        new = tuple(each for each in result.findings if each not in known)
        return replace(result, findings=new, known=tuple(known)) if known else result

    def note(self, results: Iterable[Result]) -> None:
        """Remember which entries occur; ``with_known`` may have been called in another process."""
        self._occurring |= {_entry(result, finding, self._folder) for result in results for finding in result.known}

    def missing(
        self, sources: Iterable[SourceSummary], targets: Collection[str], selection: Selection
    ) -> Iterator[Entry]:
        """Yield the entries that this run would have found, and did not: of what was checked, or is no longer there."""
        checked = {_place(source.name, self._folder): source.is_whole for source in sources}
        for entry in sorted(self.entries - self._occurring, key=_ORDER):
            is_there = entry.source == _STANDARD_INPUT or os.path.lexists(Path(self._folder, entry.source))
            if checked.get(entry.source, not is_there) and entry.target in targets and selection.takes(entry.rule):
                yield entry


def entries_of(results: Sequence[Result], file: str) -> set[Entry]:
    """Return the entries for the findings of a tile, in a baseline that is written to ``file``."""
    folder = str(Path(file).parent)
    return {_entry(result, finding, folder) for result in results for finding in result.findings}


def baseline_text(entries: Iterable[Entry]) -> str:
    """Return a baseline as JSON, an entry a line, in an order that does not change."""
    lines = ",\n".join(json.dumps(dict(entry)) for entry in sorted(entries, key=_ORDER))
    listed = f"[\n{lines}\n]" if lines else "[]"
    return printable_json(f'{{"version": 1, "findings": {listed}}}\n')


class _BaselineRecord(Record):
    version: Literal[1]
    findings: Annotated[tuple[Entry, ...], Field(fail_fast=True)]


_KEYS: Final = tuple(Entry.model_fields)
_ORDER: Final = attrgetter(*_KEYS)


def _entry(result: Result, finding: Finding, folder: str) -> Entry:
    return Entry(
        source=_place(result.source, folder),
        tile=encodable(result.identity),
        target=result.target.name,
        rule=finding.rule,
        field=finding.path,
    )


def _place(source: str, folder: str) -> str:
    return encodable(path_from(folder, source))


def _entries_of(file: str) -> tuple[Entry, ...]:
    try:
        with open_without_waiting(Path(file)) as opened:
            text = opened.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(file, "there is no such file; --write-baseline writes it") from None
    except OSError as error:
        raise ConfigError(file, error.strerror or str(error)) from None
    if len(text) > MAX_BYTES:
        raise ConfigError(file, f"larger than {MAX_BYTES} bytes")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(file, f"unreadable JSON: {error}") from None
    try:
        return _BaselineRecord.model_validate(data).findings
    except ValidationError as error:
        first, *_ = problems_of(error, data, names=("version", "findings", *_KEYS))
        raise ConfigError(file, str(first)) from None
