"""Measures tiling against the peers that are installed, side by side in one run; above 1, dml_tile is faster.

    python benchmarks/bench_tile.py [--random COUNT --seed SEED --smallest BYTES --largest BYTES] [--goals]
                                    [--only TEXT] [--peer NAME] [--processor-time] [--json FILE] [--plot FILE]

It measures a bound tile, ``tile`` with an output and anew, and ``execute`` of a descriptor, on two threads. All write
to the same memory, touched before, but for numpy.tile, which cannot. Samples of the peers take turns in a random order,
each after a pause in which the threads of others come to rest, and after calls of its own that are not counted, until
its threads have found their processors; a ratio is that of medians. Each result is compared with numpy.tile's first.
"""

from __future__ import annotations

import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import typer
from peers import PEERS, WAYS, Call, Case, Ready, installed
from rich import box
from rich.console import Console
from rich.table import Table
from shapes import LARGEST, MIN_BYTES, SHAPES, Shape, random_shapes

SAMPLES: Final = 5
SECONDS: Final = 0.05  # that a sample takes at least
SETTLING: Final = 2.0  # times as long are the calls that are not counted
PAUSE: Final = 0.02  # seconds; the threads of torch and onnxruntime spin for a while
TRIALS: Final = 5
EXAMPLE: Final = "the reference page's example"


class Goal(NamedTuple):
    """The least that is asked of the ratios to a peer."""

    way: str
    peer: str
    what: str
    measure: Callable[[list[float]], float]
    least: float


def share_of_equals(ratios: list[float]) -> float:
    """The share of the shapes on which a peer is at most a tenth faster."""
    return statistics.mean(ratio >= 0.9 for ratio in ratios)


MEAN: Final = ("geometric mean", statistics.geometric_mean)
WORST: Final = ("worst", min)
GOALS: Final = (
    Goal("bound", "numpy.tile", *MEAN, 2.6),
    Goal("bound", "numpy.tile", *WORST, 1.0),
    Goal("bound", "np.copyto", *MEAN, 2.3),
    Goal("bound", "np.copyto", *WORST, 0.9),
    Goal("bound", "onnxruntime", *MEAN, 2.3),
    Goal("bound", "onnxruntime", *WORST, 0.9),
    Goal("bound", "openvino", *MEAN, 4.0),
    Goal("bound", "openvino", *WORST, 1.0),
    Goal("bound", "torch", *MEAN, 1.7),
    Goal("bound", "torch", "share of at least 0.9", share_of_equals, 0.8),
    Goal("bound", "memset", "median, dense outputs of 25 MB and more", statistics.median, 0.75),
    Goal("tile", "numpy.tile", *MEAN, 1.3),
    Goal("tile", "numpy.tile", *WORST, 0.5),
    Goal("execute", "numpy.tile", *MEAN, 1.3),
    Goal("execute", "numpy.tile", *WORST, 0.5),
)
EXAMPLE_GOALS: Final = {"bound": 5.0, "tile": 1.05, "execute": 1.1, "tile anew": 1.2}


@dataclass(frozen=True)
class Row:
    """A shape, and the median seconds of each way to call dml_tile and of each peer."""

    shape: Shape
    seconds: dict[str, float]

    def ratio(self, way: str, peer: str) -> float | None:
        """The peer's time to that of the way; None for a peer that cannot do it."""
        return self.seconds[peer] / self.seconds[way] if peer in self.seconds else None

    @property
    def gigabytes(self) -> float:
        """Written in a second by a bound tile."""
        return self.shape.written / self.seconds["bound"] / 1e9


Clock = Callable[[], float]


def measured(shape: Shape, peers: list[str], samples: int, seconds: float, clock: Clock = time.perf_counter) -> Row:
    """One row of the table."""
    case = Case(shape)
    ready: dict[str, Ready] = {name: way(case) for name, way in WAYS.items()}
    ready |= {name: made for name in peers if (made := PEERS[name](case)) is not None}
    expected = np.tile(case.input, shape.repeats)
    for name, one in ready.items():
        case.memory.fill(255)
        one.call()
        if one.fills and not np.array_equal(case.output, expected):
            raise SystemExit(f"{name} is wrong for {shape.name}")
    del expected
    counts = {name: _calls(one, seconds, clock) for name, one in ready.items()}
    times: dict[str, list[float]] = {name: [] for name in ready}
    order = np.random.default_rng(1)
    for _ in range(samples):
        for name in order.permutation(list(ready)):
            time.sleep(PAUSE)
            _timed(ready[name].call, math.ceil(SETTLING * counts[name]), clock)
            times[name].append(_timed(ready[name].call, counts[name], clock))
    return Row(shape, {name: statistics.median(taken) for name, taken in times.items()})


def _timed(call: Call, count: int, clock: Clock) -> float:
    """Seconds a call."""
    start = clock()
    for _ in range(count):
        call()
    return (clock() - start) / count


def _calls(one: Ready, seconds: float, clock: Clock) -> int:
    """Return the number of calls that take so long, by the fastest of some: others may have waited for a program."""
    return max(1, math.ceil(seconds / min(_timed(one.call, 1, clock) for _ in range(TRIALS))))


def _table(*columns: str) -> Table:
    """A table for a terminal, or in Markdown."""
    return Table(*columns) if sys.stdout.isatty() else Table(*columns, box=box.MARKDOWN)


