"""Measures what a command costs in a hook, as ratios side by side in one run.

A check of one file is compared with check-jsonschema's of one workflow of GitHub's, `--version` and `--help` with a
Python that imports NumPy; with --before, also with the same commands of another checkout of the package. Times are of
the processor, the user's and the system's; the processes take turns.

    pip install '.[bench]'
    python benchmarks/bench_start.py [--before FOLDER] [--goals]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final

import typer
from bench_check import median_ratio
from rich.console import Console
from rich.table import Table

SAMPLES: Final = 15
ROOT: Final = Path(__file__).resolve().parents[1]
DESCRIPTOR: Final = """{
    "InputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 2, 3]},
    "OutputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 6, 9]},
    "Repeats": [1, 1, 3, 3]
}"""
WORKFLOW: Final = """name: tests
on: push
jobs:
  tests:
    runs-on: ubuntu-latest
    steps:
      - run: pytest
"""

COMMANDS: Final = {
    # what: arguments, peer, the most that the ratio may be
    "check of an accepted descriptor": (("check", "descriptor.json", "-t", "6_2"), "check-jsonschema", 0.9),
    "check of an accepted DxDispatch model": (("check", "model.json", "-t", "6_2"), "check-jsonschema", 1.0),
    "check of a refused one, which names a lowering": (
        ("check", "model.json", "-t", "windows-11-21h2"),
        "check-jsonschema",
        1.0,
    ),
    "--version": (("--version",), "import numpy", 0.4),
    "--help": (("--help",), "import numpy", 1.15),
}
PEERS: Final[Mapping[str, tuple[str, ...]]] = {
    "check-jsonschema": ("-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", "workflow.yml"),
    "import numpy": ("-c", "import numpy"),
}


def process(folder: str, *command: str, checkout: Path = ROOT) -> Callable[[], object]:
    """Runs Python in a folder, with a checkout of the package; its output goes nowhere."""
    environment = os.environ | {"PYTHONPATH": str(checkout), "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run() -> None:
        done = subprocess.run(  # noqa: S603
            [sys.executable, *command], cwd=folder, env=environment, capture_output=True, check=False
        )
        assert done.returncode in (0, 1), done.stderr.decode()

    return run


def main(
    before: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A checkout to compare with.")] = None,
    samples: int = SAMPLES,
    goals: Annotated[bool, typer.Option("--goals", help="Exit with 1 where a goal is missed.")] = False,
) -> None:
    """Measure the start of commands."""
    table = Table("command", "beside", "at most", "measured", *(["beside --before"] if before else []))
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "descriptor.json").write_text(DESCRIPTOR)
        Path(folder, "model.json").write_bytes((ROOT / "examples/int64.json").read_bytes())
        Path(folder, "workflow.yml").write_text(WORKFLOW)
        for what, (arguments, peer, most) in COMMANDS.items():
            ours = process(folder, "-P", "-m", "dml_tile", *arguments)
            theirs = process(folder, *PEERS[peer])
            for run in (ours, theirs):
                run()  # once, so that bytecode and files are in the caches
            ratio = median_ratio(ours, theirs, 1, samples)
            missed |= ratio > most
            row = [what, peer, f"{most:.2f}", f"{ratio:.2f}{'' if ratio <= most else ', not reached'}"]
            if before:
                earlier = process(folder, "-P", "-m", "dml_tile", *arguments, checkout=before.resolve())
                earlier()
                row.append(f"{median_ratio(ours, earlier, 1, samples):.2f}")
            table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 100).print(table)
    raise typer.Exit(goals and missed)


if __name__ == "__main__":
    typer.run(main)
