"""``dml-tile show``"""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated

import typer

from dml_tile.cli.commands.options import DimsOption, InputShapesOption, TargetsOption, fixed_sizes, one_target


def show(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What check takes, one file or folder; - is standard input.")
    ],
    pointer: Annotated[
        str | None,
        typer.Option(metavar="POINTER", help="The one tile to draw: what stands behind # in what check shows."),
    ] = None,
    targets: TargetsOption = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE.svg|FILE.html", help="Draw one tile into a file instead."),
    ] = None,
    dims: DimsOption = None,
    input_shapes: InputShapesOption = None,
) -> None:
    """Draw a tile's tensors as they lie in memory; exits with 1 if there are findings, or one cannot be drawn."""
    from dml_tile.cli.show_files import IMAGES, ShownFiles

    files = ShownFiles(
        one_target(targets, "tiles are drawn with the findings of one target"),
        fixed_sizes(dims, input_shapes),
        pointer,
    )
    if output is None:
        files.print(file)
    else:
        suffix = PurePath(output).suffix.lower()
        if suffix not in IMAGES:
            raise typer.BadParameter(f"{output!r} does not end in .svg or .html", param_hint="--output")
        files.write(file, output, suffix)
    raise typer.Exit(files.status)
