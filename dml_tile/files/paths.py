"""Paths below the folders that an untrusted file may use, and the files that patterns such as ``models/**`` match.

The files of all patterns are found in one walk, each once, whatever the patterns are.
"""

# Names stay as they were typed in a pattern; pathlib would change them.
# ruff: noqa: PTH112, PTH114, PTH116, PTH118, PTH208

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from glob import has_magic
from os.path import isdir, islink, join, lexists, normcase, realpath
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple, Self

from dml_tile.errors import input_error
from dml_tile.files.links import GIT, is_link, lies_in, unlinked, why_not_followed
from dml_tile.findings import Finding, unreadable
from dml_tile.text import shown

STANDARD_INPUT: Final = "-"
"""The argument that means standard input."""

MAX_PARTS: Final = 256
"""The parts of the longest path or pattern that is followed."""

_ANY_DEPTH: Final = "**"
_SEPARATORS: Final = "/" if os.sep == "/" else r"\/"
_NOWHERE: Final = frozenset[int]()
_SETS_REMEMBERED: Final = 32  # of places in patterns, which most folders share
_SPELLED_ONE_WAY: Final = re.compile(r"[\w.-]*[\w-]", re.ASCII)
"""Names that a file system lists as they are, but for case; it may know others by several, as é and PROGRA~1."""
_EXECUTABLE: Final = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


