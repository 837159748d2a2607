"""``dml-tile show``"""

from __future__ import annotations

from pathlib import PurePath
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


def show(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What check takes, one file or folder; - is standard input.")
    ],
    pointer: Annotated[
        str | None,
        typer.Option(metavar="POINTER", help="The tile to draw: the text after # in the output of check."),
    ] = None,
    targets: TargetsOption = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE.svg|FILE.html", help="Draw the only tile into a file instead."),
    ] = None,
    dims: DimsOption = None,
    input_shapes: InputShapesOption = None,
    infer: InferOption = None,
) -> None:
    """Draw a tile's tensors as they lie in memory; exits with 1 if there are findings, or one cannot be drawn."""
    from dml_tile.checks.files import chosen_tiles
    from dml_tile.cli.show_files import IMAGES, print_drawings, write_drawing

    if output is not None and PurePath(output).suffix.lower() not in IMAGES:
        raise typer.BadParameter(f"{output!r} does not end in .svg or .html", param_hint="--output")
    target = one_target(targets, "tiles are drawn with the findings of one target")
    status = ExitStatus()
    chosen = chosen_tiles(file, known_shapes(dims, input_shapes, infer), pointer, status.complain)
    if output is None:
        print_drawings(chosen, target, status)
    else:
        write_drawing(file, chosen, target, output, status)
    raise typer.Exit(status.code)
