"""Drawing the tiles of the files and folders that a command names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from dml_tile.checks.chosen_tiles import chosen_tiles, listed
from dml_tile.checks.result import Result, results
from dml_tile.cli.console import UNREADABLE, ExitStatus, console_of, forget_output
from dml_tile.cli.output_files import replaced
from dml_tile.dialects import directml
from dml_tile.errors import DmlError, OutputError, Problem
from dml_tile.input_errors import printable
from dml_tile.pictures.html import picture_html
from dml_tile.pictures.svg import picture_svg
from dml_tile.pictures.terminal import picture_lines, undrawn_lines
from dml_tile.pictures.tile import TilePicture, no_picture, picture_of
from dml_tile.readers.json.descriptors import JsonDescriptor
from dml_tile.readers.model_tile import KnownShapes, TileNode
from dml_tile.reports.text import Line, print_lines, result_lines
from dml_tile.targets import Target

MAX_TILES: Final = 10
"""How many tiles are drawn in a terminal; of more, the pointers are told."""

IMAGES: Final[dict[str, Callable[[TilePicture, Sequence[Line]], str]]] = {".svg": picture_svg, ".html": picture_html}
"""What draws a picture into a file, by the end of the file's name."""


@dataclass(frozen=True, slots=True)
class _Shown:
    result: Result
    picture: TilePicture

    @property
    def said(self) -> list[Line]:
        return list(result_lines(self.result, with_lowest_level=True))


class ShownFiles:
    """Draws the tiles of files, or the one that has the ``pointer``, with their findings at a target."""

    def __init__(self, target: Target, known_shapes: KnownShapes, pointer: str | None) -> None:
        self._exit_status = ExitStatus()
        self._known_shapes = known_shapes
        self._pointer = pointer
        self._target = target

    @property
    def status(self) -> int:
        """The exit status that all amounts to so far."""
        return self._exit_status.code

    def print(self, name: str) -> None:
        """Draw each tile of a file or a folder on standard output."""
        tiles = self._tiles(name)
        try:
            self._print(tiles)
            sys.stdout.flush()  # while it can still be told that it fails
        except BrokenPipeError:  # nobody reads on; the status is still true
            forget_output()
            for _ in tiles:
                pass

    def write(self, name: str, output: str, suffix: str) -> None:
        """Draw the one tile of a file into another file, which is written whole or not at all."""
        tiles = self._tiles(name)
        tile = next(tiles, None)
        if tile and (others := [other.result.pointer for other in tiles]):
            there = listed([tile.result.pointer, *others])
            self._exit_status.complain(name, Problem("", f"an image is of one tile; choose it with --pointer: {there}"))
        elif not tile and self.status != UNREADABLE:
            self._exit_status.complain(name, Problem("", "there is no tile to draw"))
        if not tile or self.status == UNREADABLE:
            return
        if self.status:
            verdict, *details = tile.said
            console = console_of(stderr=True)
            print_lines(console, [verdict, *undrawn_lines(tile.picture), *details])
        if not tile.picture.tensors:
            return
        try:
            with replaced(output) as file:
                file.write(IMAGES[suffix](tile.picture, tile.said))
        except OutputError as error:
            self._exit_status.complain(output, Problem("", str(error)))

    def _print(self, tiles: Iterator[_Shown]) -> None:
        console = console_of()
        left_out: list[str] = []
        for i, tile in enumerate(tiles):
            if i < MAX_TILES:
                verdict, *details = tile.said
                print_lines(console, [verdict, *picture_lines(tile.picture, console.width), *details])
            else:
                left_out.append(tile.result.pointer)
        if left_out:
            more = f"{len(left_out)} more {'tile is' if len(left_out) == 1 else 'tiles are'} not drawn"
            print_lines(console, [Line(0, Text(f"{more}; choose one with --pointer: {printable(listed(left_out))}"))])

    def _tiles(self, name: str) -> Iterator[_Shown]:
        for file, part in chosen_tiles(name, self._known_shapes, self._pointer, self._exit_status.complain):
            (result,) = results(file, part, [self._target], "both")
            picture = _picture(part)
            if result.findings or picture.undrawn:
                self._exit_status.count_findings()
            yield _Shown(result, picture)


def _picture(part: JsonDescriptor | TileNode) -> TilePicture:
    if isinstance(part, JsonDescriptor):
        return no_picture("it is no tile") if part.other else picture_of(part.desc)
    if part.unknown:
        return no_picture("not all of it is known before the model runs")
    if part.error:
        return no_picture("its own specification rules it out")
    try:
        return picture_of(directml.tile_desc(part.request))
    except DmlError:
        return no_picture("no descriptor does the same")
