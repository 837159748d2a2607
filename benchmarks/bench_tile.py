"""Measures tiling against the peers that are installed, side by side in one run; above 1, dml_tile is faster.

    python benchmarks/bench_tile.py [--only TEXT] [--json FILE] [--plot FILE]

All write to the same memory, touched before, but for numpy.tile, which cannot. Samples of the peers take turns in a
random order, each after a pause in which the threads of others come to rest, and after calls of its own that are not
counted, until its threads have found their processors; a ratio is that of medians. Each result is compared with
numpy.tile's first.
"""

from __future__ import annotations

import json
import math
import platform
import statistics
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from peers import PEERS, Call, Case, Ready, dml_tile, installed
from rich import box
from rich.console import Console
from rich.table import Table
from shapes import SHAPES, Shape

SAMPLES: Final = 5
SECONDS: Final = 0.05  # that a sample takes at least
SETTLING: Final = 2.0  # times as long are the calls that are not counted
PAUSE: Final = 0.02  # seconds; the threads of torch and onnxruntime spin for a while
PLAIN: Final = "plain copies"

GOALS: Final = (
    # peer, what is asked of its ratios, what they are, the least
    ("numpy.tile", "every shape", min, 1.0),
    ("numpy.tile", "geometric mean", statistics.geometric_mean, 3.0),
    ("np.copyto", "every shape", min, 0.9),
    ("np.copyto", "geometric mean", statistics.geometric_mean, 2.0),
    ("torch", "every shape", min, 0.7),
    ("torch", "share of shapes of at least 1", lambda ratios: statistics.mean(ratio >= 1 for ratio in ratios), 0.8),
    ("torch", "geometric mean", statistics.geometric_mean, 1.3),
    ("onnxruntime", "every shape", min, 1.0),
    ("onnxruntime", "geometric mean", statistics.geometric_mean, 2.0),
    ("openvino", "every shape", min, 1.0),
    ("openvino", "geometric mean", statistics.geometric_mean, 2.0),
    ("memset", "every dense output of 25 MB and more", min, 0.8),
)
EASED: Final = 0.95
"""What is asked of plain copies where every shape is to be as fast."""


@dataclass(frozen=True)
class Row:
    """A shape, dml_tile's median in seconds, and the ratios to it."""

    shape: Shape
    seconds: float
    ratios: dict[str, float]

    @property
    def gigabytes(self) -> float:
        """Written in a second."""
        return self.shape.written / self.seconds / 1e9


def measured(shape: Shape, peers: list[str], samples: int, seconds: float) -> Row:
    """One row of the table."""
    case = Case(shape)
    ready: dict[str, Ready] = {"dml_tile": dml_tile(case)}
    ready |= {name: made for name in peers if (made := PEERS[name](case)) is not None}
    expected = np.tile(case.input, shape.repeats)
    for name, one in ready.items():
        case.memory.fill(255)
        one.call()
        if one.fills and not np.array_equal(case.output, expected):
            raise SystemExit(f"{name} is wrong for {shape.name}")
    del expected
    counts = {name: _calls(one, seconds) for name, one in ready.items()}
    times: dict[str, list[float]] = {name: [] for name in ready}
    order = np.random.default_rng(1)
    for _ in range(samples):
        for name in order.permutation(list(ready)):
            time.sleep(PAUSE)
            _timed(ready[name].call, math.ceil(SETTLING * counts[name]))
            times[name].append(_timed(ready[name].call, counts[name]))
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    ours = medians.pop("dml_tile")
    return Row(shape, ours, {name: taken / ours for name, taken in medians.items()})


