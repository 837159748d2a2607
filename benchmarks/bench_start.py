"""Measures what a command costs in a hook, as ratios side by side in one run.

A check of one file is compared with check-jsonschema's of one workflow of GitHub's, `--version` and `--help` with a
Python that imports NumPy; with --before, also with the same commands of another checkout of the package. Times are of
the processor, the user's and the system's; the processes take turns.

    pip install '.[bench]'
    python benchmarks/bench_start.py [--before FOLDER] [--goals]
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from bench_check import SHORT
from harness import ROOT, Measure, median_ratio, process, show
from rich.table import Table

SAMPLES: Final = 15
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


def main(
    before: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A checkout to compare with.")] = None,
    samples: int = SAMPLES,
    goals: Annotated[bool, typer.Option("--goals", help="Exit with 1 where a goal is missed.")] = False,
) -> None:
    """Measure the start of commands."""
    table = Table("command", "beside", "goal", "measured", *(["beside --before"] if before else []))
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "descriptor.json").write_text(SHORT)
        Path(folder, "model.json").write_bytes((ROOT / "examples/int64.json").read_bytes())
        Path(folder, "workflow.yml").write_text(WORKFLOW)
        for what, (arguments, peer, most) in COMMANDS.items():
            here = partial(process, folder=folder, OPENBLAS_NUM_THREADS="1")
            ours = here("-P", "-m", "dml_tile", *arguments, statuses=(0, 1))
            theirs = here(*PEERS[peer])
            for run in (ours, theirs):
                run()  # once, so that bytecode and files are in the caches
            measure = Measure(what, most, median_ratio(ours, theirs, 1, samples))
            missed |= not measure.is_reached
            row = [what, peer, *measure.cells]
            if before:
                earlier = here("-P", "-m", "dml_tile", *arguments, checkout=before.resolve(), statuses=(0, 1))
                earlier()
                row.append(f"{median_ratio(ours, earlier, 1, samples):.2f}")
            table.add_row(*row)
    show(table)
    raise typer.Exit(goals and missed)


if __name__ == "__main__":
    typer.run(main)
