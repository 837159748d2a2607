"""The files that a command names, and the tiles that are chosen from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import has_magic, iglob
from pathlib import Path, PurePath
from typing import Final, TypeAlias

from dml_tile.errors import Problem
from dml_tile.files.urls import file_of, is_url
from dml_tile.readers.descriptors import JsonDescriptor
from dml_tile.readers.model_tile import KnownShapes, TileNode
from dml_tile.readers.sources import EMPTY_FOLDER, Sources, expanded, may_have_tiles

Complain: TypeAlias = Callable[[str, Problem], None]
"""Takes the name of a source, and a reason why a part of it cannot be read."""

ChosenTiles: TypeAlias = Iterator[tuple[str, JsonDescriptor | TileNode]]
"""Tiles, each with the file that holds it."""

MAX_LISTED: Final = 10

_NO_MATCH: Final = Problem("", "no file matches the pattern")


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Patterns of files and folders that are left out, as ``build``, ``*.tmp.onnx`` or ``models/old``.

    A pattern is matched with a path from the folder ``base``, and with each end of it that begins at a folder; a folder
    that matches is left out with all that is in it. ``*`` matches slashes too.
    """

    patterns: tuple[str, ...] = ()
    base: str = "."

    def leaves_out(self, file: str) -> bool:
        """Return True if a file, named relative to the current folder, is excluded."""
        if not self.patterns or file == "-":
            return False
        try:
            path = PurePath(file_of(file) if is_url(file) else os.path.relpath(file, self.base))
        except ValueError:  # on Windows, of another drive
            path = PurePath(file)
        places = [place.as_posix() for place in (path, *path.parents)]
        return any(
            fnmatchcase(place, pattern) or fnmatchcase(f"/{place}", f"*/{pattern}")
            for place in places
            for pattern in (PurePath(pattern).as_posix() for pattern in self.patterns)
        )


_NOTHING: Final = Exclusion()


def files_named(
    names: Sequence[str], complain: Complain, *, exclusion: Exclusion = _NOTHING, skips_others: bool = False
) -> list[str]:
    """Return the files to check: those that are named or match a pattern, and those of the named folders.

    What the ``exclusion`` leaves out is passed over everywhere; with ``skips_others``, so are files without tiles, as
    in folders. ``complain`` is called for each name that stands for no file.
    """
    files: list[str] = []
    for name in names:
        matching = _globbed(name)
        if not matching:
            complain(name, _NO_MATCH)
        for match in matching:
            found = list(expanded(match))
            if not found:
                complain(match, _NO_MATCH if is_url(match) and has_magic(match) else EMPTY_FOLDER)
            if found != [match] or not skips_others or may_have_tiles(match):
                files += (file for file in found if not exclusion.leaves_out(file))
    return files


def _globbed(name: str) -> list[str]:
    """Return the files that a name stands for: itself, or, if it is a pattern and no file, those that match it."""
    pattern = os.path.splitdrive(name)[1]  # without the question mark of \\?\C:
    if name != "-" and not is_url(name) and has_magic(pattern) and not Path(name).exists():
        return sorted(iglob(name, recursive=True))  # noqa: PTH207  # a pathlib pattern cannot be absolute
    return [name]


def chosen_tiles(name: str, known_shapes: KnownShapes, pointer: str | None, complain: Complain) -> ChosenTiles:
    """Yield each tile of a file or a folder, with its file; if there is a ``pointer``, only the tile that has it.

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
    """Return the first pointers, and how many more there are."""
    more = f" and {len(pointers) - MAX_LISTED} more" if len(pointers) > MAX_LISTED else ""
    return f"{', '.join(pointers[:MAX_LISTED])}{more}"


def _concerns(problem: Problem, pointer: str | None) -> bool:
    return pointer is None or problem.pointer in ("", pointer) or problem.pointer.startswith(f"{pointer}/")