def _timed(call: Call, count: int) -> float:
    """Seconds a call."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def _calls(one: Ready, seconds: float) -> int:
    start = time.perf_counter()
    one.call()
    return max(1, math.ceil(seconds / (time.perf_counter() - start)))


def _table(*columns: str) -> Table:
    """A table for a terminal, or in Markdown."""
    return Table(*columns) if sys.stdout.isatty() else Table(*columns, box=box.MARKDOWN)


def ratio_table(rows: list[Row], peers: list[str]) -> Table:
    """The shapes, one a row, and the geometric means."""
    table = _table("shape", "MB", "GB/s", *peers)
    for column in table.columns:
        column.no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        ratios = [f"{row.ratios[name]:.2f}" if name in row.ratios else "" for name in peers]
        table.add_row(row.shape.name, f"{row.shape.written / 1e6:.2f}", f"{row.gigabytes:.1f}", *ratios)
    if sys.stdout.isatty():
        table.add_section()
    found = {name: [row.ratios[name] for row in rows if name in row.ratios] for name in peers}
    means = [f"{statistics.geometric_mean(ratios):.2f}" if ratios else "" for ratios in found.values()]
    table.add_row("geometric mean", "", "", *means)
    return table


def goal_table(rows: list[Row]) -> Table:
    """What is aimed at, and what was reached."""
    table = _table("goal", "at least", "measured")
    for peer, what, measure, least in GOALS:
        ratios = [
            row.ratios[peer] / (EASED if row.shape.is_plain_copy and least == 1.0 else 1.0)
            for row in rows
            if peer in row.ratios
        ]
        if ratios:
            value = float(measure(ratios))
            table.add_row(f"{peer}: {what}", f"{least:.2f}", f"{value:.2f}{'' if value >= least else ', not reached'}")
    return table


def record(rows: list[Row], peers: list[str]) -> dict[str, Any]:
    """All of it, for programs."""
    packages = ["numpy", *(name for name in ("torch", "onnxruntime", "openvino") if name in peers)]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {"processor": platform.machine(), "python": platform.python_version()},
        "versions": {name: version(name) for name in packages},
        "rows": [
            {"shape": row.shape.name, "bytes": row.shape.written, "seconds": row.seconds, "ratios": row.ratios}
            for row in rows
        ],
    }


def plot(rows: list[Row], peers: list[str], path: Path) -> None:
    """The ratios, by matplotlib (extra ``bench``), as PNG, SVG or whatever the suffix says."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 0.3 * len(rows) + 2), layout="constrained")
    for name, marker in zip(peers, "os^Dv*", strict=False):
        points = [(row.ratios[name], i) for i, row in enumerate(rows) if name in row.ratios]
        axes.scatter(*zip(*points, strict=True), label=name, marker=marker, s=28)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [row.shape.name for row in rows])
    axes.invert_yaxis()
    axes.grid(visible=True, axis="x", alpha=0.3)
    axes.set_xlabel("their time / dml_tile's (right of the line, dml_tile is faster)")
    figure.legend(loc="outside upper center", ncols=len(peers))
    figure.savefig(path, dpi=120)


def main(
    only: Annotated[list[str] | None, typer.Option(help="Shapes whose names hold this.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to a file.")] = None,
    plot_file: Annotated[Path | None, typer.Option("--plot", help="Draw the ratios to a file.")] = None,
    samples: int = SAMPLES,
    seconds: float = SECONDS,
) -> None:
    """Measure tiling against the peers that are installed."""
    peers = installed()
    shapes = [shape for shape in SHAPES if not only or any(text in shape.name for text in only)]
    console = Console(width=None if sys.stdout.isatty() else 120)
    rows = []
    for shape in shapes:
        rows.append(measured(shape, peers, samples, seconds))
        print(f"{shape.name}: {rows[-1].gigabytes:.1f} GB/s", file=sys.stderr)  # noqa: T201
    console.print(ratio_table(rows, peers), goal_table(rows), sep="\n")
    if json_file:
        json_file.write_text(json.dumps(record(rows, peers), indent=2) + "\n")
    if plot_file:
        plot(rows, peers, plot_file)


if __name__ == "__main__":
    typer.run(main)
