"""Checks one file, and tells what it finds as a series of events, which may travel between processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, TypeAlias

from dml_tile.checks.result import Result, results
from dml_tile.checks.selection import Selection
from dml_tile.checks.source_summary import SourceSummary
from dml_tile.checks.verdicts import Verdict, verdict_of
from dml_tile.directml.targets import Target
from dml_tile.errors import Problem
from dml_tile.findings import Against, Severity
from dml_tile.readers.model_tile import KnownShapes
from dml_tile.readers.sources import Sources, is_model_file

if TYPE_CHECKING:  # most checks need none
    from dml_tile.back_ends import BackEnd
    from dml_tile.checks.baseline import Baseline

_ALL_RULES: Final = Selection()


@dataclass(frozen=True, slots=True)
class FileEnd:
    """Ends the events of a file. ``dimension_names`` are new names of dimensions that ONNX models have.

    ``seconds_lost`` is the time that was lost to a model that cannot be read.
    """

    summary: SourceSummary
    dimension_names: frozenset[str] = frozenset()
    seconds_lost: float = 0.0


Event: TypeAlias = tuple[Result, ...] | Problem | FileEnd
"""The results of a tile, one for each target, or a part of the file that cannot be read, or the file's end."""


@dataclass(frozen=True, slots=True)
class FileCheck:
    """The questions that each file is asked, and the findings that count.

    Findings count where the ``selection`` takes them and the ``baseline`` does not have them; ``fail_on`` is the
    severity from which on a tile fails.
    """

    targets: Sequence[Target]
    against: Against
    known_shapes: KnownShapes = field(default_factory=KnownShapes)
    via: BackEnd | None = None
    selection: Selection = _ALL_RULES
    baseline: Baseline | None = None
    fail_on: Severity | None = Severity.WARNING

    def events(self, file: str, sources: Sources) -> Iterator[Event]:
        """Yield the events of a file; the last one is its end."""
        summary = SourceSummary(file, is_model_file(file))
        lost_before = sources.seconds_lost
        parts = sources.parts(file)
        first_parts = list(islice(parts, 2))
        for part in chain(first_parts, parts):
            if isinstance(part, Problem):
                summary.is_whole = False
                yield part
                continue
            of_part = [self._counted(result) for result in results(file, part, self.targets, self.against, self.via)]
            summary.add(of_part, self.fail_on)
            if any(result.findings for result in of_part):
                from dml_tile.checks.advice import with_back_end, with_lower_command  # with all that lowers tiles

                is_alone = len(first_parts) == 1
                of_part = [
                    with_lower_command(with_back_end(result, part), part, self.known_shapes, is_alone=is_alone)
                    for result in of_part
                ]
            yield tuple(of_part)
        yield FileEnd(summary, sources.new_dimension_names(), sources.seconds_lost - lost_before)

    def _counted(self, result: Result) -> Result:
        selected = self._selected(result)
        return self.baseline.without_known(selected) if self.baseline else selected

    def _selected(self, result: Result) -> Result:
        selected = tuple(finding for finding in result.findings if self.selection.takes(finding.rule))
        deselected = len(result.findings) - len(selected)
        if not deselected:
            return result
        is_judged = result.verdict not in (Verdict.ELSEWHERE, Verdict.NOT_CHECKED)
        verdict = verdict_of(selected) if is_judged else result.verdict
        return replace(result, verdict=verdict, findings=selected, deselected=deselected)


Engine: TypeAlias = Callable[[FileCheck, Iterable[str]], Iterator[tuple[str, Event]]]
"""Checks files, here or elsewhere: yields the events of each, with its name, in the order of the files."""


def in_this_process(check: FileCheck, files: Iterable[str]) -> Iterator[tuple[str, Event]]:
    """The engine that checks one file after the other, as they are asked for."""
    with Sources(check.known_shapes) as sources:
        for file in files:
            for event in check.events(file, sources):
                yield file, event


def lost(file: str, why: str) -> tuple[Problem, FileEnd]:
    """The events of a file whose check did not end."""
    return Problem("", why), FileEnd(SourceSummary(file, is_model_file(file), is_whole=False))
