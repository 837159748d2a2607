"""Baselines: the findings that a project has already, so that a check fails on new ones only."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, ValidationError

from dml_tile.checks.result import IN_BASELINE, CheckedFile, Result
from dml_tile.checks.selection import Selection
from dml_tile.errors import ConfigError
from dml_tile.files.paths import STANDARD_INPUT, ProjectPath, why_refused
from dml_tile.files.repository import path_from
from dml_tile.files.whole import open_regular, open_without_waiting, read_whole
from dml_tile.findings import OLD_BASELINE_ENTRY, OWN, RUN_TIME, UNUSED_BASELINE_ENTRY, Finding, own_finding
from dml_tile.input_errors import Record, problems_of
from dml_tile.readers.sources import is_model_file
from dml_tile.text import encodable, printable, printable_json

MAX_BASELINE_BYTES: Final = 2**26
"""The size of the largest baseline that is read."""

if TYPE_CHECKING:
    from dml_tile.checks.placements import ModelNodes

_Text = Annotated[str, Field(strict=True)]


class Entry(Record):
    """A known finding, whatever its line and its message.

    ``source`` is the file, relative to the baseline's folder; ``operator`` is the operator's identity. ``reason`` is
    that of a model's departure from DirectML, or a node's; without it, as older releases wrote, an entry has one only.
    ``via`` is a back end that names a release, such as ``ort-1.20``; without it, an entry is of any other.
    """

    source: _Text
    operator: _Text
    target: _Text
    rule: _Text
    field: _Text
    reason: _Text = ""
    via: _Text = ""

    def __str__(self) -> str:
        where = f"{self.source}#{self.operator}" if self.operator else self.source
        what, via = self.field or self.reason, f" via {self.via}" if self.via else ""
        return printable(f"{where}: [{self.rule}] {f'{what} ' if what else ''}at {self.target}{via}")


class Baseline:
    """The entries of a baseline's file, or some of them.

    Raises ConfigError if it cannot be read, or a link in a repository leads to it, out of that and not below ``root``.
    """

    def __init__(self, file: str, entries: Iterable[Entry] | None = None, root: str = "") -> None:
        self._file = file
        self._folder = str(Path(file).parent)
        self.entries = frozenset(_entries_of(file, root) if entries is None else entries)
        self._occurring: set[Entry] = set()
        self._old: set[Entry] = set()
        """Entries without a reason that occur."""

    def of(self, files: Iterable[str]) -> Baseline:
        """Return the entries of some files: other processes get no more than they need."""
        sources = {_relative_path(file, self._folder) for file in files}
        return Baseline(self._file, chain.from_iterable(self._by_source.get(source, ()) for source in sources))

    @cached_property
    def _by_source(self) -> dict[str, list[Entry]]:
        ordered = sorted(self.entries, key=_ORDER)
        return {source: [*entries] for source, entries in groupby(ordered, attrgetter("source"))}

    def with_known(self, result: Result) -> Result:
        """Return the result without the baseline's findings; the verdict stays."""
        item = result.item
        place = result.target.name, item.source, item.identity, item.via
        return result.without(
            IN_BASELINE,
            lambda finding: _may_be_known(finding) and _entry(self._folder, finding, *place) in self.entries,
        )

    def known_departures(self, departures: Iterable[Finding]) -> Iterator[tuple[Finding, tuple[str, ...]]]:
        """Yield departures of a model, or of its nodes, from DirectML, each with the targets where it is known.

        An entry without a reason lets one reason pass.
        """
        passed, old = set[Entry](), set[Entry]()
        for departure in departures:
            entries = {name: _entry(self._folder, *_place(departure, name)) for name in departure.targets}
            for entry in entries.values():
                without = entry.model_copy(update={"reason": ""})
                if entry not in self.entries and without in self.entries and without not in old:
                    old.add(without)
                    passed.add(entry)
            yield departure, tuple(name for name, entry in entries.items() if entry in self.entries or entry in passed)

    def note(self, found: Sequence[Result] | ModelNodes) -> None:
        """Remember which entries occur; ``with_known`` may have been called in another process."""
        entries = _entries(self._folder, found, are_known=True)
        old = {entry.model_copy(update={"reason": ""}) for entry in entries - self.entries}
        self._occurring |= entries | old
        self._old |= old

    def notices(
        self, files: Iterable[CheckedFile], targets: Collection[str], selection: Selection, via: str
    ) -> Iterator[Finding]:
        """Yield a notice of each entry without a reason, and of each that this run looked for and did not find."""
        for entry in sorted(self._old, key=_ORDER):
            yield own_finding(OLD_BASELINE_ENTRY, f"has no reason, rewrite it: {entry}", source=self._file)
        for entry in sorted(self.looked_for(files, targets, selection, via) - self._occurring, key=_ORDER):
            yield own_finding(UNUSED_BASELINE_ENTRY, f"no longer occurs: {entry}", source=self._file)

    def looked_for(
        self, files: Iterable[CheckedFile], targets: Collection[str], selection: Selection, via: str
    ) -> frozenset[Entry]:
        """Return the entries of files that the run checked, or that no longer exist."""
        checked, release = {_relative_path(each.source, self._folder): each.is_whole for each in files}, _release(via)
        for path in {entry.source for entry in self.entries} - checked.keys():
            is_there = path == STANDARD_INPUT or os.path.lexists(Path(self._folder, path))
            checked[path] = not is_there
        return frozenset(
            entry
            for entry in self.entries
            if checked[entry.source]
            and entry.target in targets
            and selection.takes(entry.rule)
            and (entry.via == release or not is_model_file(entry.source))  # descriptors go through no back end
        )


