"""Checking the files and folders that a command names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, TypeAlias

from dml_tile.checks.named_files import Exclusion, globbed
from dml_tile.checks.result import Result, results
from dml_tile.checks.selection import Selection
from dml_tile.checks.source_summary import SourceSummary
from dml_tile.checks.verdicts import Verdict, verdict_of
from dml_tile.errors import Problem
from dml_tile.findings import Against, Severity
from dml_tile.readers.model_tile import KnownShapes
from dml_tile.readers.sources import EMPTY_FOLDER, Sources, expanded, is_model_file, may_have_tiles
from dml_tile.targets import Target

if TYPE_CHECKING:  # most checks need none
    from dml_tile.back_ends import BackEnd

Complain: TypeAlias = Callable[[str, Problem], None]
"""Takes the name of a source, and a reason why a part of it cannot be read."""

_ALL_RULES: Final = Selection()
_NOTHING: Final = Exclusion()


class Checking:
    """Checks files at targets; keeps the ``problems`` of what cannot be read, and a summary of each of the ``sources``.

    Once all is checked, ``dimension_names`` are those of the ONNX models.

    Findings count where the ``selection`` takes them; ``fail_on`` is the severity from which on a tile fails. With
    ``skips_others``, files without tiles are passed over, as in folders; what the ``exclusion`` leaves out is
    passed over everywhere. ``complain`` is called for each problem as it is found.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        against: Against,
        known_shapes: KnownShapes,
        complain: Complain,
        via: BackEnd | None = None,
        *,
        selection: Selection = _ALL_RULES,
        fail_on: Severity | None = Severity.WARNING,
        skips_others: bool = False,
        exclusion: Exclusion = _NOTHING,
    ) -> None:
        self.problems: list[tuple[str, Problem]] = []
        self.sources: list[SourceSummary] = []
        self.dimension_names: frozenset[str] = frozenset()
        self._targets = targets
        self._against: Against = against
        self._known_shapes = known_shapes
        self._complain = complain
        self._via = via
        self._selection = selection
        self._fail_on = fail_on
        self._skips_others = skips_others
        self._exclusion = exclusion

    def files(self, names: Sequence[str]) -> list[str]:
        """The files to check: those that are named or match a pattern, and those of the named folders."""
        files: list[str] = []
        for name, matching in globbed(names):
            if not matching:
                self._add_problem(name, Problem("", "no file matches the pattern"))
            for match in matching:
                files += self._files_of(match)
        return files

    def _files_of(self, name: str) -> list[str]:
        found = list(expanded(name))
        if not found:
            self._add_problem(name, EMPTY_FOLDER)
        if found == [name] and self._skips_others and not may_have_tiles(name):
            return []
        return [file for file in found if not self._exclusion.leaves_out(file)]

    def results(self, files: Iterable[str]) -> Iterator[tuple[Result, ...]]:
        """The results of files, tile by tile, one for each target."""
        with Sources(self._known_shapes) as sources:
            for file in files:
                yield from self._results_of(file, sources)
            self.dimension_names = sources.dimension_names

    def _results_of(self, file: str, sources: Sources) -> Iterator[tuple[Result, ...]]:
        summary = SourceSummary(file, is_model_file(file))
        self.sources.append(summary)
        parts = sources.parts(file)
        first_parts = list(islice(parts, 2))
        for part in chain(first_parts, parts):
            if isinstance(part, Problem):
                self._add_problem(file, part)
                summary.is_whole = False
                continue
            of_part = [
                self._selected(result) for result in results(file, part, self._targets, self._against, self._via)
            ]
            summary.add(of_part, self._fail_on)
            if any(result.findings for result in of_part):
                from dml_tile.checks.advice import with_back_end, with_lower_command  # with all that lowers tiles

                is_alone = len(first_parts) == 1
                of_part = [
                    with_lower_command(with_back_end(result, part), part, self._known_shapes, is_alone=is_alone)
                    for result in of_part
                ]
            yield tuple(of_part)

    def _selected(self, result: Result) -> Result:
        selected = tuple(finding for finding in result.findings if self._selection.takes(finding.rule))
        deselected = len(result.findings) - len(selected)
        if not deselected:
            return result
        is_judged = result.verdict not in (Verdict.ELSEWHERE, Verdict.NOT_CHECKED)
        verdict = verdict_of(selected) if is_judged else result.verdict
        return replace(result, verdict=verdict, findings=selected, deselected=deselected)

    def _add_problem(self, file: str, problem: Problem) -> None:
        self._complain(file, problem)
        self.problems.append((file, problem))
