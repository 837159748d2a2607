"""The files that a command names: patterns that no shell has expanded, and patterns of what is left out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import has_magic, iglob
from pathlib import Path, PurePath

from dml_tile.files.urls import file_of, is_url


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


def globbed(names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each name with the files that it stands for: itself, or, of a pattern that is no file, those that match it."""
    for name in names:
        pattern = os.path.splitdrive(name)[1]  # without the question mark of \\?\C:
        if name != "-" and not is_url(name) and has_magic(pattern) and not Path(name).exists():
            yield name, sorted(iglob(name, recursive=True))  # noqa: PTH207  # a pathlib pattern cannot be absolute
        else:
            yield name, [name]
