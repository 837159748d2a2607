"""Checking the files and folders that a command names."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

from dml_tile.findings import Against
from dml_tile.frontends.nodes import Fixed
from dml_tile.frontends.problems import Problem
from dml_tile.frontends.sources import Sources, expanded, is_model
from dml_tile.reports.advice import advised
from dml_tile.reports.result import Result, results
from dml_tile.reports.summary import ModelSummary
from dml_tile.targets import Target
from dml_tile.terminal import CLEAN, FINDINGS, UNREADABLE, complain, console_of

_FILES_WORTH_A_PROGRESS_BAR: Final = 20
_EMPTY: Final = Problem("", "the folder holds no models and no descriptors; links that leave it are not followed")


class Checking:
    """Checks files at targets, and remembers the models, what cannot be read, and the status that all amounts to."""

    def __init__(self, targets: Sequence[Target], against: Against, fixed: Fixed, via: str | None = None) -> None:
        self.status = CLEAN
        self.problems: list[tuple[str, Problem]] = []
        self.models: list[ModelSummary] = []
        self._targets = targets
        self._against: Against = against
        self._fixed = fixed
        self._via = via

    def results(self, names: Sequence[str]) -> Iterator[Result]:
        """The results of all files and folders; what cannot be read is told on stderr as it comes."""
        files = []
        for name in names:
            found = list(expanded(name))
            if not found:
                self._complain(name, _EMPTY)
            files += found
        with Sources(self._fixed) as sources:
            if len(files) < _FILES_WORTH_A_PROGRESS_BAR or not sys.stderr.isatty():
                for file in files:
                    yield from self._results_of(file, sources)
                return
            from rich.progress import Progress

            collected: list[Result] = []  # of a terminal: shown when the bar is gone, so that the two do not mix
            with Progress(console=console_of(stderr=True), transient=True, redirect_stdout=False) as progress:
                for file in progress.track(files, description="checking"):
                    if sys.stdout.isatty():
                        collected += self._results_of(file, sources)
                    else:
                        yield from self._results_of(file, sources)
            yield from collected

    def _results_of(self, file: str, sources: Sources) -> Iterator[Result]:
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
            of_part = list(results(file, part, self._targets, self._against, self._via))
            model.add(of_part[0])
            if any(result.findings for result in of_part):
                self.status = max(self.status, FINDINGS)
            for result in of_part:
                yield advised(result, part, self._fixed, is_alone=len(first_parts) == 1)

    def _complain(self, file: str, problem: Problem) -> None:
        complain(file, [problem])
        self.problems.append((file, problem))
        self.status = UNREADABLE