def written_before(file: str) -> Baseline:
    """Return the baseline that a file has already, which has no entries if there is none. Raises ConfigError."""
    is_there = Path(file).is_file() and Path(file).stat().st_size
    return Baseline(file) if is_there else Baseline(file, ())


def new_entries(found: Sequence[Result] | ModelNodes, file: str) -> set[Entry]:
    """Return the entries for the findings of a tile, or a model's nodes, in a baseline that is written to ``file``."""
    return _entries(str(Path(file).parent), found, are_known=False)


def baseline_text(entries: Iterable[Entry]) -> str:
    """Return a baseline as JSON, an entry a line, in an order that does not change."""
    lines = ",\n".join(json.dumps(entry.model_dump(exclude_defaults=True)) for entry in sorted(entries, key=_ORDER))
    listed = f"[\n{lines}\n]" if lines else "[]"
    return printable_json(f'{{"version": 1, "findings": {listed}}}\n')


class _BaselineRecord(Record):
    version: Literal[1]
    findings: Annotated[tuple[Entry, ...], Field(fail_fast=True)]


_KEYS: Final = tuple(Entry.model_fields)
_ORDER: Final = attrgetter(*_KEYS)


def _entries(folder: str, found: Sequence[Result] | ModelNodes, *, are_known: bool) -> set[Entry]:
    """Return the entries of the findings that the baseline has, or of those that count."""
    if isinstance(found, Sequence):
        placed = (
            (finding, result.target.name, result.item.source, result.item.identity, result.item.via)
            for result in found
            for finding in (result.uncounted.get(IN_BASELINE, ()) if are_known else (*result.findings, *result.notes))
        )
    else:
        departures = found.known if are_known else found.counted
        placed = (_place(each, target) for each in departures for target in each.targets)
    return {_entry(folder, *each) for each in placed if _may_be_known(each[0])}


def _place(departure: Finding, target: str) -> tuple[Finding, str, str, str, str]:
    """Return what the entry of a departure has, at a target."""
    return departure, target, departure.source, departure.operator, departure.via


def _may_be_known(finding: Finding) -> bool:
    """Return True for findings on descriptors and nodes, and on fields known at run time only."""
    return finding.rule not in OWN or finding.rule == RUN_TIME or OWN[finding.rule].key == "nodes"


def _entry(folder: str, finding: Finding, target: str, source: str, operator: str, via: str) -> Entry:
    field, reason = finding.path, ""
    if finding.placement:
        from dml_tile.checks.placements import reason_kind  # of models only

        field, reason = "", encodable(reason_kind(finding.rule, finding.message))
    return Entry(
        source=_relative_path(source, folder),
        operator=encodable(operator),
        target=target,
        rule=finding.rule,
        field=field,
        reason=reason,
        via=_release(via),
    )


def _release(via: str) -> str:
    """Return the name of a back end that names a release; empty for any other, as entries always had it."""
    from dml_tile.back_ends import BACK_ENDS  # which few checks need

    return via if via and via not in BACK_ENDS else ""


def _relative_path(source: str, folder: str) -> str:
    return encodable(path_from(folder, source))


def _entries_of(file: str, root: str) -> tuple[Entry, ...]:
    data = None
    is_setting = isinstance(file, ProjectPath)  # which names a file; an option may name a pipe
    try:
        if refused := why_refused(file, root, may_be_special=True):
            raise ConfigError(file, refused)
        with open_regular(Path(file).resolve()) if is_setting else open_without_waiting(Path(file)) as opened:
            data = json.loads(read_whole(opened, MAX_BASELINE_BYTES))
        return _BaselineRecord.model_validate(data).findings
    except FileNotFoundError:
        raise ConfigError(file, "there is no such file; --write-baseline writes it") from None
    except OSError as error:
        problem = error.strerror or str(error)
    except ValidationError as error:
        problem = problems_of(error, data, names=("version", "findings", *_KEYS))[0].text
        if isinstance(data, dict) and "results" in data:
            problem = "it is an output of `dml-tile check`; --write-baseline writes a baseline"
    except (ValueError, RecursionError) as error:
        problem = f"unreadable JSON: {error}"
    raise ConfigError(file, f"cannot be read as a baseline: {problem}")
