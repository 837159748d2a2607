"""Keeps the paths that an untrusted file names below the folders that it may use."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Final

from dml_tile.input_errors import unreadable
from dml_tile.text import shown

MAX_PARTS: Final = 256
"""The parts of the longest path or pattern that is followed."""

_EXECUTABLE: Final = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


@dataclass(frozen=True, slots=True)
class AllowedFolders:
    """The folders that a model may read from, the first one first, and the one that it may write to.

    ``allow_hidden`` lets parts of a path below them begin with a dot. ``overwrite`` lets files be replaced that were
    there before, but for executable files and those that were read. ``follow_links`` lets links lead from place to
    place within the folders.
    """

    sources: tuple[Path, ...]
    outputs: Path = field(default_factory=Path)
    allow_hidden: bool = False
    overwrite: bool = False
    follow_links: bool = False
    _protected: set[tuple[int, int]] = field(default_factory=set)

    def readable(self, name: str, pointer: str) -> Path:
        """Return the regular file called ``name`` in the first source folder that has one.

        Raises InputError, with ``pointer``, if it is missing, hidden, outside the folders, behind a link or not a
        regular file.
        """
        has_one = len(self.sources) == 1
        for folder in self.sources:
            label = "the model's folder" if has_one else "the model's folder and the current one"
            path = self._path_below(self.sources, folder, name, pointer, label)
            try:
                status = path.stat()
            except OSError:  # there is none, or the name is too long
                continue
            if not stat.S_ISREG(status.st_mode):
                raise unreadable(pointer, f"{name!r} is not a regular file")
            self.protect(status)
            return path
        where = " in the model's folder" if has_one else ", neither in the model's folder nor in the current one"
        raise unreadable(pointer, f"{name!r} does not exist{where}")

    def writable(self, name: str, pointer: str) -> Path:
        """Return the path to write ``name`` to, relative to the folder for outputs.

        Raises InputError, with ``pointer``, if it is hidden, outside the folder or behind a link, or if a file must not
        or cannot be written there. All files have to be read before.
        """
        path = self._path_below((self.outputs,), self.outputs, name, pointer, "the folder for outputs")
        try:
            if path.exists():
                self._require_replaceable(path, name, pointer)
        except OSError as error:
            raise unreadable(pointer, f"{name!r} is no usable path: {error.strerror}") from None
        folder = next(folder for folder in path.parents if folder.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            reason = f"{folder.name!r} is no folder that can be written to"
            raise unreadable(pointer, f"{name!r} cannot be written: {reason}")
        return path

    def protect(self, status: os.stat_result) -> None:
        """Never let the file of that status be written to: it was read."""
        self._protected.add((status.st_dev, status.st_ino))

    def _require_replaceable(self, path: Path, name: str, pointer: str) -> None:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise unreadable(pointer, f"{name!r} is not a regular file")
        if (status.st_dev, status.st_ino) in self._protected:
            raise unreadable(pointer, f"{name!r} is read by this run, which never writes to what it reads")
        if status.st_mode & _EXECUTABLE:
            raise unreadable(pointer, f"{name!r} is executable; no such file is ever written")
        if not self.overwrite:
            raise unreadable(pointer, f"{name!r} exists; --overwrite replaces it")
        if not os.access(path, os.W_OK):
            raise unreadable(pointer, f"{name!r} is read-only")

    def _path_below(self, allowed: tuple[Path, ...], folder: Path, name: str, pointer: str, label: str) -> Path:
        """Return the path of ``name``, relative to a folder; ``label`` is what messages call the allowed folders."""
        if (count := len(PurePath(name).parts)) > MAX_PARTS:
            raise unreadable(pointer, f"{shown(name)} has {count} parts; a path may have {MAX_PARTS}")
        try:
            path = Path(os.path.normpath(folder.resolve() / name))
            resolved = path.resolve()
            roots = [root.resolve() for root in allowed]
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, or a NUL in the name
            raise unreadable(pointer, f"{name!r} is no usable path: {error}") from None
        if not all(any(map(each.is_relative_to, roots)) for each in (path, resolved)):
            raise unreadable(pointer, f"{name!r} leads outside {label}")
        if resolved != path and not self.follow_links:
            raise unreadable(pointer, f"{name!r} leads through a link, which is not followed")
        below = [path.relative_to(root).parts for root in roots if path.is_relative_to(root)]
        if not self.allow_hidden and all(any(map(_is_hidden, parts)) for parts in below):
            reason = "a part of it begins with a dot (--allow-hidden allows that)"
            raise unreadable(pointer, f"{name!r} is hidden: {reason}")
        return resolved


def _is_hidden(part: str) -> bool:
    """Return True if a name begins with a dot, or would on a file system that ignores invisible characters."""
    return next((char for char in part if char.isprintable()), "") == "."
