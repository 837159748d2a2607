"""Prints the lowerings of the tiles of a file or folder, as text or as code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal

from dml_tile.checks.files import ChosenTiles, listed
from dml_tile.checks.lowerings import LoweringResult, lower_part
from dml_tile.cli.console import UNREADABLE, ExitStatus, console_of
from dml_tile.cli.output_files import print_text
from dml_tile.directml.targets import Target
from dml_tile.emit.lowering import lowering_model, lowering_source
from dml_tile.emit.source import json_text
from dml_tile.errors import Problem
from dml_tile.lowering.lower import LoweringOptions
from dml_tile.reports.lowering import print_lowered, print_not_lowered


def lower_file(
    name: str,
    chosen: ChosenTiles,
    target: Target,
    form: Literal["text", "json", "cpp", "python"],
    status: ExitStatus,
    options: LoweringOptions,
) -> None:
    """Print the lowering of each tile of a file or folder."""
    tiles = _lowered(chosen, target, status, options)
    if form == "text":
        print_lowered(console_of(), tiles)
    elif form == "json":
        _print_model(name, list(tiles), status)
    else:
        print_steps(form, list(tiles), status)


def _lowered(
    chosen: ChosenTiles, target: Target, status: ExitStatus, options: LoweringOptions
) -> Iterator[LoweringResult]:
    for file, part in chosen:
        tile = lower_part(file, part, target, options)
        if tile.findings:
            status.count_findings()
        yield tile


def _print_model(name: str, tiles: list[LoweringResult], status: ExitStatus) -> None:
    """Print a DxDispatch model of the only tile."""
    if len(tiles) > 1:
        there = listed([tile.pointer for tile in tiles])
        status.complain(name, Problem("", f"a model is of one tile; choose it with --pointer: {there}"))
        return
    for tile in _with_a_lowering(tiles, status):
        assert tile.lowering
        print_text(f"{json.dumps(lowering_model(tile.lowering), indent=2)}\n")


def print_steps(language: Literal["cpp", "json", "python"], tiles: list[LoweringResult], status: ExitStatus) -> None:
    """Print source text, or JSON, that builds the steps of all tiles that have a lowering."""
    lowerings = _with_a_lowering(tiles, status)
    if language == "json":
        descs = [step.desc for tile in lowerings if tile.lowering for step in tile.lowering.steps]
        if descs:
            print_text(json_text(descs))
    elif lowerings:
        for text in lowering_source(language, lowerings):
            print_text(text)


def _with_a_lowering(tiles: list[LoweringResult], status: ExitStatus) -> list[LoweringResult]:
    """Return the tiles to print, none if a file could not be read; print on standard error why others have none."""
    without = [tile for tile in tiles if not tile.lowering]
    if without:
        print_not_lowered(console_of(stderr=True), without)
        status.count_findings()
    return [] if status.code == UNREADABLE else [tile for tile in tiles if tile.lowering]
