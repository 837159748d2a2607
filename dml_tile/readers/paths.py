"""Paths that a file from a stranger names: they stay below the folders they were given for, links followed."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dml_tile.input_errors import refuse


@dataclass(frozen=True, slots=True)
class AllowedFolders:
    """The folder of a model and the current one; nothing outside them is read or written."""

    model: Path
    current: Path

    def source(self, name: str, pointer: str) -> Path:
        """The existing regular file that ``name`` means, looked for in the model's folder, then in the current one.

        Raises InputError, with ``pointer``, if it is missing, no regular file, or outside.
        """
        for folder in (self.model, self.current):
            path = _resolved(folder, name, pointer)
            try:
                mode = path.stat().st_mode
            except OSError:  # there is none, or the name is too long
                continue
            self._require_inside(path, name, pointer)
            if not stat.S_ISREG(mode):
                raise refuse(pointer, f"{name!r} is not a regular file")
            return path
        raise refuse(pointer, f"{name!r} does not exist, neither in the model's folder nor in the current one")

    def target(self, name: str, pointer: str) -> Path:
        """The path that ``name`` means for writing: relative to the current folder, and below it or the model's.

        Raises InputError if it is outside, or if a file cannot be written there.
        """
        path = _resolved(self.current, name, pointer)
        self._require_inside(path, name, pointer)
        try:
            if path.exists():
                if not path.is_file():
                    raise refuse(pointer, f"{name!r} is not a regular file")
                if not os.access(path, os.W_OK):
                    raise refuse(pointer, f"{name!r} is read-only")
        except OSError as error:
            raise refuse(pointer, f"{name!r} is no usable path: {error.strerror}") from None
        folder = next(folder for folder in path.parents if folder.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise refuse(pointer, f"{name!r} cannot be written: {folder.name!r} is no folder that can be written to")
        return path

    def _require_inside(self, path: Path, name: str, pointer: str) -> None:
        if not any(path.is_relative_to(folder.resolve()) for folder in (self.model, self.current)):
            raise refuse(pointer, f"{name!r} leads outside the model's folder and the current one")


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file so that it is there as a whole or not at all. Raises OSError, which names the file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".dml-tile-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                write(file)
            Path(unfinished).chmod(_mode(path))
            Path(unfinished).replace(path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def _mode(path: Path) -> int:
    """The permissions that a file would have if it were simply opened and written."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _resolved(folder: Path, name: str, pointer: str) -> Path:
    try:
        return (folder / name).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, or a NUL in the name
        raise refuse(pointer, f"{name!r} is no usable path: {error}") from None
