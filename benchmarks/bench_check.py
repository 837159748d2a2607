"""Measures validation, as ratios side by side in one run: to numpy.tile and to importing NumPy.

    python benchmarks/bench_check.py [--goals]

Times are of the processor, those of processes with their children's, so that other programs count for little.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import dml_tile
from dml_tile import TileOperatorDesc

TARGET: Final = "4_1"
LOWEST: Final = dml_tile.Target.parse(TARGET)
SHORT: Final = """{
    "InputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 2, 3]},
    "OutputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 6, 9]},
    "Repeats": [1, 1, 3, 3]
}"""
SAMPLES: Final = 9


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


def processor_time() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def descriptor(width: int) -> str:
    """The reference page's example, with another width, in the canonical C spelling."""
    desc = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[1, 1, 2, width], repeats=[1, 1, 3, 3])
    return desc.model_dump_json(by_alias=True)


SPELLINGS: Final = {"canonical": descriptor(3), "short": SHORT}


def tiling() -> Callable[[], object]:
    """numpy.tile of the reference page's example."""
    array = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    return lambda: np.tile(array, (1, 1, 3, 3))


def from_input(samples: int) -> float:
    """Describing the example again and again."""

    def describe() -> object:
        return TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[1, 1, 2, 3], repeats=[1, 1, 3, 3])

    return median_ratio(describe, tiling(), 2000, samples)


def new_from_input(samples: int) -> float:
    """Describing inputs of the example's kind, each for the first time."""
    widths = itertools.count(1)

    def describe() -> object:
        return TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[1, 1, 2, next(widths)], repeats=[1, 1, 3, 3])

    return median_ratio(describe, tiling(), 2000, samples)


def checking(samples: int) -> float:
    """Checking it."""
    desc = TileOperatorDesc.model_validate_json(descriptor(3))
    return median_ratio(lambda: dml_tile.check(desc, LOWEST), tiling(), 5000, samples)


def one_descriptor(spelling: str, samples: int) -> float:
    """Reading it in a spelling."""
    text = SPELLINGS[spelling]
    return median_ratio(lambda: TileOperatorDesc.model_validate_json(text), tiling(), 2000, samples)


def refused(samples: int) -> float:
    """Checking one that is refused, to one that is accepted."""
    wrong = TileOperatorDesc.model_validate_json(descriptor(3).replace('"Repeats":[1,1,3,3]', '"Repeats":[1,1,3,2]'))
    right = TileOperatorDesc.model_validate_json(descriptor(3))
    assert dml_tile.check(wrong, LOWEST)
    return median_ratio(lambda: dml_tile.check(wrong, LOWEST), lambda: dml_tile.check(right, LOWEST), 1000, samples)


def importing(samples: int) -> float:
    """Importing dml_tile with what check() takes, to importing NumPy, each in a process of its own."""

    def process(code: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603

    nothing = median_ratio(process("import numpy"), process("pass"), 1, samples)
    both = median_ratio(
        process("import dml_tile; dml_tile.check, dml_tile.TileOperatorDesc"), process("pass"), 1, samples
    )
    return (both - 1) / (nothing - 1)


def checking_a_file(samples: int) -> float:
    """``dml-tile check`` of a file, to importing NumPy and pydantic, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tile.json")
        path.write_text(descriptor(3))
        command = [sys.executable, "-m", "dml_tile", "check", str(path)]
        imports = [sys.executable, "-c", "import numpy, pydantic"]

        def run(arguments: list[str]) -> object:
            return subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)  # noqa: S603

        return median_ratio(lambda: run(command), lambda: run(imports), 1, samples)


def main(
    goals: Annotated[bool, typer.Option("--goals", help="Exit 1 where a goal is missed.")] = False,
    samples: int = SAMPLES,
) -> None:
    """Measure validation."""
    table = Table("what", "at most", "measured")
    measures = (
        ("from_input, known / numpy.tile", 2.0, from_input(samples)),
        ("from_input, new / numpy.tile", 2.0, new_from_input(samples)),
        ("check / numpy.tile", 0.8, checking(samples)),
        *(
            (f"one JSON descriptor, {spelling} spelling / numpy.tile", 2.5, one_descriptor(spelling, samples))
            for spelling in SPELLINGS
        ),
        ("a refused check / an accepted one", 6.0, refused(samples)),
        ("import dml_tile / import numpy", 1.8, importing(samples)),
        ("dml-tile check / import numpy, pydantic", 2.0, checking_a_file(samples)),
    )
    for what, most, ratio in measures:
        table.add_row(what, f"{most:.2f}", f"{ratio:.2f}{'' if ratio <= most else ', not reached'}")
    Console(width=None if sys.stdout.isatty() else 100).print(table)
    if goals and any(ratio > most for _, most, ratio in measures):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
