"""Checking the files and folders that a command names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from glob import has_magic
from typing import TYPE_CHECKING, Final, TypeAlias

from dml_tile.checks.named_files import Exclusion, globbed
from dml_tile.checks.one_file import Engine, FileCheck, FileEnd, in_this_process
from dml_tile.checks.result import Result
from dml_tile.checks.selection import Selection
from dml_tile.checks.source_summary import SourceSummary
from dml_tile.directml.targets import Target
from dml_tile.errors import Problem
from dml_tile.files.urls import is_url
from dml_tile.findings import Against, Severity
from dml_tile.readers.model_tile import KnownShapes
from dml_tile.readers.sources import EMPTY_FOLDER, expanded, may_have_tiles

if TYPE_CHECKING:  # most checks need none
    from dml_tile.back_ends import BackEnd
    from dml_tile.checks.baseline import Baseline

Complain: TypeAlias = Callable[[str, Problem], None]
"""Takes the name of a source, and a reason why a part of it cannot be read."""

_NO_MATCH: Final = Problem("", "no file matches the pattern")
_ALL_RULES: Final = Selection()
_NOTHING: Final = Exclusion()


class Checking:
    """Checks files at targets; keeps the ``problems`` of what cannot be read, and a summary of each of the ``sources``.

    Once all is checked, ``dimension_names`` are those of the ONNX models.

    Findings count where the ``selection`` takes them and the ``baseline`` does not have them; ``fail_on`` is the
    severity from which on a tile fails. With ``skips_others``, files without tiles are passed over, as in folders; what
    the ``exclusion`` leaves out is passed over everywhere. ``complain`` is called for each problem as it is found.
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
        baseline: Baseline | None = None,
        fail_on: Severity | None = Severity.WARNING,
        skips_others: bool = False,
        exclusion: Exclusion = _NOTHING,
    ) -> None:
        self.problems: list[tuple[str, Problem]] = []
        self.sources: list[SourceSummary] = []
        self.dimension_names: frozenset[str] = frozenset()
        self._check = FileCheck(tuple(targets), against, known_shapes, via, selection, baseline, fail_on)
        self._baseline = baseline
        self._complain = complain
        self._skips_others = skips_others
        self._exclusion = exclusion

    def files(self, names: Sequence[str]) -> list[str]:
        """The files to check: those that are named or match a pattern, and those of the named folders."""
        files: list[str] = []
        for name, matching in globbed(names):
            if not matching:
                self._add_problem(name, _NO_MATCH)
            for match in matching:
                files += self._files_of(match)
        return files

    def _files_of(self, name: str) -> list[str]:
        found = list(expanded(name))
        if not found:
            self._add_problem(name, _NO_MATCH if is_url(name) and has_magic(name) else EMPTY_FOLDER)
        if found == [name] and self._skips_others and not may_have_tiles(name):
            return []
        return [file for file in found if not self._exclusion.leaves_out(file)]

    def results(self, files: Iterable[str], engine: Engine = in_this_process) -> Iterator[tuple[Result, ...]]:
        """The results of files, tile by tile, one for each target; the ``engine`` checks the files."""
        for file, event in engine(self._check, files):
            match event:
                case Problem():
                    self._add_problem(file, event)
                case FileEnd():
                    self.sources.append(event.summary)
                    self.dimension_names |= event.dimension_names
                case _:
                    if self._baseline:
                        self._baseline.note(event)
                    yield event

    def _add_problem(self, file: str, problem: Problem) -> None:
        self._complain(file, problem)
        self.problems.append((file, problem))
