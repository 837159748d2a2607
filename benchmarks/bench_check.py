"""Measures validation, as ratios side by side in one run: to numpy.tile and to importing NumPy.

With --before, also JSON lines of operators and tiles, to another checkout of the package; the processes take turns.

    python benchmarks/bench_check.py [--before FOLDER] [--goals]
"""

from __future__ import annotations

import itertools
import json
import lzma
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer
from harness import ROOT, Measure, median_ratio, process, show_measures

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
FIVE_TARGETS: Final = ("3_0", "4_0", "5_0", "6_2", "6_4")
CHECK_LINES: Final = """
import re, sys, time
from contextlib import suppress
from pathlib import Path
from dml_tile.__main__ import main

first, *arguments = sys.argv[1:]
for file in (first, arguments[0]):  # the first imports what checks need
    sys.argv[1:] = ["check", file, *arguments[1:]]
    start = time.process_time()
    with suppress(SystemExit):
        main()
    taken = time.process_time() - start
largest = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
print(taken, int(largest[1]) / 1024, file=sys.stderr)
"""
"""Checks a file of one line, then another, and prints seconds of the processor and the largest memory in MB.

Linux counts in a process's ru_maxrss what the process that started it had.
"""


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
    nothing, of_numpy, ours = (
        process("-c", code)
        for code in ("pass", "import numpy", "import dml_tile; dml_tile.check, dml_tile.TileOperatorDesc")
    )
    numpy, both = (median_ratio(each, nothing, 1, samples) for each in (of_numpy, ours))
    return (both - 1) / (numpy - 1)


def checking_a_file(samples: int) -> float:
    """``dml-tile check`` of a file, to importing NumPy and pydantic, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tile.json")
        path.write_text(descriptor(3))
        ours = process("-m", "dml_tile", "check", str(path))
        return median_ratio(ours, process("-c", "import numpy, pydantic"), 1, samples)


def write_lines(folder: Path) -> None:
    """Write the recorded operators, those of them that were accepted, and random tiles, as JSON lines."""
    with lzma.open(ROOT / "tests/data/operators.jsonl.xz", "rt") as file:
        rows = [json.loads(line) for line in file]
    accepted = dict.fromkeys(json.dumps(row["desc"]) for row in rows if row["hresult"] == "0x00000000")
    draw = random.Random(5)  # noqa: S311
    tiles = dict[str, None]()
    while len(tiles) < len(accepted):
        rank = draw.randint(1, 8)
        sizes, repeats = ([draw.randint(1, 6) for _ in range(rank)] for _ in range(2))
        data_type = draw.choice(["FLOAT32", "FLOAT16", "INT64", "UINT8"])
        desc = TileOperatorDesc.from_input(data_type=data_type, sizes=sizes, repeats=repeats)
        tiles[desc.model_dump_json(by_alias=True)] = None
    lines = {"operators": accepted, "tiles": tiles, "all": [json.dumps(row["desc"]) for row in rows]}
    for name, texts in lines.items():
        (folder / f"{name}.jsonl").write_text("\n".join(texts))
        (folder / f"{name}_first.jsonl").write_text(next(iter(texts)))


def check_lines(folder: Path, name: str, checkout: Path, *options: str) -> tuple[float, float]:
    """The seconds, start aside, and the largest memory in MB of a check of JSON lines."""
    arguments = [str(folder / f"{name}_first.jsonl"), str(folder / f"{name}.jsonl"), *options]
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-P", "-c", CHECK_LINES, *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=True,
        text=True,
    )
    seconds, megabytes = map(float, done.stderr.splitlines()[-1].split())
    return seconds, megabytes


def lines_measures(before: Path, samples: int) -> list[Measure]:
    """What JSON lines take, to another checkout; a further target and the memory of this one alone."""
    found = list[Measure]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lines(folder)
        for lines, form, most in (
            ("operators", "concise", 0.55),
            ("operators", "jsonl", 0.8),
            ("tiles", "concise", 0.4),
            ("tiles", "jsonl", 0.6),
        ):
            options = "--format", form, "--target", "6_2"
            turns = [[check_lines(folder, lines, at, *options)[0] for at in (ROOT, before)] for _ in range(samples)]
            ours, theirs = (statistics.median(times) for times in zip(*turns, strict=True))
            found.append(Measure(f"different {lines} in JSON lines, {form} / --before", most, ours / theirs))
        targets = [["--target=6_4"], [f"--target={each}" for each in FIVE_TARGETS]]
        turns = [
            [check_lines(folder, "operators", ROOT, "--format=concise", *at)[0] for at in targets]
            for _ in range(samples)
        ]
        one, five = (statistics.median(times) for times in zip(*turns, strict=True))
        count = len((folder / "operators.jsonl").read_text().splitlines())
        found.append(Measure("each further target of an operator, ms", 0.05, (five - one) / 4 / count * 1000))
        memory = check_lines(folder, "all", ROOT, "--format=concise", "--target=6_2")[1]
        found.append(Measure("memory of 10,000 operators, MB", 46, memory))
    return found


def main(
    before: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A checkout to compare with.")] = None,
    goals: Annotated[bool, typer.Option("--goals", help="Exit 1 where a goal is missed.")] = False,
    samples: int = SAMPLES,
) -> None:
    """Measure validation."""
    measures = [
        Measure("from_input, known / numpy.tile", 2.0, from_input(samples)),
        Measure("from_input, new / numpy.tile", 2.0, new_from_input(samples)),
        Measure("check / numpy.tile", 0.8, checking(samples)),
        *(
            Measure(f"one JSON descriptor, {spelling} spelling / numpy.tile", 2.5, one_descriptor(spelling, samples))
            for spelling in SPELLINGS
        ),
        Measure("a refused check / an accepted one", 6.0, refused(samples)),
        Measure("import dml_tile / import numpy", 1.8, importing(samples)),
        Measure("dml-tile check / import numpy, pydantic", 2.0, checking_a_file(samples)),
        *(lines_measures(before.resolve(), samples) if before else ()),
    ]
    show_measures(measures, goals=goals)


if __name__ == "__main__":
    typer.run(main)
