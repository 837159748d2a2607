"""Checking the files and folders that a command names, with a progress bar where they are many."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Final

from dml_tile.checks.files import Checking
from dml_tile.checks.result import Result
from dml_tile.cli.console import console_of

_FILES_WORTH_A_PROGRESS_BAR: Final = 20


def checked_files(checking: Checking, names: Sequence[str]) -> Iterator[tuple[Result, ...]]:
    """The results of all files and folders, tile by tile, one for each target."""
    files = checking.files(names)
    if len(files) < _FILES_WORTH_A_PROGRESS_BAR or not sys.stderr.isatty():
        yield from checking.results(files)
        return
    from rich.progress import Progress

    collected: list[tuple[Result, ...]] = []  # for a terminal, which cannot show results and a bar at once
    with Progress(console=console_of(stderr=True), transient=True, redirect_stdout=False) as progress:
        results = checking.results(progress.track(files, description="checking"))
        if sys.stdout.isatty():
            collected += results
        else:
            yield from results
    yield from collected
