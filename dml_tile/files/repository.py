"""Repositories: the root from which reports name files, and the files that a walk of their folders leaves out."""

# Names stay as they were typed; pathlib would change them.
# ruff: noqa: PTH100, PTH109, PTH110

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Final, TypeAlias

from dml_tile.files.links import GIT, SERVERS_VARIABLES, without_device_prefix
from dml_tile.files.paths import MAX_PARTS, STANDARD_INPUT, part_count
from dml_tile.files.patterns import Patterns
from dml_tile.files.whole import open_regular

GITIGNORE: Final = ".gitignore"
MAX_GITIGNORE_BYTES: Final = 2**15
MAX_PATTERNS: Final = 1000
"""The lines of a .gitignore file that are read."""

Ignores: TypeAlias = tuple[tuple[str, Patterns], ...]
"""The .gitignore files that hold in a folder, the nearest last, each with its folder's absolute path."""


def repository_root(names: Iterable[str] = ()) -> str:
    """Return the folder from which reports name files and folders.

    It is the nearest folder with ``.git`` at or above all names, or the current folder; else a CI server's checkout, if
    it holds them; else the current folder.
    """
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return "."
    files = (name for name in names if name != STANDARD_INPUT)
    paths = [os.path.abspath(name) for name in files if part_count(name) <= MAX_PARTS]
    try:
        common = os.path.commonpath(paths or [here])
    except ValueError:  # on Windows, of several drives
        common = here
    checkouts = filter(None, map(os.environ.get, SERVERS_VARIABLES))
    holding = (folder for folder in checkouts if not path_from(folder, common).startswith((os.pardir, "/")))
    return root_above(common) or root_above(here) or next(holding, here)


def list_root(settings_file: str) -> tuple[str, str]:
    """Return the repository's root; without a repository the folder of the ``settings_file``, else the current one.

    The second text is what messages call it.

    Raises OSError if the current folder was removed.
    """
    here = os.path.realpath(os.curdir)
    if root := root_above(here):
        return root, "the repository"
    if settings_file:
        folder, name = os.path.split(os.path.realpath(settings_file))
        return folder, f"the folder of {name}"
    return here, "the current folder"


def path_from(folder: str, source: str) -> str:
    """Return a file's path from a folder on, with slashes; absolute on another drive."""
    if source == STANDARD_INPUT:
        return source
    path = without_device_prefix(source)
    try:
        relative = os.path.relpath(path, folder)
    except (ValueError, OSError):  # another drive; the current folder was removed
        relative = os.path.normpath(path)
    return PurePath(relative).as_posix()


def path_within(root: str, source: str) -> str:
    """Return a file's path from a root on, with slashes; absolute if the file lies elsewhere."""
    path = path_from(root, source)
    if not path.startswith("../"):
        return path
    try:
        return PurePath(os.path.abspath(without_device_prefix(source))).as_posix()
    except OSError:  # the current folder was removed
        return path


def root_above(folder: str) -> str:
    """Return the nearest folder with ``.git`` at or above a folder; ``""`` if there is none."""
    path = PurePath(folder)
    return next((str(each) for each in (path, *path.parents) if os.path.exists(each / GIT)), "")


def ignores_above(folder: str) -> Ignores:
    """Return the .gitignore files above a folder, up to its repository's root; none if they leave the folder out."""
    path = PurePath(os.path.abspath(folder))
    root = root_above(str(path)) or path
    steps = [str(step) for step in reversed((path, *path.parents)) if step.is_relative_to(root)]
    found: Ignores = ()
    for step in steps[:-1]:
        found = ignores_within(step, found)
    return () if any(is_ignored(f"{step}/", found) for step in steps[1:]) else found


def ignores_within(folder: str, above: Ignores) -> Ignores:
    """Return the .gitignore files that hold in a folder: its own, by its absolute path, and those ``above``.

    Only a regular file is read, as git does: neither a link nor a pipe.
    """
    try:
        with open_regular(Path(folder, GITIGNORE)) as opened:
            lines = opened.read(MAX_GITIGNORE_BYTES).decode(errors="surrogateescape").splitlines()
    except OSError:
        return above
    return (*above, (folder, Patterns(lines[:MAX_PATTERNS])))


def is_ignored(path: str, ignores: Ignores) -> bool:
    """Return True if a file or, with a slash at the end, a folder is left out, by its absolute path."""
    for folder, patterns in reversed(ignores):
        decision = patterns.decision(path[len(folder) :].lstrip(os.sep).replace(os.sep, "/"))
        if decision is not None:
            return decision
    return False
