"""``dml-tile show``: draws the tiles of a file or folder, in a terminal or into an image."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dml_tile.cli.console import UNREADABLE, ExitStatus, complain, console_of, exit_on_file_errors
from dml_tile.cli.formats import replaced
from dml_tile.cli.options import (
    DimsOption,
    FileArgument,
    InferOption,
    InputShapesOption,
    TargetsOption,
    known_shapes,
    one_target,
)
from dml_tile.errors import DmlError, Problem

if TYPE_CHECKING:
    from dml_tile.checks.files import ChosenTiles
    from dml_tile.checks.result import Result
    from dml_tile.directml.targets import Target
    from dml_tile.pictures.marks import TilePicture
    from dml_tile.readers.descriptors import JsonDescriptor
    from dml_tile.readers.model_tile import TileNode
    from dml_tile.reports.text import Line

MAX_TILES: Final = 10
"""The number of tiles drawn on standard output; only the pointers of further ones are printed."""

NO_TILE: Final = Problem("", "there is no tile to draw")

IMAGES: Final = (".svg", ".html")
"""The suffixes of images."""


def show(
    file: FileArgument,
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
    from dml_tile.files.urls import source_named

    if output is not None and PurePath(output).suffix.lower() not in IMAGES:
        raise typer.BadParameter(f"{output!r} does not end in .svg or .html", param_hint="--output")
    target = one_target(targets, "tiles are drawn with the findings of one target")
    status = ExitStatus()
    file = source_named(file)
    chosen = chosen_tiles(file, known_shapes(dims, input_shapes, infer), pointer, status.complain)
    if output is None:
        _print_drawings(file, chosen, target, status)
    else:
        _write_drawing(file, chosen, target, output, status)
    raise typer.Exit(status.code)


def _print_drawings(name: str, chosen: ChosenTiles, target: Target, status: ExitStatus) -> None:
    """Draw the tiles of a file or folder, with their findings at a target, on standard output."""
    from rich.text import Text

    from dml_tile.checks.files import listed
    from dml_tile.pictures.table import picture_lines
    from dml_tile.reports.text import Line, print_lines
    from dml_tile.text import printable

    console = console_of()
    not_drawn: list[str] = []
    i = -1
    for i, (result, picture, lines) in enumerate(_drawings(chosen, target, status)):
        if i < MAX_TILES:
            verdict, *details = lines
            print_lines(console, [verdict, *picture_lines(picture, console.width), *details])
        else:
            not_drawn.append(result.pointer)
    if i < 0 and status.code != UNREADABLE:
        complain(name, [NO_TILE])
    if not_drawn:
        more = f"{len(not_drawn)} more {'tile is' if len(not_drawn) == 1 else 'tiles are'} not drawn"
        print_lines(console, [Line(0, Text(f"{more}; choose one with --pointer: {printable(listed(not_drawn))}"))])


def _write_drawing(name: str, chosen: ChosenTiles, target: Target, image: str, status: ExitStatus) -> None:
    """Draw the only tile of a file into ``image``, whose suffix is one of ``IMAGES``; whole, or not at all."""
    from dml_tile.checks.files import listed
    from dml_tile.pictures.picture import picture_html, picture_svg
    from dml_tile.pictures.table import undrawn_lines
    from dml_tile.reports.text import print_lines

    drawings = list(_drawings(chosen, target, status))
    if len(drawings) > 1:
        there = listed([result.pointer for result, _, _ in drawings])
        status.complain(name, Problem("", f"an image is of one tile; choose it with --pointer: {there}"))
    elif not drawings and status.code != UNREADABLE:
        status.complain(name, NO_TILE)
    if status.code == UNREADABLE:
        return
    ((_, picture, (*lines,)),) = drawings
    if status.code:
        print_lines(console_of(stderr=True), [lines[0], *undrawn_lines(picture), *lines[1:]])
    if picture.tensors:
        draw = picture_svg if PurePath(image).suffix.lower() == ".svg" else picture_html
        with exit_on_file_errors(), replaced(image) as file:
            file.write(draw(picture, lines))


def _drawings(
    chosen: ChosenTiles, target: Target, status: ExitStatus
) -> Iterator[tuple[Result, TilePicture, Iterator[Line]]]:
    """Yield each tile's result, its picture, and what ``check`` prints of it."""
    from dml_tile.checks.result import results
    from dml_tile.reports.text import result_lines

    for file, part in chosen:
        (result,) = results(file, part, [target], "both")
        picture = _picture(part)
        if result.findings or picture.undrawn:
            status.count_findings()
        yield result, picture, result_lines(result, with_lowest_level=True, with_tile=False)


def _picture(part: JsonDescriptor | TileNode) -> TilePicture:
    from dml_tile.descriptors.graph import GraphDesc
    from dml_tile.dialects import directml
    from dml_tile.pictures.marks import no_picture, picture_of
    from dml_tile.readers.descriptors import JsonDescriptor
    from dml_tile.reports.wording import how_to_fix

    if isinstance(part, JsonDescriptor):
        if part.other is not None or isinstance(part.desc, GraphDesc):
            return no_picture("it is no tile")
        return picture_of(part.desc)
    if part.unknown:
        options = how_to_fix(part.unknown)
        return no_picture(f"not all of it is known before the model runs{options and f'; try {options}'}")
    if part.error:
        return no_picture("its own specification rules it out")
    try:
        return picture_of(directml.tile_desc(part.request))
    except DmlError:
        return no_picture("no descriptor does the same")
