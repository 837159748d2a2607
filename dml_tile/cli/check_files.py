"""Checking the files and folders that a command names, with a progress bar where they are many."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer

from dml_tile.checks.files import Checking
from dml_tile.checks.one_file import Engine, Event, FileCheck, FileEnd, in_this_process
from dml_tile.checks.result import Result
from dml_tile.cli.console import console_of
from dml_tile.execution.processors import processor_count

if TYPE_CHECKING:
    from rich.progress import Progress

_FILES_WORTH_A_PROGRESS_BAR: Final = 20
MIN_FILES: Final = 2000
"""From so many files on there are several processes by default: from about 300 models on, or 1,600 files of one
descriptor each, two take less time than one (``benchmarks/bench_scale.py jobs``)."""

MAX_JOBS: Final = 8
"""The most processes by default: more would leave each too little of the memory that reading models may take."""

MAX_SECONDS_TO_CONNECT: Final = 10
"""Seconds that a cluster's scheduler may take to answer."""


def checked_files(
    checking: Checking, names: Sequence[str], engine: Engine | None = None
) -> Iterator[tuple[Result, ...]]:
    """The results of all files and folders, tile by tile, one for each target.

    The engine checks them; by default one process, or several where that takes less time.
    """
    files = checking.files(names)
    engine = engine or engine_for(len(files))
    if len(files) < _FILES_WORTH_A_PROGRESS_BAR or not sys.stderr.isatty():
        yield from checking.results(files, engine)
        return
    collected: list[tuple[Result, ...]] = []  # for a terminal, which cannot show results and a bar at once
    with _progress() as progress:
        results = checking.results(files, _counted(engine, progress, len(files)))
        if sys.stdout.isatty():
            collected += results
        else:
            yield from results
    yield from collected


def engine_for(count: int) -> Engine:
    """The engine that checks so many files in the least time."""
    return engine_of(min(processor_count(), MAX_JOBS) if count >= MIN_FILES else 1)


def engine_of(jobs: int) -> Engine:
    """The engine of so many processes."""
    if jobs == 1:
        return in_this_process
    from dml_tile.sweeps.processes import in_processes  # with all that starts processes

    return in_processes(jobs)


@contextmanager
def chosen_engine(jobs: int | None, dask: str | None) -> Iterator[Engine | None]:
    """The engine of so many processes, or of a Dask cluster; None if neither is asked for. Raises OutputError."""
    if dask is not None and jobs is not None:
        raise typer.BadParameter("a cluster has processes of its own; --jobs is of this machine", param_hint="--dask")
    if dask is None:
        yield engine_of(jobs) if jobs else None
        return
    try:
        from distributed import Client
    except ImportError:
        raise typer.BadParameter("needs dask.distributed: pip install distributed", param_hint="--dask") from None
    from dml_tile.sweeps.cluster import on_cluster

    try:
        client = Client(dask, timeout=MAX_SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"no scheduler answers at {dask}: {error}", param_hint="--dask") from None
    with client:
        yield on_cluster(client)


def _progress() -> Progress:
    """A bar with the number of files, the rate, and the time that is left."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("checking"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} files/s,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    return Progress(*columns, console=console_of(stderr=True), transient=True, redirect_stdout=False)


def _counted(engine: Engine, progress: Progress, total: int) -> Engine:
    """The engine, with the files counted on a bar as they end."""

    def counted(check: FileCheck, files: Iterable[str]) -> Iterator[tuple[str, Event]]:
        task = progress.add_task("", total=total, rate="-")
        for file, event in engine(check, files):
            yield file, event
            if isinstance(event, FileEnd):
                speed = progress.tasks[0].speed
                progress.update(task, advance=1, rate="-" if speed is None else f"{speed:.0f}")

    return counted
