"""Measures `dml-tile check` of a folder of descriptors, as a ratio to one Python process that loads and checks them.

Both are processes, so both pay for their start; they take turns. The command also finds the lowest level of each
descriptor, and of those that are refused the lowering, and prints what it finds. Then the same for large files of other
JSON, as a ratio to reading them, and for small files of both kinds, to another checkout of the package.

python benchmarks/bench_folder.py [--count 1000] [--megabytes 100] [--before FOLDER]
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer
from harness import ROOT, Measure, median_ratio, process, show_measures

from dml_tile import TileOperatorDesc

TARGET: Final = "windows-11-21h2"
SAMPLES: Final = 9

LOAD_AND_CHECK: Final = """
import sys
from pathlib import Path
from dml_tile import TileOperatorDesc, check
for path in sorted(Path(sys.argv[1]).iterdir()):
    check(TileOperatorDesc.model_validate_json(path.read_bytes()), sys.argv[2])
"""


def generate(folder: Path, count: int, refused: int) -> None:
    """Descriptors of as many shapes; of those that are ``refused``, one in so many, the data type is INT64."""
    for i in range(count):
        data_type = "INT64" if refused and i % refused == 0 else "FLOAT32"
        desc = TileOperatorDesc.from_input(data_type=data_type, sizes=[1, 1, 2, i + 1], repeats=[1, 1, 3, 3])
        (folder / f"{i:06}.json").write_text(desc.model_dump_json(by_alias=True, indent=2))


READ: Final = """
import sys
from pathlib import Path
for path in sorted(Path(sys.argv[1]).iterdir()):
    path.read_bytes()
"""


def other(folder: Path, number: int, size: int) -> None:
    """A file of other JSON, of so many bytes at least."""
    row = {"id": number, "name": "input", "type": "Sensor", "path": f"models/{number}.safetensors", "values": [0.5] * 9}
    rows = ",\n".join(json.dumps(row | {"row": i}) for i in range(1000))
    text = ",\n".join([rows] * (size // len(rows) + 1)) if size else json.dumps(row)
    (folder / f"other{number:06}.json").write_text(f"[{text}]")


def folder_ratio(count: int, refused: int, output_format: str, samples: int) -> float:
    """The command's time, to that of the process that only loads and checks."""
    with tempfile.TemporaryDirectory() as name:
        generate(Path(name), count, refused)
        options = ("--target", TARGET, "--format", output_format)
        ours = process("-m", "dml_tile", "check", name, *options, statuses=(0, 1))
        theirs = process("-c", LOAD_AND_CHECK, name, TARGET)
        return median_ratio(ours, theirs, 1, samples)


def other_ratio(count: int, megabytes: int, samples: int) -> float:
    """The time of checking a descriptor beside files of other JSON, to that of reading them."""
    with tempfile.TemporaryDirectory() as name:
        generate(Path(name), 1, 0)
        for i in range(count):
            other(Path(name), i, megabytes * 10**6)
        return median_ratio(process("-m", "dml_tile", "check", name), process("-c", READ, name), 1, samples)


def ratio_to(before: str, count: int, samples: int) -> float:
    """The time of checking small files, half of them descriptors, to that of another checkout of the package."""
    with tempfile.TemporaryDirectory() as name:
        generate(Path(name), count // 2, 0)
        for i in range(count // 2):
            other(Path(name), i, 0)
        command = "-P", "-m", "dml_tile", "check", name, "--jobs", "1"
        ours, theirs = (process(*command, checkout=folder) for folder in (ROOT, Path(before)))
        return median_ratio(ours, theirs, 1, samples)


def main(
    count: Annotated[int, typer.Option(help="The descriptors of the folder.")] = 1000,
    megabytes: Annotated[int, typer.Option(help="The size of each of ten files of other JSON.")] = 100,
    before: Annotated[str, typer.Option(metavar="FOLDER", help="A checkout of the package to compare with.")] = "",
    samples: int = SAMPLES,
) -> None:
    """Measure the check of a folder."""
    measures = [
        Measure(what, 3.0, folder_ratio(count, refused, output_format, samples))
        for what, refused, output_format in (
            (f"{count} descriptors, all accepted, as text", 0, "text"),
            (f"{count} descriptors, every tenth refused, as text", 10, "text"),
            (f"{count} descriptors, every tenth refused, as sarif", 10, "sarif"),
        )
    ]
    others = f"ten files of {megabytes} MB of other JSON, to reading them"
    measures.append(Measure(others, 6.0, other_ratio(10, megabytes, samples)))
    if before:
        measures.append(Measure(f"10,000 small files, to {before}", 1.1, ratio_to(before, 10_000, samples)))
    show_measures(measures)


if __name__ == "__main__":
    typer.run(main)
