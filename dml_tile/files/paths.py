"""Keeps the paths that an untrusted file names below the folders that it may use, with links followed."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from dml_tile.input_errors import refuse


@dataclass(frozen=True, slots=True)
class AllowedFolders:
    """The only folders that a model may read from and write to: its own and the current one."""

    model: Path
    current: Path

    def readable(self, name: str, pointer: str) -> Path:
        """Return the regular file called ``name`` in the model's folder, else in the current one.

        Raises InputError, with ``pointer``, if it is missing, not a regular file, or outside both folders.
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

    def writable(self, name: str, pointer: str) -> Path:
        """Return the path to write ``name`` to, relative to the current folder.

        Raises InputError if it is outside both folders, or if a file cannot be written there.
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


def _resolved(folder: Path, name: str, pointer: str) -> Path:
    try:
        return (folder / name).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, or a NUL in the name
        raise refuse(pointer, f"{name!r} is no usable path: {error}") from None