@dataclass(frozen=True, eq=False)
class AllowedFolders:
    """The folders that a model may read from, in order, and the folder that it may write to.

    ``allow_hidden`` lets parts of a path below them begin with a dot. ``overwrite`` lets existing files be replaced,
    but not executable files or files that were read. ``follow_links`` lets links lead from place to place within the
    folders.
    """

    sources: tuple[Path, ...]
    outputs: Path = field(default_factory=Path)
    allow_hidden: bool = False
    overwrite: bool = False
    follow_links: bool = False
    _protected: set[tuple[int, int]] = field(default_factory=set)
    _files: set[str] = field(default_factory=set)
    _folders: set[str] = field(default_factory=set)
    """The paths that are written, and the folders above them."""

    def readable(self, name: str, pointer: str) -> Path:
        """Return the regular file called ``name`` in the first source folder that has one. Raises InputError."""
        path = self.found(name, pointer)
        if path is None:
            has_one = len(self.sources) == 1
            where = " in the model's folder" if has_one else ", neither in the model's folder nor in the current one"
            raise input_error(pointer, f"{name!r} does not exist{where}")
        return path

    def found(self, name: str, pointer: str) -> Path | None:
        """Return the file as ``readable`` does; None if there is none. Raises InputError for what may not be read."""
        has_one = len(self.sources) == 1
        for folder in self.sources:
            label = "the model's folder" if has_one else "the model's folder and the current one"
            path = self._path_below(self.sources, folder, name, pointer, label)
            try:
                status = path.stat()
            except OSError:  # there is none, or the name is too long
                continue
            if not stat.S_ISREG(status.st_mode):
                raise input_error(pointer, f"{name!r} is not a regular file")
            self.protect(status)
            return path
        return None

    def writable(self, name: str, pointer: str) -> Path:
        """Return the path to write ``name`` to, once all files have been read. Raises InputError.

        No file that is written is a folder of another one.
        """
        path = self._path_below((self.outputs,), self.outputs, name, pointer, "the folder for outputs")
        try:
            unlinked(str(self.outputs / name))
            if path.exists():
                self._require_replaceable(path, name, pointer)
        except OSError as error:
            raise input_error(pointer, f"{name!r} is no usable path: {error.strerror}") from None
        folder = next(folder for folder in path.parents if folder.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            reason = f"{folder.name!r} is no folder that can be written to"
            raise input_error(pointer, f"{name!r} cannot be written: {reason}")
        self._require_apart(path, name, pointer)
        return path

    def protect(self, status: os.stat_result) -> None:
        """Never let the file of that status, which was read, be written to."""
        self._protected.add((status.st_dev, status.st_ino))

    def _require_replaceable(self, path: Path, name: str, pointer: str) -> None:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise input_error(pointer, f"{name!r} is not a regular file")
        if (status.st_dev, status.st_ino) in self._protected:
            raise input_error(pointer, f"{name!r} is read by this run, which never writes to what it reads")
        if status.st_mode & _EXECUTABLE:
            raise input_error(pointer, f"{name!r} is executable; no such file is ever written")
        if not self.overwrite:
            raise input_error(pointer, f"{name!r} exists; --overwrite replaces it")
        if not os.access(path, os.W_OK):
            raise input_error(pointer, f"{name!r} is read-only")

    def _require_apart(self, path: Path, name: str, pointer: str) -> None:
        """Add a path to those that are written, unless it is the folder of one, or one is a folder of it."""
        file, folders = normcase(path), {normcase(each) for each in path.parents}
        if file in self._folders:
            raise input_error(pointer, f"{name!r} cannot be written: it is a folder of another file that is written")
        if not self._files.isdisjoint(folders):
            raise input_error(pointer, f"{name!r} cannot be written: a folder of it is another file that is written")
        self._files.add(file)
        self._folders.update(folders)

    def _path_below(self, allowed: tuple[Path, ...], folder: Path, name: str, pointer: str, label: str) -> Path:
        """Return the path of ``name``, relative to a folder; ``label`` is what messages call the allowed folders."""
        if (count := part_count(name)) > MAX_PARTS:
            raise input_error(pointer, f"{shown(name)} has {count} parts; a path may have {MAX_PARTS}")
        try:
            path = Path(os.path.normpath(folder.resolve() / name))
            resolved = path.resolve()
            roots = [root.resolve() for root in allowed]
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, or a NUL in the name
            raise input_error(pointer, f"{name!r} is no usable path: {error}") from None
        if not all(any(map(each.is_relative_to, roots)) for each in (path, resolved)):
            raise input_error(pointer, f"{name!r} leads outside {label}")
        if resolved != path and not self.follow_links:
            raise input_error(pointer, f"{name!r} leads through a link, which is not followed")
        below = [path.relative_to(root).parts for root in roots if path.is_relative_to(root)]
        if not self.allow_hidden and all(any(map(_is_hidden, parts)) for parts in below):
            reason = "a part of it begins with a dot (--allow-hidden allows that)"
            raise input_error(pointer, f"{name!r} is hidden: {reason}")
        if self.follow_links and not any(lies_in(str(resolved), str(root)) for root in roots):
            raise input_error(pointer, f"{name!r} leads into {GIT}")
        return resolved


def _is_hidden(part: str) -> bool:
    """Return True if a name begins with a dot, or would on a file system that ignores invisible characters."""
    return next((char for char in part if char.isprintable()), "") == "."


def part_count(path: str) -> int:
    """Return the number of a path's parts. To look for each, the system looks for all above it again."""
    return len(PurePath(path).parts)


def not_standard_input(path: str) -> str:
    """Return a path that is not taken for standard input, which only an argument ``-`` names."""
    return join(os.curdir, path) if path == STANDARD_INPUT else path


class WrittenPath(str):
    """A path that stands in a file, and the ``folder`` that it does not lead out of; messages call that ``label``."""

    folder: str | Path
    label: str

    def __new__(cls, path: str, folder: str | Path, label: str = "") -> Self:
        made = super().__new__(cls, not_standard_input(path))
        made.folder, made.label = folder, label
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.folder, self.label


class ListedPath(WrittenPath):
    """A path in a list of files: neither a pattern, nor a URL, nor standard input."""


class ProjectPath(WrittenPath):
    """A path or a pattern in pyproject.toml."""


def why_refused(path: str, root: str = "", *, may_be_special: bool = False) -> str:
    """Return why nothing at a path is read: it is special, or leads out; ``""`` if it is read.

    Links in a repository, and those of lists, may lead below ``root``, too.
    """
    if path == STANDARD_INPUT:
        return ""
    try:
        if isinstance(path, ListedPath):
            if (count := part_count(path)) > MAX_PARTS:
                return f"has {count} parts; a path may have {MAX_PARTS}"
            if not any(lies_in(realpath(path), str(folder)) for folder in (path.folder, root) if folder):
                return f"leads out of {path.label}; --root names a folder below which it may lead"
        refused = why_not_followed(path, root)
        mode = stat.S_IFREG if refused or may_be_special else os.stat(path).st_mode
    except FileNotFoundError:
        return ""  # its reader says so
    except (OSError, ValueError) as error:  # a loop of links, or a NUL
        return f"is no usable path: {error.strerror if isinstance(error, OSError) else error}"
    return refused or ("" if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else "is neither a regular file nor a folder")


def is_url(name: str) -> bool:
    """Return True if a name begins with a protocol, of two characters at least: ``C://`` is a drive."""
    return re.match(r"[A-Za-z][\w+.:-]+://", name) is not None


def require_local(name: str) -> None:
    """Raise InputError for a URL of an argument that is no file."""
    if is_url(name) and not isinstance(name, WrittenPath) and not lexists(name):
        raise input_error("", "is a URL: download the file, or open it with fsspec for dml_tile.sweep (docs/scale.md)")


class _WantedEntries(NamedTuple):
    """The parts to look for in a folder: the places behind each, and the places that stay below it.

    ``ends`` are those of the latter at which a pattern ends.
    """

    names: dict[str, set[int]]
    wildcards: dict[str, set[int]]
    staying: frozenset[int]
    ends: tuple[int, ...]


class Matches:
    """The files and folders that match each of several patterns, ordered by name, by the patterns: ``names``.

    ``**`` stands for folders at any depth, but for hidden ones. Links are followed, but into no folder twice: all are
    found in one walk, which looks for each part of a pattern once in each folder. ``outside`` are links that a pattern
    names and that lead out of a ProjectPath's project, or out of the repository in which they lie and not below
    ``root``, each with the reason; ``passed_over`` are those that ``**`` meets. ``problems`` are those of patterns that
    have too many parts.
    """

    def __init__(self, *patterns: str, root: str = "") -> None:
        self._root = root
        self._parts: list[str] = []
        self._owners: list[str] = []
        """The parts of all patterns, an empty one at the end of each, and the pattern that has them."""
        self._are_folders: set[int] = set()
        self._found: dict[str, dict[tuple[int, int, str], str]] = {pattern: {} for pattern in patterns}
        self._looked_for: dict[tuple[int, int], set[int]] = {}
        self._awaited = lru_cache(_SETS_REMEMBERED)(self._awaited_at)
        self._project = next((Path(each.folder).resolve() for each in patterns if isinstance(each, ProjectPath)), None)
        self.outside: dict[str, list[tuple[str, str]]] = {pattern: [] for pattern in patterns}
        self.passed_over: list[str] = []
        self.problems: dict[str, Finding] = {}
        starts: dict[str, set[int]] = {}
        for pattern in self._found:
            drive, rest = os.path.splitdrive(pattern)
            parts = [part for part in re.split(f"[{re.escape(_SEPARATORS)}]", rest) if part]
            if len(parts) > MAX_PARTS:
                self.problems[pattern] = unreadable("", f"has {len(parts)} parts; a pattern may have {MAX_PARTS}")
                continue
            start = drive + os.sep * rest.startswith(tuple(_SEPARATORS))
            starts.setdefault(start, set()).add(len(self._parts))
            self._parts += [*parts, ""]
            self._owners += [pattern] * (len(parts) + 1)
            if rest.endswith(tuple(_SEPARATORS)):
                self._are_folders.add(len(self._parts) - 1)
        self._matchers = {part: re.compile(translate(normcase(part))).match for part in self._parts if has_magic(part)}
        left = deque((start, self._with_skipped(places)) for start, places in starts.items())
        while left:
            left.extend(self._folders_in(*left.popleft()))
        self.names = {each: sorted(map(not_standard_input, found.values())) for each, found in self._found.items()}

    def _folders_in(self, folder: str, places: frozenset[int]) -> list[tuple[str, frozenset[int]]]:
        """Take what matches in a folder, where the patterns' parts at ``places`` come next; return what to enter."""
        try:
            status = os.stat(folder or os.curdir)
        except (OSError, ValueError):
            return []
        looked_for = self._looked_for.setdefault((status.st_dev, status.st_ino), set())
        if looked_for:
            places -= looked_for
        looked_for |= places
        awaited = self._awaited(places)
        entered = []
        for name, further in self._entries(folder, awaited):
            path = join(folder, name)
            is_folder = isdir(path)
            reached = self._with_skipped(further) if is_folder else further
            staying, ends = (_NOWHERE, ()) if name.startswith(".") else (awaited.staying, awaited.ends)
            matching = [place for place in (*reached, *ends) if not self._parts[place]]
            if not is_folder:
                matching = [place for place in matching if place not in self._are_folders]
                if not matching:
                    continue
            if (name == os.pardir or is_link(path)) and (reason := self._why_outside(path)):
                naming = {self._owners[place] for place in (further if is_folder else {*further} & {*matching})}
                for pattern in naming:
                    self.outside[pattern].append((path, reason))
                if not naming and (staying if is_folder else matching):
                    self.passed_over.append(f"{path}/" if is_folder else path)
                continue
            for place in matching:
                self._found[self._owners[place]].setdefault((status.st_dev, status.st_ino, name), path)
            if is_folder:
                entered.append((path, staying | reached if reached else staying))
        return sorted(entered, key=lambda entry: (islink(entry[0]), entry[0]))

    def _why_outside(self, path: str) -> str:
        """Return why a link, or ``..``, is not followed; ``""`` if it is."""
        try:
            if self._project and not Path(realpath(path)).is_relative_to(self._project):
                return "leads out of the folder of pyproject.toml, which names it in paths"
            return why_not_followed(path, self._root)
        except OSError as error:
            return error.strerror or str(error)

    def _with_skipped(self, places: Iterable[int]) -> frozenset[int]:
        """Return the places, and those behind each ``**`` there, which may stand for no folder."""
        reached = set(places)
        for place in sorted(reached):
            while self._parts[place] == _ANY_DEPTH:
                place += 1
                reached.add(place)
        return frozenset(reached)

    def _awaited_at(self, places: frozenset[int]) -> _WantedEntries:
        names: dict[str, set[int]] = {}
        wildcards: dict[str, set[int]] = {}
        for place in places:
            part = self._parts[place]
            if part and part != _ANY_DEPTH:
                (wildcards if has_magic(part) else names).setdefault(part, set()).add(place + 1)
        staying = self._with_skipped(place for place in places if self._parts[place] == _ANY_DEPTH)
        return _WantedEntries(names, wildcards, staying, tuple(place for place in staying if not self._parts[place]))

    def _entries(self, folder: str, awaited: _WantedEntries) -> Iterator[tuple[str, set[int]]]:
        """Yield a folder's entries, each with the places that come next; where some stay, all."""
        listed: list[str] = []
        likely: Iterable[str] = awaited.names
        if awaited.wildcards or awaited.staying:
            with suppress(OSError, ValueError):
                listed = os.listdir(folder or os.curdir)
                folded = {name.casefold() for name in listed}
                likely = [part for part in likely if part.casefold() in folded or not _SPELLED_ONE_WAY.fullmatch(part)]
        further = {part: set(awaited.names[part]) for part in likely if lexists(join(folder, part))}
        for name in listed:
            for part, places in awaited.wildcards.items():
                is_hidden = name.startswith(".") and not part.startswith(".")
                if not is_hidden and self._matchers[part](normcase(name)):
                    further.setdefault(name, set()).update(places)
        for name in sorted({*further, *listed} if awaited.staying else further):
            yield name, further.get(name, set())
