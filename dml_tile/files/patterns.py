"""Finds what matches a pattern such as ``models/**/*.onnx``: each file once, in one walk, whatever the pattern is."""

# Names stay as they were typed; pathlib would change them.
# ruff: noqa: PTH112, PTH114, PTH116, PTH118, PTH208

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from fnmatch import translate
from glob import has_magic
from os.path import isdir, islink, join, lexists, normcase, realpath
from pathlib import Path
from typing import Any, Final, Self

from dml_tile.files.paths import MAX_PARTS
from dml_tile.input_errors import unreadable

_ANY_DEPTH: Final = "**"
_SEPARATORS: Final = "/" if os.sep == "/" else r"\/"


def not_standard_input(path: str) -> str:
    """Return a path that is not taken for standard input, which only an argument ``-`` names."""
    return join(os.curdir, path) if path == "-" else path


class ProjectPath(str):
    """A path or a pattern in pyproject.toml; nothing that it stands for leads out of the folder ``project``."""

    __slots__ = ("project",)
    project: Path

    def __new__(cls, path: str, project: Path) -> Self:
        made = super().__new__(cls, not_standard_input(path))
        made.project = project
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.project


class Matches:
    """The files and folders that match a pattern, ordered by name. Raises InputError for one of too many parts.

    ``**`` stands for folders at any depth, but for hidden ones. Links are followed, but into no folder twice: each part
    of the pattern is looked for once in each folder. ``outside`` are links out of a ProjectPath's project that its
    pattern names; ``**`` passes over such links.
    """

    def __init__(self, pattern: str) -> None:
        drive, rest = os.path.splitdrive(pattern)
        parts = [part for part in re.split(f"[{re.escape(_SEPARATORS)}]", rest) if part]
        if len(parts) > MAX_PARTS:
            raise unreadable("", f"has {len(parts)} parts; a pattern may have {MAX_PARTS}")
        self._parts = parts
        self._matchers = [re.compile(translate(normcase(part))).match for part in parts]
        self._are_folders = rest.endswith(tuple(_SEPARATORS))
        self._project = pattern.project.resolve() if isinstance(pattern, ProjectPath) else None
        self._looked_for: dict[tuple[int, int], set[int]] = {}
        self._found: dict[tuple[int, int, str], str] = {}
        self.outside: list[str] = []
        left = deque([(drive + os.sep * rest.startswith(tuple(_SEPARATORS)), {0})])
        while left:
            left.extend(self._folders_in(*left.popleft()))
        self.names = sorted(map(not_standard_input, self._found.values()))

    def _folders_in(self, folder: str, places: set[int]) -> list[tuple[str, set[int]]]:
        """Take what matches in a folder, where the pattern's parts at ``places`` come next; return what to enter."""
        try:
            status = os.stat(folder or os.curdir)
        except (OSError, ValueError):
            return []
        looked_for = self._looked_for.setdefault((status.st_dev, status.st_ino), set())
        places = self._with_skipped(places) - looked_for
        looked_for |= places
        entered = []
        for name, deeper, further in self._entries(folder, places):
            path = join(folder, name)
            reached = self._with_skipped(deeper | further)
            is_folder = isdir(path)
            is_match = len(self._parts) in (reached if is_folder else further | self._with_skipped(deeper))
            if not is_folder and (self._are_folders or not is_match):
                continue
            if self._leads_outside(path, name):
                self.outside += [path] * bool(further)
                continue
            if is_match:
                self._found.setdefault((status.st_dev, status.st_ino, name), path)
            if is_folder:
                entered.append((path, reached))
        return sorted(entered, key=lambda entry: (islink(entry[0]), entry[0]))

    def _with_skipped(self, places: set[int]) -> set[int]:
        """Return the places, and those behind each ``**`` there, which may stand for no folder."""
        reached = set(places)
        for place in sorted(places):
            while place < len(self._parts) and self._parts[place] == _ANY_DEPTH:
                place += 1
                reached.add(place)
        return reached

    def _entries(self, folder: str, places: set[int]) -> Iterator[tuple[str, set[int], set[int]]]:
        """Yield what is in a folder, with the places that stay there for ``**``, and those that come next."""
        parts = {place: self._parts[place] for place in places if place < len(self._parts)}
        deeper = {place for place, part in parts.items() if part == _ANY_DEPTH}
        further: dict[str, set[int]] = {}
        for place, part in parts.items():
            if not has_magic(part) and lexists(join(folder, part)):
                further.setdefault(part, set()).add(place + 1)
        names = _names_in(folder) if any(map(has_magic, parts.values())) else []
        for name in names:
            for place, part in parts.items():
                is_hidden = name.startswith(".") and not part.startswith(".")
                if place not in deeper and has_magic(part) and not is_hidden and self._matchers[place](normcase(name)):
                    further.setdefault(name, set()).add(place + 1)
        for name in sorted({*further, *names} if deeper else further):
            yield name, set() if name.startswith(".") else deeper, further.get(name, set())

    def _leads_outside(self, path: str, name: str) -> bool:
        if self._project is None or not (name == os.pardir or islink(path)):
            return False
        return not Path(realpath(path)).is_relative_to(self._project)


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder or os.curdir)
    except (OSError, ValueError):
        return []
