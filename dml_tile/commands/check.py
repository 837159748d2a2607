"""``dml-tile check``"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from dml_tile.commands.options import (
    Against,
    AgainstOption,
    DimsOption,
    InputShapesOption,
    TargetsOption,
    chosen_targets,
    fixed_sizes,
    require_back_end,
)
from dml_tile.terminal import console_of, forget_output


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"


def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="ONNX models, what OpenVINO reads, DxDispatch models, descriptors, lists of them or JSON lines, and "
            "folders of all these; - is standard input.",
        ),
    ],
    targets: TargetsOption = None,
    against: AgainstOption = Against.BOTH,
    output_format: Annotated[Format, typer.Option("--format", help="For people, or for programs.")] = Format.TEXT,
    dims: DimsOption = None,
    input_shapes: InputShapesOption = None,
    via: Annotated[
        str | None,
        typer.Option(
            metavar="BACKEND",
            help="Check what a back end makes of models: ort, ort-middle, ort-first, chromium, tensorflow, directmlx.",
        ),
    ] = None,
) -> None:
    """Say which tiles DirectML would accept at each target, and why not."""
    from dml_tile.checking import Checking
    from dml_tile.reports.json import json_report
    from dml_tile.reports.summary import summary_table
    from dml_tile.reports.text import print_results

    if via is not None:
        require_back_end(via)
    checking = Checking(chosen_targets(targets), against.value, fixed_sizes(dims, input_shapes), via)
    results = checking.results(files)
    try:
        if output_format == Format.JSON:
            for part in json_report(results, checking.problems):
                sys.stdout.buffer.write(part.encode())  # JSON is UTF-8 whatever the terminal speaks
        else:
            console = console_of()
            print_results(console, results, with_lowest_level=against == Against.BOTH)
            if checking.models:
                console.print(summary_table(checking.models))
        sys.stdout.flush()  # while it can still be told that it fails
    except BrokenPipeError:  # nobody reads on, as in `dml-tile check many.jsonl | head`; the status is still true
        forget_output()
        for _ in results:
            pass
    raise typer.Exit(checking.status)
