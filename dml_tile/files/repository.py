"""Repositories: the root from which reports name files, and what a walk of their folders leaves out."""

# Names stay as they were typed; pathlib would change them.
# ruff: noqa: PTH100, PTH109, PTH110, PTH118, PTH120

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, TypeAlias

from dml_tile.errors import InputError
from dml_tile.files.urls import Url
from dml_tile.files.whole import open_without_waiting

if TYPE_CHECKING:  # most checks walk no folder
    from pathspec import GitIgnoreSpec

SERVERS_VARIABLES: Final = ("GITHUB_WORKSPACE", "BUILD_SOURCESDIRECTORY", "CI_PROJECT_DIR")
"""The folder of the checkout on GitHub, Azure Pipelines and GitLab."""

GITIGNORE: Final = ".gitignore"
MAX_GITIGNORE_BYTES: Final = 2**15
MAX_PATTERNS: Final = 1000
"""The lines of a .gitignore file that are read."""

MAX_STARS: Final = 3
"""The stars in a name, and the ``**``, of a pattern that counts: with more, pathspec takes seconds for a long name."""

Ignores: TypeAlias = "tuple[tuple[str, GitIgnoreSpec], ...]"
"""The .gitignore files that hold in a folder, the nearest last, each with its folder's absolute path."""


def repository_root(names: Iterable[str] = ()) -> str:
    """Return the folder from which reports name files and folders.

    It is the nearest one with ``.git`` at or above them all, or at or above the current one; else that of a CI server's
    checkout, if it holds them; else the current one.
    """
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return "."
    paths = [os.path.abspath(name) for name in names if name != "-" and not isinstance(name, Url)]
    try:
        common = os.path.commonpath(paths or [here])
    except ValueError:  # on Windows, of several drives
        common = here
    checkouts = filter(None, map(os.environ.get, SERVERS_VARIABLES))
    holding = (folder for folder in checkouts if not path_from(folder, common).startswith((os.pardir, "/")))
    return _root_above(common) or _root_above(here) or next(holding, here)


def path_from(folder: str, source: str) -> str:
    """Return a file's path from a folder on, with slashes; an absolute one on another drive. URLs stay as they are."""
    if source == "-" or isinstance(source, Url):
        return source
    path = _without_device_prefix(source)
    try:
        relative = os.path.relpath(path, folder)
    except (ValueError, OSError):  # another drive; the current folder was removed
        relative = os.path.normpath(path)
    return PurePath(relative).as_posix()


def path_within(root: str, source: str) -> str:
    """Return a file's path from a root on, with slashes; an absolute one if the file lies elsewhere."""
    path = path_from(root, source)
    if not path.startswith("../"):
        return path
    try:
        return PurePath(os.path.abspath(_without_device_prefix(source))).as_posix()
    except OSError:  # the current folder was removed
        return path


def _root_above(folder: str) -> str:
    """Return the nearest folder with ``.git`` at or above a folder; ``""`` if there is none."""
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above
    return folder


def _without_device_prefix(name: str) -> str:
    r"""Return a name without the ``\\?\`` that lifts Windows' limit on a path's length, and that no URI can have."""
    if os.name != "nt" or not name.startswith("\\\\?\\"):
        return name
    rest = name[4:]
    return f"\\\\{rest[4:]}" if rest[:4].upper() == "UNC\\" else rest


def ignores_above(folder: str) -> Ignores:
    """Return the .gitignore files above a folder, up to its repository's root; none if they leave it out itself."""
    path = PurePath(os.path.abspath(folder))
    root = _root_above(str(path)) or path
    steps = [str(step) for step in reversed((path, *path.parents)) if step.is_relative_to(root)]
    found: Ignores = ()
    for step in steps[:-1]:
        found = ignores_within(step, found)
    return () if any(is_ignored(f"{step}/", found) for step in steps[1:]) else found


def ignores_within(folder: str, above: Ignores) -> Ignores:
    """Return the .gitignore files that hold in a folder, by its absolute path and those above it."""
    try:
        with open_without_waiting(Path(folder, GITIGNORE)) as opened:
            lines = opened.read(MAX_GITIGNORE_BYTES).decode(errors="surrogateescape").splitlines()
    except (OSError, InputError):
        return above
    from pathspec import GitIgnoreSpec

    return (*above, (folder, GitIgnoreSpec.from_lines(filter(_is_usable, lines[:MAX_PATTERNS]))))


def is_ignored(path: str, ignores: Ignores) -> bool:
    """Return True if a file or, with a slash at the end, a folder is left out, by its absolute path."""
    found = (spec.check_file(path[len(folder) :].lstrip(os.sep)).include for folder, spec in reversed(ignores))
    return next((bool(include) for include in found if include is not None), False)


def _is_usable(pattern: str) -> bool:
    """Return True for a pattern of few stars that is not malformed; git passes over one that is."""
    from pathspec import GitIgnoreSpec

    stars = (len(re.findall(r"\*+", name)) for name in pattern.split("/"))
    try:
        return max(*stars, pattern.count("**")) <= MAX_STARS and bool(GitIgnoreSpec.from_lines([pattern]))
    except ValueError:
        return False
