"""Lowering the tiles of the files and folders that a command names."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Literal

from dml_tile.checks.chosen_tiles import chosen_tiles, listed
from dml_tile.checks.lowered import Lowered, lowered
from dml_tile.cli.console import UNREADABLE, ExitStatus, console_of, forget_output, write_while_read
from dml_tile.emit.lowering import lowering_model, lowering_source
from dml_tile.errors import Problem
from dml_tile.readers.json.descriptors import JsonDescriptor
from dml_tile.readers.model_tile import KnownShapes, TileNode
from dml_tile.reports.lowering import print_lowered, print_not_lowered
from dml_tile.targets import Target


class LoweredFiles:
    """Lowers the tiles of files for a target, or the one that has the ``pointer``."""

    def __init__(
        self, target: Target, known_shapes: KnownShapes, pointer: str | None, *, allow_float_reinterpretation: bool
    ) -> None:
        self._exit_status = ExitStatus()
        self._known_shapes = known_shapes
        self._pointer = pointer
        self._target = target
        self._allow_float_reinterpretation = allow_float_reinterpretation

    @property
    def status(self) -> int:
        """The exit status that all amounts to so far."""
        return self._exit_status.code

    def write(self, name: str, form: Literal["text", "json", "cpp", "python"]) -> None:
        """Print what becomes of each tile of a file or a folder, or write what programs need to do it."""
        if form == "text":
            self._print(name)
        else:
            self._write_code(name, form)

    def _print(self, name: str) -> None:
        tiles = self._tiles(name)
        try:
            print_lowered(console_of(), tiles)
            sys.stdout.flush()  # while it can still be told that it fails
        except BrokenPipeError:  # nobody reads on; the status is still true
            forget_output()
            for _ in tiles:
                pass

    def _write_code(self, name: str, form: Literal["json", "cpp", "python"]) -> None:
        """Write a DxDispatch model of one tile, or source text of all that have a lowering; of others tell why not."""
        tiles = list(self._tiles(name))
        if form == "json" and len(tiles) > 1:
            there = listed([tile.pointer for tile in tiles])
            self._exit_status.complain(name, Problem("", f"a model is of one tile; choose it with --pointer: {there}"))
            return
        without = [tile for tile in tiles if not tile.lowering]
        if without:
            print_not_lowered(console_of(stderr=True), without)
            self._exit_status.count_findings()
        if self.status == UNREADABLE or len(without) == len(tiles):
            return
        if form == "json":
            (lowering,) = (tile.lowering for tile in tiles if tile.lowering)
            write_while_read(f"{json.dumps(lowering_model(lowering), indent=2)}\n")
        else:
            for text in lowering_source(form, tiles):
                write_while_read(text)

    def _tiles(self, name: str) -> Iterator[Lowered]:
        """What becomes of each tile; what cannot be read is told on stderr as it comes."""
        for file, part in chosen_tiles(name, self._known_shapes, self._pointer, self._exit_status.complain):
            yield self._lowered(file, part)

    def _lowered(self, file: str, part: JsonDescriptor | TileNode) -> Lowered:
        tile = lowered(file, part, self._target, allow_float_reinterpretation=self._allow_float_reinterpretation)
        if tile.findings:
            self._exit_status.count_findings()
        return tile
