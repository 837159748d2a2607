"""What the benchmarks share: ratios of the processor's time, processes that take turns, and the table of goals.

Times are of the processor, those of processes with their children's, so that other programs count for little.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import typer
from rich.console import Console, RenderableType
from rich.table import Table

ROOT: Final = Path(__file__).resolve().parents[1]


def processor_time() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def median_ratio(ours: Callable[[], object], theirs: Callable[[], object], calls: int, samples: int) -> float:
    """The median time of ``ours`` over that of ``theirs``, whose samples take turns."""
    taken: dict[Callable[[], object], list[float]] = {ours: [], theirs: []}
    for _ in range(samples):
        for call, times in taken.items():
            start = processor_time()
            for _ in range(calls):
                call()
            times.append(processor_time() - start)
    return statistics.median(taken[ours]) / statistics.median(taken[theirs])


def process(
    *command: str,
    folder: str | None = None,
    checkout: Path = ROOT,
    statuses: Sequence[int] = (0,),
    **variables: str,
) -> Callable[[], object]:
    """Runs Python in a folder, with a checkout of the package and these variables; its output goes nowhere."""
    environment = os.environ | {"PYTHONPATH": str(checkout)} | variables
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run() -> None:
        done = subprocess.run(  # noqa: S603
            [sys.executable, *command],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        assert done.returncode in statuses, done.stderr.decode()

    return run


class Measure(NamedTuple):
    """A ratio, and the most, or the least, that it may be."""

    what: str
    goal: float
    ratio: float
    is_least: bool = False

    @property
    def is_reached(self) -> bool:
        return self.ratio >= self.goal if self.is_least else self.ratio <= self.goal

    @property
    def cells(self) -> tuple[str, str]:
        """The goal, and what was measured."""
        side = "at least" if self.is_least else "at most"
        return f"{side} {self.goal:.2f}", f"{self.ratio:.2f}{'' if self.is_reached else ', not reached'}"


def show(*tables: RenderableType) -> None:
    """Print tables, to a file in lines of 100 characters."""
    Console(width=None if sys.stdout.isatty() else 100).print(*tables)


def show_measures(measures: Sequence[Measure], *, goals: bool = False) -> None:
    """Print a row for each; exit with 1 where a goal is missed and ``goals`` are asked for."""
    table = Table("what", "goal", "measured")
    for measure in measures:
        table.add_row(measure.what, *measure.cells)
    show(table)
    if goals and not all(measure.is_reached for measure in measures):
        raise typer.Exit(1)
