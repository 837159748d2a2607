"""The files that a command names, and the tiles that are chosen from them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from fnmatch import translate
from glob import has_magic
from pathlib import PurePath
from typing import Final, TypeAlias

from dml_tile.errors import InputError, Problem
from dml_tile.files.paths import Matches
from dml_tile.files.repository import path_from
from dml_tile.files.urls import Url, file_of
from dml_tile.readers.descriptors import JsonDescriptor
from dml_tile.readers.model_tile import KnownShapes, TileNode
from dml_tile.readers.sources import EMPTY_FOLDER, Sources, expanded, is_model_file, may_have_tiles
from dml_tile.text import did_you_mean

Complain: TypeAlias = Callable[[str, Problem], None]
"""Takes the name of a source, and a reason why a part of it cannot be read."""

ChosenTiles: TypeAlias = Iterator[tuple[str, JsonDescriptor | TileNode]]
"""Tiles, each with the file that holds it."""

MAX_LISTED: Final = 10

_NO_MATCH: Final = Problem("", "no file matches the pattern")
_OUTSIDE: Final = Problem("", "leads out of the folder of pyproject.toml, which names it in paths")


class Exclusion:
    """Patterns of files and folders that are left out, as ``build``, ``*.tmp.onnx`` or ``models/old``.

    A pattern is matched with a path from the folder ``base``, and with each end of it that begins at a folder; a folder
    that matches is left out with all that is in it. ``*`` matches slashes too.
    """

    def __init__(self, patterns: tuple[str, ...] = (), base: str = ".") -> None:
        beginnings = (translate(f"*/{PurePath(pattern).as_posix()}")[: -len(r"\Z")] for pattern in patterns)
        self._matches = re.compile(f"(?:{'|'.join(beginnings)})(?s:/.*)?\\Z").match if patterns else None
        self._base = base

    def leaves_out(self, file: str) -> bool:
        """Return True if a file, named relative to the current folder, is excluded."""
        if self._matches is None or file == "-":
            return False
        path = PurePath(file_of(file) if isinstance(file, Url) else path_from(self._base, file))
        return self._matches(f"/{path.as_posix()}") is not None


_NOTHING: Final = Exclusion()


def files_named(
    names: Sequence[str],
    complain: Complain,
    *,
    exclusion: Exclusion = _NOTHING,
    skips_others: bool = False,
    ignores_none: bool = False,
    excluded: Callable[[str], None] = lambda name: None,
) -> list[str]:
    """Return the files to check, each once: those that are named or match a pattern, and those of the named folders.

    What the ``exclusion`` leaves out is passed over everywhere, and ``excluded`` is called if it was named; with
    ``skips_others``, so are files without tiles, as in folders. ``ignores_none`` is that of ``expanded``. ``complain``
    is called for each name that stands for no file, and for links out of a ProjectPath's project.
    """
    files: dict[Hashable, str] = {}
    walked: set[PurePath] = set()
    for name in names:
        for match in _matches(name, complain, exclusion):
            if _identity(match) in walked:
                continue
            try:
                found = list(expanded(match, walked, ignores_none=ignores_none))
            except InputError as error:
                complain(match, *error.problems)
                continue
            if not found:
                complain(match, _NO_MATCH if isinstance(match, Url) and has_magic(match.file) else EMPTY_FOLDER)
            if found != [match] or not skips_others or may_have_tiles(match):
                for file in found:
                    if not exclusion.leaves_out(file):
                        files.setdefault(_identity(file), file)
                    elif file == name:
                        excluded(file)
    return [*files.values()]


def _matches(name: str, complain: Complain, exclusion: Exclusion) -> list[str]:
    """Return the files and folders that a name stands for: itself, or, if it is a pattern, those that match it."""
    if not is_pattern(name):
        return [name]
    try:
        matches = Matches(name)
    except InputError as error:
        complain(name, *error.problems)
        return []
    outside = [link for link in matches.outside if not exclusion.leaves_out(link)]
    for link in outside:
        complain(link, _OUTSIDE)
    if not matches.names and not outside:
        complain(name, _NO_MATCH)
    return matches.names


def is_pattern(name: str) -> bool:
    """Return True if a name stands for the paths that match it: it has wildcards, and is no file itself."""
    if name == "-" or isinstance(name, Url):
        return False
    # without the question mark of \\?\C:
    return has_magic(os.path.splitdrive(name)[1]) and not os.path.exists(name)  # noqa: PTH110 - Path.exists may raise


def _identity(name: str) -> Hashable:
    """Return a key that is the same for two names of a file; links are files of their own."""
    if isinstance(name, Url):
        return name.identity
    try:
        return None if name == "-" else PurePath(os.path.abspath(name))  # noqa: PTH100  # links are not followed
    except OSError:  # the current folder was removed
        return PurePath(name)


def chosen_tiles(name: str, known_shapes: KnownShapes, pointer: str | None, complain: Complain) -> ChosenTiles:
    """Yield each tile of a file or a folder, with its file; if there is a ``pointer``, only the tile that has it."""
    try:
        files = list(expanded(name))
    except InputError as error:
        complain(name, *error.problems)
        return
    if not files:
        complain(name, EMPTY_FOLDER)
    is_readable = bool(files)
    is_found = pointer is None
    passed_over: list[str] = []
    with Sources(known_shapes) as sources:
        for file in files:
            for part in sources.parts(file):
                if isinstance(part, Problem):
                    if pointer is None or part.pointer in ("", pointer) or part.pointer.startswith(f"{pointer}/"):
                        complain(file, part)
                        is_readable = False
                elif isinstance(part, JsonDescriptor) and not part.is_operator:
                    continue
                elif pointer not in (None, part.pointer):
                    passed_over.append(part.pointer)
                else:
                    is_found = True
                    yield file, part
        names = sources.new_dimension_names()
    if is_readable and (unknown := unknown_dimension(known_shapes.dims, names, files)):
        complain("--dim", Problem("", unknown))
    if not is_found and is_readable:
        there = f"there are {listed(passed_over)}" if any(passed_over) else "no tile has a pointer"
        complain(name, Problem(pointer or "", f"there is no such tile; {there}"))


def unknown_dimension(given: Iterable[str], names: Collection[str], files: Iterable[str]) -> str:
    """Return what is wrong with the first given name that is none of the models'; empty without one, or a model."""
    models = [file for file in files if is_model_file(file)]
    name = next((name for name in given if name not in names), None)
    if not models or name is None:
        return ""
    if not any(file.lower().endswith(".onnx") for file in models):
        return f"OpenVINO keeps no names of dimensions, such as {name!r}; give the shapes of inputs (--input-shape)"
    there = f"there are {listed([*map(repr, sorted(names))])}" if names else "none has a name"
    return f"no model names a dimension {name!r}; {did_you_mean(name, names, there)}"


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f"{', '.join(names[:MAX_LISTED])}{more}"
