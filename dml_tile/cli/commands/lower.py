"""``dml-tile lower``"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from dml_tile.cli.commands.options import (
    DimsOption,
    InferOption,
    InputShapesOption,
    TargetsOption,
    known_shapes,
    one_target,
)
from dml_tile.cli.console import ExitStatus
from dml_tile.geometry.chain import MAX_STEPS


class LoweringFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    CPP = "cpp"
    PYTHON = "python"


def lower(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What check takes, one file or folder; - is standard input.")
    ],
    targets: TargetsOption = None,
    output_format: Annotated[
        LoweringFormat,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="text: tables; json: a DxDispatch model of one tile; cpp, python: code that builds the steps.",
        ),
    ] = LoweringFormat.TEXT,
    pointer: Annotated[
        str | None,
        typer.Option(metavar="POINTER", help="The tile to lower: the text after # in the output of check."),
    ] = None,
    no_float_carriers: Annotated[
        bool, typer.Option("--no-float-carriers", help="Never reinterpret other data types as floats.")
    ] = False,
    max_steps: Annotated[
        int, typer.Option("--max-steps", min=1, metavar="COUNT", help="Report a tile that takes more tiles than these.")
    ] = MAX_STEPS,
    dims: DimsOption = None,
    input_shapes: InputShapesOption = None,
    infer: InferOption = None,
) -> None:
    """Find tiles that do the same at an older target; exits with 1 if a tile has none."""
    from dml_tile.checks.files import chosen_tiles
    from dml_tile.cli.lower_files import lower_file
    from dml_tile.lowering.lower import LoweringOptions

    target = one_target(targets, "tiles are lowered for one target")
    status = ExitStatus()
    chosen = chosen_tiles(file, known_shapes(dims, input_shapes, infer), pointer, status.complain)
    options = LoweringOptions(allow_float_reinterpretation=not no_float_carriers, max_steps=max_steps)
    lower_file(file, chosen, target, output_format.value, status, options)
    raise typer.Exit(status.code)
