"""Measures validation, as ratios side by side in one run: to numpy.tile, to a plain loop, and to importing NumPy.

python benchmarks/bench_check.py [--count 100000]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Annotated, Final

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import dml_tile
from dml_tile import TileOperatorDesc

TARGET: Final = "4_1"
SAMPLES: Final = 9


def median_ratio(ours: Callable[[], object], theirs: Callable[[], object], calls: int, samples: int) -> float:
    """The median time of ``ours`` over that of ``theirs``, whose samples take turns."""
    taken: dict[Callable[[], object], list[float]] = {ours: [], theirs: []}
    for _ in range(samples):
        for call, times in taken.items():
            start = time.perf_counter()
            for _ in range(calls):
                call()
            times.append(time.perf_counter() - start)
    return statistics.median(taken[ours]) / statistics.median(taken[theirs])


def descriptor(width: int) -> str:
    """The reference page's example, with another width, in the canonical C spelling."""
    desc = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[1, 1, 2, width], repeats=[1, 1, 3, 3])
    return desc.model_dump_json(by_alias=True)


def one_descriptor(samples: int) -> float:
    """Reading and checking one, to numpy.tile of the same."""
    text, array = descriptor(3), np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    return median_ratio(
        lambda: dml_tile.check(TileOperatorDesc.model_validate_json(text), TARGET),
        lambda: np.tile(array, (1, 1, 3, 3)),
        2000,
        samples,
    )


def fresh_buffers(samples: int) -> float:
    """A compiled tile between buffers that it has not seen, to numpy.tile, of the reference page's example."""
    compiled = dml_tile.compile_tile(TileOperatorDesc.model_validate_json(descriptor(3)))
    array, output = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3), np.empty((1, 1, 6, 9), np.float32)
    return median_ratio(lambda: compiled.execute(array, output), lambda: np.tile(array, (1, 1, 3, 3)), 5000, samples)


def batch(count: int, samples: int) -> float:
    """Loading and checking many that are kept, to a loop that does so one by one."""
    texts = [descriptor(1 + i % 1000) for i in range(count)]

    def at_once() -> object:
        return dml_tile.check_texts(texts, TARGET)

    def one_by_one() -> object:
        tiles = [TileOperatorDesc.model_validate_json(text) for text in texts]
        return tiles, [dml_tile.check(tile, TARGET) for tile in tiles]

    return median_ratio(at_once, one_by_one, 1, min(samples, 3))


def planning(rank: int, samples: int) -> float:
    """Planning a tile of so many dimensions, to numpy.tile of the reference page's example."""
    from dml_tile.execution.planner import plan_tile

    sizes, repeats = tuple([3, 2] * (rank // 2)), (2,) * rank
    strides = [
        tuple(4 * int(np.prod(shape[i + 1 :])) for i in range(rank)) for shape in (sizes, [2 * s for s in sizes])
    ]
    array = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    plan = plan_tile.__wrapped__
    return median_ratio(lambda: plan(4, sizes, repeats, *strides), lambda: np.tile(array, (1, 1, 3, 3)), 1000, samples)


def importing(samples: int) -> float:
    """Importing dml_tile with what check() takes, to importing NumPy, each in a process of its own."""

    def process(code: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603

    nothing = median_ratio(process("import numpy"), process("pass"), 1, samples)
    both = median_ratio(
        process("import dml_tile; dml_tile.check, dml_tile.TileOperatorDesc"), process("pass"), 1, samples
    )
    return (both - 1) / (nothing - 1)


def main(
    count: Annotated[int, typer.Option(help="The descriptors of the batch.")] = 100_000, samples: int = SAMPLES
) -> None:
    """Measure validation."""
    table = Table("what", "at most", "measured")
    for what, most, ratio in (
        ("one descriptor, read and checked / numpy.tile", 3.0, one_descriptor(samples)),
        ("a compiled tile between fresh buffers / numpy.tile", 0.5, fresh_buffers(samples)),
        (f"{count} descriptors, loaded and checked / one by one", 0.3, batch(count, samples)),
        ("import dml_tile / import numpy", 2.6, importing(samples)),
        ("planning a 4-D tile / numpy.tile", 8.0, planning(4, samples)),
        ("planning an 8-D tile / numpy.tile", 30.0, planning(8, samples)),
    ):
        table.add_row(what, f"{most:.2f}", f"{ratio:.2f}{'' if ratio <= most else ', not reached'}")
    Console(width=None if sys.stdout.isatty() else 100).print(table)


if __name__ == "__main__":
    typer.run(main)
