"""Measures `dml-tile check` of a folder of descriptors, as a ratio to one Python process that loads and checks them.

Both are processes, so both pay for their start; they take turns. The command also finds the lowest level of each
descriptor, and of those that are refused the lowering, and prints what it finds.

python benchmarks/bench_folder.py [--count 1000]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from bench_check import median_ratio
from rich.console import Console
from rich.table import Table

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


def process(*command: str, statuses: Sequence[int] = (0,)) -> Callable[[], object]:
    """Runs a command; its output goes nowhere."""

    def run() -> None:
        done = subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, check=False)  # noqa: S603
        assert done.returncode in statuses

    return run


def folder_ratio(count: int, refused: int, output_format: str, samples: int) -> float:
    """The command's time, to that of the process that only loads and checks."""
    with tempfile.TemporaryDirectory() as name:
        generate(Path(name), count, refused)
        options = ("--target", TARGET, "--format", output_format)
        ours = process("-m", "dml_tile", "check", name, *options, statuses=(0, 1))
        theirs = process("-c", LOAD_AND_CHECK, name, TARGET)
        return median_ratio(ours, theirs, 1, samples)


def main(
    count: Annotated[int, typer.Option(help="The descriptors of the folder.")] = 1000, samples: int = SAMPLES
) -> None:
    """Measure the check of a folder."""
    table = Table("what", "at most", "measured")
    for what, refused, output_format, most in (
        (f"{count} descriptors, all accepted, as text", 0, "text", 3.0),
        (f"{count} descriptors, every tenth refused, as text", 10, "text", 3.0),
        (f"{count} descriptors, every tenth refused, as sarif", 10, "sarif", 3.0),
    ):
        ratio = folder_ratio(count, refused, output_format, samples)
        table.add_row(what, f"{most:.2f}", f"{ratio:.2f}{'' if ratio <= most else ', not reached'}")
    Console(width=None if sys.stdout.isatty() else 100).print(table)


if __name__ == "__main__":
    typer.run(main)