def ratios(rows: list[Row], way: str, peer: str) -> list[float]:
    """Those of all shapes that the peer can do."""
    return [ratio for row in rows if (ratio := row.ratio(way, peer)) is not None]


def ratio_table(rows: list[Row], peers: list[str]) -> Table:
    """The shapes, one a row, and the ratios to a bound tile."""
    table = _table("shape", "MB", "GB/s", *peers)
    for column in table.columns:
        column.no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        found = [row.ratio("bound", peer) for peer in peers]
        shown = ["" if ratio is None else f"{ratio:.2f}" for ratio in found]
        table.add_row(row.shape.name, f"{row.shape.written / 1e6:.2f}", f"{row.gigabytes:.1f}", *shown)
    return table


def summary_table(rows: list[Row], peers: list[str]) -> Table:
    """The geometric mean, the worst ratio and the share of at least 1, for each way and peer."""
    table = _table("called as", "peer", "shapes", "geometric mean", "worst", "share of at least 1")
    for column in table.columns[2:]:
        column.justify = "right"
    for way in WAYS:
        for peer in peers:
            if found := ratios(rows, way, peer):
                share = statistics.mean(ratio >= 1 for ratio in found)
                mean = statistics.geometric_mean(found)
                table.add_row(way, peer, str(len(found)), f"{mean:.2f}", f"{min(found):.2f}", f"{share:.0%}")
    return table


def goal_table(rows: list[Row], example: Row) -> tuple[Table, bool]:
    """The goals, and whether all that could be measured are reached."""
    table = _table("called as", "goal", "at least", "measured")
    measures = [
        (goal.way, f"{goal.peer}: {goal.what}", goal.least, float(goal.measure(found)))
        for goal in GOALS
        if (found := ratios(rows, goal.way, goal.peer))
    ]
    for way, least in EXAMPLE_GOALS.items():
        measures.append((way, f"numpy.tile: {EXAMPLE}", least, example.ratio(way, "numpy.tile") or 0.0))
    for way, what, least, value in measures:
        table.add_row(way, what, f"{least:.2f}", f"{value:.2f}{'' if value >= least else ', not reached'}")
    return table, all(value >= least for _, _, least, value in measures)


def record(rows: list[Row], peers: list[str]) -> dict[str, Any]:
    """All of it, for programs."""
    packages = ["numpy", *(name for name in ("torch", "onnxruntime", "openvino") if name in peers)]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {"processor": platform.machine(), "python": platform.python_version()},
        "versions": {name: version(name) for name in packages},
        "rows": [{"shape": row.shape.name, "bytes": row.shape.written, "seconds": row.seconds} for row in rows],
    }


def plot(rows: list[Row], peers: list[str], path: Path) -> None:
    """The ratios, by matplotlib (extra ``bench``), as PNG, SVG or whatever the suffix says."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 0.3 * len(rows) + 2), layout="constrained")
    for name, marker in zip(peers, "os^Dv*", strict=False):
        points = [(ratio, i) for i, row in enumerate(rows) if (ratio := row.ratio("bound", name)) is not None]
        ratios, places = zip(*points, strict=True)
        axes.scatter(ratios, places, label=name, marker=marker, s=28)
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
    random: Annotated[int, typer.Option(help="So many random shapes instead of the named ones.")] = 0,
    seed: Annotated[int, typer.Option(help="Which random shapes.")] = 0,
    smallest: Annotated[int, typer.Option(help="The bytes of the smallest random output.")] = MIN_BYTES,
    largest: Annotated[int, typer.Option(help="The bytes of the largest random output.")] = LARGEST,
    goals: Annotated[bool, typer.Option("--goals", help="Exit 1 where a goal is missed.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to a file.")] = None,
    plot_file: Annotated[Path | None, typer.Option("--plot", help="Draw the ratios to a file.")] = None,
    peer: Annotated[list[str] | None, typer.Option(help="A peer, instead of all that are installed.")] = None,
    processor_time: Annotated[
        bool, typer.Option("--processor-time", help="Measure the time of the processors, as beside other programs.")
    ] = False,
    samples: int = SAMPLES,
    seconds: float = SECONDS,
) -> None:
    """Measure tiling against the peers that are installed."""
    peers = [name for name in installed() if not peer or name in peer]
    clock = time.process_time if processor_time else time.perf_counter
    shapes = random_shapes(random, seed, largest, smallest) if random else list(SHAPES)
    shapes = [shape for shape in shapes if not only or any(text in shape.name for text in only)]
    console = Console(width=None if sys.stdout.isatty() else 140)
    example = measured(next(shape for shape in SHAPES if shape.name == EXAMPLE), peers, samples, seconds, clock)
    rows = []
    for shape in shapes:
        rows.append(measured(shape, peers, samples, seconds, clock))
        print(f"{shape.name}: {rows[-1].gigabytes:.1f} GB/s", file=sys.stderr)  # noqa: T201
    table, is_reached = goal_table(rows, example)
    console.print(ratio_table(rows, peers), summary_table(rows, peers), table, sep="\n")
    if json_file:
        json_file.write_text(json.dumps(record(rows, peers), indent=2) + "\n")
    if plot_file:
        plot(rows, peers, plot_file)
    if goals and not is_reached:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
