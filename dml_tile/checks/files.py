"""Checking the files and folders that a command names."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Final

from dml_tile.checks.model_summary import ModelSummary
from dml_tile.checks.result import Result, results
from dml_tile.checks.selection import Selection
from dml_tile.cli.console import CLEAN, FINDINGS, UNREADABLE, complain, console_of
from dml_tile.errors import Problem
from dml_tile.findings import Against
from dml_tile.readers.model_tile import Fixed
from dml_tile.readers.sources import EMPTY_FOLDER, Sources, expanded, is_model, may_have_tiles
from dml_tile.targets import Target

_FILES_WORTH_A_PROGRESS_BAR: Final = 20
_ALL_RULES: Final = Selection()


class Checking:
    """Checks files at targets, and remembers the models, what cannot be read, and the status that all amounts to.

    ``selection`` tells which findings count. With ``skips_others``, files without tiles are passed over, as in folders.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        against: Against,
        fixed: Fixed,
        via: str | None = None,
        *,
        selection: Selection = _ALL_RULES,
        skips_others: bool = False,
    ) -> None:
        self.status = CLEAN
        self.problems: list[tuple[str, Problem]] = []
        self.models: list[ModelSummary] = []
        self._targets = targets
        self._against: Against = against
        self._fixed = fixed
        self._via = via
        self._selection = selection
        self._skips_others = skips_others

    def results(self, names: Sequence[str]) -> Iterator[tuple[Result, ...]]:
        """The results of all files and folders, tile by tile, one for each target.

        What cannot be read is told on stderr as it comes.
        """
        files = list(self._files(names))
        with Sources(self._fixed) as sources:
            if len(files) < _FILES_WORTH_A_PROGRESS_BAR or not sys.stderr.isatty():
                for file in files:
                    yield from self._results_of(file, sources)
                return
            from rich.progress import Progress

            collected: list[tuple[Result, ...]] = []  # of a terminal: shown when the bar is gone; the two do not mix
            with Progress(console=console_of(stderr=True), transient=True, redirect_stdout=False) as progress:
                for file in progress.track(files, description="checking"):
                    if sys.stdout.isatty():
                        collected += self._results_of(file, sources)
                    else:
                        yield from self._results_of(file, sources)
            yield from collected

    def _files(self, names: Sequence[str]) -> Iterator[str]:
        for name in names:
            found = list(expanded(name))
            if not found:
                self._complain(name, EMPTY_FOLDER)
            elif found != [name] or not self._skips_others or may_have_tiles(name):
                yield from found

    def _results_of(self, file: str, sources: Sources) -> Iterator[tuple[Result, ...]]:
        model = ModelSummary(file)
        if is_model(file):
            self.models.append(model)
        parts = sources.parts(file)
        first_parts = list(islice(parts, 2))
        for part in chain(first_parts, parts):
            if isinstance(part, Problem):
                self._complain(file, part)
                model.is_whole = False
                continue
            of_part = [
                self._selected(result) for result in results(file, part, self._targets, self._against, self._via)
            ]
            model.add(of_part[0])
            if any(result.findings for result in of_part):
                from dml_tile.checks.advice import advised  # with all that lowers tiles

                self.status = max(self.status, FINDINGS)
                of_part = [advised(result, part, self._fixed, is_alone=len(first_parts) == 1) for result in of_part]
            yield tuple(of_part)

    def _selected(self, result: Result) -> Result:
        selected = tuple(finding for finding in result.findings if self._selection.takes(finding.rule))
        deselected = len(result.findings) - len(selected)
        return replace(result, findings=selected, deselected=deselected) if deselected else result

    def _complain(self, file: str, problem: Problem) -> None:
        complain(file, [problem])
        self.problems.append((file, problem))
        self.status = UNREADABLE
