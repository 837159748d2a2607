"""Lowering the tiles of the files and folders that a command names."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from dml_tile.frontends.documents import Described
from dml_tile.frontends.nodes import Fixed, TileNode
from dml_tile.frontends.problems import Problem
from dml_tile.frontends.sources import Sources, expanded
from dml_tile.reports.lowered import Lowered, lowered
from dml_tile.reports.lowering import print_lowered, print_not_lowered
from dml_tile.reports.lowering_code import lowering_model, lowering_source
from dml_tile.targets import Target
from dml_tile.terminal import CLEAN, FINDINGS, UNREADABLE, complain, console_of, forget_output, write_while_read

_SHOWN_AT_MOST: Final = 10


class LoweredFiles:
    """Lowers the tiles of files for a target, and remembers the status that all amounts to.

    With a ``pointer``, only the tile that has it is lowered, and nothing is said of the others.
    """

    def __init__(
        self, target: Target, fixed: Fixed, pointer: str | None, *, allow_float_reinterpretation: bool
    ) -> None:
        self.status = CLEAN
        self._target = target
        self._fixed = fixed
        self._pointer = pointer
        self._allow_float_reinterpretation = allow_float_reinterpretation

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
            there = _listed([tile.pointer for tile in tiles])
            self._complain(name, Problem("", f"a model is of one tile; choose it with --pointer: {there}"))
            return
        without = [tile for tile in tiles if not tile.lowering]
        if without:
            print_not_lowered(console_of(stderr=True), without)
            self.status = max(self.status, FINDINGS)
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
        files = list(expanded(name))
        if not files:
            self._complain(name, Problem("", "the folder holds no models and no descriptors"))
        passed_over: list[str] = []
        is_found = self._pointer is None
        with Sources(self._fixed) as sources:
            for file in files:
                for part in sources.parts(file):
                    if isinstance(part, Problem):
                        if self._concerns(part):
                            self._complain(file, part)
                    elif self._pointer not in (None, part.pointer):
                        passed_over.append(part.pointer)
                    else:
                        is_found = True
                        yield self._lowered(file, part)
        if not is_found and self.status != UNREADABLE:
            there = f"there are {_listed(passed_over)}" if any(passed_over) else "no tile has a pointer"
            self._complain(name, Problem(self._pointer or "", f"there is no such tile; {there}"))

    def _lowered(self, file: str, part: Described | TileNode) -> Lowered:
        tile = lowered(file, part, self._target, allow_float_reinterpretation=self._allow_float_reinterpretation)
        if tile.findings:
            self.status = max(self.status, FINDINGS)
        return tile

    def _concerns(self, problem: Problem) -> bool:
        pointer = self._pointer
        return pointer is None or problem.pointer in ("", pointer) or problem.pointer.startswith(f"{pointer}/")

    def _complain(self, file: str, problem: Problem) -> None:
        complain(file, [problem])
        self.status = UNREADABLE


def _listed(pointers: Sequence[str]) -> str:
    more = f" and {len(pointers) - _SHOWN_AT_MOST} more" if len(pointers) > _SHOWN_AT_MOST else ""
    return f"{', '.join(pointers[:_SHOWN_AT_MOST])}{more}"
