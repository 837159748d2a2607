"""The processes of ``--jobs``, the cluster of ``--dask``, and the progress bar of a check of many files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer

from dml_tile.checks.questions import Event
from dml_tile.checks.result import CheckedFile
from dml_tile.cli.console import UNREADABLE, complain
from dml_tile.findings import unreadable
from dml_tile.reports.lines import rich_console

if TYPE_CHECKING:  # most checks start no processes
    from dml_tile.checks.sweep import Workers

MIN_FILES: Final = 2000
"""From so many files on there are several processes by default: from about 300 models on, or 1,600 files of one
descriptor each, two take less time than one (``benchmarks/bench_scale.py jobs``)."""

MAX_JOBS: Final = 8
"""The most processes by default: more would leave each too little of the memory that reading models may take."""

MAX_SECONDS_TO_CONNECT: Final = 10
"""Seconds that a cluster's scheduler may take to answer."""

_FILES_WORTH_A_PROGRESS_BAR: Final = 20


@contextmanager
def chosen_workers(jobs: int | None, dask: str | None, files: int) -> Iterator[Workers | None]:
    """Yield the workers that are asked for, else those that check so many files in the least time; None: this process.

    Processes of this machine end with the block. Complains, and exits with ``UNREADABLE``, if no more can be checked.
    """
    if dask is not None and jobs is not None:
        raise typer.BadParameter("a cluster has processes of its own; --jobs is of this machine", param_hint="--dask")
    if jobs is None and files >= MIN_FILES:
        from dml_tile.execution.mover import processor_count

        jobs = min(processor_count(), MAX_JOBS)
    jobs = jobs or 1
    if dask is None and jobs == 1:
        yield None
        return
    from concurrent.futures import BrokenExecutor

    from dml_tile.checks.sweep import processes

    try:
        with processes(jobs) if dask is None else _cluster(dask) as workers:
            yield workers
    except BrokenExecutor as error:
        complain("check", [unreadable("", str(error))])
        raise typer.Exit(UNREADABLE) from None


@contextmanager
def _cluster(address: str) -> Iterator[Workers]:
    from dml_tile.checks.sweep import Workers

    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise typer.BadParameter("needs dask.distributed: pip install distributed", param_hint="--dask") from None
    try:
        get_address_host_port(address)  # a Client of a malformed one waits and prints a traceback when the process ends
        client = Client(address, timeout=MAX_SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"no scheduler answers at {address}: {error}", param_hint="--dask") from None
    with client:
        yield Workers(client.get_executor(pure=False))


def counted_files(events: Iterator[tuple[str, Event]], total: int) -> Iterator[tuple[str, Event]]:
    """Yield events; if they are of many files, show on a terminal how many of the files are checked."""
    if total < _FILES_WORTH_A_PROGRESS_BAR or not sys.stderr.isatty():
        yield from events
        return
    from rich.progress import MofNCompleteColumn, Progress

    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    kept: list[tuple[str, Event]] = []  # for a terminal, which cannot show results and a bar at once
    with Progress(*columns, console=rich_console(sys.stderr), transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("checking", total=total)
        for file, event in events:
            progress.advance(task, isinstance(event, CheckedFile))
            if sys.stdout.isatty():
                kept.append((file, event))
            else:
                yield file, event
    yield from kept
