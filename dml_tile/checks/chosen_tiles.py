"""The tiles of the files and folders that a command names, or the one of them that it chooses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from dml_tile.checks.files import Complain
from dml_tile.errors import Problem
from dml_tile.readers.descriptors import JsonDescriptor
from dml_tile.readers.model_tile import KnownShapes, TileNode
from dml_tile.readers.sources import EMPTY_FOLDER, Sources, expanded

MAX_LISTED: Final = 10

ChosenTiles: TypeAlias = Iterator[tuple[str, JsonDescriptor | TileNode]]
"""Tiles, each with the file that holds it."""


def chosen_tiles(name: str, known_shapes: KnownShapes, pointer: str | None, complain: Complain) -> ChosenTiles:
    """Each tile of a file or a folder, with the file that holds it; of a ``pointer``, only the tile that has it.

    ``complain`` is called for what cannot be read, and where no tile has the pointer.
    """
    files = list(expanded(name))
    if not files:
        complain(name, EMPTY_FOLDER)
    is_readable = bool(files)
    is_found = pointer is None
    passed_over: list[str] = []
    with Sources(known_shapes) as sources:
        for file in files:
            for part in sources.parts(file):
                if isinstance(part, Problem):
                    if _concerns(part, pointer):
                        complain(file, part)
                        is_readable = False
                elif isinstance(part, JsonDescriptor) and not part.is_operator:
                    continue
                elif pointer not in (None, part.pointer):
                    passed_over.append(part.pointer)
                else:
                    is_found = True
                    yield file, part
    if not is_found and is_readable:
        there = f"there are {listed(passed_over)}" if any(passed_over) else "no tile has a pointer"
        complain(name, Problem(pointer or "", f"there is no such tile; {there}"))


def listed(pointers: Sequence[str]) -> str:
    """The first pointers, and how many more there are."""
    more = f" and {len(pointers) - MAX_LISTED} more" if len(pointers) > MAX_LISTED else ""
    return f"{', '.join(pointers[:MAX_LISTED])}{more}"


def _concerns(problem: Problem, pointer: str | None) -> bool:
    return pointer is None or problem.pointer in ("", pointer) or problem.pointer.startswith(f"{pointer}/")
